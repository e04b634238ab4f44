"""Score an entry of task 4: everything that its `local_evaluation.py` does."""

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from tqdm import tqdm

from common import cli, io, layout, metrics, probabilities, provenance, schema
from common.adaptive import options as adaptive_options
from common.adaptive.entry_process import EntryProcess, Limits, fingerprint_code, read_entry_file
from common.adaptive.game import (
    N_ROUNDS,
    EntryError,
    FloatArray,
    Game,
    Reference,
    Rules,
    choose_at_random,
    make_reference,
    play,
    read_reference,
    replay,
)
from common.adaptive.report import Curves, describe_games
from common.adaptive.training import TRAINED_STUDENTS, TRAINING, TrainingPaths, count_questions
from common.answers import IntArray, read_answers
from common.errors import InputError
from common.scores import outcomes, score_files, score_page
from common.scores.origins import parse_origin
from common.scores.results import LOCAL, TASK_TITLES, Evaluation, append_result

# Name that the training file has in the entry's folder, as in the challenge.
GIVEN_TRAIN = layout.TRAIN_TASK_3_4
# The dry run plays with this many students, the first ones of the training file.
N_DRY_RUN_STUDENTS = 30
OUTPUT_NAME = "entry_output_task_4.txt"


@dataclass(frozen=True)
class Setting:
    """What an entry is scored on and how; paths of optional files are None if they do not exist.

    Attributes
    ----------
    submission
        Folder or zip.
    reference
        CSV with the students, their answers and the masks.
    train
        Training file that the entry is given.
    metadata_dir
        Folder of the metadata that the entry is given.
    rules, limits
        How the rules are read, and what the entry may use.
    probabilities
        Where the entry's probabilities go; None: it is not asked for any.
    """

    submission: Path
    reference: Path
    train: Path | None
    metadata_dir: Path
    rules: Rules
    limits: Limits
    probabilities: Path | None = None


@dataclass(frozen=True)
class EntryRun:
    """What an entry did.

    Attributes
    ----------
    games
        One for each mask.
    output
        The end of what it printed.
    changed
        For each method, which of its arguments it changed.
    memory_limited
        Whether the system limited its memory.
    isolation
        What kept it from files and processes, in words.
    """

    games: dict[str, Game]
    output: str
    changed: Mapping[str, set[str]]
    memory_limited: bool
    isolation: str

    @property
    def accuracies(self) -> FloatArray:
        """Accuracy with each mask."""
        return np.array([game.accuracy for game in self.games.values()])


def evaluate(doc: str | None, package: Path) -> None:
    """Run the `local_evaluation.py` of a package of task 4.

    Parameters
    ----------
    doc
        The script's docstring, its help.
    package
        Folder of the package, the default submission.
    """
    options = _parse(doc, package)
    name = score_files.score_name(4, options.phase)
    score_files.remove_scores(options.output_dir, name)
    setting = _setting(options)
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

    notes = [
        f"{method} changes {', '.join(sorted(names))}: it got a copy, so that has no effect"
        for method, names in run.changed.items()
    ]
    facts = _facts(setting, reference, run, seconds)
    training = parse_origin(read_entry_file(setting.submission, TRAINING) or b"")
    evaluation = Evaluation(
        title=TASK_TITLES[4],
        metric=f"Accuracy on the targets after {N_ROUNDS} questions, mean over the target masks",
        score=float(run.accuracies.mean()),
        submission=setting.submission,
        reference=setting.reference,
        phase=options.phase,
        rules=describe_rules(setting.rules),
        parts=dict(zip(run.games, run.accuracies.tolist(), strict=True)),
        seconds=seconds,
        facts=[*facts, *(("Note", note) for note in notes)],
        training=training,
        code=fingerprint_code(setting.submission, training.code if training else ""),
        outcomes=outcomes.of_predictions(*games_as_columns(reference, run.games)),
    )
    body = describe_games(reference, run.games, curves, setting.metadata_dir)
    scores = None
    if setting.probabilities:
        scores = write_probabilities(setting.probabilities, reference, run.games)
        body += score_page.calibration(scores, 0, "answered correctly")
    paths = score_files.write_scores(options.output_dir, name, evaluation, body=body)
    append_result(options.output_dir, 4, evaluation)
    deviation = f" ± {_deviation(run.accuracies):.4f}" if len(run.games) > 1 else ""
    print(f"score {evaluation.score:.4f}{deviation} ({_masks(run)}, {evaluation.rules})")
    if scores:
        print(", ".join(f"{name} {text}" for name, text in score_page.probability_figures(scores)))
    for note in notes:
        print(f"note: {note}")
    if isinstance(curves, Curves):
        print(f"with questions chosen at random {curves.random[:, -1].mean():.4f}")
    elif not options.skip_curve:
        print(f"no curve: {curves}")
    if run.output:
        paths.append(output_path)
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


