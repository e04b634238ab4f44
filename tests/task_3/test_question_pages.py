"""The pages about questions, and about the best and worst questions of a ranking."""

import json
from dataclasses import dataclass
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
# The features whose low values are better than high values.
LOW_IS_BETTER = {"worst_distractor", "confidence_missing", "number_of_subjects"}


@pytest.fixture(scope="module")
def ranked(simulated_kit: Path, tmp_path_factory: Any) -> Path:
    """Return a folder with a ranking of the simulated questions by entropy, and pages about it.

    The folder `images` holds an image of the best question.
    """
    folder: Path = tmp_path_factory.mktemp("ranked")
    succeeds(["task_3/sample_model_entropy.py", "--output_dir", folder], kit=simulated_kit)
    best = read_ranking(folder).index[0]
    (folder / "images").mkdir()
    (folder / f"images/{best}.jpg").write_bytes(b"picture")
    report = command_of_report(folder, folder / "pages")
    # The output names the page of the ranking and counts the other pages: those of the ten best
    # and the ten worst questions.
    assert "ranking.html and 20 more pages" in succeeds(report, kit=simulated_kit)
    return folder


def command_of_report(ranked: Path, output: Path) -> list[object]:
    """Return the command that writes pages on the ranking in the folder `ranked` to `output`."""
    images = ranked / "images"
    return [REPORT, "--submission_dir", ranked, "--images_dir", images, "--output_dir", output]


def read_ranking(folder: Path) -> pd.Series:
    """Return the ranks by QuestionId, the best first."""
    table = pd.read_csv(folder / "submission_task_3.csv", index_col="QuestionId")
    return table.ranking.sort_values()


def read_pages(folder: Path) -> dict[str, Page]:
    """Return the pages of a folder; they may link to each other and to images beside the folder."""
    links = [path.name for path in folder.iterdir()]
    links += [path.as_uri() for path in folder.parent.glob("images/*")]
    pages = {}
    for path in sorted(folder.iterdir()):
        pages[path.stem] = read_page(path.read_text(encoding="utf-8"), links)
    return pages


def as_text(value: float, sign: str = "") -> str:
    """Return a number as the pages show it."""
    return f"{value:{sign}z.2f}".replace("-", "−")


@pytest.fixture(scope="module")
def pages(ranked: Path) -> dict[str, Page]:
    """Return the pages of the ranking by their names."""
    return read_pages(ranked / "pages")


def test_the_page_of_a_question_does_not_depend_on_the_other_pages(
    simulated_kit: Path, ranked: Path, tmp_path: Path
) -> None:
    """A question's page is the same whether it is written alone or with a ranking's pages."""
    best = read_ranking(ranked).index[0]
    succeeds([*command_of_report(ranked, tmp_path), "--question", best], kit=simulated_kit)
    name = f"question_{best}.html"
    assert (tmp_path / name).read_bytes() == (ranked / "pages" / name).read_bytes()


def test_only_the_page_of_a_question_links_to_its_image(
    ranked: Path, pages: dict[str, Page]
) -> None:
    """The page links to the user's file and holds no copy of the image."""
    question = int(read_ranking(ranked).index[0])
    image = (ranked / f"images/{question}.jpg").as_uri()
    assert [name for name in pages if image in pages[name].references] == [f"question_{question}"]


def test_the_page_of_a_ranking_shows_the_best_and_the_worst_questions(
    simulated_kit: Path, ranked: Path, pages: dict[str, Page]
) -> None:
    """The ten best and ten worst questions are shown, and each has a page too.

    Questions without answers are left out. A row begins with the question, its rank, its number of
    answers and the share of right answers.
    """
    # The rank by QuestionId, the best question first.
    rank = read_ranking(ranked)
    answers = pd.read_csv(simulated_kit / "data/train_data/train_task_3_4.csv")
    by_question = answers.groupby("QuestionId")
    answered = [question for question in rank.index if question in by_question.groups]
    best = answered[:10]
    worst = answered[-10:]
    assert set(pages) == {"ranking", *(f"question_{question}" for question in [*best, *worst])}
    for heading, questions in (("The 10 best", best), ("The 10 worst", worst)):
        rows = pages["ranking"].table(heading).rows
        for question, row in zip(questions, rows, strict=True):
            is_right = by_question.get_group(question).IsCorrect
            assert row[:4] == [
                f"question {question}",
                f"{rank[question]}",
                f"{len(is_right):,}",
                f"{is_right.mean():.0%}",
            ]


@dataclass(frozen=True)
class BestQuestion:
    """The page of the question that ranks first, and the answers to this question."""

    page: Page
    answers: pd.DataFrame

    @property
    def right_option(self) -> int:
        """The right option, as most of the answers state it."""
        return int(self.answers.CorrectAnswer.mode()[0])

    @property
    def option_names(self) -> list[str]:
        """The four options as the page names them, such as "option 2, right"."""
        names = [f"option {option}" for option in OPTIONS]
        names[OPTIONS.index(self.right_option)] += ", right"
        return names


