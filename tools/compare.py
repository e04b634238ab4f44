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

import argparse
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from common import cli, layout, metrics, provenance, reading
from common.arrays import FloatArray
from common.errors import InputError, quote
from common.evaluation import outcomes, pairs, ranking, record
from common.evaluation.outcomes import Outcomes
from common.evaluation.record import Result
from common.tasks import LOCAL, TASK_3, TASKS, Form, Task, title_of
from tools.results import CROSS_VALIDATION, PHASES, name_of_phase, read_results
from tools.which_task import task_of

import numpy as np

N_DRAWS = 2000
# Sums in another order differ by less.
_SAME_SCORE = 1e-9


class Scored(NamedTuple):
    """The score of a model or a file, by name, on a test, known by `test`, in words `where`."""

    name: str
    task: Task
    where: str
    read: Callable[[], Outcomes]
    test: tuple[str, ...] = ()


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument("scored", nargs="*", metavar="A B", help="what to compare")
    parser.add_argument("--phase", choices=PHASES, help="only scores of this phase")
    cli.add_file(parser, "--results", layout.TEST_OUTPUT_DIR / layout.RESULTS_NAME)
    return parser


def main() -> None:
    """Read the command line, compare, print."""
    options = build_parser().parse_args()
    path, phase, words = options.results, options.phase, options.scored
    if not words:
        reading.require_file(path)
    elif len(words) != 2:
        raise InputError(f"{len(words)} scores to compare, expected two, A and B")
    results = read_results(path) if path.is_file() else []
    if words:
        print(compare(words, [find(word, results, path, phase) for word in words]))
        return
    kept = [r for r in enumerate(results, 1) if r[1].outcomes and phase in (None, r[1].phase)]
    for number, result in kept:
        seed = "" if result.seed is None else f", seed {result.seed}"
        where = describe_test(result.phase, result.rules, result.simulated)
        about = f"task {result.task}, {where}, {result.time[:10]}"
        print(f"{number:4}  {result.score:.4f}  {result.name}{seed} ({about})")
    if not kept:
        of = f" of phase {phase}" if phase else ""
        raise InputError(
            f"{cli.show(path)}: holds no scores{of} to compare; every local_evaluation.py adds one"
        )


def describe_test(phase: str, rules: str, simulated: bool) -> str:
    """Return phase, rules and kind of the answers, in words."""
    kind = "simulated answers" if simulated else "real answers"
    return ", ".join(filter(None, (name_of_phase(phase), rules, kind)))


# ---- What A and B mean ---------------------------------------------------------------------------


def find(word: str, results: list[Result], path: Path, phase: str | None) -> list[Scored]:
    """Return all scores of a record, or of a file, that a word may mean, the latest last."""
    place = Path(word)
    if place.exists() and place.resolve().is_relative_to(layout.RELATED_DIR):
        raise InputError(f"{word}: is of a related challenge, expected scores of the tasks 1 to 4")
    if place.suffix.lower() in (".csv", ".zip") and (task := task_of(place)).form is not Form.ENTRY:
        return [score_submission(place, task, phase)]
    of_phase = [result for result in results if phase in (None, result.phase)]
    if place.exists():
        shown = cli.show(place.resolve())
        own = [result for result in of_phase if shown in (result.submission, result.script)]
        missing = (
            f"{word}: has no score{f' of phase {phase}' if phase else ''} in {cli.show(path)}; its "
            "local_evaluation.py, or `python -m tools.cross_validate`, adds one"
        )
    elif word.isdecimal():
        own = results[int(word) - 1 : int(word)] if int(word) else []
        missing = (
            f"{word}: {cli.show(path)} has {len(results)} scores, expected a number up to that "
            "(`python -m tools.compare` lists them)"
        )
        if own and phase not in (None, own[0].phase):
            raise InputError(f"{word}: is of phase {own[0].phase}, expected one of phase {phase}")
    else:
        own = [r for r in of_phase if r.name == word] or [r for r in of_phase if r.model == word]
        # Passing over the related challenges, where the name is also of a task.
        own = [result for result in own if isinstance(result.task, int)] or own
        missing = (
            f"{quote(word)}: is no file and no model in {cli.show(path)}, expected a "
            "submission, a script, or a number or name that `python -m tools.compare` lists"
        )
        meanings = {(r.task, r.name): number for number, r in enumerate(results, 1) if r in own}
        if len(meanings) > 1:
            listed = ", ".join(f"{n} ({name}, task {of})" for (of, name), n in meanings.items())
            raise InputError(
                f"{quote(word)} may be any of these: {listed}; expected one such number"
            )
    if not own:
        raise InputError(missing)
    return [as_scored(word, result, path) for result in own]


