"""The quickstart, run as by a newcomer, but in the environment of the tests."""

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tools.quickstart.steps import is_blend

import pytest
from conftest import ROOT, copy_kit, keep_only, run, shorten, succeeds
from platforms import on_unix
from recorded import recorded_doubts
from run_scripts import LIBRARIES, PATIENCE, Done, ends_within, run_process, wait_for
from sample_blocks import needs_blocks
from terminal import run_on_terminal

SPLITS = [("1", "local split"), ("4", "local split")]
MAJORITY = [("1", "majority"), ("2", "majority")]
QUICK = [SPLITS[0], *MAJORITY]


class LongPart(NamedTuple):
    """A part of a script that takes long, and the change of its code that makes it quick."""

    file: str
    # The text in the file that makes the part take long, and the text that replaces it.
    long: str
    quick: str


LONG_PARTS = (
    LongPart("task_1/sample_model_partial_vae.py", "max(420, 16 *", "max(20, 0 *"),
    LongPart("task_2/sample_model_partial_vae.py", "max(420, 16 *", "max(20, 0 *"),
    LongPart("task_3/sample_model_partial_vae.py", "N_STEPS = 600", "N_STEPS = 20"),
    LongPart("task_4/pytorch/train_model.py", "N_STEPS = 300", "N_STEPS = 60"),
    LongPart("task_1/sample_model_gradient_boosting.py", '"max_iter": 100', '"max_iter": 20'),
    LongPart("task_2/sample_model_gradient_boosting.py", "N_TREES = (100, 50)", "N_TREES = (25,)"),
    # Each of the next three constants is a number of training answers. With more answers than this,
    # a model saves time: it holds out a smaller share of the answers, uses fewer features, or does
    # not choose its settings. So lower these numbers.
    LongPart("common/answer_features/parts.py", "_MAX_HELD_OUT = 125_000", "_MAX_HELD_OUT = 2_000"),
    LongPart(
        "task_2/sample_model_gradient_boosting.py", "WITH_CONTEXTS = 100_000", "WITH_CONTEXTS = 0"
    ),
    LongPart("common/item_response/choice.py", "_MAX_ANSWERS = 200_000", "_MAX_ANSWERS = 2_000"),
    # Do not measure the accuracy after each question. The evaluation of task 4 would play each
    # entry once more for it, in a new process.
    LongPart("common/adaptive/evaluation.py", "if options.skip_curve:", "if True:"),
)


@pytest.fixture
def quick_kit(tiny_kit: Path) -> Path:
    """Return a kit whose only sample models are the majority models of tasks 1 and 2."""
    keep_only(tiny_kit, "majority")
    return tiny_kit


def steps(output: str) -> dict[tuple[str, str], str]:
    """Return how every step ended, by task and name, in the order of the output.

    A step ends as `run`, `done already` or `failed`.
    """
    # A line of the output is, for example, `[2/9] task 1  majority: score 0.6123, 1.2 s`.
    pattern = r"\] (?:task )?(\w+)  (.*): (?:score [\d.]+, )?(done already|failed|[\d.]+ s)$"
    matches = re.findall(pattern, output, re.MULTILINE)
    return {(task, name): re.sub(r"[\d.]+ s", "run", end) for task, name, end in matches}


def without_scoreboard(kit: Path) -> Path:
    """Replace the script that shows the scoreboard, a table of all scores, by an empty file.

    This saves time in a test that does not read the table.
    """
    (kit / "tools/scoreboard.py").write_text("")
    return kit


def without_pages(kit: Path) -> Path:
    """Let a kit write empty HTML pages, to save time in a test that does not read them."""
    (kit / "common/pages.py").write_text(
        "Html = str\n"
        "def render(name, **variables): return ''\n"
        "def part(name, *args, **options): return ''\n"
    )
    return kit


def table(output: str) -> str:
    """Return the scoreboard in the output."""
    return output[output.index("\n\n") : output.index("written: ")]


def scores(kit: Path) -> dict[tuple[str, str], float]:
    """Return the recorded scores; the keys are task and name of the model."""
    lines = (kit / "data/test_output/results.jsonl").read_text().splitlines()
    results = [json.loads(line) for line in lines]
    return {(str(result["task"]), result["model"]): result["score"] for result in results}


