"""The page about the data: figures, charts with a sentence on each, and the subject tree."""

from collections.abc import Sequence
from html import escape

from common import pages

import exploration_charts as draw
import numpy as np
from exploration import FEW_ANSWERS, WEAK_SHARE, count_histogram, share_histogram
from exploration_charts import chart_label, figure, in_grid
from exploration_reading import Part
from exploration_rows import ROWS_STYLE, missing_section, students_section, subjects_section

STYLE = """
body { max-width: 60rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.4rem; margin: 3rem 0 .6rem; }
h3 { font-size: 1.05rem; margin: 2.2rem 0 .6rem; scroll-margin-top: 1rem; }
p { max-width: 44rem; } a { color: rgb(var(--accent)); }
nav { display: flex; flex-wrap: wrap; gap: .3rem .5rem; margin: 1rem 0; }
nav a { border: 1px solid var(--line); border-radius: 1rem; padding: .1rem .75rem;
        text-decoration: none; font-size: .9rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.6rem, 1fr));
         gap: .6rem; margin: 1.2rem 0; }
.tiles div { background: var(--soft); border-radius: 8px; padding: .55rem .8rem; }
.tiles b { display: block; font-size: 1.45rem; font-weight: 650; line-height: 1.25;
           font-variant-numeric: tabular-nums; }
.tiles span { font-size: .85rem; opacity: .8; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(21rem, 100%), 1fr));
          gap: 1.8rem 2.5rem; align-items: start; }
figure { max-width: 32rem; } figure h4 { margin: 0 0 .5rem; font-size: .95rem; font-weight: 600; }
figcaption { font-size: .875rem; opacity: .85; margin-top: .5rem; }
.key { font-size: .875rem; opacity: .85; }
"""


def page(parts: Sequence[Part], notes: Sequence[str]) -> str:
    """Return the page about groups of tasks that are all simulated, or all not.

    Parameters
    ----------
    parts
        At least one.
    notes
        What is not on this page, and why.
    """
    simulated = parts[0].files.simulated
    kind = (
        "<strong>Simulated data.</strong> Nothing on this page is about real students: "
        "<code>data/generate_sample.py</code> made it all up."
        if simulated
        else "<strong>Data as found,</strong> not simulated by the kit. Only training answers are "
        "counted, none of a test."
    )
    body = f'<p class="note">{kind}</p>'
    body += "".join(f"<p>{escape(note)}</p>" for note in notes)
    for part in parts:
        body += _part(part)
    title = "A look at the simulated data" if simulated else "A look at the data"
    return pages.page(title, body, style=STYLE + ROWS_STYLE)


def _part(part: Part) -> str:
    """Return everything about a group of tasks as HTML."""
    sections = [
        ("Answers", _counts_section(part)),
        ("Difficulty", _difficulty_section(part)),
        ("Options", _options_section(part)),
        ("Times", _times_section(part)),
        ("Quizzes and groups", _quizzes_section(part)),
        ("Confidence", _confidence_section(part)),
        ("Subjects", subjects_section(part)),
        ("Students", students_section(part)),
        ("What is missing", missing_section(part)),
    ]
    sections = [(name, html) for name, html in sections if html]
    mark = part.files.tasks.replace("/", "")
    ids = {name: f"{name.lower().replace(' ', '-')}-{mark}" for name, _ in sections}
    links = "".join(f'<a href="#{ids[name]}">{name}</a>' for name, _ in sections)
    body = f"<h2>Tasks {part.files.tasks}</h2>{_tiles(part)}"
    for names, why in (
        (part.files.absent, "Not there"),
        (
            part.files.foreign,
            "Left out, being simulated while the answers are not"
            if not part.files.simulated
            else "Left out, not being simulated as the answers are",
        ),
    ):
        if names:
            body += f"<p>{why}: {escape(', '.join(names))}.</p>"
    body += f"<nav>{links}</nav>"
    return body + "".join(f'<h3 id="{ids[name]}">{name}</h3>{html}' for name, html in sections)


