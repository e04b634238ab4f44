"""Act as the competition platform on this machine: score submissions with a bundle.

Run:     python hosting/run_locally.py BUNDLE                       show what it holds
         python hosting/run_locally.py BUNDLE SUBMISSION.zip
         python hosting/run_locally.py BUNDLE --submissions DIR --phase private
         python hosting/run_locally.py BUNDLE --submissions DIR --watch 60 --site public_html
Writes:  the page of each score; with --submissions leaderboard.html and leaderboard.csv

BUNDLE is what hosting/make_bundle.py writes, or its unpacked folder; the private phase also needs
BUNDLE_private.zip beside it. DIR holds TEAM.zip, or TEAM/*.zip. The time of a file counts as the
time of its submission. For each team and task, only the last submissions count: as many as
competition.yaml allows in the whole phase.
A file that was scored with the same bundle before keeps its scores; one that failed is tried again.

The exit code is 2 if the bundle is wrong, or any submission could not be scored.
"""

import argparse
import contextlib
import json
import re
import sys
import tempfile
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common import cli, fingerprints, layout, reading, run_log, writing, zips
from common.errors import InputError, printable
from common.stray_files import is_stray_path
from common.tasks import TASKS

import leaderboard
import pandas as pd
from bundle import Bundle, Phase, Result, Task, read_bundle, score
from tqdm import tqdm

DEFAULT_DIR = layout.TEST_OUTPUT_DIR / "leaderboard"
RECORDS_NAME = "leaderboard_results.jsonl"
DETAILS_DIR = "details"
# The value of --phase that stands for both phases.
BOTH = "both"


@dataclass(frozen=True)
class Submission:
    """A zip in the folder of submissions."""

    path: Path
    # The time when the file was last changed, in UTC.
    submitted: datetime
    # Size of the file, in bytes.
    size: int
    # Name of the file, relative to the folder of submissions, without control characters.
    file: str
    # Name of the team, without control characters.
    team: str


@dataclass(frozen=True)
class Attempt:
    """A submission to one task."""

    submission: Submission
    task: Task


@dataclass(frozen=True)
class PhaseTasks:
    """A phase of the competition, and those of its tasks that are to be scored."""

    phase: Phase
    tasks: list[Task]


# Results with one bundle: parsed lines of leaderboard_results.jsonl. The key of a result is the
# digest of the submission and the index of the task.
Records = dict[tuple[str, int], dict[str, Any]]


@dataclass(frozen=True)
class PhaseFolder:
    """The folder of a phase's leaderboard, and the results that it holds."""

    phase_tasks: PhaseTasks
    path: Path
    # The results of earlier runs. Each run adds its own results.
    records: Records


def main() -> None:
    """Read the bundle, then score one submission or a folder of them, or say what it holds."""
    options = build_parser().parse_args()
    _check_flags(options)
    path: Path = options.bundle
    # The private part of the bundle is a zip with the answers of the private phase, which only the
    # organiser has. By default it lies beside the bundle.
    private = options.private or path.with_name(f"{path.name.removesuffix('.zip')}_private.zip")
    if options.private:
        reading.require_file(private)
    existing_private = private if private.is_file() else None
    with tempfile.TemporaryDirectory(prefix="bundle_", ignore_cleanup_errors=True) as folder:
        bundle = read_bundle(path, Path(folder), existing_private)
        phases = _find_phases(bundle, options, private)
        n_failed = 0
        if options.submission:
            # `--phase both` is refused for a single submission, so `phases` has only one phase.
            n_failed = _score_one(bundle, phases[0], options)
        elif options.submissions:
            bundle_digest = fingerprints.digest(path)
            if existing_private:
                # A result is valid only for this bundle with this private part, so the digest is
                # made from both.
                bundle_digest += fingerprints.digest(existing_private)
            n_failed = _score_folder(bundle, bundle_digest, phases, options)
        else:
            _describe(bundle)
    if n_failed:
        sys.exit(2)


