"""Rankings of task 3, made and scored as a user does: sample models, evaluation, comparison."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from common import metrics

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from ability import load_module
from conftest import Write, answers_frame, fails, succeeds
from page_reading import Page, read_page
from planted_answers import pair_all
from run_scripts import ROOT
from sample_blocks import needs_blocks

# The fixture `rank` is a function that runs a sample model and returns the rank of each question.
Rank = Callable[..., pd.Series]
EXPERTS = ["T1_ALR", "T2_CL", "T3_GF", "T4_MQ", "T5_NS"]


@pytest.fixture(scope="module")
def answers(simulated_kit: Path) -> pd.DataFrame:
    """Return the simulated training answers of tasks 3 and 4."""
    return pd.read_csv(simulated_kit / "data/train_data/train_task_3_4.csv")


@pytest.fixture
def rank(simulated_kit: Path, tmp_path: Path) -> Rank:
    """Return a function that runs a sample model and returns the rank of every question.

    By default the model reads the simulated answers.
    """

    def rank_by(model: str, *flags: object) -> pd.Series:
        script = f"task_3/sample_model_{model}.py"
        succeeds([script, "--output_dir", tmp_path, *flags], kit=simulated_kit)
        return pd.read_csv(tmp_path / "submission_task_3.csv", index_col="QuestionId").ranking

    return rank_by


# ---- Sample models -----------------------------------------------------------------------------


def correlation(ranking: pd.Series, value: pd.Series) -> float:
    """Return the rank correlation of a ranking with a feature; both have QuestionId as index.

    It is -1 if the questions with the highest values rank first, because rank 1 is the best.
    """
    return float(ranking[value.index].corr(value, method="spearman"))


@needs_blocks("task_3/sample_model_entropy.py")
def test_entropy_ranks_by_the_entropy_of_the_options(rank: Rank, answers: pd.DataFrame) -> None:
    shares = pd.crosstab(answers.QuestionId, answers.AnswerValue, normalize="index")
    entropy = -(shares * np.log2(shares.where(shares > 0))).sum(axis=1)
    assert correlation(rank("entropy"), entropy) == pytest.approx(-1, abs=1e-3)


@needs_blocks("task_3/sample_model_confidence.py")
def test_confidence_ranks_by_the_mean_confidence(
    simulated_kit: Path, rank: Rank, answers: pd.DataFrame
) -> None:
    metadata = pd.read_csv(simulated_kit / "data/metadata/answer_metadata_task_3_4.csv")
    stated = answers.merge(metadata.dropna(subset=["AnswerId", "Confidence"]), on="AnswerId")
    confidence = stated.groupby("QuestionId").Confidence
    # The model shrinks the means of questions with few stated confidences, which changes the order
    # of these questions. So only half of the questions are compared: those with the most stated
    # confidences.
    is_well_known = confidence.size() >= confidence.size().median()
    assert correlation(rank("confidence"), confidence.mean()[is_well_known]) < -0.8


@needs_blocks("task_3/sample_model_rank_average.py")
def test_rank_average_ranks_by_the_sum_of_the_features_ranks(
    rank: Rank, answers: pd.DataFrame
) -> None:
    by_rate = rank("rank_average", "--features", "correct_rate")
    assert correlation(by_rate, answers.groupby("QuestionId").IsCorrect.mean()) < -0.95
    by_correlation = rank("rank_average", "--features", "point_biserial")
    by_both = rank("rank_average", "--features", "correct_rate", "point_biserial")
    # Ties are broken by QuestionId.
    assert by_both.equals((by_rate + by_correlation).rank(method="first").astype(int))


@needs_blocks("task_3/sample_model_rank_average.py")
def test_rank_average_puts_questions_with_few_subjects_first(
    simulated_kit: Path, rank: Rank, answers: pd.DataFrame
) -> None:
    """The fewer subjects a question has, the earlier it ranks; ties are broken by QuestionId."""
    questions = pd.read_csv(simulated_kit / "data/metadata/question_metadata_task_3_4.csv")
    # SubjectId is a list of subjects, separated by commas. Sorting needs only the number of commas.
    questions["n_commas"] = questions.SubjectId.str.count(",")
    expected = questions.sort_values(["n_commas", "QuestionId"]).QuestionId
    ranked = rank("rank_average", "--features", "number_of_subjects").sort_values().index
    # Questions without answers rank after all others, so they are left out here.
    answered = {*answers.QuestionId}
    ranked_and_answered = [question for question in ranked if question in answered]
    expected_and_answered = [question for question in expected if question in answered]
    assert ranked_and_answered == expected_and_answered


@needs_blocks("task_3/sample_model_rank_average.py")
def test_the_rank_average_puts_a_question_last_whose_feature_is_nan(
    rank: Rank, tmp_path: Path
) -> None:
    """Nobody errs on question 0, so its point-biserial correlation is NaN.

    The other questions, 1 to 5, have a correlation.
    """
    student, question = pair_all(n_students=60, n_questions=6)
    is_correct = np.random.default_rng(0).integers(0, 2, len(student))
    is_correct[question == 0] = 1
    # Option 1 is right; wrong answers are option 2.
    right_option = 1
    option = 2 - is_correct
    table = answers_frame(student, question, is_correct, option, right_option)
    table.to_csv(tmp_path / "train.csv", index=False)
    files = ["--input_dir", tmp_path, "--train_data", "train.csv"]
    ranking = rank("rank_average", *files, "--features", "point_biserial")
    # Questions 0 to 5 have answers, so they take the ranks 1 to 6. Question 0 is the last of these,
    # because its correlation is NaN.
    assert ranking.loc[0] == 6
    assert sorted(ranking.loc[range(1, 6)]) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(model, marks=needs_blocks(f"task_3/sample_model_{model}.py"))
        for model in ("matrix_factorization", "partial_vae")
    ],
)
def test_the_questions_that_depend_on_ability_rank_first(
    rank: Rank, tmp_path: Path, model: str
) -> None:
    """The six questions that tell able students from others get the first six ranks.

    Whether answers to questions 0 to 5 are right depends on the student's ability, which is 0 on
    average. Answers to questions 6 to 11 are right by chance. About half of the answers to any
    question are right.
    """
    rng = np.random.default_rng(0)
    n_students = 300
    student, question = pair_all(n_students, n_questions=12)
    ability = rng.standard_normal(n_students)
    logit = np.where(question < 6, 2 * ability[student], 0)
    p_right = 1 / (1 + np.exp(-logit))
    is_right = rng.random(len(student)) < p_right
    right_option = 1
    wrong_option = rng.integers(2, 5, len(student))
    option = np.where(is_right, right_option, wrong_option)
    table = answers_frame(student, question, is_right.astype(int), option, right_option)
    table.to_csv(tmp_path / "train.csv", index=False)
    ranking = rank(model, "--input_dir", tmp_path, "--train_data", "train.csv")
    # `loc` selects the questions 0 to 5 by their QuestionId. Rank 1 is the best.
    assert sorted(ranking.loc[range(6)]) == [1, 2, 3, 4, 5, 6]


@needs_blocks("task_3/sample_model_matrix_factorization.py")
def test_an_answer_tells_most_if_half_the_students_are_right_and_abilities_decide() -> None:
    """An answer tells most about a student's abilities if two conditions hold.

    The conditions are: half of the students answer the question correctly, and P(right) depends
    strongly on the abilities. P(right) is sigmoid(easiness + abilities · loadings).
    """
    # For each question, its easiness and its loadings on two abilities.
    questions = {
        # Half of the students answer correctly. P(right) does not depend on the abilities.
        "no loadings": [0, 0, 0],
        # Half of the students answer correctly. P(right) depends on the abilities.
        "small loadings": [0, 0.6, 0.8],
        "large loadings": [0, 1.2, 1.6],
        # Most students answer correctly.
        "large loadings, easy": [2, 1.2, 1.6],
        # Nearly all students answer correctly.
        "small loadings, very easy": [9, 0.6, 0.8],
    }
    values = matrix_factorization().expected_information(np.array(list(questions.values())))
    information = dict(zip(questions, values, strict=True))
    assert information["no loadings"] == pytest.approx(0, abs=1e-12)
    increasing = [
        "no loadings",
        "small loadings, very easy",
        "small loadings",
        "large loadings, easy",
        "large loadings",
    ]
    assert (np.diff([information[name] for name in increasing]) > 0).all()


@needs_blocks("task_3/sample_model_matrix_factorization.py")
def test_the_expected_information_is_a_mean_over_students() -> None:
    """The information is an answer's entropy minus its mean entropy given the abilities.

    Given the abilities, the answer is right with probability p = sigmoid(easiness + abilities ·
    loadings), and its entropy in bits is -p log₂ p - (1 - p) log₂(1 - p). The sample model by
    matrix factorisation computes the information. This test estimates the mean entropy from
    abilities that are drawn at random, and compares the result.
    """
    easiness = 0
    loadings = np.array([1.2, 1.6])
    question = np.array([[easiness, *loadings]])
    (information,) = matrix_factorization().expected_information(question)

    abilities = np.random.default_rng(0).standard_normal((100_000, 2))
    p = 1 / (1 + np.exp(-easiness - abilities @ loadings))
    entropy = -(p * np.log2(p) + (1 - p) * np.log2(1 - p))
    # Half of the answers are right, so an answer has an entropy of one bit if the abilities are
    # unknown.
    entropy_without_abilities = 1
    expected = entropy_without_abilities - entropy.mean()
    # The entropy given the abilities has a standard deviation below 0.35 over the drawn students.
    # So its mean over 100,000 students has a standard error of 0.001.
    assert information == pytest.approx(expected, abs=0.004)


def matrix_factorization() -> ModuleType:
    """Return the module of the sample model by matrix factorization."""
    script = ROOT / "task_3/sample_model_matrix_factorization.py"
    return load_module(script, "task_3_matrix_factorization")


@pytest.mark.parametrize(
    ("model", "flags", "missing"),
    [
        pytest.param(
            "confidence",
            [],
            "answer_metadata_task_3_4.csv",
            marks=needs_blocks("task_3/sample_model_confidence.py"),
        ),
        pytest.param(
            "rank_average",
            ["--features", "number_of_subjects"],
            "question_metadata_task_3_4.csv",
            marks=needs_blocks("task_3/sample_model_rank_average.py"),
        ),
    ],
)
def test_metadata_that_a_feature_needs_must_be_there(
    simulated_kit: Path, tmp_path: Path, model: str, flags: list[str], missing: str
) -> None:
    command = [f"task_3/sample_model_{model}.py", *flags, "--metadata_dir", tmp_path]
    error = fails([*command, "--output_dir", tmp_path / "out"], kit=simulated_kit)
    assert f"{missing}: file not found" in error
    assert not (tmp_path / "out").exists()


@needs_blocks("task_3/sample_model_confidence.py", "task_3/sample_model_rank_average.py")
def test_metadata_of_the_default_answers_are_not_used_for_other_answers(
    simulated_kit: Path, rank: Rank, tmp_path: Path, answers: pd.DataFrame
) -> None:
    """With answers of the user (--input_dir), the kit's own metadata are not read.

    Models that need metadata then ask for --metadata_dir; other models run.
    """
    path = tmp_path / "train_task_3_4.csv"
    answers.to_csv(path, index=False)
    out = tmp_path / "out"
    command = ["task_3/sample_model_confidence.py", "--input_dir", tmp_path, "--output_dir", out]
    assert fails(command, kit=simulated_kit) == (
        f"{path}: the feature mean_confidence needs "
        "answer_metadata_task_3_4.csv of the same data; give its folder with --metadata_dir"
    )
    assert not out.exists()
    # This model runs, because the default features of rank_average need no metadata. If it ended
    # with an error, `rank` would fail.
    rank("rank_average", "--input_dir", tmp_path)


# ---- Evaluation by experts ---------------------------------------------------------------------

# The example of the challenge's guide for participants: five pairs, three experts and a ranking.
# Pairs and ranking are not sorted: a script that matched rows by position would fail.
PAIRS = """,Unnamed: 0,left,right,Ann,Ben T.,3
0,0,124,10029,1,1,1
1,1,13001,9115,1,1,2
2,2,844,7491,2,2,2
3,3,2748,9882,1,2,2
4,4,11092,3999,1,1,1
"""
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


@pytest.fixture
def judged(write: Write, tmp_path: Path) -> list[object]:
    """Return the command that scores `RANKING` by the experts' judgements in pairs.csv.

    A test may replace pairs.csv, which holds `PAIRS`.
    """
    table = pd.DataFrame(RANKING.items(), columns=["QuestionId", "ranking"])
    table.to_csv(tmp_path / "submission_task_3.csv", index=False)
    table.sort_values("QuestionId").to_csv(tmp_path / "template.csv", index=False)
    write("pairs.csv", PAIRS)
    flags = ["--input_dir", tmp_path, "--ref_data", "pairs.csv", "--submission_dir", tmp_path]
    flags += ["--submission_template_dir", tmp_path, "--submission_template_file", "template.csv"]
    return ["task_3/local_evaluation.py", *flags, "--output_dir", tmp_path / "out"]


def test_the_score_is_the_agreement_with_the_best_expert(
    judged: list[object], tmp_path: Path
) -> None:
    output = succeeds(judged)
    shares = re.findall(r"^(\S.*?)  +(\d\.\d\d)", output, re.M)[:3]
    assert shares == [("Ann", "0.80"), ("Ben T.", "0.60"), ("3", "0.40")]
    assert (tmp_path / "out/scores_task_3_own.txt").read_text() == "score:0.8\n"


def test_the_page_shows_disputed_pairs_and_the_most_contested_first(
    judged: list[object], tmp_path: Path
) -> None:
    """The more experts contradict the ranking on a pair (✗), the more contested the pair is.

    `judged` is the command that scores RANKING by the experts' judgements in PAIRS. An expert
    contradicts the ranking on a pair if they prefer the question that it ranks lower.
    """
    succeeds(judged)
    page = read_page((tmp_path / "out/scores_task_3_own.html").read_text())
    disputed = page.table("Pairs on which ranking and experts disagree")
    assert disputed.columns == ["ranked better", "worse", "Ann", "Ben T.", "3"]
    assert disputed.rows == [
        # All experts prefer question 11092 (rank 7) to question 3999 (rank 4).
        ["3999 rank 4", "11092 rank 7", "✗", "✗", "✗"],
        # All experts prefer question 11092 (rank 7) to question 3999 (rank 4).
        ["2748 rank 3", "9882 rank 6", "✓", "✗", "✗"],
        # Ben T. and expert 3 prefer question 9882 to question 2748.
        ["13001 rank 5", "9115 rank 8", "✓", "✓", "✗"],
    ]
    caption = "3 of 5 pairs of QuestionIds, the most contested first; no expert contradicts the "
    assert caption in page.text
    assert "on the other 2." in page.text


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (PAIRS.replace("10029", "77", 1), "QuestionId 77 is judged, but it is not in"),
        (
            PAIRS.replace("1,1,2\n", "1,1,x\n", 1),
            "column '3': row 3 is 'x', expected a whole number from 1 to 2 or",
        ),
        (PAIRS.replace("Ann", "left", 1), "column 'left'"),
        (PAIRS.replace("left", "links", 1), "column 'left' is missing"),
        (
            "left,right\n124,844\n",
            "holds no judgement, expected beside left and right a column for",
        ),
    ],
    ids=["other question", "no judgement", "column twice", "column renamed", "no expert"],
)
def test_files_that_hold_no_judgements_of_these_questions_are_refused(
    write: Write, judged: list[object], tmp_path: Path, pairs: str, message: str
) -> None:
    write("pairs.csv", pairs)
    assert message in fails(judged)
    assert not list((tmp_path / "out").glob("scores*"))


# The judgements in `PAIRS`, with some cells empty. Ann has not judged the first pair, on which she
# would have agreed with the ranking. The last two experts have judged nothing.
WITH_EMPTY_JUDGEMENTS = """,Unnamed: 0,left,right,Ann,Ben T.,3,T4_MQ,X
0,0,124,10029,,1,1,,
1,1,13001,9115,1,1,2,,
2,2,844,7491,2,2,2,,
3,3,2748,9882,1,2,2,,
4,4,11092,3999,1,1,1,,
"""


@dataclass(frozen=True)
class Score:
    """The score of `RANKING` on the terminal, in the text file and on the page."""

    # The printed line of each expert.
    lines: list[str]
    # The content of the text file.
    text: str
    page: Page


@pytest.fixture
def score_with_empty(write: Write, judged: list[object], tmp_path: Path) -> Callable[..., Score]:
    """Return a function that scores `RANKING` by the judgements in `WITH_EMPTY_JUDGEMENTS`.

    The arguments of the function are further flags of the evaluation.
    """
    write("pairs.csv", WITH_EMPTY_JUDGEMENTS)

    def score(*flags: str) -> Score:
        _, *lines = succeeds([*judged, *flags]).splitlines()
        text = (tmp_path / "out/scores_task_3_own.txt").read_text()
        page = read_page((tmp_path / "out/scores_task_3_own.html").read_text())
        return Score(lines[:5], text, page)

    return score


def shares_in(lines: list[str]) -> list[str]:
    """Return the agreement with each expert in the printed lines: a share, or "none"."""
    return [re.findall(r"\d\.\d\d|none", line)[0] for line in lines]


def test_empty_judgements_do_not_count(score_with_empty: Callable[..., Score]) -> None:
    """By default, the agreement with an expert is a share of the pairs that this expert has judged.

    The ranking agrees with Ann on three of the four pairs that she has judged. No expert has a
    larger share than 0.75, so this is the score.
    """
    scored = score_with_empty()
    assert shares_in(scored.lines) == ["0.75", "0.60", "0.40", "none", "none"]
    assert " of 4 pairs" in scored.lines[0]
    assert scored.text == "score:0.75\n"
    assert "Empty judgements 11 of 25, which do not count" in scored.page.text
    table = scored.page.table("Agreement with each expert")
    assert table.column("pairs judged")[:3] == ["4", "5", "5"]


def test_a_flag_counts_empty_judgements_as_disagreement(
    score_with_empty: Callable[..., Score],
) -> None:
    """With --missing disagrees, an empty judgement counts as a disagreement with the ranking.

    So the ranking agrees with Ann on three of all five pairs. No expert has a larger share than
    0.6, so this is the score.
    """
    scored = score_with_empty("--missing", "disagrees")
    assert shares_in(scored.lines) == ["0.60", "0.60", "0.40", "none", "none"]
    assert " of 5 pairs" in scored.lines[0]
    assert scored.text == "score:0.6\n"
    assert "Empty judgements 11 of 25, which count as disagreement" in scored.page.text
    table = scored.page.table("Agreement with each expert")
    assert table.column("pairs judged")[:3] == ["5", "5", "5"]


@pytest.mark.parametrize("flags", [[], ["--missing", "disagrees"]], ids=["default", "disagrees"])
def test_the_page_shows_an_empty_judgement_as_a_dash(
    score_with_empty: Callable[..., Score], flags: list[str]
) -> None:
    """The page shows "–" for an empty judgement, whether or not empty judgements count."""
    page = score_with_empty(*flags).page
    rows = page.table("Pairs on which ranking and experts disagree").rows
    assert len(rows) == 3
    assert rows[0][2:] == ["✗", "✗", "✗", "–", "–"]


def test_the_rule_for_empty_judgements_is_recorded(
    write: Write, judged: list[object], tmp_path: Path
) -> None:
    write("pairs.csv", WITH_EMPTY_JUDGEMENTS)
    succeeds(judged)
    succeeds([*judged, "--missing", "disagrees"])
    rules = [json.loads(line)["rules"] for line in (tmp_path / "out/results.jsonl").open()]
    assert rules == ["", "empty judgements disagree"]


@dataclass(frozen=True)
class Evaluated:
    """A ranking that was scored by simulated experts, and their agreement as pandas counts it."""

    # The folder with the submission and the page of its score.
    folder: Path
    output: str
    page: Page
    score: float
    # The experts' judgements: 1 if the left question is better, 2 if the right one is.
    votes: pd.DataFrame
    # The left and the right question of each pair, shape (2, pairs).
    questions: np.ndarray
    # Whether each expert (column) agrees with the ranking on each pair (row); NaN if the expert has
    # not judged the pair.
    agrees: pd.DataFrame

    @property
    def shares(self) -> list[str]:
        """The ranking's agreement with each expert, in the format of the output and the page."""
        return [f"{self.agrees[name].mean():.2f}" for name in EXPERTS]


