"""The page about the data: the script on simulated, real, mixed, partial and missing files."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from conftest import Run
from page_reading import Page, read_page

from common import layout
from common.charts import compact

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = "data/explore.py"
Says = Callable[..., str]
SECTIONS = [
    "Answers", "Difficulty", "Options", "Times", "Quizzes and groups", "Confidence", "Subjects",
    "Students", "What is missing",
]  # fmt: skip


def sections(page: Page) -> list[str]:
    """Return the headings but the first and those of charts and of groups of students."""
    return [name for name in page.headings if name in SECTIONS or name.startswith("Tasks ")]


def explore(run: Run, folder: Path, output: Path, *more: object) -> list[str]:
    """Run the script on a folder; return the names of what it has written."""
    done = run([SCRIPT, "--data_dir", folder, "--output_dir", output, *more])
    assert done.returncode == 0, done.stderr
    written = re.findall(r"^written: (.*)$", done.stdout, re.MULTILINE)
    assert done.stdout.count("\n") == len(written)
    return [Path(path).name for path in written]


def read_file(path: Path) -> Page:
    return read_page(path.read_text(encoding="utf-8"))


def copy_data(kit: Path, folder: Path) -> Path:
    for name in ("train_data", "metadata"):
        shutil.copytree(kit / "data" / name, folder / name)
    shutil.copy(kit / "data/SIMULATED.json", folder)
    return folder


def make_real(*paths: Path) -> None:
    """Change files as little as possible, so that they are no longer those of the simulation."""
    for path in paths:
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


# ---- What the page says --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def html(simulated_kit: Path, run: Run, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page about tiny simulated data."""
    output = tmp_path_factory.mktemp("explore")
    assert explore(run, simulated_kit / "data", output) == ["explore.html"]
    return (output / "explore.html").read_text(encoding="utf-8")


class Part:
    """What the page says about a group of tasks, and the files that it is about."""

    def __init__(self, data: Path, html: str, number: int) -> None:
        page = read_page(html)
        tasks = ("1_2", "3_4")[number]
        self.text = page.text.split("Tasks 3/4 ")[number]
        # Only roots are open.
        self.n_open = html.split("Tasks 3/4</h2>")[number].count("<details open")
        # What a chart is about, and then the chart.
        half = len(page.charts) // 2
        self.charts = {c.heading: c for c in page.charts[number * half : (number + 1) * half]}
        self.answers: Any = pd.read_csv(data / f"train_data/train_task_{tasks}.csv")
        circumstances = pd.read_csv(data / f"metadata/answer_metadata_task_{tasks}.csv")
        self.joined: Any = self.answers.merge(circumstances, on="AnswerId")
        self.joined["date"] = pd.to_datetime(self.joined.DateAnswered)
        students: Any = pd.read_csv(data / f"metadata/student_metadata_task_{tasks}.csv")
        self.students: Any = students[students.UserId.isin(self.answers.UserId)]
        self.subjects: Any = pd.read_csv(data / "metadata" / layout.SUBJECT_METADATA, index_col=0)
        questions: Any = pd.read_csv(data / f"metadata/question_metadata_task_{tasks}.csv")
        subjects = questions.SubjectId.str.findall(r"\d+").explode().astype(int)
        self.about: Any = (
            questions[["QuestionId"]].join(subjects).merge(self.answers, on="QuestionId")
        )


@pytest.fixture(scope="module", params=[0, 1], ids=["tasks 1/2", "tasks 3/4"])
def part(request: pytest.FixtureRequest, simulated_kit: Path, html: str) -> Part:
    return Part(simulated_kit / "data", html, request.param)


def rated(rows: Any) -> str:
    """Return how a chart tells a number of answers."""
    return f"{len(rows):,} answers" + (f", {rows.IsCorrect.mean():.0%} right" if len(rows) else "")


