"""The page about the data: the script on simulated, real, mixed, partial and missing files."""

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from conftest import Write, fails, run, succeeds
from drawn import Drawing, draw
from page_reading import Page, read_page
from run_scripts import ROOT

SCRIPT = "data/explore.py"
TRAIN = "train_data/train_task_{}.csv"
SECTIONS = [
    "Answers",
    "Difficulty",
    "Options",
    "Times",
    "Quizzes and groups",
    "Confidence",
    "Subjects",
    "Students",
    "What is missing",
]


def sections(page: Page) -> list[str]:
    """Return the headings of a page that name tasks or sections, without the headings of charts."""
    return [name for name in page.headings if name in SECTIONS or name.startswith("Tasks ")]


def explore(folder: Path, output: Path) -> dict[str, Page]:
    """Run data/explore.py on a folder of data; return the pages that it has written, by name."""
    done = run([SCRIPT, "--data_dir", folder, "--output_dir", output])
    assert done.returncode == 0, done.stderr
    written = [Path(path) for path in re.findall(r"^written: (.*)$", done.stdout, re.MULTILINE)]
    assert done.stdout.count("\n") == len(written)
    return {path.name: read_page(path.read_text(encoding="utf-8")) for path in written}


def test_a_page_about_simulated_data_says_so_and_explains_every_chart(
    simulated_kit: Path, tmp_path: Path
) -> None:
    (page,) = explore(simulated_kit / "data", tmp_path).values()
    assert "Nothing on this page is about real students" in page.text
    assert sections(page) == ["Tasks 1/2", *SECTIONS, "Tasks 3/4", *SECTIONS]
    # Every chart has a sentence on how to read it.
    assert len(page.charts) > 25
    for chart in page.charts:
        assert len(chart.caption) > 40


# ---- Planted answers, whose figures can be counted by hand --------------------------------------
#
# There are 40 students and 30 questions. Students 0 to 19, the weak ones, answer questions 0 to 19
# in March. Students 20 to 39, the strong ones, answer all questions in December.

# The options that students choose: a list for questions 0 to 9, a list for questions 10 to 19, and
# a list for questions 20 to 29. The right options of these questions are 1, 1 and 3. Each of the
# ten options in a list is chosen by a tenth of the students, see `planted_answers`.
CHOSEN = [[1] * 10, [1, 1, 1, 1, 1, 4, 4, 4, 2, 3], [3, 3, 3, 3, 3, 3, 3, 3, 1, 2]]
TREE = """SubjectId,Name,ParentId,Level
1,Maths,NULL,0
2,Algebra,1,1
3,Number,1,1
4,Fractions,3,2
5,Geometry,1,1
6,Area,5,2
"""
# The lists of subjects of questions 0 to 27. Question 28 has no list. The list of question 29 holds
# only its lowest subject, not the subjects above that.
SUBJECTS = ["[1, 3, 4]"] * 10 + ["[1, 2]"] * 9 + ["[1, 2, 3]"] + ["[1, 3]"] * 8


def sparsity_titles() -> list[str]:
    """Return the expected tooltips of the chart of sparsity, which shows who answered what.

    Of the 40 planted students, 20 are strong and have answered all 30 questions. The other 20 are
    weak and have answered questions 0 to 19.

    Each of the ten rows of the chart stands for four students, and each of the ten columns for
    three questions. The rows of the strong students come first, and the questions with most answers
    come first. In the rows of the weak students, questions 0 to 19 fill six columns and two thirds
    of the next column. The last three columns are empty.
    """
    titles = []
    for row in range(10):
        is_strong = row < 5
        for column in range(10):
            if is_strong or column < 6:
                share = "100.00%"
            elif column == 6:
                share = "66.67%"
            else:
                # Leave out empty cells, as `test_charts_show_the_counts` does.
                continue
            students = f"students {10 * row}–{10 * row + 10}%"
            questions = f"questions {10 * column}–{10 * column + 10}%"
            titles.append(f"{students}, {questions}: {share} answered")
    return titles


