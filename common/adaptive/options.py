"""Flags that scripts of task 4 share: the students examined, the rules, and the limits."""

import argparse
from pathlib import Path

from common import cli, io, layout
from common.adaptive.entry_process import Limits
from common.adaptive.game import Rules
from common.evaluation.record import LOCAL


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