def _parse(doc: str | None, package: Path) -> argparse.Namespace:
    p = cli.parser(doc)
    p.add_argument("--input_dir", type=Path, help="default data/test_input")
    p.add_argument("--ref_data", help=f"students and masks (default {layout.VALID_TASK_4})")
    p.add_argument(
        "--output_dir", type=Path, default=layout.TEST_OUTPUT_DIR, help="default data/test_output"
    )
    p.add_argument(
        "--submission", type=Path, default=package, help="folder or zip (default: this folder)"
    )
    p.add_argument(
        "--phase",
        choices=(LOCAL, *layout.PHASES),
        default=LOCAL,
        help="public, private: the released students in data/test_data (default local)",
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
    return p.parse_args()


def _setting(options: argparse.Namespace) -> Setting:
    if options.phase == LOCAL:
        input_dir = options.input_dir or layout.TEST_INPUT_DIR
        reference_name = layout.VALID_TASK_4
        # Never the full training file: it holds the hidden answers of the local split.
        train = input_dir / layout.TRAIN_TASK_4
    else:
        input_dir = options.input_dir or layout.TEST_DIR
        reference_name = layout.test_masks_name(options.phase)
        train = input_dir.parent / layout.TRAIN_DIR.name / layout.TRAIN_TASK_3_4
    return Setting(
        submission=options.submission,
        reference=input_dir / (options.ref_data or reference_name),
        train=train if io.is_there(train) else None,
        metadata_dir=input_dir.parent / layout.METADATA_DIR.name,
        rules=adaptive_options.rules(options),
        limits=adaptive_options.limits(options),
        probabilities=options.probabilities,
    )


def read_students(setting: Setting) -> Reference:
    """Read the students to be examined, and check that the entry is not trained on them.

    Raises
    ------
    InputError
        If the file is wrong, or the training file given to the entry holds one of its students.
    """
    provenance.require_current([setting.reference, *([setting.train] if setting.train else [])])
    n_questions = count_questions(setting.train, setting.metadata_dir)
    reference = read_reference(setting.reference, n_questions)
    if setting.train is not None:
        trained = io.read_columns(setting.train, [schema.USER_ID])["UserId"]
        known = np.intersect1d(reference.student, trained)
        if len(known):
            raise InputError(
                f"{setting.train}: holds UserId {known[0]} of {setting.reference} "
                f"({len(known)} such students), expected other students: are both of one split?"
            )
    return reference


def require_other_students(submission: Path, reference: Reference) -> None:
    """Raise `InputError` if a package was trained on students to be examined, by its own record."""
    name = TRAINED_STUDENTS
    data = read_entry_file(submission, name)
    if data is None:
        return
    try:
        trained = np.lib.format.read_array(BytesIO(data), allow_pickle=False)
    except Exception:  # NumPy's reader raises whatever its parts do.
        trained = np.empty(0)
    # Anything else, such as UserIds as text, would equal no UserId.
    if trained.dtype.kind not in "iu" or trained.ndim != 1 or not len(trained):
        raise InputError(f"{submission}: {name} is damaged, expected an array of UserIds")
    known = np.intersect1d(reference.student, trained)
    if len(known):
        raise InputError(
            f"{submission}: its model is trained on UserId {known[0]} of {reference.name} "
            f"({len(known)} such students), expected other students: "
            "`train_model.py --local` trains for the local split"
        )


def given_files(setting: Setting) -> dict[str, Path]:
    """Return the files that an entry finds in its folder as in the challenge, by name there."""
    files = {
        name: setting.metadata_dir / name
        for name in (
            layout.QUESTION_METADATA_TASK_3_4,
            layout.STUDENT_METADATA_TASK_3_4,
            layout.ANSWER_METADATA_TASK_3_4,
            layout.SUBJECT_METADATA,
        )
        if (setting.metadata_dir / name).is_file()
    }
    return files if setting.train is None else {GIVEN_TRAIN: setting.train, **files}


def _start(setting: Setting) -> EntryProcess:
    return EntryProcess(setting.submission, given_files(setting), setting.limits, setting.reference)


def play_all(setting: Setting, reference: Reference, output_path: Path | None = None) -> EntryRun:
    """Play the ten rounds with every mask, a fresh process for each.

    Parameters
    ----------
    setting
        The entry and what it is given.
    reference
        The students.
    output_path
        Where to write what the entry printed, should it fail.

    Raises
    ------
    InputError
        If the entry fails or breaks a rule; there is no score then.
    """
    games: dict[str, Game] = {}
    outputs: list[str] = []
    changed: dict[str, set[str]] = {}
    memory_limited = False
    isolation = ""
    n_rounds = N_ROUNDS * len(reference.targets)
    with tqdm(total=n_rounds, desc="Rounds", unit="round", leave=None, disable=None) as progress:
        for mask in reference.targets:
            process = _start(setting)
            try:
                with process as entry:
                    games[mask] = play(
                        entry,
                        reference,
                        mask,
                        setting.rules,
                        progress.update,
                        with_probability=setting.probabilities is not None,
                    )
            except EntryError as fault:
                explained = adaptive_options.explain_fault(fault, setting.rules)
                message = f"{setting.submission}: {mask}, {explained}"
                if process.output and output_path is not None:
                    io.write_text(output_path, process.output)
                    message += f"; what it printed is in {cli.show(output_path)}"
                raise InputError(message) from None
            outputs.append(process.output)
            memory_limited = process.memory_limited
            isolation = process.isolation
            for method, names in process.changed.items():
                changed.setdefault(method, set()).update(names)
    return EntryRun(games, "".join(outputs), changed, memory_limited, isolation)


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


def write_probabilities(
    path: Path, reference: Reference, games: Mapping[str, Game]
) -> metrics.ProbabilityScores:
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
    truth = np.concatenate([game.truth for game in games.values()])
    return metrics.score_probabilities(truth, np.stack([1 - p_right, p_right], axis=1))


def dry_run(submission: Path, paths: TrainingPaths, rules: Rules, limits: Limits) -> None:
    """Play the ten rounds with a zip or folder and some training students, without a score.

    Parameters
    ----------
    submission
        Zip or folder.
    paths
        Where the training file and the metadata are.
    rules, limits
        How the rules are read, and what the entry may use.

    Raises
    ------
    InputError
        If the entry fails or breaks a rule.
    """
    answers = read_answers(paths.train)
    students, n_answers = np.unique(answers.student, return_counts=True)
    # A fifth of the answers become targets; the others must be enough for the rounds.
    enough = students[n_answers >= 2 * N_ROUNDS]
    if not len(enough):
        raise InputError(
            f"{paths.train}: no student has {2 * N_ROUNDS} answers, expected some for the dry run"
        )
    order = np.argsort(answers.student, kind="stable")
    answers = answers.take(order[np.isin(answers.student[order], enough[:N_DRY_RUN_STUDENTS])])
    reference = make_reference(
        str(paths.train),
        answers,
        {"dry run": np.arange(len(answers)) % 5 == 0},
        count_questions(paths.train, paths.metadata_dir),
    )
    setting = Setting(submission, paths.train, paths.train, paths.metadata_dir, rules, limits)
    play_all(setting, reference)


def measure_curves(setting: Setting, reference: Reference, run: EntryRun) -> Curves | str:
    """Score the entry's predictions after every question, for its own and for random choices.

    This replays the games separately from the scored ones, so that the additional calls of
    `predict` cannot affect the score.

    Returns
    -------
    Curves, or str
        The reason why there are none: an entry may rely on `select_questions` being called.
    """
    entry_scores: list[FloatArray] = []
    random_scores: list[FloatArray] = []
    n_replays = 2 * len(run.games)
    try:
        with (
            _start(setting) as entry,
            tqdm(total=n_replays, desc="Curve", unit="game", disable=None) as progress,
        ):
            for seed, (mask, game) in enumerate(run.games.items()):
                at_random = choose_at_random(reference, mask, setting.rules, seed)
                for chosen, scores in ((game.chosen, entry_scores), (at_random, random_scores)):
                    entry.restart()
                    scores.append(replay(entry, reference, mask, chosen, setting.rules))
                    progress.update()
    except EntryError as fault:
        return f"replaying the games without select_questions, {fault}"
    return Curves(np.array(entry_scores), np.array(random_scores))


def _facts(
    setting: Setting, reference: Reference, run: EntryRun, seconds: float
) -> list[tuple[str, str]]:
    n_targets = sum(int(targets.sum()) for targets in reference.targets.values())
    limits = setting.limits
    memory = f"{limits.memory / 2**30:g} GiB of memory"
    if not run.memory_limited:
        memory += " (not enforced: this system cannot)"
    facts = [
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
    return facts


def describe_rules(rules: Rules) -> str:
    """Return how the rules are read, in words."""
    asked = "targets may be asked" if rules.targets_queryable else "targets may not be asked"
    return f"{asked}, unobserved = {rules.unobserved}"


def _masks(run: EntryRun) -> str:
    n = len(run.games)
    return f"mean of {n} masks" if n > 1 else "one mask"


def _deviation(values: FloatArray) -> float:
    return float(values.std(ddof=1))