# The tooltips that each chart must have; the key is the chart's heading. The tooltips of empty
# columns and cells are left out of the comparison.
WEEK = ["Mon 10:00 to 10:59: 600 answers, 77% right", "Tue 9:00 to 9:59: 400 answers, 75% right"]
PLANTED = {
    "Answers per student": ["20: 20 students", "30: 20 students"],
    "Answers per question": ["20: 10 questions", "40: 20 questions"],
    "How sparse it is": sparsity_titles(),
    "How difficult the questions are": [
        "50% to 55%: 10 questions", "80% to 85%: 10 questions", "95% to 100%: 10 questions",
    ],
    "How able the students are": ["75% to 80%: 40 students"],
    "The four options": [
        "chosen, 1: 62%", "chosen, 2: 6%", "chosen, 3: 20%", "chosen, 4: 12%",
        "is right, 1: 80%", "is right, 2: 0%", "is right, 3: 20%", "is right, 4: 0%",
        "chosen where right, 1: 75%", "chosen where right, 2: 100%",
        "chosen where right, 3: 80%", "chosen where right, 4: 0%",
    ],
    "Which distractor attracts": [
        "most attractive: 0.55", "middle attractive: 0.35", "least attractive: 0.10",
    ],
    "How often distractors are chosen": [
        "0% to 5%: 40 distractors", "10% to 15%: 40 distractors", "30% to 35%: 10 distractors",
    ],
    "Answers by month": [
        "Dec 2019: 600 answers, 77% right", "Mar 2020: 400 answers, 75% right",
    ],
    "What in which month": [
        "Number, Dec 2019: 360 answers of 560", "Number, Mar 2020: 200 answers of 400",
        "Algebra, Dec 2019: 200 answers of 560", "Algebra, Mar 2020: 200 answers of 400",
    ],
    "Right when in the week": WEEK,
    "When in the week": WEEK,
    "Questions per quiz": ["10: 1 quizzes", "18: 1 quizzes"],
    "Answers of a student in a quiz": ["10: 60 sittings", "18: 20 sittings"],
    # The two groups have 1 and 39 students. Because this range is wide, a column of the chart
    # stands for several numbers of students.
    "Students per group": ["1: 1 groups", "35 to 40: 1 groups"],
    "Confidence and correctness": [
        "25% sure (20): 0.25", "25% sure (20): 0.50", "75% sure (20): 0.75", "75% sure (20): 0.80",
    ],
    "Year of birth": [
        "born in 2008: 5 students, 75% of their answers right",
        "born in 2010: 3 students, 75% of their answers right",
    ],
}  # fmt: skip
# The texts that the page must show, one in each line. A figure and its label have no space between
# them.
TEXTS = """1,000training answers 40students 30questions 83.33%of all pairs answered
76.0%of the answers right 2quizzes 2groups (classes)
so many answers; half have 25 or more. The tenth with most answers gave 12% of them
questions have so many answers; half have 40 or more.
Of the 20 questions with at least 20 answers, some of them wrong, the mean share
44% of them are chosen in less than 5% of the
From 2 Dec 2019 to 3 Mar 2020, a column for each month.
most in that of Mon 10:00.
mostly a class; the median size is 20;
5.0% of the answers come with a confidence
5 of the 6 subjects have questions.
to see what lies below. Maths28 questions · 960 answers · 76% right Number
Number19 questions · 600 answers · 91% right Fractions
Fractions10 questions · 400 answers · 100% right Algebra
Algebra10 questions · 400 answers · 50% right Area
Area1 question · 20 answers · 80% right Students
Gender unspecified1 students (2.6%) · 20 answers · 75.0% right female
female19 students (48.7%) · 380 answers · 75.0% right male
male19 students (48.7%) · 570 answers · 76.7% right Pupil premium
not entitled15 students (75.0%) · 300 answers · 75.0% right entitled
entitled5 students (25.0%) · 100 answers · 75.0% right
most common year, 2008, turned 12 in 2020
SubjectId3.3% · 1 of 30 questions Gender
Gender2.5% · 1 of 40 students Gender unspecified2.5% · 1 of 40 students DateOfBirth
DateOfBirth75.0% · 30 of 40 students DateOfBirth is nonsense5.0% · 2 of 40 students PremiumPupil
PremiumPupil50.0% · 20 of 40 students
Confidence95.0% · 950 of 1,000 answers GroupId0.0% · 0 of 1,000 answers QuizId
QuizId4.0% · 40 of 1,000 answers"""