def _check_flags(options: argparse.Namespace) -> None:
    """Raise `InputError` if flags contradict each other."""
    if options.submission and options.submissions:
        raise InputError("expected either a submission or --submissions DIR, not both")
    needs_folder = options.watch or options.site or options.phase == BOTH
    if needs_folder and not options.submissions:
        raise InputError("--watch, --site and --phase both: are for --submissions DIR")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument(
        "bundle",
        type=Path,
        metavar="BUNDLE",
        help="zip, or folder that it unpacks to",
    )
    parser.add_argument(
        "submission",
        type=Path,
        metavar="SUBMISSION.zip",
        nargs="?",
        help="zip to score",
    )
    parser.add_argument(
        "--submissions",
        type=Path,
        metavar="DIR",
        help="score all of a folder",
    )
    parser.add_argument(
        "--phase",
        metavar="NAME",
        default=layout.PHASES[0],
        help="public (default), private, or both; each has a leaderboard of its own",
    )
    parser.add_argument(
        "--private",
        type=Path,
        metavar="FILE",
        help="private part of the bundle (default: BUNDLE_private.zip beside it)",
    )
    parser.add_argument(
        "--tasks",
        type=cli.count,
        nargs="+",
        metavar="N",
        help="numbers of tasks (default: those whose file is in the zip)",
    )
    parser.add_argument(
        "--output_dir",
        type=Path,
        metavar="DIR",
        help="default data/test_output/leaderboard; private phase: …/leaderboard_private",
    )
    parser.add_argument(
        "--watch",
        type=cli.count,
        metavar="SECONDS",
        help="look for new submissions again and again, until Control-C",
    )
    parser.add_argument(
        "--site",
        type=Path,
        metavar="DIR",
        help="write a web site with leaderboards, pages and files into DIR; "
        "with --phase both, only the public leaderboard is published",
    )
    return parser


def _describe(bundle: Bundle) -> None:
    """Print the title, the phases and the leaderboard's columns of a competition's bundle."""
    print(bundle.title)
    for phase in bundle.phases:
        names = "; ".join(task.name for task in phase.tasks)
        limit = f"{phase.execution_time_limit} s"
        print(f"{phase.name}: from {phase.start} to {phase.end}, {limit}; {names}")
    print(f"Leaderboard: {', '.join(column.title for column in bundle.columns)}")


def _find_phases(bundle: Bundle, options: argparse.Namespace, private: Path) -> list[PhaseTasks]:
    """Return the phases and tasks that the flags name.

    Raises `InputError` if a phase or a task is unknown, or if submissions are to be scored and the
    answers of a phase are missing.
    """
    phase_by_name = {phase.name.casefold(): phase for phase in bundle.phases}
    names = layout.PHASES if options.phase == BOTH else [options.phase]
    found = []
    for name in names:
        phase = phase_by_name.get(name.casefold())
        if phase is None:
            expected = ", ".join(phase.name for phase in bundle.phases)
            raise InputError(f"--phase {name}: the bundle has no such phase, expected {expected}")
        tasks = _find_tasks(phase, options.tasks)
        if options.submission or options.submissions:
            _require_answers(phase, private)
        found.append(PhaseTasks(phase, tasks))
    return found


def _find_tasks(phase: Phase, numbers: Sequence[int] | None) -> list[Task]:
    """Return the tasks of a phase with these numbers; all tasks if `numbers` is None.

    Raises `InputError` if the phase has no task with one of the numbers.
    """
    if numbers is None:
        return list(phase.tasks)
    known = [task.number for task in phase.tasks]
    for number in numbers:
        if number not in known:
            expected = ", ".join(printable(task.name) for task in phase.tasks)
            raise InputError(f"--tasks {number}: the phase has no such task, expected {expected}")
    return [task for task in phase.tasks if task.number in numbers]


def _require_answers(phase: Phase, private: Path) -> None:
    """Raise `InputError` if the bundle lacks the answers of a phase.

    The answers of the private phase are in the zip `private`, which may be missing.
    """
    for task in phase.tasks:
        # The mode says how submissions are treated. In the settings of the private phase, it is
        # "scored" only in the zip `private`. If the zip exists, `read_bundle` has unpacked its
        # settings over those of the bundle. So with any other mode, the zip is missing.
        settings = task.reference_data / "settings.json"
        if settings.is_file() and json.loads(settings.read_bytes())["mode"] != "scored":
            raise InputError(
                f"{private}: not found, expected the answers of the {phase.name.lower()} phase,"
                " which hosting/make_bundle.py writes there (--private names another place)"
            )


def _tasks_of(tasks: Sequence[Task], submission: Path) -> list[Task]:
    """Return the tasks for which a zip holds a submission.

    If the zip holds none, return all tasks: scoring them fails, and says which files are missing.
    """
    with zips.open_zip(submission) as archive:
        members = set(archive.namelist())
    tasks_in_zip = []
    for task in tasks:
        # In a bundle that was edited by hand, a task may have a number that the kit does not know.
        # The kit then does not know the name of the task's file, and finds no submission for the
        # task.
        is_known = task.number in TASKS
        if is_known and TASKS[task.number].submission in members:
            tasks_in_zip.append(task)
    return tasks_in_zip or list(tasks)


