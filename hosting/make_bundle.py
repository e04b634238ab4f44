"""Make a competition out of the kit: bundles to upload to Codabench, or to run from a folder.

    python hosting/make_bundle.py --output bundle.zip                  a bundle for each task
    python hosting/make_bundle.py --tasks 1 2 --size full --output bundle.zip      these in one
    python hosting/make_bundle.py --answers my_class.csv --output bundle.zip
    python hosting/make_bundle.py --official data --output bundle.zip  the released answers of 2020

Writes:  for each task bundle_task_1.zip, to upload, and bundle_task_1_private.zip, to keep: the
         answers of the private phase

Simulated answers come from a secret seed: nobody can look them up, and no licence stands in the
way. `hosting/README.md` leads from here to a running competition; `hosting/run_locally.py` tries
it, or runs it without a server.
"""

import argparse
import hashlib
import importlib
import json
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import ModuleType

from common import cli, fingerprints, layout, reading, writing, zips
from common.errors import InputError, quote
from common.tasks import TASKS
from tools.templates import build_templates

import competition
import numpy as np
import own_answers
from bundle_files import describe_public, write_for_participants, write_for_platform
from competition import Plan
from tqdm import tqdm

# Whoever tries seeds must not find the one: the generator is public, and so are the questions.
_MIN_SEED = 16
_WEEKS = 12


def main() -> None:
    """Make the bundles that the flags describe."""
    options = build_parser().parse_args()
    plan = _plan(options)
    # Together if they were asked for by number, else each for itself.
    output: Path = options.output
    plans = {
        output.with_stem(f"{output.stem}_task_{task}"): replace(plan, tasks=(task,))
        for task in plan.tasks
        if not options.tasks
    } or {output: plan}
    names = [name for path in plans for name in (path, path.with_stem(f"{path.stem}_private"))]
    cli.require_outputs(names, [options.answers])
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="bundle_") as temporary:
        base = Path(temporary)
        with tqdm(total=2 + len(plans), desc="Bundles", leave=None, disable=None) as steps:
            data_dir, notes = _get_data(options, base, plan.tasks)
            steps.update()
            templates = base / layout.TEMPLATE_DIR.name
            if any(TASKS[number].template for number in plan.tasks):
                build_templates(data_dir, templates)
            for path, part in plans.items():
                bundle, private = base / path.stem, base / f"{path.stem}_private"
                write_for_platform(data_dir, templates, bundle, private, part)
                write_for_participants(data_dir, templates, bundle, part)
                competition.write(bundle, part, describe_public(data_dir, part.tasks))
                folder, lists = (place / competition.ORGANISER_DIR for place in (private, data_dir))
                if marker := fingerprints.simulated_files(data_dir) and fingerprints.read_marker(
                    data_dir
                ):
                    known = {"best_expected_accuracy": marker["best_expected_accuracy"]}
                    writing.write_files(
                        {folder / "best_possible.json": json.dumps(known, indent=1) + "\n"}
                    )
                if lists.is_dir():
                    shutil.copytree(lists, folder, dirs_exist_ok=True)
                steps.update()
            with writing.atomic_write(*names) as files:
                for file, name in zip(files, names, strict=True):
                    folder = base / name.stem
                    inside = sorted(filter(Path.is_file, folder.rglob("*")))
                    members = {path.relative_to(folder).as_posix(): path for path in inside}
                    zips.write_zip_to(file, members)
            steps.update()
    for path in names:
        size = f"{path.stat().st_size / 1e6:,.1f} MB"
        kept = "the private answers: keep it, upload it nowhere"
        print(f"{cli.show(path)}: {size}, {'to upload' if path in plans else kept}")
    tasks = f"tasks {', '.join(map(str, plan.tasks))}"
    print(f"{tasks}; {plan.dates}; {time.perf_counter() - started:.1f} s")
    if plan.days["private"][1] < datetime.now(UTC).date():
        end = plan.days["private"][1]
        notes.append(f"warning: the last day, {end}, is past: nobody can submit")
    if plan.private_on_server:
        notes.append(
            "warning: the private answers are in what is uploaded: some servers hand such files to "
            "anybody who asks, without a login; `python hosting/check_server.py URL` tells"
        )
    print(*notes, "all of it holds answers: give none of it to anybody", sep="\n")
    print(f"next: python hosting/run_locally.py {cli.show(names[0])} SUBMISSION.zip")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    least, days = own_answers.MIN_ANSWERS_OF_EACH, competition.FINAL_DAYS
    tasks = "in one bundle (default: a bundle for each that is there; with --answers 1 2 4)"
    parser.add_argument("--tasks", type=int, nargs="+", choices=tuple(TASKS), help=tasks)
    source = parser.add_mutually_exclusive_group()
    official = "the official files, laid out like data/: their answers are public"
    source.add_argument("--official", type=Path, metavar="DIR", help=official)
    own = "CSV of your own with QuestionId, UserId, AnswerValue, CorrectAnswer"
    source.add_argument("--answers", type=Path, metavar="FILE", help=own)
    size = "size of the simulated data (default small)"
    source.add_argument("--size", choices=("tiny", "small", "full"), help=size)
    few = "with --answers: leave out questions and students with fewer answers (default "
    few += f"{least}, 0 for none)"
    parser.add_argument("--min_answers", type=cli.seed, metavar="N", help=few)
    seed = f"a text of {_MIN_SEED} characters or more, which makes the same competition again "
    seed += "(default: drawn, and forgotten)"
    parser.add_argument("--seed", metavar="SECRET", help=seed)
    parser.add_argument("--title", default=competition.TITLE, help=f"default: {competition.TITLE}")
    parser.add_argument("--contact", metavar="ADDRESS", default="", help="e-mail of the organisers")
    first = "first day, 2027-01-31 (default: today)"
    parser.add_argument("--start", type=_day, metavar="DATE", help=first)
    last = f"last day (default: {_WEEKS} weeks later)"
    parser.add_argument("--end", type=_day, metavar="DATE", help=last)
    cli.add_number(parser, "--final_days", days, "length of the private phase at the end")
    server = "upload the private answers too, and let the server score the private phase"
    parser.add_argument("--private_on_server", action="store_true", help=server)
    parser.add_argument(
        "--output", type=Path, metavar="FILE", required=True, help="the bundle, a zip"
    )
    return parser


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a date such as 2027-01-31") from None


