"""What the pages of tasks 1 and 2 show below the score, as HTML."""

from collections.abc import Sequence
from html import escape

from common import charts, pages
from common.metrics import ProbabilityScores
from common.scores.breakdown import Group, Loss
from common.scores.pair_facts import LeftOut
from common.scores.pair_groups import Breakdown, NamedLoss

# Accuracies that rest on fewer answers are not shown.
FEW = 20

STYLE = """
.error { font-size: 1.25rem; font-weight: 400; opacity: .75; white-space: nowrap; }
li { overflow-wrap: anywhere; }
h3 { font-size: .95rem; margin: 1.4rem 0 .3rem; } figure { margin-top: .6rem; }
.key { font-size: .875rem; opacity: .8; margin: .4rem 0 0; }
:is(.lost, .groups) { width: 100%; } :is(.lost, .groups) td { white-space: nowrap; }
.lost th[scope=row] { overflow-wrap: anywhere; width: 45%; } .groups th[scope=row] { width: 30%; }
:is(.lost, .groups) small { display: block; opacity: .75; font-weight: 400; }
@media (max-width: 34rem) {
  .lost, .groups { font-size: .9rem; } .groups :is(th, td) + * { padding-inline: .3rem; }
}
"""


def comparison(score: Group, majority: float | None, best: float | None) -> str:
    """Return the score beside what it can be compared with, as a chart; nothing without such."""
    rows = [charts.Dot("this entry", score.accuracy, interval=score.interval)]
    for name, value in (("majority", majority), ("best possible", best)):
        if value is not None:
            rows.append(charts.Dot(name, value, accent=False))
    if len(rows) == 1:
        return ""
    chart = charts.dot_chart(rows, label="The score and what to compare it with", digits=4)
    key = (
        "The line is the 95 % interval of the score: other students might give any value in it. "
        "Two entries predict the same answers, so that far smaller differences between them count: "
        "python -m tools.compare measures those."
    )
    if majority is not None:
        key += (
            " Majority: what most training answers to the question were"
            "; nobody needs a model for that."
        )
    if best is not None:
        key += (
            " Best possible: what a model would reach on average that knew everything the "
            "simulation draws answers from."
        )
    return _figure(chart, key)


def calibration(scores: ProbabilityScores, n_other: int, happens: str) -> str:
    """Return what predicted probabilities tell beyond the accuracy.

    Parameters
    ----------
    scores
        Of the probabilities.
    n_other
        In how many pairs the submission does not predict the most probable value.
    happens
        What the calibration is about, such as ``answered correctly``.
    """
    rows = [(name[0].upper() + name[1:], text) for name, text in probability_figures(scores)]
    text = "<h2>Probabilities</h2>" + pages.table([], rows, css_class="facts")
    if n_other:
        text += (
            f"<p>In {n_other:,} pairs the submission does not predict what the probabilities "
            "say is most probable.</p>"
        )
    chart = charts.calibration_chart(
        scores.expected.tolist(),
        scores.happened.tolist(),
        scores.counts.tolist(),
        label="Calibration of the probabilities",
        expected_name="probability predicted",
        happened_name=f"share {happens}",
    )
    return text + _figure(
        chart,
        "Dots on the dashed line are calibrated: of the answers predicted with 70 %, 70 % happen. "
        "Below the line predictions are too high, above it too low. The bars are numbers of "
        "answers; a dot that rests on few may lie off by chance. The calibration error is the mean "
        "distance from the line, weighted by these numbers.",
    )


def probability_figures(scores: ProbabilityScores) -> list[tuple[str, str]]:
    """Return the figures of probabilities by name, as texts."""
    rows = [("log loss", f"{scores.log_loss:.4f}")]
    if scores.auc is not None:
        rows.append(("AUC", f"{scores.auc:.4f}"))
    rows.append(("Brier score", f"{scores.brier:.4f}"))
    return [*rows, ("calibration error", f"{scores.calibration_error:.4f}")]


