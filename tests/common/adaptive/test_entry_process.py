"""An entry in its own process: what it gets, and the message for every violation."""

import contextlib
import itertools
import os
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

from common.adaptive import entry_process, isolation
from common.adaptive.entry_files import ENTRY_FILE
from common.adaptive.entry_process import EntryProcess, Limits
from common.adaptive.evaluation import Setting, measure_curves, play_all
from common.adaptive.game import EntryError, Rules
from common.errors import InputError

import numpy as np
import pytest
import toy_bundle
from conftest import Write
from platforms import on_linux, with_links
from run_scripts import ROOT, ends, wait_for
from task_4_models import as_reference

WELL_BEHAVED = f"import numpy as np\n{toy_bundle.entry()[ENTRY_FILE]}"
# Four students who answered all of 20 questions; the last three questions are targets.
QUESTION = np.tile(np.arange(20), (4, 1))
STUDENTS = as_reference(QUESTION % 2, QUESTION >= 17)
TWO_MASKS = replace(STUDENTS, targets=dict.fromkeys("ab", STUDENTS.targets["mask"]))
linux = on_linux("/proc, and memory limits that hold")


@pytest.fixture
def setting(tmp_path: Path, write: Write) -> Setting:
    """An entry's folder, and a file of hidden answers."""
    reference = write("answers/valid_task_4.csv", "hidden")
    package = write(f"package/{ENTRY_FILE}", WELL_BEHAVED).parent
    return Setting(package, reference, None, tmp_path, Rules(), Limits(60, 1 << 30))


def with_entry(setting: Setting, **methods: str) -> Setting:
    """Write an entry in which some methods differ from those of the well-behaved one."""
    code = WELL_BEHAVED
    for name, body in methods.items():
        code += "\nclass Submission(Submission):\n"
        code += f"    def {name}(self, masked_data=0, masked_binary_data=0, can_query=0):\n"
        code += textwrap.indent(body.strip() + "\n", " " * 8)
    (setting.submission / ENTRY_FILE).write_text(code)
    return setting


CHEATS = {
    "opens the answers": ("__init__", "open('ANSWERS')", "denied .*valid_task_4.csv, which is n"),
    "raises": ("update_model", "raise KeyError('nothing here')", "round 1, update_model: raised "
               r"KeyError: 'nothing here' \(submission_model_task_4.py, line 14\)"),
    "counts what it does not see": ("update_model", "np.bincount(masked_data.ravel())",
                                    "; an entry written for 0 as unobserved needs --unobserved 0$"),
    "exits": ("update_model", "raise SystemExit(3)", "ended the program with exit code 3"),
    "ends its process": ("predict", "import os; os._exit(3)", "process ended with exit code 3"),
    "crashes": ("predict", "import ctypes; ctypes.string_at(0)", "process was ended by SIGSEGV"),
    "allocates much": ("predict", "np.ones(1 << 30)", "ran out of memory.*, expected at most 1 G"),
    "reads from the keyboard": ("update_model", "input()", "raised EOFError"),
    "prints forever": ("predict", "while True: print('x' * 1000)", "printed more than 5 MB"),
    "imports the kit": (
        "__init__", "import common.reading", "imports common.*, the kit's shared code",
    ),
}  # fmt: skip
OF_LINUX = {"crashes", "allocates much"}


@pytest.mark.parametrize(
    "cheat", [pytest.param(name, marks=[linux] * (name in OF_LINUX)) for name in CHEATS]
)
def test_every_misdeed_has_its_message(setting: Setting, cheat: str) -> None:
    method, body, message = CHEATS[cheat]
    with_entry(setting, **{method: body.replace("ANSWERS", str(setting.reference))})
    with pytest.raises(InputError, match=message) as caught:
        play_all(setting, STUDENTS)
    assert str(caught.value).startswith(f"{setting.submission}: mask, ")
    assert "\n" not in str(caught.value)


