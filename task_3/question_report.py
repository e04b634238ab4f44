"""Task 3: write pages on what the answers say about a question, or about the ends of a ranking.

A question's page names its subjects, shows who chose which option, from the weakest to the ablest
quarter of students, and every feature of the question. The ranking's page shows its ten best and
ten worst questions. Bars that rest on fewer than 20 answers are grey.

Run:     python task_3/question_report.py --question 21 34    pages of these questions
         python task_3/question_report.py                    page of the ranking, and its questions'
Writes:  data/test_output/question_report/question_21.html …, and ranking.html
"""

from dataclasses import dataclass
from html import escape
from pathlib import Path

from common import charts, cli, io, layout, made, metadata, pages, submission
from common.errors import InputError

import numpy as np
import question_features as features
from question_features import FEATURES, FloatArray, QuestionAnswers
from tqdm import tqdm

TASK = 3
N_SHOWN = 10
QUARTERS = ("1", "2", "3", "4")
# A share of fewer answers is mostly chance: its standard error is above 0.1 around one half.
FEW_ANSWERS = 20
GREY_BARS = f"Pale grey: fewer than {FEW_ANSWERS} answers, mostly chance."

STYLE = """
h1 { margin-bottom: 1.2rem; } a { color: rgb(var(--accent)); }
.key { font-size: .875rem; opacity: .8; margin: .6rem 0 1.4rem; } caption { font-size: .875rem; }
@media (min-width: 34rem) {
  :is(.features, .ranked) :is(td, th) { white-space: nowrap; padding-inline: 0 1.1rem; }
  .features :is(td, th):last-child { text-align: left; white-space: normal; }
}
.features td:last-child { font-size: .875rem; }
.ranked :is(td, th):last-child { text-align: left; vertical-align: middle; }
.shares { display: flex; width: 12rem; height: 1.1rem; align-self: center; gap: 2px;
          border-radius: 3px; overflow: hidden; }
.shares span { background: currentColor; opacity: .25; }
.shares .good { background: rgb(var(--accent)); opacity: 1; }
.few span, .few .good { background: var(--line); opacity: 1; }
"""


@dataclass(frozen=True)
class QuestionReport:
    """What the pages are made from.

    Attributes
    ----------
    data
        The training answers.
    rank
        Rank of every row of `data`, 1 the best; 0 for a question that is not ranked.
    values
        For each feature its value and its shrunk value, shape (2, questions).
    simulated
        Whether the answers are simulated.
    images_dir
        Folder of the official images, if the user has them.
    subjects
        For each question the names of its most specific subjects; empty where they are not known.
    """

    data: QuestionAnswers
    rank: io.IntArray
    values: dict[str, FloatArray]
    simulated: bool
    images_dir: Path
    subjects: list[str]


def main() -> None:
    """Read answers and ranking, compute the features, write the pages."""
    p = cli.parser(__doc__)
    p.add_argument(
        "--question", type=int, nargs="+", metavar="ID", help="QuestionIds (default: the ranking)"
    )
    folders = [
        ("--input_dir", layout.TRAIN_DIR, "data/train_data"),
        ("--metadata_dir", layout.METADATA_DIR, "data/metadata"),
        ("--images_dir", layout.DATA_DIR / "images", "data/images"),
        ("--submission_dir", layout.SUBMISSION_DIR, "submissions"),
        ("--output_dir", layout.TEST_OUTPUT_DIR / "question_report", None),
    ]
    for flag, folder, shown in folders:
        p.add_argument(
            flag,
            type=Path,
            metavar="DIR",
            default=folder,
            help=f"default {shown or 'data/test_output/question_report'}",
        )
    p.add_argument(
        "--train_data",
        metavar="FILE",
        default=layout.TRAIN_TASK_3_4,
        help=f"default {layout.TRAIN_TASK_3_4}",
    )
    p.add_argument(
        "--submit_data",
        metavar="FILE",
        default=layout.submission_name(TASK),
        help=f"the ranking, CSV or zip (default {layout.submission_name(TASK)})",
    )
    cli.add_template_flags(p, layout.TEMPLATE_TASK_3)
    options = p.parse_args()
    train = options.input_dir / options.train_data
    io.require_file(train)
    template = cli.template_path(options, layout.TEMPLATE_DIR, layout.TEMPLATE_TASK_3)
    source = submission.submission_source(
        options.submission_dir / options.submit_data, layout.submission_name(TASK), template
    )
    expected = submission.read_ranking_template(template)
    question, ranking = submission.read_ranking(source, expected)
    unknown = np.setdiff1d(options.question or [], expected)
    if len(unknown):
        raise InputError(f"--question {unknown[0]}: is not one of the questions of {template}")

    names = features.available_features(options.metadata_dir)
    data = features.read_for_features(names, [train], question, options.metadata_dir)
    rank = np.zeros(data.n_questions, np.int64)
    rank[np.searchsorted(data.question_id, question)] = ranking
    values = {}
    for name in tqdm(names, desc="features", unit="feature", disable=None, leave=False):
        raw, _ = FEATURES[name].values(data)
        shrunk, _ = features.shrink(FEATURES[name], data)
        values[name] = np.stack([raw, shrunk])
    simulated = made.is_simulated(train)
    questions = metadata.find(options.metadata_dir, layout.QUESTION_METADATA_TASK_3_4)
    tree = metadata.find(options.metadata_dir, layout.SUBJECT_METADATA)
    subjects = [""] * data.n_questions
    if questions and tree:
        subjects = metadata.name_subjects(questions, tree, data.question_id)
    report = QuestionReport(data, rank, values, simulated, options.images_dir, subjects)

    pages = {}
    wanted = options.question
    if not wanted:
        best, worst = ends_of_ranking(report)
        wanted = data.question_id[np.r_[best, worst]].tolist()
        name = cli.show(options.submission_dir / options.submit_data)
        pages["ranking.html"] = ranking_page(report, name)
    for number in wanted:
        pages[f"question_{number}.html"] = question_page(report, number)
    paths = [options.output_dir / name for name in pages]
    with io.atomic_write(*paths) as files:
        for file, page in zip(files, pages.values(), strict=True):
            file.write(page.encode())
    more = f" and {len(paths) - 1} more pages beside it" if len(paths) > 1 else ""
    print(f"written: {cli.show(paths[0])}{more}")


