"""Task 3, run as a user runs it: rankings, their files, the evaluation against experts."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Run
from hypothesis import given
from hypothesis import strategies as st
from page_reading import read_page as check_page

from common import metrics
from common.submission import rank_by_quality

Fails = Callable[..., str]
Write = Callable[[str, str], Path]
EXPERTS = ["T1_ALR", "T2_CL", "T3_GF", "T4_MQ", "T5_NS"]


@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from([0.0, 0.5, 1.0, np.nan])),
                unique_by=lambda row: row[0], min_size=1))  # fmt: skip
def test_ranking_by_quality(rows: list[tuple[int, float]]) -> None:
    question, quality = (np.array(column) for column in zip(*rows, strict=True))
    ranking = rank_by_quality(question, quality)
    assert sorted(ranking) == list(range(1, len(rows) + 1))
    best_first = [rows[place] for place in np.argsort(ranking)]
    # Best first, unknown quality last, ties by QuestionId: Python's own sort agrees.
    key = [(np.isnan(value), -value if value == value else 0, number) for number, value in rows]
    expected = [rows[place] for place in sorted(range(len(rows)), key=key.__getitem__)]
    assert [number for number, _ in best_first] == [number for number, _ in expected]


def test_entropy_ranks_questions_that_nobody_answered_last(
    write: Write, tmp_path: Path, run: Run
) -> None:
    """Also behind those to which all gave the same answer, as the README says."""
    header = "QuestionId,UserId,IsCorrect,CorrectAnswer,AnswerValue\n"
    write("train.csv", header + "5,1,1,1,1\n5,2,1,1,1\n7,1,1,1,1\n7,2,0,1,2\n")
    write("template.csv", "QuestionId,ranking\n0,\n3,\n5,\n7,\n")
    done = run(
        ["task_3/sample_model_entropy.py", "--input_dir", tmp_path, "--train_data", "train.csv",
         "--submission_template_dir", tmp_path, "--submission_template_file", "template.csv",
         "--output_dir", tmp_path]
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "submission_task_3.csv").read_text()
    assert text == "QuestionId,ranking\n0,3\n3,4\n5,2\n7,1\n"


def test_entropy_ranking_on_simulated_answers(tiny_kit: Path, run: Run) -> None:
    for command in (["task_3/sample_model_entropy.py"], ["task_3/local_evaluation.py"]):
        done = run(command, kit=tiny_kit)
        assert done.returncode == 0, done.stderr
    path = tiny_kit / "submissions/submission_task_3.csv"
    submission = pd.read_csv(path)
    template = pd.read_csv(tiny_kit / "submission_templates/submission_task_3.csv")
    assert submission.columns.tolist() == ["QuestionId", "ranking"]
    assert submission.QuestionId.tolist() == template.QuestionId.tolist()
    answers = pd.read_csv(tiny_kit / "data/train_data/train_task_3_4.csv")
    shares = pd.crosstab(answers.QuestionId, answers.AnswerValue, normalize="index")
    entropy = -(shares * np.log2(shares.where(shares > 0))).sum(axis=1)
    expected = submission.QuestionId.map(entropy).fillna(0)
    assert submission.ranking.corr(expected, method="spearman") == pytest.approx(-1, abs=1e-3)
    with zipfile.ZipFile(path.with_suffix(".zip")) as archive:
        assert archive.namelist() == [path.name]

    # The evaluation agrees with a plain count.
    pairs = pd.read_csv(tiny_kit / "data/test_data/quality_response_remapped_public.csv")
    rank = submission.set_index("QuestionId").ranking
    left_is_better = rank[pairs.left].to_numpy() < rank[pairs.right].to_numpy()
    agreement = [
        np.mean(left_is_better[pairs[e].notna()] == (pairs[e].dropna() == 1)) for e in EXPERTS
    ]
    score = (tiny_kit / "data/test_output/scores_task_3_public.txt").read_text()
    assert float(score.removeprefix("score:")) == pytest.approx(max(agreement))
    for expert, share in zip(EXPERTS, agreement, strict=True):
        assert f"{expert:20} {share:.2f}" in done.stdout
    # Shares of 25 pairs are few numbers: more than 1 in 20 reach the percentile itself.
    sides = pairs.left.to_numpy(), pairs.right.to_numpy()
    floor = metrics.random_best_agreement(*sides, pairs[list(EXPERTS)].to_numpy(float).T)
    high = np.percentile(floor, 95)
    assert np.mean(floor > high) <= 0.05 < np.mean(floor >= high)
    assert f"at most 1 in 20 exceeds {high:.2f}" in done.stdout
    page = (tiny_kit / "data/test_output/scores_task_3_public.html").read_text(encoding="utf-8")
    assert len(check_page(page).charts) == 1
    for expert, share in zip(EXPERTS, agreement, strict=True):
        assert f"<title>{expert}: {share:.2f}</title>" in page


def test_the_seed_decides_the_random_ranking(tiny_kit: Path, run: Run, tmp_path: Path) -> None:
    for folder, seed in (("a", 0), ("b", 0), ("c", 1)):
        arguments = ["--seed", seed, "--output_dir", tmp_path / folder]
        assert run(["task_3/sample_model_random.py", *arguments], kit=tiny_kit).returncode == 0
    a, b, c = ((tmp_path / name / "submission_task_3.csv").read_bytes() for name in "abc")
    assert a == b
    assert a != c


# The guide's example: five pairs and three experts; two more experts have not judged. The
# questions are in no order and the ranks in another, so that nothing works by row position.
PAIRS = [(124, 10029), (11092, 3999), (844, 7491), (2748, 9882), (13001, 9115)]
RANKING = {
    10029: 9,
    124: 2,
    11092: 7,
    3999: 4,
    844: 10,
    7491: 1,
    9882: 6,
    2748: 3,
    9115: 8,
    13001: 5,
}
SIGNS = {"T1_ALR": ">><>>", "T2_CL": ">><<>", "T3_GF": ">><<<"}


@pytest.fixture
def example(write: Write, tmp_path: Path) -> list[object]:
    """Write the guide's example; return the arguments of its evaluation."""
    lines = [",Unnamed: 0,left,right," + ",".join(EXPERTS)]
    for number, (left, right) in enumerate(PAIRS):
        votes = ["1" if SIGNS[name][number] == ">" else "2" for name in SIGNS]
        lines.append(f"{number},{number},{left},{right},{','.join(votes)},,")
    write("pairs.csv", "\n".join(lines) + "\n")
    rows = "\n".join(f"{question},{rank}" for question, rank in RANKING.items())
    write("submission_task_3.csv", f"QuestionId,ranking\n{rows}\n")
    questions = "\n".join(f"{question}," for question in sorted(RANKING))
    write("template/submission_task_3.csv", f"QuestionId,ranking\n{questions}\n")
    return ["task_3/local_evaluation.py", "--input_dir", tmp_path, "--ref_data", "pairs.csv",
            "--submission_dir", tmp_path, "--submission_template_dir", tmp_path / "template",
            "--output_dir", tmp_path / "out"]  # fmt: skip


