"""Play the competition platform on this machine: score submissions with a bundle.

Run:     python hosting/run_locally.py BUNDLE                       what is in it?
         python hosting/run_locally.py BUNDLE SUBMISSION.zip
         python hosting/run_locally.py BUNDLE --submissions DIR --phase private
         python hosting/run_locally.py BUNDLE --submissions DIR --watch 60 --site public_html
Writes:  the page of each score; with --submissions leaderboard.html and leaderboard.csv

BUNDLE is what hosting/make_bundle.py writes, or its unpacked folder; the private phase needs the
private part beside it. DIR holds TEAM.zip, or TEAM/*.zip; a file's time counts as the time of
submission, and of each team and task the last ones, as many as the phase takes in all. Scores that
a file got with the same bundle before are reused; what failed is tried again.

The exit code is 2 if the bundle is wrong, or any submission could not be scored.
"""

import argparse
import contextlib
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from common import cli, io, layout, made, run_log, zips
from common.adaptive.entry_files import ENTRY_FILE
from common.errors import InputError, printable

import submission_run
from bundle import Bundle, Phase, Task, find_phase, private_part_of, read_bundle, require_answers
from tqdm import tqdm

DEFAULT_DIR = layout.TEST_OUTPUT_DIR / "leaderboard"
RECORDS_NAME, DETAILS_DIR = "leaderboard_results.jsonl", "details"
# The file of each task in a zip.
FILES = {task: layout.submission_name(task) for task in (1, 2, 3)} | {4: ENTRY_FILE}
BOTH = "both"
# By the submission's digest and the task's index.
Records = dict[tuple[str, int], dict[str, Any]]


class Submitted(NamedTuple):
    """A submission in a folder, with team and name as they may be shown."""

    submitted: datetime
    file: str
    team: str
    path: Path
    size: int


def main() -> None:
    """Read the bundle, then score one submission or a folder of them, or say what it holds."""
    options = _parse()
    if options.submission and options.submissions:
        raise InputError("expected either a submission or --submissions DIR, not both")
    if not options.submissions and (options.watch or options.site or options.phase == BOTH):
        raise InputError("--watch, --site and --phase both: are for --submissions DIR")
    private: Path = options.private or private_part_of(options.bundle)
    if options.private:
        io.require_file(private)
    held = private if private.is_file() else None
    with tempfile.TemporaryDirectory(prefix="bundle_", ignore_cleanup_errors=True) as folder:
        bundle = read_bundle(options.bundle, Path(folder), held)
        names = layout.PHASES if options.phase == BOTH else [options.phase]
        phases = [find_phase(bundle, name) for name in names]
        n_failed = 0
        for phase in phases:
            _find_tasks(phase, options.tasks)
            if options.submission or options.submissions:
                require_answers(phase, private)
        if options.submission:
            n_failed = _score_one(bundle, phases[0], options)
        elif options.submissions:
            digest = made.digest(options.bundle) + (made.digest(held) if held else "")
            n_failed = _score_folder(bundle, digest, phases, options)
        else:
            print("\n".join(_describe(bundle)))
    if n_failed:
        sys.exit(2)


def _parse() -> argparse.Namespace:
    p = cli.parser(__doc__)
    p.add_argument("bundle", type=Path, metavar="BUNDLE", help="zip, or folder that it unpacks to")
    p.add_argument("submission", type=Path, metavar="SUBMISSION.zip", nargs="?", help="score this")
    p.add_argument("--submissions", type=Path, metavar="DIR", help="score all of a folder")
    about_phase = "public (default), private, or both: the private one in a folder of its own"
    p.add_argument("--phase", metavar="NAME", default=layout.PHASES[0], help=about_phase)
    about_private = "private part of the bundle (default: BUNDLE_private.zip beside it)"
    p.add_argument("--private", type=Path, metavar="FILE", help=about_private)
    about_tasks = "default: those that the submission holds a file of"
    p.add_argument("--tasks", type=cli.count, nargs="+", metavar="N", help=about_tasks)
    about_dir = "default data/test_output/leaderboard, of the private phase …/leaderboard_private"
    p.add_argument("--output_dir", type=Path, metavar="DIR", help=about_dir)
    about_watch = "look for new submissions again and again, until Control-C"
    p.add_argument("--watch", type=cli.count, metavar="SECONDS", help=about_watch)
    about_site = "publish leaderboards (of both phases the public), pages and files in a folder"
    p.add_argument("--site", type=Path, metavar="DIR", help=about_site)
    return p.parse_args()


