"""The pages about questions, and about the best and worst questions of a ranking."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import question_features as qf
from conftest import answers_frame, fails, succeeds
from page_reading import Page, read_page

REPORT = "task_3/question_report.py"
OPTIONS = [1, 2, 3, 4]
LEGEND = "Pale grey: fewer than 20 answers, mostly chance."
# Features of which less is better.
FEWER_IS_BETTER = {"worst_distractor", "confidence_missing", "number_of_subjects"}


@pytest.fixture(scope="module")
def ranked(simulated_kit: Path, tmp_path_factory: Any) -> Path:
    """Return a folder with a ranking of the simulated questions by entropy, and its pages."""
    folder: Path = tmp_path_factory.mktemp("ranked")
    succeeds(["task_3/sample_model_entropy.py", "--output_dir", folder], kit=simulated_kit)
    best = read_ranking(folder).index[0]
    (folder / "images").mkdir()
    (folder / f"images/{best}.jpg").write_bytes(b"picture")
    report = [REPORT, "--submission_dir", folder, "--images_dir", folder / "images"]
    report += ["--output_dir", folder / "pages"]
    assert "ranking.html and 20 more pages" in succeeds(report, kit=simulated_kit)
    before = (folder / f"pages/question_{best}.html").read_bytes()
    succeeds([*report, "--question", best], kit=simulated_kit)
    assert (folder / f"pages/question_{best}.html").read_bytes() == before
    return folder


def read_ranking(folder: Path) -> pd.Series:
    """Return the ranks by QuestionId, the best first."""
    table = pd.read_csv(folder / "submission_task_3.csv", index_col="QuestionId")
    return table.ranking.sort_values()


def read_pages(folder: Path) -> dict[str, Page]:
    """Read pages, which may link to each other and to the images beside their folder."""
    links = [path.name for path in folder.iterdir()]
    links += [path.as_uri() for path in folder.parent.glob("images/*")]
    return {path.stem: read_page(path.read_text(encoding="utf-8"), links)
            for path in sorted(folder.iterdir())}  # fmt: skip


def as_text(value: float, sign: str = "") -> str:
    """Return a number as the pages show it."""
    return f"{value:{sign}z.2f}".replace("-", "−")


@pytest.fixture(scope="module")
def pages(ranked: Path) -> dict[str, Page]:
    """Return the pages of the ranking by their names."""
    return read_pages(ranked / "pages")


def test_only_the_page_of_a_question_links_to_its_image(
    ranked: Path, pages: dict[str, Page]
) -> None:
    """It links to the user's file and holds no copy of the image."""
    question = int(read_ranking(ranked).index[0])
    image = (ranked / f"images/{question}.jpg").as_uri()
    assert [name for name in pages if image in pages[name].references] == [f"question_{question}"]


def test_the_page_of_a_ranking_shows_the_best_and_the_worst_questions(
    simulated_kit: Path, ranked: Path, pages: dict[str, Page]
) -> None:
    """There is a page for each of them."""
    ranking = read_ranking(ranked)
    answers = pd.read_csv(simulated_kit / "data/train_data/train_task_3_4.csv")
    by_question = answers.groupby("QuestionId")
    answered = [number for number in ranking.index if number in by_question.groups]
    ends = {"The 10 best": answered[:10], "The 10 worst": answered[-10:]}
    questions = [*answered[:10], *answered[-10:]]
    assert set(pages) == {"ranking", *(f"question_{number}" for number in questions)}
    for heading, end in ends.items():
        for number, row in zip(end, pages["ranking"].table(heading).rows, strict=True):
            rows = by_question.get_group(number)
            expected = [f"{ranking[number]}", f"{len(rows):,}", f"{rows.IsCorrect.mean():.0%}"]
            assert row[:4] == [f"question {number}", *expected]


def test_the_page_of_a_question_shows_who_chose_what(
    simulated_kit: Path, ranked: Path, pages: dict[str, Page]
) -> None:
    ranking = read_ranking(ranked)
    question = int(ranking.index[0])
    page = pages[f"question_{question}"]
    assert f"Rank 1 of {len(ranking)}" in page.text
    answers = pd.read_csv(simulated_kit / "data/train_data/train_task_3_4.csv")
    rows = answers[answers.QuestionId == question]
    key = rows.CorrectAnswer.mode()[0]
    facts = f"Answers {len(rows)} Right option {key} Answered correctly {rows.IsCorrect.mean():.0%}"
    assert facts in page.text
    names = [
        f"option {option}, right" if option == key else f"option {option}" for option in OPTIONS
    ]
    counts = rows.AnswerValue.value_counts().reindex(OPTIONS, fill_value=0)
    shown = page.table("Who chose what")
    assert shown.column("") == names
    assert shown.column("answers") == [f"{count}" for count in counts]
    assert shown.column("share") == [f"{count / len(rows):.1%}" for count in counts]
    # The shares of all options add up to the whole in each quarter of the students.
    bars = [title.split(", ") for title in page.chart("Of the students who answered").titles]
    parts = [bar[-1].split(": ") for bar in bars]
    assert [", ".join(bar[:-1]) for bar in bars] == [name for name in names for _ in range(4)]
    assert [quarter for quarter, _ in parts] == list("1234") * 4
    totals = np.array([int(share.rstrip("%")) for _, share in parts]).reshape(-1, 4).sum(axis=0)
    assert totals == pytest.approx([100] * 4, abs=2)


