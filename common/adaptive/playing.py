"""Play the game of task 4 with an entry, a fresh process for each mask: scored, dry, replayed.

Also the flags that say so: which students are examined, by which rules, within which limits.
"""

import argparse
import re
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from common import cli, io, layout, made, schema
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
from common.adaptive.training import count_questions
from common.adaptive.weights import TRAINED_STUDENTS
from common.answers import read_answers
from common.errors import InputError
from common.evaluation.record import LOCAL

import numpy as np

# The dry run plays with this many students, the first ones of the training file.
N_DRY_RUN_STUDENTS = 30


@dataclass(frozen=True)
class Setting:
    """What an entry is scored on and how.

    The entry is a folder or zip; it is given the training file, None if there is none, and the
    metadata that their folder holds. It is asked for probabilities if there is a file for them.
    """

    submission: Path
    reference: Path
    train: Path | None
    metadata_dir: Path
    rules: Rules = field(default_factory=Rules)
    limits: Limits = field(default_factory=Limits)
    probabilities: Path | None = None


@dataclass
class EntryRun:
    """What an entry did: its games by mask, the end of what it printed.

    Also which arguments each method changed, whether the system limited its memory, and what kept
    it from files and processes, in words.
    """

    games: dict[str, Game] = field(default_factory=dict)
    output: str = ""
    changed: dict[str, set[str]] = field(default_factory=dict)
    memory_limited: bool = False
    isolation: str = ""

    @property
    def accuracies(self) -> FloatArray:
        """Accuracy with each mask."""
        return np.array([game.accuracy for game in self.games.values()])


@dataclass(frozen=True)
class Curves:
    """Accuracy after 0 to N_ROUNDS questions, shape (masks, N_ROUNDS + 1), by who chose them."""

    entry: FloatArray
    random: FloatArray


# ---- Flags --------------------------------------------------------------------------------------


def add_data_flags(p: argparse.ArgumentParser) -> None:
    """Add the flags that name the students examined."""
    p.add_argument(
        "--phase",
        choices=(LOCAL, *layout.PHASES),
        default=LOCAL,
        help="public, private: the released students in data/test_data (default local)",
    )
    cli.add_folder(p, "--input_dir", "data/test_input")
    p.add_argument(
        "--ref_data", metavar="FILE", help=f"students and masks (default {layout.VALID_TASK_4})"
    )


def examined(options: argparse.Namespace) -> tuple[Path, Path | None, Path]:
    """Return the file of the students that the flags name, the training file that an entry is
    given, None if it does not exist, and the folder that may hold the metadata.
    """
    reference = layout.answers_path(4, options.phase)
    input_dir = options.input_dir or reference.parent
    train = input_dir.parent / layout.TRAIN_DIR.name / layout.TRAIN_TASK_3_4
    if options.phase == LOCAL:
        # Never the full training file: it holds the hidden answers of the local split.
        train = input_dir / layout.TRAIN_TASK_4
    return (
        input_dir / (options.ref_data or reference.name),
        train if io.is_there(train) else None,
        input_dir.parent / layout.METADATA_DIR.name,
    )


def add_flags(p: argparse.ArgumentParser) -> None:
    """Add the flags of the rules and of the limits."""
    p.add_argument(
        "--targets_queryable",
        action="store_true",
        help="targets may be asked, as in the published scorer (the guide forbids it)",
    )
    p.add_argument(
        "--unobserved",
        type=int,
        choices=(0, -1),
        default=-1,
        help="value for an answer not revealed: -1 as documented (default), "
        "0 as in the published evaluator",
    )
    limits = Limits()
    p.add_argument(
        "--time_limit",
        type=_positive,
        default=limits.seconds,
        help=f"seconds for one mask (default {limits.seconds:g})",
    )
    p.add_argument(
        "--memory_limit",
        type=_positive,
        default=limits.memory / 2**30,
        help=f"GiB of address space (default {limits.memory / 2**30:g}; only Linux limits it)",
    )


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def rules_and_limits(options: argparse.Namespace) -> tuple[Rules, Limits]:
    """Return the rules and the limits that the flags name."""
    return (
        Rules(options.targets_queryable, options.unobserved),
        Limits(options.time_limit, int(options.memory_limit * 2**30)),
    )


# ---- Games --------------------------------------------------------------------------------------