def breakdowns(parts: Sequence[Breakdown]) -> str:
    """Return a chart for each way to group the answers."""
    if not parts:
        return ""
    has_majority = any(group.majority is not None for part in parts for group in part.groups)
    diamond = "Diamond: accuracy of the majority. " if has_majority else ""
    text = (
        "<h2>Where predictions are right</h2>"
        '<p class="key">Dot: accuracy of this entry, with the 95 % interval that other students '
        f"might give. {diamond}Bar: share of all answers scored. “–”: fewer than {FEW} answers, "
        "which say too little. Each chart has a scale of its own.</p>"
    )
    for part in parts:
        rows = [_share_row(group) for group in part.groups]
        chart = charts.share_chart(
            rows, label=part.title, value_name="accuracy", share_name="answers"
        )
        note = f'<p class="key">{escape(part.note)}</p>' if part.note else ""
        text += f"<h3>{escape(part.title)}</h3>{note}{_figure(chart)}"
    return text


def _share_row(group: Group) -> charts.ShareRow:
    tooltip = f"{group.n_answers:,} answers"
    # The accuracy of a few answers would tell a participant what they are.
    if group.n_answers < FEW:
        return charts.ShareRow(group.name, None, group.share, tooltip=tooltip)
    tooltip += f", accuracy {group.accuracy:.3f}"
    if group.majority is not None:
        tooltip += f", majority {group.majority:.3f}"
    return charts.ShareRow(
        group.name, group.accuracy, group.share, group.interval, group.majority, tooltip
    )


def losses(questions: Sequence[NamedLoss], subjects: Sequence[NamedLoss]) -> str:
    """Return the tables of the questions and subjects with which most is lost."""
    text = (
        "<h2>Where most is lost</h2><p>Lost: answers predicted wrongly, beyond those that the "
        "overall share of wrong predictions would give for as many answers. A question is high up "
        "if it is both often asked and hard to predict. With fewer than "
        f"{FEW} answers, none is shown.</p>"
    )
    for title, name, losses in (
        ("Questions", "QuestionId", questions),
        ("Subjects", "Subject", subjects),
    ):
        rows = [
            _loss_cells(named.name, named.about, named.loss)
            for named in losses
            if named.loss.n_answers >= FEW
        ]
        if rows:
            header = [name, "answers", "wrong", "lost"]
            text += f"<h3>{title}</h3>{pages.table(header, rows, css_class='lost')}"
    return text


def _loss_cells(name: str, about: str, loss: Loss) -> list[str]:
    wrong = _with_small(f"{loss.n_wrong:,}", f"{loss.n_wrong / loss.n_answers:.0%}")
    return [_with_small(name, about), f"{loss.n_answers:,}", wrong, f"{loss.excess:,.1f}"]


def subgroups(parts: Sequence[Breakdown]) -> str:
    """Return the table of the accuracy for groups of students."""
    if not parts:
        return ""
    text = (
        "<h2>Groups of students</h2><p>The table shows for whom predictions are right how often. "
        "It cannot show why, nor whether the entry is fair: groups were set other questions, and "
        "more or fewer of their answers are known, so that the majority's accuracy differs between "
        "them too. Many students tell nothing, and those who do are no random sample. Of many "
        "intervals, one in twenty misses by chance alone.</p>"
    )
    for part in parts:
        rows = [_group_cells(group) for group in part.groups]
        header = ["group", "answers", "accuracy", "majority"]
        if any(group.majority is None for group in part.groups):
            header, rows = header[:-1], [row[:-1] for row in rows]
        text += f"<h3>{escape(part.title)}</h3>{pages.table(header, rows, css_class='groups')}"
    return text


def _group_cells(group: Group) -> list[str]:
    low, high = group.interval
    accuracy: str = _with_small(f"{group.accuracy:.3f}", f"{low:.3f}–{high:.3f}")
    majority = "" if group.majority is None else f"{group.majority:.3f}"
    if group.n_answers < FEW:
        accuracy = majority = "–"
    name = _with_small(group.name, f"{group.n_students:,} student{'s' * (group.n_students > 1)}")
    return [name, f"{group.n_answers:,}", accuracy, majority]


def left_out(parts: Sequence[LeftOut]) -> str:
    """Return what the page leaves out, and why."""
    if not parts:
        return ""
    items = "".join(f"<li>{escape(part.what)}: {escape(part.why)}.</li>" for part in parts)
    return f"<h2>Left out</h2><ul>{items}</ul>"


def _with_small(text: str, small: str) -> pages.Html:
    """Return a cell of two lines, the second one in small letters; of one, if that is empty."""
    below = f"<small>{escape(small)}</small>" if small else ""
    return pages.Html(escape(text) + below)


def _figure(chart: str, key: str = "") -> str:
    caption = f'<figcaption class="key">{escape(key)}</figcaption>' if key else ""
    return f"<figure>{chart}{caption}</figure>"