# ---- The page of a question --------------------------------------------------------------------


def question_page(report: QuestionReport, question: int) -> str:
    """Return the page of one question."""
    data = report.data
    row = int(np.searchsorted(data.question_id, question))
    counts = features.option_counts(data)[row]
    n = int(counts.sum())
    n_ranked = int((report.rank > 0).sum())
    facts = [("Subjects", report.subjects[row] or "unknown: no metadata of it")]
    facts += [("Rank", f"{report.rank[row]} of {n_ranked}"), ("Answers", f"{n:,}")]
    body = pages.simulated_note(report.simulated)
    if n:
        assert data.key is not None
        facts.append(("Right option", f"{data.key[row] + 1}"))
        facts.append(("Answered correctly", f"{report.values['correct_rate'][0, row]:.0%}"))
    body += pages.table([], facts, css_class="facts")
    image = next(iter(sorted(report.images_dir.glob(f"{question}.*"))), None)
    if image is not None:
        body += (
            f'<p><a href="{escape(image.resolve().as_uri())}">Show the question</a> '
            "(the image on this machine; its licence does not allow copies)</p>"
        )
    body += options_section(report, row) if n else "<p>Nobody answered this question.</p>"
    return pages.page(f"Question {question}", body + features_section(report, row), style=STYLE)


def options_section(report: QuestionReport, row: int) -> str:
    """Return the chart of who chose which option, and the figures of the options, as HTML."""
    data = report.data
    assert data.key is not None
    counts = features.option_counts(data)[row]
    by_ability = features.option_counts_by_ability(data, row)
    n_in_quarter = by_ability.sum(axis=1, keepdims=True)
    shares, is_few = by_ability / np.maximum(n_in_quarter, 1), n_in_quarter[:, 0] < FEW_ANSWERS
    correlation = features.option_point_biserial(data)[row]
    panels = [
        charts.Panel(
            option_name(data, row, k),
            shares[:, k].tolist(),
            k == data.key[row],
            is_few.tolist(),
        )
        for k in range(data.n_options)
    ]
    chart = charts.bar_panels(
        panels,
        QUARTERS,
        label="Share of each quarter of the students that chose each option",
        axis="quarter of the students, 4 the ablest",
    )
    rows = [
        (
            option_name(data, row, k),
            f"{counts[k]:,}",
            f"{counts[k] / counts.sum():.1%}",
            signed(correlation[k]),
        )
        for k in range(data.n_options)
    ]
    header = ["", "answers", "share", "point-biserial correlation"]
    return (
        f"<h2>Who chose what</h2><figure>{chart}"
        '<figcaption class="key">Of the students who answered, from the weakest quarter (1) to '
        "the ablest (4) by their correct rate on all other questions, the share that chose the "
        "option. A good right option climbs, a good wrong one falls."
        + (f" {GREY_BARS}" if is_few.any() else "")
        + "</figcaption></figure>"
        + pages.table(header, rows, stacks=True)
    )


def signed(value: float) -> str:
    """Write a number with its sign; nothing for NaN."""
    return "" if np.isnan(value) else f"{value:+z.2f}".replace("-", "−")


