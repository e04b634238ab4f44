"""What has been scored already, so that nothing is scored twice; what failed is tried again."""

from pathlib import Path
from typing import Any

from common import io, run_log

import submission_run
from platform_rules import Task

RESULTS_NAME = "leaderboard_results.jsonl"
DETAILS_DIR = "details"


class Records:
    """The results of earlier runs with a bundle, and those of this one as they come.

    A run that is stopped goes on where it was; a line of JSON for each result, beside the pages.

    Attributes
    ----------
    n_reused
        How many results were found.
    """

    def __init__(self, folder: Path, bundle: str) -> None:
        self.n_reused = 0
        self._folder, self._bundle = folder, bundle
        self._known: dict[tuple[str, int], dict[str, Any]] = {}
        path = folder / RESULTS_NAME
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        for line in text.splitlines():
            try:
                record = io.parse_json(line)
            except ValueError:
                continue
            if _is_record(record) and record["bundle"] == bundle:
                self._known[record["submission"], record["task"]] = record

    def find(self, submission: str, task: Task) -> dict[str, Any] | None:
        """Return the scores of a submission, by its SHA-256, unless its page is gone."""
        record = self._known.get((submission, task.index))
        # What failed may have done so because the machine was busy.
        if record is None or record["fault"]:
            return None
        if record["details"] and not (self._folder / record["details"]).is_file():
            return None
        self.n_reused += 1
        return record

    def add(
        self, submission: str, task: Task, result: submission_run.Result, shows_details: bool
    ) -> dict[str, Any]:
        """Write a result, after its page."""
        details = ""
        if result.details and shows_details:
            details = f"{DETAILS_DIR}/{submission[:16]}_{self._bundle[:8]}_{task.index}.html"
            io.write_text(self._folder / details, result.details)
        record = {"bundle": self._bundle, "submission": submission, "task": task.index,
                  "scores": result.scores, "fault": result.fault, "details": details}  # fmt: skip
        self._folder.mkdir(parents=True, exist_ok=True)
        run_log.append_line(self._folder / RESULTS_NAME, record)
        self._known[submission, task.index] = record
        return record


def _is_record(record: object) -> bool:
    """Return whether a line of JSON is a whole record, which the file of a stopped run may lack."""
    texts = ("bundle", "submission", "fault", "details")
    return (
        isinstance(record, dict)
        and all(isinstance(record.get(key), str) for key in texts)
        and isinstance(record.get("task"), int)
        and isinstance(record.get("scores"), dict)
        and all(isinstance(value, float) for value in record["scores"].values())
        and bool(record["scores"]) != bool(record["fault"])
    )