@pytest.fixture
def best_question(simulated_kit: Path, ranked: Path, pages: dict[str, Page]) -> BestQuestion:
    question = int(read_ranking(ranked).index[0])
    answers = pd.read_csv(simulated_kit / "data/train_data/train_task_3_4.csv")
    return BestQuestion(pages[f"question_{question}"], answers[answers.QuestionId == question])


def test_the_page_of_a_question_tells_its_rank(ranked: Path, best_question: BestQuestion) -> None:
    assert f"Rank 1 of {len(read_ranking(ranked))}" in best_question.page.text


def test_the_page_of_a_question_tells_how_many_answers_are_right(
    best_question: BestQuestion,
) -> None:
    answers = best_question.answers
    option = best_question.right_option
    share = f"{answers.IsCorrect.mean():.0%}"
    facts = f"Answers {len(answers)} Right option {option} Answered correctly {share}"
    assert facts in best_question.page.text


def test_the_page_of_a_question_shows_how_many_chose_each_option(
    best_question: BestQuestion,
) -> None:
    counts = best_question.answers.AnswerValue.value_counts().reindex(OPTIONS, fill_value=0)
    shares = counts / len(best_question.answers)
    table = best_question.page.table("Who chose what")
    assert table.column("") == best_question.option_names
    assert table.column("answers") == [f"{count}" for count in counts]
    assert table.column("share") == [f"{share:.1%}" for share in shares]


def test_the_page_of_a_question_shows_who_chose_what_by_ability(
    best_question: BestQuestion,
) -> None:
    """The chart has a bar for each option and each quarter of the students, the weakest first.

    A bar shows the share of the quarter that chose the option. For example, the title "option 2,
    right, 4: 81%" means that 81 % of quarter 4, the ablest, chose option 2, which is right.
    """
    options_shown = []
    quarters_shown = []
    percent_by_quarter = dict.fromkeys("1234", 0)
    for title in best_question.page.chart("Of the students who answered").titles:
        option, _, quarter_and_share = title.rpartition(", ")
        quarter, share = quarter_and_share.split(": ")
        options_shown.append(option)
        quarters_shown.append(quarter)
        percent_by_quarter[quarter] += int(share.rstrip("%"))
    # The bars of the four quarters lie side by side for each option.
    bars = [(option, quarter) for option in best_question.option_names for quarter in "1234"]
    assert list(zip(options_shown, quarters_shown, strict=True)) == bars
    # Each student chose one option, so the shares of the four options add up to 100 %. Each share
    # is rounded by up to half a percent.
    assert [*percent_by_quarter.values()] == pytest.approx([100] * 4, abs=2)


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


@pytest.fixture(scope="module")
def data(simulated_kit: Path, ranked: Path) -> qf.QuestionAnswers:
    """Return the simulated answers, with the metadata for all features."""
    train = simulated_kit / "data/train_data/train_task_3_4.csv"
    question_ids = read_ranking(ranked).index.to_numpy()
    metadata = simulated_kit / "data/metadata"
    return qf.read_for_features([*qf.FEATURES], train, question_ids, metadata)


@pytest.fixture(scope="module")
def rows_by_question(pages: dict[str, Page], data: qf.QuestionAnswers) -> dict[int, int]:
    """Return the row in `data.questions` of each question that has a page, by QuestionId."""
    questions = [int(name.removeprefix("question_")) for name in pages if name != "ranking"]
    rows = np.searchsorted(data.questions.index, questions)
    return dict(zip(questions, rows.tolist(), strict=True))


def test_the_pages_show_point_biserial_correlations(
    pages: dict[str, Page], data: qf.QuestionAnswers, rows_by_question: dict[int, int]
) -> None:
    """The page of a question shows the correlation of each of its options.

    The page of the ranking shows, for each question, the correlation of the right option only; the
    column is called discrimination. `rows_by_question` holds, for each QuestionId, its row in
    `data.questions`. The arrays of correlations have the same rows.
    """
    correlations_of_options = qf.option_point_biserial(data)
    correlation_of_right_answers = qf.point_biserial(data)
    # The discrimination in each row of the ranking, by the first cell of the row: "question 7".
    discrimination: dict[str, str] = {}
    for heading in ("The 10 best", "The 10 worst"):
        table = pages["ranking"].table(heading)
        discrimination.update(zip(table.column(""), table.column("discrimination"), strict=True))
    for question, row in rows_by_question.items():
        shown = pages[f"question_{question}"].table("Who chose what")
        expected = []
        for correlation in correlations_of_options[row]:
            # NaN, for an option that nobody chose, is an empty cell.
            expected.append("" if np.isnan(correlation) else as_text(correlation, "+"))
        assert shown.column("point-biserial correlation") == expected
        expected_discrimination = as_text(correlation_of_right_answers[row], "+")
        assert discrimination[f"question {question}"] == expected_discrimination