def option_name(data: QuestionAnswers, row: int, option: int) -> str:
    """Name an option, given from 0, by its number in the files; mark the right one."""
    assert data.key is not None
    return f"option {option + 1}" + (", right" if option == data.key[row] else "")


def features_section(report: QuestionReport, row: int) -> str:
    """Return the table of all features of a question as HTML."""
    rows = []
    for name, (raw, shrunk) in report.values.items():
        feature = FEATURES[name]
        known = shrunk[~np.isnan(shrunk)]
        if np.isnan(shrunk[row]):
            rows.append((name.replace("_", " "), "unknown", "", "", feature.why))
            continue
        is_worse = feature.better * known < feature.better * shrunk[row]
        is_equal = known == shrunk[row]
        better_than = (is_worse.sum() + (is_equal.sum() - 1) / 2) / max(len(known) - 1, 1)
        direction = "more" if feature.better > 0 else "less"
        rows.append(
            (
                name.replace("_", " "),
                f"{raw[row]:z.2f}".replace("-", "−"),
                f"{shrunk[row]:z.2f}".replace("-", "−"),
                f"{better_than:.0%}",
                f"{direction}: {feature.why}",
            )
        )
    header = ["feature", "value", "shrunk", "better than", "what is taken to be better"]
    return "<h2>Features</h2>" + pages.table(
        header,
        rows,
        css_class="features",
        stacks=True,
        caption="Shrunk: moved towards the mean of all questions where answers are few. "
        "Better than: this share of the other questions.",
    )


# ---- The page of a ranking ---------------------------------------------------------------------


def ends_of_ranking(report: QuestionReport) -> tuple[io.IntArray, io.IntArray]:
    """Return the rows of the best and of the worst questions that have answers, by rank."""
    has_answers = np.bincount(report.data.question, minlength=report.data.n_questions) > 0
    rows = np.flatnonzero((report.rank > 0) & has_answers)
    rows = rows[np.argsort(report.rank[rows])]
    return rows[:N_SHOWN], rows[N_SHOWN:][-N_SHOWN:]


def ranking_page(report: QuestionReport, name: str) -> str:
    """Return the page of a ranking's best and worst questions."""
    best, worst = ends_of_ranking(report)
    n_ranked = int((report.rank > 0).sum())
    n_answers = np.bincount(report.data.question, minlength=report.data.n_questions)
    is_few = n_answers[np.r_[best, worst]] < FEW_ANSWERS
    n_answered = len(np.intersect1d(np.flatnonzero(report.rank), report.data.question))
    facts = [("Ranking", name), ("Questions", f"{n_ranked:,}")]
    if n_answered < n_ranked:
        facts.append(("Without answers, not shown", f"{n_ranked - n_answered:,}"))
    body = (
        pages.simulated_note(report.simulated)
        + pages.table([], facts, css_class="facts")
        + f"<h2>The {len(best)} best</h2>{ranked_table(report, best)}"
        + (f"<h2>The {len(worst)} worst</h2>{ranked_table(report, worst)}" if len(worst) else "")
        + '<p class="key">Options chosen: one piece for each option, the right one in colour. '
        + (f"{GREY_BARS} " if is_few.any() else "")
        + "Discrimination: point-biserial correlation with ability, −1 to 1.</p>"
    )
    return pages.page("Questions at both ends of the ranking", body, style=STYLE)


def ranked_table(report: QuestionReport, rows: io.IntArray) -> str:
    """Return some questions as an HTML table, each with a link to its own page."""
    data = report.data
    assert data.key is not None
    counts = features.option_counts(data)
    lines = []
    for row in rows:
        number, n = data.question_id[row], counts[row].sum()
        pieces = "".join(
            f'<span class="{"good" if k == data.key[row] else ""}" style="width: {count / n:.1%}" '
            f'title="{option_name(data, row, k)}: {count / n:.0%}"></span>'
            for k, count in enumerate(counts[row])
            if count
        )
        rate, discrimination = (
            report.values[name][0, row] for name in ("correct_rate", "point_biserial")
        )
        few = " few" if n < FEW_ANSWERS else ""
        lines.append(
            (
                pages.Html(f'<a href="question_{number}.html">question {number}</a>'),
                f"{report.rank[row]}",
                f"{n:,}",
                "" if np.isnan(rate) else f"{rate:.0%}",
                signed(discrimination),
                pages.Html(f'<div class="shares{few}">{pieces}</div>'),
            )
        )
    header = ["", "rank", "answers", "right", "discrimination", "options chosen"]
    return pages.table(header, lines, css_class="ranked", stacks=True)


if __name__ == "__main__":
    cli.run(main)