def planted_answers() -> pd.DataFrame:
    """Return 1,000 answers of 40 students to 30 questions, whose statistics are easy to count.

    Students 0 to 19 answer questions 0 to 19, and all others answer all 30 questions. They choose
    options from the lists in `CHOSEN`: questions 0 to 9 have the first list, and so on. Student s
    chooses for question q the option at position (s + q) % 10 of the list.
    """
    pairs = []
    for student_id in range(40):
        n_answered = 20 if student_id < 20 else 30
        pairs += [(student_id, question_id) for question_id in range(n_answered)]
    student, question = np.array(pairs).T
    # In ten questions with the same list of options, a student chooses each element of the list
    # once. So all students who answer the same questions have the same share of right answers.
    number_of_list = question // 10
    position = (student + question) % 10
    chosen = np.array(CHOSEN)[number_of_list, position]
    right_option = np.where(question < 20, 1, 3)
    # The right option of a few official questions was changed. Here, row 0 is the answer of student
    # 0 to question 0: option 2 was right then, and the student chose it. For all other students,
    # option 1 of this question is right.
    right_option[0] = 2
    chosen[0] = 2
    return pd.DataFrame(
        {
            "QuestionId": question,
            "UserId": student,
            "AnswerId": range(1000),
            "AnswerValue": chosen,
            "CorrectAnswer": right_option,
            "IsCorrect": (chosen == right_option).astype(int),
        }
    )


