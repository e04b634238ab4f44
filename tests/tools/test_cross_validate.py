"""Cross-validation: the entry's own script on every fold, one line of the record, no traces."""

import re
import shutil
import statistics
import tempfile
from pathlib import Path

from common.adaptive.entry_files import ENTRY_FILE
from common.evaluation import outcomes
from tools.results import read_results

import pytest
from conftest import fails, succeeds
from recorded import made_by

VALIDATE = ["-m", "tools.cross_validate"]
TRAIN = "data/train_data/train_task_1_2.csv"
RECORD = "data/test_output/results.jsonl"
# An entry that starts in no time, as it imports nothing of the kit: always the same prediction. It
# knows none of the answers that it predicts.
ENTRY = """
import argparse, csv, json, sys
from hashlib import sha256
from pathlib import Path

def build_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--metadata_dir")
    return parser

def main():
    flags = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    folder = Path(flags["--output_dir"])
    known, asked = ([row["UserId"] + "," + row["QuestionId"]
                     for row in csv.DictReader((folder / flags[name]).open())]
                    for name in ("--train_data", "--submission_template_file"))
    assert known and asked and not {{*known}} & {{*asked}}
    assert (flags.get("--metadata_dir"), flags.get("--dimensions")) == ({metadata!r}, {flag!r})
    lines = ["UserId,QuestionId,{column}", *(pair + ",{value}" for pair in asked)]
    text = "\\n".join(lines).encode()
    (folder / "submission_task_{task}.csv").write_bytes(text)
    files = dict(it=dict(bytes=len(text), sha256=sha256(text).hexdigest()))
    origin = dict(script="x.py", options=dict(), seconds=3, memory=1000, files=files)
    (folder / "submission_task_{task}.json").write_text(json.dumps(origin))

if __name__ == "__main__":
    main()
"""


def always(kit: Path, task: int, value: int, flag: str | None = None) -> str:
    """Write an entry, which is told of metadata if the kit has any."""
    metadata = next(map(str, kit.glob("data/metadata")), None)
    told = {"task": task, "value": value, "flag": flag, "metadata": metadata}
    name = f"task_{task}/always_{value}.py"
    column = {1: "IsCorrect", 2: "AnswerValue"}[task]
    (kit / name).write_text(ENTRY.format(**told, column=column))
    return name


def files_of(kit: Path) -> set[str]:
    """Return the files that are no caches or outcomes."""
    paths = (path.relative_to(kit) for path in kit.rglob("*") if path.is_file())
    return {str(path) for path in paths if not {"__pycache__", "outcomes"} & {*path.parts}}


