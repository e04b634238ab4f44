"""The quickstart, run as a newcomer runs it, inside the environment that runs the tests."""

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from conftest import ROOT, copy_kit, keep_only, run, succeeds
from run_scripts import LIBRARIES, ends, run_process
from terminal import run_on_terminal

SPLITS = [("1", "local split"), ("4", "local split")]
MAJORITY = [("1", "majority"), ("2", "majority")]
QUICK = [SPLITS[0], *MAJORITY]
# What takes longest in the sample models, and what suffices to see that all of them run.
LONG_FITS = (
    ("task_1/sample_model_partial_vae.py", "max(420, 16 *", "max(20, 0 *"),
    ("task_2/sample_model_partial_vae.py", "max(420, 16 *", "max(20, 0 *"),
    ("task_3/sample_model_partial_vae.py", "LEARNING_RATE = 600,", "LEARNING_RATE = 20,"),
    ("task_4/pytorch/train_model.py", "LEARNING_RATE = 300,", "LEARNING_RATE = 60,"),
    ("common/answer_features/known.py", "_ENOUGH = 125_000", "_ENOUGH = 2_000"),
)
# Typed in these folders, as the challenge's guide says.
GUIDE = {
    "task_1": ("local_data_split.py", "sample_model_majority.py", "local_evaluation.py"),
    "task_2": ("local_data_split.py", "sample_model_majority.py", "local_evaluation.py"),
    "task_3": ("sample_model_entropy.py", "sample_model_random.py"),
    "task_4": ("local_data_split.py",),
    "task_4/numpy": ("train_model.py", "local_evaluation.py"),
    "task_4/pytorch": ("train_model.py", "local_evaluation.py"),
}
PLACES = """
data/test_input/train_task_1_2.csv data/test_input/valid_task_1_2.csv
data/test_input/train_task_4.csv data/test_input/valid_task_4.csv
submissions/submission_task_1.csv submissions/submission_task_2.csv
submissions/submission_task_3.csv
task_4/numpy/model_task_4_most_popular.npy task_4/numpy/model_task_4_num_answers.npy
task_4/pytorch/model_task_4.pt
"""


@pytest.fixture
def quick_kit(tiny_kit: Path) -> Path:
    """A kit whose only models are the majority's of tasks 1 and 2."""
    keep_only(tiny_kit, "majority")
    return tiny_kit


def start(kit: Path, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, str(kit / "quickstart.py")]
    environment = {**os.environ, "PYTHONPATH": str(kit)}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, **options)


def steps(output: str) -> dict[tuple[str, str], str]:
    """Return what the quickstart said about every step, by task and name, in their order."""
    pattern = r"\] (?:task )?(\w+)  (.*): (?:score [\d.]+, )?(done already|failed|[\d.]+ s)$"
    found = re.findall(pattern, output, re.MULTILINE)
    return {(task, name): re.sub(r"[\d.]+ s", "run", said) for task, name, said in found}


def table(output: str) -> str:
    """Return what the scoreboard printed."""
    return output[output.index("\n\n") : output.index("written: ")]


def scores(kit: Path) -> dict[tuple[str, str], float]:
    """Return the scores in the record by task and name of the model."""
    lines = (kit / "data/test_output/results.jsonl").read_text().splitlines()
    return {(str(r["task"]), r["model"]): r["score"] for r in map(json.loads, lines)}


@pytest.mark.slow
def test_everything_is_scored_and_a_second_run_only_shows_it(tmp_path: Path) -> None:
    """In a fresh clone, with all models."""
    kit = copy_kit(tmp_path / "a kit")
    for file, long, short in LONG_FITS:
        text = (kit / file).read_text(encoding="utf-8")
        assert text.count(long) == 1, file
        (kit / file).write_text(text.replace(long, short), encoding="utf-8")
    first = succeeds(["quickstart.py", "--size", "tiny"], kit=kit, timeout=280)
    assert "simulating tiny data" in first
    assert not (kit / ".venv").exists()
    found = scores(kit)
    models = [*kit.glob("task_[123]/sample_model_*.py"), *kit.glob("task_4/*/train_model.py")]
    assert len(found) == len(models)
    assert steps(first) == dict.fromkeys([*SPLITS, *found], "run")
    # The quick ones come first, whatever else runs beside them.
    assert list(steps(first))[2][1] not in ("partial_vae", "pytorch", "gradient_boosting")
    shown = table(first)
    for (_, name), score in found.items():
        assert 0.2 < score < 1
        assert re.search(rf"^ +{name} .*{score:.4f} ", shown, re.MULTILINE), name

    second = succeeds(["quickstart.py"], kit=kit)
    assert steps(second) == dict.fromkeys([*SPLITS, *found], "done already")
    assert table(second) == shown