def _score_one(bundle: Bundle, phase_tasks: PhaseTasks, options: argparse.Namespace) -> int:
    """Score one submission, and print its scores; return the number of tasks on which it failed."""
    path: Path = options.submission
    # Tasks that --tasks names are scored even if the zip lacks their files: they then fail.
    tasks = phase_tasks.tasks if options.tasks else _tasks_of(phase_tasks.tasks, path)
    time_limit = phase_tasks.phase.execution_time_limit
    results = []
    for task in tqdm(tasks, desc="Tasks", disable=None):
        results.append((task, score(path, task, bundle, time_limit)))
    n_failed = 0
    for task, result in results:
        _show_result(bundle, task, result, options.output_dir or DEFAULT_DIR)
        if result.fault:
            n_failed += 1
            cli.print_fault(f"{cli.show(path)}: {printable(task.name)}: {result.fault}")
    return n_failed


def _show_result(bundle: Bundle, task: Task, result: Result, output_dir: Path) -> None:
    """Print the programs' output and the scores for a task; write the page of the score."""
    print(f"{task.name}: {'failed' if result.fault else 'scored'}")
    for line in result.output:
        print(f"  {line}")
    for column in bundle.columns:
        if column.key in result.scores:
            value = f"{result.scores[column.key]:.{column.precision}f}"
            print(f"  {column.title}: {value}")
    if result.details:
        name = re.sub(r"\W+", "_", task.name.lower()).strip("_")
        page = output_dir / f"detailed_results_{name}.html"
        writing.write_files({page: result.details})
        print(f"  written: {cli.show(page)}")


# ---- A folder of submissions ---------------------------------------------------------------------


def _score_folder(
    bundle: Bundle, bundle_digest: str, phases: Sequence[PhaseTasks], options: argparse.Namespace
) -> int:
    """Score a folder of submissions once, or with --watch again whenever the folder changes.

    Returns the number of results that are failures. With --watch, it never returns. `bundle_digest`
    identifies the bundle.
    """
    phase_folders = _list_phase_folders(bundle_digest, phases, options)
    # The submissions that the previous turn of the loop found; they are not scored again unless
    # something changes. In the first turn, an empty folder equals this empty list, so it is not
    # scored.
    scored_before: list[Submission] = []
    while True:
        submissions, other_files = _find_submissions(options.submissions)
        if not submissions and not options.watch:
            fault = "holds no submission, expected TEAM.zip or TEAM/*.zip"
            raise InputError(f"{options.submissions}: {fault}")
        n_failed = 0
        if submissions != scored_before:
            _print_notes(submissions, other_files)
            for phase_folder in phase_folders:
                n_failed += _score_all(bundle, bundle_digest, submissions, phase_folder)
            if options.site:
                # With --phase both, the first phase is the public one. Only this phase is
                # published.
                _publish(options.site, bundle, phase_folders[0])
        if not options.watch:
            return n_failed
        scored_before = submissions
        time.sleep(options.watch)


def _print_notes(submissions: Sequence[Submission], other_files: Sequence[str]) -> None:
    """Print which files are no submissions, and which teams may be the same team."""
    for name in other_files:
        print(f"note: {name} is no zip, and is left out")
    for teams in _find_similar_teams(submissions):
        print(
            f"note: {' and '.join(teams)} count as different teams; if they are one, give "
            "their submissions one name"
        )


def _publish(site: Path, bundle: Bundle, phase_folder: PhaseFolder) -> None:
    """Write the web site of the competition, with the leaderboard of one phase."""
    phase_name = phase_folder.phase_tasks.phase.name
    leaderboard.publish(site, bundle, phase_name, phase_folder.path)
    print(f"written: {cli.show(site / 'index.html')}")


def _list_phase_folders(
    bundle_digest: str, phases: Sequence[PhaseTasks], options: argparse.Namespace
) -> list[PhaseFolder]:
    """Return the folder of each phase's leaderboard, with the results of earlier runs."""
    phase_folders = []
    _, private_phase = layout.PHASES
    # If a single phase is scored, --output_dir names the folder of its leaderboard. In all other
    # cases, that folder (or the default) is for the public phase, and the private phase gets a
    # folder beside it, whose name ends in _private.
    is_named_for_one_phase = bool(options.output_dir) and len(phases) == 1
    for phase_tasks in phases:
        folder: Path = options.output_dir or DEFAULT_DIR
        is_private = phase_tasks.phase.name.lower() == private_phase
        if is_private and not is_named_for_one_phase:
            folder = folder.with_name(f"{folder.name}_private")
        phase_folders.append(PhaseFolder(phase_tasks, folder, _read_records(folder, bundle_digest)))
    return phase_folders


