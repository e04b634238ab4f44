"""A newcomer's way, from a fresh copy to a checked zip, exactly as the guide describes it."""

import json
import re
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import ROOT, Run, blocks, commands, copy_kit, run_as_on
from page_reading import read_page as check_page

from common import layout
from common.answers import Answers, pair_keys
from common.metadata import read_circumstances

GUIDE = ROOT / "WRITE_YOUR_OWN_ENTRY.md"


def apply(diff: str, text: str) -> str:
    """Change a text as a diff says, of which each part removes lines and then adds some."""
    parts = re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", diff, re.MULTILINE)
    assert "".join(removed + added for removed, added in parts) == diff
    for part in parts:
        old, new = (re.sub("^.", "", lines, flags=re.MULTILINE) for lines in part)
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def score(printed: str) -> float:
    match = re.search(r"score (\d\.\d+)", printed)
    assert match is not None
    return float(match[1])


@pytest.mark.slow
def test_the_guide_leads_from_a_fresh_copy_to_checked_zips(tmp_path: Path, run: Run) -> None:
    """One test, since all of it follows from one walk."""
    kit, printed = tmp_path / "kit", {}
    copy_kit(kit)
    # The plainest models suffice to get there; all of them are run by the quickstart's own test.
    for path in kit.glob("task_[123]/sample_model_*.py"):
        if path.stem.removeprefix("sample_model_") not in ("majority", "entropy"):
            path.unlink()
    for path in kit.glob("task_4/*/train_model.py"):
        if path.parent.name != "numpy":
            path.unlink()

    done = run(["quickstart.py", "--size", "tiny"], kit=kit)
    assert done.returncode == 0, done.stderr
    for command, *arguments in commands(GUIDE):
        assert command == "python"
        done = run_as_on(GUIDE.relative_to(ROOT), arguments, kit)
        assert (done.returncode, done.stderr) == (0, ""), f"{arguments}\n{done.stdout}{done.stderr}"
        printed[" ".join(arguments)] = done.stdout
        if arguments[-2:] == ["task_1", "my_idea"]:
            diff = blocks(GUIDE, "diff")[0]
            entry = kit / "task_1" / "my_idea.py"
            entry.write_text(apply(diff, entry.read_text(encoding="utf-8")), encoding="utf-8")

    # The edit makes the model better, and copies that were not edited score what they were.
    lines = (kit / "data/test_output/results.jsonl").read_text().splitlines()
    results = [json.loads(line) for line in lines]
    scores = {(r["task"], r["phase"], r["model"]): r["score"] for r in results}
    assert score(printed["task_1/local_evaluation.py"]) > scores[1, "local", "majority"] + 0.03
    assert scores[3, "public", "my_ranking"] == scores[3, "public", "entropy"]
    assert scores[4, "local", "my_questions"] == scores[4, "local", "numpy"]
    board = printed["-m common.scoreboard"]
    assert board.index(" my_idea ") < board.index(" majority ")

    # The zips are flat and valid.
    for task in (1, 3):
        path = f"submissions/submission_task_{task}.zip"
        with zipfile.ZipFile(kit / path) as archive:
            assert archive.namelist() == [f"submission_task_{task}.csv"]
        assert f"valid for task {task}" in printed[f"-m common.check_submission {path}"]
    assert (
        "valid for task 4"
        in printed["-m common.check_submission submissions/submission_task_4.zip"]
    )

    # new_entry prints the commands that the guide gives.
    for command, output in printed.items():
        if "common.new_entry" in command:
            named = re.findall(r"^  python (.*?)(?:  |$)", output, re.MULTILINE)
            assert len(named) >= 3
            assert set(named) <= set(printed), command

    # Every page that was written on the way is self-contained.
    pages = sorted((kit / "data/test_output").rglob("*.html"))
    scored = ("1", "1_public", "2", "3_public", "4")
    expected = {"scoreboard.html", *(f"scores_task_{name}.html" for name in scored)}
    assert {page.name for page in pages} >= expected
    for page in pages:
        check_page(page.read_text(encoding="utf-8"))