def test_the_guides_example(example: list[object], run: Run, tmp_path: Path) -> None:
    done = run(example)
    assert done.returncode == 0, done.stderr
    shares = [line.split()[1] for line in done.stdout.splitlines()[:5]]
    assert shares == ["0.80", "0.60", "0.40", "none", "none"]
    assert (tmp_path / "out/scores_task_3_public.txt").read_text() == "score:0.8\n"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("124,2\n", "", "1 of 10 questions are missing, first QuestionId 124"),
        ("124,2\n", "125,2\n124,2\n", "row 3 is 125, which is not in the template"),
        ("124,2\n", "124,2\n124,2\n", "row 4 repeats 124"),
        ("124,2\n", "124,1\n", "row 7 repeats rank 1 (1 such rows) and rank 2 is missing"),
        ("124,2\n", "124,11\n", "row 3 is 11 (1 such rows), expected every rank from 1 to 10"),
        ("124,2\n", "124,0\n", "row 3 is '0', expected a whole number of at least 1"),
        ("124,2\n", "124,\n", "row 3 is empty"),
        ("124,2\n", "124,second\n", "row 3 is 'second'"),
        ("ranking", "Ranking", "'ranking' is missing, found: QuestionId, Ranking; is it"),
    ],
)
def test_no_score_for_a_faulty_ranking(
    example: list[object], fails: Fails, tmp_path: Path, old: str, new: str, expected: str
) -> None:
    path = tmp_path / "submission_task_3.csv"
    path.write_text(path.read_text().replace(old, new, 1))
    line = fails(example)
    assert str(path) in line
    assert expected in line
    assert not (tmp_path / "out").exists()


def test_judgements_of_other_data_are_refused(
    example: list[object], fails: Fails, tmp_path: Path
) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(path.read_text().replace("10029", "77"))
    assert "QuestionId 77 is judged, but it is not in" in fails(example)


def test_real_experts(real_data: Path, run: Run, tmp_path: Path) -> None:
    folder = real_data / "eedi_tasks_3_4"
    questions = pd.read_csv(folder / "metadata/question_metadata_task_3_4.csv").QuestionId
    template = tmp_path / "template"
    template.mkdir()
    questions.sort_values().to_frame().assign(ranking="").to_csv(
        template / "submission_task_3.csv", index=False
    )
    paths = ["--submission_template_dir", template, "--output_dir", tmp_path]
    done = run(["task_3/sample_model_entropy.py", "--input_dir", folder / "train_data", *paths])
    assert done.returncode == 0, done.stderr
    evaluation = ["--input_dir", folder / "test_data", "--submission_dir", tmp_path]
    done = run(["task_3/local_evaluation.py", *evaluation, *paths])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("of 25 pairs") == 5
    # What random rankings reach with these 25 pairs, known from the challenge's files.
    assert (
        "random rankings reach 0.59 on average as the best of 5, at most 1 in 20 exceeds 0.72"
        in (done.stdout)
    )