@pytest.mark.slow
def test_commands_and_places_of_the_challenges_guide(tiny_kit: Path) -> None:
    """Word for word: its commands in its folders, its places of files."""
    for folder, scripts in GUIDE.items():
        for script in scripts:
            said = succeeds([f"{folder}/{script}"], kit=tiny_kit, cwd=tiny_kit / folder)
        assert ("score 0." in said) == (script == "local_evaluation.py"), said
    assert not [place for place in PLACES.split() if not (tiny_kit / place).is_file()]

    # Predictions of the local split: the guide keeps them beside it, and they are found there.
    valid = pd.read_csv(tiny_kit / "data/test_input/valid_task_1_2.csv")
    place = tiny_kit / "data/test_input/test_submission_task_1.csv"
    valid.to_csv(place, index=False)
    evaluate = ["task_1/local_evaluation.py"]
    assert succeeds(evaluate, kit=tiny_kit).startswith("score 1.0000 ")
    assert (tiny_kit / "data/test_output/scores_task_1.txt").read_text() == "score:1.0\n"
    # Of two, the newer one counts.
    valid.assign(IsCorrect=1).to_csv(tiny_kit / "data/test_output" / place.name, index=False)
    assert "score 1.0000" not in succeeds(evaluate, kit=tiny_kit)
    place.touch()
    assert succeeds(evaluate, kit=tiny_kit).startswith("score 1.0000 ")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a terminal as on Unix")
def test_its_end_fits_80_columns_and_says_what_to_do_next(tiny_kit: Path) -> None:
    keep_only(tiny_kit, "majority", "matrix_factorization")
    shutil.rmtree(tiny_kit / "task_2")
    name = "an_idea_whose_name_is_longer_than_a_line_of_a_table_and_goes_on_below_it"
    task = tiny_kit / "task_1"
    shutil.copy(task / "sample_model_majority.py", task / f"sample_model_{name}.py")
    environment = {"PYTHONPATH": str(tiny_kit)}
    code, lines, states = run_on_terminal([tiny_kit / "quickstart.py"], tiny_kit, environment)
    assert code == 0, lines
    # What runs is shown below the steps that have ended, and leaves nothing there.
    assert any("running: task " in state for state in states)
    ended = [line for line in lines if line.startswith("[")]
    assert [line[:6] for line in ended] == ["[1/4] ", "[2/4] ", "[3/4] ", "[4/4] "]
    for line in ended[1:]:
        assert re.fullmatch(r"\[./4\] task 1  \w+: score 0\.\d+, [\d.]+ s", line)
    assert not any("running" in line for line in lines)

    end = lines[next(n for n, line in enumerate(lines) if line.startswith("Task 1: ")) :]
    assert max(map(len, end)) <= 80
    whole = "".join(end).replace(" ", "")
    assert all(part in whole for part in (name[:25], name[-25:]))
    *_, written, page, idea, last = end
    assert written == "written: data/test_output/scoreboard.html"
    assert page == "open data/test_output/scoreboard.html (details: */scores_task_*.html there)"
    assert (tiny_kit / "data/test_output/scoreboard.html").exists()
    assert list((tiny_kit / "data/test_output").glob("*/scores_task_*.html"))
    # The command that it names runs as it is.
    python, *arguments = idea.removeprefix("your own idea: ").split()
    assert (python, last) == (Path(sys.executable).name, "")
    succeeds(arguments, kit=tiny_kit, cwd=tiny_kit)
    assert (tiny_kit / "task_1/my_idea.py").exists()