def planted_answer_metadata(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the metadata of `planted_answers`, in reverse order.

    Student 0 is the only student in group 7, and all other students are in group 8. The weak
    students, 0 to 19, answer on a Tuesday in March, a minute before 10 o'clock. The strong students
    answer on a Monday in December, at 10 o'clock. So each chart of times has two columns.
    """
    student = answers["UserId"]
    question = answers["QuestionId"]
    is_weak = student < 20
    # The confidence of most answers is not known: the cell is empty.
    confidence = pd.Series("", answers.index)
    # Ten answers have a confidence of 100: these are too few, so the chart of confidence leaves
    # them out.
    confidence[(question == 0) & (student < 10)] = "100"
    # Twenty answers have a confidence of 25: the weak students' answers to question 10.
    confidence[(question == 10) & is_weak] = "25"
    # Twenty answers have a confidence of 75: only the strong students have answered question 20.
    confidence[question == 20] = "75"
    metadata = pd.DataFrame(
        {
            "AnswerId": answers["AnswerId"],
            "GroupId": np.where(student == 0, 7, 8),
            "DateAnswered": np.where(is_weak, "2020-03-03 09:59", "2019-12-02 10:00"),
            # Questions 0 to 9 belong to quiz 1, and questions 10 to 27 to quiz 2. Questions 28 and
            # 29 belong to no quiz.
            "QuizId": np.select([question < 10, question < 28], ["1", "2"], ""),
            "Confidence": confidence,
        }
    )
    return metadata[::-1]


def planted_student_metadata() -> pd.DataFrame:
    """Return the metadata of students 0 to 38; student 39 has no row.

    Only the first ten students have a DateOfBirth, and two of these dates are nonsense. Only the
    first twenty students have a value of PremiumPupil. pandas fills the rest of these two columns
    with NaN.
    """
    births = ["2008-09-01"] * 5 + ["2010-05-01"] * 3 + ["1900-01-01"] * 2
    return pd.DataFrame(
        {
            "UserId": pd.Series(range(39)),
            # 0 stands for unspecified, 1 for female and 2 for male.
            "Gender": pd.Series([0] + [1] * 19 + [2] * 19),
            "DateOfBirth": pd.Series(births),
            "PremiumPupil": pd.Series([1] * 5 + [0] * 15, dtype="Int8"),
        }
    )


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the HTML of the page about `planted_answers`, which are written as files of tasks 3/4.

    `SUBJECTS` holds the lists of subjects of questions 0 to 27. Question 28 has no list. The list
    of question 29 holds only subject 6, without the subjects 5 and 1 above it in the tree.
    """
    folder = tmp_path_factory.mktemp("planted")
    answers = planted_answers()
    questions = pd.DataFrame({"QuestionId": [*range(28), 29], "SubjectId": [*SUBJECTS, "[6]"]})
    tables = {
        "train_data/train_task_3_4.csv": answers,
        "metadata/answer_metadata_task_3_4.csv": planted_answer_metadata(answers),
        "metadata/student_metadata_task_3_4.csv": planted_student_metadata(),
        "metadata/question_metadata_task_3_4.csv": questions,
    }
    for name, table in tables.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        table.to_csv(path, index=False)
    (folder / "metadata/subject_metadata.csv").write_text(TREE)
    pages = explore(folder, output=folder)
    assert list(pages) == ["explore.html"]
    return (folder / "explore.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def planted_page(planted: str) -> Page:
    """Return the page about `planted_answers` as it is read by `read_page`."""
    return read_page(planted)


@pytest.mark.parametrize(("heading", "titles"), PLANTED.items(), ids=PLANTED)
def test_charts_show_the_counts(planted_page: Page, heading: str, titles: list[str]) -> None:
    shown = planted_page.chart(heading).titles
    empty = re.compile(r": (0 |0\.00% answered)")
    assert [title for title in shown if not empty.search(title)] == titles


@pytest.fixture(scope="module")
def drawings(planted: str, planted_page: Page) -> dict[str, Drawing]:
    """Return the charts of the page about `planted_answers` as they are drawn, by heading."""
    svgs = re.findall(r"<svg.*?</svg>", planted, re.DOTALL)
    headings = [chart.heading for chart in planted_page.charts]
    return dict(zip(headings, map(draw, svgs), strict=True))


def test_columns_are_as_high_as_their_counts(drawings: dict[str, Drawing]) -> None:
    december, *_, march = drawings["Answers by month"].shapes.values()
    assert np.ptp(march[:, 1]) == pytest.approx(400 / 600 * np.ptp(december[:, 1]), abs=0.01)


def test_the_line_of_the_median_is_in_the_middle_of_its_column(
    drawings: dict[str, Drawing],
) -> None:
    """A dashed line marks the median, and the number below it names the median.

    Both must be in the middle of the column to which the median belongs.
    """
    chart = drawings["Answers per question"]
    line = chart.dashed[0][0]
    (number,) = (text.middle[0] for text in chart.texts if text.text == "40")
    column = chart.shapes["40: 20 questions"][:, 0].mean()
    assert [line, number] == pytest.approx([column, column], abs=0.1)


def test_shades_follow_the_counts(drawings: dict[str, Drawing]) -> None:
    monday, tuesday = (drawings["When in the week"].styles[title] for title in WEEK)
    assert "opacity" not in monday
    assert f"opacity: {0.1 + 0.9 * 400 / 600:.1f}" in tuesday


@pytest.mark.parametrize("text", TEXTS.splitlines())
def test_texts_tell_the_counts(planted_page: Page, text: str) -> None:
    assert text in planted_page.text


def test_a_training_file_that_is_missing_is_named(planted_page: Page) -> None:
    text = "not on this page: train_data/train_task_1_2.csv is not there."
    assert text in planted_page.text


# ---- Other folders -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed_pages(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    """Return two pages by name: one about tasks 1/2 and one about tasks 3/4.

    The answers of tasks 3/4 are simulated; the answers of tasks 1/2 are of unknown origin.
    """
    folder = tmp_path_factory.mktemp("mixed")
    data = Path(shutil.copytree(simulated_kit / "data", folder / "data"))
    train = data / "train_data/train_task_1_2.csv"
    answers = pd.read_csv(train)
    # The kit does not recognise the simulated answers if they have other UserIds.
    answers.assign(UserId=answers["UserId"] + 1_000_000).to_csv(train, index=False)
    # The kit recognises simulated metadata by the bytes of the file. With other line ends, the kit
    # does not know the origin of the file.
    path = data / "metadata/subject_metadata.csv"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    return explore(data, folder / "out")


def test_simulated_answers_share_no_page_with_other_answers(mixed_pages: dict[str, Page]) -> None:
    assert [*mixed_pages] == ["explore.html", "explore_simulated.html"]
    other, simulated = mixed_pages.values()
    assert "not simulated by the kit" in other.text
    assert "Answers of unknown origin." in other.text
    assert sections(other) == ["Tasks 1/2", "Answers", "Difficulty", "Options"]
    assert sections(simulated)[0] == "Tasks 3/4"


def test_a_page_says_which_tasks_are_on_the_other_page(mixed_pages: dict[str, Page]) -> None:
    other, simulated = mixed_pages.values()
    assert "Tasks 3/4 are not on this page, being simulated: see explore_simulated." in other.text
    assert "Tasks 1/2 are not on this page, being not simulated: see explore." in simulated.text


def test_answers_are_not_described_by_metadata_of_another_origin(
    mixed_pages: dict[str, Page],
) -> None:
    """Simulated metadata describe only simulated answers, and other metadata only other answers."""
    other, simulated = mixed_pages.values()
    left_out = "student_metadata_task_1_2.csv, answer_metadata_task_1_2.csv."
    assert f"than the answers: question_metadata_task_1_2.csv, {left_out}" in other.text
    assert "than the answers: subject_metadata.csv." in simulated.text
    assert "Subjects" not in sections(simulated)


def test_metadata_of_another_simulation_are_left_out(tiny_kit: Path, tmp_path: Path) -> None:
    """A data folder holds answers of one simulation, but student metadata of another simulation.

    Each simulation has a marker, SIMULATED.json, which lists its files. So the script can tell to
    which simulation a file belongs. The page about the folder leaves out the students of tasks 1/2,
    and says why.
    """
    new = tmp_path / "new"
    run(["data/generate_sample.py", "--size", "tiny", "--seed", 7, "--output_dir", new])
    # Copy the new simulation and its marker, but take the student metadata of the kit's simulation.
    name = "student_metadata_task_1_2.csv"
    mixed = shutil.copytree(new, tmp_path / "mixed", ignore=shutil.ignore_patterns(name))
    shutil.copy(tiny_kit / "data/metadata" / name, mixed / "metadata")

    # The script reads two markers. The marker in the folder `mixed` lists the files of the new
    # simulation. The marker in the kit's data folder lists these student metadata.
    done = run([SCRIPT, "--data_dir", mixed, "--output_dir", tmp_path / "out"], kit=tiny_kit)

    assert done.returncode == 0, done.stderr
    page = read_page((tmp_path / "out/explore.html").read_text(encoding="utf-8"))
    assert f"belong to other data than the answers: {name}." in page.text
    # The page has a section about students only for tasks 3/4, not for tasks 1/2.
    assert sections(page).count("Students") == 1


def explore_in_vain(folder: Path, output: Path) -> str:
    """Run data/explore.py on a folder that it must refuse; return the error message.

    The script must write nothing.
    """
    message = fails([SCRIPT, "--data_dir", folder, "--output_dir", output])
    assert not output.exists()
    return message


def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "nowhere"
    message = explore_in_vain(folder, tmp_path / "out")
    assert message == f"{folder}: not found, expected a folder laid out like data/"


def test_a_folder_without_answers_is_refused(tmp_path: Path) -> None:
    message = explore_in_vain(tmp_path, tmp_path / "out")
    assert message.startswith(f"{tmp_path / 'train_data'}: holds neither train_task_1_2.csv nor ")


def test_a_value_that_is_not_valid_is_named_with_its_row(write: Write, tmp_path: Path) -> None:
    train = write(TRAIN.format("3_4"), "QuestionId,UserId,IsCorrect\n5,2,1\n7,3,2\n")
    message = explore_in_vain(tmp_path, tmp_path / "out")
    assert message.startswith(f"{train}: column 'IsCorrect': row 3 is '2'")


def test_the_pictures_of_the_readme_are_those_of_the_page(tmp_path: Path) -> None:
    succeeds(["data/generate_sample.py", "--size", "small", "--output_dir", tmp_path])
    # Tasks 3/4 have no answers here, so that only charts of tasks 1/2 are on the page.
    (tmp_path / "train_data/train_task_3_4.csv").unlink()
    succeeds(["data/explore.py", "--data_dir", tmp_path, "--output_dir", tmp_path])
    command = ["tests/benchmarks/readme_pictures.py", "--input_dir", tmp_path]
    succeeds([*command, "--output_dir", tmp_path / "pictures"])
    for path in (ROOT / "data/pictures").iterdir():
        picture = path.read_text(encoding="utf-8")
        assert (tmp_path / "pictures" / path.name).read_text(encoding="utf-8") == picture
        assert "Simulated data: " in "".join(ElementTree.fromstring(picture).itertext())


@pytest.mark.parametrize(
    ("folder", "tasks"), [("eedi_tasks_3_4", "3/4"), ("eedi_tasks_1_2_sample", "1/2")]
)
def test_a_page_about_real_answers_lacks_what_answer_metadata_tell(
    real_data: Path, tmp_path: Path, folder: str, tasks: str
) -> None:
    page = explore(real_data / folder, tmp_path)["explore.html"]
    assert "not simulated by the kit" in page.text
    of_answer_metadata = ("Times", "Quizzes and groups", "Confidence")
    expected = [name for name in SECTIONS if name not in of_answer_metadata]
    assert sections(page) == [f"Tasks {tasks}", *expected]
    assert f"Not there: answer_metadata_task_{tasks.replace('/', '_')}.csv." in page.text


FEW_ANSWERS = {
    # Two answers, without the columns of options. One date is in the year 9999, one is missing.
    TRAIN.format("1_2"): """QuestionId,UserId,IsCorrect,AnswerId
5,2000000000,1,8
7,3,0,9
""",
    "metadata/answer_metadata_task_1_2.csv": """AnswerId,DateAnswered
8,9999-01-01 00:00:00.000
9,
""",
    # Five answers, with options but without quizzes. One date is missing, one is in the year 9999.
    TRAIN.format("3_4"): """AnswerId,QuestionId,UserId,IsCorrect,CorrectAnswer,AnswerValue
0,0,8,1,1,1
1,1,8,0,1,2
2,2,7,1,1,1
3,3,9,1,1,1
4,4,8,1,1,1
""",
    "metadata/answer_metadata_task_3_4.csv": """AnswerId,DateAnswered
0,2019-12-30 00:00
1,2020-02-29 23:59
2,2020-02-29 23:00
3,
4,9999-01-01 00:00
""",
}


@pytest.fixture(scope="module")
def page_of_few_answers(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Return the page about 2 answers of tasks 1/2 and 5 of tasks 3/4: too few for most charts."""
    folder = tmp_path_factory.mktemp("few")
    for name, text in FEW_ANSWERS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return explore(folder, folder)["explore.html"]


def test_sections_with_nothing_to_show_are_left_out(page_of_few_answers: Page) -> None:
    assert sections(page_of_few_answers) == [
        "Tasks 1/2",
        "Answers",
        "What is missing",
        "Tasks 3/4",
        "Answers",
        "Options",
        "Times",
        "What is missing",
    ]


def test_metadata_that_are_missing_are_named(page_of_few_answers: Page) -> None:
    absent = "question_metadata_task_3_4.csv, student_metadata_task_3_4.csv, subject_metadata.csv"
    assert f"Not there: {absent}." in page_of_few_answers.text


@pytest.mark.parametrize("share", ["50.0% · 1 of 2", "20.0% · 1 of 5"])
@pytest.mark.parametrize("fault", ["", " is nonsense"])
def test_dates_that_are_missing_or_nonsense_are_counted(
    page_of_few_answers: Page, fault: str, share: str
) -> None:
    assert f"DateAnswered{fault}{share} answers" in page_of_few_answers.text


def test_months_without_answers_are_shown_too(page_of_few_answers: Page) -> None:
    assert page_of_few_answers.chart("Answers by month").titles == [
        "Dec 2019: 1 answers, 100% right",
        "Jan 2020: 0 answers",
        "Feb 2020: 2 answers, 50% right",
    ]
