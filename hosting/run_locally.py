"""Play the competition platform on this machine: score submissions with a bundle.

Run:     python hosting/run_locally.py BUNDLE                       what is in it?
         python hosting/run_locally.py BUNDLE SUBMISSION.zip
         python hosting/run_locally.py BUNDLE --submissions DIR --phase private
         python hosting/run_locally.py BUNDLE --submissions DIR --watch 60 --site public_html
Writes:  the page of each score; with --submissions leaderboard.html and leaderboard.csv

BUNDLE is what hosting/make_bundle.py writes, or its unpacked folder; the private phase needs the
private part that was written beside it. DIR holds TEAM.zip, or TEAM/*.zip for teams that submit
several times; a file's time counts as the time of submission, and of each team and task the last
ones, as many as the phase takes in all. Scores that a file got with the same bundle before are
reused; what failed is tried again.

The exit code is 2 if the bundle is wrong, or any submission could not be scored.
"""

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from common import cli, io, layout, made, run_log, zips
from common.adaptive.entry_files import ENTRY_FILE
from common.errors import InputError, printable

import submission_run
from bundle import (
    Bundle,
    Phase,
    Task,
    find_phase,
    private_part_of,
    read_bundle,
    require_answers,
)
from tqdm import tqdm

DEFAULT_DIR = layout.TEST_OUTPUT_DIR / "leaderboard"
RECORDS_NAME, DETAILS_DIR = "leaderboard_results.jsonl", "details"
# The file of each task in a zip.
FILES = {task: layout.submission_name(task) for task in (1, 2, 3)} | {4: ENTRY_FILE}
BOTH = "both"


class Submitted(NamedTuple):
    """A submission in a folder: team and file, as they may be shown, and the time of the file."""

    path: Path
    team: str
    file: str
    time: datetime


def main() -> None:
    """Read the bundle, then score one submission or a folder of them, or say what it holds."""
    options = parse()
    if options.submission is not None and options.submissions is not None:
        raise InputError("expected either a submission or --submissions DIR, not both")
    if options.submissions is None and (options.watch or options.site or options.phase == BOTH):
        raise InputError("--watch, --site and --phase both: are for --submissions DIR")
    private: Path = options.private or private_part_of(options.bundle)
    if options.private:
        io.require_file(private)
    with tempfile.TemporaryDirectory(prefix="bundle_", ignore_cleanup_errors=True) as folder:
        held = private if private.is_file() else None
        bundle = read_bundle(options.bundle, Path(folder), held)
        names = layout.PHASES if options.phase == BOTH else [options.phase]
        phases = [find_phase(bundle, name) for name in names]
        for phase in phases:
            find_tasks(bundle, phase, options.tasks)
            if options.submission or options.submissions:
                require_answers(bundle, phase, private)
        if options.submission is not None:
            n_failed = score_one(bundle, phases[0], options)
        elif options.submissions is not None:
            digest = made.digest(options.bundle) + (made.digest(held) if held else "")
            n_failed = score_folder(bundle, digest, phases, options)
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
        "--phase",
        metavar="NAME",
        default=layout.PHASES[0],
        help="public (default), private, or both: the private one in a folder beside the other's",
    )
    p.add_argument(
        "--private",
        type=Path,
        metavar="FILE",
        help="the private part of the bundle (default: BUNDLE_private.zip beside it)",
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
        help="default data/test_output/leaderboard, of the private phase …/leaderboard_private",
    )
    p.add_argument(
        "--watch",
        type=cli.count,
        metavar="SECONDS",
        help="look for new submissions again and again, until Control-C",
    )
    p.add_argument(
        "--site",
        type=Path,
        metavar="DIR",
        help="publish the leaderboards, with the competition's pages and files, as a folder of "
        "pages for any web server",
    )
    return p.parse_args()


