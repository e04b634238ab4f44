"""Play the game of task 4 with an entry, a fresh process for each mask, as the flags say."""

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from common import cli, io, layout, made, schema
from common.adaptive import game
from common.adaptive.entry_files import read_trained_students
from common.adaptive.entry_process import EntryProcess, Limits
from common.adaptive.game import N_ROUNDS, EntryError, Game, Reference, Rules
from common.adaptive.training import count_questions
from common.answers import read_answers
from common.errors import InputError
from common.evaluation.record import LOCAL

import numpy as np
from tqdm import tqdm

N_DRY_RUN_STUDENTS = 30
# What an entry is given of the metadata.
_METADATA = (
    layout.QUESTION_METADATA_TASK_3_4, layout.STUDENT_METADATA_TASK_3_4,
    layout.ANSWER_METADATA_TASK_3_4, layout.SUBJECT_METADATA,
)  # fmt: skip
# Entries that take 0 for unobserved use what they find as an index or a count.
_NEEDS_0 = re.compile(r"raised IndexError|raised .*\b(out of (bounds|range)|negative)\b")


class Setting(NamedTuple):
    """What an entry, a folder or zip, is scored on and how; it may be given no training file."""

    submission: Path
    reference: Path
    train: Path | None
    metadata_dir: Path
    rules: Rules = Rules()
    limits: Limits = Limits()


def add_data_flags(p: argparse.ArgumentParser) -> None:
    """Add the flags that name the students examined."""
    phases = (LOCAL, *layout.PHASES)
    told = "public, private: the released students in data/test_data (default local)"
    p.add_argument("--phase", choices=phases, default=LOCAL, help=told)
    cli.add_folder(p, "--input_dir", "data/test_input")
    students = f"students and masks (default {layout.VALID_TASK_4})"
    p.add_argument("--ref_data", metavar="FILE", help=students)


def examined(options: argparse.Namespace) -> tuple[Path, Path | None, Path]:
    """Return the students' file, the training file for entries, if there, and metadata's folder."""
    reference = layout.answers_path(4, options.phase)
    input_dir = options.input_dir or reference.parent
    train = input_dir.parent / layout.TRAIN_DIR.name / layout.TRAIN_TASK_3_4
    if options.phase == LOCAL:
        # Never the full training file: it holds the hidden answers of the local split.
        train = input_dir / layout.TRAIN_TASK_4
    reference = input_dir / (options.ref_data or reference.name)
    given = train if io.is_there(train) else None
    return reference, given, input_dir.parent / layout.METADATA_DIR.name


def add_flags(p: argparse.ArgumentParser) -> None:
    """Add the flags of the rules and of the limits."""
    queryable = "targets may be asked, as in the published scorer (the guide forbids it)"
    p.add_argument("--targets_queryable", action="store_true", help=queryable)
    told = "value for an answer not revealed: -1 as documented (default), "
    told += "0 as in the published evaluator"
    p.add_argument("--unobserved", type=int, choices=(0, -1), default=-1, help=told)
    seconds, gib = Limits().seconds, Limits().memory / 2**30
    time = f"seconds for one mask (default {seconds:g})"
    p.add_argument("--time_limit", type=_positive, default=seconds, help=time)
    memory = f"GiB of address space (default {gib:g}; only Linux limits it)"
    p.add_argument("--memory_limit", type=_positive, default=gib, help=memory)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def rules_and_limits(options: argparse.Namespace) -> tuple[Rules, Limits]:
    """Return the rules and the limits that the flags name."""
    limits = Limits(options.time_limit, int(options.memory_limit * 2**30))
    return Rules(options.targets_queryable, options.unobserved), limits


def read_students(setting: Setting) -> Reference:
    """Read the students to be examined; none may be in the training file, or known to the model."""
    made.require_current([setting.reference, *([setting.train] if setting.train else [])])
    n_questions = count_questions(setting.train, setting.metadata_dir)
    reference = game.read_reference(setting.reference, n_questions)
    if setting.train is not None:
        given = io.read_table(setting.train, [schema.USER_ID])["UserId"].to_numpy()
        reference.require_others(given, f"{setting.train}: holds", "are both of one split?")
    if (trained := read_trained_students(setting.submission)) is not None:
        holder = f"{setting.submission}: its model is trained on"
        hint = "`train_model.py --local` trains for the local split"
        reference.require_others(trained, holder, hint)
    return reference


def _entry_of(setting: Setting) -> EntryProcess:
    """Return an entry whose folder will hold what the challenge gives to every entry."""
    files = {name: setting.metadata_dir / name for name in _METADATA}
    files = {name: path for name, path in files.items() if path.is_file()}
    if setting.train is not None:
        # Whatever it is called here: that of the local split, say.
        files[layout.TRAIN_TASK_3_4] = setting.train
    return EntryProcess(setting.submission, files, setting.limits, setting.reference)


def play_all(
    setting: Setting,
    reference: Reference,
    output_path: Path | None = None,
    with_probability: bool = False,
) -> tuple[dict[str, Game], EntryProcess]:
    """Play with every mask; a fault is an `InputError`, what it printed goes to `output_path`."""
    games, entry = dict[str, Game](), _entry_of(setting)
    n_rounds = N_ROUNDS * len(reference.targets)
    with tqdm(total=n_rounds, desc="Rounds", unit="round", leave=None, disable=None) as progress:
        how = setting.rules, progress.update, with_probability
        for mask in reference.targets:
            try:
                with entry:
                    games[mask] = game.play(entry, reference, mask, *how)
            except EntryError as fault:
                message = f"{setting.submission}: {mask}, {fault}"
                if setting.rules.unobserved == -1 and _NEEDS_0.search(str(fault)):
                    message += "; an entry written for 0 as unobserved needs --unobserved 0"
                if output_path is not None and entry.output:
                    io.write_text(output_path, entry.output)
                    message += f"; what it printed is in {cli.show(output_path)}"
                raise InputError(message) from None
    return games, entry


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
    n_questions = count_questions(train, metadata_dir)
    reference = game.make_reference(str(train), answers, masks, n_questions)
    play_all(Setting(submission, train, train, metadata_dir, rules, limits), reference)


def measure_curves(
    setting: Setting, reference: Reference, games: Mapping[str, Game]
) -> game.FloatArray | str:
    """Replay games for accuracies after 0 to N_ROUNDS questions, own choices and random ones,
    (masks, 2, N_ROUNDS + 1), or say why not: an entry may rely on `select_questions`.
    """
    scores, n_games = [], 2 * len(games)
    progress = tqdm(total=n_games, desc="Curve", unit="game", disable=None)
    try:
        with progress, _entry_of(setting) as entry:
            for seed, (mask, played) in enumerate(games.items()):
                at_random = game.choose_at_random(reference, mask, setting.rules, seed)
                for chosen in (played.chosen, at_random):
                    entry.restart()
                    scores.append(game.replay(entry, reference, mask, chosen, setting.rules))
                    progress.update()
    except EntryError as fault:
        return f"replaying the games without select_questions, {fault}"
    return np.array(scores).reshape(len(games), 2, -1)
