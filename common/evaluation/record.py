"""The record of all scores, a line of JSON for each, of which `tools.scoreboard` makes a page."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from common import cli, layout, made, run_log
from common.evaluation import outcomes
from common.evaluation.outcomes import Outcomes
from common.made import Made, show_path

LOCAL = "local"
CROSS_VALIDATION = "cross-validation"
PHASES = (LOCAL, CROSS_VALIDATION, *layout.PHASES)
TASK_TITLES = {
    1: "Task 1: right or wrong",
    2: "Task 2: the option chosen",
    3: "Task 3: question quality",
    4: "Task 4: ten questions for each student",
}
# Options that do not change what a model computes; nor do folders and files.
_PLUMBING = ("local", "seed", "device", "checkpoint")
# No number of the record is so large, though JSON may write it.
_MAX_NUMBER = 1e12


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A score and where it comes from, for its files and the record; fields as in `Result`."""

    # As in `Result`; the title is by default that of the task.
    task: int | str
    title: str = ""
    metric: str
    score: float
    # The file or folder scored; the true answers, a file or a folder of such.
    submission: Path
    reference: Path
    phase: str = ""
    rules: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)
    seconds: float | None = None
    facts: Sequence[tuple[str, str]] = ()
    # Files that the true answers were made from, if the reference itself does not show it.
    rests_on: Sequence[Path] = ()
    # How an entry's weights (task 4) or a cross-validation's submissions were made, and their code.
    training: Made | None = None
    code: str = ""
    outcomes: Outcomes | None = None
    metric_name: str = ""

    @cached_property
    def simulated(self) -> bool:
        """Whether the true answers are simulated, or were made from simulated files."""
        return made.is_simulated(self.reference, *self.rests_on)


@dataclass(frozen=True)
class Result:
    """A line of the record. What is not known is empty or None."""

    # When it was scored, in UTC: "2020-10-31T23:59:00+00:00".
    time: str
    # Number of the task, or the name of a related challenge, which has no phase.
    task: int | str
    phase: str
    # What two scores must share to be compared: how rules were read (task 4), folds, set of labels.
    rules: str
    # Name of the script or package that made the submission, or of the file.
    model: str
    # From 0 to 1; that of a related challenge is at least 0, a correlation (task 3) at least -1.
    score: float
    # Share right of each true value (tasks 1, 2), agreement of each expert (task 3), accuracy with
    # each mask (task 4) or on each fold; of a related challenge its other measures.
    parts: Mapping[str, float | None]
    # How long it took to fit and predict, or to ask and predict (task 4).
    seconds: float | None
    # None: the script's default.
    seed: int | None
    # What made the submission, as in `Made`, and the command that scored it.
    script: str
    options: dict[str, Any]
    command: str
    submission: str
    # Git revision of the kit, with "-dirty" if changed; none for a script outside the repository.
    revision: str | None
    # Fingerprint of the true answers: scores can be compared only where it is the same.
    data: str
    simulated: bool
    # As in `Made` (task 4: of the entry); only scores of the same one are averaged over seeds.
    code: str = ""
    # Largest memory that the script took to fit and predict, in bytes.
    memory: int | None = None
    # Name of the file of what was predicted right (`common.evaluation.outcomes`).
    outcomes: str = ""
    # Short name of the metric of a related challenge, "token F1", or of another than the task's.
    metric_name: str = ""

    @property
    def name(self) -> str:
        """The model's name and the options that change what it computes."""
        kept = made.settings(self.options)
        words = made.flags_of({name: kept[name] for name in kept if name not in _PLUMBING})
        # What a blend is made of goes by its name, wherever the file lies.
        short = [Path(word).stem if word.endswith(".parquet") else word for word in words]
        return " ".join([self.model, *short])


def title_of(task: int | str) -> str:
    """Return the name of a task or of a related challenge, for people."""
    if isinstance(task, str):
        return task.replace("_", " ").capitalize()
    return TASK_TITLES.get(task, f"Task {task}")


