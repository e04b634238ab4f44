"""The record of all scores: what a line holds, where it goes, and how it stays readable."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from common import layout, provenance
from common.evaluation import record
from common.evaluation.record import Evaluation, Result
from common.metrics import Score
from tools.results import read_results

import malformed
import pytest
from conftest import run, succeeds
from recorded import RESULT, made_by

NAME = "results.jsonl"


def read(folder: Path) -> list[Result]:
    return read_results(folder / NAME)


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    path = tmp_path / "submission_task_1.csv"
    path.write_text("UserId,QuestionId,IsCorrect\n1,1,1\n")
    return path


def record_of(submission: Path, split: str = "") -> bytes:
    with submission.open("rb") as file:
        return provenance.this_process(submission.parent, {submission: file}, split=split).as_json()


def score(submission: Path, task: int | str = 1, **changes: Any) -> Result:
    evaluation = Evaluation(
        task=task, metric="accuracy", score=Score(0.25), submission=submission,
        reference=submission, phase="local", parts={"right": float("nan")},
    )  # fmt: skip
    record.append_result(submission.parent, replace(evaluation, **changes))
    return read(submission.parent)[-1]


def test_every_evaluation_appends_a_line(scored_kit: Path, tmp_path: Path) -> None:
    first, _, second, third, random, *_ = read(scored_kit / "data/test_output")
    assert (first.task, first.phase, first.seed, first.simulated) == (1, "local", None, True)
    assert {*first.parts} == {"wrong", "right"}
    assert first.data == second.data != third.data
    assert made_by(first) == "python task_1/sample_model_majority.py --local"
    assert first.command == "python task_1/local_evaluation.py"
    assert (first.seconds or 0) > 0
    assert (random.task, random.phase, random.model) == (3, "public", "random")
    flags = ["--phase", "private", "--submit_data", "submission_task_1.zip"]
    succeeds(["task_1/local_evaluation.py", *flags, "--output_dir", tmp_path], kit=scored_kit)
    (own,) = read(tmp_path)
    assert (own.task, own.phase, own.model) == (1, "private", "majority")


def test_a_score_names_code_and_revision_of_what_made_it(split_kit: Path, tmp_path: Path) -> None:
    """The code of the script and its imports; a revision where the script is of the repository."""
    kit = Path(shutil.copytree(split_kit, tmp_path / "kit"))
    git = ["git", "-C", str(kit), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in ("init -q", "add task_1 common/submission.py", "commit -q -m first"):
        subprocess.run([*git, *words.split()], check=True)
    script, imported = kit / "task_1/sample_model_majority.py", kit / "common/submission.py"
    own = Path(shutil.copyfile(script, kit / "task_1/own.py"))
    for predict in (script, script, own):
        succeeds([predict, "--local"], kit=kit)
        succeeds(["task_1/local_evaluation.py"], kit=kit)
        imported.write_text(imported.read_text() + "# Edited.\n")
    lines = read(kit / "data/test_output")
    assert re.fullmatch("[0-9a-f]{12}", lines[0].code)
    assert lines[0].code != lines[1].code
    clean, dirty, none = (line.revision for line in lines)
    assert re.fullmatch("[0-9a-f]{7,}", clean or "")
    assert (dirty, none) == (f"{clean}-dirty", None)


def test_an_entry_of_task_4_tells_how_it_was_trained(split_kit: Path, tmp_path: Path) -> None:
    """Command, seed and code; the same for a folder and its zip, and not after an edit."""
    kit = Path(shutil.copytree(split_kit, tmp_path / "kit"))
    trainer, model = kit / "task_4/numpy/train_model.py", kit / "task_4/numpy/model.py"
    returned = "    return training.training_parser(__doc__)\n"
    with_seed = """
    parser = training.training_parser(__doc__)
    parser.add_argument("--seed")
    return parser
