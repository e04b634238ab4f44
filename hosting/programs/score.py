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
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from common import layout, metrics, pages, reading, submission, writing
from common.adaptive import games_page
from common.adaptive.entry_files import ENTRY_FILE
from common.adaptive.setting import Setting
from common.errors import InputError
from common.evaluation import pairs, ranking, score_files
from common.evaluation.record import TASK_TITLES

import facts_file
import numpy as np
import played

SCORES_NAME, PAGE_NAME = "scores.json", "detailed_results.html"
# Few, so that equal scores mostly have equal errors: then the platform ranks them by time.
_ERROR_DIGITS = 4
_RECEIVED = (
    "Received, and complete. The scores of this phase are published by the organisers after its "
    "end."
)
# The score by the leaderboard's columns, the page's template, and a function that returns first an
# evaluation, last what the page shows; None where a submission is only checked, without answers.
Judged = tuple[dict[str, float], str, Callable[[], tuple[Any, ...]]] | None


def score(reference_dir: Path, submission_dir: Path, output_dir: Path) -> int:
    """Score a submission by what `reference_dir` holds; return 0, or 2 if it is not valid."""
    settings = json.loads((reference_dir / "settings.json").read_text(encoding="utf-8"))
    task, phase, mode = int(settings["task"]), str(settings["phase"]), settings["mode"]
    # So that messages name the files as they lie in the zip.
    os.chdir(submission_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    try:
        # The platform's interface takes submissions early; who plays it keeps the dates otherwise.
        is_early = datetime.now(UTC).isoformat(sep=" ") < settings["starts"]
        if is_early and not os.environ.get("RUN_LOCALLY"):
            raise InputError(f"this phase begins on {settings['starts']} UTC: not scored before")
        judge = {3: _judge_ranking, 4: _judge_games}.get(task, _judge_pairs)
        answers = reference_dir / layout.TEST_DIR.name / layout.answers_name(task, phase)
        judged = judge(reference_dir, task, phase, None if mode == "received" else answers)
    except InputError as fault:
        text = str(fault).replace(f"{reference_dir}{os.sep}", "")
        print(f"error: {text}", file=sys.stderr)
        _write_page(output_dir, task, "Not scored.", text)
        return 2
    scores = judged[0] if judged else {"received": 1.0}
    if mode == "hidden":
        scores = {f"private_{name}": value for name, value in scores.items()}
    writing.write_files({output_dir / SCORES_NAME: json.dumps(scores) + "\n"})
    if judged is None or mode == "hidden":
        print(_RECEIVED)
        _write_page(output_dir, task, "Received.", _RECEIVED)
        return 0
    beside = f" ± {scores['standard_error']:.4f}" if "standard_error" in scores else ""
    told = f"score {scores['score']:.4f}{beside} (task {task}, {phase})"
    print(told)
    _, template, explain = judged
    try:
        evaluation, *_, shown = explain()
    except ImportError as missing:
        _write_page(output_dir, task, told, f"No charts and tables here: {missing}.")
        return 0
    shown["error"] = scores.get("standard_error")
    written = score_files.write_scores(output_dir, evaluation, template=template, **shown)
    text_path, page_path = written
    text_path.unlink()
    page_path.replace(output_dir / PAGE_NAME)
    return 0


def _write_page(output_dir: Path, task: int, what: str, text: str) -> None:
    body = pages.Html(f'<p class="what">{what}</p><p>{escape(text)}</p>')
    page = pages.render("base.html", title=TASK_TITLES[task], body=body)
    writing.write_files({output_dir / PAGE_NAME: page})


def _find_submission(task: int) -> Path:
    """Return the CSV of a task in the current folder; other tasks may have theirs beside it."""
    path = Path(layout.submission_name(task))
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


def _with_error(value: float, error: float) -> dict[str, float]:
    """Return a score and its standard error, which may not be known, NaN."""
    known = {} if np.isnan(error) else {"standard_error": round(error, _ERROR_DIGITS)}
    return {"score": value, **known}


def _judge_pairs(reference_dir: Path, task: int, phase: str, answers: Path | None) -> Judged:
    """Score tasks 1 and 2."""
    path = _find_submission(task)
    if answers is None:
        template = reference_dir / layout.TEMPLATE_DIR.name / layout.TEMPLATE_TASK_1_2
        submission.read_predictions(path, task, template)
        return None
    scored, outside = pairs.score_pairs(path, answers, task, phase=phase)
    facts = facts_file.read_facts(reference_dir / "facts.npz")
    right = (scored["truth"] == scored["predicted"]).to_numpy()
    error = metrics.clustered_standard_error(right, facts.pairs["student_code"].to_numpy())
    explain = partial(pairs.explain, scored, task, facts, path, answers, phase, outside)
    return _with_error(float(right.mean()), error), "pairs.html", explain


def _judge_ranking(reference_dir: Path, task: int, phase: str, answers: Path | None) -> Judged:
    """Score task 3."""
    path = _find_submission(task)
    template = reference_dir / layout.TEMPLATE_DIR.name / layout.TEMPLATE_TASK_3
    ranked = submission.read_ranking(path, template)
    if answers is None:
        return None
    judged = ranking.read_judgements(answers)
    best = float(ranking.agreement(judged, ranked).mean().max())
    # Of a share of pairs: equal scores have equal ones.
    error = float((best * (1 - best) / len(judged)) ** 0.5)
    explain = partial(ranking.judge, path, answers, template, phase, with_answers=False)
    return _with_error(best, error), "ranking.html", explain


def _judge_games(reference_dir: Path, task: int, phase: str, answers: Path | None) -> Judged:
    """Score task 4: what the ingestion program has played."""
    record = played.read(Path(), reference_dir)
    if answers is None:
        return None
    accuracies = list(record["masks"].values())
    scores = _with_error(float(np.array(accuracies).mean()), record["standard_error"])
    setting = Setting(Path(ENTRY_FILE), answers, None, reference_dir)
    explain = partial(games_page.describe, setting, record, phase=phase)
    masks = {f"mask_{number}": value for number, value in enumerate(accuracies)}
    return scores | masks, "games.html", explain


if __name__ == "__main__":
    given, written = (Path(argument).resolve() for argument in sys.argv[1:3])
    sys.exit(score(given / "ref", given / "res", written))