def test_the_python_of_its_environment_is_named(quick_kit: Path) -> None:
    """And runs the steps, where it has everything."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", quick_kit / ".venv"], check=True)
    (packages,) = quick_kit.glob(".venv/lib/python*/site-packages")
    (packages / "kit.pth").write_text("\n".join(map(str, [quick_kit, *LIBRARIES])))
    done = run_process(["quickstart.py"], kit=quick_kit, environment={"PYTHONPATH": ""})
    assert (done.returncode, done.stderr) == (0, "")
    assert "installing" not in done.stdout
    last = done.stdout.splitlines()[-1]
    python = Path(".venv/Scripts/python.exe" if os.name == "nt" else ".venv/bin/python")
    assert last == f"your own idea: {python} -m tools.new_entry task_1 my_idea"


def test_what_has_changed_runs_again(quick_kit: Path) -> None:
    def said() -> dict[tuple[str, str], str]:
        return steps(succeeds(["quickstart.py"], kit=quick_kit))

    assert said() == dict.fromkeys(QUICK, "run")
    # Changed code, and a mark that was left half-written.
    script = quick_kit / "task_2/sample_model_majority.py"
    script.write_text(script.read_text() + "# Changed.\n")
    (quick_kit / "data/test_input/quickstart_task_1.txt").write_text("half")
    assert said() == {SPLITS[0]: "run", MAJORITY[0]: "done already", MAJORITY[1]: "run"}
    # A new file that nothing imports makes nothing run again; nor does another package.
    (quick_kit / "task_1/my_notes.py").write_text("x = 1\n")
    (quick_kit / "common/adaptive/game.py").write_text("y = 1\n")
    assert said() == dict.fromkeys(QUICK, "done already")
    # Changed code of the kit, which all of them import.
    layout = quick_kit / "common/layout.py"
    layout.write_text(layout.read_text() + "# Changed.\n")
    assert said() == dict.fromkeys(QUICK, "run")
    # Changed data.
    (quick_kit / "data/train_data/train_task_1_2.csv").touch()
    assert said() == dict.fromkeys(QUICK, "run")
    # No record of scores to show.
    (quick_kit / "data/test_output/results.jsonl").unlink()
    assert said() == {SPLITS[0]: "done already", **dict.fromkeys(MAJORITY, "run")}
    assert sorted(scores(quick_kit)) == MAJORITY
    # Tasks without data are named.
    missing = "data/train_data/train_task_3_4.csv"
    (quick_kit / missing).unlink()
    printed = succeeds(["quickstart.py"], kit=quick_kit)
    assert f"left out: tasks 3 and 4: {missing} is missing" in printed


@pytest.mark.slow
def test_related_challenges_are_simulated_scored_and_resumed(tmp_path: Path) -> None:
    """In a fresh clone, of which two challenges were deleted and the others keep one sample."""
    kit = copy_kit(tmp_path / "kit")
    related = kit / "related_challenges"
    shutil.rmtree(related / "debiasing")
    shutil.rmtree(related / "student_response")
    for path in related.glob("*/sample_model_*.py"):
        if path.stem not in ("sample_model_frequent", "sample_model_constant"):
            path.unlink()

    first = succeeds(["quickstart.py", "--related"], kit=kit)
    assert "simulating data in related_challenges/cloze/data/train_data/" in first
    splits = [("cloze", "local split"), ("science_exam", "local split")]
    models = [("cloze", "frequent"), ("science_exam", "constant")]
    assert steps(first) == dict.fromkeys([*splits, *models], "run")
    assert sorted([*steps(first)][:2]) == splits
    assert sorted(scores(kit)) == models
    shown = table(first)
    assert "Cloze: token F1, 5 folds, simulated answers\n" in shown
    assert "Science exam: MAP@3, 10 folds, simulated answers\n" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert (related / "cloze/data/test_output/frequent/scores_cloze.html").exists()
    idea = first.splitlines()[-1].split(" -m ")[1]

    (related / "science_exam/data/train_data/test.csv").touch()
    second = succeeds(["quickstart.py", "--related"], kit=kit)
    assert "simulating" not in second
    unchanged, changed = zip(splits, models, strict=True)
    again = {**dict.fromkeys(unchanged, "done already"), **dict.fromkeys(changed, "run")}
    assert steps(second) == again
    succeeds(["-m", *idea.split()], kit=kit, cwd=kit)
    assert (related / "cloze/my_idea.py").exists()


def test_packages_are_ready_to_be_played_and_weights_of_all_students_stay(tiny_kit: Path) -> None:
    """The quickstart trains on the local split, in a folder of its own."""
    keep_only(tiny_kit, "numpy")
    folder = tiny_kit / "task_4/numpy"
    evaluate = [folder / "local_evaluation.py", "--skip_curve"]
    assert steps(succeeds(["quickstart.py"], kit=tiny_kit))["4", "numpy"] == "run"
    ((model, score),) = scores(tiny_kit).items()
    assert model == ("4", "numpy")
    assert succeeds(evaluate, kit=tiny_kit).startswith(f"score {score:.4f} (")

    succeeds([folder / "train_model.py"], kit=tiny_kit)
    weights = {path: path.read_bytes() for path in folder.glob("model_task_4*")}
    shutil.rmtree(tiny_kit / "data/test_output")
    assert steps(succeeds(["quickstart.py"], kit=tiny_kit))["4", "numpy"] == "run"
    assert {path: path.read_bytes() for path in folder.glob("model_task_4*")} == weights
    assert scores(tiny_kit) == {model: score}


def test_a_model_that_fails_does_not_stop_the_others(quick_kit: Path) -> None:
    """Its last lines, in their order, say why."""
    broken = quick_kit / "task_1/sample_model_broken.py"
    broken.write_text("""import sys
