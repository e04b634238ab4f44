"""Score an entry of task 4: everything that its `local_evaluation.py` does."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import charts, cli, io, layout, metadata, metrics, pages, probabilities
from common.adaptive import entry_files
from common.adaptive.entry_process import fingerprint_code, names_inside, read_entry_file
from common.adaptive.game import N_ROUNDS, Game, Reference
from common.adaptive.playing import (
    Curves,
    EntryRun,
    Setting,
    add_data_flags,
    add_flags,
    examined,
    measure_curves,
    play_all,
    read_students,
    rules_and_limits,
)
from common.adaptive.training import describe_origin, for_local_split
from common.adaptive.weights import TRAINING
from common.answers import IntArray
from common.evaluation import outcomes, score_files
from common.evaluation.record import LOCAL, TASK_TITLES, Evaluation, append_result
from common.made import Made, parse
from common.metrics import ProbabilityScores, score_probabilities
from common.pages import Html

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

OUTPUT_NAME = "entry_output_task_4.txt"
# Of how many students the questions chosen are printed, and shown on the page.
_N_SHOWN = 3
_OUTCOMES = np.array(["wrong", "right"])


def evaluate(doc: str | None, package: Path | None = None) -> None:
    """Run a `local_evaluation.py`, whose docstring is its help.

    `package` is the folder of the package whose script it is, the default submission; without one,
    the first argument names the submission.
    """
    options = _parse(doc, package)
    setting = Setting(
        options.submission,
        *examined(options),
        *rules_and_limits(options),
        options.probabilities,
    )
    inputs = [setting.submission, setting.reference, setting.train]
    beside = _written_beside(options)
    cli.require_outputs([*beside, options.probabilities], inputs)
    name = score_files.score_name(4, options.phase)
    score_files.remove_scores(options.output_dir, name, [*inputs, options.probabilities])
    for path in beside:
        path.unlink(missing_ok=True)
    # The package as it is, on the kit's own local split: its weights may be of all students.
    is_local = setting.reference == layout.answers_path(4, LOCAL)
    if package and options.submission == package and is_local:
        with for_local_split(package, setting.reference) as played:
            _evaluate(options, replace(setting, submission=played))
    else:
        _evaluate(options, setting)


def _written_beside(options: argparse.Namespace) -> tuple[Path, Path]:
    """Return where what was asked, and what the entry printed, are written beside the score."""
    name = f"sequence_{score_files.score_name(4, options.phase)}.csv"
    return options.output_dir / name, options.output_dir / OUTPUT_NAME


def _evaluate(options: argparse.Namespace, setting: Setting) -> None:
    """Play and score an entry: the submission, or a copy that knows less."""
    sequence_path, output_path = _written_beside(options)
    started = time.perf_counter()
    reference = read_students(setting)
    entry_files.warn_of_names(options.submission, names_inside(setting.submission))
    run = play_all(setting, reference, output_path)
    seconds = time.perf_counter() - started
    curves: Curves | str = "not asked for"
    if not options.skip_curve:
        curves = measure_curves(setting, reference, run)
    if run.output:
        io.write_text(output_path, run.output)

    training = parse(read_entry_file(setting.submission, TRAINING) or b"")
    facts = list_facts(setting, reference, run, seconds, training)
    evaluation, body = describe(
        setting,
        figures_of(run.games, curves),
        facts,
        phase=options.phase,
        seconds=seconds,
        sequences=show_sequences(setting, reference, run.games),
    )
    evaluation = replace(
        evaluation,
        submission=options.submission,
        training=training,
        code=fingerprint_code(setting.submission, training.code if training else ""),
        outcomes=outcomes.of_predictions(*games_as_columns(reference, run.games)),
    )
    beliefs = None
    if setting.probabilities:
        beliefs = write_probabilities(setting.probabilities, reference, run.games)
        body += score_files.calibration(beliefs, "answered correctly")
    name = score_files.score_name(4, options.phase)
    paths = score_files.write_scores(options.output_dir, name, evaluation, body=body)
    asked = list_asked(reference, run.games)
    io.write_csv(sequence_path, asked)
    append_result(options.output_dir, 4, evaluation)
    n_masks = len(run.games)
    masks = f"mean of {n_masks} masks" if n_masks > 1 else "one mask"
    deviation = f" ± {run.accuracies.std(ddof=1):.4f}" if n_masks > 1 else ""
    print(f"score {evaluation.score:.4f}{deviation} ({masks}, {evaluation.rules})")
    if beliefs:
        for line in score_files.probability_lines(beliefs):
            print(line)
    for note in _list_notes(run):
        print(f"note: {note}")
    if isinstance(curves, Curves):
        print(f"with questions chosen at random {curves.random[:, -1].mean():.4f}")
    elif not options.skip_curve:
        print(f"no curve: {curves}")
    shown = asked[asked["UserId"].isin(reference.student[: options.show_sequences])]
    by_student = shown.sort_values("UserId", kind="stable")
    for (student, mask), rows in by_student.groupby(["UserId", "Mask"], sort=False):
        answers = zip(rows["QuestionId"], _OUTCOMES[rows["IsCorrect"]], strict=True)
        print(f"UserId {student}, {mask}: {', '.join(f'{q} {answer}' for q, answer in answers)}")
    if 0 < options.show_sequences < len(reference.student):
        print(f"and so on, of all {len(reference.student):,} students: {cli.show(sequence_path)}")
    paths += [sequence_path, *([output_path] if run.output else [])]
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


def _parse(doc: str | None, package: Path | None) -> argparse.Namespace:
    p = cli.parser(doc)
    if package is None:
        p.add_argument("submission", type=Path, metavar="SUBMISSION", help="folder or zip")
    else:
        p.add_argument(
            "--submission", type=Path, default=package, help="folder or zip (default: this folder)"
        )
    add_data_flags(p)
    cli.add_folder(p, "--output_dir", layout.TEST_OUTPUT_DIR)
    add_flags(p)
    p.add_argument(
        "--probabilities",
        type=Path,
        metavar="FILE",
        help="ask the entry for its probabilities too: write them to FILE (Parquet), score them",
    )
    p.add_argument(
        "--skip_curve",
        action="store_true",
        help="do not measure the accuracy after each question, which takes further predictions",
    )
    p.add_argument(
        "--show_sequences",
        type=cli.seed,
        metavar="N",
        default=_N_SHOWN,
        help=f"print what the first N students were asked, in order (default {_N_SHOWN}, 0: none)",
    )
    return p.parse_args()


def games_as_columns(reference: Reference, games: Mapping[str, Game]) -> list[IntArray]:
    """Return UserId, QuestionId, truth, prediction and number of the mask of every target."""
    parts = []
    for number, (mask, game) in enumerate(games.items()):
        row, question = np.nonzero(reference.targets[mask])
        student, part = reference.student[row], np.full(len(row), number)
        parts.append((student, question, game.truth, game.prediction, part))
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def list_asked(reference: Reference, games: Mapping[str, Game]) -> pd.DataFrame:
    """Return every selection: Mask, UserId, Round (from 1), QuestionId and IsCorrect, in order."""
    import pandas as pd

    parts = []
    for mask, game in games.items():
        row, number = np.indices(game.chosen.shape).reshape(2, -1)
        question = game.chosen.ravel()
        columns = {
            "UserId": reference.student[row],
            "Round": number + 1,
            "QuestionId": question,
            "IsCorrect": reference.is_correct[row, question],
        }
        parts.append(pd.DataFrame({"Mask": mask, **columns}))
    return pd.concat(parts, ignore_index=True)


def write_probabilities(
    path: Path, reference: Reference, games: Mapping[str, Game]
) -> ProbabilityScores:
    """Write what an entry believes of the targets of all masks, and score it."""
    student, question, truth, predicted, part = games_as_columns(reference, games)
    p_right = np.concatenate([np.asarray(game.probability) for game in games.values()])
    masks = np.array(list(games))[part]
    probabilities.write_mask_probabilities(path, masks, student, question.astype(np.int32), p_right)
    return score_probabilities(truth, np.stack([1 - p_right, p_right], axis=1), predicted)


def list_facts(
    setting: Setting,
    reference: Reference,
    run: EntryRun,
    seconds: float,
    training: Made | None,
) -> list[tuple[str, str]]:
    """Return what the page says of a run beside its score, as (name, value) pairs."""
    n_targets = sum(int(targets.sum()) for targets in reference.targets.values())
    memory = f"{setting.limits.memory / 2**30:g} GiB of memory"
    if not run.memory_limited:
        memory += " (not enforced: this system cannot)"
    facts = [
        ("Weights trained by", describe_origin(training)),
        ("Training file given", cli.show(setting.train) if setting.train else "none"),
        ("Students", f"{len(reference.student):,}"),
        ("Questions (columns)", f"{reference.is_correct.shape[1]:,}"),
        ("Targets scored", f"{n_targets:,}"),
        ("Rules", f"{setting.rules}"),
        ("Limits", f"{setting.limits.seconds:g} s for one mask, {memory}"),
        ("Isolation", run.isolation),
        ("Time", f"{seconds:.1f} s"),
    ]
    if len(run.games) > 1:
        facts.append(("Deviation over masks", f"{run.accuracies.std(ddof=1):.4f}"))
    return [*facts, *(("Note", note) for note in _list_notes(run))]


def _list_notes(run: EntryRun) -> list[str]:
    """Return what an entry's author should know of a run that is no fault."""
    return [
        f"{method} changes {', '.join(sorted(names))}: it got a copy, so that has no effect"
        for method, names in run.changed.items()
    ]