def _plan(options: argparse.Namespace) -> Plan:
    """Check the flags, and plan the competition; `InputError` if they contradict one another."""
    if options.min_answers is not None and not options.answers:
        raise InputError("--min_answers: is for answers of your own, with --answers")
    if options.seed is not None and len(options.seed) < _MIN_SEED:
        raise InputError(
            f"--seed: has {len(options.seed)} characters, expected at least {_MIN_SEED}: whoever "
            "guesses it can compute the answers"
        )
    if options.seed is not None and options.official:
        raise InputError("--seed: is for simulated answers and splits, not with --official")
    if options.output.suffix.lower() != ".zip" or options.output.is_dir():
        raise InputError(f"{options.output}: expected the name of a zip, such as bundle.zip")
    title, most = options.title.strip(), competition.MAX_TITLE
    if not title or not title.isprintable() or len(title) > most:
        raise InputError(
            f"--title: is {quote(options.title)}, expected one line of 1 to {most} characters"
        )
    name, _, place = options.contact.partition("@")
    if options.contact and (not name or "." not in place or " " in options.contact):
        raise InputError(
            f"--contact: is {quote(options.contact)}, expected an address such as name@example.org"
        )
    tasks = sorted(set(options.tasks or _tasks_of(options)))
    start = options.start or datetime.now(UTC).date()
    days = options.final_days
    try:
        end = options.end or start + timedelta(weeks=_WEEKS)
        first_end = start + timedelta(days=days)
    except OverflowError:
        expected = f"expected an end before the year {date.max.year}"
        raise InputError(f"--start: is {start}, with {days} private days, {expected}") from None
    if end < first_end:
        raise InputError(
            f"--end: is {end}, expected {first_end} or later: the private phase takes the last "
            f"{days} days, and the public one at least one"
        )
    last = end - timedelta(days=days)
    phases = {"public": (start, last), "private": (last + timedelta(days=1), end)}
    origin = "official" if options.official else "own" if options.answers else "simulated"
    more = origin, options.contact, options.private_on_server
    return Plan(tuple(tasks), title, phases, *more)


def _tasks_of(options: argparse.Namespace) -> list[int]:
    """Return the tasks that the answers allow."""
    if not options.official:
        return [1, 2, 4] if options.answers else [*TASKS]
    files = {task: _released_answers(options.official, task) for task in TASKS}
    found = [task for task, paths in files.items() if all(path.is_file() for path in paths)]
    if not found:
        path = files[1][0]
        raise InputError(
            f"{path.parent}: holds the released answers of no task, expected {path.name} and "
            "others; `python data/download.py` fetches them, `python data/generate_sample.py` "
            "simulates some"
        )
    return found


def _released_answers(folder: Path, task: int) -> list[Path]:
    """Return the files of a folder like `data/` that hold the answers of both phases."""
    names = [TASKS[task].answers_name(phase) for phase in layout.PHASES]
    return [folder / layout.TEST_DIR.name / name for name in names]


def _get_data(
    options: argparse.Namespace, base: Path, tasks: Sequence[int]
) -> tuple[Path, list[str]]:
    """Return a folder laid out like `data/`, with the answers of both phases, and what to know."""
    if options.official:
        for task in tasks:
            for path in _released_answers(options.official, task):
                reading.require_file(path)
        note = (
            f"{cli.show(options.official)} holds simulated answers, not the official ones that the "
            "pages describe: this bundle is for trying only"
        )
        return options.official, [note] if fingerprints.simulated_files(options.official) else []
    # A text becomes as many random bits as it is worth; without one, they are drawn.
    bits = secrets.token_bytes(32)
    if options.seed is not None:
        bits = hashlib.sha256(options.seed.encode()).digest()
    data_dir, seed = base / "data", int.from_bytes(bits, "big")
    if options.answers:
        rng, least = np.random.default_rng(seed), options.min_answers
        least = own_answers.MIN_ANSWERS_OF_EACH if least is None else least
        notes = own_answers.make_data_folder(options.answers, data_dir, tasks, rng, least)
        return data_dir, notes
    _import_generator().generate(data_dir, options.size or "small", seed)
    return data_dir, []


def _import_generator() -> ModuleType:
    """Import data/generate_sample.py.

    Its flag --seed would show the secret seed to all users of this machine.
    """
    # The generator imports modules that are beside it.
    sys.path.append(str(layout.ROOT / "data"))
    return importlib.import_module("generate_sample")


if __name__ == "__main__":
    cli.run(main)