def test_the_block_in_pandas_does_what_the_majority_model_does(tiny_kit: Path, run: Run) -> None:
    block = blocks(GUIDE, "python")[0]
    assert "frame = pd.DataFrame(vars(answers))\n" in block
    path = tiny_kit / "task_1/sample_model_majority.py"
    before, rest = path.read_text(encoding="utf-8").split("    n_questions = ", 1)
    after = rest[rest.index("    # ---- End of the model.") :]
    before = before.replace("import numpy as np\n", "import numpy as np\nimport pandas as pd\n")
    entry = tiny_kit / "task_1/my_idea.py"
    entry.write_text(before + textwrap.indent(block, "    ") + after, encoding="utf-8")
    submissions = []
    for script in (path, entry):
        folder = tiny_kit / script.stem
        done = run([f"task_1/{script.name}", "--output_dir", folder], kit=tiny_kit)
        assert done.returncode == 0, done.stderr
        submissions.append((folder / "submission_task_1.csv").read_bytes())
    assert submissions[0] == submissions[1]


def test_the_block_on_metadata_makes_the_majority_model_better(tiny_kit: Path, run: Run) -> None:
    _, flags, prediction = blocks(GUIDE, "diff")
    _, block = blocks(GUIDE, "python")
    text = (tiny_kit / "task_1/sample_model_majority.py").read_text(encoding="utf-8")
    text = apply(prediction, apply(flags, text))
    place = text.index("    n_questions = ")
    text = text[:place] + textwrap.indent(block, "    ") + text[place:]
    (tiny_kit / "task_1/my_quiz.py").write_text(text, encoding="utf-8")
    scores = []
    for script in ("sample_model_majority", "my_quiz"):
        for command in (["task_1/local_data_split.py"], [f"task_1/{script}.py", "--local"]):
            done = run(command, kit=tiny_kit)
            assert done.returncode == 0, done.stderr
        scores.append(score(run(["task_1/local_evaluation.py"], kit=tiny_kit).stdout))
    assert scores[1] > scores[0] + 0.02


def test_the_feature_of_the_guide_does_not_leak(
    tmp_path: Path, write: Callable[[str, str], Path]
) -> None:
    """An outcome counts for other answers of its student and quiz, never for its own part."""
    rng = np.random.default_rng(1)
    n, n_train = 6000, 5000
    quiz, student = rng.integers(20, size=n), rng.integers(50, size=n)
    rows = "".join(f"{row},{number}\n" for row, number in enumerate(quiz))
    write("answer_metadata_task_1_2.csv", "AnswerId,QuizId\n" + rows)
    is_correct = rng.integers(2, size=n_train).astype(np.int8)
    ids, question = np.arange(n), np.zeros(n, np.int32)
    template = SimpleNamespace(student=student[n_train:], answer_id=ids[n_train:])

    def run_block(is_correct: npt.NDArray[np.int8]) -> dict[str, Any]:
        names: dict[str, Any] = {
            "answers": Answers(
                student[:n_train], question[:n_train], is_correct, answer_id=ids[:n_train]
            ),
            "template": template,
            "paths": SimpleNamespace(metadata=tmp_path),
            **{"np": np, "layout": layout, "pair_keys": pair_keys},
            "read_circumstances": read_circumstances,
        }
        exec(blocks(GUIDE, "python")[1], names)
        return names

    before = run_block(is_correct)
    part, sitting = before["part"], student * 20 + quiz
    for row in range(20):
        changed = is_correct.copy()
        changed[row] ^= 1
        differs = run_block(changed)["rate"] != before["rate"]
        assert np.array_equal(differs, (sitting == sitting[row]) & (part != part[row]))
    # The template's rates are those of all training answers, a little towards one half.
    row = n_train
    same = is_correct[sitting[:n_train] == sitting[row]]
    assert before["rate"][row] == (same.sum() + 1) / (len(same) + 2)