for number in range(20):
    print('line', number, file=sys.stderr)
sys.exit(3)
""")
    first = run(["quickstart.py"], kit=quick_kit)
    assert first.returncode == 1
    reason, *more = first.stderr.splitlines()
    assert reason.startswith("failed: task 1, broken: `python task_1/sample_model_broken.py ")
    assert reason.endswith("ended with exit code 3")
    assert more == [f"  line {number}" for number in range(8, 20)]
    assert sorted(scores(quick_kit)) == MAJORITY
    assert "majority" in table(first.stdout)
    # A failed step does not count as done.
    second = run(["quickstart.py"], kit=quick_kit)
    assert second.returncode == 1
    done = dict.fromkeys(QUICK, "done already")
    assert steps(second.stdout) == {**done, ("1", "broken"): "failed"}
    # Of training and scoring, what failed is named, with what it printed alone.
    broken.write_text("print('trained')\n")
    evaluation = quick_kit / "task_1/local_evaluation.py"
    evaluation.write_text("raise SystemExit('nothing to score')\n")
    *_, failed, last = run(["quickstart.py"], kit=quick_kit).stderr.splitlines()
    assert failed.startswith("failed: task 1, majority: `python task_1/local_evaluation.py --sub")
    assert last == "  nothing to score"


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
def test_control_c_stops_the_model_too_and_the_next_run_resumes(quick_kit: Path) -> None:
    slow = quick_kit / "task_2/sample_model_slow.py"
    slow.write_text("""import os, pathlib, time