def _find_submissions(folder: Path) -> tuple[list[Submission], list[str]]:
    """Return the submissions in a folder, in order of time, and the names of all other files."""
    if not folder.is_dir():
        raise InputError(f"{folder}: not found, expected a folder of submissions")
    submissions = []
    other_files = []
    # Look in the folder and in its subfolders, but not in deeper folders.
    for path in (*folder.glob("*"), *folder.glob("*/*")):
        name = path.relative_to(folder)
        if not path.is_file() or is_stray_path(name.as_posix()):
            continue
        if path.suffix.lower() != ".zip":
            other_files.append(str(name))
            continue
        status = path.stat()
        # A submission is a file TEAM.zip, or any zip in a folder TEAM.
        team = path.stem if path.parent == folder else path.parent.name
        submissions.append(
            Submission(
                path=path,
                submitted=datetime.fromtimestamp(status.st_mtime, UTC),
                size=status.st_size,
                file=printable(name.as_posix()),
                team=printable(team),
            )
        )
    submissions.sort(key=lambda submission: (submission.submitted, submission.file))
    return submissions, other_files


def _find_similar_teams(submissions: Sequence[Submission]) -> list[list[str]]:
    """Return groups of teams whose names differ only in case, spaces and punctuation."""
    teams_by_key: dict[str, set[str]] = {}
    for submission in submissions:
        normalised = unicodedata.normalize("NFKC", submission.team).casefold()
        letters_and_digits = re.sub(r"[\W_]+", "", normalised)
        key = letters_and_digits or submission.team
        teams_by_key.setdefault(key, set()).add(submission.team)
    return [sorted(teams) for teams in teams_by_key.values() if len(teams) > 1]


def _score_all(
    bundle: Bundle, bundle_digest: str, submissions: Sequence[Submission], phase_folder: PhaseFolder
) -> int:
    """Score submissions in a phase, and write its leaderboards; return the number of failures.

    An attempt is a submission to one task. If the records of `phase_folder` already hold the result
    of an attempt, it is not scored again. A file that is no valid zip belongs to no task. Such a
    file counts as one failure.
    """
    attempts, rows_of_invalid_zips = _list_attempts(phase_folder.phase_tasks, submissions)
    rows = list(rows_of_invalid_zips)
    records = phase_folder.records
    # The number of results that are taken from the records of earlier runs.
    n_reused = 0
    for attempt in tqdm(attempts, desc="Submissions", disable=None):
        digest = fingerprints.digest(attempt.submission.path)
        key = (digest, attempt.task.index)
        if key in records:
            n_reused += 1
        else:
            records[key] = _score_attempt(bundle, bundle_digest, digest, attempt, phase_folder)
        rows.append(_leaderboard_row(attempt, records[key]))
    rows.sort(key=lambda row: (row["submitted"], row["file"]))
    leaderboard.write(bundle, phase_folder.phase_tasks.phase.name, rows, phase_folder.path)
    failed = [row for row in rows if row["fault"]]
    for row in failed:
        # The row of an invalid zip has no task.
        has_task = row["task"] != leaderboard.NO_TASK
        task_name = f": {bundle.tasks[row['task']].name}" if has_task else ""
        cli.print_fault(f"{row['file']}{task_name}: {row['fault']}")
    n_scored = len(rows) - len(failed)
    counts = f"{n_scored} scored, {len(failed)} failed; {n_reused} of them reused"
    print(f"{len(rows)} results: {counts}")
    return len(failed)