@pytest.mark.slow
@needs_blocks(*{part.file for part in LONG_PARTS})
def test_everything_is_scored_and_a_second_run_only_shows_it(tmp_path: Path) -> None:
    """In a fresh clone, the quickstart makes the splits and scores all sample models.

    It leaves out only the models that blend other models, because they take long. The scores are in
    the record of scores and in the scoreboard. A second run scores nothing and shows the same
    scoreboard. To save time in this test, fits are short, pages are empty, and the accuracy after
    each question of task 4 is not measured.
    """
    kit = without_pages(copy_kit(tmp_path / "a kit"))
    for part in LONG_PARTS:
        shorten(kit, part.file, re.escape(part.long), part.quick)

    first = succeeds(["quickstart.py", "--size", "tiny"], kit=kit, timeout=2 * PATIENCE)
    # The keys are pairs of a task and the name of a model.
    score_by_model = scores(kit)
    scripts = [*kit.glob("task_[123]/sample_model_*.py"), *kit.glob("task_4/*/train_model.py")]
    scripts_without_blends = [script for script in scripts if not is_blend(script)]
    assert len(score_by_model) == len(scripts_without_blends)
    # A step is a split or a model.
    all_steps = [*SPLITS, *score_by_model]
    assert steps(first) == dict.fromkeys(all_steps, "run")
    for (_task, name), score in score_by_model.items():
        assert 0.2 < score < 1
        row_of_model = rf"^ +{name} .*{score:.4f} "
        assert re.search(row_of_model, table(first), re.MULTILINE), name

    assert recorded_doubts(kit) == []

    second = succeeds(["quickstart.py"], kit=kit)
    assert steps(second) == dict.fromkeys(all_steps, "done already")
    assert table(second) == table(first)


@dataclass(frozen=True)
class OnTerminal:
    """The quickstart as a user sees it on a terminal."""

    kit: Path
    # The lines that are on the terminal at the end.
    lines: list[str]
    # All texts that were written to the terminal, also texts that were overwritten later.
    texts: list[str]


