"""Read the record of all scores, to which every evaluation appends a line."""

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
from common.tasks import CROSS_VALIDATION, LOCAL, OWN, TASKS

PHASES = (LOCAL, CROSS_VALIDATION, *layout.PHASES, OWN)
# A line of the record with a number of this size or more is invalid: the kit never writes such a
# number, and computations with it could overflow. JSON itself has no limit.
_MAX_NUMBER = 1e12


def read_results(path: Path) -> list[Result]:
    """Read the record in the order of the file; say on stderr how many lines are invalid."""
    results = []
    n_invalid = 0
    # `splitlines` would also split at other characters, which a name may hold.
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            fields_of_line = json.loads(line)
            if "options" not in fields_of_line:
                fields_of_line = _convert_former_line(fields_of_line)
            result = Result(**provenance.with_origin(fields_of_line))
            is_valid = _is_valid(result)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            is_valid = False
        if is_valid:
            results.append(result)
        elif line.strip():
            n_invalid += 1
    if n_invalid:
        lines = "line" if n_invalid == 1 else "lines"
        print(f"{cli.show(path)}: ignored {n_invalid} invalid {lines}", file=sys.stderr)
    return results


def _convert_former_line(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line that an earlier version of the kit wrote, with the fields of this version.

    Instead of the fields `script` and `options`, the earlier line has the field `made_by`. This
    field holds the whole command that made the submission, such as "python task_1/my_idea.py
    --local", or an empty text if the command is unknown.
    """
    # Leave out the first word of the command, "python".
    words = shlex.split(line["made_by"])[1:]
    if not words:
        script = ""
        flags: list[str] = []
    elif words[0] == "-m":
        # The command names a module: `python -m tools.blend` runs the script tools/blend.py.
        script = f"{words[1].replace('.', '/')}.py"
        flags = words[2:]
    else:
        script = words[0]
        flags = words[1:]
    fields_of_line = {name: value for name, value in line.items() if name != "made_by"}
    return {**fields_of_line, "script": script, "options": provenance.options_of(flags)}


def _is_valid(result: Result) -> bool:
    """Return whether a line of the record of scores holds only values that the evaluations write.

    The record is a file that anybody may edit.
    """
    # The later checks need values of the right types.
    if not _has_types(result):
        return False
    try:
        datetime.fromisoformat(result.time)
    except ValueError:
        return False
    # `flags_of` returns the options as the words of a command line: each word must be a text. A
    # fingerprint is hexadecimal, and empty if it is unknown.
    fingerprints = (result.data, result.code, result.outcomes)
    return (
        _has_valid_numbers(result)
        and _has_valid_task(result)
        and all(isinstance(word, str) for word in provenance.flags_of(result.options))
        and all(re.fullmatch("[0-9a-f]*", fingerprint) for fingerprint in fingerprints)
    )


def _has_types(result: Result) -> bool:
    """Return whether each value has the type of its field. A bool does not count as a number."""
    # The allowed types of each field. `get_args` returns the types of a union such as `int | None`,
    # and an empty tuple for a plain type such as `int`.
    types = {field.name: get_args(field.type) or (field.type,) for field in fields(result)}
    types["parts"] = (dict,)
    types["options"] = (dict,)
    types["doubts"] = (list,)
    types["learned_from"] = (dict, type(None))
    # JSON may write the float 1.0 as 1, which Python reads as an int.
    types["score"] = (float, int)
    types["seconds"] = (float, int, type(None))
    for name, value in vars(result).items():
        if type(value) not in types[name]:
            return False
    # `parts` holds further figures by name, such as the score on each fold. A figure may be None.
    part_types = (float, int, type(None))
    if not all(type(value) in part_types for value in result.parts.values()):
        return False
    # `learned_from` holds the fingerprint of each source file, or is None if the files are unknown.
    source_fingerprints = (result.learned_from or {}).values()
    texts = [*result.doubts, *source_fingerprints]
    return all(isinstance(text, str) for text in texts)


def _has_valid_numbers(result: Result) -> bool:
    """Return whether all numbers are below `_MAX_NUMBER`, and seed and memory are not negative."""
    values = [*vars(result).values(), *result.parts.values()]
    numbers = [value for value in values if isinstance(value, int | float)]
    are_small = all(abs(number) < _MAX_NUMBER for number in numbers)
    return are_small and (result.seed or 0) >= 0 and (result.memory or 0) >= 0


def _has_valid_task(result: Result) -> bool:
    """Return whether task, phase and score fit together.

    For a related challenge, the task is the name of the challenge's folder, there is no phase, and
    the score may exceed 1.
    """
    if isinstance(result.task, str):
        is_name = re.fullmatch(r"[a-z][a-z0-9_]*", result.task) is not None
        return is_name and result.phase == "" and result.score >= 0
    # Another version of the kit may have recorded a task that this one does not have.
    lowest = TASKS[result.task].lowest_score if result.task in TASKS else 0
    return result.task >= 0 and result.phase in PHASES and lowest <= result.score <= 1
