"""The record of all scores, a line of JSON for each, of which `tools.scoreboard` makes a page."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from common import fingerprints, layout, provenance, run_log
from common.evaluation import outcomes
from common.evaluation.outcomes import Outcomes
from common.provenance import Provenance, show_path

LOCAL = "local"
TASK_TITLES = {
    1: "Task 1: right or wrong",
    2: "Task 2: the option chosen",
    3: "Task 3: question quality",
    4: "Task 4: ten questions for each student",
}


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A score and where it comes from, for its files and the record."""

    # Number of the task, or the name of a related challenge, which has no phase.
    task: int | str
    # By default that of the task.
    title: str = ""
    metric: str
    # From 0 to 1; that of a related challenge is at least 0, a correlation (task 3) at least -1.
    score: float
    # The file or folder scored; the true answers, a file or a folder of such.
    submission: Path
    reference: Path
    phase: str = ""
    # What two scores must share to be compared: how rules were read (task 4), folds, set of labels.
    rules: str = ""
    # Share right of each true value (tasks 1, 2), agreement of each expert (task 3), accuracy with
    # each mask (task 4) or on each fold; of a related challenge its other measures.
    parts: Mapping[str, float] = field(default_factory=dict)
    # How long it took to fit and predict (None: as the submission says), or to ask and predict.
    seconds: float | None = None
    facts: Sequence[tuple[str, str]] = ()
    # Files that the true answers were made from, if the reference itself does not show it.
    rests_on: Sequence[Path] = ()
    # How an entry's weights (task 4) or a cross-validation's submissions were made, and their code.
    training: Provenance | None = None
    code: str = ""
    outcomes: Outcomes | None = None
    # Short name of the metric of a related challenge, "token F1", or of another than the task's.
    metric_name: str = ""

    @cached_property
    def simulated(self) -> bool:
        """Whether the true answers are simulated, or were made from simulated files."""
        return provenance.is_simulated(self.reference, *self.rests_on)


def title_of(task: int | str) -> str:
    """Return the name of a task or of a related challenge, for people."""
    if isinstance(task, str):
        return task.replace("_", " ").capitalize()
    return TASK_TITLES.get(task, f"Task {task}")


def append_result(output_dir: Path, evaluation: Evaluation) -> None:
    """Append a score to the record of a folder, and keep its outcomes beside it."""
    submission, seconds, kept = evaluation.submission, evaluation.seconds, evaluation.outcomes
    origin = evaluation.training or provenance.read(submission)
    by = origin or Provenance(script="", options={}, seconds=0)
    named = submission.resolve().name if submission.is_dir() else show_path(submission)
    path = results_path(output_dir)
    line = {
        # In UTC: "2020-10-31T23:59:00+00:00".
        "time": run_log.now(),
        "task": evaluation.task,
        "phase": evaluation.phase,
        "rules": ", ".join(filter(None, (evaluation.rules, by.split))),
        # A script names its model; the folder or zip of an entry of task 4 does so itself.
        "model": origin.model if origin and evaluation.task != 4 else named,
        "score": evaluation.score,
        "parts": evaluation.parts,
        "seconds": origin.seconds if origin and seconds is None else seconds,
        # What made the submission, and the command that scored it.
        "seed": by.seed,
        "script": by.script,
        "options": by.options,
        "command": provenance.this_command(),
        "submission": show_path(submission),
        "revision": _revision(origin),
        # Scores can be compared only where it is the same.
        "data": fingerprint_of(evaluation.reference),
        "simulated": evaluation.simulated,
        # Of the entry in task 4; only scores of the same one are averaged over seeds.
        "code": evaluation.code or by.code,
        # The largest until it was made, in bytes.
        "memory": by.memory,
        # Name of the file of what was predicted right.
        "outcomes": outcomes.write(path.with_name(layout.OUTCOMES_NAME), kept) if kept else "",
        "metric_name": evaluation.metric_name,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    run_log.append_line(path, line)


def fingerprint_of(reference: Path) -> str:
    """Return the fingerprint of true answers, a file or a folder of files."""
    return fingerprints.digest(reference)[:12]


def results_path(output_dir: Path) -> Path:
    """Return where the record lies: in data/test_output for all in there, else in the folder."""
    folder, place = output_dir.resolve(), layout.TEST_OUTPUT_DIR.relative_to(layout.ROOT)
    kits = [layout.ROOT, *layout.RELATED_DIR.glob("*")]
    is_inside = any(folder.is_relative_to(kit / place) for kit in kits)
    return (layout.TEST_OUTPUT_DIR if is_inside else output_dir) / layout.RESULTS_NAME


def _revision(origin: Provenance | None) -> str | None:
    """Return what git calls the kit, "…-dirty" if changed; None where it knows nothing of it."""
    if not (layout.ROOT / ".git").exists():
        return None
    how: dict[str, Any] = {"cwd": layout.ROOT, "stderr": subprocess.DEVNULL, "timeout": 10}
    try:
        if origin:
            listed = ["git", "ls-files", "--error-unmatch", "--", origin.script]
            subprocess.check_output(listed, **how)
        described = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
        return str(subprocess.check_output(described, encoding="utf-8", **how)).strip()
    except (OSError, subprocess.SubprocessError):
        return None
