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
import json
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from common import cli, fingerprints, layout, reading, run_log, writing, zips
from common.errors import InputError, printable
from common.tasks import TASKS

import leaderboard
import pandas as pd
from bundle import Bundle, Phase, Task, read_bundle, score
from tqdm import tqdm

DEFAULT_DIR = layout.TEST_OUTPUT_DIR / "leaderboard"
RECORDS_NAME, DETAILS_DIR = "leaderboard_results.jsonl", "details"
BOTH = "both"
# By the submission's digest and the task's index.
Records = dict[tuple[str, int], dict[str, Any]]
# A submission in a folder, with file and team as they may be shown: values by these names.
Submitted = dict[str, Any]
_SUBMITTED = ("submitted", "file", "team", "path", "size")


def main() -> None:
    """Read the bundle, then score one submission or a folder of them, or say what it holds."""
    options = build_parser().parse_args()
    if options.submission and options.submissions:
        raise InputError("expected either a submission or --submissions DIR, not both")
    if not options.submissions and (options.watch or options.site or options.phase == BOTH):
        raise InputError("--watch, --site and --phase both: are for --submissions DIR")
    path: Path = options.bundle
    private = options.private or path.with_name(f"{path.name.removesuffix('.zip')}_private.zip")
    if options.private:
        reading.require_file(private)
    held = private if private.is_file() else None
    with tempfile.TemporaryDirectory(prefix="bundle_", ignore_cleanup_errors=True) as folder:
        bundle = read_bundle(path, Path(folder), held)
        phases = _find_phases(bundle, options, private)
        n_failed = 0
        if options.submission:
            n_failed = _score_one(bundle, *phases[0], options)
        elif options.submissions:
            digest = fingerprints.digest(path) + (fingerprints.digest(held) if held else "")
            n_failed = _score_folder(bundle, digest, phases, options)
        else:
            print(bundle.title)
            for phase in bundle.phases:
                names = "; ".join(task.name for task in phase.tasks)
                limit = f"{phase.execution_time_limit} s"
                print(f"{phase.name}: from {phase.start} to {phase.end}, {limit}; {names}")
            print(f"Leaderboard: {', '.join(column.title for column in bundle.columns)}")
    if n_failed:
        sys.exit(2)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument(
        "bundle", type=Path, metavar="BUNDLE", help="zip, or folder that it unpacks to"
    )
    parser.add_argument(
        "submission", type=Path, metavar="SUBMISSION.zip", nargs="?", help="score this"
    )
    parser.add_argument("--submissions", type=Path, metavar="DIR", help="score all of a folder")
    about_phase = "public (default), private, or both: the private one in a folder of its own"
    parser.add_argument("--phase", metavar="NAME", default=layout.PHASES[0], help=about_phase)
    about_private = "private part of the bundle (default: BUNDLE_private.zip beside it)"
    parser.add_argument("--private", type=Path, metavar="FILE", help=about_private)
    about_tasks = "default: those that the submission holds a file of"
    parser.add_argument("--tasks", type=cli.count, nargs="+", metavar="N", help=about_tasks)
    about_dir = "default data/test_output/leaderboard, of the private phase …/leaderboard_private"
    parser.add_argument("--output_dir", type=Path, metavar="DIR", help=about_dir)
    about_watch = "look for new submissions again and again, until Control-C"
    parser.add_argument("--watch", type=cli.count, metavar="SECONDS", help=about_watch)
    about_site = "publish leaderboards (of both phases the public), pages and files in a folder"
    parser.add_argument("--site", type=Path, metavar="DIR", help=about_site)
    return parser


def _find_phases(
    bundle: Bundle, options: argparse.Namespace, private: Path
) -> list[tuple[Phase, list[Task]]]:
    """Return the phases and tasks that flags name; `InputError` if one lacks answers to score."""
    known = {phase.name.casefold(): phase for phase in bundle.phases}
    found = []
    for name in layout.PHASES if options.phase == BOTH else [options.phase]:
        phase = known.get(name.casefold())
        if phase is None:
            names = ", ".join(phase.name for phase in bundle.phases)
            raise InputError(f"--phase {name}: the bundle has no such phase, expected {names}")
        numbers = [task.number for task in phase.tasks]
        for number in options.tasks or ():
            if number not in numbers:
                names = ", ".join(printable(task.name) for task in phase.tasks)
                raise InputError(f"--tasks {number}: the phase has no such task, expected {names}")
        for task in phase.tasks if options.submission or options.submissions else ():
            settings = task.reference_data / "settings.json"
            if settings.is_file() and json.loads(settings.read_bytes())["mode"] != "scored":
                raise InputError(
                    f"{private}: not found, expected the answers of the {phase.name.lower()} phase,"
                    " which hosting/make_bundle.py writes there (--private names another place)"
                )
        wanted = [task for task in phase.tasks if task.number in (options.tasks or numbers)]
        found.append((phase, wanted))
    return found


def _tasks_of(tasks: Sequence[Task], submission: Path) -> list[Task]:
    """Return those tasks whose file a zip holds, or else all of them."""
    with zips.open_zip(submission) as archive:
        names = set(archive.namelist())
    # A bundle that was edited by hand may have other tasks, with the number 0.
    file_of = {number: task.submission for number, task in TASKS.items()}
    return [task for task in tasks if file_of.get(task.number) in names] or list(tasks)


