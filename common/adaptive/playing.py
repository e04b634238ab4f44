"""Play the game of task 4 with an entry, a fresh process for each mask: scored, dry, replayed."""

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from common import cli, io, layout, made, schema
from common.adaptive import options as adaptive_options
from common.adaptive.entry_process import EntryProcess, Limits, read_entry_file
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
from common.adaptive.report import Curves
from common.adaptive.training import TRAINED_STUDENTS, TrainingPaths, count_questions
from common.answers import read_answers
from common.errors import InputError

import numpy as np
from tqdm import tqdm

# Name that the training file has in the entry's folder, as in the challenge.
GIVEN_TRAIN = layout.TRAIN_TASK_3_4
# The dry run plays with this many students, the first ones of the training file.
N_DRY_RUN_STUDENTS = 30


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


def read_students(setting: Setting | adaptive_options.Examined) -> Reference:
    """Read the students to be examined, and check that the entry is not trained on them.

    Raises
    ------
    InputError
        If the file is wrong, or the training file given to the entry holds one of its students.
    """
    made.require_current([setting.reference, *([setting.train] if setting.train else [])])
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
    students, n_answers = np.unique(answers["UserId"], return_counts=True)
    # A fifth of the answers become targets; the others must be enough for the rounds.
    enough = students[n_answers >= 2 * N_ROUNDS]
    if not len(enough):
        raise InputError(
            f"{paths.train}: no student has {2 * N_ROUNDS} answers, expected some for the dry run"
        )
    answers = answers[answers["UserId"].isin(enough[:N_DRY_RUN_STUDENTS])]
    answers = answers.sort_values("UserId", kind="stable")
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


def describe_rules(rules: Rules) -> str:
    """Return how the rules are read, in words."""
    asked = "targets may be asked" if rules.targets_queryable else "targets may not be asked"
    return f"{asked}, unobserved = {rules.unobserved}"
