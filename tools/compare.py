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

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from common import cli, io, layout, made
from common.errors import InputError, quote
from common.evaluation import outcomes, ranking
from common.evaluation.outcomes import Outcomes
from common.evaluation.pairs import score_pairs
from common.evaluation.record import (
    CROSS_VALIDATION,
    LOCAL,
    PHASES,
    Result,
    fingerprint_of,
    read_results,
    title_of,
)
from tools.paired_difference import Scored, describe, describe_size
from tools.scoreboard import name_of_phase
from tools.tasks import task_of


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
    path, phase = options.results, options.phase
    results = read_results(path)[0] if path.is_file() else []
    if not options.scored:
        io.require_file(path)
        print_record(results, path, phase)
        return
    if len(options.scored) != 2:
        raise InputError(f"{len(options.scored)} scores to compare, expected two, A and B")
    found = [find(word, results, path, phase) for word in options.scored]
    print(describe(*choose(options.scored, found)))


def print_record(results: Sequence[Result], path: Path, phase: str | None) -> None:
    """Print every score of the record whose outcomes were kept, with its number."""
    shown = {
        number: result
        for number, result in enumerate(results, start=1)
        if result.outcomes and phase in (None, result.phase)
    }
    if not shown:
        of = f" of phase {phase}" if phase else ""
        raise InputError(
            f"{cli.show(path)}: holds no scores{of} to compare; every local_evaluation.py adds one"
        )
    for number, result in shown.items():
        seed = "" if result.seed is None else f", seed {result.seed}"
        where = describe_test(result.phase, result.rules, result.simulated)
        print(
            f"{number:4}  {result.score:.4f}  {result.name}{seed} (task {result.task}, {where}, "
            f"{result.time[:10]})"
        )


def describe_test(phase: str, rules: str, simulated: bool) -> str:
    """Return phase, rules and kind of the answers, in words."""
    kind = "simulated answers" if simulated else "real answers"
    return ", ".join(filter(None, (name_of_phase(phase), rules, kind)))


# ---- What A and B mean ---------------------------------------------------------------------------


def find(word: str, results: Sequence[Result], path: Path, phase: str | None) -> list[Scored]:
    """Return all scores that a word of the command line may mean, the latest last.

    It is a submission; or, of the record that lies at a path, a number, a script, a folder, or the
    name of a single model.
    """
    place = Path(word)
    if place.exists() and place.resolve().is_relative_to(layout.RELATED_DIR):
        raise InputError(f"{word}: is of a related challenge, expected scores of the tasks 1 to 4")
    if place.suffix.lower() in (".csv", ".zip") and (task := task_of(place)) != 4:
        return [score_submission(place, task, phase)]
    of_phase = [result for result in results if phase in (None, result.phase)]
    if place.exists():
        shown = cli.show(place.resolve())
        own = [result for result in of_phase if shown in (result.submission, result.script)]
        if not own:
            of = f" of phase {phase}" if phase else ""
            raise InputError(
                f"{word}: has no score{of} in {cli.show(path)}; its local_evaluation.py, or "
                "`python -m tools.cross_validate`, adds one"
            )
    elif word.isdecimal():
        if not 1 <= int(word) <= len(results):
            raise InputError(
                f"{word}: {cli.show(path)} has {len(results)} scores, expected a number up to that "
                "(`python -m tools.compare` lists them)"
            )
        own = [results[int(word) - 1]]
        if phase not in (None, own[0].phase):
            raise InputError(f"{word}: is of phase {own[0].phase}, expected one of phase {phase}")
    else:
        own = _find_name(word, results, of_phase)
        if not own:
            raise InputError(
                f"{quote(word)}: is no file and no model in {cli.show(path)}, expected a "
                "submission, a script, or a number or name that `python -m tools.compare` lists"
            )
    return [_as_scored(word, result, path) for result in own]


def _find_name(word: str, results: Sequence[Result], of_phase: list[Result]) -> list[Result]:
    """Return the scores of a model, named with its options or without; of one task only."""
    own = [r for r in of_phase if r.name == word] or [r for r in of_phase if r.model == word]
    # Passing over the related challenges, where the name is also of a task.
    own = [r for r in own if isinstance(r.task, int)] or own
    meanings = {(r.task, r.name): number for number, r in enumerate(results, 1) if r in own}
    if len(meanings) > 1:
        listed = ", ".join(f"{n} ({name}, task {task})" for (task, name), n in meanings.items())
        raise InputError(f"{quote(word)} may be any of these: {listed}; expected one such number")
    return own


def _as_scored(word: str, result: Result, path: Path) -> Scored:
    if isinstance(result.task, str):
        raise InputError(
            f"{result.name}: is scored in {title_of(result.task)}, expected scores of the tasks 1 "
            "to 4"
        )
    where = describe_test(result.phase, result.rules, result.simulated)
    test = (result.phase, result.rules, result.data)
    read = partial(_read_outcomes, word, result.outcomes, where, path)
    return Scored(result.name, result.task, where, read, test)


def _read_outcomes(word: str, name: str, where: str, path: Path) -> Outcomes:
    if not name:
        raise InputError(
            f"{word}: when it was scored, it was not kept which answers were predicted right "
            f"({where}), expected a later score: score it again"
        )
    return outcomes.read(path.with_name(layout.OUTCOMES_NAME) / f"{name}.npz")


def score_submission(path: Path, task: int, phase: str | None) -> Scored:
    """Score a CSV or zip of task 1, 2 or 3 against a phase.

    None is the local split; in task 3, which has none, the public pairs.
    """
    if phase == CROSS_VALIDATION:
        raise InputError(f"{path}: is a submission, expected another --phase than {phase}")
    phase = phase or LOCAL
    if (task, phase) == (3, LOCAL):
        phase = layout.PHASES[0]
    reference = layout.answers_path(task, phase)
    made.require_current([reference])
    if task == 3:
        template = layout.TEMPLATE_DIR / layout.TEMPLATE_TASK_3
        kept = ranking.judge(path, reference, template, phase).evaluation.outcomes
        assert kept is not None
    else:
        released = None if phase == LOCAL else phase
        kept = score_pairs(path, reference, task, phase=released).outcomes
    where = describe_test(phase, "", made.is_simulated(reference))
    test = (phase, "", fingerprint_of(reference))
    return Scored(cli.show(path), task, where, lambda: kept, test)


def choose(words: Sequence[str], found: Sequence[list[Scored]]) -> tuple[Scored, Scored]:
    """Choose the scores of A and B to compare, of the same answers: the latest two on one test."""
    latest = {(scored.task, scored.test): scored for scored in found[0]}
    shared = [scored for scored in found[1] if (scored.task, scored.test) in latest]
    b = (shared or found[1])[-1]
    a = latest.get((b.task, b.test), found[0][-1])
    if a.task != b.task:
        raise InputError(
            f"{words[0]} is of task {a.task} and {words[1]} of task {b.task}, expected two scores "
            "of one task"
        )
    if a.outcomes.answers != b.outcomes.answers:
        sizes = [f"{describe_size(scored)} ({scored.where})" for scored in (a, b)]
        raise InputError(
            f"{words[0]} was scored on {sizes[0]} and {words[1]} on {sizes[1]}: two different test "
            "sets, expected the same answers"
        )
    return a, b


if __name__ == "__main__":
    cli.run(main)
