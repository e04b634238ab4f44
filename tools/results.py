"""Read the record of all scores, to which every evaluation appends."""

import json
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from common import cli, layout, made
from common.tasks import LOCAL, TASKS

CROSS_VALIDATION = "cross-validation"
PHASES = (LOCAL, CROSS_VALIDATION, *layout.PHASES)
# Options that do not change what a model computes; nor do folders and files.
_PLUMBING = ("local", "seed", "device", "checkpoint")
# No number of the record is so large, though JSON may write it.
_MAX_NUMBER = 1e12


@dataclass(frozen=True)
class Result:
    """A line of the record, as `record.append_result` writes it; empty or None: not known."""

    time: str
    task: int | str
    phase: str
    rules: str
    model: str
    score: float
    parts: Mapping[str, float | None]
    seconds: float | None
    # None: the script's default.
    seed: int | None
    script: str
    options: dict[str, Any]
    command: str
    submission: str
    revision: str | None
    data: str
    simulated: bool
    # Lines of former versions lack what follows.
    code: str = ""
    memory: int | None = None
    outcomes: str = ""
    metric_name: str = ""

    @property
    def name(self) -> str:
        """The model's name and the options that change what it computes."""
        kept = made.settings(self.options)
        words = made.flags_of({name: kept[name] for name in kept if name not in _PLUMBING})
        # What a blend is made of goes by its name, wherever the file lies.
        short = [Path(word).stem if word.endswith(".parquet") else word for word in words]
        return " ".join([self.model, *short])


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
    return {**kept, "script": script, "options": made.options_of(words[1:])}


def _require_valid(result: Result) -> None:
    """Raise `ValueError` if a line of the record, which anybody may edit, holds other values."""
    values, parts = vars(result), [*result.parts.values()]
    kinds = {of.name: get_args(of.type) or (of.type,) for of in fields(result)}
    kinds |= {"parts": (dict,), "options": (dict,), "score": (int, float)}
    kinds["seconds"] += (int,)
    numbers = [value for value in [*values.values(), *parts] if isinstance(value, int | float)]
    is_task = result.phase in PHASES and result.score <= 1
    is_challenge = result.phase == "" and re.fullmatch(r"[a-z][a-z0-9_]*", f"{result.task}")
    lowest_score = TASKS[result.task].lowest_score if result.task in TASKS else 0
    is_valid = (
        # Exactly, as to Python a truth value is a number too.
        all(type(value) in kinds[name] for name, value in values.items())
        and all(type(value) in (int, float, type(None)) for value in parts)
        and all(isinstance(text, str) for text in made.flags_of(result.options))
        and all(abs(number) < _MAX_NUMBER for number in numbers)
        and (is_challenge if isinstance(result.task, str) else is_task and result.task >= 0)
        and min(result.seed or 0, result.memory or 0) >= 0
        and result.score >= lowest_score
        and all(re.fullmatch("[0-9a-f]*", values[name]) for name in ("data", "code", "outcomes"))
    )
    if not is_valid:
        raise ValueError("not a line of the record")
    datetime.fromisoformat(result.time)
