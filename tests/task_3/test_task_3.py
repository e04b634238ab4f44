"""Rankings of task 3 as a user makes and scores them: sample models, evaluation, comparison."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from common import metrics

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from conftest import Write, answers_frame, fails, succeeds
from page_reading import read_page
from run_scripts import ROOT
from sample_blocks import needs_blocks

Rank = Callable[..., pd.Series]
EXPERTS = ["T1_ALR", "T2_CL", "T3_GF", "T4_MQ", "T5_NS"]


@pytest.fixture(scope="module")
def answers(simulated_kit: Path) -> pd.DataFrame:
    return pd.read_csv(simulated_kit / "data/train_data/train_task_3_4.csv")


@pytest.fixture
def rank(simulated_kit: Path, tmp_path: Path) -> Rank:
    """Run a sample model on the simulated answers; return the rank of every question."""

    def rank_by(model: str, *flags: object) -> pd.Series:
        script = f"task_3/sample_model_{model}.py"
        succeeds([script, "--output_dir", tmp_path, *flags], kit=simulated_kit)
        return pd.read_csv(tmp_path / "submission_task_3.csv", index_col="QuestionId").ranking

    return rank_by


@needs_blocks(
    "task_3/sample_model_entropy.py",
    "task_3/sample_model_confidence.py",
    "task_3/sample_model_rank_average.py",
)
def test_entropy_confidence_and_rank_average_rank_as_they_say(
    simulated_kit: Path, rank: Rank, answers: pd.DataFrame
) -> None:
    def correlation(ranking: pd.Series, value: pd.Series) -> float:
        return float(ranking[value.index].corr(value, method="spearman"))

    shares = pd.crosstab(answers.QuestionId, answers.AnswerValue, normalize="index")
    entropy = -(shares * np.log2(shares.where(shares > 0))).sum(axis=1)
    assert correlation(rank("entropy"), entropy) == pytest.approx(-1, abs=1e-3)
    metadata = pd.read_csv(simulated_kit / "data/metadata/answer_metadata_task_3_4.csv")
    stated = answers.merge(metadata.dropna(subset=["AnswerId", "Confidence"]), on="AnswerId")
    confidence = stated.groupby("QuestionId").Confidence
    # Shrinking changes the order among questions with unequally many; hardly on the whole.
    common = confidence.mean()[confidence.size() >= confidence.size().median()]
    assert correlation(rank("confidence"), common) < -0.8
    names = "correct_rate", "point_biserial"
    first, second = (rank("rank_average", "--features", name) for name in names)
    assert correlation(first, answers.groupby("QuestionId").IsCorrect.mean()) < -0.95
    both = rank("rank_average", "--features", *names)
    assert both.equals((first + second).rank(method="first").astype(int))
    # Less is better.
    listed = pd.read_csv(simulated_kit / "data/metadata/question_metadata_task_3_4.csv")
    listed = listed.assign(n=listed.SubjectId.str.count(",")).sort_values(["n", "QuestionId"])
    fewest_first = rank("rank_average", "--features", "number_of_subjects").sort_values().index
    known = {*answers.QuestionId}
    assert [q for q in fewest_first if q in known] == [q for q in listed.QuestionId if q in known]


@needs_blocks("task_3/sample_model_rank_average.py")
def test_the_rank_average_never_ranks_a_question_first_whose_feature_is_nan(
    rank: Rank, tmp_path: Path
) -> None:
    # Nobody errs on question 0, so its point-biserial correlation is NaN. All others have one.
    student, question = np.divmod(np.arange(60 * 6), 6)
    is_correct = np.random.default_rng(0).integers(0, 2, len(student))
    is_correct[question == 0] = 1
    table = answers_frame(student, question, is_correct, 2 - is_correct, 1)
    table.to_csv(tmp_path / "train.csv", index=False)
    files = ["--input_dir", tmp_path, "--train_data", "train.csv"]
    ranking = rank("rank_average", *files, "--features", "point_biserial")
    # Last of the questions that somebody answered.
    assert ranking.loc[0] == 6
    assert sorted(ranking.loc[range(1, 6)]) == [1, 2, 3, 4, 5]


@needs_blocks("task_3/sample_model_partial_vae.py")
def test_partial_vae_finds_the_questions_that_tell_something(rank: Rank, tmp_path: Path) -> None:
    # Six questions depend on ability, six are answered at random; half correctly in both.
    rng = np.random.default_rng(0)
    student, question = np.divmod(np.arange(300 * 12), 12)
    logit = 2 * (question < 6) * rng.standard_normal(300)[student]
    right = rng.random(len(student)) < 1 / (1 + np.exp(-logit))
    option = np.where(right, 1, rng.integers(2, 5, len(student)))
    table = answers_frame(student, question, right.astype(int), option, 1)
    table.to_csv(tmp_path / "train.csv", index=False)
    ranking = rank("partial_vae", "--input_dir", tmp_path, "--train_data", "train.csv")
    assert sorted(ranking[:6]) == list(range(1, 7))


@needs_blocks("task_3/sample_model_confidence.py", "task_3/sample_model_rank_average.py")
def test_metadata_must_be_there_and_of_the_same_answers(
    simulated_kit: Path, rank: Rank, tmp_path: Path, answers: pd.DataFrame
) -> None:
    def refused(model: str, *flags: object) -> str:
        script = f"task_3/sample_model_{model}.py"
        return fails([script, "--output_dir", tmp_path / "out", *flags], kit=simulated_kit)

    place = ["--metadata_dir", tmp_path]
    assert "answer_metadata_task_3_4.csv: file not found" in refused("confidence", *place)
    line = refused("rank_average", *place, "--features", "number_of_subjects")
    assert "question_metadata_task_3_4.csv: file not found" in line

    # Those of the default answers are not those of others.
    answers.to_csv(tmp_path / "train_task_3_4.csv", index=False)
    assert refused("confidence", "--input_dir", tmp_path) == (
        f"{tmp_path / 'train_task_3_4.csv'}: the feature mean_confidence needs "
        "answer_metadata_task_3_4.csv of the same data; give its folder with --metadata_dir"
    )
    assert not (tmp_path / "out").exists()
    rank("rank_average", "--input_dir", tmp_path)  # by features of the answers alone


# The guide's example: five pairs and three experts. The questions are in no order and the ranks in
# another, so that nothing works by row position.
PAIRS = """,Unnamed: 0,left,right,Ann,Ben T.,3
0,0,124,10029,1,1,1
1,1,13001,9115,1,1,2
2,2,844,7491,2,2,2
3,3,2748,9882,1,2,2
4,4,11092,3999,1,1,1
"""
RANKING = {10029: 9, 124: 2, 11092: 7, 3999: 4, 844: 10, 7491: 1, 9882: 6, 2748: 3, 9115: 8,
           13001: 5}  # fmt: skip


@pytest.fixture
def judged(write: Write, tmp_path: Path) -> list[object]:
    """Return the command that scores the guide's ranking by pairs.csv, a panel of one's own."""
    table = pd.DataFrame(RANKING.items(), columns=["QuestionId", "ranking"])
    table.to_csv(tmp_path / "submission_task_3.csv", index=False)
    table.sort_values("QuestionId").to_csv(tmp_path / "template.csv", index=False)
    write("pairs.csv", PAIRS)
    place = ["--input_dir", tmp_path, "--ref_data", "pairs.csv", "--submission_dir", tmp_path]
    place += ["--submission_template_dir", tmp_path, "--submission_template_file", "template.csv"]
    return ["task_3/local_evaluation.py", *place, "--output_dir", tmp_path / "out"]


def test_the_guides_example(write: Write, judged: list[object], tmp_path: Path) -> None:
    printed = succeeds(judged)
    shares = re.findall(r"^(\S.*?)  +(\d\.\d\d)", printed, re.M)[:3]
    assert shares == [("Ann", "0.80"), ("Ben T.", "0.60"), ("3", "0.40")]
    assert (tmp_path / "out/scores_task_3_public.txt").read_text() == "score:0.8\n"
    page = read_page((tmp_path / "out/scores_task_3_public.html").read_text())
    # The most contested first; of those equally so, in the order of the file. Better rank first.
    disputed = page.table("Pairs on which ranking and experts disagree")
    assert disputed.columns == ["ranked better", "worse", "Ann", "Ben T.", "3"]
    assert disputed.rows == [
        ["3999 rank 4", "11092 rank 7", "✗", "✗", "✗"],
        ["2748 rank 3", "9882 rank 6", "✓", "✗", "✗"],
        ["13001 rank 5", "9115 rank 8", "✓", "✓", "✗"],
    ]
    said = "3 of 5 pairs of QuestionIds, the most contested first; no expert contradicts the "
    assert said in page.text
    assert "on the other 2." in page.text
    # Judgements of other data are refused, and what is none.
    for old, new, said in (
        ("10029", "77", "QuestionId 77 is judged, but it is not in"),
        ("1,1,2\n", "1,1,x\n", "column '3': row 3 is 'x', expected a whole number from 1 to 2 or"),
        ("Ann", "left", "column 'left'"),
        ("left", "links", "column 'left' is missing"),
    ):
        write("pairs.csv", PAIRS.replace(old, new, 1))
        assert said in fails(judged)
    write("pairs.csv", "left,right\n124,844\n")
    assert "holds no judgement, expected beside left and right a column for" in fails(judged)
    assert not list((tmp_path / "out").glob("scores*"))


def test_empty_judgements_count_as_asked_for(
    write: Write, judged: list[object], tmp_path: Path
) -> None:
    """Ann leaves out one pair of the four on which the ranking agrees; two have judged nothing."""
    lines = PAIRS.replace("10029,1,", "10029,,").splitlines()
    write("pairs.csv", "\n".join([f"{lines[0]},T4_MQ,X", *(f"{line},," for line in lines[1:])]))
    for flags, ann, pairs, means in (
        ([], "0.75", "4", "which do not count"),
        (["--missing", "disagrees"], "0.60", "5", "which count as disagreement"),
    ):
        printed = succeeds([*judged, *flags])
        shares = [re.search(r"\d\.\d\d|none", line) for line in printed.splitlines()[:5]]
        assert [share and share[0] for share in shares] == [ann, "0.60", "0.40", "none", "none"]
        assert f" of {pairs} pairs" in printed.splitlines()[0]
        assert (tmp_path / "out/scores_task_3_public.txt").read_text() == f"score:{float(ann)}\n"
        page = read_page((tmp_path / "out/scores_task_3_public.html").read_text())
        assert f"Empty judgements 11 of 25, {means}" in page.text
        table = page.table("Agreement with each expert")
        assert table.column("pairs judged")[:3] == [pairs, "5", "5"]
        # What was not judged is shown as such in both ways.
        rows = page.table("Pairs on which ranking and experts disagree").rows
        assert len(rows) == 3 and rows[0][2:] == ["✗", "✗", "✗", "–", "–"]
    # The two are never compared with each other.
    found = [json.loads(line)["rules"] for line in (tmp_path / "out/results.jsonl").open()]
    assert found == ["", "empty judgements disagree"]


def test_the_evaluation_agrees_with_plain_counts(
    simulated_kit: Path, rank: Rank, tmp_path: Path
) -> None:
    """On a page, and on the line of every expert; so does the comparison of features."""
    ranking = rank("rank_average")
    flags = ["--phase", "public", "--submission_dir", tmp_path, "--output_dir", tmp_path]
    printed = succeeds(["task_3/local_evaluation.py", *flags], kit=simulated_kit)
    pairs = pd.read_csv(simulated_kit / "data/test_data/quality_response_remapped_public.csv")
    sides, votes = (pairs.left.to_numpy(), pairs.right.to_numpy()), pairs[EXPERTS]
    prefers = np.where(ranking[sides[0]].to_numpy() < ranking[sides[1]].to_numpy(), 1, 2)
    agrees = votes.eq(prefers, axis=0).where(votes.notna())
    shares = [f"{agrees[name].mean():.2f}" for name in EXPERTS]
    lines = [line.split()[:2] for line in printed.splitlines()[:5]]
    assert lines == [[*row] for row in zip(EXPERTS, shares, strict=True)]
    assert printed.count(" of 25 pairs; agreement with other experts ") == 5
    score = float((tmp_path / "scores_task_3_public.txt").read_text().removeprefix("score:"))
    assert score == pytest.approx(agrees.mean().max())
    # The intervals of the mean and of the best expert: 95 % of the draws of pairs.
    drawn = agrees.to_numpy(float)[np.random.default_rng(5).integers(0, 25, (4_000, 25))]
    of_experts = np.nanmean(drawn, axis=1)
    for name, values in (("mean", of_experts.mean(axis=1)), ("best", of_experts.max(axis=1))):
        ends = re.findall(rf"^{name} +\S+ \((\S+) to (\S+)\)", printed, re.M)[0]
        expected = np.percentile(values, [2.5, 97.5])
        assert [float(end) for end in ends] == pytest.approx(expected.tolist(), abs=0.012)
    exceeded = np.percentile(metrics.random_best_agreement(votes.set_index([*sides])), 95)
    assert f"at most 1 in 20 exceeds {exceeded:.2f}" in printed
    page = read_page((tmp_path / "scores_task_3_public.html").read_text(encoding="utf-8"))
    table = page.table("Agreement with each expert")
    assert table.column("expert") == [*EXPERTS, "mean", "best"]
    mean = f"{agrees.mean().mean():.2f}"
    assert table.column("agreement") == [*shares, mean, f"{score:.2f}"]
    titles = page.chart("Agreement with each expert").titles
    assert {f"{name}: {share}" for name, share in zip(EXPERTS, shares, strict=True)} <= {*titles}
    for first in EXPERTS:
        row = page.table("Agreement among the experts").row(first)
        others = [(votes[first] == votes[second]).mean() for second in EXPERTS if second != first]
        assert [cell for cell in row[1:] if cell] == [f"{share:.2f}" for share in others]
        assert table.row(first)[-1] == f"{np.mean(others):.2f}"
    # Every feature, this ranking as the evaluation has it, and the other experts.
    compare = ["task_3/compare_features.py", "--rankings", tmp_path / "submission_task_3.csv"]
    lines = [line for line in succeeds(compare, kit=simulated_kit).splitlines() if "|" in line]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert len(rows) == 2 + 13 + 2
    assert [cell.split()[0] for cell in rows[-2][1:8]] == [*shares, mean, f"{score:.2f}"]
    assert {"correct_rate, high", "worst_distractor, low"} <= {row[0] for row in rows}


@needs_blocks("task_3/sample_model_random.py", "task_3/sample_model_rank_average.py")
def test_rankings_by_two_halves_agree_as_they_say(
    tiny_kit: Path, rank: Rank, answers: pd.DataFrame
) -> None:
    evaluate = ["task_3/local_evaluation.py"]
    said = fails(["task_3/sample_model_entropy.py", "--local"], kit=tiny_kit)
    assert "train_task_3.csv: file not found; `python task_3/local_data_split.py` makes" in said
    succeeds(["task_3/local_data_split.py"], kit=tiny_kit)
    place, out = tiny_kit / "data/test_input", tiny_kit / "data/test_output"
    halves = [pd.read_csv(place / f"{name}_task_3.csv") for name in ("train", "valid")]
    students = [set(half.UserId) for half in halves]
    assert not students[0] & students[1] and abs(len(students[0]) - len(students[1])) <= 1
    merged = pd.concat(halves).sort_values("AnswerId", ignore_index=True)
    pd.testing.assert_frame_equal(merged, answers.sort_values("AnswerId", ignore_index=True))
    line = fails(evaluate, kit=tiny_kit)
    assert "`python task_3/sample_model_entropy.py --local` makes one" in line

    model = ["rank_average", "--features", "correct_rate", "option_entropy"]
    files = ["--input_dir", place, "--train_data"]
    ranks = [rank(*model, *files, f"{name}_task_3.csv") for name in ("train", "valid")]
    succeeds([f"task_3/sample_model_{model[0]}.py", "--local", *model[1:]], kit=tiny_kit)
    own = pd.read_csv(out / "test_submission_task_3.csv", index_col="QuestionId").ranking
    assert own.equals(ranks[0])
    printed = succeeds(evaluate, kit=tiny_kit)
    both = [*set(halves[0].QuestionId) & set(halves[1].QuestionId)]
    expected = [getattr(scipy.stats, name)(*(rank[both] for rank in ranks)).statistic
                for name in ("spearmanr", "kendalltau")]  # fmt: skip
    # Of Bonett and Wright (2000), and of Fieller, Hartley and Pearson (1957).
    variances = (1 + expected[0] ** 2 / 2) / (len(both) - 3), 0.437 / (len(both) - 4)
    for name, value, variance in zip(("Spearman", "Kendall"), expected, variances, strict=True):
        found = re.search(rf"^{name} +(\S+) \((\S+) to (\S+)\)$", printed, re.M)
        assert found and float(found[1]) == pytest.approx(value, abs=1e-4)
        ends = np.tanh(np.arctanh(value) + 1.96 * variance**0.5 * np.array([-1, 1]))
        assert [float(found[2]), float(found[3])] == pytest.approx(ends, abs=0.006)
    text = (out / "scores_task_3.txt").read_text()
    assert [float(line.split(":")[1]) for line in text.split()] == pytest.approx(expected)
    page = read_page((out / "scores_task_3.html").read_text(encoding="utf-8"))
    assert f"Questions answered in both halves {len(both)}" in page.text

    # The record beside a submission may come from anywhere: what lies elsewhere is never run.
    record = out / "test_submission_task_3.json"
    told = json.loads(record.read_text())
    record.write_text(json.dumps({**told, "script": "data/generate_sample.py"}))
    assert "which cannot be repeated, expected a script in task_3/" in fails(evaluate, kit=tiny_kit)

    # A ranking that knows nothing agrees with nothing, also where its seed is the same. Over 80
    # questions the correlation has a standard error of 1 / √79 = 0.11, and is drawn once for all.
    succeeds(["task_3/sample_model_random.py", "--local"], kit=tiny_kit)
    assert abs(float(succeeds(evaluate, kit=tiny_kit).split()[1])) < 0.4

    # What would compare two things with each other is refused.
    script, split = tiny_kit / "task_3/sample_model_random.py", "task_3/local_data_split.py"
    script.write_text(script.read_text() + "# Edited.\n")
    assert "was made by another version of" in fails(evaluate, kit=tiny_kit)
    succeeds(["task_3/sample_model_entropy.py", "--local"], kit=tiny_kit)
    succeeds([split, "--seed", 1], kit=tiny_kit)
    line = fails(evaluate, kit=tiny_kit)
    assert "split; make it again with `python task_3/sample_model_entropy.py" in line
    shutil.copyfile(out / "test_submission_task_3.csv", out / "mine.csv")
    line = fails([*evaluate, "--submit_data", "mine.csv"], kit=tiny_kit)
    assert "mine.csv: no record beside it says that a sample model made it with --local" in line
    assert not list(out.glob("scores*"))


@needs_blocks("task_3/sample_model_entropy.py", "task_3/sample_model_rank_average.py")
def test_real_answers_reproduce_the_table(
    real_data: Path, simulated_kit: Path, tmp_path: Path
) -> None:
    """The row of the right/wrong entropy, and that of the rank average, as measured."""
    folder = real_data / "eedi_tasks_3_4"
    questions = pd.read_csv(folder / "metadata/question_metadata_task_3_4.csv")[["QuestionId"]]
    questions.assign(ranking="").to_csv(tmp_path / "submission_task_3.csv", index=False)
    files = "train_data/train_task_3_4.csv", "test_data/test_public_task_4_more_splits.csv"
    answers = pd.concat([pd.read_csv(folder / name) for name in files])
    answers.filter(regex="Id$|Is|Answer").to_csv(tmp_path / "train.csv", index=False)
    # Right answers are known of all students.
    stats = pd.read_csv(folder / "train_task_3_4_question_stats.csv", index_col="QuestionId")
    rate = (stats.NumCorrect / stats.NumAnswers).reindex(questions.QuestionId.sort_values())
    exact = {"correct_rate": rate, "correct_entropy": -(rate - 0.5).abs()}
    rankings = [tmp_path / f"{name}, high" for name in exact]
    for path, value in zip(rankings, exact.values(), strict=True):
        rank = value.rank(ascending=False, method="first", na_option="bottom").astype(int)
        rank.rename("ranking").to_csv(path)
    flags = ["--input_dir", tmp_path, "--train_data", "train.csv", "--rankings", *rankings]
    flags += ["--metadata_dir", folder / "metadata", "--test_dir", folder / "test_data"]
    flags += ["--submission_template_dir", tmp_path]
    printed = succeeds(["task_3/compare_features.py", *flags], kit=simulated_kit)
    rows = {line.split(" |")[0]: line for line in printed.splitlines() if line.startswith("| ")}
    for path in rankings:
        rows[f"| {path.name}"] = rows.pop(f"| {path}").replace(str(path), path.name)
    # The five figures of the winners' report of 2020.
    figures = re.findall(r"(\S+) \(", rows["| correct_entropy, high"])
    assert figures[:5] == ["0.72", "0.84", "0.68", "0.56", "0.64"]
    table = (ROOT / "tests/benchmarks/task_3.md").read_text(encoding="utf-8")
    assert {*rows.values()} <= {*table.splitlines()}
    # What random rankings reach with these 25 pairs, known from the challenge's files.
    known = "on 0.59 of the pairs on average; at most 1 in 20 on more than 0.72."
    assert f"Random rankings {known}" in printed
