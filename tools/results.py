"""Read the record of all scores, to which every evaluation appends."""

import json
import re
import shlex
import sys
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from common import cli, layout, provenance
from common.evaluation.record import Result
from common.tasks import LOCAL, TASKS

CROSS_VALIDATION = "cross-validation"
PHASES = (LOCAL, CROSS_VALIDATION, *layout.PHASES)
# No number of the record is so large, though JSON may write it.
_MAX_NUMBER = 1e12


def name_of_phase(phase: str) -> str:
    """Return what the answers of a phase are called; nothing where there are no phases."""
    names = {"": "", LOCAL: "local split", CROSS_VALIDATION: CROSS_VALIDATION}
    return names.get(phase, f"{phase} test")


def read_results(path: Path) -> list[Result]:
    """Read the record in the order of the file, and say on stderr how many lines are no results."""
    results, unreadable = [], 0
    # Only line ends: a name may hold other characters at which `splitlines` would cut.
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            found = json.loads(line)
            result = Result(**(found if "options" in found else _of_former_version(found)))
            _require_valid(result)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            unreadable += bool(line.strip())
        else:
            results.append(result)
    if unreadable:
        lines = "line" if unreadable == 1 else "lines"
        print(f"{cli.show(path)}: ignored {unreadable} invalid {lines}", file=sys.stderr)
    return results


def _of_former_version(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line that holds the command that made the submission, instead of its options."""
    _, *words = shlex.split(line["made_by"]) or [""]
    script = words[0] if words else ""
    if script == "-m":
        script, words = f"{words[1].replace('.', '/')}.py", words[1:]
    kept = {name: value for name, value in line.items() if name != "made_by"}
    return {**kept, "script": script, "options": provenance.options_of(words[1:])}


def _require_valid(result: Result) -> None:
    """Raise `ValueError` if a line of the record, which anybody may edit, holds other values."""
    is_valid = (
        _has_types(result)
        and _has_valid_numbers(result)
        and _has_valid_task(result)
        and all(isinstance(word, str) for word in provenance.flags_of(result.options))
        and all(
            re.fullmatch("[0-9a-f]*", digest)
            for digest in (result.data, result.code, result.outcomes)
        )
    )
    if not is_valid:
        raise ValueError("not a line of the record")
    datetime.fromisoformat(result.time)


def _has_types(result: Result) -> bool:
    """Return whether every value has exactly one of its types: a bool is no number here."""
    types = {field.name: get_args(field.type) or (field.type,) for field in fields(result)}
    types["parts"] = (dict,)
    types["options"] = (dict,)
    # JSON may write a float without decimals.
    types["score"] = (float, int)
    types["seconds"] = (float, int, type(None))
    part_types = (float, int, type(None))
    return all(type(value) in types[name] for name, value in vars(result).items()) and all(
        type(value) in part_types for value in result.parts.values()
    )


def _has_valid_numbers(result: Result) -> bool:
    """Return whether no number is absurdly large, and none is negative that cannot be."""
    values = [*vars(result).values(), *result.parts.values()]
    numbers = [value for value in values if isinstance(value, int | float)]
    is_small = all(abs(number) < _MAX_NUMBER for number in numbers)
    return is_small and (result.seed or 0) >= 0 and (result.memory or 0) >= 0


def _has_valid_task(result: Result) -> bool:
    """Return whether task, phase and score fit together.

    A related challenge has the name of a folder, no phase, and a score that may exceed 1.
    """
    if isinstance(result.task, str):
        is_name = re.fullmatch(r"[a-z][a-z0-9_]*", result.task) is not None
        return is_name and result.phase == "" and result.score >= 0
    # Other tasks than those of this version may have been recorded.
    lowest = TASKS[result.task].lowest_score if result.task in TASKS else 0
    return result.task >= 0 and result.phase in PHASES and lowest <= result.score <= 1