@pytest.fixture(scope="module")
def evaluated(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    """Rank the simulated questions with `rank_average` and score the ranking.

    The score is the largest agreement with an expert in the public phase. Both scripts run once for
    all tests.
    """
    folder = tmp_path_factory.mktemp("evaluated")
    succeeds(["task_3/sample_model_rank_average.py", "--output_dir", folder], kit=simulated_kit)
    flags = ["--phase", "public", "--submission_dir", folder, "--output_dir", folder]
    output = succeeds(["task_3/local_evaluation.py", *flags], kit=simulated_kit)
    ranking = pd.read_csv(folder / "submission_task_3.csv", index_col="QuestionId").ranking
    pairs = pd.read_csv(simulated_kit / "data/test_data/quality_response_remapped_public.csv")
    votes = pairs[EXPERTS]
    # The ranking votes like an expert: 1 if the left question has the better rank, else 2.
    is_left_better = ranking[pairs.left].to_numpy() < ranking[pairs.right].to_numpy()
    votes_of_ranking = np.where(is_left_better, 1, 2)
    agrees = votes.eq(votes_of_ranking, axis=0)
    # An empty judgement is NaN, not a disagreement.
    agrees = agrees.where(votes.notna())
    page = (folder / "scores_task_3_public.html").read_text(encoding="utf-8")
    score = (folder / "scores_task_3_public.txt").read_text().removeprefix("score:")
    return Evaluated(
        folder=folder,
        output=output,
        page=read_page(page),
        score=float(score),
        votes=votes,
        questions=np.stack([pairs.left, pairs.right]),
        agrees=agrees,
    )


def test_the_agreement_with_every_expert_is_printed(evaluated: Evaluated) -> None:
    lines = evaluated.output.splitlines()[1:6]
    # A line begins with the name of an expert and the ranking's agreement with this expert.
    printed = [tuple(line.split()[:2]) for line in lines]
    assert printed == list(zip(EXPERTS, evaluated.shares, strict=True))
    assert evaluated.output.count(" of 25 pairs; agreement with other experts ") == 5
    assert evaluated.score == pytest.approx(evaluated.agrees.mean().max())


def test_the_intervals_are_those_of_resampled_pairs(evaluated: Evaluated) -> None:
    """The printed intervals are bootstrap intervals: the pairs of questions are drawn again.

    There is an interval for the mean agreement with the experts, and one for the best.
    """
    # Draw 25 of the 25 pairs with replacement, 4,000 times.
    pairs = np.random.default_rng(5).integers(0, 25, (4_000, 25))
    # The agreement with each expert over the pairs of a draw, shape (draws, experts).
    agreement = np.nanmean(evaluated.agrees.to_numpy(float)[pairs], axis=1)
    draws = {"mean": agreement.mean(axis=1), "best": agreement.max(axis=1)}
    for name, values in draws.items():
        (ends,) = re.findall(rf"^{name} +\S+ \((\S+) to (\S+)\)", evaluated.output, re.M)
        expected = np.percentile(values, [2.5, 97.5])
        assert [float(end) for end in ends] == pytest.approx(expected.tolist(), abs=0.012)


def test_the_agreement_that_random_rankings_exceed_is_printed(evaluated: Evaluated) -> None:
    votes = evaluated.votes.set_index([*evaluated.questions])
    exceeded = np.percentile(metrics.random_best_agreement(votes), 95)
    assert f"at most 1 in 20 exceeds {exceeded:.2f}" in evaluated.output


def test_the_page_shows_the_agreement_with_every_expert(evaluated: Evaluated) -> None:
    table = evaluated.page.table("Agreement with each expert")
    assert table.column("expert") == [*EXPERTS, "mean", "best"]
    mean = f"{evaluated.agrees.mean().mean():.2f}"
    assert table.column("agreement") == [*evaluated.shares, mean, f"{evaluated.score:.2f}"]
    titles = evaluated.page.chart("Agreement with each expert").titles
    expected = {f"{name}: {share}" for name, share in zip(EXPERTS, evaluated.shares, strict=True)}
    assert expected <= {*titles}


@pytest.mark.parametrize("expert", EXPERTS)
def test_the_page_shows_the_agreement_among_the_experts(evaluated: Evaluated, expert: str) -> None:
    votes = evaluated.votes
    others = [name for name in EXPERTS if name != expert]
    shares = [(votes[expert] == votes[other]).mean() for other in others]
    # The row begins with the expert's name. In the expert's own column, the cell is empty.
    row = evaluated.page.table("Agreement among the experts").row(expert)
    shown = [cell for cell in row[1:] if cell]
    assert shown == [f"{share:.2f}" for share in shares]
    mean_of_others = evaluated.page.table("Agreement with each expert").row(expert)[-1]
    assert mean_of_others == f"{np.mean(shares):.2f}"


def read_printed_table(output: str) -> list[list[str]]:
    """Return the rows of the table in a script's output; a row holds the texts of its cells."""
    table_lines = [line.strip("|") for line in output.splitlines() if "|" in line]
    return [[cell.strip() for cell in line.split("|")] for line in table_lines]


def test_compare_features_and_the_evaluation_show_the_same_agreement_of_a_ranking(
    simulated_kit: Path, evaluated: Evaluated
) -> None:
    """compare_features.py and the evaluation show the same agreement of a ranking with the experts.

    The script compare_features.py prints a table with a row for each feature, one for the ranking,
    and one for the experts. The cells of a row are the name, the agreement with each of the five
    experts, their mean, and the best of the five. The score of the evaluation is the best
    agreement.
    """
    submission = evaluated.folder / "submission_task_3.csv"
    compare = ["task_3/compare_features.py", "--rankings", submission]
    rows = read_printed_table(succeeds(compare, kit=simulated_kit))
    n_features = 13
    # Above the features are the heading and a line of dashes. Below them are the ranking and the
    # experts.
    assert len(rows) == 2 + n_features + 2
    # After its name, the row of a feature says whether high or low values rank first.
    assert {"correct_rate, high", "worst_distractor, low"} <= {row[0] for row in rows}
    row_of_ranking, _row_of_experts = rows[-2:]
    # The row of the ranking has a figure for each expert, their mean and their best. An interval
    # follows each figure, such as "0.64 (0.43–0.82)".
    n_figures = len(EXPERTS) + 2
    cells = row_of_ranking[1 : 1 + n_figures]
    figures = [cell.split()[0] for cell in cells]
    # `agrees` says whether the ranking agrees on a pair (row) with an expert (column). It is NaN if
    # the expert has not judged the pair.
    agreement_by_expert = evaluated.agrees.mean()
    mean = f"{agreement_by_expert.mean():.2f}"
    best = f"{evaluated.score:.2f}"
    assert figures == [*evaluated.shares, mean, best]


# ---- Evaluation by two halves of the students --------------------------------------------------

EVALUATE = ["task_3/local_evaluation.py"]


@pytest.fixture(scope="module")
def shared_halved_kit(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kit with the local split of task 3, which divides the students into two halves.

    Tests only read or copy this kit.
    """
    kit = Path(shutil.copytree(simulated_kit, tmp_path_factory.mktemp("halved") / "kit"))
    succeeds(["task_3/local_data_split.py"], kit=kit)
    return kit


@pytest.fixture
def halved_kit(shared_halved_kit: Path, tmp_path: Path) -> Path:
    """Return a copy of `shared_halved_kit` that the test may change."""
    return Path(shutil.copytree(shared_halved_kit, tmp_path / "kit"))


def read_halves(kit: Path) -> list[pd.DataFrame]:
    """Return the answers of the first half of the students and those of the second half."""
    folder = kit / "data/test_input"
    return [pd.read_csv(folder / "train_task_3.csv"), pd.read_csv(folder / "valid_task_3.csv")]


def test_without_a_split_the_flag_local_names_the_script_that_makes_it(simulated_kit: Path) -> None:
    error = fails(["task_3/sample_model_entropy.py", "--local"], kit=simulated_kit)
    assert "train_task_3.csv: file not found; `python task_3/local_data_split.py` makes" in error


def test_the_split_halves_the_students_and_keeps_all_answers(
    shared_halved_kit: Path, answers: pd.DataFrame
) -> None:
    first, second = read_halves(shared_halved_kit)
    assert not set(first.UserId) & set(second.UserId)
    assert abs(first.UserId.nunique() - second.UserId.nunique()) <= 1
    merged = pd.concat([first, second]).sort_values("AnswerId", ignore_index=True)
    pd.testing.assert_frame_equal(merged, answers.sort_values("AnswerId", ignore_index=True))


def test_without_a_ranking_the_evaluation_names_the_command_that_makes_one(
    halved_kit: Path,
) -> None:
    error = fails(EVALUATE, kit=halved_kit)
    assert "`python task_3/sample_model_entropy.py --local` makes one" in error


@dataclass(frozen=True)
class HalvesCompared:
    """The evaluation of `rank_average` by two halves of the students, and SciPy's results."""

    output: str
    # The two numbers in the text file of scores: Spearman's and Kendall's correlation of two
    # rankings.
    figures: list[float]
    page: Page
    n_questions_in_both: int
    # SciPy's rank correlations of two rankings. One is made from the answers of the first half of
    # the students, the other from the answers of the second half. Only questions that both halves
    # have answered count.
    spearman: float
    kendall: float


# The command of a model with two features: the share of right answers and the entropy of the chosen
# options.
RATE_AND_ENTROPY = [
    "task_3/sample_model_rank_average.py",
    "--features",
    "correct_rate",
    "option_entropy",
]


def rank_by_rate_and_entropy(kit: Path, name: str, folder: Path) -> pd.Series:
    """Rank the questions by the answers in a file of the local split; return their ranks.

    `name` is the name of the file. The model writes its ranking into `folder`.
    """
    flags = ["--input_dir", kit / "data/test_input", "--train_data", name]
    succeeds([*RATE_AND_ENTROPY, *flags, "--output_dir", folder], kit=kit)
    return pd.read_csv(folder / "submission_task_3.csv", index_col="QuestionId").ranking


@pytest.fixture(scope="module")
def halves_compared(
    shared_halved_kit: Path, tmp_path_factory: pytest.TempPathFactory
) -> HalvesCompared:
    """Evaluate a model by two halves of the students, and compute the expected figures.

    The user runs the model with --local, which ranks questions by the first half of the students.
    The evaluation runs the same model on the second half, and correlates the two rankings. For the
    expected figures, the model is run here on the file of each half, and SciPy correlates the
    rankings.
    """
    folder = tmp_path_factory.mktemp("compared")
    kit = Path(shutil.copytree(shared_halved_kit, folder / "kit"))
    # The expected rank of each question, by the first half of the students and by the second.
    rank_by_first = rank_by_rate_and_entropy(kit, "train_task_3.csv", folder)
    rank_by_second = rank_by_rate_and_entropy(kit, "valid_task_3.csv", folder)
    # Only questions with answers in both halves are compared.
    answers_of_first, answers_of_second = read_halves(kit)
    questions_in_both = [*set(answers_of_first.QuestionId) & set(answers_of_second.QuestionId)]
    two_rankings = (rank_by_first[questions_in_both], rank_by_second[questions_in_both])

    # Run the model and the evaluation as a user does.
    succeeds([*RATE_AND_ENTROPY, "--local"], kit=kit)
    output_dir = kit / "data/test_output"
    submission = pd.read_csv(output_dir / "test_submission_task_3.csv", index_col="QuestionId")
    # With --local, the model ranks the questions by the answers of the first half of the students.
    assert submission.ranking.equals(rank_by_first)
    output = succeeds(EVALUATE, kit=kit)

    # Each line of the text file is a name, a colon and a figure.
    lines = (output_dir / "scores_task_3.txt").read_text().splitlines()
    figures = [float(line.partition(":")[2]) for line in lines]
    return HalvesCompared(
        output=output,
        figures=figures,
        page=read_page((output_dir / "scores_task_3.html").read_text(encoding="utf-8")),
        n_questions_in_both=len(questions_in_both),
        spearman=scipy.stats.spearmanr(*two_rankings).statistic,
        kendall=scipy.stats.kendalltau(*two_rankings).statistic,
    )


@needs_blocks("task_3/sample_model_rank_average.py")
def test_rankings_by_two_halves_agree_as_scipy_says(halves_compared: HalvesCompared) -> None:
    expected = [halves_compared.spearman, halves_compared.kendall]
    assert halves_compared.figures == pytest.approx(expected)


@needs_blocks("task_3/sample_model_rank_average.py")
def test_the_page_counts_the_questions_answered_in_both_halves(
    halves_compared: HalvesCompared,
) -> None:
    n_questions = halves_compared.n_questions_in_both
    assert f"Questions answered in both halves {n_questions}" in halves_compared.page.text


@needs_blocks("task_3/sample_model_rank_average.py")
@pytest.mark.parametrize("name", ["Spearman", "Kendall"])
def test_correlations_are_printed_with_their_intervals(
    halves_compared: HalvesCompared, name: str
) -> None:
    """The output shows each correlation with a 95 % interval.

    The interval is symmetric in Fisher's z, the arctanh of a correlation.
    """
    n_questions = halves_compared.n_questions_in_both
    if name == "Spearman":
        value = halves_compared.spearman
        # The formula of Bonett and Wright (2000).
        variance_of_z = (1 + value**2 / 2) / (n_questions - 3)
    else:
        value = halves_compared.kendall
        # The formula of Fieller, Hartley and Pearson (1957).
        variance_of_z = 0.437 / (n_questions - 4)
    margin_of_z = 1.96 * variance_of_z**0.5
    low = np.tanh(np.arctanh(value) - margin_of_z)
    high = np.tanh(np.arctanh(value) + margin_of_z)

    # A line such as "Spearman 0.8123 (0.71 to 0.88)".
    match = re.search(rf"^{name} +(\S+) \((\S+) to (\S+)\)$", halves_compared.output, re.M)
    assert match
    shown_value, shown_low, shown_high = map(float, match.groups())
    assert shown_value == pytest.approx(value, abs=1e-4)
    # The ends of the interval are printed with two decimals.
    assert shown_low == pytest.approx(low, abs=0.006)
    assert shown_high == pytest.approx(high, abs=0.006)


@needs_blocks("task_3/sample_model_random.py")
def test_random_rankings_by_two_halves_are_uncorrelated(halved_kit: Path) -> None:
    """The evaluation runs the random model on the second half of the students with another seed.

    With the same seed, the rankings by the two halves would be equal.
    """
    succeeds(["task_3/sample_model_random.py", "--local"], kit=halved_kit)
    succeeds(EVALUATE, kit=halved_kit)
    first_line, *_ = (halved_kit / "data/test_output/scores_task_3.txt").read_text().splitlines()
    correlation_of_halves = float(first_line.removeprefix("score:"))
    # Over 80 questions the correlation has a standard error of 1 / √79 = 0.11. The limit is more
    # than three standard errors, and the seed is fixed: the result is always the same.
    assert abs(correlation_of_halves) < 0.4


def test_the_evaluation_never_runs_a_script_outside_task_3(halved_kit: Path) -> None:
    """The evaluation runs a script again only if the script is in task_3/.

    The .json file beside a submission, its record, names the script that made the submission. A
    forged record could name any script.
    """
    succeeds(["task_3/sample_model_entropy.py", "--local"], kit=halved_kit)
    path = halved_kit / "data/test_output/test_submission_task_3.json"
    record = json.loads(path.read_text())
    record["script"] = "data/generate_sample.py"
    path.write_text(json.dumps(record))
    error = fails(EVALUATE, kit=halved_kit)
    assert "which cannot be repeated, expected a script in task_3/" in error


def test_a_ranking_made_before_the_script_was_edited_is_refused(halved_kit: Path) -> None:
    succeeds(["task_3/sample_model_random.py", "--local"], kit=halved_kit)
    script = halved_kit / "task_3/sample_model_random.py"
    script.write_text(script.read_text() + "# Edited.\n")
    assert "was made by another version of" in fails(EVALUATE, kit=halved_kit)


def test_a_ranking_of_another_split_is_refused(halved_kit: Path) -> None:
    succeeds(["task_3/sample_model_entropy.py", "--local"], kit=halved_kit)
    succeeds(["task_3/local_data_split.py", "--seed", 1], kit=halved_kit)
    error = fails(EVALUATE, kit=halved_kit)
    message = (
        "was made from another split; make it again with `python task_3/sample_model_entropy.py"
    )
    assert message in error


def test_a_ranking_without_a_record_is_refused_and_old_scores_are_removed(
    halved_kit: Path,
) -> None:
    succeeds(["task_3/sample_model_random.py", "--local"], kit=halved_kit)
    succeeds(EVALUATE, kit=halved_kit)
    out = halved_kit / "data/test_output"
    shutil.copyfile(out / "test_submission_task_3.csv", out / "mine.csv")
    error = fails([*EVALUATE, "--submit_data", "mine.csv"], kit=halved_kit)
    assert "mine.csv: no record beside it says that a sample model made it with --local" in error
    assert not list(out.glob("scores*"))


# ---- Real answers ------------------------------------------------------------------------------


def write_real_answers(real_data: Path, folder: Path) -> None:
    """Write the real answers from which the tables of tests/benchmarks/task_3.md are computed.

    The file train.csv gets the answers of train_task_3_4.csv and of the public test, which are the
    answers of only some of the students. The file submission_task_3.csv lists all questions with an
    empty column "ranking", which a sample model fills in.
    """
    tasks_3_4 = real_data / "eedi_tasks_3_4"
    train = pd.read_csv(tasks_3_4 / "train_data/train_task_3_4.csv")
    public = pd.read_csv(tasks_3_4 / "test_data/test_public_task_4_more_splits.csv")
    columns = ["QuestionId", "UserId", "AnswerId", "IsCorrect", "CorrectAnswer", "AnswerValue"]
    answers = pd.concat([train, public])[columns]
    answers.to_csv(folder / "train.csv", index=False)
    questions = pd.read_csv(tasks_3_4 / "metadata/question_metadata_task_3_4.csv")
    template = questions[["QuestionId"]].assign(ranking="")
    template.to_csv(folder / "submission_task_3.csv", index=False)


def write_rankings_of_all_students(real_data: Path, folder: Path) -> list[Path]:
    """Write two rankings that are computed from the answers of all students; return their paths.

    One ranking is by the feature correct_rate, the other by correct_entropy. Other features cannot
    be computed for all students: the real data hold only how many answers each question has and how
    many of these are right. Each ranking is written to a file, whose name is that of the row in
    tests/benchmarks/task_3.md, such as "correct_rate, high": high values rank first.

    `folder` must hold submission_task_3.csv, which lists the questions to rank.
    """
    path_of_counts = real_data / "eedi_tasks_3_4/train_task_3_4_question_stats.csv"
    counts = pd.read_csv(path_of_counts, index_col="QuestionId")
    questions = pd.read_csv(folder / "submission_task_3.csv").QuestionId
    rate = (counts.NumCorrect / counts.NumAnswers).reindex(questions.sort_values())
    # The entropy of a rate is largest for the rate 1/2, and smaller the further the rate is from
    # 1/2. So the closeness to 1/2 ranks questions in the same order as the entropy.
    closeness_to_half = -(rate - 0.5).abs()
    value_by_feature = {"correct_rate": rate, "correct_entropy": closeness_to_half}
    paths = []
    for name, value in value_by_feature.items():
        ranking = value.rank(ascending=False, method="first", na_option="bottom").astype(int)
        path = folder / f"{name}, high"
        ranking.rename("ranking").to_csv(path)
        paths.append(path)
    return paths


@dataclass(frozen=True)
class RealComparison:
    """The comparison of features on real answers."""

    output: str
    # The lines of the printed table, by the name of the feature or ranking in their first cell.
    lines: dict[str, str]


def table_lines_by_name(output: str) -> dict[str, str]:
    """Return the lines of the printed table, by the text of their first cell.

    A line looks like "| correct_rate, high | 0.60 (0.40–0.80) | … |".
    """
    lines = {}
    for line in output.splitlines():
        if line.startswith("| "):
            first_cell, _, _ = line.removeprefix("| ").partition(" |")
            lines[first_cell] = line
    return lines


@pytest.fixture(scope="module")
def real_comparison(
    real_data: Path, simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory
) -> RealComparison:
    """Compare features on real answers, as in the table of tests/benchmarks/task_3.md.

    The table has a line for each feature. Two features, correct_rate and correct_entropy, are
    computed from the answers of all students. The script compare_features.py reads only the answers
    of some of the students, so it gets these two features as rankings. It computes the other
    features itself.
    """
    folder = tmp_path_factory.mktemp("real")
    write_real_answers(real_data, folder)
    rankings = write_rankings_of_all_students(real_data, folder)
    tasks_3_4 = real_data / "eedi_tasks_3_4"
    flags = ["--input_dir", folder, "--train_data", "train.csv", "--rankings", *rankings]
    flags += ["--metadata_dir", tasks_3_4 / "metadata", "--test_dir", tasks_3_4 / "test_data"]
    flags += ["--submission_template_dir", folder]
    output = succeeds(["task_3/compare_features.py", *flags], kit=simulated_kit)

    lines = table_lines_by_name(output)
    # In the script's output, the line of a ranking begins with the path of its file. In task_3.md,
    # it begins with the file name. This name is also the name of a feature, so the line of the
    # ranking replaces the line of the feature.
    for path in rankings:
        line_of_ranking = lines.pop(str(path))
        lines[path.name] = line_of_ranking.replace(str(path), path.name)
    return RealComparison(output, lines)


compares_real_answers = needs_blocks(
    "task_3/sample_model_entropy.py", "task_3/sample_model_rank_average.py"
)


@compares_real_answers
def test_real_answers_reproduce_the_rows_of_the_page_of_measurements(
    real_comparison: RealComparison,
) -> None:
    page = (ROOT / "tests/benchmarks/task_3.md").read_text(encoding="utf-8")
    assert {*real_comparison.lines.values()} <= {*page.splitlines()}


@compares_real_answers
def test_the_entropy_of_right_and_wrong_agrees_with_experts_as_the_winners_report(
    real_comparison: RealComparison,
) -> None:
    """The winners of the competition of 2020 report these figures of agreement with each expert."""
    # After each figure, its interval follows in brackets.
    figures = re.findall(r"(\S+) \(", real_comparison.lines["correct_entropy, high"])
    assert figures[:5] == ["0.72", "0.84", "0.68", "0.56", "0.64"]


@compares_real_answers
def test_the_agreement_of_random_rankings_is_that_of_the_public_pairs(
    real_comparison: RealComparison,
) -> None:
    """The script prints how often random rankings agree with the expert who agrees best with them.

    On average, a random ranking agrees with a given expert on half of the pairs. The best of five
    experts is a maximum, so its mean is larger. The printed figures depend only on the experts'
    judgements of the 25 public pairs.
    """
    figures = "on 0.59 of the pairs on average; at most 1 in 20 on more than 0.72."
    assert figures in real_comparison.output
