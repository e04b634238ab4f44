"""What `compare_strategies.py` prints and writes: tables of 80 columns, and a page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape

from common import charts, pages

from strategies import FloatArray
from strategy_games import OWN
from strategy_protocols import Protocol
from strategy_scores import Scores

# Length of the challenge's tests, and of the paired comparison.
LENGTH = 10
COMPARED = (5, LENGTH)
_NAME_WIDTH = 24


@dataclass(frozen=True)
class RuleResult:
    """What all strategies did by one rule.

    Attributes
    ----------
    title
        The rule, in words.
    checkpoints
        Numbers of questions after which predictions are scored.
    scores
        Of every strategy.
    differences
        By how much the kit's own strategy is more accurate than each other one, and the standard
        error of that, by the number of questions.
    notes
        What else there is to say, a sentence each.
    """

    title: str
    checkpoints: tuple[int, ...]
    scores: Mapping[str, Scores]
    differences: Mapping[str, Mapping[int, tuple[float, float]]]
    notes: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[int, ...]:
        """Where exposure is shown: after ten questions, and at the end."""
        last = self.checkpoints[-1]
        return (LENGTH, last) if LENGTH in self.checkpoints[:-1] else (last,)

    @property
    def compared(self) -> tuple[int, ...]:
        """Where strategies are compared."""
        return tuple(n for n in COMPARED if n in self.checkpoints) or self.checkpoints[-1:]


Table = tuple[str, list[str], list[list[str]]]

_MEASURES: tuple[tuple[str, Callable[[Scores], FloatArray]], ...] = (
    ("Accuracy", lambda scores: scores.accuracy),
    ("AUC", lambda scores: scores.auc),
    ("Log loss", lambda scores: scores.log_loss),
)


def tables(result: RuleResult, stops: bool) -> list[Table]:
    """Return every table of a rule: what it shows, its header (maybe of two lines), its rows.

    Parameters
    ----------
    result
        What there is to show.
    stops
        Whether tests end by precision, so that their mean length is to be shown.
    """
    n_masks = len(next(iter(result.scores.values())).accuracy)
    steps = [n for n in result.checkpoints if n]
    found: list[Table] = []
    for title, measure in _MEASURES:
        rows = []
        for name, scores in result.scores.items():
            values = measure(scores)[:, 1:]
            row = [name, *(f"{value:.4f}" for value in values.mean(axis=0))]
            if n_masks > 1:
                at = steps.index(result.shown[0])
                row.append(f"{values[:, at].std(ddof=1):.4f}")
            rows.append(row)
        header = ["strategy", *map(str, steps)]
        found.append(
            (
                f"{title} after n questions",
                header + [f"± ({result.shown[0]})"] * (n_masks > 1),
                rows,
            )
        )
    found.append(_usage(result, stops))
    if result.differences:
        header = ["strategy", *(f"after {n}" for n in result.compared)]
        rows = [
            [name, *(_difference(*by_length[n]) for n in result.compared)]
            for name, by_length in result.differences.items()
        ]
        title = f"{OWN} ahead in accuracy, ± 2 standard errors (* beyond)"
        found.append((title, header, rows))
    return found


def _difference(value: float, error: float) -> str:
    beyond = "*" if abs(value) > 2 * error else " "
    return f"{value:+.4f} ± {2 * error:.4f}{beyond}"


def _usage(result: RuleResult, stops: bool) -> Table:
    columns = [("exposure", "largest_exposure"), ("overlap", "overlap"), ("bank", "bank_used")]
    if stops:
        columns.append(("length", "n_questions"))
    # More would not fit.
    shown = result.shown[-1:] if stops else result.shown
    places = [(n, result.checkpoints.index(n)) for n in shown]
    header = ["strategy", *(f"{short}\n{n}" for short, _ in columns for n, _ in places)]
    rows = []
    for name, scores in result.scores.items():
        row = [name]
        for short, field in columns:
            values = getattr(scores, field).mean(axis=0)
            digits = 2 if short == "length" else 3
            row += [f"{values[at]:.{digits}f}" for _, at in places]
        rows.append(row)
    title = "Largest exposure, mean test overlap, share of the bank used"
    return (title + (", mean length" if stops else ""), header, rows)


def as_text(result: RuleResult, stops: bool) -> str:
    """Return all tables of a rule as text of at most 80 columns."""
    parts = [result.title]
    for title, header, rows in tables(result, stops):
        heads = [cell.split("\n") for cell in header]
        depth = max(map(len, heads))
        body = [
            list(line)
            for line in zip(*([""] * (depth - len(head)) + head for head in heads), strict=True)
        ]
        widths = [max(len(row[i]) for row in [*body, *rows]) + 2 for i in range(1, len(header))]
        parts.append(f"\n{title}")
        for row in [*body, *rows]:
            cells = "".join(cell.rjust(width) for cell, width in zip(row[1:], widths, strict=True))
            parts.append((row[0][:_NAME_WIDTH].ljust(_NAME_WIDTH) + cells).rstrip())
    return "\n".join([*parts, *(f"note: {note}" for note in result.notes)])


def page(
    results: list[RuleResult],
    sentences: Mapping[str, str],
    facts: list[tuple[str, str]],
    *,
    simulated: bool,
    protocol: Protocol | None,
    stops: bool,
) -> str:
    """Return the page.

    Parameters
    ----------
    results
        One for each rule.
    sentences
        What each strategy does.
    facts
        Of the whole comparison: names and values.
    simulated
        Whether any answer is simulated: then nothing published stands beside.
    protocol
        If one of the literature was followed.
    stops
        As in `tables`.
    """
    parts = [pages.simulated_note(simulated)]
    for result in results:
        parts.append(f"<h2>{escape(result.title)}</h2>\n<figure>{_curves(result)}</figure>")
        parts += [f"<p>{escape(note)}</p>" for note in result.notes]
        for title, header, rows in tables(result, stops):
            parts.append(pages.table(header, rows, caption=title))
    if protocol is not None and not simulated:
        caption = f"Published ({protocol.source}): other students, same questions"
        rows = [list(row) for row in protocol.published]
        parts.append("<h2>Published figures</h2>")
        parts.append(pages.table(["method", "accuracy", "AUC"], rows, caption=caption))
    parts.append("<h2>What each strategy asks</h2>")
    parts.append(pages.table([], [[n, s] for n, s in sentences.items()], css_class="facts"))
    parts.append("<h2>How this was measured</h2>")
    parts.append(pages.table([], [list(fact) for fact in facts], css_class="facts"))
    body = "\n".join(filter(None, parts))
    # Seven columns of figures side by side.
    return pages.page(
        "Task 4: which question to ask next", body, style="th, td { padding: .4rem; }"
    )


def _curves(result: RuleResult) -> str:
    names = sorted(result.scores, key=lambda name: name != OWN)
    means = {name: result.scores[name].accuracy.mean(axis=0).tolist() for name in names}
    return charts.curve_chart(
        [
            charts.Curve(name, result.checkpoints, means[name], number)
            for number, name in enumerate(names)
        ],
        label=f"Accuracy after each number of questions, {result.title}",
        axis="questions asked",
        value_axis="accuracy on the hidden answers",
    )
