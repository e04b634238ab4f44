"""Score files: `scores_task_N.txt` for programs, `scores_task_N.html` for people."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from common import cli, io, metrics, pages
from common.scores.results import LOCAL, Evaluation

import numpy.typing as npt


def score_name(task: int, phase: str) -> str:
    """Return what was scored, as in the names of its score files.

    ``task_1`` for the local split, as the organisers named them, ``task_1_public`` for a phase: the
    scores of one do not overwrite those of the other.

    Parameters
    ----------
    task
        Number of the task.
    phase
        ``local``, ``public`` or ``private``.
    """
    return f"task_{task}" if phase == LOCAL else f"task_{task}_{phase}"


def remove_scores(output_dir: Path, name: str) -> None:
    """Remove the score files of an earlier run, before anything else is done.

    If this run fails, the score of another submission cannot be mistaken for its own.

    Parameters
    ----------
    output_dir
        Folder of the files.
    name
        What was scored, as in the files' names: `score_name` for the challenge's tasks.
    """
    for suffix in ("txt", "html"):
        (output_dir / f"scores_{name}.{suffix}").unlink(missing_ok=True)


def write_scores(
    output_dir: Path,
    name: str,
    evaluation: Evaluation,
    *,
    error: float | None = None,
    figures: Mapping[str, float] | None = None,
    body: str = "",
    style: str = "",
) -> list[Path]:
    """Write a score as text and as a page.

    Parameters
    ----------
    output_dir
        Folder for both files, made if missing.
    name
        What was scored, for the file names: ``task_1`` for `scores_task_1.txt` and `.html`.
    evaluation
        The score and what it was made from.
    error
        Standard error of the score, shown beside it; None if it is not known.
    figures
        What the text holds after the score, a line each: ``{"ndcg_half": 0.04}``.
    body
        Further HTML, such as `confusion_table`.
    style
        CSS that only this page needs.

    Returns
    -------
    list of Path
        The files written: text, page.
    """
    facts = [
        ("Submission", cli.show(evaluation.submission)),
        ("Scored against", cli.show(evaluation.reference)),
    ]
    if evaluation.phase:
        local = evaluation.phase == LOCAL
        facts.append(("Phase", "local split" if local else evaluation.phase))
    beside = "" if error is None else f' <small class="error">± {error:.4f}</small>'
    sections = [
        f'<p class="score">{evaluation.score:.4f}{beside}</p>',
        f'<p class="what">{escape(evaluation.metric)}</p>',
        pages.simulated_note(evaluation.simulated),
        pages.table([], [*facts, *evaluation.facts], css_class="facts"),
        body,
    ]
    tab = f"{evaluation.title}: {evaluation.score:.4f}"
    content = pages.page(evaluation.title, "\n".join(sections), tab=tab, style=style)
    paths = [output_dir / f"scores_{name}.txt", output_dir / f"scores_{name}.html"]
    with io.atomic_write(*paths) as (text_file, page_file):
        for figure, value in {"score": evaluation.score, **(figures or {})}.items():
            text_file.write(f"{figure}:{value!r}\n".encode())
        page_file.write(content.encode())
    return paths


def confusion_table(counts: npt.NDArray[Any], labels: Sequence[str]) -> str:
    """Return a confusion matrix as HTML: counts, and shares of each row.

    Parameters
    ----------
    counts
        Truth in rows, prediction in columns, shape (categories, categories).
    labels
        Name of every category.
    """
    head = "".join(f'<th scope="col">{escape(label)}</th>' for label in labels)
    lines = []
    for label, row, shares in zip(labels, counts, metrics.normalise_rows(counts), strict=True):
        cells = "".join(
            f'<td class="cell" style="background: rgb(var(--accent) / {0.65 * part:.3f})">'
            f"{part:.1%}<small>{count:,}</small></td>"
            for count, part in zip(row, shares, strict=True)
        )
        lines.append(f'<tr><th scope="row">{escape(label)}</th>{cells}</tr>')
    return (
        '<h2>Confusion matrix</h2><div class="wide"><table class="confusion">'
        "<caption>Of the answers in each row, the share predicted as each column (a row sums to "
        f'100 %), with counts below.</caption><thead><tr><td></td><th colspan="{len(labels)}" '
        f'scope="colgroup">predicted</th></tr><tr><th scope="col">truly</th>{head}</tr></thead>'
        "<tbody>" + "\n".join(lines) + "</tbody></table></div>"
    )
