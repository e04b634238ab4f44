"""Comparing submissions, entries and lines of the record, from the command line."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Run
from recorded import RESULT

from common import layout, schema
from common.compare import find, score_ranking
from common.errors import InputError
from common.scores import outcomes

COMPARE = ["-m", "common.compare"]


@pytest.fixture(scope="module")
def scored_kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    """Return a kit with scores of all tasks, and some submissions kept beside; only read it."""
    kit = tmp_path_factory.mktemp("scored") / "kit"
    shutil.copytree(simulated_kit, kit)

    def ok(*arguments: str) -> None:
        done = run(arguments, kit=kit)
        assert done.returncode == 0, done.stderr

    ok("task_1/local_data_split.py")
    ok("task_4/local_data_split.py")
    for task, model in ((1, "majority"), (1, "matrix_factorization"), (2, "majority")):
        ok(f"task_{task}/sample_model_{model}.py", "--local")
        ok(f"task_{task}/local_evaluation.py")
        written = kit / "data/test_output"
        for suffix in ("csv", "zip"):
            source = written / f"test_submission_task_{task}.{suffix}"
            shutil.copyfile(source, kit / f"{task}_{model}.{suffix}")
    ok("task_1/sample_model_majority.py")
    ok("task_1/local_evaluation.py", "--phase", "public")
    for model in ("random", "entropy"):
        ok(f"task_3/sample_model_{model}.py")
        ok("task_3/local_evaluation.py")
    ok("task_4/numpy/train_model.py", "--local")
    ok("task_4/numpy/local_evaluation.py", "--skip_curve")
    return kit


@pytest.fixture
def compare(scored_kit: Path, run: Run) -> Callable[..., str]:
    def words(*arguments: str) -> str:
        done = run([*COMPARE, *arguments], kit=scored_kit, cwd=scored_kit)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    return words


@pytest.fixture
def refused(scored_kit: Path, fails: Callable[..., str]) -> Callable[..., str]:
    return lambda *words: fails([*COMPARE, *words], kit=scored_kit, cwd=scored_kit)


def test_all_ways_to_name_a_score_say_the_same(compare: Callable[..., str]) -> None:
    ways = [
        ("1", "2"),
        ("task_1/sample_model_majority.py", "matrix_factorization"),
        ("1_majority.csv", "1_matrix_factorization.csv"),
        ("task_1/sample_model_majority.py", "1_matrix_factorization.csv"),
        ("1", "matrix_factorization", "--phase", "local"),
    ]
    found = []
    for words in ways:
        text = compare(*words)
        found.append(text[text.index("task 1, local split, simulated answers") :])
    assert len({*found}) == 1
    better, low, high = re.findall(
        r"B is better by (\S+) \(95 % interval (\S+) to (\S+)\)", found[0]
    )[0]
    assert 0 < float(low) < float(better) < float(high) < 0.2
    assert "bootstrap, the students drawn again 2,000 times" in found[0]
    assert "McNemar's exact test: p < 0.0001" in found[0]


def test_the_scores_are_those_of_the_evaluation(
    scored_kit: Path, compare: Callable[..., str]
) -> None:
    lines = (scored_kit / "data/test_output/results.jsonl").read_text().splitlines()
    listed = compare().splitlines()
    assert len(listed) == len(lines) == 7
    for number, (line, shown) in enumerate(zip(map(json.loads, lines), listed, strict=True), 1):
        assert shown.split()[:2] == [str(number), f"{line['score']:.4f}"]
        assert compare(str(number), str(number)).startswith(f"A  {line['score']:.4f}  ")
    assert compare("--phase", "public").count("\n") == 3


def test_the_scores_on_one_test_set_are_chosen(compare: Callable[..., str]) -> None:
    """The latest score of the majority model is on the public answers."""
    assert "task 1, local split" in compare("task_1/sample_model_majority.py", "2")
    assert "task 1, public test" in compare("task_1/sample_model_majority.py", "4")
    text = compare("submissions/submission_task_1.zip", "4", "--phase", "public")
    assert "no difference can be told: B - A = 0.0000" in text


def test_tasks_3_and_4(compare: Callable[..., str]) -> None:
    text = compare("random", "entropy")
    assert "pairs tell only rankings apart that differ by about 0." in text
    entropy = text.splitlines()[1].split()[1]
    again = compare("submissions/submission_task_3.csv", "submissions/submission_task_3.zip")
    assert again.count(entropy) == 2
    text = compare("task_4/numpy", "numpy")
    assert "targets may not be asked" in text
    assert "targets of " in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--phase", "private"], "results.jsonl: holds no scores of phase private to compare"),
        (["1"], "1 scores to compare, expected two, A and B"),
        (["1", "3"], "1 is of task 1 and 3 of task 2, expected two scores of one task"),
        (["2", "4"], r"2 was scored on .* answers of .* \(local split, .*two different test sets"),
        (["1", "8"], "8: data/test_output/results.jsonl has 7 scores, expected a number up to"),
        (["1", "2", "--phase", "public"], "1: is of phase local, expected one of phase public"),
        (["1", "0"], "0: data/test_output/results.jsonl has 7 scores"),
        (["majority", "2"], r"'majority' may be any of these: \d \(majority, task 1\), \d \(maj"),
        (["nothing", "2"], "'nothing': is no file and no model in"),
        (["task_1/local_evaluation.py", "2"], "has no score in data/test_output/results.jsonl"),
        (["task_4/pytorch", "7", "--phase", "public"], "task_4/pytorch: has no score of phase"),
        (["1_majority.csv", "gone.csv"], "gone.csv: file not found"),
        (["1_majority.csv", "2_majority.csv"], "1_majority.csv is of task 1 and 2_majority.csv of"),
        (["data/test_input/valid_task_1_2.csv", "1"], "expected a submission, with exactly one"),
        (["1_majority.csv", "4", "--phase", "public"], "pairs are missing"),
        (["1_majority.csv", "1", "--phase", "cross-validation"], "expected another --phase"),
    ],
)
def test_what_cannot_be_compared(
    refused: Callable[..., str], words: list[str], expected: str
) -> None:
    assert re.search(expected, refused(*words))


def test_outcomes_that_are_not_there(
    scored_kit: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    record = (scored_kit / "data/test_output/results.jsonl").read_text().splitlines()
    old = {k: v for k, v in json.loads(record[0]).items() if k != "outcomes"}
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join([json.dumps(old), *record[1:]]) + "\n")
    line = fails([*COMPARE, "1", "2", "--results", path])
    assert "it was not kept which answers were predicted right" in line
    assert ".npz: file not found" in fails([*COMPARE, "2", "2", "--results", path])
    kept = tmp_path / "outcomes"
    shutil.copytree(scored_kit / "data/test_output/outcomes", kept)
    file = kept / f"{json.loads(record[1])['outcomes']}.npz"
    assert outcomes.read(file).distinct
    file.write_bytes(b"PK")
    assert "is damaged" in fails([*COMPARE, "2", "2", "--results", path])
    path.unlink()
    assert "file not found" in fails([*COMPARE, "--results", path])


def test_scores_of_related_challenges_are_passed_over_or_refused(tmp_path: Path) -> None:
    related = replace(RESULT, task="student_response", phase="", metric_name="macro F1")
    path = tmp_path / "results.jsonl"
    (found,) = find("majority", [RESULT, related], path, None)
    assert found.task == 1
    for word in ("2", "word_svm"):
        with pytest.raises(InputError, match="is scored in Student response, expected scores of"):
            find(word, [RESULT, replace(related, model="word_svm", made_by="")], path, None)
    for entry in ("sample_model_mix.py", "README.md"):
        with pytest.raises(InputError, match="is of a related challenge"):
            find(str(layout.RELATED_DIR / "cloze" / entry), [], path, None)


def test_pairs_that_nobody_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the evaluation of task 3, whose reading of judgements this is."""
    monkeypatch.setattr(layout, "TEMPLATE_DIR", tmp_path)
    (tmp_path / layout.TEMPLATE_TASK_3).write_text("QuestionId,ranking\n7,\n5,\n")
    ranking = tmp_path / "mine.csv"
    ranking.write_text("QuestionId,ranking\n5,1\n7,2\n")
    judged = tmp_path / "judged.csv"
    header = "left,right," + ",".join(schema.EXPERT_NAMES) + "\n"
    judged.write_text(f"{header}5,7,1,2,,1,1\n")
    assert score_ranking(ranking, judged).right.tolist() == [True, False, True, True]
    judged.write_text(f"{header}5,7,,,,,\n")
    with pytest.raises(InputError, match="holds no judgement in T1_ALR"):
        score_ranking(ranking, judged)