def as_scored(word: str, result: Result, path: Path) -> Scored:
    """Return a line of a record, whose outcomes lie beside it."""
    if isinstance(result.task, str) or result.task not in TASKS:
        raise InputError(
            f"{result.name}: is scored in {title_of(result.task)}, expected scores of the tasks 1 "
            "to 4"
        )
    task, where = TASKS[result.task], describe_test(result.phase, result.rules, result.simulated)

    def read() -> Outcomes:
        if not result.outcomes:
            raise InputError(
                f"{word}: when it was scored, it was not kept which answers were predicted right "
                f"({where}), expected a later score: score it again"
            )
        place = path.with_name(layout.OUTCOMES_NAME) / f"{result.outcomes}.npz"
        kept = outcomes.read(place)
        if abs(score_of(task, kept) - result.score) > _SAME_SCORE:
            raise InputError(
                f"{cli.show(place)}: its outcomes score {score_of(task, kept):.4f}, and the line "
                f"of {cli.show(path)} that names it, {quote(word)}, {result.score:.4f}: they do "
                "not belong together, score it again"
            )
        return kept

    return Scored(result.name, task, where, read, (result.phase, result.rules, result.data))


def score_submission(path: Path, task: Task, phase: str | None) -> Scored:
    """Score a CSV or zip, by default on the local split, or, in task 3, on the public pairs."""
    if phase == CROSS_VALIDATION:
        raise InputError(f"{path}: is a submission, expected another --phase than {phase}")
    phase = phase or LOCAL
    if task is TASK_3 and phase == LOCAL:
        phase = layout.PHASES[0]
    reference = task.answers_path(phase)
    provenance.require_current([reference])
    if task is TASK_3:
        template = layout.TEMPLATE_DIR / str(task.template)
        kept = ranking.match(path, reference, template, phase).outcomes
    else:
        kept = outcomes.of_predictions(pairs.match(task, path, reference, phase).pairs)
    where = describe_test(phase, "", provenance.is_simulated(reference))
    test = phase, "", record.fingerprint_of(reference)
    return Scored(cli.show(path), task, where, lambda: kept, test)


# ---- Their difference ----------------------------------------------------------------------------


def compare(words: Sequence[str], found: Sequence[list[Scored]]) -> str:
    """Compare, of the scores that two words may mean, the latest two on one test, in words."""
    (word_a, word_b), (found_a, found_b) = words, found
    latest = {(scored.task, scored.test): scored for scored in found_a}
    shared = [scored for scored in found_b if (scored.task, scored.test) in latest]
    b = (shared or found_b)[-1]
    a = latest.get((b.task, b.test), found_a[-1])
    if a.task is not b.task:
        raise InputError(
            f"{word_a} is of task {a.task.number} and {word_b} of task {b.task.number}, expected "
            "two scores of one task"
        )
    right_a, right_b = a.read(), b.read()
    if right_a.answers != right_b.answers:
        raise InputError(
            f"{word_a} was scored on {size_of(a.task, right_a)} ({a.where}) and {word_b} on "
            f"{size_of(b.task, right_b)} ({b.where}): two different test sets, expected the same "
            "answers"
        )
    lines = [
        f"A  {score_of(a.task, right_a):.4f}  {a.name}",
        f"B  {score_of(a.task, right_b):.4f}  {b.name}",
        f"task {a.task.number}, {a.where}: {size_of(a.task, right_a)}",
        *describe(a.task, right_a, right_b),
    ]
    return "\n".join(textwrap.fill(line, 80, subsequent_indent="  ") for line in lines)