def describe(bundle: Bundle) -> list[str]:
    """Return lines that say what is in a bundle."""
    lines = [printable(bundle.title)]
    for phase in bundle.phases:
        names = "; ".join(printable(bundle.tasks[index].name) for index in phase.tasks)
        lines.append(
            f"{printable(phase.name)}: from {phase.start} to {phase.end}, {phase.time_limit} s; "
            f"{names}"
        )
    columns = ", ".join(printable(column.title) for column in bundle.columns)
    return [*lines, f"Leaderboard: {columns}"]


def find_tasks(bundle: Bundle, phase: Phase, numbers: Sequence[int] | None) -> list[Task]:
    """Return the tasks of a phase, or those of the given numbers."""
    tasks = [bundle.tasks[index] for index in phase.tasks]
    for number in numbers or ():
        if number not in [task.number for task in tasks]:
            names = ", ".join(printable(task.name) for task in tasks)
            raise InputError(f"--tasks {number}: the phase has no such task, expected {names}")
    return [task for task in tasks if numbers is None or task.number in numbers]


def tasks_of(tasks: Sequence[Task], submission: Path) -> list[Task]:
    """Return those tasks whose file a zip holds, or else all of them."""
    with zips.open_zip(submission) as archive:
        names = set(archive.namelist())
    return [task for task in tasks if FILES.get(task.number) in names] or list(tasks)


def score_one(bundle: Bundle, phase: Phase, options: argparse.Namespace) -> int:
    """Score one submission, print its scores; return on how many tasks it failed."""
    path: Path = options.submission
    tasks = find_tasks(bundle, phase, options.tasks)
    # Tasks that the user has named are all meant.
    chosen = tasks_of(tasks, path) if options.tasks is None else tasks
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
            name = re.sub(r"\W+", "_", task.name.lower()).strip("_")
            page = (options.output_dir or DEFAULT_DIR) / f"detailed_results_{name}.html"
            io.write_text(page, result.details)
            print(f"  written: {cli.show(page)}")
        if result.fault:
            n_failed += 1
            cli.print_fault(f"{cli.show(path)}: {printable(task.name)}: {result.fault}")
    return n_failed


def score_folder(
    bundle: Bundle, digest: str, phases: Sequence[Phase], options: argparse.Namespace
) -> int:
    """Score a folder of submissions, once or whenever it changes; return how many failed."""
    # Importing it takes a while, which `--help` does without.
    import site_pages

    folders = {}
    for phase in phases:
        folder: Path = options.output_dir or DEFAULT_DIR
        if phase.name.lower() == layout.PHASES[1] and (len(phases) > 1 or not options.output_dir):
            folder = folder.with_name(f"{folder.name}_private")
        folders[phase.name] = folder
    known = {name: read_records(folder, digest) for name, folder in folders.items()}
    seen: list[tuple[Submitted, int]] = []
    while True:
        submissions = find_submissions(options.submissions, may_be_empty=bool(options.watch))
        found = [(submission, submission.path.stat().st_size) for submission in submissions]
        if found and found != seen:
            n_failed = 0
            for phase in phases:
                tasks = find_tasks(bundle, phase, options.tasks)
                attempts = score_all(
                    bundle, digest, phase, tasks, submissions, known[phase.name],
                    folders[phase.name],
                )  # fmt: skip
                n_failed += write(bundle, phase, attempts, folders[phase.name])
            if options.site:
                site_pages.write(options.site, bundle, folders)
                print(f"written: {cli.show(options.site / 'index.html')}")
        if not options.watch:
            return n_failed
        seen = found
        time.sleep(options.watch)