def _score_one(bundle: Bundle, phase: Phase, tasks: list[Task], options: argparse.Namespace) -> int:
    """Score one submission, print its scores; return on how many tasks it failed."""
    path: Path = options.submission
    # Tasks that the user has named are all meant.
    chosen = _tasks_of(tasks, path) if options.tasks is None else tasks
    results = [
        (task, score(path, task, bundle, phase.execution_time_limit))
        for task in tqdm(chosen, desc="Tasks", disable=None)
    ]
    for task, result in results:
        print(f"{task.name}: {'failed' if result.fault else 'scored'}")
        for line in result.output:
            print(f"  {line}")
        for column in bundle.columns:
            if column.key in result.scores:
                value = f"{result.scores[column.key]:.{column.precision}f}"
                print(f"  {column.title}: {value}")
        if result.details:
            name = re.sub(r"\W+", "_", task.name.lower()).strip("_")
            page = (options.output_dir or DEFAULT_DIR) / f"detailed_results_{name}.html"
            writing.write_files({page: result.details})
            print(f"  written: {cli.show(page)}")
        if result.fault:
            cli.print_fault(f"{cli.show(path)}: {printable(task.name)}: {result.fault}")
    return sum(bool(result.fault) for _, result in results)


# ---- A folder of submissions ---------------------------------------------------------------------


def _score_folder(
    bundle: Bundle, digest: str, phases: list[tuple[Phase, list[Task]]], options: argparse.Namespace
) -> int:
    """Score a folder of submissions, once or whenever it changes; return how many failed."""
    places = []
    for phase, tasks in phases:
        folder: Path = options.output_dir or DEFAULT_DIR
        if phase.name.lower() == layout.PHASES[1] and (len(phases) > 1 or not options.output_dir):
            folder = folder.with_name(f"{folder.name}_private")
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
                print(f"note: {name} is no zip, and is left out")
            for place in places:
                n_failed += _score_all(bundle, digest, submissions, *place)
            if options.site:
                # Of both phases the public one; the private one only by itself.
                leaderboard.publish(options.site, bundle, places[0][0].name, places[0][2])
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
        values = submitted, file, printable(team), path, status.st_size
        found.append(dict(zip(_SUBMITTED, values, strict=True)))
    return sorted(found, key=itemgetter("submitted", "file")), others


def _score_all(
    bundle: Bundle, digest: str, submissions: Sequence[Submitted], phase: Phase,
    tasks: Sequence[Task], folder: Path, known: Records,
) -> int:  # fmt: skip
    """Score what is not known in a phase, write its leaderboards; return how many failed."""
    attempts: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []
    for about in submissions:
        try:
            # What is for other tasks only is none of these tasks' failures.
            held = _tasks_of(phase.tasks, about["path"])
            runs += [{**about, "task": task.index} for task in tasks if task in held]
        except InputError as error:
            fault = str(error).removeprefix(f"{about['path']}: ")
            attempts.append({**about, "task": -1, "fault": fault, "details": ""})
    chosen = pd.DataFrame(runs, columns=[*_SUBMITTED, "task"])
    chosen = chosen.groupby(["team", "task"]).tail(phase.max_submissions)
    if n_left_out := len(runs) - len(chosen):
        taken = f"the phase takes {phase.max_submissions} of a team"
        print(f"note: {n_left_out} earlier submissions are left out: {taken}")
    n_reused = 0
    for run in tqdm(chosen.to_dict("records"), desc="Submissions", disable=None):
        key = fingerprints.digest(run["path"]), run["task"]
        if key in known:
            n_reused += 1
        else:
            task = bundle.tasks[run["task"]]
            result = score(run["path"], task, bundle, phase.execution_time_limit)
            page = ""
            if result.details:
                page = f"{DETAILS_DIR}/{key[0][:16]}_{digest[:8]}_{task.index}.html"
                writing.write_files({folder / page: result.details})
            known[key] = {
                "bundle": digest, "submission": key[0], "task": task.index,
                "scores": result.scores, "fault": result.fault, "details": page,
            }  # fmt: skip
            folder.mkdir(parents=True, exist_ok=True)
            run_log.append_line(folder / RECORDS_NAME, known[key])
        told = {name: known[key][name] for name in ("fault", "details")}
        attempts.append(known[key]["scores"] | run | told)
    attempts.sort(key=itemgetter("submitted", "file"))
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
    """Return what a bundle scored, but what failed (the machine may be busy) or lost its page."""
    path = folder / RECORDS_NAME
    lines = path.read_bytes().splitlines() if path.is_file() else []
    known = {}
    for line in lines:
        # A run that was stopped may have left a line cut off.
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            record = json.loads(line.decode())
            is_scored = record["bundle"] == bundle and not record["fault"]
            are_numbers = all(isinstance(score, float) for score in record["scores"].values())
            if is_scored and are_numbers and (folder / record["details"]).exists():
                known[record["submission"], record["task"]] = record
    return known


if __name__ == "__main__":
    cli.run(main)
