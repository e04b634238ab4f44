"""A newcomer's way, from a fresh copy to a checked zip, exactly as the guide tells it."""

import json
import re
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import blocks, commands, copy_kit

ROOT = Path(__file__).resolve().parents[1]
GUIDE = ROOT / "WRITE_YOUR_OWN_ENTRY.md"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def apply(diff: str, text: str) -> str:
    lines = diff.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line.startswith("-"))
    new = "".join(line[1:] for line in lines if line.startswith("+"))
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory, run: Run) -> tuple[Path, dict[str, str]]:
    """Walk the guide's way; give the kit and what every command printed."""
    kit = copy_kit(tmp_path_factory.mktemp("newcomer") / "kit")
    # The plainest models suffice to get there; all of them are run by the quickstart's own test.
    plain = ("majority", "entropy")
    for path in kit.glob("task_[123]/sample_model_*.py"):
        if path.stem.removeprefix("sample_model_") not in plain:
            path.unlink()
    for path in kit.glob("task_4/*/train_model.py"):
        if path.parent.name != "numpy":
            path.unlink()

    def ok(arguments: list[str]) -> str:
        done = run(arguments, kit=kit, cwd=kit, timeout=250)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"
        assert done.stderr == ""
        return done.stdout

    printed = {"quickstart": ok(["quickstart.py", "--size", "tiny"])}
    for command, *arguments in commands(GUIDE):
        assert command == "python"
        printed[" ".join(arguments)] = ok(arguments)
        if arguments[-2:] == ["task_1", "my_idea"]:
            (diff,) = blocks(GUIDE, "diff")
            entry = kit / "task_1" / "my_idea.py"
            entry.write_text(apply(diff, entry.read_text(encoding="utf-8")), encoding="utf-8")
    return kit, printed


def score(printed: str) -> float:
    match = re.search(r"score (\d\.\d+)", printed)
    assert match is not None
    return float(match[1])


def results(kit: Path) -> list[dict[str, Any]]:
    lines = (kit / "data/test_output/results.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_the_edit_makes_the_model_better(walked: tuple[Path, dict[str, str]]) -> None:
    kit, printed = walked
    majority = next(r for r in results(kit) if (r["task"], r["model"]) == (1, "majority"))
    assert score(printed["task_1/local_evaluation.py"]) > majority["score"] + 0.03


def test_the_new_entries_are_on_the_scoreboard(walked: tuple[Path, dict[str, str]]) -> None:
    kit, printed = walked
    board = printed["-m common.scoreboard"]
    assert board.index(" my_idea ") < board.index(" majority ")
    assert {"my_idea", "my_ranking", "my_questions"} <= {result["model"] for result in results(kit)}


def test_copies_score_what_the_sample_models_score(walked: tuple[Path, dict[str, str]]) -> None:
    kit, _ = walked
    scores = {(r["task"], r["phase"], r["model"]): r["score"] for r in results(kit)}
    assert scores[3, "public", "my_ranking"] == scores[3, "public", "entropy"]
    assert scores[4, "local", "my_questions"] == scores[4, "local", "numpy"]


@pytest.mark.parametrize("task", [1, 3])
def test_the_zips_are_flat_and_valid(walked: tuple[Path, dict[str, str]], task: int) -> None:
    kit, printed = walked
    path = f"submissions/submission_task_{task}.zip"
    with zipfile.ZipFile(kit / path) as archive:
        assert archive.namelist() == [f"submission_task_{task}.csv"]
    checked = printed[f"-m common.check_submission {path}"]
    assert f"valid for task {task}" in checked


def test_new_entry_names_the_commands_of_the_guide(walked: tuple[Path, dict[str, str]]) -> None:
    """What new_entry prints and what the guide says are the same way."""
    _, printed = walked
    for told, output in printed.items():
        if "common.new_entry" not in told:
            continue
        named = re.findall(r"^  python (.*?)(?:  |$)", output, re.MULTILINE)
        assert len(named) >= 3
        assert set(named) <= set(printed), told