def test_on_every_fold(tiny_kit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    one, zero, two = (always(tiny_kit, *word) for word in ((1, 1), (1, 0), (2, 2, "2")))
    before = files_of(tiny_kit)
    repeated, numpy_rules = "2 folds, 2 repeats, seed 3", "targets may be asked, unobserved = -1"
    # What is run; model, rules, command, seed, seconds and memory recorded.
    for words, *expected in (
        (one, "always_1", "5 folds, seed 0", one, None, 3, 1000),
        (zero, "always_0", "5 folds, seed 0", zero, None, 3, 1000),
        (f"{two} --folds 2 --repeats 2 --seed 3 -- --dimensions 2 --seed 5",
         "always_2", repeated, f"{two} --dimensions 2 --seed 5", 5, 3, 1000),
        (f"{one} --folds 2 --metadata_dir {tiny_kit}/data/metadata",
         "always_1", "2 folds, seed 0, metadata of data/metadata", one),
        ("task_4/numpy --folds 2 --targets_queryable",
         "numpy", f"{numpy_rules}, 2 folds, seed 0", "task_4/numpy/train_model.py", None),
    ):  # fmt: skip
        printed = succeeds([*VALIDATE, *words.split()], kit=tiny_kit, cwd=tiny_kit)
        lines = read_results(tiny_kit / RECORD)
        line = lines[-1]
        command = made_by(line).removeprefix("python ")
        found = [line.model, line.rules, command, line.seed, line.seconds, line.memory]
        assert found[: len(expected)] == expected
        assert line.command == f"python -m tools.cross_validate {words}"
        assert (line.phase, line.simulated) == ("cross-validation", True)
        scores = list(line.parts.values())
        assert line.score == pytest.approx(statistics.fmean(scores))
        assert f"score {line.score:.4f} ± {statistics.stdev(scores):.4f}" in printed
        assert all(f"{part}: {score:.4f}\n" in printed for part, score in line.parts.items())
    assert list(lines[0].parts) == [f"fold {k}" for k in range(1, 6)]
    assert list(lines[2].parts) == [f"repeat {r}, fold {k}" for r in (1, 2) for k in (1, 2)]
    # Each repeat deals again.
    assert len({*lines[2].parts.values()}) == 4
    # Nothing but the record is left behind.
    assert list(temporary.iterdir()) == []
    assert files_of(tiny_kit) - before == {RECORD}

    # Every answer is predicted once: "right" is right as often as the answers are.
    header, *rows = (line.split(",") for line in (tiny_kit / TRAIN).read_text().splitlines())
    n_right = sum(row[header.index("IsCorrect")] == "1" for row in rows)
    for line, n in zip(lines, (n_right, len(rows) - n_right), strict=False):
        kept = outcomes.read(tiny_kit / f"data/test_output/outcomes/{line.outcomes}.npz")
        assert (kept.distinct, kept.right.sum(), len(kept.right)) == (True, n, len(rows))
    # Of the same folds: two entries can be compared.
    compared = succeeds(["-m", "tools.compare", "2", "1"], kit=tiny_kit)
    assert "task 1, cross-validation, 5 folds, seed 0, simulated" in compared
    assert "B is better by" in compared


@pytest.fixture(scope="module")
def faulty_kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit with entries that fail, each in its way: nothing is ever written there."""
    kit = tmp_path_factory.mktemp("faulty") / "kit"
    shutil.copytree(simulated_kit, kit, ignore=shutil.ignore_patterns("metadata"))
    (kit / "task_1/my_silence.py").touch()
    gap = (kit / always(kit, 1, 1)).read_text().replace("in asked)]", "in asked[:1])]")
    (kit / "task_1/my_gap.py").write_text(gap)
    (kit / "task_4/my_fault").mkdir()
    (kit / "task_1/my_fault.py").write_text("raise SystemExit(7)\n")
    long_story = "print('x\\n' * 3_000_000)\nraise SystemExit('error: the end')\n"
    (kit / "task_4/my_fault/train_model.py").write_text(long_story)
    shutil.copytree(kit / "task_4/numpy", kit / "task_4/my_breach")
    breach, ask = kit / "task_4/my_breach" / ENTRY_FILE, "self.model.select(can_query)"
    breach.write_text(breach.read_text().replace(ask, f"{ask} * 0 - 1"))
    return kit


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("task_1/my_fault.py", "^task_1/my_fault.py: ended with exit code 7 on fold 1: it printed"),
        ("task_1/my_silence.py", "has not written submission_task_1.csv on fold 1"),
        ("task_1/my_gap.py", r"my_gap.py: fold 1: submission_task_1.csv: \d+ of \d+ pairs are mi"),
        ("task_1/sample_model_majority.py -- --nonsense 1", "unrecognized arguments: --nons"),
        *(
            (f"task_1/my_gap.py -- --dimensions 2 {flag}", f"^'{flag}' after --: says w")
            for flag in ("--train_data=train_task_1_2.csv", "--train", "--local")
        ),
        ("task_4/my_fault -- --more_train_data valid_task_4.csv", "^'--more_train_data' after --"),
        ("task_1/my_gap.py --metadata_dir gone", "gone: not found, expected a folder of metadata"),
        ("task_1/my_fault.py --unobserved 0", "expected no flags of task 4"),
        ("task_1", "task_1/train_model.py: file not found"),
        ("task_3/sample_model_random.py", "expected a script in task_1/ or task_2/"),
        ("task_4/numpy --folds 500000", "--folds is 500000, expected a whole number"),
        ("task_4/my_breach", "my_breach: fold 1: IsTarget, round 1, select_questions: student 0"),
        ("task_4/my_fault", "^task_4/my_fault/train_model.py: ended with .* on fold 1: the end$"),
    ],
)
def test_what_cannot_be_cross_validated(faulty_kit: Path, words: str, expected: str) -> None:
    line = fails([*VALIDATE, *words.split()], kit=faulty_kit, cwd=faulty_kit)
    assert re.search(expected, line)
    assert not (faulty_kit / "data/test_output").exists()
