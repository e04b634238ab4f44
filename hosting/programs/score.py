"""The scoring program of the platform: score one submission of one task and phase.

    python3 /app/program/score.py /app/input /app/output

Reads the reference data in /app/input/ref and the submission in /app/input/res; writes scores.json
and detailed_results.html. A submission that is incomplete or wrong gets a page that says why, one
line on stderr and exit code 2, never a score.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from common import io, layout, metrics, pages
from common.adaptive import evaluation as adaptive_evaluation
from common.adaptive.entry_files import ENTRY_FILE
from common.adaptive.game import read_reference
from common.adaptive.training import count_questions
from common.answers import number_ids
from common.errors import InputError
from common.evaluation import pairs, ranking, score_files
from common.evaluation.record import TASK_TITLES, Evaluation

import facts_file
import played

SCORES_NAME = "scores.json"
PAGE_NAME = "detailed_results.html"
# Where the platform puts what it says of a run itself.
_OF_THE_PLATFORM = "metadata"
# Digits of the standard error on the leaderboard. The platform ranks equal scores by the columns
# that follow, and by time where these are equal too, as they mostly are with so few digits.
_ERROR_DIGITS = 4


@dataclass(frozen=True)
class Judged:
    """A score with its standard error, None if it is not known, and what the page shows."""

    evaluation: Evaluation
    error: float | None
    page: dict[str, Any]


def score(reference_dir: Path, submission_dir: Path, output_dir: Path) -> int:
    """Score a submission.

    Parameters
    ----------
    reference_dir
        The true answers and settings.json, which names task and phase.
    submission_dir
        What was submitted, unpacked; in task 4 what the ingestion program made of it.
    output_dir
        Where the scores and the page go.

    Returns
    -------
    int
        The exit code: 0 if there is a score, 2 if the submission is not valid.
    """
    settings = json.loads((reference_dir / "settings.json").read_text(encoding="utf-8"))
    task, phase = int(settings["task"]), str(settings["phase"])
    # So that messages name the files as they lie in the zip.
    os.chdir(submission_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    try:
        judged = _JUDGES[task](reference_dir, task, phase)
    except InputError as fault:
        text = str(fault).replace(f"{reference_dir}{os.sep}", "")
        print(f"error: {text}", file=sys.stderr)
        body = f'<p class="what">Not scored.</p><p>{escape(text)}</p>'
        io.write_text(output_dir / PAGE_NAME, pages.page(TASK_TITLES[task], body))
        return 2
    evaluation = judged.evaluation
    scores = {"score": evaluation.score}
    if judged.error is not None:
        scores["standard_error"] = round(judged.error, _ERROR_DIGITS)
    if task == 4:
        for number, accuracy in enumerate(evaluation.parts.values()):
            scores[f"mask_{number}"] = accuracy
    name = score_files.score_name(task, phase)
    text_path, page_path = score_files.write_scores(
        output_dir, name, evaluation, error=judged.error, **judged.page
    )
    text_path.unlink()
    page_path.replace(output_dir / PAGE_NAME)
    io.write_text(output_dir / SCORES_NAME, json.dumps(scores) + "\n")
    beside = "" if judged.error is None else f" ± {judged.error:.4f}"
    print(f"score {evaluation.score:.4f}{beside} (task {task}, {phase})")
    return 0


def _find_submission(task: int) -> Path:
    """Return the CSV of a task in the current folder; other tasks may have theirs beside it.

    Raises
    ------
    InputError
        If it is not there.
    """
    name = layout.submission_name(task)
    path = Path(name)
    if not path.is_file():
        found = sorted(
            entry.name + "/" * entry.is_dir()
            for entry in Path().iterdir()
            if entry.name != _OF_THE_PLATFORM
        )
        shown = ", ".join(found[: io.SHOWN]) or "nothing"
        more = f" and {len(found) - io.SHOWN} more" if len(found) > io.SHOWN else ""
        raise InputError(
            f"the zip holds no {name} at its top level, but {shown}{more}; the kit's scripts "
            "write it"
        )
    return path


def _judge_pairs(reference_dir: Path, task: int, phase: str) -> Judged:
    """Score tasks 1 and 2."""
    path = _find_submission(task)
    reference_path = reference_dir / layout.TEST_DIR.name / layout.test_answers_name(task, phase)
    pair_score = pairs.score_pairs(path, reference_path, task, phase=phase)
    facts = facts_file.read_facts(reference_dir / "facts.npz")
    evaluation, error, _, page = pairs.explain(pair_score, task, facts, path, reference_path, phase)
    return Judged(evaluation, error, {"template": "pairs.html", **page})


def _judge_ranking(reference_dir: Path, task: int, phase: str) -> Judged:
    """Score task 3."""
    reference_path = reference_dir / layout.TEST_DIR.name / layout.expert_judgements_name(phase)
    template_path = reference_dir / layout.TEMPLATE_DIR.name / layout.TEMPLATE_TASK_3
    path = _find_submission(task)
    evaluation, page = ranking.judge(path, reference_path, template_path, phase, with_answers=False)
    # Of a share of pairs: equal scores have equal ones.
    error = (evaluation.score * (1 - evaluation.score) / page["n_pairs"]) ** 0.5
    return Judged(evaluation, error, {"template": "ranking.html", **page})


def _judge_games(reference_dir: Path, task: int, phase: str) -> Judged:
    """Score task 4: what the ingestion program has played."""
    reference_path = reference_dir / layout.TEST_DIR.name / layout.test_masks_name(phase)
    metadata_dir = reference_dir / layout.METADATA_DIR.name
    reference = read_reference(reference_path, count_questions(None, metadata_dir))
    record = played.read(Path(), reference, played.read_key(reference_path.parent))
    setting = played.setting_of(Path(ENTRY_FILE), reference_path, None, metadata_dir)
    evaluation, body = adaptive_evaluation.describe(
        setting,
        reference,
        record.games,
        record.curves,
        record.facts,
        phase=phase,
        seconds=record.seconds,
        with_answers=False,
    )
    student, _, truth, prediction, _ = adaptive_evaluation.games_as_columns(reference, record.games)
    error = metrics.clustered_standard_error(truth == prediction, number_ids(student)[1])
    known_error = error if len(reference.student) > 1 else None
    return Judged(evaluation, known_error, {"body": body})


_JUDGES: dict[int, Callable[[Path, int, str], Judged]] = {
    1: _judge_pairs,
    2: _judge_pairs,
    3: _judge_ranking,
    4: _judge_games,
}


def main() -> int:
    """Score the submission; return the exit code."""
    input_dir, output_dir = (Path(argument).resolve() for argument in sys.argv[1:3])
    return score(input_dir / "ref", input_dir / "res", output_dir)


if __name__ == "__main__":
    sys.exit(main())
