"""All sample models of task 3, and the pages about questions, as a user runs them."""

import json
import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from page_reading import read_page as check_page

Run = Callable[..., Any]
Fails = Callable[..., str]
ROOT = Path(__file__).resolve().parents[2]
MODELS = sorted(
    path.stem.removeprefix("sample_model_") for path in (ROOT / "task_3").glob("sample_model_*.py")
)
EXPERTS = ["T1_ALR", "T2_CL", "T3_GF", "T4_MQ", "T5_NS"]


def rank(kit: Path, run: Run, output_dir: Path, script: str, *flags: object) -> pd.Series:
    done = run([f"task_3/{script}", "--output_dir", output_dir, *flags], kit=kit)
    assert done.returncode == 0, done.stderr
    return read(output_dir)


@pytest.fixture(scope="module")
def submissions(
    simulated_kit: Path, run: Run, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Return the folder of a sample model's submission; the model runs once for all tests."""
    folder = tmp_path_factory.mktemp("submissions")

    def submission(model: str) -> Path:
        if not (folder / model).exists():
            rank(simulated_kit, run, folder / model, f"sample_model_{model}.py")
        return folder / model

    return submission


def read(folder: Path) -> pd.Series:
    return pd.read_csv(folder / "submission_task_3.csv", index_col="QuestionId").ranking


@pytest.fixture(scope="module")
def answers(simulated_kit: Path) -> pd.DataFrame:
    return pd.read_csv(simulated_kit / "data/train_data/train_task_3_4.csv")


@pytest.mark.parametrize("model", MODELS)
def test_every_question_gets_one_rank(
    simulated_kit: Path, submissions: Callable[[str], Path], model: str
) -> None:
    ranking = read(submissions(model))
    template = pd.read_csv(simulated_kit / "submission_templates/submission_task_3.csv")
    assert ranking.index.tolist() == template.QuestionId.tolist()
    assert sorted(ranking) == list(range(1, len(template) + 1))


def test_confidence_ranks_by_the_mean(
    simulated_kit: Path, submissions: Callable[[str], Path], answers: pd.DataFrame
) -> None:
    ranking = read(submissions("confidence"))
    metadata = pd.read_csv(simulated_kit / "data/metadata/answer_metadata_task_3_4.csv")
    stated = answers.merge(metadata.dropna(subset=["AnswerId", "Confidence"]), on="AnswerId")
    confidence = stated.groupby("QuestionId").Confidence
    # Shrinking changes the order among questions with unequally many; hardly on the whole.
    common = confidence.mean()[confidence.size() >= confidence.size().median()]
    assert ranking[common.index].corr(common, method="spearman") < -0.8
    silent = ranking.index.difference(stated.QuestionId)
    assert set(ranking[silent]) == set(range(len(ranking) - len(silent) + 1, len(ranking) + 1))


def test_rank_average_is_the_mean_of_ranks(
    simulated_kit: Path, run: Run, tmp_path: Path, answers: pd.DataFrame
) -> None:
    script, features = "sample_model_rank_average.py", ("correct_rate", "point_biserial")
    alone = [
        rank(simulated_kit, run, tmp_path / name, script, "--features", name) for name in features
    ]
    rate = answers.groupby("QuestionId").IsCorrect.mean()
    assert alone[0][rate.index].corr(rate, method="spearman") < -0.95
    both = rank(simulated_kit, run, tmp_path / "both", script, "--features", *features)
    assert both.equals((alone[0] + alone[1]).rank(method="first").astype(int))


def test_partial_vae_finds_the_questions_that_tell_something(run: Run, tmp_path: Path) -> None:
    # Ten questions depend on ability, ten are answered at random; half correctly in both.
    rng = np.random.default_rng(0)
    student, question = np.divmod(np.arange(400 * 20), 20)
    logit = 2 * (question < 10) * rng.standard_normal(400)[student]
    right = rng.random(len(student)) < 1 / (1 + np.exp(-logit))
    option = np.where(right, 1, rng.integers(2, 5, len(student)))
    pd.DataFrame(
        {
            "QuestionId": question,
            "UserId": student,
            "IsCorrect": right.astype(int),
            "CorrectAnswer": 1,
            "AnswerValue": option,
        }
    ).to_csv(tmp_path / "train.csv", index=False)
    template = pd.DataFrame({"QuestionId": range(21), "ranking": ""})
    template.to_csv(tmp_path / "template.csv", index=False)
    done = run(
        ["task_3/sample_model_partial_vae.py", "--input_dir", tmp_path,
         "--train_data", "train.csv", "--submission_template_dir", tmp_path,
         "--submission_template_file", "template.csv", "--output_dir", tmp_path / "out"],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ranking = read(tmp_path / "out")
    assert sorted(ranking[:10]) == list(range(1, 11))
    assert ranking[20] == 21


def test_questions_that_nobody_answered_come_last(
    simulated_kit: Path, run: Run, tmp_path: Path, answers: pd.DataFrame
) -> None:
    silent = answers.QuestionId.unique()[:2]
    train = answers[~answers.QuestionId.isin(silent)]
    train.to_csv(tmp_path / "train.csv", index=False)
    flags = ["--input_dir", tmp_path, "--train_data", "train.csv"]
    flags += ["--metadata_dir", simulated_kit / "data/metadata"]
    for script in ("sample_model_rank_average.py", "sample_model_confidence.py"):
        ranking = rank(simulated_kit, run, tmp_path / script, script, *flags)
        assert set(ranking[silent]) == {len(ranking) - 1, len(ranking)}
        # Ties are broken by QuestionId.
        assert ranking[min(silent)] < ranking[max(silent)]


def test_missing_metadata_is_said_in_one_line(
    simulated_kit: Path, fails: Fails, tmp_path: Path
) -> None:
    flags = ["--metadata_dir", tmp_path, "--output_dir", tmp_path / "out"]
    line = fails(["task_3/sample_model_confidence.py", *flags], kit=simulated_kit)
    assert "answer_metadata_task_3_4.csv: file not found" in line
    flags += ["--features", "number_of_subjects"]
    line = fails(["task_3/sample_model_rank_average.py", *flags], kit=simulated_kit)
    assert "question_metadata_task_3_4.csv: file not found" in line
    flags[1] = tmp_path / "none"
    line = fails(["task_3/sample_model_rank_average.py", *flags], kit=simulated_kit)
    assert line == f"{tmp_path / 'none'}: not found, expected a folder of metadata"
    assert not (tmp_path / "out").exists()


def test_metadata_are_never_those_of_other_answers(
    simulated_kit: Path, run: Run, fails: Fails, tmp_path: Path, answers: pd.DataFrame
) -> None:
    answers.to_csv(tmp_path / "train_task_3_4.csv", index=False)
    flags = ["--input_dir", tmp_path, "--output_dir", tmp_path / "out"]
    line = fails(["task_3/sample_model_confidence.py", *flags], kit=simulated_kit)
    assert line == (
        f"{tmp_path / 'train_task_3_4.csv'}: the feature mean_confidence needs "
        "answer_metadata_task_3_4.csv of the same data, expected its folder by --metadata_dir"
    )
    # The default folder by another name; and a feature of the answers alone.
    link = tmp_path / "link"
    link.symlink_to(simulated_kit / "data/train_data")
    for script, folder in (("confidence", link), ("rank_average", tmp_path)):
        flags[1] = folder
        rank(simulated_kit, run, tmp_path / script, f"sample_model_{script}.py", *flags[:2])


def test_evaluation_shows_intervals_experts_and_disputes(
    simulated_kit: Path, run: Run, submissions: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = submissions("rank_average")
    ranking = read(folder)
    flags = ["--submission_dir", folder, "--output_dir", tmp_path]
    done = run(["task_3/local_evaluation.py", *flags], kit=simulated_kit)
    assert done.returncode == 0, done.stderr
    pairs = pd.read_csv(simulated_kit / "data/test_data/quality_response_remapped_public.csv")
    first, second = pairs[EXPERTS[0]], pairs[EXPERTS[1]]
    page = (tmp_path / "scores_task_3_public.html").read_text(encoding="utf-8")
    assert f"<td>{(first == second).mean():.2f}</td>" in page
    assert done.stdout.count(" of 25 pairs; experts among themselves ") == 5
    # Exactly the pairs that any expert contradicts are listed.
    prefers = np.where(ranking[pairs.left].to_numpy() < ranking[pairs.right].to_numpy(), 1, 2)
    disputed = (pairs[EXPERTS].notna() & (pairs[EXPERTS].ne(prefers, axis=0))).any(axis=1)
    assert f"<p>{disputed.sum()} of 25 pairs" in page
    assert page.count('title="contradicts"') == int(
        (pairs[EXPERTS].notna() & pairs[EXPERTS].ne(prefers, axis=0)).sum().sum()
    )
    low, high = re.findall(r"^best +\S+ \((\S+) to (\S+)\)", done.stdout, re.M)[0]
    score = float((tmp_path / "scores_task_3_public.txt").read_text().removeprefix("score:"))
    assert float(low) <= score <= float(high)


def test_pages_of_questions_and_of_the_ranking(
    simulated_kit: Path,
    run: Run,
    submissions: Callable[[str], Path],
    tmp_path: Path,
    answers: pd.DataFrame,
) -> None:
    folder = submissions("entropy")
    ranking = read(folder)
    images = tmp_path / "images"
    images.mkdir()
    question = int(ranking.idxmin())
    (images / f"{question}.jpg").write_bytes(b"picture")
    flags = ["--submission_dir", folder, "--output_dir", tmp_path / "pages"]
    flags += ["--images_dir", images]
    done = run(["task_3/question_report.py", *flags], kit=simulated_kit)
    assert done.returncode == 0, done.stderr
    pages = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "pages").iterdir()}
    answered = ranking[ranking.index.isin(answers.QuestionId)].sort_values().index
    ends = [*answered[:10], *answered[-10:]]
    assert set(pages) == {"ranking.html", *(f"question_{number}.html" for number in ends)}
    for number in ends:
        assert f'href="question_{number}.html"' in pages["ranking.html"]

    page = pages[f"question_{question}.html"]
    assert f"1 of {len(ranking)}" in page
    counts = answers[answers.QuestionId == question].AnswerValue.value_counts()
    for option, count in counts.items():
        assert re.search(rf">option {option}(, right)?</th><td [^>]*>{count}</td>", page)
    # Of each quarter of the students, the shares of all options make up the whole.
    bars = re.findall(r"<title>option (\d)(?:, right)?, (\d): (\d+)%</title>", page)
    assert [(option, quarter) for option, quarter, _ in bars] == [
        (option, quarter) for option in "1234" for quarter in "1234"
    ]
    for quarter in "1234":
        total = sum(int(share) for _, other, share in bars if other == quarter)
        assert total == pytest.approx(100, abs=2) or total == 0
    # The subjects that no other of its subjects is below.
    metadata = simulated_kit / "data/metadata"
    tree = pd.read_csv(metadata / "subject_metadata.csv").set_index("SubjectId")
    lists = pd.read_csv(metadata / "question_metadata_task_3_4.csv").set_index("QuestionId")
    own = tree.loc[json.loads(lists.SubjectId[question])]
    deepest = own.Name[own.Level == own.Level.max()]
    assert f">Subjects</th><td>{escape(', '.join(deepest))}</td>" in page
    # A link to the user's own image, never the image itself.
    assert f'href="{(images / f"{question}.jpg").as_uri()}"' in page
    assert "<img" not in page
    assert sum('href="file:' in text for text in pages.values()) == 1
    for name, text in pages.items():
        if name.startswith("question") and text != page:
            assert len(check_page(text).charts) == 1

    done = run(["task_3/question_report.py", "--question", question, *flags], kit=simulated_kit)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"pages/question_{question}.html").read_text(encoding="utf-8") == page


