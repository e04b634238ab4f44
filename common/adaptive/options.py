"""The flags of every script that plays an entry: how to read the rules, and the limits."""

import argparse
import re

from common.adaptive.entry_process import Limits
from common.adaptive.game import Rules


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


def rules(options: argparse.Namespace) -> Rules:
    """Return the rules that the flags name."""
    return Rules(options.targets_queryable, options.unobserved)


def limits(options: argparse.Namespace) -> Limits:
    """Return the limits that the flags name."""
    return Limits(options.time_limit, int(options.memory_limit * 2**30))


def explain_fault(fault: Exception, rules: Rules) -> str:
    """Describe an entry's fault, and name the flag that it may need.

    Parameters
    ----------
    fault
        What the game raised.
    rules
        How the rules are read.
    """
    # Entries that take 0 for unobserved use what they find as an index or a count.
    if rules.unobserved == -1 and re.search(
        r"raised IndexError|raised .*\b(out of (bounds|range)|negative)\b", str(fault)
    ):
        return f"{fault}; an entry written for 0 as unobserved needs --unobserved 0"
    return str(fault)