"""
    assert returned in trainer.read_text()
    trainer.write_text(trainer.read_text().replace(returned, with_seed))
    succeeds([trainer, "--local", "--seed", 5], kit=kit)
    assert run(["task_4/package.py", kit / "task_4/numpy"], kit=kit).returncode == 0
    for words in ([], ["--submission", kit / "submissions/submission_task_4.zip"], []):
        succeeds(["task_4/numpy/local_evaluation.py", "--skip_curve", *words], kit=kit)
        if words:
            model.write_text(model.read_text() + "# Edited.\n")
    as_folder, as_zip, edited = read(kit / "data/test_output")
    assert (as_folder.model, as_folder.seed) == ("numpy", 5)
    assert made_by(as_folder) == "python task_4/numpy/train_model.py --local --seed 5"
    assert (as_zip.code, made_by(as_zip)) == (as_folder.code, made_by(as_folder))
    assert as_folder.code != edited.code


def test_a_related_challenge_is_recorded_with_its_folds_and_files(submission: Path) -> None:
    submission.with_suffix(".json").write_bytes(record_of(submission, "5 folds"))
    reference = submission.parent / "true"
    reference.mkdir()
    known = []
    for content in ("1", "2"):
        (reference / "one.xml").write_text(content)
        line = score(
            submission, "x", score=Score(2.5), reference=reference, phase="", rules="3 labels"
        )
        assert (line.task, line.score, line.rules) == ("x", 2.5, "3 labels, 5 folds")
        known.append(line.data)
    assert known[0] != known[1]


@pytest.mark.parametrize(
    ("flags", "seed"),
    [("--local --seed 3", 3), ("--seed=12 --local", 12), ("--local", None), ("--seed", None)],
)
def test_the_origin_names_model_and_seed(
    submission: Path, monkeypatch: pytest.MonkeyPatch, flags: str, seed: int | None
) -> None:
    """A time that no number tells is not known."""
    monkeypatch.setattr("sys.argv", [str(layout.ROOT / "task_1/my_idea.py"), *flags.split()])
    origin = re.sub(rb'"seconds": [^,]*', b'"seconds": 1e999', record_of(submission))
    submission.with_suffix(".json").write_bytes(origin)
    line = score(submission)
    assert (line.model, line.seed, line.seconds) == ("my_idea", seed, None)
    assert made_by(line) == f"python task_1/my_idea.py {flags.replace('=', ' ')}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(?s).+", "{"),
        # That of a file that has changed since.
        (r'"files": \{\s*"[^"]*": \{\s*"bytes": ', r"\g<0>1"),
        ('"seconds": [^,]*', f'"seconds": {"9" * 400}'),
    ],
)
def test_a_submission_of_unknown_origin_is_known_by_its_file(
    submission: Path, old: str, new: str
) -> None:
    text, n_changed = re.subn(old, new, record_of(submission).decode())
    assert n_changed == 1
    submission.with_suffix(".json").write_text(text)
    line = score(submission)
    assert line.model == line.submission == submission.as_posix()
    assert (line.seed, line.seconds, made_by(line)) == (None, None, "")
    assert line.parts == {"right": None}


def test_what_a_notebook_makes_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    origin = provenance.this_process(tmp_path)
    told = (origin.script, origin.command, origin.model, origin.code)
    assert told == ("notebook", "python notebook", "notebook", "")


def test_the_record_is_one_for_all_default_folders(tmp_path: Path) -> None:
    own = layout.RELATED_DIR / "cloze" / "data" / "test_output"
    for folder in (layout.TEST_OUTPUT_DIR, layout.TEST_OUTPUT_DIR / "a", own, own / "mix"):
        assert record.results_path(folder) == layout.TEST_OUTPUT_DIR / NAME
    for folder in (tmp_path, own.parent, layout.RELATED_DIR / "cloze"):
        assert record.results_path(folder) == folder / NAME


def test_only_lines_with_the_right_fields_and_types_are_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The score of a related challenge may exceed 1, as a sum does, and it has no phase."""
    # Those that came later may be missing.
    later = {"code", "memory", "outcomes", "metric_name"}
    old = {name: value for name, value in asdict(RESULT).items() if name not in later}
    path = tmp_path / NAME
    task = {**old, "parts": {"right": 0.5, "wrong": None}, "seed": 3}
    related = {**old, "task": "debiasing", "phase": "", "score": 1.1175, "metric_name": "NDCG@50"}
    good = [json.dumps(line).encode() for line in (old, task, related)]
    damaged = dict(malformed.damage_record(good[1]))
    assert len(damaged) > 100
    changes: list[Any] = [
        *({"task": ""}, {"task": "<b>"}, {"phase": "local"}, {"metric_name": 3}),
        *({"score": -0.1}, {"score": 1e13}, {"task": 4, "phase": "local"}),
    ]
    damaged |= {str(change): json.dumps({**related, **change}).encode() for change in changes}
    for name, line in [*zip(("old", "task", "related"), good, strict=True), *damaged.items()]:
        path.write_bytes(line + b"\n")
        said = "" if line in good else f"{path}: ignored 1 invalid line\n"
        assert len(read_results(path)) == (line in good), name
        assert capsys.readouterr().err == said
    path.write_bytes(b"\n".join([good[0], b"[1]", b"", good[0], good[0][:40]]))
    assert read_results(path) == [RESULT] * 2
    assert capsys.readouterr().err == f"{path}: ignored 2 invalid lines\n"


@pytest.mark.parametrize("score", ["0.6", "", True, None, [0.6]])
def test_a_recorded_score_that_is_no_number_is_no_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], score: object
) -> None:
    line = {**asdict(RESULT), "score": score}
    (tmp_path / NAME).write_text(json.dumps(line) + "\n")
    assert read(tmp_path) == []
    assert capsys.readouterr().err == f"{tmp_path / NAME}: ignored 1 invalid line\n"


def test_a_line_of_a_former_version_is_read(tmp_path: Path) -> None:
    """It holds the command instead of script and options."""
    command = "python -m tools.blend --n 1 --n=2 a/b.parquet --local 'c d.parquet' e.parquet"
    line = {**asdict(RESULT), "made_by": command}
    del line["script"], line["options"]
    (tmp_path / NAME).write_text(json.dumps(line) + "\n")
    (found,) = read(tmp_path)
    files = ["a/b.parquet", "c d.parquet", "e.parquet"]
    assert found.options == {"n": "2", "files": files, "local": True}
    assert (found.script, found.name) == ("tools/blend.py", "majority --n 2 b c d e")
    (tmp_path / NAME).write_text(json.dumps({**line, "made_by": ""}) + "\n")
    assert [(one.script, one.options) for one in read(tmp_path)] == [("", {})]