def figures_of(games: Mapping[str, Game], curves: Curves | str) -> dict[str, Any]:
    """Return scores and counts of games that have been played, as JSON takes them.

    The accuracy by mask, the confusion matrix of all, and the accuracy after each question, by who
    chose them, or the reason why that is not known.
    """
    counts = sum(
        metrics.confusion_matrix(game.truth, game.prediction, (0, 1)) for game in games.values()
    )
    return {
        "masks": {mask: game.accuracy for mask, game in games.items()},
        "confusion": np.asarray(counts).tolist(),
        "curves": curves
        if isinstance(curves, str)
        else [one.mean(axis=0).tolist() for one in (curves.entry, curves.random)],
    }


def describe(
    setting: Setting,
    figures: Mapping[str, Any],
    facts: Sequence[tuple[str, str]],
    *,
    phase: str,
    seconds: float,
    sequences: str = "",
) -> tuple[Evaluation, str]:
    """Put `figures_of` games and the facts of `list_facts` into an evaluation and a page.

    Returns the evaluation, without outcomes and the training and the code of the entry, and the
    rest of the page, HTML, in which `sequences` is what says which questions were chosen.
    """
    accuracies = figures["masks"]
    evaluation = Evaluation(
        title=TASK_TITLES[4],
        metric=f"Accuracy on the targets after {N_ROUNDS} questions, mean over the target masks",
        score=float(np.array(list(accuracies.values())).mean()),
        submission=setting.submission,
        reference=setting.reference,
        phase=phase,
        rules=f"{setting.rules}",
        parts=accuracies,
        seconds=seconds,
        facts=facts,
    )
    masks = curve = ""
    if len(accuracies) > 1:
        dots = [charts.Dot(mask, accuracy) for mask, accuracy in accuracies.items()]
        masks = charts.dot_chart(
            dots,
            label="Accuracy with each mask",
            digits=4,
            chance=float(np.mean([dot.value for dot in dots])),
            axis="accuracy, mean dashed",
        )
    names, rows = ("entry's choice", "random choice"), []
    curves = figures["curves"]
    if not isinstance(curves, str):
        entry, at_random = curves
        label = "Accuracy after each question"
        curve = charts.line_chart(
            names[0], entry, names[1], at_random, label=label, axis="questions asked"
        )
        rows = [
            (f"{number}", f"{own:.4f}", f"{random:.4f}")
            for number, (own, random) in enumerate(zip(entry, at_random, strict=True))
        ]
    body = pages.render(
        "games.html",
        masks=Html(masks),
        no_curve=curves if isinstance(curves, str) else "",
        curve=Html(curve),
        curve_header=["Questions", *names],
        curve_rows=rows,
        sequences=Html(sequences),
        confusion=Html(
            score_files.confusion_table(np.array(figures["confusion"]), ("wrong", "right"))
        ),
    )
    return evaluation, body


