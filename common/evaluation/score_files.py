"""Score files: `scores_task_N.txt` for programs, `scores_task_N.html` for people."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from common import charts, cli, metrics, pages, provenance, writing
from common.arrays import Array
from common.errors import printable
from common.evaluation import record
from common.evaluation.record import Evaluation
from common.metrics import ProbabilityScores
from common.provenance import NOTEBOOK, Provenance
from common.tasks import LOCAL, OWN, name_of_phase, title_of


def score_paths(output_dir: Path, task: int | str, phase: str) -> list[Path]:
    """Return the paths of a score as text and as a page.

    Scores of the local split have the names that the organisers use, such as scores_task_1.txt. Any
    other phase adds its own name, as in scores_task_1_public.txt.
    """
    name = task if isinstance(task, str) else f"task_{task}"
    if phase not in ("", LOCAL):
        name += f"_{phase}"
    return [output_dir / f"scores_{name}.txt", output_dir / f"scores_{name}.html"]


def remove_scores(
    output_dir: Path, task: int | str, phase: str, inputs: Iterable[Path | None]
) -> None:
    """Remove older score files, so that they are not taken for new ones if this run fails.

    Raises `InputError` if a file to write is one of the `inputs`.
    """
    scores = score_paths(output_dir, task, phase)
    cli.require_outputs([*scores, record.results_path(output_dir)], inputs)
    for path in scores:
        path.unlink(missing_ok=True)


def write_scores(
    output_dir: Path,
    evaluation: Evaluation,
    *,
    figures: Mapping[str, float] | None = None,
    body: str = "",
    template: str = "score.html",
    **fields: Any,
) -> list[Path]:
    """Write a score as text and as a page; return the paths of the two files.

    Parameters
    ----------
    output_dir
        The folder for the files.
    evaluation
        The score and what is known about it. The page shows its facts and doubts.
    figures
        Further numbers by name. The text file lists them below the score.
    body
        HTML that the page shows; a field of the template.
    template
        Name of the page's template.
    **fields
        Further fields of the template.
    """
    first_facts = [
        ("Submission", cli.show(evaluation.submission)),
        ("Scored against", cli.show(evaluation.reference)),
    ]
    if evaluation.phase:
        first_facts.append(("Phase", name_of_phase(evaluation.phase)))
    first_facts.append(("Origin", evaluation.origin.answers))
    doubts = [("Doubt", doubt.sentence) for doubt in evaluation.doubts]
    title = evaluation.title or title_of(evaluation.task)
    if evaluation.phase == OWN:
        title += ", a test of your own"
    page = pages.render(
        template,
        title=title,
        tab=f"{title}: {evaluation.score.value:.4f}",
        evaluation=evaluation,
        facts=[*first_facts, *evaluation.facts, *doubts],
        body=pages.Html(body),
        **fields,
    )
    all_figures = {"score": evaluation.score.value, **(figures or {})}
    text = "".join(f"{name}:{value!r}\n" for name, value in all_figures.items())
    text_path, page_path = score_paths(output_dir, evaluation.task, evaluation.phase)
    writing.write_files({text_path: text, page_path: page})
    return [text_path, page_path]


def publish(
    output_dir: Path,
    evaluation: Evaluation,
    lines: Sequence[str],
    written_before: Sequence[Path] = (),
    **page_options: Any,
) -> None:
    """Write a score as text and as a page, add it to the record of scores, and print it.

    Parameters
    ----------
    output_dir
        The folder for the score.
    evaluation
        The score and what is known about it.
    lines
        Lines to print after the first line, which says what was scored. Then the doubts about the
        score and the paths of the files written are printed.
    written_before
        Files that the caller has written already. Their paths are printed too.
    **page_options
        Further arguments of `write_scores`, such as the page's template and its fields.
    """
    paths = [*write_scores(output_dir, evaluation, **page_options), *written_before]
    record.append_result(output_dir, evaluation)
    print(f"scored: {describe_entry(evaluation.submission, evaluation.training)}")
    print("\n".join(lines))
    for doubt in evaluation.doubts:
        print(f"note: {doubt.sentence}")
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


def describe_entry(submission: Path, training: Provenance | None = None) -> str:
    """Return a text that names an entry, the command that made it, and the time.

    `training` is the record of how the entry was made. By default, it is the record beside the
    submission.
    """
    training = training or provenance.read(submission)
    if training is None:
        return cli.show(submission)
    when = f" on {provenance.to_minute(training.time)}" if training.time else ""
    if training.script != NOTEBOOK:
        how = f"by `{printable(training.command)}`"
    elif training.name:
        how = f"in a notebook ({printable(training.name)})"
    else:
        how = "in a notebook"
    return f"{cli.show(submission)}, made {how}{when}"


def confusion_table(counts: Array, labels: Sequence[str]) -> str:
    """Return a confusion matrix, truth in rows, as HTML: counts, and shares of each row."""
    return pages.part("confusion", counts.tolist(), metrics.normalise_rows(counts), labels)


def calibration_html(scores: ProbabilityScores, event: str) -> str:
    """Return the scores of probabilities with a chart of their calibration, as HTML.

    `event` is the event that the probabilities are for, such as "answered correctly".
    """
    names = [f"{10 * tenth} to {10 * tenth + 10} %" for tenth in scores.bins.index]
    chart = charts.share_chart(
        scores.bins.set_axis(names),
        label="Calibration of the probabilities",
        limits=(0, 1),
        axis=f"share {event}",
        value="share_happened",
        mark="mean_probability",
    )
    # Titles and texts of the scores, such as ("Log loss", "0.5321").
    rows = []
    for name, text in _format_figures(scores).items():
        title = name[0].upper() + name[1:]
        rows.append((title, text))
    # A submission may predict a value although its own probabilities call another value more
    # probable. The page warns of such predictions: `n_other` is their number.
    return pages.part("calibration", rows, n_other=scores.n_not_most_probable, chart=chart)


def probability_lines(scores: ProbabilityScores) -> list[str]:
    """Return the scores of probabilities as lines for the terminal."""
    lines = [", ".join(f"{name} {text}" for name, text in _format_figures(scores).items())]
    if scores.n_not_most_probable:
        lines.append(f"{scores.n_not_most_probable:,} predictions are not the most probable value")
    return lines


def _format_figures(scores: ProbabilityScores) -> dict[str, str]:
    """Return the scores that were computed, by name, as text with four decimals."""
    figures = {
        "log loss": scores.log_loss,
        "AUC": scores.auc,
        "Brier score": scores.brier,
        "calibration error": scores.calibration_error,
    }
    return {name: f"{value:.4f}" for name, value in figures.items() if value is not None}
