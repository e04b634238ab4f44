"""The record of all scores: what a line holds, where it goes, and how it stays readable."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import malformed
import pytest

from common import layout, origins, provenance
from common.scores import results

Run = Callable[..., Any]


def lines(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.removesuffix("\n").split("\n")]


def test_every_evaluation_appends_a_line(tiny_kit: Path, run: Run) -> None:
    def ok(*arguments: str) -> None:
        done = run(arguments, kit=tiny_kit)
        assert done.returncode == 0, done.stderr

    ok("task_1/local_data_split.py")
    for task in (1, 2):
        ok(f"task_{task}/sample_model_majority.py", "--local")
        ok(f"task_{task}/local_evaluation.py")
    ok("task_1/sample_model_majority.py")
    zipped = ("--submit_data", "submission_task_1.zip")
    ok("task_1/local_evaluation.py", "--phase", "private", *zipped)
    seven = str(tiny_kit / "data/test_output/seven")
    ok("task_3/sample_model_random.py", "--seed", "7", "--output_dir", seven)
    ok("task_3/local_evaluation.py", "--submission_dir", seven, "--output_dir", seven)

    first, second, third, fourth = lines(tiny_kit / "data/test_output/results.jsonl")
    assert {field: first[field] for field in ("task", "phase", "model", "seed", "simulated")} == {
        "task": 1, "phase": "local", "model": "majority", "seed": None, "simulated": True,
    }  # fmt: skip
    text = (tiny_kit / "data/test_output/scores_task_2.txt").read_text()
    assert f"score:{second['score']!r}" == text.strip()
    assert set(first["parts"]) == {"wrong", "right"}
    assert first["data"] == second["data"] != third["data"]
    assert first["made_by"] == "python task_1/sample_model_majority.py --local"
    assert first["command"] == "python task_1/local_evaluation.py"
    assert first["seconds"] > 0
    assert (third["phase"], third["model"]) == ("private", "majority")
    assert (fourth["task"], fourth["model"], fourth["seed"]) == (3, "random", 7)
    assert len(results.read_results(tiny_kit / "data/test_output/results.jsonl")[0]) == 4


def score(folder: Path, submission: Path, value: float = 0.5) -> dict[str, Any]:
    reference = folder / "data" / "test_input" / "valid.csv"
    reference.parent.mkdir(parents=True, exist_ok=True)
    reference.write_text("UserId,QuestionId,IsCorrect\n1,1,1\n")
    evaluation = results.Evaluation(
        title="Task 1", metric="accuracy", score=value, submission=submission,
        reference=reference, phase="local", parts={"right": float("nan")},
    )  # fmt: skip
    results.append_result(folder, 1, evaluation)
    return lines(folder / "results.jsonl")[-1]


def test_the_code_of_a_score_is_that_of_its_script_and_imports(tiny_kit: Path, run: Run) -> None:
    path = tiny_kit / "data/test_output/results.jsonl"
    script = tiny_kit / "task_1/sample_model_majority.py"
    assert run(["task_1/local_data_split.py"], kit=tiny_kit).returncode == 0
    edits = (script, tiny_kit / "common/folds.py", tiny_kit / "common/submission.py")
    for edited in (None, *edits):
        if edited:
            edited.write_text(edited.read_text() + "# Edited.\n")
        for command in ([script, "--local"], ["task_1/local_evaluation.py"]):
            done = run(command, kit=tiny_kit)
            assert done.returncode == 0, done.stderr
    first, own, unrelated, imported = [line["code"] for line in lines(path)]
    assert re.fullmatch("[0-9a-f]{12}", first)
    assert own != first
    assert unrelated == own
    assert imported not in (first, own)


def test_an_entry_of_task_4_tells_how_it_was_trained(tiny_kit: Path, run: Run) -> None:
    """Command, seed and code; the same for a folder and its zip, and not after an edit."""
    folder = tiny_kit / "task_4/numpy"
    trainer = folder / "train_model.py"
    parse = "    options = parser.parse_args()"
    with_seed = f"    parser.add_argument('--seed')\n{parse}"
    trainer.write_text(trainer.read_text().replace(parse, with_seed))
    score_it = ["task_4/numpy/local_evaluation.py", "--skip_curve"]
    zipped = tiny_kit / "submissions/submission_task_4.zip"
    for command in (
        ["task_4/local_data_split.py"],
        ["task_4/numpy/train_model.py", "--local", "--seed", "5"],
        score_it,
        ["task_4/package.py", folder],
        [*score_it, "--submission", zipped],
    ):
        done = run(command, kit=tiny_kit)
        assert done.returncode == 0, done.stderr
    (folder / "model.py").write_text((folder / "model.py").read_text() + "# Edited.\n")
    assert run(score_it, kit=tiny_kit).returncode == 0
    as_folder, as_zip, edited = lines(tiny_kit / "data/test_output/results.jsonl")
    assert as_folder["model"] == "numpy"
    assert as_folder["seed"] == 5
    assert as_folder["made_by"] == "python task_4/numpy/train_model.py --local --seed 5"
    assert as_zip["code"] == as_folder["code"] != edited["code"]
    assert as_zip["made_by"] == as_folder["made_by"]


def test_the_revision_is_told_for_files_of_the_repository_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "ROOT", tmp_path)
    git = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b.c"]
    (tmp_path / "tracked.py").write_text("x = 1\n")
    for words in (["init", "-q"], ["add", "tracked.py"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    (tmp_path / "own.py").write_text("y = 1\n")
    found = {}
    for name in ("tracked.py", "own.py"):
        submission = tmp_path / f"{name}.csv"
        submission.write_text("UserId,QuestionId,IsCorrect\n1,1,1\n")
        monkeypatch.setattr("sys.argv", [str(tmp_path / name)])
        submission.with_suffix(".json").write_bytes(origins.origin_of(submission))
        found[name] = score(tmp_path, submission)
    assert re.fullmatch("[0-9a-f]{7,}(-dirty)?", found["tracked.py"]["revision"])
    assert found["own.py"]["revision"] is None
    assert found["own.py"]["code"] != found["tracked.py"]["code"]


def test_a_submission_of_unknown_origin_is_known_by_its_file(tmp_path: Path) -> None:
    submission = tmp_path / "mine.csv"
    submission.write_text("UserId,QuestionId,IsCorrect\n1,1,1\n")
    line = score(tmp_path, submission)
    assert line["model"] == line["submission"] == submission.as_posix()
    assert (line["seed"], line["seconds"], line["made_by"]) == (None, None, "")
    assert line["parts"] == {"right": None}


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], seed: int | None
) -> None:
    submission = tmp_path / "submission_task_1.csv"
    submission.write_text("UserId,QuestionId,IsCorrect\n1,1,1\n")
    monkeypatch.setattr("sys.argv", [str(layout.ROOT / command[0]), *command[1:]])
    submission.with_suffix(".json").write_bytes(origins.origin_of(submission))
    line = score(tmp_path, submission)
    assert (line["model"], line["seed"]) == ("my_idea", seed)
    assert line["made_by"] == " ".join(["python", *command])
    assert line["seconds"] >= 0


def test_the_origin_of_another_file_does_not_count(tmp_path: Path) -> None:
    submission = tmp_path / "submission_task_1.csv"
    submission.write_text("UserId,QuestionId,IsCorrect\n1,1,1\n")
    submission.with_suffix(".json").write_bytes(origins.origin_of(submission))
    submission.write_text("UserId,QuestionId,IsCorrect\n1,1,0\n")
    assert origins.read_origin(submission) is None


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"command": [], "bytes": 1, "crc32": 1}']
)
def test_a_damaged_origin_does_no_harm(tmp_path: Path, content: str) -> None:
    submission = tmp_path / "submission_task_1.csv"
    submission.write_text("x")
    submission.with_suffix(".json").write_text(content)
    assert origins.read_origin(submission) is None


def test_reading_passes_over_lines_that_are_no_result(tmp_path: Path) -> None:
    submission = tmp_path / "mine.csv"
    submission.write_text("UserId\n1\n")
    score(tmp_path, submission, 0.25)
    path = tmp_path / "results.jsonl"
    good = path.read_text()
    wrong_score = good.replace("0.25", '"high"')
    path.write_text(good + '{"task": 1}\n' + wrong_score + "[1]\n\n" + good + good[:40])
    found, unreadable = results.read_results(path)
    assert [result.score for result in found] == [0.25, 0.25]
    assert unreadable == 4


def test_what_a_notebook_makes_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    origin = origins.this_process()
    assert (origin.command, origin.model, origin.code) == (("notebook",), "notebook", "")


OLD_LINE = (
    '{"time": "2026-01-01T10:00:00+00:00", "task": 4, "phase": "local", "rules": "strict", '
    '"model": "numpy", "score": 0.61, "parts": {"IsTarget": 0.61}, "seconds": 0.3, "seed": null, '
    '"made_by": "", "command": "python task_4/numpy/local_evaluation.py", '
    '"submission": "task_4/numpy", "revision": null, "data": "0123456789ab", "simulated": true}'
)


def test_a_line_has_the_fields_that_it_always_had(tmp_path: Path) -> None:
    submission = tmp_path / "mine.csv"
    submission.write_text("UserId\n1\n")
    path = tmp_path / "results.jsonl"
    path.write_text(OLD_LINE + "\n")
    assert list(score(tmp_path, submission)) == [
        *json.loads(OLD_LINE),
        *("code", "memory", "outcomes", "metric_name"),
    ]
    (old, _), unreadable = results.read_results(path)
    assert (old.code, old.memory, old.outcomes) == ("", None, "")
    assert (old.model, old.rules, old.parts, unreadable) == (
        "numpy",
        "strict",
        {"IsTarget": 0.61},
        0,
    )


def related_line(**changes: object) -> str:
    line = {**json.loads(OLD_LINE), "task": "debiasing", "phase": "", "score": 1.1175}
    return json.dumps({**line, "metric_name": "NDCG@50", **changes})


@pytest.mark.parametrize(
    ("changes", "is_read"),
    [
        ({}, True),
        ({"task": "<b>"}, False),
        ({"task": ""}, False),
        ({"phase": "local"}, False),
        ({"score": -0.1}, False),
        ({"score": 1e13}, False),
        ({"score": True}, False),
        ({"metric_name": 3}, False),
        ({"task": 4, "phase": "local"}, False),
        ({"task": 4, "phase": "", "score": 1}, False),
    ],
)
def test_a_line_of_a_related_challenge(
    tmp_path: Path, changes: dict[str, object], is_read: bool
) -> None:
    """Its score may exceed 1, as a sum does, and it has no phase; neither holds for a task."""
    path = tmp_path / "results.jsonl"
    path.write_text(related_line(**changes) + "\n")
    found, unreadable = results.read_results(path)
    assert (len(found), unreadable) == ((1, 0) if is_read else (0, 1))


def test_a_related_challenge_is_recorded_with_its_folds_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission, reference = tmp_path / "a.csv", tmp_path / "true"
    submission.write_text("id,label\n1,correct\n")
    monkeypatch.setattr("sys.argv", ["related_challenges/x/sample_model_y.py", "--seed", "3"])
    submission.with_suffix(".json").write_bytes(origins.origin_of(submission, "5 folds"))
    reference.mkdir()
    evaluation = results.Evaluation(
        title="X", metric="", metric_name="macro F1", score=2.5, submission=submission,
        reference=reference, rules="3 labels",
    )  # fmt: skip
    known = set()
    for content in ("1", "2"):
        (reference / "one.xml").write_text(content)
        results.append_result(tmp_path, "x", evaluation)
        (*_, line), unreadable = results.read_results(tmp_path / "results.jsonl")
        assert (line.task, line.model, line.seed, line.score) == ("x", "y", 3, 2.5)
        assert (line.rules, line.metric_name) == ("3 labels, 5 folds", "macro F1")
        assert unreadable == 0
        known.add(line.data)
    assert len(known) == 2


def test_the_record_is_one_for_all_default_folders(tmp_path: Path) -> None:
    own = layout.RELATED_DIR / "cloze" / "data" / "test_output"
    for folder in (layout.TEST_OUTPUT_DIR, layout.TEST_OUTPUT_DIR / "a", own, own / "mix"):
        assert results.results_path(folder) == layout.TEST_OUTPUT_DIR / "results.jsonl"
    for folder in (tmp_path, own.parent, layout.RELATED_DIR / "cloze"):
        assert results.results_path(folder) == folder / "results.jsonl"


def test_an_evaluation_knows_whether_its_answers_are_simulated(tmp_path: Path) -> None:
    train = tmp_path / "data" / "train_data"
    train.mkdir(parents=True)
    (train / "answers.csv").write_text("x")
    evaluation = results.Evaluation(
        title="", metric="", score=0.5, submission=tmp_path, reference=train / "answers.csv"
    )
    assert not evaluation.simulated
    files = {"train_data/answers.csv": provenance.fingerprint(train / "answers.csv")}
    marker = {"simulated": True, "files": files}
    (tmp_path / "data" / "SIMULATED.json").write_text(json.dumps(marker))
    assert replace(evaluation).simulated
    assert replace(evaluation, reference=train).simulated
    # What answers were made from counts if their own file does not show it.
    other = replace(evaluation, reference=tmp_path / "data" / "test_input" / "answers.csv")
    assert not other.simulated
    assert replace(other, rests_on=[train / "answers.csv"]).simulated


def damaged_records() -> list[tuple[str, bytes]]:
    record = {
        "time": "2026-01-01T10:00:00+00:00", "task": 1, "phase": "local", "rules": "",
        "model": "majority", "score": 0.5, "parts": {"right": 0.5, "wrong": None}, "seconds": 1.5,
        "seed": 3, "made_by": "python a.py", "command": "python b.py", "submission": "c.csv",
        "revision": None, "data": "0a1b2c", "simulated": True,
    }  # fmt: skip
    content = json.dumps(record).encode()
    item = malformed.Input("", "", "results.jsonl", "record")
    return [("right", content), *malformed.damage_record(item, content)]


@pytest.mark.parametrize(("name", "line"), damaged_records())
def test_only_lines_with_the_right_types_are_results(
    tmp_path: Path, name: str, line: bytes
) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(line + b"\n")
    found, unreadable = results.read_results(path)
    assert (len(found), unreadable) == ((1, 0) if name == "right" else (0, 1))


def test_a_line_may_hold_any_character(tmp_path: Path) -> None:
    """Also those that end a line elsewhere, and bytes of a file's name that are not UTF-8."""
    submission = tmp_path / "a\u2028b\udcff.csv"
    submission.write_text("UserId\n1\n")
    for _ in range(2):
        score(tmp_path, submission)
    found, unreadable = results.read_results(tmp_path / "results.jsonl")
    assert unreadable == 0
    assert [result.submission for result in found] == [submission.as_posix()] * 2


@pytest.mark.parametrize("seconds", ["1e999", "9" * 400, "NaN", '"x"', "null", "[" * 100_000])
def test_an_origin_with_other_numbers_does_no_harm(tmp_path: Path, seconds: str) -> None:
    submission = tmp_path / "submission_task_1.csv"
    submission.write_text("x")
    text = origins.origin_of(submission).decode()
    text = re.sub(r'"seconds": [^,]*', f'"seconds": {seconds}', text)
    submission.with_suffix(".json").write_text(text)
    line = score(tmp_path, submission)
    assert line["seconds"] is None or line["seconds"] > 1e300