def score_all(
    bundle: Bundle,
    digest: str,
    phase: Phase,
    tasks: Sequence[Task],
    submissions: Sequence[Submitted],
    known: dict[tuple[str, int], dict[str, Any]],
    output_dir: Path,
) -> list[dict[str, Any]]:
    """Score submissions in a phase; return the attempts that `leaderboard.as_frame` takes.

    What was scored before, by a run that was stopped too, is known from a file of records, a line
    of JSON each.
    """
    of_phase = [bundle.tasks[index] for index in phase.tasks]
    attempts: list[dict[str, Any]] = []
    runs: dict[tuple[str, int], list[Submitted]] = {}
    for submitted in submissions:
        about = {"team": submitted.team, "file": submitted.file, "submitted": submitted.time}
        try:
            # What is for other tasks only is none of these tasks' failures.
            held = tasks_of(of_phase, submitted.path)
        except InputError as error:
            fault = str(error).removeprefix(f"{submitted.path}: ")
            attempts.append({**about, "task": -1, "fault": fault, "details": ""})
            continue
        for task in tasks:
            if task in held:
                runs.setdefault((submitted.team, task.index), []).append(submitted)
    n_reused = 0
    chosen = []
    for (team, index), of_team in runs.items():
        chosen += [(submitted, bundle.tasks[index]) for submitted in of_team]
        if n_left_out := max(0, len(of_team) - phase.max_submissions):
            del chosen[-len(of_team) : -phase.max_submissions]
            print(
                f"note: {team}: {n_left_out} earlier of {len(of_team)} submissions to "
                f"{bundle.tasks[index].name} left out, the phase takes {phase.max_submissions}"
            )
    chosen.sort(key=lambda of: (of[0].time, of[0].file))
    for submitted, task in tqdm(chosen, desc="Submissions", disable=None):
        submission = made.digest(submitted.path)
        record = known.get((submission, task.index))
        n_reused += record is not None
        if record is None:
            result = submission_run.score(submitted.path, task, bundle, phase.time_limit)
            record = {
                "bundle": digest, "submission": submission, "task": task.index,
                "scores": result.scores, "fault": result.fault, "details": "",
            }  # fmt: skip
            if result.details and not result.fault:
                record["details"] = (
                    f"{DETAILS_DIR}/{submission[:16]}_{digest[:8]}_{task.index}.html"
                )
                io.write_text(output_dir / record["details"], result.details)
            output_dir.mkdir(parents=True, exist_ok=True)
            run_log.append_line(output_dir / RECORDS_NAME, record)
            known[submission, task.index] = record
        told = {name: record[name] for name in ("task", "fault", "details")}
        about = {"team": submitted.team, "file": submitted.file, "submitted": submitted.time}
        attempts.append({**record["scores"], **about, **told})
    n_failed = sum(bool(attempt["fault"]) for attempt in attempts)
    print(
        f"{phase.name}: {len(attempts)} results: {len(attempts) - n_failed} scored, {n_failed} "
        f"failed; {n_reused} of them reused"
    )
    return sorted(attempts, key=lambda attempt: (attempt["submitted"], attempt["file"]))


def read_records(folder: Path, bundle: str) -> dict[tuple[str, int], dict[str, Any]]:
    """Return what was scored with a bundle, by the submission's digest and the task's index.

    What failed is not there, and so is tried again, since the machine may have been busy, as is
    what has lost its page.
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


def find_submissions(folder: Path, may_be_empty: bool = False) -> list[Submitted]:
    """Find TEAM.zip and TEAM/*.zip in a folder, in order of their times.

    Raises
    ------
    InputError
        If there is no such folder, or no zip in it, unless one may come.
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
        submitted = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        found.append(Submitted(path, printable(team), printable(name.as_posix()), submitted))
    if not found and not may_be_empty:
        raise InputError(f"{folder}: holds no submission, expected TEAM.zip or TEAM/*.zip")
    return sorted(found, key=lambda of: (of.time, of.file))


def write(bundle: Bundle, phase: Phase, attempts: Sequence[dict[str, Any]], folder: Path) -> int:
    """Print the leaderboards, and write their files, all or none; return how many failed."""
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
    failed = [attempt for attempt in attempts if attempt["fault"]]
    for attempt in failed:
        name = f": {bundle.tasks[attempt['task']].name}" if attempt["task"] >= 0 else ""
        cli.print_fault(f"{attempt['file']}{name}: {attempt['fault']}")
    print(f"written: {cli.show(paths[0])}")
    return len(failed)


if __name__ == "__main__":
    cli.run(main)
