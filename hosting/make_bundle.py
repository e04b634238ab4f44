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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import ModuleType

from common import cli, fingerprints, layout, provenance, reading, writing, zips
from common.errors import InputError, quote
from common.origin import Origin
from common.tasks import TASK_3, TASKS
from tools.templates import build_templates

import competition
import numpy as np
import own_answers
from bundle_files import describe_public, write_for_participants, write_for_platform
from competition import Days, Plan
from tqdm import tqdm

# Smallest length of a seed, in characters. The generator of simulated answers is public: whoever
# guesses the seed can compute all answers.
_MIN_SEED = 16
# Default length of a competition in weeks; --end can set another end.
_WEEKS = 12


@dataclass(frozen=True)
class Source:
    """The answers that the bundles are made of."""

    # A folder laid out like the kit's `data/`. It holds the answers of the public phase and of the
    # private one.
    data_dir: Path
    # Sentences about the answers that are printed for the organiser.
    notes: list[str]


def main() -> None:
    """Make the bundles that the flags describe: what an organiser uploads to host a competition."""
    options = build_parser().parse_args()
    # The plan with all tasks.
    plan = _make_plan(options)
    # Each bundle consists of two zips: one to upload, and the private part with the answers of the
    # private phase, which the organiser keeps. `plans` maps the path of each zip to upload to the
    # plan of its bundle, which may have only some of the tasks.
    plans = _plans_by_output(options, plan)
    outputs = []
    for output in plans:
        outputs += [output, _private_part(output)]
    cli.require_outputs(outputs, [options.answers])
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="bundle_") as temporary:
        source = _make_zips(options, plan.tasks, plans, outputs, base=Path(temporary))
    for output in outputs:
        # The keys of `plans` are the zips to upload. All other outputs are private parts.
        _print_use(output, is_private=output not in plans)
    tasks = f"tasks {', '.join(map(str, plan.tasks))}"
    print(f"{tasks}; {plan.dates}; {time.perf_counter() - started:.1f} s")
    for note in [*source.notes, *_warnings(plan)]:
        print(note)
    print("every one of these files holds answers: give none of them to participants")
    print(f"next: python hosting/run_locally.py {cli.show(outputs[0])} SUBMISSION.zip")


def _make_zips(
    options: argparse.Namespace,
    tasks: Sequence[int],
    plans: Mapping[Path, Plan],
    outputs: Sequence[Path],
    base: Path,
) -> Source:
    """Write the zips of all bundles; return the answers that they are made of.

    Parameters
    ----------
    options
        The flags, which say where the answers come from.
    tasks
        The tasks of all bundles.
    plans
        Maps the path of each bundle's zip to the plan of the bundle.
    outputs
        The paths of all zips: each bundle and its private part.
    base
        A temporary folder, which gets the files of each zip in a folder of their own.
    """
    # The progress bar has a step for the answers, a step for each bundle and a step for the zips.
    with tqdm(total=2 + len(plans), desc="Bundles", leave=None, disable=None) as steps:
        source = _get_source(options, base, tasks)
        steps.update()
        templates = base / layout.TEMPLATE_DIR.name
        if any(TASKS[number].template for number in tasks):
            build_templates(source.data_dir, templates)
        for output, bundle_plan in plans.items():
            bundle = base / output.stem
            private = base / _private_part(output).stem
            _write_bundle(source.data_dir, templates, bundle, private, bundle_plan)
            steps.update()
        _write_zips(outputs, base)
        steps.update()
    return source


def _print_use(output: Path, is_private: bool) -> None:
    """Print the size of a zip, and what the organiser should do with it."""
    size = f"{output.stat().st_size / 1e6:,.1f} MB"
    use = "holds the private answers: keep it, never upload it" if is_private else "to upload"
    print(f"{cli.show(output)}: {size}, {use}")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    help_text = "put these tasks into one bundle (default: a bundle for each task that has answers)"
    parser.add_argument("--tasks", type=int, nargs="+", choices=tuple(TASKS), help=help_text)
    source = parser.add_mutually_exclusive_group()
    help_text = "the official files, laid out like data/: their answers are public"
    source.add_argument("--official", type=Path, metavar="DIR", help=help_text)
    help_text = "CSV of your own with QuestionId, UserId, AnswerValue, CorrectAnswer"
    source.add_argument("--answers", type=Path, metavar="FILE", help=help_text)
    help_text = "size of the simulated data (default small)"
    source.add_argument("--size", choices=("tiny", "small", "full"), help=help_text)
    help_text = "with --answers: leave out questions and students with fewer answers (default "
    help_text += f"{own_answers.MIN_ANSWERS_OF_EACH}, 0 for none)"
    parser.add_argument("--min_answers", type=cli.whole_number(0), metavar="N", help=help_text)
    help_text = f"a text of {_MIN_SEED} characters or more, which makes the same competition again "
    help_text += "(default: a random one, which is not kept)"
    parser.add_argument("--seed", metavar="SECRET", help=help_text)
    parser.add_argument("--title", default=competition.TITLE, help=f"default: {competition.TITLE}")
    parser.add_argument("--contact", metavar="ADDRESS", default="", help="e-mail of the organisers")
    help_text = "first day, such as 2027-01-31 (default: today)"
    parser.add_argument("--start", type=_day, metavar="DATE", help=help_text)
    help_text = f"last day (default: {_WEEKS} weeks later)"
    parser.add_argument("--end", type=_day, metavar="DATE", help=help_text)
    help_text = "length of the private phase at the end"
    cli.add_number(parser, "--final_days", competition.FINAL_DAYS, help_text)
    help_text = "upload the private answers too, and let the server score the private phase"
    parser.add_argument("--private_on_server", action="store_true", help=help_text)
    parser.add_argument(
        "--output", type=Path, metavar="FILE", required=True, help="the bundle, a zip"
    )
    return parser