def name_of_phase(phase: str) -> str:
    """Return what the answers of a phase are called; nothing where there are no phases."""
    names = {"": "", LOCAL: "local split", CROSS_VALIDATION: CROSS_VALIDATION}
    return names.get(phase, f"{phase} test")


def append_result(output_dir: Path, evaluation: Evaluation) -> None:
    """Append a score to the record of a folder, and keep its outcomes beside it."""
    submission, seconds, kept = evaluation.submission, evaluation.seconds, evaluation.outcomes
    origin = evaluation.training or made.read(submission)
    by = origin or Made(script="", options={}, seconds=0)
    named = submission.resolve().name if submission.is_dir() else show_path(submission)
    path = results_path(output_dir)
    result = Result(
        time=run_log.now(),
        task=evaluation.task,
        phase=evaluation.phase,
        rules=", ".join(filter(None, (evaluation.rules, by.split))),
        # A script names its model; the folder or zip of an entry of task 4 does so itself.
        model=origin.model if origin and evaluation.task != 4 else named,
        score=evaluation.score,
        parts=evaluation.parts,
        seconds=origin.seconds if origin and seconds is None else seconds,
        seed=by.seed,
        script=by.script,
        options=by.options,
        command=made.this_command(),
        submission=show_path(submission),
        revision=_revision(origin),
        data=fingerprint_of(evaluation.reference),
        simulated=evaluation.simulated,
        code=evaluation.code or by.code,
        memory=by.memory,
        outcomes=outcomes.write(path.with_name(layout.OUTCOMES_NAME), kept) if kept else "",
        metric_name=evaluation.metric_name,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    run_log.append_line(path, asdict(result))


def fingerprint_of(reference: Path) -> str:
    """Return the fingerprint of true answers, a file or a folder of files, as in `Result.data`."""
    return made.digest(reference)[:12]


def results_path(output_dir: Path) -> Path:
    """Return where the record lies: in data/test_output for all in there, else in the folder."""
    folder = output_dir.resolve()
    is_inside = folder.is_relative_to(layout.TEST_OUTPUT_DIR)
    if folder.is_relative_to(layout.RELATED_DIR):
        place = (layout.DATA_DIR.name, layout.TEST_OUTPUT_DIR.name)
        is_inside = folder.relative_to(layout.RELATED_DIR).parts[1:3] == place
    return (layout.TEST_OUTPUT_DIR if is_inside else output_dir) / layout.RESULTS_NAME


def read_results(path: Path) -> list[Result]:
    """Read the record in the order of the file, and say on stderr how many lines are no results."""
    results, unreadable = [], 0
    # Only line ends: a name may hold other characters at which `splitlines` would cut.
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            found = json.loads(line)
            result = Result(**(found if "options" in found else _of_former_version(found)))
            _require_valid(result)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
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
    is_valid = (
        # Exactly, as to Python a truth value is a number too.
        all(type(value) in kinds[name] for name, value in values.items())
        and all(type(value) in (int, float, type(None)) for value in parts)
        and all(isinstance(text, str) for text in made.flags_of(result.options))
        and all(abs(number) < _MAX_NUMBER for number in numbers)
        and (is_challenge if isinstance(result.task, str) else is_task and result.task >= 0)
        and min(result.seed or 0, result.memory or 0) >= 0
        and result.score >= (-1 if result.task == 3 else 0)
        and all(re.fullmatch("[0-9a-f]*", values[name]) for name in ("data", "code", "outcomes"))
    )
    if not is_valid:
        raise ValueError("not a line of the record")
    datetime.fromisoformat(result.time)


def _revision(origin: Made | None) -> str | None:
    """Return what git calls the state of the kit; None where it knows nothing of it."""
    if not (layout.ROOT / ".git").exists():
        return None
    own = [["ls-files", "--", origin.script]] if origin else []
    for words in (*own, ["describe", "--always", "--dirty", "--abbrev=12"]):
        try:
            done = subprocess.run(
                ["git", "-C", str(layout.ROOT), *words], capture_output=True, text=True, timeout=10
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        if not done.stdout.strip():
            return None
    return done.stdout.strip()
