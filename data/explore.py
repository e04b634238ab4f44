"""Look at the data: write one page about whatever lies in data/, official or simulated.

Answers per student and question, difficulty, options and distractors, when answers were given,
quizzes and groups, confidence, the tree of subjects, students, and what is missing: each chart
with a sentence on how to read it. Only training answers are counted. What is not there is left out.

Run:     python data/explore.py
         python data/explore.py --data_dir DIR --output_dir DIR
Writes:  data/test_output/explore.html. Real and simulated answers never share a page: where tasks
         1/2 are real and tasks 3/4 simulated, or the other way round, explore.html has the real
         ones and explore_simulated.html the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import charts, cli, io, layout, made, metadata, pages, schema
from common.answers import read_answers
from common.charts import compact
from common.errors import InputError

import exploration
import numpy as np
import pandas as pd
from exploration import AFTER_LAST_ANSWER, FEW_ANSWERS, FIRST_ANSWER, Figure, add_up, rate
from tqdm import tqdm

TASKS = ("1/2", "3/4")
PAGE_NAME, SIMULATED_PAGE_NAME = "explore.html", "explore_simulated.html"
# Steps that `read_part` shows on the progress bar.
N_STEPS = 6
# Charts that may be files of their own, and what is written above them.
PICTURES = {
    "difficulty.svg": ("How difficult the questions are", "how difficult the questions are"),
    "confidence.svg": (
        "Confidence and correctness",
        "share right (dot) for each confidence stated (diamond)",
    ),
}
MISSING_INTRO = (
    "For which share of the training answers, and of the students and questions in them, a column "
    "says nothing: the cell is empty, or there is no row. A date is nonsense if no pupil can have "
    "it."
)

# A name, a share for its bar, figures, whether they rest on few answers, lines below it, and
# whether these are shown at once.
Line = dict[str, Any]


@dataclass(frozen=True)
class Files:
    """The files of a group of tasks, and which metadata are not there, or left out and why."""

    tasks: str
    train: Path
    simulated: bool
    metadata: dict[str, Path]
    absent: list[str]
    foreign: list[str]


@dataclass(frozen=True)
class Section:
    """A part of the page: a text, lines with bars by their heading, figures, another text."""

    intro: str = ""
    lines: dict[str, list[Line]] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    note: str = ""


@dataclass(frozen=True)
class Part:
    """What the page shows of a group of tasks: figures at its top, then sections by name."""

    files: Files
    tiles: list[tuple[str, str]]
    sections: dict[str, Section]


def main() -> None:
    """Read what is there, count it, write the pages."""
    p = cli.parser(__doc__)
    p.add_argument(
        "--data_dir",
        type=Path,
        metavar="DIR",
        default=layout.DATA_DIR,
        help="a folder laid out like data/ (default data)",
    )
    p.add_argument(
        "--output_dir",
        type=Path,
        metavar="DIR",
        default=layout.TEST_OUTPUT_DIR,
        help="default data/test_output",
    )
    p.add_argument(
        "--pictures",
        type=Path,
        metavar="DIR",
        help="also write some of the charts as SVG files of their own; only of simulated data",
    )
    options = p.parse_args()
    if not options.data_dir.is_dir():
        raise InputError(f"{options.data_dir}: not found, expected a folder laid out like data/")
    found = {tasks: find_files(options.data_dir, tasks) for tasks in TASKS}
    files = [each for each in found.values() if each is not None]
    if not files:
        raise InputError(
            f"{options.data_dir / layout.TRAIN_DIR.name}: holds neither {layout.TRAIN_TASK_1_2} nor"
            f" {layout.TRAIN_TASK_3_4}; `python data/download.py` fetches the official files, "
            "`python data/generate_sample.py` simulates some"
        )
    if options.pictures and not any(each.simulated for each in files):
        raise InputError(
            f"--pictures: {files[0].train} is not simulated, and no pictures of real answers are "
            "made"
        )
    # The last step draws the charts.
    with tqdm(total=len(files) * N_STEPS + 1, unit="step", disable=None, leave=False) as bar:
        parts = [read_part(each, bar) for each in files]
        bar.set_description("charts")
        texts = make_pages(found, parts, options.output_dir)
        bar.update()
    if options.pictures:
        simulated = next(part for part in parts if part.files.simulated)
        drawn = draw_pictures(simulated)
        texts |= {options.pictures / name: text for name, text in drawn.items()}
    with io.atomic_write(*texts) as opened:
        for file, text in zip(opened, texts.values(), strict=True):
            file.write(text.encode())
    for path in texts:
        print(f"written: {cli.show(path)}")


def find_files(folder: Path, tasks: str) -> Files | None:
    """Find the files of tasks ``1/2`` or ``3/4``; None if there are no training answers."""
    ending = f"task_{tasks.replace('/', '_')}.csv"
    train = folder / layout.TRAIN_DIR.name / f"train_{ending}"
    if not io.is_there(train):
        return None
    io.require_file(train)
    simulated = made.is_simulated(train)
    found, absent, foreign = {}, [], []
    for kind in ("question", "student", "answer", "subject"):
        name = layout.SUBJECT_METADATA if kind == "subject" else f"{kind}_metadata_{ending}"
        path = metadata.find(folder / layout.METADATA_DIR.name, name)
        if path is None:
            absent.append(name)
        elif made.is_simulated(path) != simulated:
            foreign.append(name)
        else:
            found[kind] = path
    return Files(tasks, train, simulated, found, absent, foreign)


# ---- Reading and counting -----------------------------------------------------------------------


def read_part(files: Files, bar: "tqdm[Any]") -> Part:
    """Read and count what a group of tasks has."""

    def begin(step: str) -> None:
        bar.update()
        bar.set_description(f"tasks {files.tasks}: {step}")

    begin("answers")
    answers = read_answers(files.train, ids=True)
    begin("counts")
    students, questions = (
        rate(answers["IsCorrect"], answers[name]) for name in ("UserId", "QuestionId")
    )
    tiles = [
        (f"{len(answers):,}", "training answers"),
        (f"{len(students):,}", "students"),
        (f"{len(questions):,}", "questions"),
        (f"{len(answers) / len(students) / len(questions):.2%}", "of all pairs answered"),
        (f"{answers['IsCorrect'].mean():.1%}", "of the answers right"),
    ]
    sections = {
        "Answers": Section(figures=[*exploration.counts_figures(answers, students, questions)]),
        "Difficulty": Section(figures=[*exploration.difficulty_figures(students, questions)]),
        "Options": Section(figures=[*exploration.options_figures(answers)]),
    }
    begin("subjects")
    missing: list[Line] = []
    subjects, students_known, names = Section(), Section(), []
    main = pd.Series(-1, questions.index)
    if {"question", "subject"} <= files.metadata.keys():
        tree = metadata.read_subject_tree(files.metadata["subject"])
        names = list(tree.names)
        about = read_subjects(files.metadata["question"], questions, tree, missing)
        subjects = subjects_section(tree, about)
        # The first one below the root.
        first = about[tree.level[about["subject"]] == 1].drop_duplicates("QuestionId")
        main = first.set_index("QuestionId")["subject"].reindex(questions.index, fill_value=-1)
    if "student" in files.metadata:
        students = read_students(files.metadata["student"], students, missing)
    begin("circumstances")
    last_answer: Any = pd.NaT
    if "answer" in files.metadata and "AnswerId" in answers:
        answers = read_circumstances(files.metadata["answer"], answers, missing)
        last_answer = answers["DateAnswered"].max()
        for name, things in (
            ("QuizId", "quizzes"),
            ("GroupId", "groups (classes)"),
            ("SchemeOfWorkId", "schemes of work"),
        ):
            n = answers[name][answers[name] >= 0].nunique()
            tiles += [(f"{n:,}", things)] * bool(n)
        begin("dates")
        sections["Times"] = Section(figures=[*exploration.times_figures(answers, main, names)])
        begin("quizzes")
        sections |= {
            "Quizzes and groups": Section(figures=[*exploration.quizzes_figures(answers)]),
            "Confidence": Section(figures=[*exploration.confidence_figures(answers)]),
        }
    if "student" in files.metadata:
        students_known = students_section(students, last_answer)
    sections |= {
        "Subjects": subjects,
        "Students": students_known,
        "What is missing": Section(MISSING_INTRO, {"": missing}) if missing else Section(),
    }
    return Part(files, tiles, {name: each for name, each in sections.items() if each != Section()})


def read_subjects(
    path: Path, questions: pd.DataFrame, tree: metadata.SubjectTree, missing: list[Line]
) -> pd.DataFrame:
    """Return a row for each question and subject of it, with the answers to the question."""
    question_id = questions.index.to_numpy()
    found = metadata.read_question_subjects(path, question_id, tree)
    missing.append(gap("SubjectId", found.count == 0, "questions"))
    about = {"QuestionId": np.repeat(question_id, found.count), "subject": found.subject}
    return pd.DataFrame(about).join(questions, on="QuestionId")


def read_students(path: Path, students: pd.DataFrame, missing: list[Line]) -> pd.DataFrame:
    """Add what is known about students to their answers, and what is not to `missing`."""
    student_id = students.index.to_numpy()
    found = metadata.read_student_metadata(path, student_id)
    is_known = ~np.isnat(found.date_of_birth)
    # The reader leaves dates out that are nonsense.
    stated = np.zeros(len(students), bool)
    if schema.DATE_OF_BIRTH.name in io.read_header(io.file_source(path)):
        raw = io.read_columns(path, [schema.USER_ID, schema.DATE_OF_BIRTH])
        stated = np.isin(student_id, raw["UserId"][~np.isnat(raw["DateOfBirth"])])
    missing += [
        gap("Gender", found.gender < 0, "students"),
        gap("Gender unspecified", found.gender == 0, "students"),
        gap("DateOfBirth", ~stated, "students"),
        gap("DateOfBirth is nonsense", stated & ~is_known, "students"),
        gap("PremiumPupil", found.premium_pupil < 0, "students"),
    ]
    return students.assign(
        Gender=found.gender, DateOfBirth=found.date_of_birth, PremiumPupil=found.premium_pupil
    )


def read_circumstances(path: Path, answers: pd.DataFrame, missing: list[Line]) -> pd.DataFrame:
    """Add how answers came about as columns, without dates that make no sense."""
    found = metadata.read_circumstances(path, answers["AnswerId"].to_numpy())
    date = pd.Series(found.date_answered)
    possible = date.between(FIRST_ANSWER, AFTER_LAST_ANSWER, inclusive="left")
    missing += [
        gap("DateAnswered", date.isna(), "answers"),
        gap("DateAnswered is nonsense", date.notna() & ~possible, "answers"),
        gap("Confidence", np.isnan(found.confidence), "answers"),
        gap("GroupId", found.group < 0, "answers"),
        gap("QuizId", found.quiz < 0, "answers"),
        gap("SchemeOfWorkId", found.scheme < 0, "answers"),
    ]
    return answers.assign(
        DateAnswered=date.where(possible),
        Confidence=found.confidence,
        GroupId=found.group,
        QuizId=found.quiz,
        SchemeOfWorkId=found.scheme,
    )


# ---- Lines --------------------------------------------------------------------------------------


def gap(column: str, is_missing: Any, of: str) -> Line:
    """Return a line that says how often a column says nothing."""
    n, n_rows = int(is_missing.sum()), len(is_missing)
    figures = f"{percent(n, n_rows)} · {n:,} of {n_rows:,} {of}"
    return {"name": column, "share": n / n_rows, "figures": figures}


def percent(n: int, total: int) -> str:
    """Write a share so that only none is 0% and only all is 100%."""
    share = n / total
    if 0 < share < 0.001:
        return "< 0.1%"
    return "> 99.9%" if 0.999 < share < 1 else f"{share:.1%}"


def subjects_section(tree: metadata.SubjectTree, about: pd.DataFrame) -> Section:
    """Show the tree of subjects, those with most answers first."""
    rated = add_up(about, "subject").sort_values("n", ascending=False, kind="stable")
    lines: dict[int, Line] = {
        place: {
            "name": tree.names[place],
            "share": share,
            "figures": f"{n_questions:,} question{'s' * (n_questions != 1)} · "
            f"{compact(n)} answer{'s' * (n != 1)} · {share:.0%} right",
            "few": n < FEW_ANSWERS,
            "is_open": tree.level[place] == 0,
            "below": [],
        }
        for place, n, _, n_questions, share in rated.itertuples()
    }
    for place, line in lines.items():
        if tree.parent[place] >= 0:
            lines[tree.parent[place]]["below"].append(line)
    return Section(
        f"{len(lines):,} of the {len(tree.ids):,} subjects have questions. A question counts for "
        "every subject on its way from the root, so the levels overlap. The bar is the share of "
        f"right answers; grey ones rest on fewer than {FEW_ANSWERS} answers. Open a line to see "
        "what lies below.",
        {"": [line for place, line in lines.items() if tree.parent[place] < 0]},
    )


def students_section(students: pd.DataFrame, last_answer: pd.Timestamp) -> Section:
    """Show who the students are."""
    lines = {}
    for title, column, names in (
        ("Gender", "Gender", ("unspecified", "female", "male", "other")),
        (
            "Pupil premium (entitled to it for financial need)",
            "PremiumPupil",
            ("not entitled", "entitled"),
        ),
    ):
        known = students[students[column] >= 0]
        lines[title] = [
            {
                "name": names[value],
                "share": share,
                "figures": f"{n_students:,} students ({percent(n_students, len(known))}) · "
                f"{compact(n)} answers · {share:.1%} right",
                "few": n < FEW_ANSWERS,
            }
            for value, n, _, n_students, share in add_up(known, column).itertuples()
        ]
    return Section(
        "The bar is the share of right answers, of all answers that the students gave.",
        {title: own for title, own in lines.items() if own},
        [*exploration.birth_figures(students, last_answer)],
        "Differences between groups are no effects: they meet other questions, in other schools, "
        "and who states what is no matter of chance.",
    )


# ---- Pages --------------------------------------------------------------------------------------


def make_pages(
    found: Mapping[str, Files | None], parts: Sequence[Part], output_dir: Path
) -> dict[Path, str]:
    """Return the pages to be written: real answers, then simulated ones."""
    texts = {}
    for simulated in (False, True):
        own = [part for part in parts if part.files.simulated == simulated]
        if not own:
            continue
        other_name = PAGE_NAME if simulated else SIMULATED_PAGE_NAME
        notes = [
            f"Tasks {part.files.tasks} are not on this page, being "
            f"{'not ' * simulated}simulated: see {other_name}."
            for part in parts
            if part not in own
        ]
        name = SIMULATED_PAGE_NAME if simulated and notes else PAGE_NAME
        notes += [
            f"Tasks {tasks} are not on this page: "
            f"train_data/train_task_{tasks.replace('/', '_')}.csv is not there."
            for tasks, files in found.items()
            if files is None
        ]
        texts[output_dir / name] = pages.render(
            "explore.html",
            title="A look at the simulated data" if simulated else "A look at the data",
            tab="",
            simulated=simulated,
            notes=notes,
            parts=own,
            draw=draw,
        )
    return texts


def draw(figure: Figure, tasks: str) -> str:
    """Return a figure's chart as HTML; its label is unique on the page."""
    title, chart, _ = figure
    return pages.Html(chart(label=f"Tasks {tasks}: {title}"))


def draw_pictures(part: Part) -> dict[str, str]:
    """Return a few charts of simulated answers as SVG files, by name."""
    figures = {figure[0]: figure for each in part.sections.values() for figure in each.figures}
    return {
        name: charts.picture(figures[title][1](label=""), f"Simulated data: {heading}")
        for name, (title, heading) in PICTURES.items()
        if title in figures
    }


if __name__ == "__main__":
    cli.run(main)