@pytest.fixture(scope="module")
def on_terminal(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> OnTerminal:
    """Run the quickstart on a terminal, in a kit with a finished environment .venv."""
    kit = Path(shutil.copytree(simulated_kit, tmp_path_factory.mktemp("terminal") / "kit"))
    keep_only(kit, "majority")
    # Make an environment that finds the kit and all libraries, so that the quickstart installs
    # nothing. Python adds every folder that a .pth file names to its path.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", kit / ".venv"], check=True)
    (site_packages,) = kit.glob(".venv/lib/python*/site-packages")
    folders = [kit, *LIBRARIES]
    (site_packages / "kit.pth").write_text("\n".join(map(str, folders)))

    # Let PYTHONPATH name no folder of the kit, as for a user.
    without_path = {"PYTHONPATH": ""}
    shown = run_on_terminal([kit / "quickstart.py"], kit, without_path)

    assert shown.exit_code == 0, shown.lines
    return OnTerminal(kit, shown.lines, shown.texts)


needs_terminal = on_unix("terminal that a program can make")


@needs_terminal
def test_a_terminal_names_the_steps_that_run_and_then_those_that_have_ended(
    on_terminal: OnTerminal,
) -> None:
    """While steps run, the last line names them. In the end, nothing of this line is left."""
    assert any("running: task " in text for text in on_terminal.texts)
    shown = "\n".join(on_terminal.lines)
    assert not re.search("running|installing", shown)
    assert steps(shown) == dict.fromkeys(QUICK, "run")


@needs_terminal
def test_lines_on_a_terminal_have_at_most_80_characters(on_terminal: OnTerminal) -> None:
    assert max(len(line) for line in on_terminal.lines) <= 80


@needs_terminal
def test_the_last_lines_name_the_pages_to_open(on_terminal: OnTerminal) -> None:
    *_, written, page, _, last = on_terminal.lines
    assert written == "written: data/test_output/scoreboard.html"
    assert page == "open data/test_output/scoreboard.html (details: */scores_task_*.html there)"
    assert last == ""
    output = on_terminal.kit / "data/test_output"
    assert (output / "scoreboard.html").exists()
    assert (output / "majority/scores_task_1.html").exists()


@needs_terminal
def test_the_command_for_an_own_idea_runs_as_it_is_printed(on_terminal: OnTerminal) -> None:
    *_, idea, _ = on_terminal.lines
    python, *arguments = idea.removeprefix("your own idea: ").split()
    assert python == ".venv/bin/python"
    succeeds(arguments, kit=on_terminal.kit, cwd=on_terminal.kit)
    assert (on_terminal.kit / "task_1/my_idea.py").exists()


def test_only_steps_whose_code_or_data_have_changed_run_again(quick_kit: Path) -> None:
    """The test changes the kit several times, and runs the quickstart after each change.

    The steps of the quickstart are the local split and the majority models of tasks 1 and 2. The
    file quickstart_task_1.txt marks the split as finished. The record of scores, results.jsonl,
    shows which models are scored. To save time, the quickstart shows no table and writes no pages.
    """
    without_scoreboard(without_pages(quick_kit))
    split, model_1, model_2 = QUICK
    all_run = dict.fromkeys(QUICK, "run")
    all_done_already = dict.fromkeys(QUICK, "done already")

    def run_quickstart() -> dict[tuple[str, str], str]:
        """Run the quickstart; return how every step ended."""
        return steps(succeeds(["quickstart.py"], kit=quick_kit))

    assert run_quickstart() == all_run

    # The code of the model of task 2 changes, and the file that marks the split as finished is only
    # half written.
    script = quick_kit / "task_2/sample_model_majority.py"
    script.write_text(script.read_text() + "# Changed.\n")
    (quick_kit / "data/test_input/quickstart_task_1.txt").write_text("half")
    assert run_quickstart() == {split: "run", model_1: "done already", model_2: "run"}

    # A file is new and another one has changed, but no step imports either of them.
    (quick_kit / "task_1/my_notes.py").write_text("x = 1\n")
    (quick_kit / "common/adaptive/game.py").write_text("y = 1\n")
    assert run_quickstart() == all_done_already

    # A module that all steps import changes.
    layout = quick_kit / "common/layout.py"
    layout.write_text(layout.read_text() + "# Changed.\n")
    assert run_quickstart() == all_run

    # The data change.
    (quick_kit / "data/train_data/train_task_1_2.csv").touch()
    assert run_quickstart() == all_run

    # The record of scores is deleted: every model is scored again, on the same split.
    (quick_kit / "data/test_output/results.jsonl").unlink()
    assert run_quickstart() == {split: "done already", model_1: "run", model_2: "run"}
    assert sorted(scores(quick_kit)) == MAJORITY


@pytest.mark.slow
def test_related_challenges_are_simulated_scored_and_resumed(tmp_path: Path) -> None:
    """The first run does all steps, and the second repeats only steps whose data have changed.

    To save time, two of the four related challenges are deleted, and the other two keep one sample
    model each: cloze keeps "frequent", and science_exam keeps "constant".
    """
    kit = copy_kit(tmp_path / "kit")
    related = kit / "related_challenges"
    shutil.rmtree(related / "debiasing")
    shutil.rmtree(related / "student_response")
    for path in related.glob("*/sample_model_*.py"):
        if path.stem not in ("sample_model_frequent", "sample_model_constant"):
            path.unlink()

    first = succeeds(["quickstart.py", "--related"], kit=kit)
    assert "simulating data in related_challenges/cloze/data/train_data/" in first
    cloze_steps = [("cloze", "local split"), ("cloze", "frequent")]
    exam_steps = [("science_exam", "local split"), ("science_exam", "constant")]
    assert steps(first) == dict.fromkeys([*cloze_steps, *exam_steps], "run")
    assert sorted(scores(kit)) == [("cloze", "frequent"), ("science_exam", "constant")]
    assert "Cloze: token F1, 5 folds, simulated answers\n" in table(first)
    assert (related / "cloze/data/test_output/frequent/scores_cloze.html").exists()
    # The last line is a command that makes a script for the user's own idea.
    python, *command = first.splitlines()[-1].removeprefix("your idea: ").split()
    assert python == Path(sys.executable).name
    succeeds(command, kit=kit, cwd=kit)
    assert (related / "cloze/my_idea.py").exists()

    without_scoreboard(kit)
    (related / "science_exam/data/train_data/test.csv").touch()
    second = succeeds(["quickstart.py", "--related"], kit=kit)
    assert "simulating" not in second
    assert steps(second) == {
        **dict.fromkeys(cloze_steps, "done already"),
        **dict.fromkeys(exam_steps, "run"),
    }


# The quickstart trains a package of task 4 on the local split, in a copy of the package's folder.
# The quickstart copies the weights to the package, unless the user has trained the package on all
# students.


def run_numpy_package(kit: Path) -> float:
    """Run the quickstart in a kit whose only model is task_4/numpy; return the model's score."""
    # `steps` says what happened in each step: the quickstart has run the model.
    assert steps(succeeds(["quickstart.py"], kit=kit))["4", "numpy"] == "run"
    ((model, score),) = scores(kit).items()
    assert model == ("4", "numpy")
    return score


@dataclass(frozen=True)
class WithPackage:
    """A kit whose only model is task_4/numpy, after the quickstart; tests only read it."""

    kit: Path
    score: float


@pytest.fixture(scope="module")
def with_package(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> WithPackage:
    """Run the quickstart in a kit whose only model is the package task_4/numpy."""
    kit = Path(shutil.copytree(simulated_kit, tmp_path_factory.mktemp("package") / "kit"))
    keep_only(without_scoreboard(kit), "numpy")
    return WithPackage(kit, run_numpy_package(kit))


def test_a_package_is_ready_to_be_played_after_the_quickstart(
    with_package: WithPackage, tmp_path: Path
) -> None:
    evaluate = ["task_4/numpy/local_evaluation.py", "--skip_curve", "--output_dir", tmp_path]
    first_line, second_line, *further = succeeds(evaluate, kit=with_package.kit).splitlines()
    # The quickstart has trained the weights in a copy of the package. But the first line names the
    # script of the package itself, not the script of the copy.
    made_by = "made by `python task_4/numpy/train_model.py --local`"
    assert first_line.startswith(f"scored: task_4/numpy, {made_by} on 20")
    assert second_line.startswith(f"score {with_package.score:.4f} (")
    assert "note: " not in "".join(further)


def test_the_quickstart_keeps_weights_that_were_trained_on_all_students(
    with_package: WithPackage, tmp_path: Path
) -> None:
    """The quickstart trains a copy of a package on the local split, and scores this copy.

    A first quickstart has copied the weights to the package. Then the user trains the package
    itself on all students, and deletes the outputs of the quickstart. A second quickstart gets the
    same score from a new copy, and must not change the weights of the package.
    """
    kit = Path(shutil.copytree(with_package.kit, tmp_path / "kit"))
    package = kit / "task_4/numpy"
    succeeds([package / "train_model.py"], kit=kit)
    weights = {path: path.read_bytes() for path in package.glob("model_task_4*")}
    assert weights
    shutil.rmtree(kit / "data/test_output")

    assert run_numpy_package(kit) == with_package.score

    assert {path: path.read_bytes() for path in package.glob("model_task_4*")} == weights


@on_unix("error of its own for a pipe that is closed")
def test_output_may_be_cut_off(quick_kit: Path) -> None:
    """If nobody reads the rest of the output, the quickstart still ends without an error.

    For instance, `python3 quickstart.py | head -1` reads only the first line.
    """
    # To save time, the kit has only one model, and its pages are empty.
    without_pages(quick_kit)
    (quick_kit / "task_2/sample_model_majority.py").unlink()
    command = [sys.executable, "quickstart.py"]
    env = {**os.environ, "PYTHONPATH": str(quick_kit)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=quick_kit, env=env, **pipes) as process:
        assert process.stdout.readline() == "data: data/ (simulated, tiny)\n"
        process.stdout.close()
        stderr = process.stderr.read()
    assert process.returncode == 0
    assert stderr == ""


def add_broken_model(kit: Path) -> Path:
    """Add a sample model to task 1 whose script prints 20 lines and fails; return its path."""
    broken = kit / "task_1/sample_model_broken.py"
    broken.write_text("""import sys
for number in range(20):
    print('line', number, file=sys.stderr)
sys.exit(3)
""")
    return broken


# A model that writes its process id into a file, and then sleeps.
SLOW_MODEL = """import os, pathlib, time
pathlib.Path(__file__).with_name('pid').write_text(str(os.getpid()))
time.sleep(100)
"""


@dataclass(frozen=True)
class Interrupted:
    """A quickstart that was ended by Control-C."""

    kit: Path
    exit_code: int
    stdout: str
    stderr: str
    # The process id of the model that was sleeping when Control-C was pressed.
    pid_of_slow_model: int


@pytest.fixture
def interrupted(quick_kit: Path) -> Interrupted:
    """Press Control-C when one model sleeps, one has failed, and all others are done.

    The data of tasks 3 and 4 are missing.
    """
    without_scoreboard(without_pages(quick_kit))
    add_broken_model(quick_kit)
    slow_model = quick_kit / "task_2/sample_model_slow.py"
    slow_model.write_text(SLOW_MODEL)
    (quick_kit / "data/train_data/train_task_3_4.csv").unlink()
    pid_file = slow_model.with_name("pid")
    stdout_file = slow_model.with_name("shown")
    stderr_file = slow_model.with_name("errors")

    def all_quick_steps_have_ended() -> bool:
        # The local split, the two majority models, and the broken model.
        return len(steps(stdout_file.read_text())) == 4

    def slow_model_runs() -> bool:
        # The slow model writes its process id when it starts.
        return pid_file.exists() and pid_file.read_text() != ""

    command = [sys.executable, "quickstart.py"]
    env = {**os.environ, "PYTHONPATH": str(quick_kit)}
    with stdout_file.open("w") as stdout, stderr_file.open("w") as stderr:
        process = subprocess.Popen(command, cwd=quick_kit, env=env, stdout=stdout, stderr=stderr)
        assert wait_for(all_quick_steps_have_ended)
        assert wait_for(slow_model_runs)
        process.send_signal(signal.SIGINT)
        exit_code = process.wait(PATIENCE)
    # The test runs the quickstart again, without the slow model.
    slow_model.unlink()
    return Interrupted(
        kit=quick_kit,
        exit_code=exit_code,
        stdout=stdout_file.read_text(),
        stderr=stderr_file.read_text(),
        pid_of_slow_model=int(pid_file.read_text()),
    )


@on_unix("Control-C for a single process")
def test_control_c_ends_all_models_and_the_next_run_resumes(interrupted: Interrupted) -> None:
    assert interrupted.exit_code == 130
    assert interrupted.stderr == "\nstopped; the next run resumes here\n"
    assert ends_within(interrupted.pid_of_slow_model)
    missing = "data/train_data/train_task_3_4.csv"
    assert f"left out: tasks 3 and 4: {missing} is missing" in interrupted.stdout
    failed = {("1", "broken"): "failed"}
    assert steps(interrupted.stdout) == {**dict.fromkeys(QUICK, "run"), **failed}

    again = run(["quickstart.py"], kit=interrupted.kit)
    assert again.returncode == 1
    assert steps(again.stdout) == {**dict.fromkeys(QUICK, "done already"), **failed}


def test_a_model_that_fails_stops_no_other_and_its_last_lines_are_shown(quick_kit: Path) -> None:
    add_broken_model(without_pages(quick_kit))

    done = run(["quickstart.py"], kit=quick_kit)

    assert done.returncode == 1
    assert steps(done.stdout) == {**dict.fromkeys(QUICK, "run"), ("1", "broken"): "failed"}
    assert "majority" in table(done.stdout)
    reason, *last_lines = done.stderr.splitlines()
    assert reason.startswith("failed: task 1, broken: `python task_1/sample_model_broken.py ")
    assert reason.endswith("ended with exit code 3")
    assert last_lines == [f"  line {number}" for number in range(8, 20)]


def test_an_evaluation_that_fails_is_named_with_only_its_own_output(quick_kit: Path) -> None:
    """If an evaluation fails, the message shows its output, but not that of the model before it.

    Here the model prints "trained", and the evaluation fails with "nothing to score".
    """
    without_scoreboard(quick_kit)
    (quick_kit / "task_2/sample_model_majority.py").unlink()
    model = quick_kit / "task_1/sample_model_majority.py"
    model.write_text("print('trained')\n")
    evaluation = quick_kit / "task_1/local_evaluation.py"
    evaluation.write_text("raise SystemExit('nothing to score')\n")

    reason, *last_lines = run(["quickstart.py"], kit=quick_kit).stderr.splitlines()

    assert reason.startswith("failed: task 1, majority: `python task_1/local_evaluation.py --sub")
    assert last_lines == ["  nothing to score"]


def test_another_size_replaces_simulated_data(tiny_kit: Path) -> None:
    keep_only(without_scoreboard(tiny_kit), "random")
    marker = tiny_kit / "data/SIMULATED.json"
    content = json.loads(marker.read_text())
    content["size"] = "small"
    marker.write_text(json.dumps(content))

    printed = succeeds(["quickstart.py", "--size", "tiny"], kit=tiny_kit)

    assert "simulating tiny data" in printed
    assert "data: data/ (simulated, tiny)" in printed


def test_another_size_never_replaces_official_data(tiny_kit: Path) -> None:
    """Files that are not marked as simulated count as official, whatever --size says.

    So the quickstart only builds what is missing, here a submission template. To save time, the
    only sample model of the kit is the random ranking of task 3.
    """
    keep_only(tiny_kit, "random")
    # The file SIMULATED.json marks the tiny data as simulated.
    (tiny_kit / "data/SIMULATED.json").unlink()
    (tiny_kit / "submission_templates/submission_task_3.csv").unlink()
    data_before = {path: path.read_bytes() for path in tiny_kit.glob("data/train_data/*.csv")}

    printed = succeeds(["quickstart.py", "--size", "small"], kit=tiny_kit)

    assert "simulating" not in printed
    assert "building the submission templates" in printed
    assert "data: data/ (your files)" in printed
    assert "simulated" not in table(printed)
    assert {path: path.read_bytes() for path in data_before} == data_before


def test_templates_are_built_again_if_the_data_have_changed(tiny_kit: Path) -> None:
    keep_only(without_scoreboard(tiny_kit), "random")
    (tiny_kit / "data/SIMULATED.json").unlink()
    questions = tiny_kit / "data/metadata/question_metadata_task_3_4.csv"
    # Add a question, with subject 3.
    questions.write_text(questions.read_text() + '9999,"[3]"\n')
    assert "building the submission templates" in succeeds(["quickstart.py"], kit=tiny_kit)


def test_an_environment_without_pip_is_made_again(tmp_path: Path) -> None:
    """An interrupted run, or a system without python3-venv, leaves a .venv without pip."""
    kit = copy_kit(tmp_path / "kit")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", kit / ".venv"], check=True)
    # A file in the environment. If the quickstart replaces the environment, the file is gone.
    left_over = kit / ".venv/left_over"

    def run_without_index() -> None:
        """Run the quickstart, which must fail to install packages, since pip has no index."""
        environment = {"PYTHONPATH": "", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
        done = run_process(["quickstart.py"], kit=kit, environment=environment)
        assert done.returncode == 1
        assert done.stdout == "installing requirements.txt into .venv (once; a few minutes)\n"
        assert done.stderr.startswith("error: `python -m pip install ")
        # Although the libraries are missing, Python already finds the kit: the file
        # education_kit.pth names the kit's folder.
        assert list(kit.glob(".venv/[Ll]ib/**/education_kit.pth"))

    # The first run replaces the environment by a new one, which has pip.
    left_over.touch()
    run_without_index()
    assert not left_over.exists()

    # The second run keeps this environment.
    left_over.touch()
    run_without_index()
    assert left_over.exists()


@dataclass(frozen=True)
class MovedKit:
    """A kit with an environment that finds the kit, in a folder to which the kit was moved."""

    folder: Path
    python_of_environment: Path

    def run(self, *words: str | Path, safe_path: str = "") -> Done:
        """Run a command with the Python of the environment, in the folder around the kit.

        `safe_path` is the value of the variable PYTHONSAFEPATH.
        """
        environment = {**os.environ, "PYTHONPATH": "", "PYTHONSAFEPATH": safe_path}
        return subprocess.run(
            [self.python_of_environment, *words],
            cwd=self.folder.parent,
            env=environment,
            capture_output=True,
            text=True,
        )


@pytest.fixture
def moved_kit(tmp_path: Path) -> MovedKit:
    """Make an environment .venv in a kit, and move the kit with it to another folder.

    Before, `add_kit` writes into the environment where the kit is, as in the quickstart.
    """
    kit = copy_kit(tmp_path / "kit")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", kit / ".venv"], check=True)
    python = ".venv/Scripts/python.exe" if os.name == "nt" else ".venv/bin/python"
    code = f"from tools.quickstart import environment; environment.add_kit({python!r})"
    assert run_process(["-c", code], kit=kit, cwd=kit).returncode == 0
    # The environment also needs the libraries: write their folders into a .pth file.
    (site_packages,) = kit.glob(".venv/[Ll]ib/**/site-packages")
    (site_packages / "libraries.pth").write_text("\n".join(LIBRARIES))
    moved = kit.rename(tmp_path / "moved")
    return MovedKit(moved, moved / python)


def test_the_environment_finds_the_kit_in_every_way_also_after_a_move(moved_kit: MovedKit) -> None:
    """`add_kit` writes into the environment .venv where the kit's folder is.

    With the flag -P or -I or the variable PYTHONSAFEPATH, Python does not search the folder of the
    script for modules. Because of `add_kit`, scripts still find the kit's modules, even after the
    kit was moved.
    """
    script = moved_kit.folder / "task_1/sample_model_majority.py"
    for done in (
        moved_kit.run("-P", script, "--help"),
        moved_kit.run("-I", script, "--help"),
        moved_kit.run(script, "--help", safe_path="1"),
    ):
        assert (done.returncode, done.stderr) == (0, "")


def test_the_environment_finds_a_users_module_before_a_folder_of_the_kit(
    moved_kit: MovedKit, tmp_path: Path
) -> None:
    """A user's script imports modules beside it, although the kit has folders with their names."""
    names = ("common", "data", "tools")
    for name in names:
        (tmp_path / f"{name}.py").touch()
    script = tmp_path / "own.py"
    script.write_text(f"import {', '.join(names)}; print(tools.__file__)")
    path_of_tools = moved_kit.run(script).stdout.strip()
    assert Path(path_of_tools) == tmp_path / "tools.py"


def test_the_test_command_runs_all_checks_and_fails_if_one_fails(tmp_path: Path) -> None:
    """`quickstart.py --test` runs the tests and, at the same time, the static checks.

    The static checks are those of ruff and mypy. To make both fail, this kit has a single test that
    fails, and a script that fails in place of the static checks. The quickstart reports both.
    """
    kit = copy_kit(tmp_path / "kit")
    (kit / "tests").mkdir()
    (kit / "tests/static_checks.py").write_text("raise SystemExit('one line is too long')\n")
    (kit / "tests/test_one.py").write_text("def test_one():\n    assert not 1\n")

    # Run the only test in one process. By default, pytest starts a process for each core.
    one_worker = {"PYTEST_XDIST_AUTO_NUM_WORKERS": "1"}
    done = run(["quickstart.py", "--test"], kit=kit, environment=one_worker)

    assert done.returncode == 1
    # The tests have failed, and also the static checks, which are called "ruff and mypy".
    assert done.stderr == "failed: tests, ruff and mypy\n"
    # The first lines describe the machine.
    assert re.match(r"kit: .*\nprocessor: .*\nlinear algebra: .*\n", done.stdout)
    assert "1 failed" in done.stdout
    assert done.stdout.endswith("one line is too long\n")


def test_a_python_that_is_too_old_can_read_quickstart_py() -> None:
    """An old Python must be able to read quickstart.py, which tells the user that it is too old."""
    ast.parse((ROOT / "quickstart.py").read_text(encoding="ascii"), feature_version=(3, 4))


def test_users_of_an_old_python_learn_which_one_to_use(tmp_path: Path) -> None:
    """The message names the newest Python on the PATH, if that Python is new enough for the kit."""
    # Run the quickstart in this Python, which claims to be version 3.10.
    quickstart_in_old_python = (
        "import runpy, sys; sys.version_info = (3, 10, 0, 'final', 0); "
        f"runpy.run_path({str(ROOT / 'quickstart.py')!r}, run_name='__main__')"
    )
    error = "error: this is Python 3.10, the kit needs 3.11 or newer"

    # First, no Python is on the PATH.
    done = run_process(["-c", quickstart_in_old_python], environment={"PATH": ""})
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"{error}\n"

    # Then three versions of Python are on the PATH, here empty files that can be executed.
    for name in ("python3.9", "python3.11", "python3.14"):
        (tmp_path / name).touch(mode=0o755)
    done = run_process(["-c", quickstart_in_old_python], environment={"PATH": str(tmp_path)})
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"{error}: try `python3.14 quickstart.py`\n"
