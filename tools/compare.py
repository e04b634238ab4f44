"""Say by how much one entry is better than another, and how sure that is.

    python -m tools.compare                                    number and name every score recorded
    python -m tools.compare 3 7                                two of them
    python -m tools.compare item_response "partial_vae --dimensions 4"
    python -m tools.compare task_1/sample_model_majority.py task_1/my_idea.py
    python -m tools.compare old.zip data/test_output/test_submission_task_1.csv
    python -m tools.compare task_4/numpy task_4/my_questions --phase public

A and B are each a number or a model's name of the record (data/test_output/results.jsonl), a script
or a folder of task 4, of which the latest score in the record counts, or a submission, which is
scored against the local split, or against the released answers that --phase names. Both must have
predicted the same answers. The interval comes from drawing the students again, with replacement:
answers of one student are not independent. It knows nothing of other seeds or training answers.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common import cli, io, layout, made, metrics, schema, submission, zips
from common.errors import InputError, quote
from common.evaluation import outcomes
from common.evaluation.judgements import rank_pairs, read_judgements
from common.evaluation.outcomes import Outcomes
from common.evaluation.pairs import score_pairs
from common.evaluation.record import (
    CROSS_VALIDATION,
    LOCAL,
    Result,
    fingerprint_of,
    read_results,
    title_of,
)
from tools.paired_difference import Scored, describe, describe_size
from tools.scoreboard import name_of_phase

PHASES = (LOCAL, CROSS_VALIDATION, *layout.PHASES)


def main() -> None:
    """Read the command line, compare, print."""
    p = cli.parser(__doc__)
    p.prog = "python -m tools.compare"
    p.add_argument("scored", nargs="*", metavar="A B", help="what to compare")
    p.add_argument("--phase", choices=PHASES, help="only scores of this phase")
    default = layout.TEST_OUTPUT_DIR / layout.RESULTS_NAME
    p.add_argument(
        "--results", type=Path, metavar="FILE", default=default, help=f"default {cli.show(default)}"
    )
    options = p.parse_args()
    record = read_results(options.results)[0] if options.results.is_file() else []
    if not options.scored:
        io.require_file(options.results)
        if not any(options.phase in (None, result.phase) for result in record if result.outcomes):
            of = f" of phase {options.phase}" if options.phase else ""
            raise InputError(
                f"{cli.show(options.results)}: holds no scores{of} to compare; every "
                "local_evaluation.py adds one"
            )
        print_record(record, options.phase)
        return
    if len(options.scored) != 2:
        raise InputError(f"{len(options.scored)} scores to compare, expected two, A and B")
    a, b = find_pair(options.scored, record, options.results, options.phase)
    print(describe(a, b))


def print_record(record: Sequence[Result], phase: str | None) -> None:
    """Print every score of the record whose outcomes were kept, with its number."""
    for number, result in enumerate(record, start=1):
        if result.outcomes and phase in (None, result.phase):
            seed = "" if result.seed is None else f", seed {result.seed}"
            print(
                f"{number:4}  {result.score:.4f}  {result.name}{seed} (task {result.task}, "
                f"{where_of(result)}, {result.time[:10]})"
            )


def where_of(result: Result) -> str:
    """Return what a score of the record was scored on, in words."""
    return describe_test(result.phase, result.rules, result.simulated)


def describe_test(phase: str, rules: str, simulated: bool) -> str:
    """Return phase, rules and kind of the answers, in words."""
    kind = "simulated answers" if simulated else "real answers"
    return ", ".join(filter(None, (name_of_phase(phase), rules, kind)))


# ---- What A and B mean ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A score that a word of the command line may mean.

    Attributes
    ----------
    name, task, where
        As in `Scored`.
    test
        Phase, rules and fingerprint of the true answers, as in `Result`.
    outcomes
        Themselves, or the name of their file; nothing where they were not kept.
    """

    name: str
    task: int
    where: str
    test: tuple[str, str, str]
    outcomes: Outcomes | str