def show_sequences(setting: Setting, reference: Reference, games: Mapping[str, Game]) -> str:
    """Return what some students, from the first to the last, were asked with the first mask."""
    mask = next(iter(games))
    asked = list_asked(reference, {mask: games[mask]})
    subjects = name_questions(setting.metadata_dir, reference.is_correct.shape[1])
    asked["Subject"] = np.array(subjects)[asked["QuestionId"]]
    asked["Answer"] = _OUTCOMES[asked["IsCorrect"]]
    header = ["Round", "QuestionId", "Subject", "Answer"]
    places = np.linspace(0, len(reference.student) - 1, _N_SHOWN).astype(int)
    tables = [
        pages.table(
            header,
            asked.loc[asked["UserId"] == student, header].astype(str).to_numpy().tolist(),
            css_class="rounds",
            caption=f"UserId {student}",
        )
        for student in reference.student[np.unique(places)].tolist()
    ]
    return f"<h2>Questions chosen for some students ({mask})</h2>\n" + "\n".join(tables)


def name_questions(metadata_dir: Path, n_questions: int) -> list[str]:
    """Return the names of the most specific subjects of all questions; empty without metadata."""
    questions = metadata.find(metadata_dir, layout.QUESTION_METADATA_TASK_3_4)
    subjects = metadata.find(metadata_dir, layout.SUBJECT_METADATA)
    if not (questions and subjects):
        return [""] * n_questions
    return metadata.name_subjects(questions, subjects, np.arange(n_questions))
