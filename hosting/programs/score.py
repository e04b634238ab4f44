"""The scoring program of the platform: score one submission of one task and phase.

    python3 /app/program/score.py /app/input /app/output

Writes scores.json and detailed_results.html. A submission that is incomplete or wrong gets a page
that says why, one line on stderr and exit code 2, never a score. The score needs NumPy and pandas
alone; where the page lacks a library, it has no charts and tables.

On a server the page of the private phase tells no score, and the leaderboard has no column for what
scores.json holds: the submission is only checked, or its score is for the organiser alone.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from common import layout, metrics, pages, reading, submission, writing
from common.adaptive import games_page
from common.adaptive.setting import Setting
from common.errors import InputError
from common.evaluation import pairs, ranking, score_files
from common.evaluation.record import Evaluation
from common.metrics import Score
from common.tasks import TASKS, Form, Task

import facts_file
import played

SCORES_NAME, PAGE_NAME = "scores.json", "detailed_results.html"
# Few, so that equal scores mostly have equal errors: then the platform ranks them by time.
_ERROR_DIGITS = 4
_RECEIVED = (
    "Received, and complete. The scores of this phase are published by the organisers after its "
    "end."
)


@dataclass(frozen=True)
class Judged:
    """The score of a submission, and how to explain it."""

    score: Score
    # Template of the page.
    template: str
    # Returns the evaluation and what the page shows; may need libraries that are missing.
    explain: Callable[[], tuple[Evaluation, dict[str, Any]]]
    # Further columns of the leaderboard, by key.
    columns: Mapping[str, float] = field(default_factory=dict)

    @property
    def all_columns(self) -> dict[str, float]:
        """What scores.json holds, by the leaderboard's columns."""
        columns = {"score": self.score.value}
        if self.score.error is not None:
            columns["standard_error"] = round(self.score.error, _ERROR_DIGITS)
        return {**columns, **self.columns}


def score(reference_dir: Path, submission_dir: Path, output_dir: Path) -> int:
    """Score a submission by what `reference_dir` holds; return 0, or 2 if it is not valid."""
    settings = json.loads((reference_dir / "settings.json").read_text(encoding="utf-8"))
    task = TASKS[settings["task"]]
    phase = str(settings["phase"])
    mode = settings["mode"]
    # So that messages name the files as they lie in the zip.
    os.chdir(submission_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    try:
        # The platform's interface takes submissions early; who plays it keeps the dates otherwise.
        is_early = datetime.now(UTC).isoformat(sep=" ") < settings["starts"]
        if is_early and not os.environ.get("RUN_LOCALLY"):
            raise InputError(f"this phase begins on {settings['starts']} UTC: not scored before")
        answers = None
        if mode != "received":
            answers = reference_dir / layout.TEST_DIR.name / task.answers_name(phase)
        judged = _JUDGES[task.form](reference_dir, task, phase, answers)
    except InputError as fault:
        text = str(fault).replace(f"{reference_dir}{os.sep}", "")
        print(f"error: {text}", file=sys.stderr)
        _write_page(output_dir, task, "Not scored.", text)
        return 2
    scores = judged.all_columns if judged else {"received": 1.0}
    if mode == "hidden":
        scores = {f"private_{name}": value for name, value in scores.items()}
    writing.write_files({output_dir / SCORES_NAME: json.dumps(scores) + "\n"})
    if judged is None or mode == "hidden":
        print(_RECEIVED)
        _write_page(output_dir, task, "Received.", _RECEIVED)
        return 0
    around = "" if judged.score.error is None else f" ± {judged.score.error:.4f}"
    told = f"score {judged.score.value:.4f}{around} (task {task.number}, {phase})"
    print(told)
    try:
        evaluation, shown = judged.explain()
    except ImportError as missing:
        _write_page(output_dir, task, told, f"No charts and tables here: {missing}.")
        return 0
    written = score_files.write_scores(output_dir, evaluation, template=judged.template, **shown)
    text_path, page_path = written
    text_path.unlink()
    page_path.replace(output_dir / PAGE_NAME)
    return 0


def _write_page(output_dir: Path, task: Task, what: str, text: str) -> None:
    body = pages.Html(f'<p class="what">{what}</p><p>{escape(text)}</p>')
    page = pages.render("base.html", title=task.title, body=body)
    writing.write_files({output_dir / PAGE_NAME: page})


def _find_submission(task: Task) -> Path:
    """Return the CSV of a task in the current folder; other tasks may have theirs beside it."""
    path = Path(task.submission)
    if not path.is_file():
        others = (entry for entry in Path().iterdir() if entry.name != played.STATUS_NAME)
        found = sorted(entry.name + "/" * entry.is_dir() for entry in others)
        shown = ", ".join(found[: reading.SHOWN]) or "nothing"
        more = f" and {len(found) - reading.SHOWN} more" if len(found) > reading.SHOWN else ""
        raise InputError(
            f"the zip holds no {path} at its top level, but {shown}{more}; the kit's scripts "
            "write it"
        )
    return path


def _judge_pairs(
    reference_dir: Path, task: Task, phase: str, answers: Path | None
) -> Judged | None:
    """Score tasks 1 and 2."""
    path = _find_submission(task)
    if answers is None:
        template = reference_dir / layout.TEMPLATE_DIR.name / str(task.template)
        submission.read_predictions(path, task.number, template)
        return None
    matched = pairs.match(task, path, answers, phase)
    found = pairs.score(matched)
    facts = facts_file.read_facts(reference_dir / "facts.npz")
    return Judged(found, "pairs.html", lambda: pairs.explain(matched, found, facts))


def _judge_ranking(
    reference_dir: Path, task: Task, phase: str, answers: Path | None
) -> Judged | None:
    """Score task 3."""
    path = _find_submission(task)
    template = reference_dir / layout.TEMPLATE_DIR.name / str(task.template)
    if answers is None:
        submission.read_ranking(path, template)
        return None
    matched = ranking.match(path, answers, template, phase)
    found = ranking.score(matched)
    # The leaderboard orders equal scores by their errors: here equal scores have equal errors.
    error = metrics.binomial_standard_error(found.value, len(matched.judgements))
    found = replace(found, error=error)
    explain = partial(ranking.explain, matched, found, with_answers=False)
    return Judged(found, "ranking.html", explain)


def _judge_games(
    reference_dir: Path, task: Task, phase: str, answers: Path | None
) -> Judged | None:
    """Score task 4: what the ingestion program has played."""
    record = played.read(Path(), reference_dir)
    if answers is None:
        return None
    setting = Setting(Path(task.submission), answers, None, reference_dir)
    masks = {f"mask_{index}": value for index, value in enumerate(record["masks"].values())}
    explain = partial(games_page.describe, setting, record, phase=phase)
    return Judged(games_page.score_of(record), "games.html", explain, masks)


_JUDGES = {
    Form.PREDICTIONS: _judge_pairs,
    Form.RANKING: _judge_ranking,
    Form.ENTRY: _judge_games,
}

if __name__ == "__main__":
    given, written = (Path(argument).resolve() for argument in sys.argv[1:3])
    sys.exit(score(given / "ref", given / "res", written))