def test_no_path_tells_where_the_answers_are(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFERENCE", str(setting.reference))
    for name in ("PWD", "OLDPWD"):
        monkeypatch.setenv(name, str(setting.reference.parent))
    monkeypatch.chdir(setting.reference.parent)
    print_all = "import os, sys\nprint([sys.argv, sys.path, dict(os.environ), os.getcwd()])"
    _, played = play_all(with_entry(setting, __init__=print_all), STUDENTS)
    assert "'path'" in played.output.lower()
    assert setting.reference.name not in played.output
    assert str(setting.reference.parent) not in played.output


@with_links
def test_what_an_entry_finds_in_its_folder(setting: Setting, write: Write) -> None:
    """Its own files and those of the challenge, which replace its own; all fresh for every mask."""
    package = setting.submission
    write("package/train_task_3_4.csv", "the full training file")
    write("package/weights/model_task_4_a.txt", "weights")
    (package / "model_task_4_b.txt").symlink_to("weights/model_task_4_a.txt")
    write("subject_metadata.csv", "subjects")
    train = write("train_task_4.csv", "the local training file")
    look = """
from pathlib import Path
assert Path('weights/model_task_4_a.txt').read_text() == 'weights'
assert Path('model_task_4_b.txt').read_text() == 'weights'
assert Path('train_task_3_4.csv').read_text() == 'the local training file'
assert Path('subject_metadata.csv').read_text() == 'subjects'
names = [path.name for path in Path().iterdir() if path.name != '__pycache__']
assert len(names) == 5, names
Path('left_behind').write_text('')
Path('train_task_3_4.csv').write_text('')
import os, tempfile
handle, name = tempfile.mkstemp()
os.close(handle)
open(name).close()
"""
    count = "global calls\ncalls = globals().get('calls', 0) + 1\nassert calls <= 10"
    entry = with_entry(setting, __init__=look, update_model=count)
    assert len(play_all(entry._replace(train=train), TWO_MASKS)[0]) == 2
    assert train.read_text() == "the local training file"
    assert not (package / "left_behind").exists()


def test_what_a_failing_entry_prints_is_written(setting: Setting) -> None:
    """The end of it, where it is much."""
    output = setting.submission.parent / "output.txt"
    entry = with_entry(setting, predict="print('long ago')\nprint('x' * 150_000)\n1 / 0")
    with pytest.raises(InputError, match=r"; what it printed is in .*output.txt$"):
        play_all(entry, STUDENTS, output)
    text = output.read_text()
    assert "long ago" not in text
    assert text.endswith("ZeroDivisionError: division by zero\n")


# What an entry writes to the channel itself, and what is said of it. It then sleeps.
GARBLED = "closed or garbled the channel"
FORGED = {
    b"\n": GARBLED,
    b'{"arr': GARBLED,
    b"[" * 60_000 + b"\n": GARBLED,
    b'{"arrays": [["|i1", [1]], ["|i1", [1]]]}\nab': GARBLED,
    b'{"arrays": [["<i8", [1000000000000]]]}\n': GARBLED,
    b'{"arrays": [["<i8", [-1, -9]]]}\n': GARBLED,
    b'{"arrays": [["|O", [1]]]}\n12345678': GARBLED,
    b'{"changed": 5, "arrays": []}\n': GARBLED,
    b'{"fault": [1], "arrays": []}\n': GARBLED,
    b'{"fault": "a\\n\\u001b[31mb", "arrays": []}\n': r"^a \\x1b\[31mb$",
    b'{"fault": "' + b"x" * 60_000 + b'", "arrays": []}\n': "^x{1000}$",
}
# Answers twice as the runner does, then like this; it needs neither walls nor NumPy.
STAND_IN = """import sys, time
walls = b'{"namespaces": 0, "root": 0, "filter": 0, "Landlock": 0}'
ready = b'{"walls": ' + walls + b', "memory_limited": false, "arrays": []}\\n'
for reply in (ready, b'{"arrays": []}\\n', FORGED):
    sys.stdin.readline()
    sys.stdout.buffer.write(reply)
    sys.stdout.flush()
time.sleep(1000)
"""


@linux
@pytest.mark.parametrize("reply", FORGED, ids=range(len(FORGED)))
def test_forged_replies_end_the_game_at_once(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: bytes
) -> None:
    (tmp_path / "stand_in.py").write_text(STAND_IN.replace("FORGED", repr(reply)))
    monkeypatch.setattr(isolation, "__file__", str(tmp_path / "stand_in.py"))
    monkeypatch.setattr(entry_process, "_MAX_REPLYING", 0.5)
    started = time.monotonic()
    process = EntryProcess(setting.submission, {}, Limits(60), setting.reference)
    with pytest.raises(EntryError, match=FORGED[reply]) as caught, process as entry:
        entry.call("predict", ())
    assert time.monotonic() - started < SOONER
    assert len(f"{caught.value}") < 1500 and f"{caught.value}".isprintable()


# In seconds: whoever waited for one of these would take longer, and a busy machine does not.
SOONER = 40


def find_processes(text: str) -> list[int]:
    """Find the processes whose command line holds a text: to themselves they have other numbers."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += [int(path.parent.name)] if text.encode() in path.read_bytes() else []
    return found


# A session of its own, an orphan, and a session that starts others.
STARTING = """import os, subprocess, sys
others = "for i in $(seq 100); do setsid sleep SECONDS & sleep 0.05; done"
subprocess.Popen(["sleep", "SECONDS"], start_new_session=True)
os.system("setsid sleep SECONDS > /dev/null 2>&1 &")
subprocess.Popen(["sh", "-c", others], start_new_session=True)
print("started")
sys.stdout.flush()
"""
NONE = dict.fromkeys(isolation.WALLS, 0)


@linux
@pytest.mark.parametrize(
    ("walls", "then", "fault"),
    [
        (isolation.WALLS, "1 / 0", "predict: raised ZeroDivisionError"),
        (isolation.WALLS, "import time; time.sleep(99)", "a whole game within 5 s"),
        (NONE, "os.killpg(0, 9)", "predict: its process was ended by SIGKILL"),
    ],
)
def test_what_an_entry_started_ends_with_it(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, walls: dict[str, int], then: str, fault: str
) -> None:
    """Though it holds the pipes that the evaluator reads: closing must not wait for them."""
    monkeypatch.setattr(isolation, "WALLS", walls)
    # A time that no other process sleeps.
    mark = f"60.{time.time_ns()}"
    output = setting.submission.parent / "output.txt"
    entry = with_entry(setting, predict=STARTING.replace("SECONDS", mark) + then)
    # The limit leaves a busy machine time to get as far as `predict`.
    limits, started = Limits(5 if "sleep" in then else 60), time.monotonic()
    with pytest.raises(InputError, match=fault):
        play_all(entry._replace(limits=limits), STUDENTS, output)
    assert time.monotonic() - started < SOONER
    assert "started" in output.read_text()
    assert all(ends(pid, 0.1) for pid in find_processes(mark))


@linux
def test_closing_does_not_wait_for_who_holds_a_pipe(setting: Setting) -> None:
    """Closing returns even if others, here this process, hold the other end of a pipe."""
    entry = with_entry(setting, __init__="import os\nprint(os.getcwd())")
    with EntryProcess(entry.submission, {}, Limits(60), setting.reference) as process:
        folder = Path(wait_for(lambda: process.output).strip()).parent
        pipes = [Path(f"/proc/{pid}/fd/2") for pid in find_processes(str(folder))]
        (held,) = [pipe for pipe in pipes if str(pipe.readlink()).startswith("pipe:")]
        started = time.monotonic()
        with held.open("wb"):
            process.__exit__()
        assert time.monotonic() - started < SOONER


def test_the_curve_replays_the_choices_without_select_questions(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its predictions become right, two of three, once question 0 is asked, its first choice."""
    predict = "return np.repeat(masked_binary_data[:, :1] >= 0, masked_data.shape[1], axis=1)"
    entry = with_entry(setting, predict=predict)
    games, _ = play_all(entry, TWO_MASKS)
    # Each of the four replays has the whole time: by this clock they take some 35 of 60 seconds.
    clock = itertools.count(step=1.5)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    curves = measure_curves(entry, TWO_MASKS, games)
    assert not isinstance(curves, str)
    assert curves[:, 0].tolist() == [[1 / 3, *[2 / 3] * 10]] * 2
    assert curves[:, 1, 0].tolist() == [1 / 3] * 2
    assert np.all(np.diff(curves[:, 1]) >= 0)
    # Each mask has a random choice of its own.
    assert curves[0, 1].tolist() != curves[1, 1].tolist()


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        ({f"folder/{ENTRY_FILE}": ""}, r"holds a folder \(folder/submission_model"),
        ({"model.py": ""}, "holds no submission_model_task_4.py, expected"),
        ({ENTRY_FILE: "x = 1"}, "has no class Submission"),
        ({ENTRY_FILE: "import model"}, "starting Sub.*: raised ModuleNotFoundError: .*'model'"),
    ],
)
def test_faulty_zips(setting: Setting, members: dict[str, str], fault: str) -> None:
    path = toy_bundle.write_zip(setting.reference.parent / "entry.zip", members)
    with pytest.raises(InputError, match=fault):
        play_all(setting._replace(submission=path), STUDENTS)


EVALUATOR = """import pathlib, sys
from common.adaptive.entry_process import EntryProcess, Limits
EntryProcess(pathlib.Path(sys.argv[1]), {}, Limits(), pathlib.Path("none")).__enter__()
"""


@linux
def test_an_entry_ends_when_the_evaluator_is_killed(setting: Setting, tmp_path: Path) -> None:
    """Its folder goes with it."""
    tell = "import time\nopen('told', 'w').close()\n"
    entry = with_entry(setting, __init__=f"{tell}time.sleep(1000)")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    evaluator = subprocess.Popen(
        [sys.executable, "-c", EVALUATOR, str(entry.submission)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
    )
    assert wait_for(lambda: [*temporary.glob("*/entry/told")])
    started = find_processes(f"{temporary}/task_4")
    assert started
    evaluator.kill()
    evaluator.wait()
    assert all(ends(pid) for pid in started)
    assert wait_for(lambda: not [*temporary.iterdir()])