def _day(text: str) -> date:
    """Parse a date on the command line."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a date such as 2027-01-31") from None


# ---- Writing -------------------------------------------------------------------------------------


def _plans_by_output(options: argparse.Namespace, plan: Plan) -> dict[Path, Plan]:
    """Map the path of each bundle to its plan.

    With --tasks, there is one bundle for all the named tasks. Otherwise each task has a bundle.
    """
    output: Path = options.output
    if options.tasks:
        return {output: plan}
    plans = {}
    for task in plan.tasks:
        path = output.with_stem(f"{output.stem}_task_{task}")
        plans[path] = replace(plan, tasks=(task,))
    return plans


def _private_part(output: Path) -> Path:
    """Return the path of the private part of a bundle: the zip that the organiser keeps."""
    return output.with_stem(f"{output.stem}_private")


def _write_bundle(data_dir: Path, templates: Path, bundle: Path, private: Path, plan: Plan) -> None:
    """Write the files of a bundle, and the files of its private part, which the organiser keeps.

    `bundle` and `private` are the folders to write. `data_dir` holds the answers and metadata,
    `templates` the submission templates.
    """
    write_for_platform(data_dir, templates, bundle, private, plan)
    write_for_participants(data_dir, templates, bundle, plan)
    competition.write(bundle, plan, describe_public(data_dir, plan.tasks))
    organiser_dir = private / competition.ORGANISER_DIR
    # A simulation knows the true probabilities of its answers. So its marker file states the
    # accuracy that the best possible model can be expected to reach. The organiser gets this
    # number, unless none of the simulated files is left in the folder.
    marker = fingerprints.read_marker(data_dir)
    if marker and fingerprints.simulated_files(data_dir):
        best_possible = {"best_expected_accuracy": marker["best_expected_accuracy"]}
        writing.write_files(
            {organiser_dir / "best_possible.json": json.dumps(best_possible, indent=1) + "\n"}
        )
    # If the bundle is made from the organiser's own file of answers, the module `own_answers` has
    # replaced the ids in it by numbers. It has also written lists that say which id each number
    # stands for. They go into the private part.
    id_lists = data_dir / competition.ORGANISER_DIR
    if id_lists.is_dir():
        shutil.copytree(id_lists, organiser_dir, dirs_exist_ok=True)


def _write_zips(outputs: Sequence[Path], base: Path) -> None:
    """Write all zips or none. The zip x.zip holds the files of the folder x in `base`."""
    with writing.atomic_write(*outputs) as files:
        for file, output in zip(files, outputs, strict=True):
            folder = base / output.stem
            paths = sorted(path for path in folder.rglob("*") if path.is_file())
            members = {path.relative_to(folder).as_posix(): path for path in paths}
            zips.write_zip_to(file, members)


def _warnings(plan: Plan) -> list[str]:
    """Return warnings about a plan, to be printed for the organiser."""
    warnings = []
    end = plan.days["private"].last
    if end < datetime.now(UTC).date():
        warnings.append(f"warning: the last day, {end}, is past: nobody can submit")
    if plan.private_on_server:
        warnings.append(
            "warning: the private answers are in what is uploaded: some servers hand such files to "
            "anybody who asks, without a login; `python hosting/check_server.py URL` tells"
        )
    return warnings


# ---- The plan ------------------------------------------------------------------------------------


def _make_plan(options: argparse.Namespace) -> Plan:
    """Plan the competition; raise `InputError` if a flag is wrong or contradicts another one."""
    _check_flags(options)
    origin = "simulated"
    if options.official:
        origin = "official"
    elif options.answers:
        origin = "own"
    tasks = options.tasks or _possible_tasks(options)
    return Plan(
        # `set` drops tasks that --tasks names twice.
        tasks=tuple(sorted(set(tasks))),
        title=options.title.strip(),
        days=_choose_days(options),
        origin=origin,
        contact=options.contact,
        private_on_server=options.private_on_server,
    )


def _check_flags(options: argparse.Namespace) -> None:
    """Raise `InputError` if a flag is wrong or contradicts another one.

    The dates are not checked here: `_choose_days` checks them.
    """
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
    title = options.title.strip()
    has_valid_length = 1 <= len(title) <= competition.MAX_TITLE
    if not has_valid_length or not title.isprintable():
        raise InputError(
            f"--title: is {quote(options.title)}, expected one line of 1 to "
            f"{competition.MAX_TITLE} characters"
        )
    if options.contact and not _is_address(options.contact):
        raise InputError(
            f"--contact: is {quote(options.contact)}, expected an address such as name@example.org"
        )


def _is_address(text: str) -> bool:
    """Return whether a text looks like an e-mail address."""
    name, _, host = text.partition("@")
    return bool(name) and "." in host and " " not in text


def _choose_days(options: argparse.Namespace) -> dict[str, Days]:
    """Return the days of both phases: the private phase takes the last days.

    Raises `InputError` if less than one day is left for the public phase.
    """
    start = options.start or datetime.now(UTC).date()
    n_private_days = options.final_days
    try:
        end = options.end or start + timedelta(weeks=_WEEKS)
        # The public phase needs at least one day, the first. The private phase takes the
        # `n_private_days` days after it.
        earliest_end = start + timedelta(days=n_private_days)
    except OverflowError:
        expected = f"expected an end before the year {date.max.year}"
        raise InputError(
            f"--start: is {start}, with {n_private_days} private days, {expected}"
        ) from None
    if end < earliest_end:
        raise InputError(
            f"--end: is {end}, expected {earliest_end} or later: the private phase takes the last "
            f"{n_private_days} days, and the public one at least one"
        )
    public_end = end - timedelta(days=n_private_days)
    return {
        "public": Days(start, public_end),
        "private": Days(public_end + timedelta(days=1), end),
    }


def _possible_tasks(options: argparse.Namespace) -> list[int]:
    """Return the numbers of the tasks for which there are answers.

    The answers come from the organiser's file (--answers), from a folder with the official files,
    whose answers the challenge has released (--official), or from a simulation.
    """
    if options.answers:
        # Task 3 needs experts' judgements, which a file of answers does not hold.
        return [task for task in TASKS if task != TASK_3.number]
    if not options.official:
        return list(TASKS)
    tasks = []
    for task in TASKS:
        paths = _released_answers(options.official, task)
        if all(path.is_file() for path in paths):
            tasks.append(task)
    if not tasks:
        path = _released_answers(options.official, task=1)[0]
        raise InputError(
            f"{path.parent}: holds the released answers of no task, expected {path.name} and "
            "others; `python data/download.py` fetches them, `python data/generate_sample.py` "
            "simulates some"
        )
    return tasks


def _released_answers(folder: Path, task: int) -> list[Path]:
    """Return the two files with the answers of a task, in a folder laid out like `data/`."""
    names = [TASKS[task].answers_name(phase) for phase in layout.PHASES]
    return [folder / layout.TEST_DIR.name / name for name in names]


# ---- The answers ---------------------------------------------------------------------------------


def _get_source(options: argparse.Namespace, base: Path, tasks: Sequence[int]) -> Source:
    """Return the answers for the bundles: official, the organiser's own or simulated, by the flags.

    The organiser's own answers are split. They and simulated answers are written into a new folder
    in `base`.
    """
    if options.official:
        return _find_official(options.official, tasks)
    data_dir = base / "data"
    seed = _make_seed(options.seed)
    if options.answers:
        min_answers = options.min_answers
        if min_answers is None:
            min_answers = own_answers.MIN_ANSWERS_OF_EACH
        rng = np.random.default_rng(seed)
        notes = own_answers.make_data_folder(options.answers, data_dir, tasks, rng, min_answers)
        return Source(data_dir, notes)
    _import_simulator().generate(data_dir, options.size or "small", seed)
    return Source(data_dir, [])


def _find_official(data_dir: Path, tasks: Sequence[int]) -> Source:
    """Return the released answers in a folder, which is laid out like the kit's `data/`.

    Raises `InputError` if the answers of one of the `tasks` are missing.
    """
    answers: list[Path] = []
    for task in tasks:
        answers += _released_answers(data_dir, task)
    for path in answers:
        reading.require_file(path)
    notes = []
    origin = provenance.origin_of(*answers)
    if origin is not Origin.OFFICIAL:
        # With --official, the pages of the competition tell participants that the answers are the
        # official ones. Here they are not, so warn the organiser by a note.
        notes.append(
            f"{cli.show(data_dir)} holds {origin.answers}, not the official ones that the "
            "pages describe: this bundle is for trying only"
        )
    return Source(data_dir, notes)


def _make_seed(text: str | None) -> int:
    """Return a seed of 256 bits: the digest of a text, or a random number if `text` is None."""
    if text is None:
        return int.from_bytes(secrets.token_bytes(32), "big")
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")


def _import_simulator() -> ModuleType:
    """Import data/generate_sample.py.

    Running the script would need its flag --seed, which shows the secret seed to all users of this
    machine.
    """
    # The generator imports modules that lie beside it in data/.
    sys.path.append(str(layout.ROOT / "data"))
    return importlib.import_module("generate_sample")


if __name__ == "__main__":
    cli.run(main)