def test_a_page_about_simulated_data(html: str) -> None:
    page = read_page(html)
    assert "Nothing on this page is about real students" in page.text
    assert sections(page) == ["Tasks 1/2", *SECTIONS, "Tasks 3/4", *SECTIONS]
    # Every chart has a title of its own, and a sentence on how to read it.
    assert len(page.charts) > 25
    assert all(len(chart.key) > 40 for chart in page.charts)
    labels = re.findall(r'aria-label="([^"]*)"', html)
    assert len(set(labels)) == len(page.charts)


def test_counts(part: Part) -> None:
    answers = part.answers
    by_student, by_question = (answers[name].value_counts() for name in ("UserId", "QuestionId"))
    n_pairs = len(by_student) * len(by_question)
    most = by_student.iloc[: len(by_student) // 10].sum() / len(answers)
    for said in (
        f"{len(answers):,}training answers",
        f"{len(by_student):,}students",
        f"{answers.IsCorrect.mean():.1%}of the answers right",
        f"{len(answers) / n_pairs:.2%}of all pairs answered",
        f"{part.joined.QuizId.nunique():,}quizzes",
        f"half have {by_student.median():,.0f} or more.",
        f"The tenth with most answers gave {most:.0%} of them",
        f"How many questions have so many answers; half have {by_question.median():,.0f} or more.",
    ):
        assert said.lower() in part.text.lower(), said
    # Every student and every question is in the bar that names its number.
    for heading, counts in (("student", by_student), ("question", by_question)):
        n = 0
        for title in part.charts[f"Answers per {heading}"].titles:
            low, high, shown = re.fullmatch(
                rf"([\d,]+)(?: to ([\d,]+))?: ([\d,]+) {heading}s", title
            ).groups()
            low, high, shown = (int((each or low).replace(",", "")) for each in (low, high, shown))
            assert counts.between(low, high).sum() == shown, title
            n += shown
        assert n == len(counts)


def test_share_of_pairs_answered(part: Part) -> None:
    """By tenths of students and questions, those with most answers first."""

    def tenth(name: str) -> Any:
        n = (
            part.answers[name]
            .value_counts()
            .sort_index()
            .sort_values(kind="stable", ascending=False)
        )
        return pd.Series(np.arange(len(n)) * 10 // len(n), n.index)

    of_student, of_question = tenth("UserId"), tenth("QuestionId")
    students = part.answers.UserId.map(of_student)
    questions = part.answers.QuestionId.map(of_question)
    n = pd.crosstab(students, questions)
    expected = [
        f"students {10 * row}–{10 * row + 10}%, questions {10 * column}–{10 * column + 10}%: "
        f"{n.loc[row, column] / (of_student == row).sum() / (of_question == column).sum():.2%} "
        "answered"
        for row in range(10)
        for column in range(10)
    ]
    assert part.charts["How sparse it is"].titles == expected


def test_difficulty_and_options(part: Part) -> None:
    answers = part.answers
    for heading, name, things in (
        ("How difficult the questions are", "QuestionId", "questions"),
        ("How able the students are", "UserId", "students"),
    ):
        of_each = answers.groupby(name).IsCorrect.agg(["sum", "count"])
        of_each = of_each[of_each["count"] >= 20]
        # In hundredths of whole numbers: those at an edge belong to the bar that starts there.
        place = (of_each["sum"] * 20 // of_each["count"]).clip(upper=19)
        assert part.charts[heading].titles == [
            f"{5 * bar}% to {5 * bar + 5}%: {(place == bar).sum()} {things}" for bar in range(20)
        ]
    chosen = answers.AnswerValue.value_counts(normalize=True).sort_index()
    right = answers.CorrectAnswer.value_counts(normalize=True).sort_index()
    found = answers.groupby("CorrectAnswer").IsCorrect.mean()
    assert part.charts["The four options"].titles == [
        f"{name}, {option}: {share:.0%}"
        for name, shares in (("chosen", chosen), ("is right", right), ("chosen where right", found))
        for option, share in shares.items()
    ]
    # Of a question whose key has been changed, the usual one counts.
    key = answers.groupby("QuestionId").CorrectAnswer.agg(lambda keys: keys.mode()[0])
    usual = answers[answers.CorrectAnswer == answers.QuestionId.map(key)]
    counts = pd.crosstab(usual.QuestionId, usual.AnswerValue)
    counts = counts[counts.sum(axis=1) >= 20]
    wrong = [sorted(row.drop(key[question]), reverse=True) for question, row in counts.iterrows()]
    shares = np.array(wrong) / counts.sum(axis=1).to_numpy()[:, None]
    attraction = (np.array(wrong) / np.sum(wrong, axis=1, keepdims=True)).mean(axis=0)
    names = ("most attractive", "middle attractive", "least attractive")
    assert part.charts["Which distractor attracts"].titles == [
        f"{name}: {share:.2f}" for name, share in zip(names, attraction, strict=True)
    ]
    assert f"{(shares < 0.05).mean():.0%} of them are chosen in less than 5% of the" in part.text


def test_circumstances(part: Part) -> None:
    joined = part.joined
    empty = joined.Confidence.isna().sum()
    assert f"Confidence{empty / len(joined):.1%} · {empty:,} of {len(joined):,}" in part.text
    assert f"{1 - empty / len(joined):.1%} of the answers come with a confidence" in part.text
    at = joined.groupby("Confidence").IsCorrect
    sure = {
        f"{level:.0f}% sure ({n}): {value:.2f}"
        for (level, n), share in zip(at.size().items(), at.mean(), strict=True)
        for value in (share, level / 100)
    }
    assert {*part.charts["Confidence and correctness"].titles} == sure
    per_quiz, per_group = (
        joined.groupby(owner)[member].nunique().median()
        for owner, member in (("QuizId", "QuestionId"), ("GroupId", "UserId"))
    )
    sitting = joined.groupby(["UserId", "QuizId"]).size().median()
    assert f"so many questions; the median is {per_quiz:,.0f};" in part.text
    assert f"in one quiz; the median is {sitting:,.0f};" in part.text
    assert f"mostly a class; the median size is {per_group:,.0f};" in part.text

    date = joined.date
    first, last = (f"{day.day} {day:%b %Y}" for day in (date.min(), date.max()))
    assert f"From {first} to {last}, a column for each month." in part.text
    months = date.dt.to_period("M")
    assert part.charts["Answers by month"].titles == [
        f"{month:%b %Y}: {rated(joined[months == month])}"
        for month in pd.period_range(months.min(), months.max())
    ]
    hours = joined.groupby([date.dt.day_of_week, date.dt.hour])
    day, hour = hours.size().idxmax()
    weekdays = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    assert f"most in that of {weekdays[day]} {hour}:00." in part.text
    expected = [
        f"{weekdays[day]} {hour}:00 to {hour}:59: {rated(rows)}" for (day, hour), rows in hours
    ]
    titles = part.charts["When in the week"].titles
    assert [title for title in titles if ": 0 answers" not in title] == expected


def test_subjects_are_nested_as_in_the_tree_most_answers_first(part: Part) -> None:
    about, subjects = part.about, part.subjects
    n = about.SubjectId.value_counts()
    expected = []

    def describe(parent: int | None) -> None:
        below = subjects.index[subjects.ParentId.isna() if parent is None
                               else subjects.ParentId == parent]  # fmt: skip
        for subject in sorted(set(below) & set(n.index), key=lambda each: (-n[each], each)):
            rows = about[about.SubjectId == subject]
            n_questions = rows.QuestionId.nunique()
            expected.append(
                f"{subjects.Name[subject]}{n_questions:,} question{'s' * (n_questions != 1)} · "
                f"{compact(len(rows))} answers · {rows.IsCorrect.mean():.0%} right"
            )
            describe(subject)

    describe(None)
    tree = part.text.split("to see what lies below. ")[1].split(" Students The bar")[0]
    assert tree == " ".join(expected)
    assert f"{len(expected)} of the {len(subjects)} subjects have questions." in part.text
    assert part.n_open == (subjects.Level[n.index] == 0).sum() < len(expected)
    # The same order in the chart of subjects below the root, the first of each question.
    main = about[about.SubjectId.map(subjects.Level) == 1].drop_duplicates("AnswerId")
    names = main.SubjectId.map(subjects.Name).value_counts().index[:8]
    titles = part.charts["What in which month"].titles
    assert list(dict.fromkeys(title.rsplit(", ", 1)[0] for title in titles)) == list(names)


def test_students(part: Part) -> None:
    def line(name: str, rows: Any, column: str) -> str:
        answers = part.answers[part.answers.UserId.isin(rows.UserId)]
        share = len(rows) / part.students[column].notna().sum()
        return (
            f"{name}{len(rows):,} students ({share:.1%}) · {compact(len(answers))} answers · "
            f"{answers.IsCorrect.mean():.1%} right"
        )

    students = part.students
    for gender, name in enumerate(("unspecified", "female", "male")):
        assert line(name, students[students.Gender == gender], "Gender") in part.text
    for premium, name in enumerate(("not entitled", "entitled")):
        rows = students[students.PremiumPupil == premium]
        assert f" {line(name, rows, 'PremiumPupil')}" in part.text
    year = students.DateOfBirth.dropna().str[:4].astype(int)
    year = year[year.between(1998, 2014)]
    commonest = year.mode()[0]
    said = f"Those of the most common year, {commonest}, turned {2020 - commonest} in 2020"
    assert said in part.text
    born = [title.partition(" students")[0] for title in part.charts["Year of birth"].titles]
    years = range(year.min(), year.max() + 1)
    assert born == [f"born in {each}: {(year == each).sum()}" for each in years]


# ---- Which files ---------------------------------------------------------------------------------


def test_real_and_simulated_never_share_a_page(
    simulated_kit: Path, run: Run, tmp_path: Path
) -> None:
    folder = copy_data(simulated_kit, tmp_path / "mixed")
    make_real(folder / "train_data/train_task_1_2.csv", folder / "metadata/subject_metadata.csv")
    names = explore(run, folder, tmp_path / "out")
    assert names == ["explore.html", "explore_simulated.html"]
    real, simulated = (read_file(tmp_path / "out" / name) for name in names)
    assert "not simulated by the kit" in real.text
    assert "Nothing on this page" not in real.text
    assert sections(real) == ["Tasks 1/2", "Answers", "Difficulty", "Options"]
    assert sections(simulated)[0] == "Tasks 3/4" and "Subjects" not in sections(simulated)
    assert "Tasks 3/4 are not on this page, being simulated: see explore_simulated." in real.text
    assert "Tasks 1/2 are not on this page, being not simulated: see explore." in simulated.text
    # Simulated metadata tell nothing about real answers, nor the other way round.
    left_out = "student_metadata_task_1_2.csv, answer_metadata_task_1_2.csv."
    assert f"not: question_metadata_task_1_2.csv, {left_out}" in real.text
    assert "as the answers are: subject_metadata.csv." in simulated.text


def test_what_is_not_there_is_said(simulated_kit: Path, run: Run, tmp_path: Path) -> None:
    folder = copy_data(simulated_kit, tmp_path / "part")
    (folder / "train_data/train_task_1_2.csv").unlink()
    for name in ("answer_metadata_task_3_4.csv", "subject_metadata.csv"):
        (folder / "metadata" / name).unlink()
    explore(run, folder, tmp_path / "out")
    page = read_file(tmp_path / "out/explore.html")
    said = page.text
    assert "Tasks 1/2 are not on this page: train_data/train_task_1_2.csv is not there." in said
    assert "Not there: answer_metadata_task_3_4.csv, subject_metadata.csv." in said
    expected = ["Tasks 3/4", "Answers", "Difficulty", "Options", "Students", "What is missing"]
    assert sections(page) == expected


def test_two_answers_are_enough(run: Run, tmp_path: Path) -> None:
    """Without options, ids and metadata, and with too few answers for any share."""
    (tmp_path / "train_data").mkdir()
    train = tmp_path / "train_data/train_task_3_4.csv"
    train.write_text("QuestionId,UserId,IsCorrect\n5,2000000000,1\n7,3,0\n")
    explore(run, tmp_path, tmp_path)
    assert sections(read_file(tmp_path / "explore.html")) == ["Tasks 3/4", "Answers"]


def test_faults(simulated_kit: Path, fails: Says, tmp_path: Path) -> None:
    output = ["--output_dir", tmp_path / "out"]
    missing = tmp_path / "nowhere"
    line = fails([SCRIPT, "--data_dir", missing, *output])
    assert line == f"{missing}: not found, expected a folder laid out like data/"
    line = fails([SCRIPT, "--data_dir", tmp_path, *output])
    assert line.startswith(f"{tmp_path / 'train_data'}: holds neither train_task_1_2.csv nor ")
    folder = copy_data(simulated_kit, tmp_path / "data")
    (folder / "train_data/train_task_1_2.csv").unlink()
    train = folder / "train_data/train_task_3_4.csv"
    make_real(train)
    more = ["--pictures", tmp_path / "pictures"]
    line = fails([SCRIPT, "--data_dir", folder, *output, *more])
    assert line.startswith(f"--pictures: {train} is not simulated")
    train.write_text("QuestionId,UserId,IsCorrect\n5,2,1\n7,3,2\n")
    line = fails([SCRIPT, "--data_dir", folder, *output])
    assert line.startswith(f"{train}: column 'IsCorrect': row 3 is '2'")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "pictures").exists()


def without_ids(svg: str) -> str:
    """Return a picture without the ids in it, which nobody sees: they are hashes."""
    return re.sub(r"(id=\"|#)[a-z][0-9a-f]{10}\b", r"\1", svg)


def test_the_pictures_are_those_that_the_script_makes(
    run: Run, succeeds: Says, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    succeeds(["data/generate_sample.py", "--size", "small", "--output_dir", small])
    # They are of tasks 1/2.
    (small / "train_data" / layout.TRAIN_TASK_3_4).unlink()
    pictures = tmp_path / "pictures"
    explore(run, small, tmp_path, "--pictures", pictures)
    committed = ROOT / "data/pictures"
    assert {path.name for path in pictures.iterdir()} == {path.name for path in committed.iterdir()}
    for path in committed.iterdir():
        text = path.read_text(encoding="utf-8")
        made = (pictures / path.name).read_text(encoding="utf-8")
        assert without_ids(made) == without_ids(text)
        assert "Simulated data: " in "".join(ElementTree.fromstring(text).itertext())
        assert "prefers-color-scheme: dark" in text
        # An image has no page to take colours from.
        assert "Canvas" not in text
        assert set(re.findall(r"var\((--\w+)\)", text)) <= set(re.findall(r"(--\w+):", text))


@pytest.mark.parametrize(
    ("folder", "tasks"), [("eedi_tasks_3_4", "3/4"), ("eedi_tasks_1_2_sample", "1/2")]
)
def test_a_page_about_real_answers(
    real_data: Path, folder: str, tasks: str, run: Run, tmp_path: Path
) -> None:
    explore(run, real_data / folder, tmp_path)
    page = read_file(tmp_path / "explore.html")
    assert "not simulated by the kit" in page.text
    without = ("Times", "Quizzes and groups", "Confidence")
    assert sections(page) == [f"Tasks {tasks}", *(s for s in SECTIONS if s not in without)]
    assert f"Not there: answer_metadata_task_{tasks.replace('/', '_')}.csv." in page.text