@pytest.mark.parametrize(("n_answers", "n_grey"), [(79, 1), (80, 0), (12, 4)])
def test_bars_of_few_answers_are_grey(
    n_answers: int, n_grey: int, run: Run, tmp_path: Path, write: Callable[[str, str], Path]
) -> None:
    """A quarter of the students that has fewer than 20; questions 8 and 9 have 99 answers."""
    lines = [
        f"{question},{student},{student % 2},1,{2 - student % 2}"
        for question, n in ((7, n_answers), (8, 99), (9, 99))
        for student in range(n)
    ]
    write("train.csv", "QuestionId,UserId,IsCorrect,CorrectAnswer,AnswerValue\n" + "\n".join(lines))
    write("submission_task_3.csv", "QuestionId,ranking\n7,1\n8,2\n9,3\n")
    write("template.csv", "QuestionId,ranking\n7,\n8,\n9,\n")
    done = run(
        ["task_3/question_report.py", "--input_dir", tmp_path, "--train_data", "train.csv",
         "--submission_dir", tmp_path, "--submission_template_dir", tmp_path,
         "--submission_template_file", "template.csv", "--metadata_dir", tmp_path,
         "--output_dir", tmp_path / "pages"]
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pages = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "pages").iterdir()}
    assert ">Subjects</th><td>unknown: no metadata of it</td>" in pages["question_7.html"]
    legend = "Pale grey: fewer than 20 answers, mostly chance."
    for number, n_expected in ((7, n_grey), (8, 0)):
        page = pages[f"question_{number}.html"]
        bars = re.findall(r'<title>option .*?<path [^>]*style="(.*?)"', page, re.DOTALL)
        assert len(bars) == 2 * 4
        assert sum("fill: var(--line)" in style for style in bars) == 2 * n_expected
        assert sum("fill: rgb(var(--accent))" in style for style in bars) == 4 - n_expected
        assert (legend in page) == bool(n_expected)
    # The same on the ranking's page, where a bar rests on all answers of its question.
    assert pages["ranking.html"].count('<div class="shares few">') == (n_answers < 20)
    assert pages["ranking.html"].count('<div class="shares">') == 3 - (n_answers < 20)
    assert (legend in pages["ranking.html"]) == (n_answers < 20)