def as_candidate(result: Result) -> Candidate:
    """Return a score of the record as a candidate.

    Raises
    ------
    InputError
        If it is of a related challenge, whose outcomes are not kept.
    """
    if isinstance(result.task, str):
        raise InputError(
            f"{result.name}: is scored in {title_of(result.task)}, expected scores of the "
            "tasks 1 to 4"
        )
    test = (result.phase, result.rules, result.data)
    return Candidate(result.name, result.task, where_of(result), test, result.outcomes)


def find_pair(
    words: Sequence[str], record: Sequence[Result], path: Path, phase: str | None
) -> tuple[Scored, Scored]:
    """Find what A and B mean.

    Of an entry with several scores the latest counts whose answers the other one has predicted too.

    Parameters
    ----------
    words
        A and B.
    record, path
        The record, and where it lies.
    phase
        The only phase to look at; None: any.

    Raises
    ------
    InputError
        If one cannot be found, has no outcomes, or the two have not predicted the same answers.
    """
    found = [find(word, record, path, phase) for word in words]
    # The latest two scores on the same test, else the latest of each.
    latest = {(candidate.task, candidate.test): candidate for candidate in found[0]}
    shared = [candidate for candidate in found[1] if (candidate.task, candidate.test) in latest]
    second = (shared or found[1])[-1]
    first = latest.get((second.task, second.test), found[0][-1])
    if first.task != second.task:
        raise InputError(
            f"{words[0]} is of task {first.task} and {words[1]} of task {second.task}, expected "
            "two scores of one task"
        )
    a, b = (load(word, c, path) for word, c in zip(words, (first, second), strict=True))
    if a.outcomes.answers != b.outcomes.answers:
        sizes = [f"{describe_size(scored)} ({scored.where})" for scored in (a, b)]
        raise InputError(
            f"{words[0]} was scored on {sizes[0]} and {words[1]} on {sizes[1]}: two different test "
            "sets, expected the same answers"
        )
    return a, b


def load(word: str, candidate: Candidate, path: Path) -> Scored:
    """Read the outcomes of a candidate.

    Raises
    ------
    InputError
        If they were not kept, or their file is missing or damaged.
    """
    kept = candidate.outcomes
    if not kept:
        raise InputError(
            f"{word}: when it was scored, it was not kept which answers were predicted right "
            f"({candidate.where}), expected a later score: score it again"
        )
    if isinstance(kept, str):
        kept = outcomes.read(path.with_name(layout.OUTCOMES_NAME) / f"{kept}.npz")
    return Scored(candidate.name, candidate.task, candidate.where, kept)


def find(word: str, record: Sequence[Result], path: Path, phase: str | None) -> list[Candidate]:
    """Return all scores that a word of the command line may mean, the latest last.

    Raises
    ------
    InputError
        If there is none, or it is a name of several models.
    """
    place = Path(word)
    if place.exists() and place.resolve().is_relative_to(layout.RELATED_DIR):
        raise InputError(f"{word}: is of a related challenge, expected scores of the tasks 1 to 4")
    if place.suffix.lower() == ".csv" or (place.suffix.lower() == ".zip" and not is_entry(place)):
        return [score_submission(place, phase)]
    if word.isdecimal() and not place.exists():
        if not 1 <= int(word) <= len(record):
            raise InputError(
                f"{word}: {cli.show(path)} has {len(record)} scores, expected a number up to that "
                "(`python -m tools.compare` lists them)"
            )
        result = record[int(word) - 1]
        if phase not in (None, result.phase):
            raise InputError(f"{word}: is of phase {result.phase}, expected one of phase {phase}")
        return [as_candidate(result)]
    of_phase = [result for result in record if phase in (None, result.phase)]
    if place.exists():
        shown = cli.show(place.resolve())
        own = [r for r in of_phase if shown in (r.submission, r.script)]
        if not own:
            of = f" of phase {phase}" if phase else ""
            raise InputError(
                f"{word}: has no score{of} in {cli.show(path)}; its local_evaluation.py, or "
                "`python -m tools.cross_validate`, adds one"
            )
        return [as_candidate(result) for result in own]
    own = [r for r in of_phase if r.name == word] or [r for r in of_phase if r.model == word]
    # Passing over the related challenges, where the name is also of a task.
    own = [r for r in own if isinstance(r.task, int)] or own
    meanings = {(r.task, r.name): number for number, r in enumerate(record, 1) if r in own}
    if len(meanings) > 1:
        listed = ", ".join(f"{n} ({name}, task {task})" for (task, name), n in meanings.items())
        raise InputError(f"{quote(word)} may be any of these: {listed}; expected one such number")
    if not own:
        raise InputError(
            f"{quote(word)}: is no file and no model in {cli.show(path)}, expected a submission, a "
            "script, or a number or name that `python -m tools.compare` lists"
        )
    return [as_candidate(result) for result in own]