def _describe(bundle: Bundle) -> list[str]:
    """Return lines that say what is in a bundle."""
    lines = [bundle.title]
    for phase in bundle.phases:
        names = "; ".join(task.name for task in phase.tasks)
        limit = f"{phase.execution_time_limit} s"
        lines.append(f"{phase.name}: from {phase.start} to {phase.end}, {limit}; {names}")
    columns = ", ".join(column.title for column in bundle.columns)
    return [printable(line) for line in (*lines, f"Leaderboard: {columns}")]


def _find_tasks(phase: Phase, numbers: Sequence[int] | None) -> list[Task]:
    """Return the tasks of a phase, or those of the given numbers."""
    for number in numbers or ():
        if number not in [task.number for task in phase.tasks]:
            names = ", ".join(printable(task.name) for task in phase.tasks)
            raise InputError(f"--tasks {number}: the phase has no such task, expected {names}")
    return [task for task in phase.tasks if numbers is None or task.number in numbers]


def _tasks_of(tasks: Sequence[Task], submission: Path) -> list[Task]:
    """Return those tasks whose file a zip holds, or else all of them."""
    with zips.open_zip(submission) as archive:
        names = set(archive.namelist())
    return [task for task in tasks if FILES.get(task.number) in names] or list(tasks)


def _score_one(bundle: Bundle, phase: Phase, options: argparse.Namespace) -> int:
    """Score one submission, print its scores; return on how many tasks it failed."""
    path: Path = options.submission
    tasks = _find_tasks(phase, options.tasks)
    # Tasks that the user has named are all meant.
    chosen = _tasks_of(tasks, path) if options.tasks is None else tasks
    results = [
        (task, submission_run.score(path, task, bundle, phase.execution_time_limit))
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


# ---- A folder of submissions ---------------------------------------------------------------------


def _score_folder(
    bundle: Bundle, digest: str, phases: Sequence[Phase], options: argparse.Namespace
) -> int:
    """Score a folder of submissions, once or whenever it changes; return how many failed."""
    # Importing it takes a while, which `--help` does without.
    import site_pages

    places = []
    for phase in phases:
        folder: Path = options.output_dir or DEFAULT_DIR
        if phase.name.lower() == layout.PHASES[1] and (len(phases) > 1 or not options.output_dir):
            folder = folder.with_name(f"{folder.name}_private")
        tasks = _find_tasks(phase, options.tasks)
        places.append((phase, tasks, folder, _read_records(folder, digest)))
    seen: list[Submitted] = []
    while True:
        submissions, others = _find_submissions(options.submissions)
        if not submissions and not options.watch:
            fault = "holds no submission, expected TEAM.zip or TEAM/*.zip"
            raise InputError(f"{options.submissions}: {fault}")
        n_failed = 0
        if submissions != seen:
            for name in others:
                print(f"note: {printable(name)} is no zip, and is left out")
            for place in places:
                n_failed += _score_all(bundle, digest, submissions, *place)
            if options.site:
                # Of both phases the public one: the private one when it is asked for by itself.
                site_pages.write(options.site, bundle, places[0][0].name, places[0][2])
                print(f"written: {cli.show(options.site / 'index.html')}")
        if not options.watch:
            return n_failed
        seen = submissions
        time.sleep(options.watch)


def _find_submissions(folder: Path) -> tuple[list[Submitted], list[str]]:
    """Find TEAM.zip and TEAM/*.zip in a folder, in order of their times, and what is no zip."""
    if not folder.is_dir():
        raise InputError(f"{folder}: not found, expected a folder of submissions")
    found, others = [], []
    for path in (*folder.glob("*"), *folder.glob("*/*")):
        name = path.relative_to(folder)
        if not path.is_file() or any(part.startswith((".", "__MACOSX")) for part in name.parts):
            continue
        if path.suffix.lower() != ".zip":
            others.append(str(name))
            continue
        team = path.stem if path.parent == folder else path.parent.name
        status = path.stat()
        submitted, file = datetime.fromtimestamp(status.st_mtime, UTC), printable(name.as_posix())
        found.append(Submitted(submitted, file, printable(team), path, status.st_size))
    return sorted(found), others


def _score_all(
    bundle: Bundle, digest: str, submissions: Sequence[Submitted], phase: Phase,
    tasks: Sequence[Task], folder: Path, known: Records,
) -> int:  # fmt: skip
    """Score submissions in a phase, write its leaderboards; return how many failed.

    What was scored is known from a file of records, so that nothing is scored twice.
    """
    import leaderboard

    attempts: list[dict[str, Any]] = []
    runs: list[tuple[Submitted, Task]] = []
    for submitted in submissions:
        try:
            # What is for other tasks only is none of these tasks' failures.
            held = _tasks_of(phase.tasks, submitted.path)
            runs += [(submitted, task) for task in tasks if task in held]
        except InputError as error:
            fault = str(error).removeprefix(f"{submitted.path}: ")
            attempts.append({**submitted._asdict(), "task": -1, "fault": fault, "details": ""})
    # Of each team and task the last ones, from the last to the first.
    n_taken: Counter[tuple[str, int]] = Counter()
    chosen: list[tuple[Submitted, Task]] = []
    for submitted, task in reversed(runs):
        n_taken[submitted.team, task.index] += 1
        if n_taken[submitted.team, task.index] <= phase.max_submissions:
            chosen.insert(0, (submitted, task))
    if n_left_out := len(runs) - len(chosen):
        taken = f"the phase takes {phase.max_submissions} of a team"
        print(f"note: {n_left_out} earlier submissions are left out: {taken}")
    n_reused = 0
    for submitted, task in tqdm(chosen, desc="Submissions", disable=None):
        key = made.digest(submitted.path), task.index
        if key in known:
            n_reused += 1
        else:
            result = submission_run.score(submitted.path, task, bundle, phase.execution_time_limit)
            page = ""
            if result.details:
                page = f"{DETAILS_DIR}/{key[0][:16]}_{digest[:8]}_{task.index}.html"
                io.write_text(folder / page, result.details)
            known[key] = {
                "bundle": digest, "submission": key[0], "task": task.index,
                "scores": result.scores, "fault": result.fault, "details": page,
            }  # fmt: skip
            folder.mkdir(parents=True, exist_ok=True)
            run_log.append_line(folder / RECORDS_NAME, known[key])
        told = {name: known[key][name] for name in ("task", "fault", "details")}
        attempts.append({**known[key]["scores"], **submitted._asdict(), **told})
    attempts.sort(key=lambda attempt: (attempt["submitted"], attempt["file"]))
    leaderboard.write(bundle, phase.name, attempts, folder)
    failed = [attempt for attempt in attempts if attempt["fault"]]
    for attempt in failed:
        name = f": {bundle.tasks[attempt['task']].name}" if attempt["task"] >= 0 else ""
        cli.print_fault(f"{attempt['file']}{name}: {attempt['fault']}")
    n_scored = len(attempts) - len(failed)
    counts = f"{n_scored} scored, {len(failed)} failed; {n_reused} of them reused"
    print(f"{len(attempts)} results: {counts}")
    return len(failed)


def _read_records(folder: Path, bundle: str) -> Records:
    """Return what was scored with a bundle.

    Not what failed, which is tried again since the machine may have been busy, or lost its page.
    """
    path = folder / RECORDS_NAME
    lines = path.read_bytes().splitlines() if path.is_file() else []
    known = {}
    for line in lines:
        # A run that was stopped may have left a line cut off.
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            record = io.parse_json(line.decode())
            is_scored = record["bundle"] == bundle and not record["fault"]
            are_numbers = all(isinstance(score, float) for score in record["scores"].values())
            if is_scored and are_numbers and (folder / record["details"]).exists():
                known[record["submission"], record["task"]] = record
    return known


if __name__ == "__main__":
    cli.run(main)