def test_pages_need_a_known_question_and_a_ranking(
    simulated_kit: Path, submissions: Callable[[str], Path], fails: Fails, tmp_path: Path
) -> None:
    report = ["task_3/question_report.py", "--output_dir", tmp_path / "pages"]
    line = fails([*report, "--submission_dir", tmp_path], kit=simulated_kit)
    assert "`python task_3/sample_model_entropy.py` makes one" in line
    flags = ["--submission_dir", submissions("random"), "--question", 99999]
    line = fails([*report, *flags], kit=simulated_kit)
    assert "--question 99999: is not one of the questions" in line
    assert not (tmp_path / "pages").exists()


def test_comparison_of_features(
    simulated_kit: Path, run: Run, submissions: Callable[[str], Path], tmp_path: Path
) -> None:
    submission = submissions("random") / "submission_task_3.csv"
    done = run(["task_3/compare_features.py", "--rankings", submission], kit=simulated_kit)
    assert done.returncode == 0, done.stderr
    lines = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    # Every feature, this ranking, and the other experts; the row of the ranking as the evaluation.
    assert len(lines) == 1 + 13 + 2
    flags = ["--submission_dir", submission.parent, "--output_dir", tmp_path]
    done = run(["task_3/local_evaluation.py", *flags], kit=simulated_kit)
    shares = [line.split()[1] for line in done.stdout.splitlines()[:7]]
    assert [cell.split()[0] for cell in lines[-2][1:8]] == shares

    # With correct rates from elsewhere, the features that need no more change.
    questions = pd.read_csv(simulated_kit / "submission_templates/submission_task_3.csv").QuestionId
    rates = tmp_path / "rates.csv"
    pd.DataFrame({"QuestionId": questions, "NumAnswers": 1000, "NumCorrect": questions + 1}).to_csv(
        rates, index=False
    )
    done = run(["task_3/compare_features.py", "--correct_rates", rates], kit=simulated_kit)
    changed = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    differing = {a[0][2:] for a, b in zip(lines[:14], changed[:14], strict=True) if a != b}
    assert differing <= {"correct_rate, high", "correct_entropy, high"}
    pairs = pd.read_csv(simulated_kit / "data/test_data/quality_response_remapped_public.csv")
    share = ((pairs.left > pairs.right) == (pairs.T1_ALR == 1)).mean()
    row = next(row for row in changed if row[0].startswith("| correct_rate"))
    assert row[1].startswith(f"{share:.2f} ")