@pytest.mark.parametrize("name", qf.FEATURES)
def test_features_are_compared_with_all_questions(
    pages: dict[str, Page],
    data: qf.QuestionAnswers,
    rows_by_question: dict[int, int],
    name: str,
) -> None:
    """The page of a question shows each feature, and which share of the other questions is worse.

    For each feature, the page shows the value, the shrunk value, and the share of the other
    questions whose shrunk value is worse. Shrinking moves a value towards the mean of all
    questions, and moves it more if it is computed from fewer answers. The last cell says whether
    low or high values are better, and why.
    """
    feature = qf.FEATURES[name]
    raw = feature.values(feature.relevant_answers(data))
    shrunk = qf.shrink(feature, data)
    is_low_better = name in LOW_IS_BETTER
    for question, row in rows_by_question.items():
        table = pages[f"question_{question}"].table("Features")
        _name, *values_and_share, reason = table.row(name.replace("_", " "))
        if np.isnan(shrunk[row]):
            assert values_and_share == ["unknown", "", ""]
            continue
        assert reason.startswith("low values: " if is_low_better else "high values: ")
        share = share_of_worse(shrunk, row, is_low_better=is_low_better)
        assert values_and_share == [as_text(raw[row]), as_text(shrunk[row]), f"{share:.0%}"]


def share_of_worse(shrunk: np.ndarray, row: int, *, is_low_better: bool) -> float:
    """Return the share of the other questions whose shrunk value is worse than the value of `row`.

    Half of the other questions with the same value count as worse. Unknown values (NaN) do not
    count.
    """
    n_others = np.count_nonzero(~np.isnan(shrunk)) - 1
    # A comparison with NaN is False.
    n_below = np.count_nonzero(shrunk < shrunk[row])
    n_above = np.count_nonzero(shrunk > shrunk[row])
    n_ties = n_others - n_below - n_above
    n_worse = n_above if is_low_better else n_below
    return (n_worse + n_ties / 2) / n_others


# The numbers of answers to four questions, by QuestionId.
N_ANSWERS_BY_QUESTION = {7: 12, 8: 79, 9: 80, 10: 80}


@pytest.fixture(scope="module")
def few_answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    """Return the pages about four questions with few answers and without metadata."""
    folder = tmp_path_factory.mktemp("few_answers")
    # The first n students answer a question with n answers.
    student = np.concatenate([np.arange(n) for n in N_ANSWERS_BY_QUESTION.values()])
    question = np.repeat([*N_ANSWERS_BY_QUESTION], [*N_ANSWERS_BY_QUESTION.values()])
    # Students 1, 3, 5, … are right and choose option 1; the others choose option 2.
    is_right = student % 2 == 1
    right_option = 1
    option = np.where(is_right, right_option, 2)
    answers = answers_frame(student, question, is_right.astype(int), option, right_option)
    answers.to_csv(folder / "train.csv")
    (folder / "submission_task_3.csv").write_text("QuestionId,ranking\n7,1\n8,2\n9,3\n10,4\n")
    flags = ["--input_dir", folder, "--train_data", "train.csv", "--submission_dir", folder]
    flags += ["--submission_template_dir", folder, "--metadata_dir", folder]
    flags += ["--images_dir", folder]
    succeeds([REPORT, *flags, "--output_dir", folder / "pages"])
    return read_pages(folder / "pages")


def test_without_metadata_the_subjects_are_unknown(few_answers: dict[str, Page]) -> None:
    assert "Subjects unknown: no metadata of it" in few_answers["question_7"].text


@pytest.mark.parametrize(
    ("question", "n_grey_quarters"),
    [
        pytest.param(7, 4, id="12 answers"),
        # One of the four quarters has only 19 of the 79 answers, so its bars are grey.
        pytest.param(8, 1, id="79 answers"),
        pytest.param(9, 0, id="80 answers"),
    ],
)
def test_bars_of_a_quarter_with_fewer_than_20_answers_are_grey(
    few_answers: dict[str, Page], question: int, n_grey_quarters: int
) -> None:
    """A bar is grey if its quarter of the students has fewer than 20 answers.

    The students are sorted by ability and divided into quarters. The chart has a bar for each
    quarter and each option that was chosen. If the page has grey bars, a legend explains them.
    """
    page = few_answers[f"question_{question}"]
    styles = [style for chart in page.charts for style in chart.styles]
    # The page's style sheet calls the pale grey of these bars `--line`.
    n_grey_bars = sum("var(--line)" in style for style in styles)
    # Students here choose only options 1 and 2.
    n_options_chosen = 2
    assert n_grey_bars == n_options_chosen * n_grey_quarters
    assert (LEGEND in page.text) == (n_grey_quarters > 0)


def test_the_page_of_a_ranking_explains_grey_bars(few_answers: dict[str, Page]) -> None:
    assert LEGEND in few_answers["ranking"].text


def test_pages_need_a_known_question_and_a_ranking(
    simulated_kit: Path, ranked: Path, tmp_path: Path, pages: dict[str, Page]
) -> None:
    report = [REPORT, "--output_dir", tmp_path / "pages"]
    line = fails([*report, "--submission_dir", tmp_path], kit=simulated_kit)
    assert "`python task_3/sample_model_entropy.py` makes one" in line
    line = fails([*report, "--submission_dir", ranked, "--question", 99999], kit=simulated_kit)
    assert "--question 99999 is not one of the questions" in line
    assert not (tmp_path / "pages").exists()