pathlib.Path(__file__).with_name('pid').write_text(str(os.getpid()))
time.sleep(100)
""")
    shown = quick_kit / "shown.txt"
    with shown.open("w") as output, start(quick_kit, stdout=output) as process:
        started = time.monotonic()
        pid = slow.with_name("pid")
        while len(steps(shown.read_text())) < 3 or not pid.exists() or not pid.read_text():
            assert process.poll() is None
            assert time.monotonic() - started < 60
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert stderr == "\nstopped; the next run resumes here\n"
    assert ends(int(pid.read_text()))
    slow.write_text("import sys; sys.exit(1)")
    assert steps(shown.read_text()) == dict.fromkeys(QUICK, "run")
    again = run(["quickstart.py"], kit=quick_kit)
    done = dict.fromkeys(QUICK, "done already")
    assert steps(again.stdout) == {**done, ("2", "slow"): "failed"}


def test_output_may_be_cut_off(quick_kit: Path) -> None:
    """As by `python3 quickstart.py | head -1`."""
    with start(quick_kit, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "data: data/ (simulated, tiny)\n"
        process.stdout.close()
        stderr = process.stderr.read()
    assert (process.returncode, stderr) == (0, "")


def test_another_size_replaces_simulated_data_never_official_ones(tiny_kit: Path) -> None:
    """Files that are not the simulated ones count as official, whatever --size says."""
    keep_only(tiny_kit, "random")
    marker = tiny_kit / "data/SIMULATED.json"
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "size": "small"}))
    assert "simulating tiny data" in succeeds(["quickstart.py", "--size", "tiny"], kit=tiny_kit)
    marker.unlink()
    shutil.rmtree(tiny_kit / "data/test_output")
    train = {path: path.read_bytes() for path in tiny_kit.glob("data/train_data/*.csv")}
    (tiny_kit / "submission_templates/submission_task_3.csv").unlink()
    printed = succeeds(["quickstart.py", "--size", "small"], kit=tiny_kit)
    assert "simulating" not in printed
    assert "building the submission templates" in printed
    assert "data: data/ (as found)" in printed
    assert "simulated" not in table(printed)
    assert {path: path.read_bytes() for path in train} == train
    # The templates are of other questions than these.
    questions = tiny_kit / "data/metadata/question_metadata_task_3_4.csv"
    questions.write_text(questions.read_text() + '9999,"[3]"\n')
    assert "building the submission templates" in succeeds(["quickstart.py"], kit=tiny_kit)


def test_a_half_made_environment_is_made_again(tmp_path: Path) -> None:
    """Without pip in it, as where the first run was interrupted or python3-venv was missing."""
    kit = copy_kit(tmp_path / "kit")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", kit / ".venv"], check=True)
    left_over = kit / ".venv/left_over"
    for made_again in (True, False):
        left_over.touch()
        # Nothing can be installed here, so that both runs end there.
        environment = {"PYTHONPATH": "", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
        done = run_process(["quickstart.py"], kit=kit, environment=environment)
        assert done.returncode == 1
        assert done.stdout == "installing requirements.txt into .venv (once; a few minutes)\n"
        assert done.stderr.startswith("error: `python -m pip install ")
        assert list((kit / ".venv").glob("lib/python*/site-packages/pip"))
        assert left_over.exists() != made_again


def test_what_fails_fails_the_test_command_and_the_rest_still_runs(tmp_path: Path) -> None:
    kit = copy_kit(tmp_path / "kit")
    shutil.rmtree(kit / "tests")
    (kit / "tests").mkdir()
    (kit / "tests/static_checks.py").write_text("raise SystemExit('one line is too long')\n")
    (kit / "tests/test_one.py").write_text("def test_one():\n    assert not 1\n")
    one_worker = {"PYTEST_XDIST_AUTO_NUM_WORKERS": "1"}
    done = run(["quickstart.py", "--test"], kit=kit, environment=one_worker)
    assert (done.returncode, done.stderr) == (1, "failed: tests, ruff and mypy\n")
    assert "1 failed" in done.stdout and done.stdout.endswith("one line is too long\n")


def test_every_check_goes_through_the_quickstart() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for flag in ("", " --test"):
        assert f"\npython3 quickstart.py{flag}\n" in readme
    assert "python3 quickstart.py --test" in (ROOT / ".ci/run").read_text()
    assert "bash .ci/run" in (ROOT / ".github/workflows/test.yml").read_text()
    assert "tests/static_checks.py" in (ROOT / ".pre-commit-config.yaml").read_text()


def test_python_that_is_too_old_is_told_so(tmp_path: Path) -> None:
    for name in ("python3.9", "python3.11", "python3.14"):
        (tmp_path / name).touch(mode=0o755)
    code = (
        "import runpy, sys; sys.version_info = (3, 10, 0, 'final', 0); "
        f"runpy.run_path({str(ROOT / 'quickstart.py')!r}, run_name='__main__')"
    )
    done = run_process(["-c", code], environment={"PATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (2, "")
    said = "error: this is Python 3.10, the kit needs 3.11 or newer"
    assert done.stderr == f"{said}: try `python3.14 quickstart.py`\n"
    assert run_process(["-c", code], environment={"PATH": ""}).stderr == f"{said}\n"


def test_old_pythons_can_read_what_tells_them_so() -> None:
    text = (ROOT / "quickstart.py").read_text(encoding="ascii")
    for node in ast.walk(ast.parse(text, feature_version=(3, 4))):
        assert not isinstance(node, ast.JoinedStr)
        assert not getattr(node, "annotation", None) and not getattr(node, "returns", None)


def test_one_copys_environment_runs_anothers_script_on_that_ones_data(tiny_kit: Path) -> None:
    environment = {"PYTHONPATH": str(ROOT)}
    done = run_process(["task_1/local_data_split.py"], kit=tiny_kit, environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tiny_kit / "data/test_input/train_task_1_2.csv").exists()