def test_real_answers_reproduce_the_table(
    real_data: Path, run: Run, simulated_kit: Path, tmp_path: Path
) -> None:
    """The row of the right/wrong entropy, and that of the rank average, as in the README."""
    folder = real_data / "eedi_tasks_3_4"
    questions = pd.read_csv(folder / "metadata/question_metadata_task_3_4.csv").QuestionId
    questions.sort_values().to_frame().assign(ranking="").to_csv(
        tmp_path / "submission_task_3.csv", index=False
    )
    done = run(
        ["task_3/compare_features.py", "--input_dir", folder / "train_data",
         "--train_data", "train_task_3_4.csv", "../test_data/test_public_task_4_more_splits.csv",
         "--metadata_dir", folder / "metadata", "--test_dir", folder / "test_data",
         "--submission_template_dir", tmp_path,
         "--correct_rates", folder / "train_task_3_4_question_stats.csv"],
        kit=simulated_kit,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    table = (ROOT / "task_3/README.md").read_text(encoding="utf-8")
    measured = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    entropy = next(line for line in measured if line.startswith("| correct_entropy"))
    assert re.findall(r"(\S+) \(", entropy)[:5] == ["0.72", "0.84", "0.68", "0.56", "0.64"]
    for line in measured:
        assert line in table
