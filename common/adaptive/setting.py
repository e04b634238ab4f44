"""The files, rules and limits with which an entry of task 4 is played, and the flags for them."""

import argparse
from dataclasses import dataclass, field, replace
from pathlib import Path

from common import cli, layout, provenance, reading, schema
from common.adaptive import game
from common.adaptive.game import Reference, Rules
from common.adaptive.training import count_questions
from common.adaptive.weights_origin import WeightsOrigin
from common.sandbox import Limits
from common.tasks import LOCAL, TASK_4


@dataclass(frozen=True)
class Setting:
    """An entry, the students with whom it is played, and the rules and limits of the game."""

    # The entry, a folder or a zip.
    submission: Path
    # The file with all answers of the examined students. Its column IsTarget is a mask: 1 for the
    # answers that the entry has to predict, 0 for the others. In place of IsTarget, there may be
    # several masks, IsTarget_0, IsTarget_1 and so on.
    reference: Path
    # The training file that the entry finds in its folder; None if it gets none.
    train: Path | None
    metadata_dir: Path
    rules: Rules = field(default_factory=Rules)
    limits: Limits = field(default_factory=Limits)


def add_data_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name the files with the students examined: phase, folder and file."""
    parser.add_argument(
        "--phase",
        choices=(LOCAL, *layout.PHASES),
        default=LOCAL,
        help="public, private: the released students in data/test_data (default local)",
    )
    cli.add_optional_folder(parser, "--input_dir", "data/test_input")
    parser.add_argument(
        "--ref_data",
        metavar="FILE",
        help=f"students and masks, in --input_dir or in the current folder (default "
        f"{TASK_4.local_answers}); a file of another name counts as a test of your own",
    )


def add_game_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the rules of the game, and of the limits of the entry's time and memory."""
    parser.add_argument(
        "--targets_queryable",
        action="store_true",
        help="targets may be asked, as in the published scorer (the guide forbids it)",
    )
    parser.add_argument(
        "--unobserved",
        type=int,
        choices=(0, -1),
        default=-1,
        help="value for an answer not revealed: -1 as documented (default), "
        "0 as in the published evaluator",
    )
    default = Limits()
    parser.add_argument(
        "--time_limit",
        type=_parse_positive,
        default=default.seconds,
        help=f"seconds for one mask (default {default.seconds:g})",
    )
    gib = default.memory / 2**30
    parser.add_argument(
        "--memory_limit",
        type=_parse_positive,
        default=gib,
        help=f"GiB of address space (default {gib:g}; only Linux limits it)",
    )


def _parse_positive(text: str) -> float:
    """Parse a finite number above 0, for argparse."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def read_data_flags(options: argparse.Namespace, submission: Path) -> Setting:
    """Return a `Setting` with the files for an entry, and with the default rules and limits.

    The flags are those of `add_data_flags`. They name the file of the students to be examined. The
    folder --input_dir, or the default folder of the phase, determines where the training file and
    the metadata are looked for. `submission` is the entry, a folder or a zip.
    """
    reference = TASK_4.answers_path(options.phase)
    input_dir = options.input_dir or reference.parent
    data_dir = input_dir.parent
    if options.phase == LOCAL:
        # Do not give the entry the full training file: it holds the local split's hidden answers.
        train = input_dir / TASK_4.local_train
    else:
        train = data_dir / layout.TRAIN_DIR.name / TASK_4.data.train
    return Setting(
        submission=submission,
        reference=cli.input_file(input_dir, options.ref_data or reference.name),
        train=train if reading.is_there(train) else None,
        metadata_dir=data_dir / layout.METADATA_DIR.name,
    )


def read_game_flags(options: argparse.Namespace, setting: Setting) -> Setting:
    """Return `setting` with the rules and limits that the flags of `add_game_flags` give."""
    return replace(setting, rules=read_rules(options), limits=read_limits(options))


def read_rules(options: argparse.Namespace) -> Rules:
    """Return the rules that the flags name."""
    return Rules(targets_queryable=options.targets_queryable, unobserved=options.unobserved)


def read_limits(options: argparse.Namespace) -> Limits:
    """Return the limits that the flags name."""
    return Limits(seconds=options.time_limit, memory=int(options.memory_limit * 2**30))


def read_students(setting: Setting, origin: WeightsOrigin) -> Reference:
    """Read the students to be examined.

    `origin` says how the entry's weights were made.

    Raises `InputError` if the entry knows a student to be examined: if the student is in the
    training file that the entry gets, or among the students that its weights are trained on. Also
    raises `InputError` if one of the files has changed since it was made.
    """
    provenance.require_current([setting.reference])
    if setting.train is not None:
        provenance.require_current([setting.train])
    n_questions = count_questions(setting.train, setting.metadata_dir)
    reference = game.read_reference(setting.reference, n_questions)
    if setting.train is not None:
        train_students = reading.read_table(setting.train, [schema.USER_ID])["UserId"].to_numpy()
        reference.require_others(
            train_students,
            beginning=f"{setting.train}: holds",
            hint="do both files belong to one split?",
        )
    if origin.students is not None:
        reference.require_others(
            origin.students,
            beginning=f"{setting.submission}: its model is trained on",
            hint="`train_model.py --local` trains for the local split",
        )
    return reference
