"""Score an entry of task 4: everything that its `local_evaluation.py` does."""

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from common import cli, io, layout, probabilities
from common.adaptive import options as adaptive_options
from common.adaptive import sequences
from common.adaptive.entry_process import fingerprint_code, read_entry_file
from common.adaptive.game import N_ROUNDS, FloatArray, Game, Reference
from common.adaptive.playing import (
    EntryRun,
    Setting,
    describe_rules,
    measure_curves,
    play_all,
    read_students,
    require_other_students,
)
from common.adaptive.report import Curves, describe_games
from common.adaptive.training import TRAINING, describe_origin
from common.answers import IntArray
from common.made import Made, parse
from common.scores import outcomes, score_files, score_page
from common.scores.explain import Beliefs, describe_beliefs, judge_beliefs
from common.scores.results import TASK_TITLES, Evaluation, append_result

import numpy as np

OUTPUT_NAME = "entry_output_task_4.txt"


def evaluate(doc: str | None, package: Path | None = None) -> None:
    """Run a `local_evaluation.py` of task 4.

    Parameters
    ----------
    doc
        The script's docstring, its help.
    package
        Folder of the package whose script it is, the default submission; None: the first argument
        names the submission.
    """
    options = _parse(doc, package)
    name = score_files.score_name(4, options.phase)
    sequence_path = options.output_dir / f"sequence_{name}.csv"
    score_files.remove_scores(options.output_dir, name)
    sequence_path.unlink(missing_ok=True)
    setting = _setting(options)
    if setting.probabilities:
        io.require_place(setting.probabilities)
    started = time.perf_counter()
    reference = read_students(setting)
    require_other_students(setting.submission, reference)
    output_path = options.output_dir / OUTPUT_NAME
    output_path.unlink(missing_ok=True)
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
        setting, reference, run.games, curves, facts, phase=options.phase, seconds=seconds
    )
    code = fingerprint_code(setting.submission, training.code if training else "")
    evaluation = replace(evaluation, training=training, code=code)
    beliefs = None
    if setting.probabilities:
        beliefs = write_probabilities(setting.probabilities, reference, run.games)
        body += score_page.calibration(beliefs.scores, beliefs.n_other, "answered correctly")
    paths = score_files.write_scores(options.output_dir, name, evaluation, body=body)
    chosen = {mask: game.chosen for mask, game in run.games.items()}
    io.write_csv(sequence_path, sequences.as_columns(reference, chosen))
    paths.append(sequence_path)
    append_result(options.output_dir, 4, evaluation)
    deviation = f" ± {_deviation(run.accuracies):.4f}" if len(run.games) > 1 else ""
    print(f"score {evaluation.score:.4f}{deviation} ({_masks(run)}, {evaluation.rules})")
    if beliefs:
        for line in describe_beliefs(beliefs):
            print(line)
    for note in list_notes(run):
        print(f"note: {note}")
    if isinstance(curves, Curves):
        print(f"with questions chosen at random {curves.random[:, -1].mean():.4f}")
    elif not options.skip_curve:
        print(f"no curve: {curves}")
    for line in sequences.as_lines(reference, chosen, options.show_sequences):
        print(line)
    if run.output:
        paths.append(output_path)
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


def _parse(doc: str | None, package: Path | None) -> argparse.Namespace:
    p = cli.parser(doc)
    if package is None:
        p.add_argument("submission", type=Path, metavar="SUBMISSION", help="folder or zip")
    else:
        p.add_argument(
            "--submission", type=Path, default=package, help="folder or zip (default: this folder)"
        )
    adaptive_options.add_data_flags(p)
    p.add_argument(
        "--output_dir",
        type=Path,
        metavar="DIR",
        default=layout.TEST_OUTPUT_DIR,
        help="default data/test_output",
    )
    adaptive_options.add_flags(p)
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
        default=0,
        help="print the questions that were chosen for the first N students (default 0)",
    )
    return p.parse_args()


def _setting(options: argparse.Namespace) -> Setting:
    place = adaptive_options.examined(options)
    return Setting(
        submission=options.submission,
        reference=place.reference,
        train=place.train,
        metadata_dir=place.metadata_dir,
        rules=adaptive_options.rules(options),
        limits=adaptive_options.limits(options),
        probabilities=options.probabilities,
    )


