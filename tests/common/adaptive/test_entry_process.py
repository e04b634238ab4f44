"""An entry in its own process: what it gets, and the message for every violation."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from common.adaptive import entry_process, entry_runner
from common.adaptive.entry_files import ENTRY_FILE
from common.adaptive.entry_process import EntryProcess, Limits
from common.adaptive.game import Reference, Rules, make_reference
from common.adaptive.playing import Setting, measure_curves, play_all
from common.adaptive.report import Curves
from common.answers import Answers
from common.errors import InputError

WELL_BEHAVED = """
import numpy as np

class Submission:
    def select_questions(self, masked_data, masked_binary_data, can_query):
        return can_query.argmax(axis=1)

    def update_model(self, masked_data, masked_binary_data, can_query):
        pass

    def predict(self, masked_data, masked_binary_data):
        return np.ones(masked_data.shape, int)
"""
N_STUDENTS, N_QUESTIONS = 4, 20
Evaluate = Callable[..., str]
linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc and memory limits are Linux's")


@pytest.fixture
def students() -> Reference:
    """Four students who answered all questions; the last three questions are targets."""
    row, question = np.divmod(np.arange(N_STUDENTS * N_QUESTIONS, dtype=np.int32), N_QUESTIONS)
    answers = Answers(row + 50, question, (question % 2).astype(np.int8))
    return make_reference("students.csv", answers, {"IsTarget": question >= N_QUESTIONS - 3})


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    """An entry's folder, and a file of hidden answers."""
    package = tmp_path / "package"
    package.mkdir()
    reference = tmp_path / "answers" / "valid_task_4.csv"
    reference.parent.mkdir()
    reference.write_text("hidden")
    return Setting(package, reference, None, tmp_path, Rules(), Limits(60, 2 << 30))


def with_entry(setting: Setting, change: str) -> Setting:
    """Write an entry that differs from the well-behaved one."""
    (setting.submission / ENTRY_FILE).write_text(WELL_BEHAVED + change)
    return setting


def with_method(setting: Setting, method: str, *lines: str) -> Setting:
    """Write an entry in which one method differs."""
    arguments = {
        "__init__": "self",
        "predict": "self, masked_data, masked_binary_data",
        "select_questions": "self, masked_data, masked_binary_data, can_query",
        "update_model": "self, masked_data, masked_binary_data, can_query",
    }
    body = "".join(f"        {line}\n" for line in lines)
    change = f"\nclass Submission(Submission):\n    def {method}({arguments[method]}):\n{body}"
    return with_entry(setting, change)


def test_well_behaved_entry(setting: Setting, students: Reference) -> None:
    result = play_all(with_entry(setting, ""), students)
    assert result.accuracies.tolist() == [2 / 3]
    assert result.games["IsTarget"].chosen.tolist() == [list(range(10))] * N_STUDENTS
    assert result.output == ""
    assert not result.changed