def size_of(task: Task, kept: Outcomes) -> str:
    """Say how many answers of how many students were predicted."""
    n, n_units = len(kept.right), kept.counts.shape[1]
    return f"{n:,} {task.scored_items} of {n_units:,} {task.drawn_units}"


def score_of(task: Task, kept: Outcomes) -> float:
    """Return the score that outcomes give, as the evaluation computes it."""
    shares = metrics.share_right(kept.count_right().sum(axis=1), kept.counts.sum(axis=1))
    return float(metrics.combine_parts(shares, takes_best=task.scores_best_part))


def describe(task: Task, a: Outcomes, b: Outcomes) -> list[str]:
    """Say in lines which one is better, and how sure that is."""
    difference = score_of(task, b) - score_of(task, a)
    units = task.drawn_units
    none = f"no difference can be told: B - A = {difference:.4f}"
    if a.counts.shape[1] == 1:
        # Drawn again and again, it would give an interval of no width.
        lines = [f"{none} (no interval: a single one of the {units} says nothing about others)"]
    else:
        low, high = np.percentile(bootstrap_difference(task, a, b), (2.5, 97.5)).tolist()
        said = f"{none} (95 % interval {low:.4f} to {high:.4f})"
        if not low <= 0 <= high:
            ends = sorted((abs(low), abs(high)))
            said = (
                f"{'B' if difference > 0 else 'A'} is better by {abs(difference):.4f} "
                f"(95 % interval {ends[0]:.4f} to {ends[1]:.4f})"
            )
        lines = [said, f"interval: percentile bootstrap, the {units} drawn again {N_DRAWS:,} times"]
        if task is TASK_3:
            lines.append(
                f"so few pairs tell only rankings apart that differ by about {(high - low) / 2:.2f}"
            )
    return lines if task is TASK_3 else [*lines, describe_mcnemar(a, b)]


def bootstrap_difference(task: Task, a: Outcomes, b: Outcomes) -> FloatArray:
    """Return by how much B is better if units are drawn again (Efron 1979), shape (N_DRAWS,)."""
    n_units = a.counts.shape[1]
    columns = np.concatenate([a.count_right(), b.count_right(), a.counts])
    columns = np.ascontiguousarray(columns.T, np.float64)
    rng = np.random.default_rng(0)
    sums = []
    for _ in range(N_DRAWS):
        drawn = rng.integers(n_units, size=n_units, dtype=np.int32)
        sums.append(np.bincount(drawn, minlength=n_units) @ columns)
    right_a, right_b, n = np.split(np.array(sums), 3, axis=1)
    scores_a = metrics.combine_parts(
        metrics.share_right(right_a, n), takes_best=task.scores_best_part
    )
    scores_b = metrics.combine_parts(
        metrics.share_right(right_b, n), takes_best=task.scores_best_part
    )
    return scores_b - scores_a


def describe_mcnemar(a: Outcomes, b: Outcomes) -> str:
    """Return what McNemar's exact test (1947) says, in words, and why it may say too much."""
    # SciPy takes a second to load, and only this function needs it.
    from scipy.stats import binomtest

    only_a, only_b = int((a.right & ~b.right).sum()), int((b.right & ~a.right).sum())
    found = f"only A is right on {only_a:,} answers, only B on {only_b:,}"
    if not a.distinct:
        return f"{found}; no test by McNemar: the same answers are counted several times"
    # Of numbers as unequal as these, if both predicted equally well.
    p = float(binomtest(only_a, only_a + only_b, 0.5).pvalue) if only_a + only_b else 1.0
    shown = "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"
    advice = ": trust the interval" if a.counts.shape[1] > 1 else ""
    return (
        f"McNemar's exact test: {shown}; {found}; it takes all answers for independent, which "
        f"those of one student are not{advice}"
    )


if __name__ == "__main__":
    cli.run(main)
