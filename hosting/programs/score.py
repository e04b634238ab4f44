"""The scoring program of the platform: score one submission of one task and phase.

    python3 /app/program/score.py /app/input /app/output

Writes scores.json and detailed_results.html. A submission that is incomplete or wrong gets no
score: the page and one line on stderr say why, and the exit code is 2. The score needs only NumPy
and pandas. If the page needs a library that is missing, it has no charts and tables.

On a server, the private phase either only checks a submission or scores it for the organiser
alone. In both cases, participants see no score: the page shows none, and no column of the
leaderboard has a key of scores.json.
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
from common.errors import InputError, without_folder
from common.evaluation import pairs, ranking, score_files
from common.evaluation.record import Evaluation
from common.metrics import Score
from common.tasks import TASKS, Form, Task

import facts_file
import played

SCORES_NAME = "scores.json"
PAGE_NAME = "detailed_results.html"
# Decimals of the standard error in scores.json. Among equal scores, the earlier submission should
# win. The leaderboard orders equal scores by standard error first, and only then by time. With few
# decimals, equal scores mostly have equal standard errors too, so that the time decides.
_STANDARD_ERROR_DECIMALS = 4
_RECEIVED = (
    "Received, and complete. The scores of this phase are published by the organisers after its "
    "end."
)


@dataclass(frozen=True)
class ScoredSubmission:
    """The score of a submission, and how to explain it."""

    score: Score
    # Name of the HTML template of the page.
    page_template: str
    # A function that returns the evaluation, and further facts for the page. It may raise
    # ImportError if a library for charts or tables is missing.
    explain: Callable[[], tuple[Evaluation, dict[str, Any]]]
    # Scores in further columns of the leaderboard, by the column's key.
    columns: Mapping[str, float] = field(default_factory=dict)

    @property
    def all_columns(self) -> dict[str, float]:
        """The content of scores.json: maps the key of each leaderboard column to its score."""
        columns = {"score": self.score.value}
        if self.score.error is not None:
            columns["standard_error"] = round(self.score.error, _STANDARD_ERROR_DECIMALS)
        return {**columns, **self.columns}


def score(reference_dir: Path, submission_dir: Path, output_dir: Path) -> int:
    """Score a submission, and write the score and its page.

    Parameters
    ----------
    reference_dir
        The folder with settings.json and the true answers, as hosting/make_bundle.py writes it.
    submission_dir
        The folder with the unpacked submission. It becomes the working folder.
    output_dir
        Where to write.

    Returns
    -------
    int
        The exit code: 0, or 2 if the submission is not valid.
    """
    settings = json.loads((reference_dir / "settings.json").read_text(encoding="utf-8"))
    task = TASKS[settings["task"]]
    phase = str(settings["phase"])
    # "scored": participants see the score. "hidden": only the organiser sees the score. "received":
    # there are no answers, so the submission is only checked.
    mode = settings["mode"]
    # Work in the folder of the submission, so that messages name its files by their paths in the
    # zip.
    os.chdir(submission_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    try:
        _require_begun(settings["starts"])
        # Without answers, a submission is only checked, and `judged` is None.
        answers = None
        if mode != "received":
            answers = reference_dir / layout.TEST_DIR.name / task.answers_name(phase)
        # `_JUDGES` names the function that scores this form of submission: predictions, a ranking
        # or an entry.
        judge = _JUDGES[task.form]
        judged = judge(reference_dir, task, phase, answers)
    except InputError as fault:
        # Participants read this message: leave out the folder of the organiser's files.
        text = without_folder(str(fault), reference_dir)
        print(f"error: {text}", file=sys.stderr)
        _write_page(output_dir, task, "Not scored.", text)
        return 2
    columns = _choose_columns(judged, mode)
    writing.write_files({output_dir / SCORES_NAME: json.dumps(columns) + "\n"})
    if judged is None or mode == "hidden":
        print(_RECEIVED)
        _write_page(output_dir, task, "Received.", _RECEIVED)
    else:
        _publish(output_dir, task, phase, judged)
    return 0


def _choose_columns(judged: ScoredSubmission | None, mode: str) -> dict[str, float]:
    """Return the content of scores.json; `judged` is None for a submission that was only checked.

    Participants see a score only if the leaderboard has a column with the score's key. It has no
    column "received", and none that begins with "private_", so scores with such keys stay hidden.
    """
    if judged is None:
        # If scores.json held no score, the platform would say that the submission failed.
        return {"received": 1.0}
    if mode == "hidden":
        return {f"private_{name}": value for name, value in judged.all_columns.items()}
    return judged.all_columns


def _require_begun(starts: str) -> None:
    """Raise `InputError` if the phase has not begun; `starts` is the time when it begins, in UTC.

    The platform's API accepts submissions before a phase begins. `hosting/run_locally.py` sets
    RUN_LOCALLY, so that the organiser can score at any time.
    """
    # Both texts are ISO dates and times in UTC, so the smaller text is the earlier time.
    is_early = datetime.now(UTC).isoformat(sep=" ") < starts
    if is_early and not os.environ.get("RUN_LOCALLY"):
        raise InputError(f"this phase begins on {starts} UTC: not scored before")


def _publish(output_dir: Path, task: Task, phase: str, judged: ScoredSubmission) -> None:
    """Print the score, and write the page that explains it."""
    error_text = ""
    # With few students, the standard error is unreliable, so it is not printed.
    if judged.score.error is not None and not judged.score.has_few_students:
        error_text = f" ± {judged.score.error:.4f} standard error"
    line = f"score {judged.score.value:.4f}{error_text} (task {task.number}, {phase})"
    print(line)
    try:
        # `evaluation` is the record of the score, `facts` are variables of the page's template.
        evaluation, facts = judged.explain()
    except ImportError as missing:
        # A platform may lack the libraries for charts and tables; the score does not need them.
        _write_page(output_dir, task, line, f"No charts and tables here: {missing}.")
        return
    text_path, page_path = score_files.write_scores(
        output_dir, evaluation, template=judged.page_template, **facts
    )
    # The platform shows only a page of a fixed name: rename the page, and remove the text file.
    text_path.unlink()
    page_path.replace(output_dir / PAGE_NAME)


def _write_page(output_dir: Path, task: Task, heading: str, text: str) -> None:
    """Write a page that holds a heading and a text."""
    body = pages.Html(f'<p class="what">{heading}</p><p>{escape(text)}</p>')
    page = pages.render("base.html", title=task.title, body=body)
    writing.write_files({output_dir / PAGE_NAME: page})


def _find_submission(task: Task) -> Path:
    """Return the path of a task's CSV, which must lie in the current folder.

    Raises `InputError` if the folder does not hold the file.
    """
    path = Path(task.submission)
    if not path.is_file():
        raise InputError(
            f"the zip holds no {path} at its top level, but {_list_current_folder()}; the kit's "
            "scripts write it"
        )
    return path


def _list_current_folder() -> str:
    """List some files and folders of the current folder, and say how many more there are."""
    names = []
    for entry in Path().iterdir():
        if entry.name != played.STATUS_NAME:
            names.append(f"{entry.name}/" if entry.is_dir() else entry.name)
    names.sort()
    shown = ", ".join(names[: reading.SHOWN]) or "nothing"
    if len(names) > reading.SHOWN:
        shown += f" and {len(names) - reading.SHOWN} more"
    return shown


# ---- The judges --------------------------------------------------------------------------------
# Each function below reads the submission in the current folder, and raises `InputError` if the
# submission is not valid. If `answers` is None, the function only checks it, and returns None.


def _judge_pairs(
    reference_dir: Path, task: Task, phase: str, answers: Path | None
) -> ScoredSubmission | None:
    """Score predictions for task 1 or 2. If `answers` is None, only check them and return None."""
    path = _find_submission(task)
    if answers is None:
        template = reference_dir / layout.TEMPLATE_DIR.name / str(task.template)
        submission.read_predictions(path, task.number, template)
        return None
    matched = pairs.match(task, path, answers, phase)
    pair_score = pairs.score(matched)
    facts = facts_file.read_facts(reference_dir / "facts.npz")
    explain = partial(pairs.explain, matched, pair_score, facts)
    return ScoredSubmission(pair_score, "pairs.html", explain)


def _judge_ranking(
    reference_dir: Path, task: Task, phase: str, answers: Path | None
) -> ScoredSubmission | None:
    """Score a ranking for task 3. If `answers` is None, only check it and return None."""
    path = _find_submission(task)
    template = reference_dir / layout.TEMPLATE_DIR.name / str(task.template)
    if answers is None:
        submission.read_ranking(path, template)
        return None
    matched = ranking.match(path, answers, template, phase)
    ranking_score = ranking.score(matched)
    # The leaderboard sorts by score, then by standard error, then by time. If two rankings have
    # equal scores, the earlier ranking should win, so their standard errors must be equal too. The
    # standard errors of `ranking.score` may differ. Replace them by the binomial standard error,
    # which depends only on the score and the number of judgements.
    error = metrics.binomial_standard_error(ranking_score.value, len(matched.judgements))
    ranking_score = replace(ranking_score, error=error)
    # The page must not show the experts' judgements.
    explain = partial(ranking.explain, matched, ranking_score, with_answers=False)
    return ScoredSubmission(ranking_score, "ranking.html", explain)


def _judge_games(
    reference_dir: Path, task: Task, phase: str, answers: Path | None
) -> ScoredSubmission | None:
    """Score the games of task 4 by the record that the ingestion program has written.

    The ingestion program lets the submission play, and writes a signed record of its scores. Raises
    `InputError` if the record is missing, cannot be trusted, or says that the submission failed. If
    `answers` is None, only the record is checked, and the result is None.
    """
    # `score` has made the folder of the submission the working folder.
    submission_dir = Path()
    record = played.read(submission_dir, reference_dir)
    if answers is None:
        return None
    setting = Setting(
        submission=Path(task.submission),
        reference=answers,
        train=None,
        metadata_dir=reference_dir,
    )
    # An entry plays task 4 once with each mask. A mask says which answers are to be predicted. The
    # leaderboard has a column for the accuracy with each mask.
    columns = {f"mask_{index}": value for index, value in enumerate(record["masks"].values())}
    explain = partial(games_page.describe, setting, record, phase=phase)
    return ScoredSubmission(games_page.score_of(record), "games.html", explain, columns)


_JUDGES = {
    Form.PREDICTIONS: _judge_pairs,
    Form.RANKING: _judge_ranking,
    Form.ENTRY: _judge_games,
}


def main() -> int:
    """Score the submission that the command line names; return the exit code."""
    input_dir, output_dir = (Path(argument).resolve() for argument in sys.argv[1:3])
    return score(input_dir / "ref", input_dir / "res", output_dir)


if __name__ == "__main__":
    sys.exit(main())