def games_as_columns(
    reference: Reference, games: Mapping[str, Game]
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Return UserId, QuestionId, truth, prediction and number of the mask of every target."""
    parts = []
    for number, (mask, game) in enumerate(games.items()):
        row, question = np.nonzero(reference.targets[mask])
        parts.append(
            (reference.student[row], question, game.truth, game.prediction, 0 * row + number)
        )
    student, question, truth, prediction, part = map(np.concatenate, zip(*parts, strict=True))
    return student, question, truth, prediction, part


def write_probabilities(path: Path, reference: Reference, games: Mapping[str, Game]) -> Beliefs:
    """Write what an entry believes of the targets of all masks, and score it."""
    cells = [np.nonzero(reference.targets[mask]) for mask in games]
    student, question = (np.concatenate(places) for places in zip(*cells, strict=True))
    p_right = np.concatenate([np.asarray(game.probability) for game in games.values()])
    probabilities.write_mask_probabilities(
        path,
        np.repeat(list(games), [len(game.truth) for game in games.values()]),
        reference.student[student],
        question.astype(np.int32),
        p_right,
    )
    truth, predicted = (
        np.concatenate([getattr(game, name) for game in games.values()])
        for name in ("truth", "prediction")
    )
    return judge_beliefs(truth, predicted, np.stack([1 - p_right, p_right], axis=1))


def list_facts(
    setting: Setting,
    reference: Reference,
    run: EntryRun,
    seconds: float,
    training: Made | None,
) -> list[tuple[str, str]]:
    """Return what the page says of a run beside its score, as (name, value) pairs.

    Parameters
    ----------
    setting, reference
        What was played.
    run, seconds
        What came of it, and how long it took.
    training
        How the weights were made, if that is known.
    """
    n_targets = sum(int(targets.sum()) for targets in reference.targets.values())
    limits = setting.limits
    memory = f"{limits.memory / 2**30:g} GiB of memory"
    if not run.memory_limited:
        memory += " (not enforced: this system cannot)"
    facts = [
        ("Weights trained by", describe_origin(training)),
        ("Training file given", cli.show(setting.train) if setting.train else "none"),
        ("Students", f"{len(reference.student):,}"),
        ("Questions (columns)", f"{reference.is_correct.shape[1]:,}"),
        ("Targets scored", f"{n_targets:,}"),
        ("Rules", describe_rules(setting.rules)),
        ("Limits", f"{limits.seconds:g} s for one mask, {memory}"),
        ("Isolation", run.isolation),
        ("Time", f"{seconds:.1f} s"),
    ]
    if len(run.games) > 1:
        facts.append(("Deviation over masks", f"{_deviation(run.accuracies):.4f}"))
    return [*facts, *(("Note", note) for note in list_notes(run))]


def list_notes(run: EntryRun) -> list[str]:
    """Return what an entry's author should know of a run that is no fault."""
    return [
        f"{method} changes {', '.join(sorted(names))}: it got a copy, so that has no effect"
        for method, names in run.changed.items()
    ]


def describe(
    setting: Setting,
    reference: Reference,
    games: Mapping[str, Game],
    curves: Curves | str,
    facts: Sequence[tuple[str, str]],
    *,
    phase: str,
    seconds: float,
    with_answers: bool = True,
) -> tuple[Evaluation, str]:
    """Score games that have been played, and draw them.

    Parameters
    ----------
    setting, reference
        What was played.
    games
        One for each mask, by its name.
    curves
        Accuracies after each question, or the reason why there are none.
    facts
        From `list_facts`.
    phase
        ``local``, ``public`` or ``private``.
    seconds
        How long it took.
    with_answers
        Whether the page shows answers of students to what they were asked.

    Returns
    -------
    Evaluation
        Without the training and the code of the entry.
    str
        The rest of the page, HTML.
    """
    accuracies = {mask: game.accuracy for mask, game in games.items()}
    evaluation = Evaluation(
        title=TASK_TITLES[4],
        metric=f"Accuracy on the targets after {N_ROUNDS} questions, mean over the target masks",
        score=float(np.array(list(accuracies.values())).mean()),
        submission=setting.submission,
        reference=setting.reference,
        phase=phase,
        rules=describe_rules(setting.rules),
        parts=accuracies,
        seconds=seconds,
        facts=facts,
        outcomes=outcomes.of_predictions(*games_as_columns(reference, games)),
    )
    body = describe_games(reference, games, curves, setting.metadata_dir, with_answers=with_answers)
    return evaluation, body


def _masks(run: EntryRun) -> str:
    n = len(run.games)
    return f"mean of {n} masks" if n > 1 else "one mask"


def _deviation(values: FloatArray) -> float:
    return float(values.std(ddof=1))
