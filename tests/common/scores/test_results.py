"""The record of all scores: what a line holds, where it goes, and how it stays readable."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import malformed
import pytest
from conftest import Run
from recorded import RESULT

from common import layout, origins
from common.scores import results

Succeeds = Callable[..., str]
NAME = "results.jsonl"


def lines(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.removesuffix("\n").split("\n")]


def read(path: Path, *content: str) -> tuple[list[results.Result], int]:
    path.write_text("".join(f"{line}\n" for line in content))
    return results.read_results(path)


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    path = tmp_path / "submission_task_1.csv"
    path.write_text("UserId,QuestionId,IsCorrect\n1,1,1\n")
    return path


def note_origin(submission: Path, split: str = "") -> None:
    submission.with_suffix(".json").write_bytes(origins.origin_of(submission, split))


def score(submission: Path, **changes: Any) -> dict[str, Any]:
    folder = submission.parent
    reference = folder / "data" / "test_input" / "valid.csv"
    reference.parent.mkdir(parents=True, exist_ok=True)
    reference.write_text("UserId,QuestionId,IsCorrect\n1,1,1\n")
    evaluation = results.Evaluation(
        title="Task 1", metric="accuracy", score=0.25, submission=submission,
        reference=reference, phase="local", parts={"right": float("nan")},
    )  # fmt: skip
    results.append_result(folder, changes.pop("task", 1), replace(evaluation, **changes))
    return lines(folder / NAME)[-1]


def test_every_evaluation_appends_a_line(
    scored_kit: Path, succeeds: Succeeds, tmp_path: Path
) -> None:
    first, _, second, third, *_ = lines(scored_kit / "data/test_output" / NAME)
    assert {field: first[field] for field in ("task", "phase", "model", "seed", "simulated")} == {
        "task": 1, "phase": "local", "model": "majority", "seed": None, "simulated": True,
    }  # fmt: skip
    text = (scored_kit / "data/test_output/scores_task_2.txt").read_text()
    assert f"score:{second['score']!r}" == text.strip()
    assert set(first["parts"]) == {"wrong", "right"}
    assert first["data"] == second["data"] != third["data"]
    assert first["made_by"] == "python task_1/sample_model_majority.py --local"
    assert first["command"] == "python task_1/local_evaluation.py"
    assert first["seconds"] > 0
    output = ["--output_dir", tmp_path]
    zipped = ["--phase", "private", "--submit_data", "submission_task_1.zip"]
    succeeds(["task_1/local_evaluation.py", *zipped, *output], kit=scored_kit)
    succeeds(["task_3/sample_model_random.py", "--seed", 7, *output], kit=scored_kit)
    own = ["--submission_dir", tmp_path, *output]
    succeeds(["task_3/local_evaluation.py", *own], kit=scored_kit)
    (private, ranking), unreadable = results.read_results(tmp_path / NAME)
    assert (private.phase, private.model, unreadable) == ("private", "majority", 0)
    assert (ranking.task, ranking.model, ranking.seed) == (3, "random", 7)


def test_a_score_names_code_and_revision_of_what_made_it(
    split_kit: Path, tmp_path: Path, succeeds: Succeeds
) -> None:
    """The code of the script and its imports; a revision where the script is of the repository."""
    kit = Path(shutil.copytree(split_kit, tmp_path / "kit"))
    git = ["git", "-C", str(kit), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "task_1"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    script, own = kit / "task_1/sample_model_majority.py", kit / "task_1/own.py"
    edits = (script, kit / "common/folds.py", kit / "common/submission.py")
    codes = []
    for edited in (None, *edits, own):
        if edited == own:
            shutil.copyfile(script, own)
        elif edited:
            edited.write_text(edited.read_text() + "# Edited.\n")
        succeeds([own if edited == own else script, "--local"], kit=kit)
        origin = origins.read_origin(kit / "data/test_output/test_submission_task_1.csv")
        codes.append(origin.code if origin else "")
        if edited in (None, script, own):
            succeeds(["task_1/local_evaluation.py"], kit=kit)
    first, edited_one, unrelated, imported, copied = codes
    assert re.fullmatch("[0-9a-f]{12}", first)
    assert first != edited_one == unrelated
    assert imported not in (first, edited_one)
    recorded = lines(kit / "data/test_output" / NAME)
    assert [line["code"] for line in recorded] == [first, edited_one, copied]
    clean, dirty, none = (line["revision"] for line in recorded)
    assert re.fullmatch("[0-9a-f]{7,}", clean)
    assert (dirty, none) == (f"{clean}-dirty", None)


def test_an_entry_of_task_4_tells_how_it_was_trained(
    split_kit: Path, tmp_path: Path, run: Run, succeeds: Succeeds
) -> None:
    """Command, seed and code; the same for a folder and its zip, and not after an edit."""
    kit = Path(shutil.copytree(split_kit, tmp_path / "kit"))
    folder = kit / "task_4/numpy"
    trainer, model = folder / "train_model.py", folder / "model.py"
    parse = "    options = parser.parse_args()"
    with_seed = f"    parser.add_argument('--seed')\n{parse}"
    trainer.write_text(trainer.read_text().replace(parse, with_seed))
    score_it = ["task_4/numpy/local_evaluation.py", "--skip_curve"]
    succeeds(["task_4/numpy/train_model.py", "--local", "--seed", 5], kit=kit)
    succeeds(score_it, kit=kit)
    assert run(["task_4/package.py", folder], kit=kit).returncode == 0
    zipped = kit / "submissions/submission_task_4.zip"
    succeeds([*score_it, "--submission", zipped], kit=kit)
    model.write_text(model.read_text() + "# Edited.\n")
    succeeds(score_it, kit=kit)
    as_folder, as_zip, edited = lines(kit / "data/test_output" / NAME)
    assert (as_folder["model"], as_folder["seed"]) == ("numpy", 5)
    assert as_folder["made_by"] == "python task_4/numpy/train_model.py --local --seed 5"
    assert as_zip["code"] == as_folder["code"] != edited["code"]
    assert as_zip["made_by"] == as_folder["made_by"]


def test_a_related_challenge_is_recorded_with_its_folds_and_files(
    submission: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["related_challenges/x/sample_model_y.py", "--seed", "3"])
    note_origin(submission, "5 folds")
    reference = submission.parent / "true"
    reference.mkdir()
    challenge = {"task": "x", "phase": "", "rules": "3 labels", "metric_name": "macro F1"}
    known = set()
    for content in ("1", "2"):
        (reference / "one.xml").write_text(content)
        score(submission, score=2.5, reference=reference, **challenge)
        (*_, line), unreadable = results.read_results(submission.parent / NAME)
        assert (line.task, line.model, line.seed, line.score) == ("x", "y", 3, 2.5)
        assert (line.rules, line.metric_name) == ("3 labels, 5 folds", "macro F1")
        assert unreadable == 0
        known.add(line.data)
    assert len(known) == 2


def test_the_record_is_one_for_all_default_folders(tmp_path: Path) -> None:
    own = layout.RELATED_DIR / "cloze" / "data" / "test_output"
    for folder in (layout.TEST_OUTPUT_DIR, layout.TEST_OUTPUT_DIR / "a", own, own / "mix"):
        assert results.results_path(folder) == layout.TEST_OUTPUT_DIR / NAME
    for folder in (tmp_path, own.parent, layout.RELATED_DIR / "cloze"):
        assert results.results_path(folder) == folder / NAME


def test_an_evaluation_knows_whether_its_answers_are_simulated(
    simulated_kit: Path, tmp_path: Path
) -> None:
    answers = simulated_kit / "data/train_data/train_task_1_2.csv"
    evaluation = results.Evaluation(
        title="", metric="", score=0.5, submission=tmp_path, reference=answers
    )
    # A folder too; and what answers were made from, if their own file does not show it.
    other = replace(evaluation, reference=tmp_path / "answers.csv")
    found = (evaluation, replace(evaluation, reference=answers.parent), other)
    assert [each.simulated for each in found] == [True, True, False]
    assert replace(other, rests_on=[answers]).simulated


@pytest.mark.parametrize(
    ("command", "seed"),
    [
        (["task_1/my_idea.py", "--local", "--seed", "3"], 3),
        (["task_1/my_idea.py", "--seed=12", "--local"], 12),
        (["task_1/my_idea.py", "--local"], None),
        (["task_1/my_idea.py", "--seed"], None),
    ],
)
def test_the_origin_names_model_and_seed(
    submission: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], seed: int | None
) -> None:
    monkeypatch.setattr("sys.argv", [str(layout.ROOT / command[0]), *command[1:]])
    note_origin(submission)
    line = score(submission)
    assert (line["model"], line["seed"]) == ("my_idea", seed)
    assert line["made_by"] == " ".join(["python", *command])
    assert line["seconds"] >= 0


@pytest.mark.parametrize(
    "content", [None, "", "{", "[]", "{}", '{"command": [], "bytes": 1, "crc32": 1}']
)
def test_a_submission_of_unknown_origin_is_known_by_its_file(
    submission: Path, content: str | None
) -> None:
    if content is None:
        # That of a file that has changed since.
        note_origin(submission)
        submission.write_text("UserId,QuestionId,IsCorrect\n1,1,0\n")
    else:
        submission.with_suffix(".json").write_text(content)
    line = score(submission)
    assert line["model"] == line["submission"] == submission.as_posix()
    assert (line["seed"], line["seconds"], line["made_by"]) == (None, None, "")
    assert line["parts"] == {"right": None}


@pytest.mark.parametrize("seconds", ["1e999", "9" * 400, "NaN", '"x"', "null", "[" * 100_000])
def test_an_origin_with_other_numbers_does_no_harm(submission: Path, seconds: str) -> None:
    text = origins.origin_of(submission).decode()
    text = re.sub(r'"seconds": [^,]*', f'"seconds": {seconds}', text)
    submission.with_suffix(".json").write_text(text)
    line = score(submission)
    assert line["seconds"] is None or line["seconds"] > 1e300


def test_what_a_notebook_makes_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    origin = origins.this_process()
    assert (origin.command, origin.model, origin.code) == (("notebook",), "notebook", "")


# ---- Lines of the record -----------------------------------------------------------------------

# Those that came later may be missing.
LATER = ("code", "memory", "outcomes", "metric_name")
OLD = {name: value for name, value in asdict(RESULT).items() if name not in LATER}
LINE = json.dumps(OLD)


def test_a_line_has_the_fields_that_it_always_had(submission: Path) -> None:
    assert list(score(submission)) == [*OLD, *LATER]
    assert read(submission.parent / NAME, LINE) == ([RESULT], 0)


def test_reading_passes_over_lines_that_are_no_result(tmp_path: Path) -> None:
    others = ['{"task": 1}', LINE.replace("0.6", '"high"'), "[1]", ""]
    found, unreadable = read(tmp_path / NAME, LINE, *others, LINE, LINE[:40])
    assert (found, unreadable) == ([RESULT] * 2, 4)


def test_only_lines_with_the_right_types_are_results(tmp_path: Path) -> None:
    """The score of a related challenge may exceed 1, as a sum does, and it has no phase."""
    task = {**OLD, "parts": {"right": 0.5, "wrong": None}, "seed": 3}
    item = malformed.Input("", "", NAME, "record")
    damaged = dict(malformed.damage_record(item, json.dumps(task).encode()))
    assert len(damaged) > 100
    related = {**OLD, "task": "debiasing", "phase": "", "score": 1.1175, "metric_name": "NDCG@50"}
    changes: list[dict[str, object]] = [
        *({"task": ""}, {"task": "<b>"}, {"phase": "local"}, {"metric_name": 3}),
        *({"score": -0.1}, {"score": 1e13}, {"score": True}),
        *({"task": 4, "phase": "local"}, {"task": 4, "score": 1}),
    ]
    good = [json.dumps(line).encode() for line in (task, related)]
    damaged |= {str(change): json.dumps({**related, **change}).encode() for change in changes}
    path = tmp_path / NAME
    for name, line in {"task": good[0], "related": good[1], **damaged}.items():
        path.write_bytes(line + b"\n")
        found, unreadable = results.read_results(path)
        assert (len(found), unreadable) == ((1, 0) if line in good else (0, 1)), name


def test_a_line_may_hold_any_character(tmp_path: Path) -> None:
    """Also those that end a line elsewhere, and bytes of a file's name that are not UTF-8."""
    submission = tmp_path / "a\u2028b\udcff.csv"
    submission.write_text("UserId\n1\n")
    for _ in range(2):
        score(submission)
    found, unreadable = results.read_results(tmp_path / NAME)
    assert unreadable == 0
    assert [result.submission for result in found] == [submission.as_posix()] * 2
