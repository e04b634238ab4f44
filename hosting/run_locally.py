"""Play the competition platform on this machine: check a bundle, score submissions with it.

Run:     python hosting/run_locally.py BUNDLE                   would the platform take it?
         python hosting/run_locally.py BUNDLE SUBMISSION.zip
         python hosting/run_locally.py BUNDLE --submissions DIR --phase private
Writes:  the page of each score; with --submissions leaderboard.html, leaderboard.csv, and
         leaderboard_task_N_mle_bench.csv in the form of MLE-bench

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
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from common import cli, io, layout, made, zips
from common.adaptive.entry_files import ENTRY_FILE
from common.errors import InputError, printable

import leaderboard
import leaderboard_page
import platform_rules
import submission_records
import submission_run
from leaderboard import Attempt, task_number
from platform_rules import Bundle, Phase, Task
from tqdm import tqdm

DEFAULT_DIR = layout.TEST_OUTPUT_DIR / "leaderboard"


@dataclass(frozen=True)
class Submission:
    """A file that a team has handed in, and when."""

    team: str
    path: Path
    file: str
    submitted: datetime


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


def choose_tasks(tasks: Sequence[Task], submission: Path, named: bool) -> list[Task]:
    """Return the tasks that a submission is for: whose file it holds, or else all of them.

    Parameters
    ----------
    tasks
        To choose from.
    submission
        The zip.
    named
        Whether the user has named the tasks, so that all of them are meant.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    with zips.open_zip(submission) as archive:
        names = set(archive.namelist())
    files = {1: layout.submission_name(1), 2: layout.submission_name(2)}
    files |= {3: layout.submission_name(3), 4: ENTRY_FILE}
    held = [task for task in tasks if files.get(task_number(task) or 0) in names]
    return held if held and not named else list(tasks)


def score_one(
    bundle: Bundle, phase: Phase, tasks: Sequence[Task], options: argparse.Namespace
) -> int:
    """Score one submission, print its scores; return on how many tasks it failed."""
    path: Path = options.submission
    chosen = choose_tasks(tasks, path, options.tasks is not None)
    results = [
        (task, submission_run.score(path, task, bundle.columns, bundle.primary, phase.time_limit))
        for task in tqdm(chosen, desc="Tasks", disable=None)
    ]
    n_failed = 0
    for task, result in results:
        print(f"{printable(task.name)}: " + ("failed" if result.fault else "scored"))
        for line in result.output:
            print(f"  {line}")
        for column in bundle.columns:
            if column.key in result.scores:
                print(
                    f"  {printable(column.title)}: {result.scores[column.key]:.{column.precision}f}"
                )
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
    """Score a folder of submissions, write the leaderboards; return how many results failed."""
    submissions = find_submissions(options.submissions)
    records = submission_records.Records(options.output_dir, made.digest(options.bundle))
    of_phase = [bundle.tasks[index] for index in phase.tasks]
    attempts: list[Attempt] = []
    for submission in tqdm(submissions, desc="Submissions", disable=None):
        about = (submission.team, submission.file, submission.submitted)
        try:
            # What is for other tasks only is none of these tasks' failures.
            held = choose_tasks(of_phase, submission.path, named=False)
            chosen = [task for task in tasks if task in held]
            sha = made.digest(submission.path)
        except InputError as error:
            fault = str(error).removeprefix(f"{submission.path}: ")
            attempts.append(Attempt(*about, None, {}, fault))
            continue
        for task in chosen:
            found = records.find(sha, task)
            if found is None:
                result = submission_run.score(
                    submission.path, task, bundle.columns, bundle.primary, phase.time_limit
                )
                found = records.add(sha, task, result, bundle.enable_detailed_results)
            attempts.append(
                Attempt(*about, task, found["scores"], found["fault"], found["details"])
            )
    write(bundle, phase, attempts, options.output_dir)
    failed = [attempt for attempt in attempts if attempt.fault]
    for attempt in failed:
        task_name = f": {attempt.task.name}" if attempt.task else ""
        cli.print_fault(f"{attempt.file}{task_name}: {attempt.fault}")
    print(
        f"{len(attempts)} results: {len(attempts) - len(failed)} scored, {len(failed)} failed; "
        f"{records.n_reused} of them reused"
    )
    return len(failed)


def find_submissions(folder: Path) -> list[Submission]:
    """Find TEAM.zip and TEAM/*.zip in a folder, in the order of their times.

    Raises
    ------
    InputError
        If there is no such folder, or no zip in it.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: not found, expected a folder of submissions")
    files = [
        *folder.iterdir(),
        *(file for team in folder.iterdir() if team.is_dir() for file in team.iterdir()),
    ]
    files = [path for path in files if path.is_file() and not _is_hidden(path.relative_to(folder))]
    found = []
    for path in files:
        if path.suffix.lower() != ".zip":
            print(f"note: {printable(str(path.relative_to(folder)))} is no zip, and is left out")
            continue
        team = path.stem if path.parent == folder else path.parent.name
        name = printable(path.relative_to(folder).as_posix())
        submitted = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        found.append(Submission(printable(team), path, name, submitted))
    if not found:
        raise InputError(f"{folder}: holds no submission, expected TEAM.zip or TEAM/*.zip")
    return sorted(found, key=lambda submission: (submission.submitted, submission.file))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)


def write(bundle: Bundle, phase: Phase, attempts: Sequence[Attempt], folder: Path) -> None:
    """Print the leaderboards, and write their files, all or none."""
    boards = leaderboard.make_boards(bundle, attempts)
    for board in boards:
        print(leaderboard.as_text(bundle, board), end="\n\n")
    written = f"written {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    page = leaderboard_page.as_page(bundle, phase.name, boards, attempts, written)
    names = map(leaderboard.mle_bench_name, boards)
    paths = [folder / name for name in ("leaderboard.html", "leaderboard.csv", *names)]
    with io.atomic_write(*paths) as files:
        files[0].write(page.encode("utf-8"))
        leaderboard.write_csv_to(files[1], bundle, phase.name, boards)
        for file, board in zip(files[2:], boards, strict=True):
            leaderboard.write_mle_bench_to(file, bundle, board)
    print(f"written: {cli.show(paths[0])}")


if __name__ == "__main__":
    cli.run(main)