def is_entry(path: Path) -> bool:
    """Return whether a zip is an entry of task 4."""
    io.require_file(path)
    with zips.open_zip(path) as archive:
        return not any(name.lower().endswith(".csv") for name in archive.namelist())


# ---- Scoring a submission ------------------------------------------------------------------------


def score_submission(path: Path, phase: str | None) -> Candidate:
    """Score a submission of task 1, 2 or 3, whose columns tell the task.

    Parameters
    ----------
    path
        CSV or zip.
    phase
        None for the local split; in task 3, which has none, for the public pairs.

    Raises
    ------
    InputError
        If it is wrong or incomplete, or the phase has no answers to score it with.
    """
    if phase == CROSS_VALIDATION:
        raise InputError(f"{path}: is a submission, expected another --phase than {phase}")
    task = recognise_task(path)
    if task == 3:
        phase = layout.PHASES[0] if phase in (None, LOCAL) else phase
        reference = layout.TEST_DIR / layout.expert_judgements_name(phase)
        kept = score_ranking(path, reference)
    else:
        released = None if phase == LOCAL else phase
        reference = layout.TEST_INPUT_DIR / layout.VALID_TASK_1_2
        if released:
            reference = layout.TEST_DIR / layout.test_answers_name(task, released)
        made.require_current([reference])
        kept = score_pairs(path, reference, task, phase=released).outcomes
    phase = phase or LOCAL
    test = (phase, "", fingerprint_of(reference))
    where = describe_test(phase, "", made.is_simulated(reference))
    return Candidate(cli.show(path), task, where, test, kept)


def recognise_task(path: Path) -> int:
    """Return the task of a submission, by its columns."""
    io.require_file(path)
    if path.suffix.lower() == ".zip":
        with zips.open_zip(path) as archive:
            member = next(name for name in archive.namelist() if name.lower().endswith(".csv"))
            match = re.fullmatch(r"submission_task_([123])\.csv", Path(member).name)
        if match is None:
            raise InputError(f"{path}: holds {quote(member)}, expected submission_task_1.csv to 3")
        return int(match[1])
    header = io.read_header(io.file_source(path))
    columns = {1: schema.IS_CORRECT, 2: schema.ANSWER_VALUE, 3: schema.RANKING}
    tasks = [task for task, column in columns.items() if column.name in header]
    if len(tasks) != 1:
        raise InputError(
            f"{path}: has the columns {quote(', '.join(header))}, expected a submission, with "
            f"exactly one of {', '.join(column.name for column in columns.values())}"
        )
    return tasks[0]


def score_ranking(path: Path, reference: Path) -> Outcomes:
    """Compare a ranking of task 3 with a file of judgements."""
    template = layout.TEMPLATE_DIR / layout.TEMPLATE_TASK_3
    source = submission.submission_source(path, layout.submission_name(3), template)
    question, ranking = submission.read_ranking(source, submission.read_ranking_template(template))
    judgements = read_judgements(reference)
    ranks = rank_pairs(judgements, question, ranking)
    agrees = metrics.pair_agreement(*ranks, judgements.better)
    return outcomes.of_judgements(judgements.left, judgements.right, judgements.better, agrees)


if __name__ == "__main__":
    cli.run(main)