def read_students(setting: Setting) -> Reference:
    """Read the students to be examined; `InputError` if the entry knows their answers.

    They may neither be in the training file that it is given nor, by its own record, among the
    students that its model was trained on.
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
    if (data := read_entry_file(setting.submission, TRAINED_STUDENTS)) is not None:
        _require_others(setting.submission, data, reference)
    return reference


def _require_others(submission: Path, data: bytes, reference: Reference) -> None:
    """Refuse a package whose record of the students that it was trained on names one of these."""
    try:
        trained = np.lib.format.read_array(BytesIO(data), allow_pickle=False)
    except Exception:  # NumPy's reader raises whatever its parts do.
        trained = np.empty(0)
    # Anything else, such as UserIds as text, would equal no UserId.
    if trained.dtype.kind not in "iu" or trained.ndim != 1 or not len(trained):
        raise InputError(
            f"{submission}: {TRAINED_STUDENTS} is damaged, expected an array of UserIds"
        )
    known = np.intersect1d(reference.student, trained)
    if len(known):
        raise InputError(
            f"{submission}: its model is trained on UserId {known[0]} of {reference.name} "
            f"({len(known)} such students), expected other students: "
            "`train_model.py --local` trains for the local split"
        )


def _start(setting: Setting) -> EntryProcess:
    """Start an entry in a folder that holds what the challenge gives to every entry."""
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
    if setting.train is not None:
        # Whatever it is called here: that of the local split, say.
        files[layout.TRAIN_TASK_3_4] = setting.train
    return EntryProcess(setting.submission, files, setting.limits, setting.reference)


def play_all(setting: Setting, reference: Reference, output_path: Path | None = None) -> EntryRun:
    """Play the ten rounds with every mask, a fresh process for each.

    If the entry fails or breaks a rule, there is no score but an `InputError`; what it printed goes
    to `output_path`.
    """
    from tqdm import tqdm

    run = EntryRun()
    n_rounds, asks_probability = N_ROUNDS * len(reference.targets), bool(setting.probabilities)
    with tqdm(total=n_rounds, desc="Rounds", unit="round", leave=None, disable=None) as progress:
        for mask in reference.targets:
            process = _start(setting)
            try:
                with process as entry:
                    run.games[mask] = play(
                        entry, reference, mask, setting.rules, progress.update, asks_probability
                    )
            except EntryError as fault:
                message = f"{setting.submission}: {mask}, {_explain(fault, setting.rules)}"
                if process.output and output_path is not None:
                    io.write_text(output_path, process.output)
                    message += f"; what it printed is in {cli.show(output_path)}"
                raise InputError(message) from None
            run.output += process.output
            run.memory_limited, run.isolation = process.memory_limited, process.isolation
            for method, names in process.changed.items():
                run.changed.setdefault(method, set()).update(names)
    return run


def _explain(fault: EntryError, rules: Rules) -> str:
    """Describe an entry's fault, and name the flag that it may need."""
    # Entries that take 0 for unobserved use what they find as an index or a count.
    if rules.unobserved == -1 and re.search(
        r"raised IndexError|raised .*\b(out of (bounds|range)|negative)\b", str(fault)
    ):
        return f"{fault}; an entry written for 0 as unobserved needs --unobserved 0"
    return str(fault)


def dry_run(
    submission: Path, train: Path, metadata_dir: Path, rules: Rules, limits: Limits
) -> None:
    """Play the ten rounds with a zip or folder and some training students, without a score."""
    answers = read_answers(train)
    n_answers = answers["UserId"].value_counts(sort=False).sort_index()
    # A fifth of the answers become targets; the others must be enough for the rounds.
    enough = n_answers.index[n_answers >= 2 * N_ROUNDS]
    if not len(enough):
        raise InputError(
            f"{train}: no student has {2 * N_ROUNDS} answers, expected some for the dry run"
        )
    answers = answers[answers["UserId"].isin(enough[:N_DRY_RUN_STUDENTS])]
    answers = answers.sort_values("UserId", kind="stable")
    masks = {"dry run": np.arange(len(answers)) % 5 == 0}
    reference = make_reference(str(train), answers, masks, count_questions(train, metadata_dir))
    play_all(Setting(submission, train, train, metadata_dir, rules, limits), reference)


def measure_curves(setting: Setting, reference: Reference, run: EntryRun) -> Curves | str:
    """Score the entry's predictions after every question, for its own and for random choices.

    This replays the games separately from the scored ones, so that the additional calls of
    `predict` cannot affect the score. Returns the reason why there are no curves, if there are
    none: an entry may rely on `select_questions` being called.
    """
    from tqdm import tqdm

    scores: list[FloatArray] = []
    try:
        with (
            _start(setting) as entry,
            tqdm(total=2 * len(run.games), desc="Curve", unit="game", disable=None) as progress,
        ):
            for seed, (mask, game) in enumerate(run.games.items()):
                at_random = choose_at_random(reference, mask, setting.rules, seed)
                for chosen in (game.chosen, at_random):
                    entry.restart()
                    scores.append(replay(entry, reference, mask, chosen, setting.rules))
                    progress.update()
    except EntryError as fault:
        return f"replaying the games without select_questions, {fault}"
    return Curves(np.array(scores[::2]), np.array(scores[1::2]))
