"""The quickstart, run as a newcomer runs it, inside the environment that runs the tests."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Run, copy_kit


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_kit(tmp_path_factory.mktemp("quickstart") / "a kit")


def models(kit: Path) -> list[tuple[str, str]]:
    """Give task and name of every sample model that lies in a kit."""
    scripts = sorted(kit.glob("task_[123]/sample_model_*.py"))
    found = [(path.parent.name[-1], path.stem.removeprefix("sample_model_")) for path in scripts]
    return found + [("4", path.parent.name) for path in sorted(kit.glob("task_4/*/train_model.py"))]


def keep_only(kit: Path, *scripts: str) -> None:
    """Remove all scripts of the tasks but some, so that a test is quick."""
    for path in kit.glob("task_*/**/*.py"):
        if path.relative_to(kit).as_posix() not in scripts:
            path.unlink()


def table_of(output: str) -> list[list[str]]:
    lines = output[output.index("Scores on") :].splitlines()
    # The columns are two spaces apart; the table ends at the first empty line.
    table = lines[4:]
    return [line.split() for line in (table[: table.index("")] if "" in table else table)]


def test_everything_is_scored_and_a_second_run_only_shows_it(kit: Path, run: Run) -> None:
    first = run(["quickstart.py", "--size", "tiny"], kit=kit, timeout=280)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "simulating tiny data" in first.stdout
    assert not (kit / ".venv").exists()
    rows = table_of(first.stdout)
    assert sorted((row[0], row[1]) for row in rows) == sorted(models(kit))
    for row in rows:
        score, seconds, peak = row[-3:]
        assert 0.2 < float(score) < 1
        assert float(seconds) > 0
        assert peak == "unknown" if sys.platform == "win32" else float(peak) > 30

    second = run(["quickstart.py"], kit=kit)
    assert second.returncode == 0
    assert second.stdout.count("done before") == len(rows)
    assert table_of(second.stdout) == rows

    # A damaged record means doing it again, not failing.
    (kit / "data/test_output/quickstart.json").write_text("{half")
    keep_only(
        kit,
        *(
            f"task_{task}/{name}.py"
            for task in (1, 2, 4)
            for name in ("local_data_split", "local_evaluation", "sample_model_majority")
        ),
    )
    broken = kit / "task_1/sample_model_broken.py"
    broken.write_text("import sys\nprint('the reason', file=sys.stderr)\nsys.exit(3)\n")
    third = run(["quickstart.py"], kit=kit, timeout=280)
    assert third.returncode == 1
    assert third.stdout.count("done before") == 0
    assert "ended with exit code 3" in third.stderr
    assert "the reason" in third.stderr
    rows = table_of(third.stdout)
    assert [row[-1] for row in rows if row[1] == "broken"] == ["failed"]
    assert len(rows) == len(models(kit))


def test_official_data_are_never_touched(tiny_kit: Path, run: Run) -> None:
    """Files that are not the simulated ones count as official, whatever --size says."""
    (tiny_kit / "data/SIMULATED.json").unlink()
    keep_only(tiny_kit, "task_3/local_evaluation.py", "task_3/sample_model_random.py")
    train = {path: path.read_bytes() for path in tiny_kit.glob("data/train_data/*.csv")}
    (tiny_kit / "submission_templates/submission_task_3.csv").unlink()
    done = run(["quickstart.py", "--size", "small"], kit=tiny_kit)
    assert done.returncode == 0, done.stderr
    assert "simulating" not in done.stdout
    assert "building the submission templates" in done.stdout
    assert "Scores on the official data" in done.stdout
    assert {path: path.read_bytes() for path in train} == train


def test_another_size_replaces_simulated_data(tiny_kit: Path, run: Run) -> None:
    keep_only(tiny_kit)
    marker = tiny_kit / "data/SIMULATED.json"
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "size": "small"}))
    done = run(["quickstart.py", "--size", "tiny"], kit=tiny_kit)
    assert done.returncode == 0, done.stderr
    assert "simulating tiny data" in done.stdout


def test_the_ci_runs_the_tests_through_the_quickstart() -> None:
    root = Path(__file__).resolve().parents[1]
    assert "python3 quickstart.py --test" in (root / ".ci/run").read_text()


@pytest.mark.skipif(not Path("/usr/bin/env").exists(), reason="needs a Unix shell")
def test_python_that_is_too_old_is_told_so(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[1]
    code = (
        "import sys, runpy; sys.version_info = (3, 10, 0, 'final', 0); "
        f"sys.argv = ['quickstart.py']; sys.path.insert(0, {str(root)!r}); "
        f"runpy.run_path({str(root / 'quickstart.py')!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ}
    )
    assert done.returncode == 2
    assert "expected 3.11 or newer" in done.stderr