CHEATS = {
    "asks a target": (
        "select_questions",
        ["return np.full(len(can_query), 18)"],
        r"round 1, select_questions: student 0 \(UserId 50\): chose QuestionId 18, which is a "
        r"target \(4 such students\)",
    ),
    "makes a question askable": (
        "select_questions",
        ["can_query[:] = 1", "return can_query.argmax(axis=1)"],
        "round 2, select_questions: .* was asked in round 1 already",
    ),
    "returns the wrong shape": (
        "select_questions",
        ["return can_query.argmax(axis=1)[:2]"],
        r"round 1, select_questions: returned shape \(2,\), expected one column index for each",
    ),
    "returns text": (
        "select_questions",
        ["return ['a'] * len(can_query)"],
        "round 1, select_questions: returned a list of <U1 values, expected numbers",
    ),
    "returns objects": (
        "predict",
        ["return np.ones(masked_data.shape, object)"],
        "after round 10, predict: returned a ndarray of object values, expected numbers",
    ),
    "is unsure": (
        "predict",
        ["return np.full(masked_data.shape, 0.7)"],
        r"predict: student 0 \(UserId 50\): predicted 0.7 for QuestionId 17 \(12 such targets\)",
    ),
    "predicts NaN": (
        "predict",
        ["return np.full(masked_data.shape, np.nan)"],
        "predicted nan for QuestionId 17 .* expected 0 or 1",
    ),
    "raises": (
        "update_model",
        ["raise KeyError('nothing here')"],
        r"round 1, update_model: raised KeyError: 'nothing here' \(submission_model_task_4.py, "
        r"line 16\)",
    ),
    "raises at the start": (
        "__init__",
        ["open('model_task_4.pt')"],
        "starting Submission: raised FileNotFoundError: .*model_task_4.pt",
    ),
    "exits": ("update_model", ["raise SystemExit(3)"], "ended the program with exit code 3"),
    "exits at once": (
        "update_model",
        ["import os", "os._exit(3)"],
        "round 1, update_model: its process ended with exit code 3",
    ),
    "reads from the keyboard": ("update_model", ["input()"], "raised EOFError"),
    "prints forever": (
        "select_questions",
        ["while True: print('x' * 1000)"],
        "round 1, select_questions: printed more than 5 MB",
    ),
    "imports the kit": (
        "__init__",
        ["import common.io"],
        "imports common.*, the kit's shared code, which is not there in the challenge",
    ),
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_every_misdeed_has_its_message(setting: Setting, students: Reference, cheat: str) -> None:
    method, lines, message = CHEATS[cheat]
    with pytest.raises(InputError, match=message) as caught:
        play_all(with_method(setting, method, *lines), students)
    assert str(caught.value).startswith(f"{setting.submission}: IsTarget, ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("line", ["time.sleep(1000)", "while True: pass"])
def test_an_entry_that_never_ends(setting: Setting, students: Reference, line: str) -> None:
    entry = with_method(setting, "predict", "import time", line)
    limited = Setting(**{**vars(entry), "limits": Limits(3, 2 << 30)})
    started = time.monotonic()
    with pytest.raises(InputError, match="has not finished; expected a whole game within 3 s"):
        play_all(limited, students)
    assert time.monotonic() - started < 30


@linux
def test_an_entry_that_allocates_without_end(setting: Setting, students: Reference) -> None:
    lines = ["blocks = []", "while True: blocks.append(np.ones(20_000_000))"]
    entry = with_method(setting, "update_model", *lines)
    limited = Setting(**{**vars(entry), "limits": Limits(60, 1 << 30)})
    with pytest.raises(InputError, match=r"ran out of memory.*, expected at most 1 GiB"):
        play_all(limited, students)


@linux
def test_a_crash_names_the_signal(setting: Setting, students: Reference) -> None:
    lines = ["import os, signal", "os.kill(os.getpid(), signal.SIGSEGV)"]
    with pytest.raises(InputError, match="update_model: its process was ended by SIGSEGV"):
        play_all(with_method(setting, "update_model", *lines), students)


@linux
@pytest.mark.parametrize("name", ["cmdline", "environ"])
def test_an_entry_that_looks_into_its_parent(
    setting: Setting, students: Reference, name: str
) -> None:
    line = f"import os; open(f'/proc/{{os.getppid()}}/{name}').read()"
    with pytest.raises(
        InputError, match=f"starting Submission: was denied /proc/.*/{name}, which is "
    ):
        play_all(with_method(setting, "__init__", line), students)


@pytest.mark.parametrize("read", ["open({!r})", "np.loadtxt({!r})", "os.open({!r}, os.O_RDONLY)"])
def test_an_entry_that_opens_the_answers(setting: Setting, students: Reference, read: str) -> None:
    path = str(setting.reference)
    with pytest.raises(
        InputError, match=r"was denied .*valid_task_4.csv, which is neither in the zip"
    ):
        play_all(with_method(setting, "__init__", "import os", read.format(path)), students)


def test_no_path_tells_where_the_answers_are(
    setting: Setting, students: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFERENCE", str(setting.reference))
    monkeypatch.chdir(setting.reference.parent)
    lines = ["import os, sys", "print([sys.argv, sys.path, dict(os.environ), os.getcwd()])"]
    result = play_all(with_method(setting, "__init__", *lines), students)
    assert "'PATH'" in result.output or "'Path'" in result.output
    assert setting.reference.name not in result.output
    assert str(setting.reference.parent) not in result.output


def test_what_an_entry_finds_in_its_folder(
    setting: Setting, students: Reference, tmp_path: Path
) -> None:
    """Its own files and those of the challenge, which replace its own; fresh for every mask."""
    (setting.submission / "train_task_3_4.csv").write_text("the full training file")
    (setting.submission / "model_task_4.pt").write_text("weights")
    (setting.metadata_dir / "subject_metadata.csv").write_text("subjects")
    train = tmp_path / "train_task_4.csv"
    train.write_text("the local training file")
    lines = [
        "from pathlib import Path",
        "assert Path('model_task_4.pt').read_text() == 'weights'",
        "assert Path('train_task_3_4.csv').read_text() == 'the local training file'",
        "assert Path('subject_metadata.csv').read_text() == 'subjects'",
        "names = [path.name for path in Path().iterdir() if path.name != '__pycache__']",
        "assert len(names) == 4, names",
        "Path('left_behind').write_text('')",
        "Path('train_task_3_4.csv').write_text('')",
        "import tempfile",
        "with tempfile.NamedTemporaryFile() as file: open(file.name).close()",
    ]
    entry = with_method(setting, "__init__", *lines)
    targets = students.targets["IsTarget"]
    two_masks = Reference(**{**vars(students), "targets": {"a": targets, "b": targets}})
    play_all(Setting(**{**vars(entry), "train": train}), two_masks)
    assert train.read_text() == "the local training file"
    assert not (setting.submission / "left_behind").exists()


def test_a_fresh_entry_for_every_mask(setting: Setting, students: Reference) -> None:
    """A module that counts its calls starts again from 0."""
    lines = ["global calls", "calls = globals().get('calls', 0) + 1", "assert calls <= 10"]
    targets = students.targets["IsTarget"]
    two_masks = Reference(**{**vars(students), "targets": {"a": targets, "b": targets}})
    result = play_all(with_method(setting, "update_model", *lines), two_masks)
    assert len(result.games) == 2


def test_changed_arguments_are_noted(setting: Setting, students: Reference) -> None:
    """Published entries write into their arguments: that is allowed, and has no effect."""
    line = "can_query[:] = 0; masked_data[:] = 7"
    result = play_all(with_method(setting, "update_model", line), students)
    assert result.changed == {"update_model": {"can_query", "masked_data"}}
    assert result.accuracies.tolist() == [2 / 3]


def test_what_an_entry_prints_is_kept(setting: Setting, students: Reference) -> None:
    lines = ["import os", "print('to stdout')", "os.write(1, b'past Python\\n')"]
    result = play_all(with_method(setting, "update_model", *lines), students)
    assert "to stdout" in result.output
    assert "past Python" in result.output


def test_what_a_failing_entry_prints_is_written(setting: Setting, students: Reference) -> None:
    output = setting.submission.parent / "output.txt"
    with pytest.raises(InputError, match=r"; what it printed is in .*output.txt$"):
        play_all(with_method(setting, "predict", "print('so far')", "1 / 0"), students, output)
    text = output.read_text()
    assert "so far" in text
    assert "ZeroDivisionError" in text


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ends(pid: int, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while is_running(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


# In seconds: whoever waited for one of these would take longer, and a busy machine does not.
SOONER = 40
STARTING = {
    "a child": "child = subprocess.Popen(['sleep', '60'])",
    "a session": "child = subprocess.Popen(['sleep', '60'], start_new_session=True)",
    "an orphan": """
child = type("", (), {"pid": int(subprocess.run(
    "setsid sleep 60 > /dev/null 2>&1 & echo $!", shell=True, capture_output=True
).stdout)})
""",
    "a session that starts others": """
child = subprocess.Popen(
    ["sh", "-c", "for i in $(seq 100); do setsid sleep 60 & sleep 0.05; done"],
    start_new_session=True
)
""",
}


@linux
@pytest.mark.parametrize("kind", STARTING)
def test_what_an_entry_started_ends_with_it(
    setting: Setting, students: Reference, kind: str
) -> None:
    start = [*STARTING[kind].strip().splitlines(), "print('started', child.pid)"]
    result = play_all(with_method(setting, "__init__", "import subprocess", *start), students)
    pid = int(result.output.split()[-1])
    assert pid > 1
    assert ends(pid, 0.1)


@linux
def test_a_child_with_its_own_session_ends_at_the_time_limit(
    setting: Setting, students: Reference
) -> None:
    """It holds the pipes that the evaluator reads; closing must not wait for them.

    The limit leaves a busy machine time to get as far as `predict`.
    """
    output = setting.submission.parent / "output.txt"
    lines = [
        "import subprocess, time",
        STARTING["a session"],
        "print('started', child.pid)",
        "time.sleep(1000)",
    ]
    entry = with_method(setting, "predict", *lines)
    started = time.monotonic()
    with pytest.raises(InputError, match="has not finished; expected a whole game within 6 s"):
        play_all(Setting(**{**vars(entry), "limits": Limits(6, 2 << 30)}), students, output)
    assert time.monotonic() - started < SOONER
    assert ends(int(output.read_text().split()[-1]), 0.1)


@linux
def test_an_entry_that_ends_by_itself_leaves_nothing_behind(
    setting: Setting, students: Reference
) -> None:
    output = setting.submission.parent / "output.txt"
    lines = ["import os, subprocess", STARTING["a session"], "print(child.pid, flush=True)"]
    started = time.monotonic()
    with pytest.raises(InputError, match="predict: its process ended with exit code 3"):
        play_all(with_method(setting, "predict", *lines, "os._exit(3)"), students, output)
    assert time.monotonic() - started < SOONER
    assert ends(int(output.read_text().split()[-1]), 0.1)


@linux
def test_closing_does_not_wait_for_who_holds_a_pipe(setting: Setting) -> None:
    """Closing returns even if others, here this process, hold the other ends of the pipes."""
    entry = with_method(setting, "__init__", "import os", "print(os.getpid())")
    with EntryProcess(entry.submission, {}, Limits(60), setting.reference) as process:
        deadline = time.monotonic() + 10
        while not process.output and time.monotonic() < deadline:
            time.sleep(0.01)
        folder = Path(f"/proc/{int(process.output)}/fd")
        pipes = [file for file in folder.iterdir() if str(file.readlink()).startswith("pipe:")]
        with contextlib.ExitStack() as held:
            for file in pipes:
                with contextlib.suppress(OSError):
                    descriptor = os.open(file, os.O_WRONLY | os.O_NONBLOCK)
                    held.callback(os.close, descriptor)
            started = time.monotonic()
            process.close()
            assert time.monotonic() - started < SOONER


def test_the_curve_does_without_select_questions_or_says_why(
    setting: Setting, students: Reference
) -> None:
    entry = with_entry(setting, "")
    curves = measure_curves(entry, students, play_all(entry, students))
    assert isinstance(curves, Curves)
    assert np.all(curves.entry == 2 / 3)
    assert curves.random.shape == (1, 11)

    stateful = with_method(
        setting, "select_questions", "self.state = can_query", "return can_query.argmax(axis=1)"
    )
    path = setting.submission / ENTRY_FILE
    needs_state = "\n    def predict(self, data, binary):\n        return self.state * 0 + 1\n"
    path.write_text(path.read_text() + needs_state)
    result = play_all(stateful, students)
    assert result.accuracies.tolist() == [2 / 3]
    why = measure_curves(stateful, students, result)
    assert isinstance(why, str)
    assert "after round 0, predict: raised AttributeError" in why


def write_zip(path: Path, **members: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/") + ".py", content)
    return path


def test_a_zip_plays_as_its_folder(setting: Setting, students: Reference) -> None:
    path = write_zip(setting.reference.parent / "entry.zip", submission_model_task_4=WELL_BEHAVED)
    zipped = Setting(**{**vars(setting), "submission": path})
    assert play_all(zipped, students).accuracies.tolist() == [2 / 3]


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        ({"folder__submission_model_task_4": ""}, r"holds a folder \(folder/submission_model"),
        ({"model": ""}, "holds no submission_model_task_4.py, expected"),
        ({"submission_model_task_4": "x = 1"}, "has no class Submission"),
        (
            {"submission_model_task_4": "class Submission:\n  pass"},
            "has no method select_questions",
        ),
        ({"submission_model_task_4": "def"}, "raised SyntaxError"),
        ({"submission_model_task_4": "import model"}, "raised ModuleNotFoundError: .*'model'"),
    ],
)
def test_faulty_zips(
    setting: Setting, students: Reference, members: dict[str, str], fault: str
) -> None:
    path = write_zip(setting.reference.parent / "entry.zip", **members)
    with pytest.raises(InputError, match=fault):
        play_all(Setting(**{**vars(setting), "submission": path}), students)


@pytest.mark.parametrize("kind", ["cut off", "no zip", "no entry", "missing"])
def test_submissions_that_are_none(setting: Setting, students: Reference, kind: str) -> None:
    path = setting.reference.parent / "entry.zip"
    if kind == "cut off":
        write_zip(path, submission_model_task_4=WELL_BEHAVED)
        os.truncate(path, 100)
    elif kind == "no zip":
        path.write_text("text")
    elif kind == "no entry":
        path = setting.submission
    faults = {"no entry": f"{ENTRY_FILE}: file not found", "missing": "entry.zip: file not found"}
    with pytest.raises(InputError, match=faults.get(kind, "is not a zip file, or is cut off")):
        play_all(Setting(**{**vars(setting), "submission": path}), students)


EVALUATOR = """
import sys
from pathlib import Path
from common.adaptive.entry_process import EntryProcess, Limits

process = EntryProcess(Path(sys.argv[1]), {}, Limits(), Path("none"))
print(process._process.pid, flush=True)
with process:
    pass
"""


def children(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found


@linux
def test_an_entry_ends_when_the_evaluator_is_killed(
    setting: Setting, students: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is left behind, and removed when the next entry starts."""
    entry = with_method(setting, "__init__", "import time", "time.sleep(1000)")
    root = str(Path(entry_runner.__file__).parents[2])
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    evaluator = subprocess.Popen(
        [sys.executable, "-c", EVALUATOR, str(entry.submission)],
        env={**os.environ, "PYTHONPATH": root, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
    )
    assert evaluator.stdout is not None
    supervisor = int(evaluator.stdout.readline())
    deadline = time.monotonic() + 20
    while not (started := children(supervisor)) and time.monotonic() < deadline:
        time.sleep(0.01)
    (child,) = started
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (folder,) = temporary.iterdir()
    entry_process.sweep_folders()
    assert folder.exists(), "removed while its evaluation lives"
    evaluator.kill()
    evaluator.communicate()
    assert ends(supervisor, 5)
    assert ends(child, 5)
    assert folder.exists()
    play_all(with_entry(setting, ""), students)
    assert not list(temporary.iterdir())


def test_only_own_folders_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    elsewhere = tmp_path / "elsewhere"
    for name in ("task_4_entry_left", "task_4_entry_of_something_else", "another", "elsewhere"):
        (tmp_path / name / "entry").mkdir(parents=True)
    (tmp_path / "task_4_entry_left" / "evaluation.lock").touch()
    (tmp_path / "another" / "evaluation.lock").touch()
    (elsewhere / "evaluation.lock").touch()
    (tmp_path / "task_4_entry_link").symlink_to(elsewhere)
    entry_process.sweep_folders()
    assert {path.name for path in tmp_path.iterdir()} == {
        "task_4_entry_of_something_else", "task_4_entry_link", "another", "elsewhere",
    }  # fmt: skip
    assert (elsewhere / "entry").is_dir()


LINKS = {
    "weights": ("model_task_4_answers.csv", "open('model_task_4_answers.csv').read()"),
    "weights in a folder": ("weights/model_task_4.csv", "open('weights/model_task_4.csv').read()"),
    "module": ("model.py", "import model"),
    "the entry itself": (ENTRY_FILE, ""),
}


@pytest.mark.parametrize("kind", LINKS)
def test_a_link_carries_nothing_in(setting: Setting, students: Reference, kind: str) -> None:
    name, line = LINKS[kind]
    with_method(setting, "__init__", line or "pass")
    link = setting.submission / name
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(setting.reference)
    with pytest.raises(InputError, match=f"{name}: is a link that leads out of the entry's folder"):
        play_all(setting, students)


@pytest.mark.parametrize("folder", [False, True])
def test_what_is_no_part_of_an_entry_stays_out(
    setting: Setting, students: Reference, folder: bool
) -> None:
    """A link by another name is not followed, whatever it leads to."""
    target = setting.reference.parent if folder else setting.reference
    (setting.submission / "answers").symlink_to(target)
    name = "answers/valid_task_4.csv" if folder else "answers"
    with pytest.raises(InputError, match=r"FileNotFoundError.*; answers/? is left out of the zip"):
        play_all(with_method(setting, "__init__", f"open({name!r})"), students)


def test_links_within_the_folder_and_weights_in_folders_are_taken(
    setting: Setting, students: Reference
) -> None:
    weights = setting.submission / "weights"
    weights.mkdir()
    (weights / "model_task_4_a.txt").write_text("weights")
    (setting.submission / "model_task_4_b.txt").symlink_to("weights/model_task_4_a.txt")
    lines = [
        "assert open('weights/model_task_4_a.txt').read() == 'weights'",
        "assert open('model_task_4_b.txt').read() == 'weights'",
    ]
    play_all(with_method(setting, "__init__", *lines), students)


@pytest.mark.parametrize(
    "line",
    [
        "np.zeros(2)[masked_data.max() + 5]",
        "np.bincount(masked_data.ravel())",
        "raise RuntimeError('Class values must be non-negative.')",
    ],
)
def test_an_entry_written_for_zeros_is_pointed_to_the_flag(
    setting: Setting, students: Reference, line: str
) -> None:
    entry = with_method(setting, "update_model", line)
    hint = "; an entry written for 0 as unobserved needs --unobserved 0"
    with pytest.raises(InputError) as caught:
        play_all(entry, students)
    assert str(caught.value).endswith(hint)
    zeros = Setting(**{**vars(entry), "rules": Rules(unobserved=0)})
    with contextlib.suppress(InputError):
        play_all(zeros, students)
        return
    with pytest.raises(InputError) as caught:
        play_all(zeros, students)
    assert hint not in str(caught.value)
