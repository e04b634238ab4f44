"""The parts of the page about the data that are lines, not charts: subjects, students, gaps."""

from collections.abc import Sequence
from html import escape

from common.charts import compact
from common.io import IntArray

import numpy as np
from exploration import FEW_ANSWERS, Tally
from exploration_charts import born_chart, chart_label, figure, in_grid
from exploration_reading import Part, Subjects

ROWS_STYLE = """
.rows { max-width: 46rem; } .rows details > *:not(summary) { margin-left: 1.1rem; }
.row { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 .8rem; padding: .28rem 0;
       border-bottom: 1px solid var(--line); }
summary.row { cursor: pointer; list-style: none; }
summary.row::-webkit-details-marker { display: none; }
summary.row::before { content: "▸"; width: .7rem; margin-right: -.4rem; opacity: .6; }
[open] > summary.row::before { content: "▾"; }
.tree .leaf { padding-left: 1.1rem; }
.name { flex: 1 1 11rem; overflow-wrap: anywhere; }
.figures { font-size: .85rem; opacity: .8; font-variant-numeric: tabular-nums; order: 1; }
.bar { width: 4.5rem; height: .6rem; border-radius: 3px; overflow: hidden; order: 2;
       background: var(--line); flex: none; align-self: center; }
.bar i { display: block; height: 100%; background: rgb(var(--accent)); }
.few { opacity: .55; } .few .bar i { background: currentColor; }
.rows + .charts { margin-top: 1.8rem; }
h4 { font-size: .95rem; font-weight: 600; margin: 1.2rem 0 .3rem; }
@media (max-width: 34rem) { .bar { order: 0; width: 3.5rem; } .figures { flex-basis: 100%; } }
"""


def subjects_section(part: Part) -> str:
    """Return the tree of subjects as HTML, the levels below the second closed."""
    if part.subjects is None:
        return ""
    tree, n_questions = part.subjects.tree, part.subjects.n_questions
    shown = np.flatnonzero(n_questions > 0)
    children: dict[int, list[int]] = {}
    # Those with most answers first.
    for place in shown[np.argsort(-part.subjects.answers.n[shown], kind="stable")].tolist():
        children.setdefault(int(tree.parent[place]), []).append(place)
    top = children.get(-1, [])
    rows = "".join(_subject(part.subjects, place, children) for place in top)
    return (
        f"<p>{len(shown):,} of the {len(tree.ids):,} subjects have questions. A question counts "
        "for every subject on its way from the root, so the levels overlap. The bar is the share "
        "of right answers; grey ones rest on fewer than "
        f"{FEW_ANSWERS} answers. Open a line to see what lies below.</p>"
        f'<div class="rows tree">{rows}</div>'
    )


def _line(name: str, share: float, figures: str) -> str:
    """Return a name, a bar as long as a share, and some figures, as HTML."""
    return (
        f'<span class="name">{escape(name)}</span>'
        f'<span class="bar"><i style="width: {share:.1%}"></i></span>'
        f'<span class="figures">{figures}</span>'
    )


def _subject(subjects: Subjects, place: int, children: dict[int, list[int]]) -> str:
    """Return a subject, and those below it, as HTML."""
    n, n_questions = int(subjects.answers.n[place]), int(subjects.n_questions[place])
    share = float(np.nan_to_num(subjects.answers.share[place]))
    few = " few" if n < FEW_ANSWERS else ""
    figures = (
        f"{n_questions:,} question{'s' * (n_questions != 1)} · "
        f"{compact(n)} answer{'s' * (n != 1)} · {share:.0%} right"
    )
    line = _line(subjects.tree.names[place], share, figures)
    below = children.get(place, [])
    if not below:
        return f'<div class="row leaf{few}">{line}</div>\n'
    inside = "".join(_subject(subjects, child, children) for child in below)
    is_open = " open" if subjects.tree.level[place] == 0 else ""
    return f'<details{is_open}><summary class="row{few}">{line}</summary>{inside}</details>\n'


# ---- Students, and what is missing -------------------------------------------------------------


def students_section(part: Part) -> str:
    """Return who the students are as HTML."""
    students = part.students
    if students is None:
        return ""
    html = "<p>The bar is the share of right answers, of all answers that the students gave.</p>"
    html += '<div class="rows">'
    for title, names, (n_students, answers) in (
        ("Gender", ("unspecified", "female", "male", "other"), students.gender),
        (
            "Pupil premium (entitled to it for financial need)",
            ("not entitled", "entitled"),
            students.premium,
        ),
    ):
        if n_students.any():
            html += f"<h4>{title}</h4>{_groups(names, n_students, answers)}"
    html += "</div>"
    if students.born is not None:
        n_students, answers = students.born
        html += in_grid(
            figure(
                "Year of birth",
                born_chart(
                    students.first_year, n_students, answers, chart_label(part, "years of birth")
                ),
                "How many students were born in which year, of those whose date of birth is known "
                "and makes sense." + _age_note(part),
            )
        )
    return html + (
        '<p class="key">Differences between groups are no effects: they meet other questions, in '
        "other schools, and who states what is no matter of chance.</p>"
    )


def _age_note(part: Part) -> str:
    if part.times is None or part.students is None or part.students.born is None:
        return ""
    year = int(str(part.times.last)[:4])
    commonest = part.students.first_year + int(part.students.born[0].argmax())
    return f" Those of the most common year, {commonest}, turned {year - commonest} in {year}."


def _groups(names: Sequence[str], n_students: IntArray, answers: Tally) -> str:
    """Return a line for each group of students, as HTML."""
    lines = ""
    for name, n, n_answers, share in zip(names, n_students, answers.n, answers.share, strict=True):
        if n:
            few = " few" if n_answers < FEW_ANSWERS else ""
            right = np.nan_to_num(share)
            part = _percent(int(n), int(n_students.sum()))
            figures = f"{n:,} students ({part}) · {compact(n_answers)} answers · {right:.1%} right"
            lines += f'<div class="row{few}">{_line(name, float(right), figures)}</div>\n'
    return lines


def missing_section(part: Part) -> str:
    """Return how often the metadata say nothing as HTML."""
    if not part.missing:
        return ""
    lines = "".join(
        '<div class="row">'
        + _line(
            row.column,
            row.n / row.n_rows,
            f"{_percent(row.n, row.n_rows)} · {row.n:,} of {row.n_rows:,} {row.of}",
        )
        + "</div>\n"
        for row in part.missing
    )
    return (
        "<p>For which share of the training answers, and of the students and questions in them, a "
        "column says nothing: the cell is empty, or there is no row. A date is nonsense if no "
        f'pupil can have it.</p><div class="rows">{lines}</div>'
    )


def _percent(n: int, total: int) -> str:
    """Write a share so that only none is 0% and only all is 100%."""
    share = n / total
    if 0 < share < 0.001:
        return "< 0.1%"
    return "> 99.9%" if 0.999 < share < 1 else f"{share:.1%}"