def _tiles(part: Part) -> str:
    n_students, n_questions = len(part.of_student.n), len(part.of_question.n)
    n = int(part.of_student.n.sum())
    tiles = [
        (f"{n:,}", "training answers"),
        (f"{n_students:,}", "students"),
        (f"{n_questions:,}", "questions"),
        (f"{n / n_students / n_questions:.2%}", "of all pairs answered"),
        (f"{part.of_student.n_right.sum() / n:.1%}", "of the answers right"),
    ]
    for count, name in (
        (part.n_quizzes, "quizzes"),
        (part.n_groups, "groups (classes)"),
        (part.n_schemes, "schemes of work"),
    ):
        if count:
            tiles.append((f"{count:,}", name))
    cells = "".join(f"<div><b>{figure}</b><span>{name}</span></div>" for figure, name in tiles)
    return f'<div class="tiles">{cells}</div>'


def _counts_section(part: Part) -> str:
    students, questions = (
        count_histogram(found.n) for found in (part.of_student, part.of_question)
    )
    most = -np.sort(-part.of_student.n)
    tenth = most[: max(len(most) // 10, 1)].sum() / most.sum()
    return in_grid(
        figure(
            "Answers per student",
            draw.histogram_chart(
                students,
                chart_label(part, "answers per student"),
                "students",
                "answers of a student",
            ),
            f"Each column: how many students have so many answers; half have {students.median:,.0f}"
            f" or more. The tenth with most answers gave {tenth:.0%} of them."
            + _scale_note(students.is_log),
        ),
        figure(
            "Answers per question",
            draw.histogram_chart(
                questions, chart_label(part, "answers per question"), "questions", "answers to it"
            ),
            "Each column: how many questions have so many answers; half have "
            f"{questions.median:,.0f} or more." + _scale_note(questions.is_log),
        ),
        figure(
            "How sparse it is",
            draw.filled_chart(part, chart_label(part, "share of pairs answered")),
            "Students and questions in tenths by their numbers of answers. The darker a field, the "
            "more of its pairs of student and question have an answer: most of the knowledge is "
            "in one corner, and a model must fill in the rest.",
        ),
    )


def _scale_note(is_log: bool) -> str:
    return " Logarithmic scale." if is_log else ""


def _difficulty_section(part: Part) -> str:
    figures = []
    for found, things, title, sentence in (
        (
            part.of_question, "questions", "How difficult the questions are",
            "Columns on the left are hard questions, which few answer right; four options make "
            "25% possible by guessing.",
        ),
        (
            part.of_student, "students", "How able the students are",
            "Columns on the right are students who answer most of their questions right; those of "
            "one student may be harder than another's.",
        ),
    ):  # fmt: skip
        share = found.share[found.n >= FEW_ANSWERS]
        if not len(share):
            continue
        out = len(found.n) - len(share)
        left_out = f" {out:,} with fewer than {FEW_ANSWERS} answers are left out." if out else ""
        figures.append(
            figure(
                title,
                draw.distribution_chart(
                    share_histogram(share),
                    chart_label(part, f"share right of {things}"),
                    things,
                    "share of right answers",
                ),
                sentence + left_out,
            )
        )
    return in_grid(*figures) if figures else ""


def _options_section(part: Part) -> str:
    options = part.options
    if options is None:
        return ""
    figures = [
        figure(
            "The four options",
            draw.options_chart(options, chart_label(part, "options")),
            "How often each option is chosen, how often it is the right one, and how often it is "
            "chosen where it is right. Equal heights in each block would mean that the place of an "
            "option tells nothing.",
        )
    ]
    found = options.distractors
    if found is not None and not np.isnan(found.attraction).any():
        figures += [
            figure(
                "Which distractor attracts",
                draw.attraction_chart(found, chart_label(part, "distractors")),
                f"Of the {found.n_questions:,} questions with at least {FEW_ANSWERS} answers, the "
                "mean share of the wrong answers that fall on the most, middle and least "
                "attractive wrong option. At the dashed line all three would attract equally; the "
                "further apart, the more wrong answers point to one misconception.",
            ),
            figure(
                "How often distractors are chosen",
                draw.distribution_chart(
                    found.share,
                    chart_label(part, "share of answers on each distractor"),
                    "distractors",
                    "share of the answers to its question",
                ),
                f"Three distractors for each question; {found.weak:.0%} of them are chosen in less "
                f"than {WEAK_SHARE:.0%} of the answers and hardly attract anybody.",
            ),
        ]
    return in_grid(*figures)


def _times_section(part: Part) -> str:
    times = part.times
    if times is None:
        return ""
    day, hour = np.unravel_index(times.hours.n.argmax(), times.hours.n.shape)
    figures = [
        figure(
            "Answers by month",
            draw.months_chart(times, chart_label(part, "answers by month")),
            f"From {_day(times.first)} to {_day(times.last)}, a column for each month. Where "
            "students answer at school, holidays show as low columns.",
        ),
        figure(
            "When in the week",
            draw.hours_chart(
                times.hours, chart_label(part, "answers by weekday and hour"), right=False
            ),
            "The darker a field, the more answers in that hour of the week; most in that of "
            f"{draw.WEEKDAYS[day]} {hour}:00. No time zone is stated.",
        ),
    ]
    if part.main_by_month is not None and part.main_by_month.sum(axis=0).max() >= (
        draw.ENOUGH_FOR_A_SHADE
    ):
        figures.insert(
            1,
            figure(
                "What in which month",
                draw.main_subjects_chart(part, chart_label(part, "subjects by month")),
                "The darker a field, the larger the subject's share of that month's answers, for "
                f"up to {draw.N_MAIN_SUBJECTS} subjects below the root. Where rows change from "
                "month to month, classes go from topic to topic.",
            ),
        )
    if (times.hours.n >= draw.ENOUGH_FOR_A_SHADE).any():
        figures.append(
            figure(
                "Right when in the week",
                draw.hours_chart(
                    times.hours, chart_label(part, "share right by weekday and hour"), right=True
                ),
                "The darker a field, the larger the share of right answers in that hour; hours "
                f"with fewer than {draw.ENOUGH_FOR_A_SHADE} answers are empty. The hour is no "
                "cause: other students answer other questions at other times.",
            )
        )
    return in_grid(*figures)


def _day(date: np.datetime64) -> str:
    year, month, day = str(date.astype("datetime64[D]")).split("-")
    return f"{int(day)} {draw.MONTHS[int(month) - 1]} {year}"


def _quizzes_section(part: Part) -> str:
    if part.quizzes is None:
        return ""
    figures = [
        figure(
            title,
            draw.histogram_chart(found, chart_label(part, title.lower()), things, axis),
            f"{sentence} {found.median:,.0f}; training answers only." + _scale_note(found.is_log),
        )
        for found, title, things, axis, sentence in (
            (
                part.quizzes.questions_per_quiz, "Questions per quiz", "quizzes",
                "questions of a quiz", "How many quizzes have so many questions; the median is",
            ),
            (
                part.quizzes.answers_per_sitting, "Answers of a student in a quiz", "sittings",
                "answers of one student in one quiz",
                "A sitting is all that one student answered in one quiz; the median is",
            ),
            (
                part.quizzes.students_per_group, "Students per group", "groups",
                "students of a group", "A group is mostly a class; the median size is",
            ),
        )
        if found is not None
    ]  # fmt: skip
    return in_grid(*figures) if figures else ""


def _confidence_section(part: Part) -> str:
    if part.confidence is None or part.confidence.n.max() < FEW_ANSWERS:
        return ""
    asked = part.confidence.n.sum() / part.of_student.n.sum()
    return in_grid(
        figure(
            "Confidence and correctness",
            draw.confidence_chart(part.confidence, chart_label(part, "confidence and correctness")),
            f"{asked:.1%} of the answers come with a confidence (in brackets: how many). Dot: "
            "share of these that is right; diamond: the confidence itself. Left of its diamond, a "
            "dot says that students overrate themselves.",
        )
    )
