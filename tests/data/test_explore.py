"""The page about the data: the script on simulated, real, mixed, partial and missing files."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

from common.charts import compact

import numpy as np
import pandas as pd
import pytest
from conftest import Run, Says, Write
from explore import bin_edges
from page_reading import Page, read_page
from run_scripts import ROOT

SCRIPT = "data/explore.py"
GROUPS, TRAIN = ("1_2", "3_4"), "train_data/train_task_{}.csv"
SECTIONS = [
    "Answers", "Difficulty", "Options", "Times", "Quizzes and groups", "Confidence", "Subjects",
    "Students", "What is missing",
]  # fmt: skip
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def sections(page: Page) -> list[str]:
    """Return the headings but the first and those of charts and of groups of students."""
    return [name for name in page.headings if name in SECTIONS or name.startswith("Tasks ")]


def explore(run: Run, folder: Path, output: Path) -> dict[str, Page]:
    """Run the script on a folder; return the pages that it has written, by name."""
    done = run([SCRIPT, "--data_dir", folder, "--output_dir", output])
    assert done.returncode == 0, done.stderr
    written = [Path(path) for path in re.findall(r"^written: (.*)$", done.stdout, re.MULTILINE)]
    assert done.stdout.count("\n") == len(written)
    return {path.name: read_page(path.read_text(encoding="utf-8")) for path in written}


# ---- What the page says --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def html(simulated_kit: Path, run: Run, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page about tiny simulated data."""
    output = tmp_path_factory.mktemp("explore")
    assert [*explore(run, simulated_kit / "data", output)] == ["explore.html"]
    return (output / "explore.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=[0, 1], ids=["tasks 1/2", "tasks 3/4"])
def part(request: pytest.FixtureRequest, simulated_kit: Path, html: str) -> SimpleNamespace:
    """Return what the page says about a group of tasks, and the files that it is about."""
    number, page = request.param, read_page(html)

    def read(name: str, **options: Any) -> Any:
        return pd.read_csv(simulated_kit / "data" / name.format(GROUPS[number]), **options)

    half = len(page.charts) // 2
    charts = page.charts[number * half : (number + 1) * half]
    answers, students = read(TRAIN), read("metadata/student_metadata_task_{}.csv")
    joined = answers.merge(read("metadata/answer_metadata_task_{}.csv"))
    questions = read("metadata/question_metadata_task_{}.csv")
    subjects = questions.SubjectId.str.findall(r"\d+").explode().astype(int)
    return SimpleNamespace(
        text=page.text.split("Tasks 3/4 ")[number],
        n_open=html.split("Tasks 3/4</h2>")[number].count("<details open"),
        titles={chart.heading: chart.titles for chart in charts},
        answers=answers,
        joined=joined.assign(date=pd.to_datetime(joined.DateAnswered)),
        students=students[students.UserId.isin(answers.UserId)],
        subjects=read("metadata/subject_metadata.csv", index_col=0),
        about=questions[["QuestionId"]].join(subjects).merge(answers, on="QuestionId"),
    )


def bars(shares_n: Any, shares_of: Any, things: str) -> list[str]:
    """Return what the bars of a chart of shares say."""
    # In hundredths of whole numbers: those at an edge belong to the bar that starts there.
    place = (np.asarray(shares_n) * 20 // np.asarray(shares_of)).clip(max=19)
    return [f"{5 * bar}% to {5 * bar + 5}%: {(place == bar).sum()} {things}" for bar in range(20)]


def test_a_page_about_simulated_data(html: str) -> None:
    page = read_page(html)
    assert "Nothing on this page is about real students" in page.text
    assert sections(page) == ["Tasks 1/2", *SECTIONS, "Tasks 3/4", *SECTIONS]
    # Every chart has a title of its own, and a sentence on how to read it.
    assert len(page.charts) > 25
    assert all(len(chart.key) > 40 for chart in page.charts)
    labels = re.findall(r'aria-label="([^"]*)"', html)
    assert len(set(labels)) == len(page.charts)


def test_histograms(part: SimpleNamespace) -> None:
    """Everything is in the bar that names its number."""
    answers, joined = part.answers, part.joined
    by_student, by_question = (answers[name].value_counts() for name in ("UserId", "QuestionId"))
    tenth = by_student.iloc[: len(by_student) // 10].sum() / len(answers)
    for heading, counts, things, said in (
        ("Answers per student", by_student, "students", "half have {} or more. The tenth with most "
         f"answers gave {tenth:.0%} of them"),
        ("Answers per question", by_question, "questions", "questions have so many answers; half "
         "have {} or more."),
        ("Questions per quiz", joined.groupby("QuizId").QuestionId.nunique(), "quizzes",
         "so many questions; the median is {};"),
        ("Answers of a student in a quiz", joined.groupby(["UserId", "QuizId"]).size(), "sittings",
         "in one quiz; the median is {};"),
        ("Students per group", joined.groupby("GroupId").UserId.nunique(), "groups",
         "mostly a class; the median size is {};"),
    ):  # fmt: skip
        assert said.format(f"{counts.median():,.0f}") in part.text
        found = 0
        for title in part.titles[heading]:
            low, *high, n = map(int, re.findall(r"\d+", title.replace(",", "")))
            assert title.endswith(f" {things}")
            assert counts.between(low, *(high or [low])).sum() == n, title
            found += n
        assert found == len(counts)


def test_what_is_counted(part: SimpleNamespace) -> None:
    answers, joined, date = part.answers, part.joined, part.joined.date
    n_students, n_questions = answers.UserId.nunique(), answers.QuestionId.nunique()
    empty = joined.Confidence.isna().sum()
    hours = joined.groupby([date.dt.day_of_week, date.dt.hour])
    day, hour = hours.size().idxmax()
    first, last = (f"{day.day} {day:%b %Y}" for day in (date.min(), date.max()))
    year = part.students.DateOfBirth.dropna().str[:4].astype(int)
    year = year[year.between(1998, 2014)]
    commonest = year.mode()[0]
    said = [
        f"{len(answers):,}training answers",
        f"{n_students:,}students",
        f"{answers.IsCorrect.mean():.1%}of the answers right",
        f"{len(answers) / n_students / n_questions:.2%}of all pairs answered",
        f"{joined.QuizId.nunique():,}quizzes",
        f"Confidence{empty / len(joined):.1%} · {empty:,} of {len(joined):,}",
        f"{1 - empty / len(joined):.1%} of the answers come with a confidence",
        f"From {first} to {last}, a column for each month.",
        f"most in that of {WEEKDAYS[day]} {hour}:00.",
        f"most common year, {commonest}, turned {2020 - commonest} in 2020",
    ]
    for column, names in (
        ("Gender", ("unspecified", "female", "male")),
        ("PremiumPupil", ("not entitled", "entitled")),
    ):
        n_known = part.students[column].notna().sum()
        for value, name in enumerate(names):
            own = part.students.UserId[part.students[column] == value]
            given = answers[answers.UserId.isin(own)]
            said.append(
                f" {name}{len(own):,} students ({len(own) / n_known:.1%}) · "
                f"{compact(len(given))} answers · {given.IsCorrect.mean():.1%} right"
            )
    for each in said:
        assert each in part.text, each

    assert {*part.titles["Confidence and correctness"]} == {
        f"{level:.0f}% sure ({len(rows)}): {value:.2f}"
        for level, rows in joined.groupby("Confidence")
        for value in (rows.IsCorrect.mean(), level / 100)
    }
    assert [title.partition(" students")[0] for title in part.titles["Year of birth"]] == [
        f"born in {each}: {(year == each).sum()}" for each in range(year.min(), year.max() + 1)
    ]


def test_share_of_pairs_answered(part: SimpleNamespace) -> None:
    """By tenths of students and questions, those with most answers first."""

    def tenths(name: str) -> tuple[Any, Any]:
        n = part.answers[name].value_counts().sort_index()
        n = n.sort_values(kind="stable", ascending=False)
        tenth = pd.Series(np.arange(len(n)) * 10 // len(n), n.index)
        return part.answers[name].map(tenth), tenth.value_counts()

    (student, n_students), (question, n_questions) = tenths("UserId"), tenths("QuestionId")
    n = pd.crosstab(student, question)
    assert part.titles["How sparse it is"] == [
        f"students {10 * row}–{10 * row + 10}%, questions {10 * column}–{10 * column + 10}%: "
        f"{n.loc[row, column] / n_students[row] / n_questions[column]:.2%} answered"
        for row in range(10)
        for column in range(10)
    ]


def test_difficulty_and_options(part: SimpleNamespace) -> None:
    answers, titles = part.answers, part.titles
    for heading, name, things in (
        ("How difficult the questions are", "QuestionId", "questions"),
        ("How able the students are", "UserId", "students"),
    ):
        of_each = answers.groupby(name).IsCorrect.agg(["sum", "count"])
        of_each = of_each[of_each["count"] >= 20]
        assert titles[heading] == bars(of_each["sum"], of_each["count"], things)
    assert titles["The four options"] == [
        f"{name}, {option}: {share:.0%}"
        for name, shares in (
            ("chosen", answers.AnswerValue.value_counts(normalize=True).sort_index()),
            ("is right", answers.CorrectAnswer.value_counts(normalize=True).sort_index()),
            ("chosen where right", answers.groupby("CorrectAnswer").IsCorrect.mean()),
        )
        for option, share in shares.items()
    ]
    # Of a question whose key has been changed, the usual one counts.
    key = answers.groupby("QuestionId").CorrectAnswer.agg(lambda keys: keys.mode()[0])
    usual = answers[answers.CorrectAnswer == answers.QuestionId.map(key)]
    counts = pd.crosstab(usual.QuestionId, usual.AnswerValue)
    counts = counts[counts.sum(axis=1) >= 20]
    wrong = np.array([sorted(row.drop(key[question])) for question, row in counts.iterrows()])
    of = np.repeat(counts.sum(axis=1).to_numpy(), 3)
    assert titles["How often distractors are chosen"] == bars(wrong.ravel(), of, "distractors")
    weak = f"{(wrong.ravel() / of < 0.05).mean():.0%} of them are chosen in less than 5% of the"
    assert weak in part.text
    attraction = (wrong / wrong.sum(axis=1, keepdims=True)).mean(axis=0)
    assert titles["Which distractor attracts"] == [
        f"{name} attractive: {share:.2f}"
        for name, share in zip(("most", "middle", "least"), attraction[::-1], strict=True)
    ]


def test_subjects_are_nested_as_in_the_tree_most_answers_first(part: SimpleNamespace) -> None:
    about, subjects = part.about, part.subjects
    n = about.SubjectId.value_counts()
    expected = []

    def describe(parent: float) -> None:
        below = n.index[subjects.ParentId[n.index].fillna(-1) == parent]
        for subject in sorted(below, key=lambda each: (-n[each], each)):
            rows = about[about.SubjectId == subject]
            n_questions = rows.QuestionId.nunique()
            expected.append(
                f"{subjects.Name[subject]}{n_questions:,} question{'s' * (n_questions != 1)} · "
                f"{compact(len(rows))} answers · {rows.IsCorrect.mean():.0%} right"
            )
            describe(subject)

    describe(-1)
    tree = part.text.split("to see what lies below. ")[1].split(" Students The bar")[0]
    assert tree == " ".join(expected)
    assert f"{len(expected)} of the {len(subjects)} subjects have questions." in part.text
    # Only roots are open.
    assert part.n_open == (subjects.Level[n.index] == 0).sum() < len(expected)
    # The same order in the chart of subjects below the root, the first of each question.
    main = about[about.SubjectId.map(subjects.Level) == 1].drop_duplicates("AnswerId")
    months = part.joined.set_index("AnswerId").date.dt.to_period("M")[main.AnswerId]
    n = pd.crosstab(main.SubjectId.map(subjects.Name).to_numpy(), months.to_numpy())
    names = main.SubjectId.map(subjects.Name).value_counts().index[:8]
    assert part.titles["What in which month"] == [
        f"{name}, {month:%b %Y}: {n[month][name]:,} answers of {n[month].sum():,}"
        for name in names
        for month in n.columns
    ]


# ---- Which files ---------------------------------------------------------------------------------


def test_real_and_simulated_never_share_a_page(tiny_kit: Path, run: Run, tmp_path: Path) -> None:
    for name in ("train_data/train_task_1_2.csv", "metadata/subject_metadata.csv"):
        path = tiny_kit / "data" / name
        # As little as possible, so that the file is no longer that of the simulation.
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    pages = explore(run, tiny_kit / "data", tmp_path / "out")
    assert [*pages] == ["explore.html", "explore_simulated.html"]
    real, simulated = pages.values()
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


def test_what_is_not_there_is_said(tiny_kit: Path, run: Run, tmp_path: Path) -> None:
    missing = ("answer_metadata_task_3_4.csv", "subject_metadata.csv")
    for name in ("train_data/train_task_1_2.csv", *(f"metadata/{name}" for name in missing)):
        (tiny_kit / "data" / name).unlink()
    page = explore(run, tiny_kit / "data", tmp_path / "out")["explore.html"]
    assert "not on this page: train_data/train_task_1_2.csv is not there." in page.text
    assert f"Not there: {', '.join(missing)}." in page.text
    expected = ["Tasks 3/4", "Answers", "Difficulty", "Options", "Students", "What is missing"]
    assert sections(page) == expected


def test_faults(tiny_kit: Path, fails: Says, tmp_path: Path) -> None:
    def fault(folder: Path) -> str:
        return fails([SCRIPT, "--data_dir", folder, "--output_dir", tmp_path / "out"])

    missing, folder = tmp_path / "nowhere", tmp_path / "train_data"
    assert fault(missing) == f"{missing}: not found, expected a folder laid out like data/"
    assert fault(tmp_path).startswith(f"{folder}: holds neither train_task_1_2.csv nor ")
    folder = tiny_kit / "data/train_data"
    train = folder / "train_task_3_4.csv"
    train.write_text("QuestionId,UserId,IsCorrect\n5,2,1\n7,3,2\n")
    assert fault(tiny_kit / "data").startswith(f"{train}: column 'IsCorrect': row 3 is '2'")
    assert not (tmp_path / "out").exists()


def test_the_pictures_of_the_readme_are_of_the_page(succeeds: Says, tmp_path: Path) -> None:
    succeeds(["data/generate_sample.py", "--size", "small", "--output_dir", tmp_path])
    # They are of tasks 1/2.
    (tmp_path / "train_data/train_task_3_4.csv").unlink()
    succeeds(["data/explore.py", "--data_dir", tmp_path, "--output_dir", tmp_path])
    command = ["tests/benchmarks/readme_pictures.py", "--input_dir", tmp_path]
    succeeds([*command, "--output_dir", tmp_path / "pictures"])
    for path in (ROOT / "data/pictures").iterdir():
        picture = path.read_text(encoding="utf-8")
        assert (tmp_path / "pictures" / path.name).read_text(encoding="utf-8") == picture
        assert "Simulated data: " in "".join(ElementTree.fromstring(picture).itertext())
        # Colours of its own, for light and for dark.
        light, dark = picture.split("prefers-color-scheme: dark")
        for name in set(re.findall(r"var\((--\w+)\)", picture)):
            assert f"{name}:" in light and f"{name}:" in dark.split("</style>")[0]


def test_a_page_about_real_answers(real_data: Path, run: Run, tmp_path: Path) -> None:
    for folder, tasks in (("eedi_tasks_3_4", "3/4"), ("eedi_tasks_1_2_sample", "1/2")):
        page = explore(run, real_data / folder, tmp_path)["explore.html"]
        assert "not simulated by the kit" in page.text
        without = ("Times", "Quizzes and groups", "Confidence")
        assert sections(page) == [f"Tasks {tasks}", *(s for s in SECTIONS if s not in without)]
        assert f"Not there: answer_metadata_task_{tasks.replace('/', '_')}.csv." in page.text


# ---- What simulated answers do not show ----------------------------------------------------------


def test_flat_numbers_draw_no_teeth() -> None:
    edges = bin_edges(35, 83)
    counts, _ = np.histogram(np.arange(35, 83), edges)
    assert (np.diff(np.diff(edges)) >= 0).all() and (np.diff(counts[:-1]) >= 0).all()


def test_few_answers_and_dates_that_are_missing_or_nonsense(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """With too few for any share; some without options, all without quizzes."""
    header = "QuestionId,UserId,IsCorrect,AnswerId"
    write(TRAIN.format("1_2"), f"{header}\n5,2000000000,1,8\n7,3,0,9\n")
    nonsense = "AnswerId,DateAnswered\n8,9999-01-01 00:00:00.000\n9,\n"
    write("metadata/answer_metadata_task_1_2.csv", nonsense)
    dates = ("2019-12-30 00:00", "2020-02-29 23:59", "2020-02-29 23:00", "", "9999-01-01 00:00")
    own = pd.DataFrame({"AnswerId": range(5), "QuestionId": range(5), "UserId": [8, 8, 7, 9, 8]})
    own["IsCorrect"], own["DateAnswered"] = [1, 0, 1, 1, 1], dates
    options = own.assign(CorrectAnswer=1, AnswerValue=2 - own["IsCorrect"])
    write(TRAIN.format("3_4"), options.drop(columns="DateAnswered").to_csv(index=False))
    metadata = own[["AnswerId", "DateAnswered"]].to_csv(index=False)
    write("metadata/answer_metadata_task_3_4.csv", metadata)
    page = explore(run, tmp_path, tmp_path)["explore.html"]
    first, second = ["Tasks 1/2", "Answers"], ["Tasks 3/4", "Answers", "Options", "Times"]
    assert sections(page) == [*first, "What is missing", *second, "What is missing"]
    for said in ("", " is nonsense"):
        for missing in ("50.0% · 1 of 2", "20.0% · 1 of 5"):
            assert f"DateAnswered{said}{missing} answers" in page.text
    assert "QuizId100.0% · 5 of 5 answers" in page.text
    assert "From 30 Dec 2019 to 29 Feb 2020, a column for each month." in page.text
    assert page.chart("Answers by month").titles == [
        "Dec 2019: 1 answers, 100% right", "Jan 2020: 0 answers", "Feb 2020: 2 answers, 50% right",
    ]  # fmt: skip
    titles = [title for title in page.chart("When in the week").titles if ": 0 " not in title]
    assert titles == [
        "Mon 0:00 to 0:59: 1 answers, 100% right", "Sat 23:00 to 23:59: 2 answers, 50% right",
    ]  # fmt: skip


def test_a_subject_may_stand_without_those_above_it(tiny_kit: Path, run: Run) -> None:
    path = tiny_kit / "data/metadata/question_metadata_task_3_4.csv"
    path.with_name("question_metadata_task_1_2.csv").unlink()
    (tiny_kit / "data/SIMULATED.json").unlink()  # What was changed would count as real.
    questions = pd.read_csv(path)
    lowest = questions["SubjectId"].str.findall(r"\d+").str[-1]
    questions.assign(SubjectId="[" + lowest + "]").to_csv(path, index=False)
    page = explore(run, tiny_kit / "data", tiny_kit / "out")["explore.html"]
    names = pd.read_csv(tiny_kit / "data/metadata/subject_metadata.csv", index_col="SubjectId")
    for name in names["Name"][lowest.astype(int).unique()]:
        assert name in page.text + page.folded
