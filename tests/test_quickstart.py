"""The quickstart, run as a newcomer runs it, inside the environment that runs the tests."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT, Run, copy_kit
from run_scripts import LIBRARIES
from terminal import run_on_terminal

SPLITS = [("1", "local split"), ("4", "local split")]
# Scripts that stand for those of the kit where only the quickstart's own part is tried.
QUICK_SPLIT = """
from common import layout
layout.TEST_INPUT_DIR.mkdir(exist_ok=True)
"""
QUICK_MODEL = """
import sys
from pathlib import Path
from common import layout
Path(sys.argv[sys.argv.index("--output_dir") + 1]).mkdir(parents=True, exist_ok=True)
"""
QUICK_EVALUATION = """
import json, sys
from pathlib import Path
from common import layout
name = Path(sys.argv[sys.argv.index("--output_dir") + 1]).name
result = {**json.loads(SCORED), "task": int(Path(__file__).parent.name[-1]), "model": name}
with (layout.TEST_OUTPUT_DIR / layout.RESULTS_NAME).open("a") as record:
    record.write(json.dumps(result) + "\\n")
"""


@pytest.fixture
def quick_kit(tiny_kit: Path, scored_kit: Path) -> Path:
    """A kit whose only models are one of task 1 and one of task 2, which take no time."""
    keep_only(tiny_kit)
    result = (scored_kit / "data/test_output/results.jsonl").read_text().splitlines()[0]
    (tiny_kit / "task_1/local_data_split.py").write_text(QUICK_SPLIT)
    for task in (1, 2):
        (tiny_kit / f"task_{task}/sample_model_majority.py").write_text(QUICK_MODEL)
        evaluation = QUICK_EVALUATION.replace("SCORED", repr(result))
        (tiny_kit / f"task_{task}/local_evaluation.py").write_text(evaluation)
    return tiny_kit


def models(kit: Path) -> list[tuple[str, str]]:
    """Return task and name of every sample model that lies in a kit."""
    scripts = sorted(kit.glob("task_[123]/sample_model_*.py"))
    found = [(path.parent.name[-1], path.stem.removeprefix("sample_model_")) for path in scripts]
    return found + [("4", path.parent.name) for path in sorted(kit.glob("task_4/*/train_model.py"))]


def keep_only(kit: Path, *names: str) -> None:
    """Remove all sample models but some, so that a test is quick."""
    for path in kit.glob("task_[123]/sample_model_*.py"):
        if path.stem.removeprefix("sample_model_") not in names:
            path.unlink()
    for path in kit.glob("task_4/*/train_model.py"):
        if path.parent.name not in names:
            shutil.rmtree(path.parent)


def steps(output: str) -> dict[tuple[str, str], str]:
    """Return what the quickstart said about every step, by task and name."""
    found = re.findall(r"task (\d)  (.*): (done already|failed|[\d.]+ s)$", output, re.MULTILINE)
    return {(task, name): re.sub(r"[\d.]+ s", "run", said) for task, name, said in found}


def table(output: str) -> str:
    """Return what the scoreboard printed."""
    return output[output.index("\n\n") : output.index("written: ")]


def without_times(shown: str) -> str:
    """Return a table without seconds and dates: a script that runs again takes its own time."""
    masked, count = re.subn(r"[\d.]+  \d{4}-\d\d-\d\d$", "TIME", shown, flags=re.MULTILINE)
    assert count
    return masked


def scores(kit: Path) -> dict[tuple[str, str], float]:
    """Return the scores in the record by task and name of the model."""
    lines = (kit / "data/test_output/results.jsonl").read_text().splitlines()
    return {(str(r["task"]), r["model"]): r["score"] for r in map(json.loads, lines)}


@pytest.mark.slow
def test_everything_is_scored_and_a_second_run_only_shows_it(tmp_path: Path, run: Run) -> None:
    kit = copy_kit(tmp_path / "a kit")
    first = run(["quickstart.py", "--size", "tiny"], kit=kit, timeout=280)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "simulating tiny data" in first.stdout
    assert not (kit / ".venv").exists()
    found = scores(kit)
    assert sorted(found) == sorted(models(kit))
    assert steps(first.stdout) == dict.fromkeys([*SPLITS, *found], "run")
    shown = table(first.stdout)
    for (_, name), score in found.items():
        assert 0.2 < score < 1
        assert re.search(rf"^ +{name} .*{score:.4f} ", shown, re.MULTILINE), name

    second = run(["quickstart.py"], kit=kit)
    assert second.returncode == 0
    assert steps(second.stdout) == dict.fromkeys([*SPLITS, *found], "done already")
    assert table(second.stdout) == shown


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a terminal as on Unix")
def test_its_end_fits_80_columns_and_says_what_to_do_next(tiny_kit: Path, run: Run) -> None:
    keep_only(tiny_kit, "majority", "matrix_factorization")
    shutil.rmtree(tiny_kit / "task_2")
    name = "an_idea_whose_name_is_longer_than_a_line_of_a_table_and_goes_on_below_it"
    shutil.copy(
        tiny_kit / "task_1/sample_model_majority.py", tiny_kit / f"task_1/sample_model_{name}.py"
    )
    code, lines, _ = run_on_terminal(
        [tiny_kit / "quickstart.py"], tiny_kit, {"PYTHONPATH": str(tiny_kit)}
    )
    assert code == 0, lines
    # Progress bars do not run over the names of the steps.
    step = lines.index("[4/4] task 1  matrix_factorization:")
    assert lines[step + 1].startswith("fitting: 100%")
    assert re.fullmatch(r"[\d.]+ s", lines[step + 2])

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
    assert python == Path(sys.executable).name
    assert last == ""
    assert run(arguments, kit=tiny_kit, cwd=tiny_kit).returncode == 0
    assert (tiny_kit / "task_1/my_idea.py").exists()


def test_the_python_of_its_environment_is_named(quick_kit: Path) -> None:
    """And runs the steps, where it has everything."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", quick_kit / ".venv"], check=True)
    (packages,) = (quick_kit / ".venv").glob("lib/python*/site-packages")
    (packages / "kit.pth").write_text("\n".join(map(str, [quick_kit, *LIBRARIES])))
    done = subprocess.run(
        [sys.executable, str(quick_kit / "quickstart.py")],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "installing" not in done.stdout
    last = done.stdout.splitlines()[-1]
    python = Path(".venv/Scripts/python.exe" if os.name == "nt" else ".venv/bin/python")
    assert last == f"your own idea: {python} -m common.new_entry task_1 my_idea"


def test_what_has_changed_runs_again(quick_kit: Path, run: Run) -> None:
    majority = [("1", "majority"), ("2", "majority")]

    def said() -> dict[tuple[str, str], str]:
        return steps(run(["quickstart.py"], kit=quick_kit).stdout)

    assert said() == dict.fromkeys([SPLITS[0], *majority], "run")
    # Changed code, and a mark that was left half-written.
    script = quick_kit / "task_2/sample_model_majority.py"
    script.write_text(script.read_text() + "# Changed.\n")
    (quick_kit / "data/test_input/quickstart_task_1.txt").write_text("half")
    assert said() == {SPLITS[0]: "run", majority[0]: "done already", majority[1]: "run"}
    # A new file that nothing imports makes nothing run again; nor does another package.
    (quick_kit / "task_1/my_notes.py").write_text("x = 1\n")
    (quick_kit / "common/adaptive/game.py").write_text("y = 1\n")
    assert said() == dict.fromkeys([SPLITS[0], *majority], "done already")
    # Changed code of the kit, which all of them import.
    layout = quick_kit / "common/layout.py"
    layout.write_text(layout.read_text() + "# Changed.\n")
    assert said() == dict.fromkeys([SPLITS[0], *majority], "run")
    # Changed data.
    (quick_kit / "data/train_data/train_task_1_2.csv").touch()
    assert said() == dict.fromkeys([SPLITS[0], *majority], "run")
    # No record of scores to show.
    (quick_kit / "data/test_output/results.jsonl").unlink()
    assert said() == {SPLITS[0]: "done already", **dict.fromkeys(majority, "run")}
    assert sorted(scores(quick_kit)) == majority


@pytest.mark.slow
def test_related_challenges_are_simulated_scored_and_resumed(tmp_path: Path, run: Run) -> None:
    """In a fresh clone, of which two challenges were deleted and the others keep one sample."""
    kit = copy_kit(tmp_path / "kit")
    related = kit / "related_challenges"
    shutil.rmtree(related / "debiasing")
    shutil.rmtree(related / "student_response")
    kept = {"cloze": "frequent", "science_exam": "constant"}
    for path in related.glob("*/sample_model_*.py"):
        if path.stem != f"sample_model_{kept[path.parent.name]}":
            path.unlink()
    (related / "cloze/sample_model_broken.py").write_text('"""Fails."""\nraise SystemExit(3)\n')

    first = run(["quickstart.py", "--related"], kit=kit)
    assert first.returncode == 1
    assert "simulating data in related_challenges/cloze/data/train_data/" in first.stdout
    said = re.findall(
        r"\] (\w+)  (.*): (done already|failed|[\d.]+ s)$", first.stdout, re.MULTILINE
    )
    assert [(challenge, name) for challenge, name, _ in said] == [
        ("cloze", "local split"),
        ("cloze", "broken"),
        ("cloze", "frequent"),
        ("science_exam", "constant"),
    ]
    assert first.stderr.startswith("failed: cloze, broken: `python related_challenges/cloze/")
    assert scores(kit).keys() == {("cloze", "frequent"), ("science_exam", "constant")}
    shown = table(first.stdout)
    assert "Cloze: token F1, 5 folds, simulated answers\n" in shown
    assert "Science exam: MAP@3, simulated answers\n" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert (related / "cloze/data/test_output/frequent/scores_cloze.html").exists()
    idea = first.stdout.splitlines()[-1].split(" -m ")[1]

    (related / "cloze/sample_model_broken.py").unlink()
    (related / "science_exam/data/train_data/test.csv").touch()
    second = run(["quickstart.py", "--related"], kit=kit)
    assert second.returncode == 0, second.stderr
    assert "simulating" not in second.stdout
    said = re.findall(r"\] (\w+)  .*: (done already|[\d.]+ s)$", second.stdout, re.MULTILINE)
    assert [text == "done already" for _, text in said] == [True, True, False]
    assert without_times(table(second.stdout)) == without_times(shown)
    assert run(["-m", *idea.split()], kit=kit, cwd=kit).returncode == 0
    assert (related / "cloze/my_idea.py").exists()


def test_weights_of_all_students_stay(tiny_kit: Path, run: Run) -> None:
    """The quickstart trains on the local split, in a folder of its own."""
    keep_only(tiny_kit, "numpy")
    assert run(["task_4/numpy/train_model.py"], kit=tiny_kit).returncode == 0
    folder = tiny_kit / "task_4/numpy"
    weights = {path: path.read_bytes() for path in folder.glob("model_task_4*")}
    done = run(["quickstart.py"], kit=tiny_kit)
    assert steps(done.stdout)["4", "numpy"] == "run", done.stderr
    assert {path: path.read_bytes() for path in folder.glob("model_task_4*")} == weights
    assert list(scores(tiny_kit)) == [("4", "numpy")]


def test_tasks_without_data_are_named(quick_kit: Path, run: Run) -> None:
    (quick_kit / "data/train_data/train_task_3_4.csv").unlink()
    done = run(["quickstart.py"], kit=quick_kit)
    assert done.returncode == 0, done.stderr
    missing = "data/train_data/train_task_3_4.csv"
    assert f"left out: tasks 3 and 4: {missing} is missing" in done.stdout


def test_a_model_that_fails_does_not_keep_the_others_from_running(
    quick_kit: Path, run: Run
) -> None:
    """Its last lines, in their order, say why."""
    broken = quick_kit / "task_1/sample_model_broken.py"
    broken.write_text(
        "import sys\n"
        "for number in range(20):\n"
        "    print('line', number, file=sys.stderr)\n"
        "sys.exit(3)\n"
    )
    first = run(["quickstart.py"], kit=quick_kit)
    assert first.returncode == 1
    reason, *more = first.stderr.splitlines()
    assert reason.startswith("failed: task 1, broken: `python task_1/sample_model_broken.py ")
    assert reason.endswith("ended with exit code 3")
    assert more == [f"  line {number}" for number in range(8, 20)]
    assert sorted(scores(quick_kit)) == [("1", "majority"), ("2", "majority")]
    assert "majority" in table(first.stdout)
    # A failed step does not count as done.
    second = run(["quickstart.py"], kit=quick_kit)
    assert second.returncode == 1
    assert steps(second.stdout) == {
        SPLITS[0]: "done already",
        ("1", "broken"): "failed",
        ("1", "majority"): "done already",
        ("2", "majority"): "done already",
    }


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
def test_control_c_stops_the_model_too_and_the_next_run_resumes(quick_kit: Path, run: Run) -> None:
    slow = quick_kit / "task_2/sample_model_slow.py"
    slow.write_text(
        "import os, pathlib, time\n"
        "pathlib.Path(__file__).with_name('pid').write_text(str(os.getpid()))\n"
        "time.sleep(100)\n"
    )
    with subprocess.Popen(
        [sys.executable, str(quick_kit / "quickstart.py")],
        env={**os.environ, "PYTHONPATH": str(quick_kit)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        started = time.monotonic()
        while not (pid := slow.with_name("pid")).exists() or not pid.read_text():
            assert process.poll() is None
            assert time.monotonic() - started < 60
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert stderr == "\nstopped; the next run resumes here\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    slow.write_text("import sys; sys.exit(1)")
    again = run(["quickstart.py"], kit=quick_kit)
    assert steps(again.stdout)["1", "majority"] == "done already"
    assert steps(again.stdout)["2", "slow"] == "failed"


def test_output_may_be_cut_off(quick_kit: Path) -> None:
    """As by `python3 quickstart.py | head -1`."""
    with subprocess.Popen(
        [sys.executable, str(quick_kit / "quickstart.py")],
        env={**os.environ, "PYTHONPATH": str(quick_kit)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "data: data/ (simulated, tiny)\n"
        process.stdout.close()
        stderr = process.stderr.read()
    assert (process.returncode, stderr) == (0, "")


def test_official_data_are_never_touched(tiny_kit: Path, run: Run) -> None:
    """Files that are not the simulated ones count as official, whatever --size says."""
    (tiny_kit / "data/SIMULATED.json").unlink()
    keep_only(tiny_kit, "random")
    train = {path: path.read_bytes() for path in tiny_kit.glob("data/train_data/*.csv")}
    (tiny_kit / "submission_templates/submission_task_3.csv").unlink()
    done = run(["quickstart.py", "--size", "small"], kit=tiny_kit)
    assert done.returncode == 0, done.stderr
    assert "simulating" not in done.stdout
    assert "building the submission templates" in done.stdout
    assert "data: data/ (as found)" in done.stdout
    assert "simulated" not in table(done.stdout)
    assert {path: path.read_bytes() for path in train} == train


def test_another_size_replaces_simulated_data(tiny_kit: Path, run: Run) -> None:
    keep_only(tiny_kit)
    marker = tiny_kit / "data/SIMULATED.json"
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "size": "small"}))
    done = run(["quickstart.py", "--size", "tiny"], kit=tiny_kit)
    assert done.returncode == 0, done.stderr
    assert "simulating tiny data" in done.stdout


def test_a_half_made_environment_is_made_again(tmp_path: Path) -> None:
    """Without pip in it, as where the first run was interrupted or python3-venv was missing."""
    kit = copy_kit(tmp_path / "kit")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", kit / ".venv"], check=True)
    left_over = kit / ".venv/left_over"
    for made_again in (True, False):
        left_over.touch()
        # Nothing can be installed here, so that both runs end there.
        done = subprocess.run(
            [sys.executable, str(kit / "quickstart.py")],
            env={**os.environ, "PYTHONPATH": "", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1
        assert done.stdout == "installing requirements.txt into .venv (once; a few minutes)\n"
        assert done.stderr.startswith("error: `python -m pip install --editable .` ended with ")
        assert list((kit / ".venv").glob("lib/python*/site-packages/pip"))
        assert left_over.exists() != made_again


@pytest.mark.parametrize(("checks", "tests", "failed"), [(1, 0, "ruff and mypy"), (0, 1, "tests")])
def test_a_failed_check_fails_the_test_command_but_the_tests_still_run(
    checks: int, tests: int, failed: str, tmp_path: Path, run: Run
) -> None:
    kit = copy_kit(tmp_path / "kit")
    shutil.rmtree(kit / "tests")
    (kit / "tests").mkdir()
    (kit / "tests/static_checks.py").write_text(f"raise SystemExit({checks})\n")
    (kit / "tests/test_one.py").write_text(f"def test_one():\n    assert not {tests}\n")
    done = run(["quickstart.py", "--test"], kit=kit)
    assert (done.returncode, done.stderr) == (1, f"failed: {failed}\n")
    assert "1 failed" in done.stdout if tests else "1 passed" in done.stdout


def test_every_check_goes_through_the_quickstart() -> None:
    assert "python3 quickstart.py --test" in (ROOT / ".ci/run").read_text()
    assert "bash .ci/run" in (ROOT / ".github/workflows/test.yml").read_text()
    assert "tests/static_checks.py" in (ROOT / ".pre-commit-config.yaml").read_text()


@pytest.mark.skipif(not Path("/usr/bin/env").exists(), reason="needs a Unix shell")
def test_python_that_is_too_old_is_reported(tmp_path: Path) -> None:
    code = (
        "import sys, runpy; sys.version_info = (3, 10, 0, 'final', 0); "
        f"sys.argv = ['quickstart.py']; sys.path.insert(0, {str(ROOT)!r}); "
        f"runpy.run_path({str(ROOT / 'quickstart.py')!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ}
    )
    assert done.returncode == 2
    assert "expected 3.11 or newer" in done.stderr


def test_one_copys_environment_never_runs_anothers_script(tiny_kit: Path) -> None:
    """It would silently use its own copy's data."""
    script = tiny_kit / "task_1/local_data_split.py"
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tiny_kit,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {script}: this Python belongs to the kit in {ROOT}")
    assert f"use the environment in {tiny_kit}" in line
    assert not (tiny_kit / "data/test_input").exists()
