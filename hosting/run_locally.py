"""Play the competition platform on this machine: check a bundle, score submissions with it.

Run:     python hosting/run_locally.py BUNDLE                   would the platform take it?
         python hosting/run_locally.py BUNDLE SUBMISSION.zip
         python hosting/run_locally.py BUNDLE --submissions DIR --phase private
Writes:  the page of each score; with --submissions leaderboard.html and leaderboard.csv

BUNDLE is what hosting/make_bundle.py writes, or its unpacked folder. DIR holds TEAM.zip, or
TEAM/*.zip for teams that submit several times; a file's time counts as the time of submission.
Scores that a file got with the same bundle before are reused; what failed is tried again.

The exit code is 2 if the bundle is wrong, or any submission could not be scored.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common import cli, io, layout, made, run_log, zips
from common.adaptive.entry_files import ENTRY_FILE
from common.errors import InputError, printable

import platform_rules
import submission_run
from platform_rules import Bundle, Phase, Task, task_number
from tqdm import tqdm

DEFAULT_DIR = layout.TEST_OUTPUT_DIR / "leaderboard"
RECORDS_NAME, DETAILS_DIR = "leaderboard_results.jsonl", "details"
# The file of each task in a zip.
FILES = {task: layout.submission_name(task) for task in (1, 2, 3)} | {4: ENTRY_FILE}


def main() -> None:
    """Read the bundle, then score one submission or a folder of them, or say what it holds."""
    options = parse()
    if options.submission is not None and options.submissions is not None:
        raise InputError("expected either a submission or --submissions DIR, not both")
    with tempfile.TemporaryDirectory(prefix="bundle_", ignore_cleanup_errors=True) as folder:
        bundle = platform_rules.read_bundle(options.bundle, Path(folder))
        for warning in bundle.warnings:
            print(f"note: {warning}")
        phase = find_phase(bundle, options.phase)
        tasks = find_tasks(bundle, phase, options.tasks)
        if options.submission is not None:
            n_failed = score_one(bundle, phase, tasks, options)
        elif options.submissions is not None:
            n_failed = score_all(bundle, phase, tasks, options)
        else:
            n_failed = 0
            print("\n".join(describe(bundle)))
    if n_failed:
        sys.exit(2)


def parse() -> argparse.Namespace:
    """Read the flags."""
    p = cli.parser(__doc__)
    p.add_argument("bundle", type=Path, metavar="BUNDLE", help="zip, or folder that it unpacks to")
    p.add_argument("submission", type=Path, metavar="SUBMISSION.zip", nargs="?", help="score this")
    p.add_argument("--submissions", type=Path, metavar="DIR", help="score all of a folder")
    p.add_argument(
        "--phase", metavar="NAME", default=layout.PHASES[0], help="public (default) or private"
    )
    p.add_argument(
        "--tasks",
        type=cli.count,
        nargs="+",
        metavar="N",
        help="default: those that the submission holds a file of",
    )
    p.add_argument(
        "--output_dir",
        type=Path,
        metavar="DIR",
        default=DEFAULT_DIR,
        help="default data/test_output/leaderboard",
    )
    return p.parse_args()


def describe(bundle: Bundle) -> list[str]:
    """Return lines that say what is in a bundle."""
    lines = [f"the platform would take it: {printable(bundle.title)}"]
    for phase in bundle.phases:
        names = "; ".join(printable(bundle.tasks[index].name) for index in phase.tasks)
        end = f"to {phase.end}" if phase.end else "without end"
        lines.append(
            f"{printable(phase.name)}: from {phase.start} {end}, {phase.time_limit} s; {names}"
        )
    columns = ", ".join(printable(column.title) for column in bundle.columns)
    return [*lines, f"Leaderboard: {columns}"]


# What a leaderboard says about each submission beside its scores, by name.
ABOUT = {
    "task", "phase", "rank", "team", "submissions", "submitted", "time", "file", "fault", "details"
}  # fmt: skip


def find_phase(bundle: Bundle, name: str) -> Phase:
    """Return the phase of a name, in capitals or not."""
    found: list[Phase] = [
        phase for phase in bundle.phases if phase.name.casefold() == name.casefold()
    ]
    if found:
        return found[0]
    names = ", ".join(printable(phase.name) for phase in bundle.phases)
    raise InputError(f"--phase {printable(name)}: the bundle has no such phase, expected {names}")


def find_tasks(bundle: Bundle, phase: Phase, numbers: Sequence[int] | None) -> list[Task]:
    """Return the tasks of a phase, or those of the given numbers, that can be played here."""
    if bundle.primary.computation:
        raise InputError(
            f"the primary column, {bundle.primary.key}, is computed from others on the platform, "
            "expected one that the scoring program writes"
        )
    if taken := sorted({column.key for column in bundle.columns} & ABOUT):
        raise InputError(
            f"a column of scores has the key {taken[0]}, expected another: every leaderboard has a "
            "column of this name"
        )
    tasks = [bundle.tasks[index] for index in phase.tasks]
    if numbers is not None:
        known = [task_number(task) for task in tasks]
        for number in numbers:
            if number not in known:
                names = ", ".join(printable(task.name) for task in tasks)
                raise InputError(f"--tasks {number}: the phase has no such task, expected {names}")
        tasks = [task for task in tasks if task_number(task) in numbers]
    for task in tasks:
        if task.played_by_server:
            raise InputError(f"{printable(task.name)}: {task.played_by_server}, cannot be run here")
    return tasks


def tasks_of(tasks: Sequence[Task], submission: Path) -> list[Task]:
    """Return those tasks whose file a zip holds, or else all of them."""
    with zips.open_zip(submission) as archive:
        names = set(archive.namelist())
    return [task for task in tasks if FILES.get(task_number(task) or 0) in names] or list(tasks)


def score_one(
    bundle: Bundle, phase: Phase, tasks: Sequence[Task], options: argparse.Namespace
) -> int:
    """Score one submission, print its scores; return on how many tasks it failed."""
    path: Path = options.submission
    held = tasks_of(tasks, path)
    # Tasks that the user has named are all meant.
    chosen = held if options.tasks is None else tasks
    results = [
        (task, submission_run.score(path, task, bundle, phase.time_limit))
        for task in tqdm(chosen, desc="Tasks", disable=None)
    ]
    n_failed = 0
    for task, result in results:
        print(f"{printable(task.name)}: " + ("failed" if result.fault else "scored"))
        for line in result.output:
            print(f"  {line}")
        for column in bundle.columns:
            if column.key in result.scores:
                score = result.scores[column.key]
                print(f"  {printable(column.title)}: {score:.{column.precision}f}")
        if result.details:
            name = re.sub(r"\W+", "_", task.name.lower()).strip("_") or f"task_{task.index}"
            page = options.output_dir / f"detailed_results_{name}.html"
            io.write_text(page, result.details)
            print(f"  written: {cli.show(page)}")
        if result.fault:
            n_failed += 1
            cli.print_fault(f"{cli.show(path)}: {printable(task.name)}: {result.fault}")
    return n_failed


def score_all(
    bundle: Bundle, phase: Phase, tasks: Sequence[Task], options: argparse.Namespace
) -> int:
    """Score a folder of submissions, write the leaderboards; return how many results failed.

    What was scored before, by a run that was stopped too, is read from a file of records, a line of
    JSON each.
    """
    submissions = find_submissions(options.submissions)
    digest = made.digest(options.bundle)
    known = read_records(options.output_dir, digest)
    n_reused = 0
    of_phase = [bundle.tasks[index] for index in phase.tasks]
    attempts: list[dict[str, Any]] = []
    for path, about in tqdm(submissions, desc="Submissions", disable=None):
        try:
            # What is for other tasks only is none of these tasks' failures.
            held = tasks_of(of_phase, path)
            submission = made.digest(path)
        except InputError as error:
            fault = str(error).removeprefix(f"{path}: ")
            attempts.append({**about, "task": -1, "fault": fault, "details": ""})
            continue
        for task in tasks:
            if task not in held:
                continue
            record = known.get((submission, task.index))
            n_reused += record is not None
            if record is None:
                result = submission_run.score(path, task, bundle, phase.time_limit)
                record = {
                    "bundle": digest, "submission": submission, "task": task.index,
                    "scores": result.scores, "fault": result.fault, "details": "",
                }  # fmt: skip
                if result.details and bundle.enable_detailed_results:
                    record["details"] = (
                        f"{DETAILS_DIR}/{submission[:16]}_{digest[:8]}_{task.index}.html"
                    )
                    io.write_text(options.output_dir / record["details"], result.details)
                options.output_dir.mkdir(parents=True, exist_ok=True)
                run_log.append_line(options.output_dir / RECORDS_NAME, record)
                # What failed is tried again: the machine may have been busy.
                if not record["fault"]:
                    known[submission, task.index] = record
            told = {name: record[name] for name in ("task", "fault", "details")}
            attempts.append({**record["scores"], **about, **told})
    write(bundle, phase, attempts, options.output_dir)
    failed = [attempt for attempt in attempts if attempt["fault"]]
    for attempt in failed:
        name = f": {bundle.tasks[attempt['task']].name}" if attempt["task"] >= 0 else ""
        cli.print_fault(f"{attempt['file']}{name}: {attempt['fault']}")
    print(
        f"{len(attempts)} results: {len(attempts) - len(failed)} scored, {len(failed)} failed; "
        f"{n_reused} of them reused"
    )
    return len(failed)


def read_records(folder: Path, bundle: str) -> dict[tuple[str, int], dict[str, Any]]:
    """Return what was scored with a bundle, by the submission's digest and the task's index.

    What failed is not there, and so is tried again, as is what has lost its page.
    """
    path = folder / RECORDS_NAME
    lines = (
        path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    )
    known = {}
    for line in lines:
        try:
            record = io.parse_json(line)
            is_scored = record["bundle"] == bundle and not record["fault"]
            are_numbers = all(isinstance(score, float) for score in record["scores"].values())
            page = record["details"]
            if is_scored and are_numbers and (not page or (folder / page).is_file()):
                known[record["submission"], record["task"]] = record
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # A run that was stopped may have left a line cut off.
    return known


def find_submissions(folder: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Find TEAM.zip and TEAM/*.zip in a folder, with team, file and time, in order of their times.

    Raises
    ------
    InputError
        If there is no such folder, or no zip in it.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: not found, expected a folder of submissions")
    found = []
    for path in (*folder.glob("*"), *folder.glob("*/*")):
        name = path.relative_to(folder)
        if not path.is_file() or any(part.startswith((".", "__MACOSX")) for part in name.parts):
            continue
        if path.suffix.lower() != ".zip":
            print(f"note: {printable(str(name))} is no zip, and is left out")
            continue
        team = path.stem if path.parent == folder else path.parent.name
        about = {
            "team": printable(team),
            "file": printable(name.as_posix()),
            "submitted": datetime.fromtimestamp(path.stat().st_mtime, UTC),
        }
        found.append((path, about))
    if not found:
        raise InputError(f"{folder}: holds no submission, expected TEAM.zip or TEAM/*.zip")
    return sorted(found, key=lambda of: (of[1]["submitted"], of[1]["file"]))


def write(bundle: Bundle, phase: Phase, attempts: Sequence[dict[str, Any]], folder: Path) -> None:
    """Print the leaderboards, and write their files, all or none."""
    # Importing it takes a while, which `--help` does without.
    import leaderboard

    frame = leaderboard.as_frame(bundle, attempts)
    boards = leaderboard.make_boards(bundle, frame)
    for index, board in boards.items():
        print(leaderboard.as_text(bundle, index, board), end="\n\n")
    written = f"written {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    page = leaderboard.as_page(bundle, phase.name, boards, frame, written)
    paths = [folder / name for name in ("leaderboard.html", "leaderboard.csv")]
    with io.atomic_write(*paths) as (page_file, csv_file):
        page_file.write(page.encode("utf-8"))
        leaderboard.write_csv_to(csv_file, bundle, phase.name, boards)
    print(f"written: {cli.show(paths[0])}")


if __name__ == "__main__":
    cli.run(main)