def _list_attempts(
    phase_tasks: PhaseTasks, submissions: Sequence[Submission]
) -> tuple[list[Attempt], list[dict[str, Any]]]:
    """Return the attempts to be ranked in a phase, and rows for the files that are no valid zips.

    An attempt is a submission to one task. Only the last attempts of each team at each task are
    ranked, so `submissions` must be in order of time. The rows are for `leaderboard.write`, which
    lists such files among the failures.
    """
    attempts: list[Attempt] = []
    rows: list[dict[str, Any]] = []
    for submission in submissions:
        try:
            # A zip that only holds files of tasks that are not to be scored adds no attempt. So
            # pass all tasks of the phase: `_tasks_of` then finds the tasks of this zip. If it found
            # no task, it would return all tasks that it got, so that scoring them fails.
            tasks_in_zip = _tasks_of(phase_tasks.phase.tasks, submission.path)
        except InputError as error:
            fault = str(error).removeprefix(f"{submission.path}: ")
            no_task = {"task": leaderboard.NO_TASK, "fault": fault, "details": ""}
            rows.append({**_submission_columns(submission), **no_task})
            continue
        for task in phase_tasks.tasks:
            if task in tasks_in_zip:
                attempts.append(Attempt(submission, task))
    last_attempts = _keep_last(attempts, phase_tasks.phase.max_submissions)
    return last_attempts, rows


def _keep_last(attempts: Sequence[Attempt], max_counted: int) -> list[Attempt]:
    """Return the last `max_counted` attempts of each team at each task.

    `attempts` must be in order of time. The function prints how many attempts it leaves out.
    """
    table = pd.DataFrame(
        {
            "team": [attempt.submission.team for attempt in attempts],
            "task": [attempt.task.index for attempt in attempts],
        }
    )
    # `tail` takes the last rows of each group, and keeps the order of the table.
    counted_rows = table.groupby(["team", "task"]).tail(max_counted).index
    n_left_out = len(attempts) - len(counted_rows)
    if n_left_out:
        print(
            f"note: {n_left_out} earlier submissions are left out: only the last {max_counted} of "
            "each team and task count"
        )
    return [attempts[row] for row in counted_rows]


def _score_attempt(
    bundle: Bundle,
    bundle_digest: str,
    submission_digest: str,
    attempt: Attempt,
    phase_folder: PhaseFolder,
) -> dict[str, Any]:
    """Score an attempt; write its page and a line of the records; return the line's content.

    The digests identify the bundle and the submission.
    """
    task = attempt.task
    time_limit = phase_folder.phase_tasks.phase.execution_time_limit
    result = score(attempt.submission.path, task, bundle, time_limit)
    # The name of the page, relative to the folder of the phase; empty if there is no page. The
    # beginnings of the digests are enough to tell pages apart.
    page_name = ""
    if result.details:
        page_name = f"{DETAILS_DIR}/{submission_digest[:16]}_{bundle_digest[:8]}_{task.index}.html"
        writing.write_files({phase_folder.path / page_name: result.details})
    record = {
        "bundle": bundle_digest,
        "submission": submission_digest,
        "task": task.index,
        "scores": result.scores,
        "fault": result.fault,
        "details": page_name,
    }
    phase_folder.path.mkdir(parents=True, exist_ok=True)
    run_log.append_line(phase_folder.path / RECORDS_NAME, record)
    return record


def _submission_columns(submission: Submission) -> dict[str, Any]:
    """Return the part of a leaderboard row that describes the submission."""
    return {
        "submitted": submission.submitted,
        "file": submission.file,
        "team": submission.team,
    }


def _leaderboard_row(attempt: Attempt, record: dict[str, Any]) -> dict[str, Any]:
    """Return the row of an attempt for `leaderboard.write`."""
    return {
        **record["scores"],
        **_submission_columns(attempt.submission),
        "task": attempt.task.index,
        "fault": record["fault"],
        "details": record["details"],
    }


def _read_records(folder: Path, bundle_digest: str) -> Records:
    """Return the results of earlier runs with the bundle that has this digest.

    Failures are left out, because a busy machine may have caused them. Scores are left out if the
    page that explains them is missing.
    """
    path = folder / RECORDS_NAME
    lines = path.read_bytes().splitlines() if path.is_file() else []
    records: Records = {}
    for line in lines:
        # Skip every faulty line, whatever its fault: a run that was stopped may have written only a
        # part of the line, or a user may have changed it.
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            record = json.loads(line.decode())
            if _is_reusable(record, folder, bundle_digest):
                records[record["submission"], record["task"]] = record
    return records


def _is_reusable(record: dict[str, Any], folder: Path, bundle_digest: str) -> bool:
    """Return whether a submission need not be scored again.

    The record must hold scores with this bundle, and the page of the score must exist.
    """
    if record["bundle"] != bundle_digest or record["fault"]:
        return False
    are_numbers = all(isinstance(score, float) for score in record["scores"].values())
    # Look for the page only after all other checks: access to the disk is slow, and there may be
    # many records of other bundles.
    return are_numbers and (folder / record["details"]).exists()


if __name__ == "__main__":
    cli.run(main)