def test_the_page_of_a_question_names_its_lowest_subjects(
    simulated_kit: Path, ranked: Path, pages: dict[str, Page]
) -> None:
    question = int(read_ranking(ranked).index[0])
    metadata = simulated_kit / "data/metadata"
    tree = pd.read_csv(metadata / "subject_metadata.csv").set_index("SubjectId")
    lists = pd.read_csv(metadata / "question_metadata_task_3_4.csv").set_index("QuestionId")
    subjects = tree.loc[json.loads(lists.SubjectId[question])]
    lowest = subjects.Name[subjects.Level == subjects.Level.max()]
    page = pages[f"question_{question}"]
    assert f"Subjects {', '.join(lowest)} Rank" in page.text


def test_features_are_compared_with_all_questions(
    simulated_kit: Path, ranked: Path, pages: dict[str, Page]
) -> None:
    """For each feature, a page shows the share of the other questions that are worse.

    Ties count by half.
    """
    ranking = read_ranking(ranked)
    files = simulated_kit / "data/train_data/train_task_3_4.csv", ranking.index.to_numpy()
    data = qf.read_for_features([*qf.FEATURES], *files, simulated_kit / "data/metadata")
    asked = [int(name.removeprefix("question_")) for name in pages if name != "ranking"]
    places = np.searchsorted(data.questions.index, asked)
    of_options, of_right = qf.option_point_biserial(data), qf.point_biserial(data)
    rows_of_ranking = {row[0]: row for table in pages["ranking"].tables for row in table.rows}
    for question, row in zip(asked, places, strict=True):
        shown = pages[f"question_{question}"].table("Who chose what")
        correlations = shown.column("point-biserial correlation")
        assert correlations == ["" if np.isnan(r) else as_text(r, "+") for r in of_options[row]]
        assert rows_of_ranking[f"question {question}"][4] == as_text(of_right[row], "+")
    for name, feature in qf.FEATURES.items():
        raw, value = feature.values(feature.relevant_answers(data)), qf.shrink(feature, data)
        known = value[~np.isnan(value)]
        for question, row in zip(asked, places, strict=True):
            table = pages[f"question_{question}"].table("Features")
            _, *cells, why = table.row(name.replace("_", " "))
            if np.isnan(value[row]):
                assert cells == ["unknown", "", ""], name
                continue
            n_below = (known < value[row]).sum()
            n_above = (known > value[row]).sum()
            n_ties = len(known) - n_below - n_above - 1
            if name in FEWER_IS_BETTER:
                n_worse = n_above
                assert why.startswith("low values: ")
            else:
                n_worse = n_below
                assert why.startswith("high values: ")
            share = (n_worse + n_ties / 2) / (len(known) - 1)
            assert cells == [as_text(raw[row]), as_text(value[row]), f"{share:.0%}"], name


def test_bars_of_few_answers_are_grey(tmp_path: Path) -> None:
    """A bar stands for a quarter of the students, and is grey if it has fewer than 20 answers."""
    # With 79 answers, one of the four quarters has only 19.
    student = np.r_[:12, :79, :80, :80]
    question, right = np.repeat([7, 8, 9, 10], [12, 79, 80, 80]), student % 2
    answers_frame(student, question, right, 2 - right, 1).to_csv(tmp_path / "train.csv")
    (tmp_path / "submission_task_3.csv").write_text("QuestionId,ranking\n7,1\n8,2\n9,3\n10,4\n")
    flags = ["--input_dir", tmp_path, "--train_data", "train.csv", "--submission_dir", tmp_path]
    flags += ["--submission_template_dir", tmp_path, "--metadata_dir", tmp_path]
    flags += ["--images_dir", tmp_path]
    succeeds([REPORT, *flags, "--output_dir", tmp_path / "pages"])
    pages = read_pages(tmp_path / "pages")
    assert "Subjects unknown: no metadata of it" in pages["question_7"].text
    assert LEGEND in pages["ranking"].text
    for number, n_grey in ((7, 4), (8, 1), (9, 0)):
        page = pages[f"question_{number}"]
        # Each of the two options that are chosen has a bar for a quarter.
        styles = [style for chart in page.charts for style in chart.styles]
        assert sum("var(--line)" in style for style in styles) == 2 * n_grey
        assert (LEGEND in page.text) == bool(n_grey)


def test_pages_need_a_known_question_and_a_ranking(
    simulated_kit: Path, ranked: Path, tmp_path: Path, pages: dict[str, Page]
) -> None:
    report = [REPORT, "--output_dir", tmp_path / "pages"]
    line = fails([*report, "--submission_dir", tmp_path], kit=simulated_kit)
    assert "`python task_3/sample_model_entropy.py` makes one" in line
    line = fails([*report, "--submission_dir", ranked, "--question", 99999], kit=simulated_kit)
    assert "--question 99999 is not one of the questions" in line
    assert not (tmp_path / "pages").exists()
