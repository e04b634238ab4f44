"""Say by how much one entry is better than another, and how sure that is.

    python -m tools.compare                                    number and name every score recorded
    python -m tools.compare 3 7                                two of them
    python -m tools.compare item_response "partial_vae --dimensions 4"
    python -m tools.compare task_1/sample_model_majority.py task_1/my_idea.py
    python -m tools.compare old.zip data/test_output/test_submission_task_1.csv
    python -m tools.compare task_4/numpy task_4/my_questions --phase public

A and B can each be
- a number or a model's name in the record of scores (data/test_output/results.jsonl),
- a script or a folder of task 4, whose latest score in the record counts,
- a submission, which is scored against the local split, or against the released answers that
  --phase names.

Both must have predicted the same answers. The interval comes from a bootstrap that resamples whole
students, because the answers of one student are not independent. It does not include what other
seeds or other training answers would change.
"""

import argparse
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from common import cli, layout, metrics, provenance, reading, source_code
from common.arrays import FloatArray
from common.errors import InputError, quote
from common.evaluation import entry_origin, outcomes, pairs, ranking, record, score_files
from common.evaluation.outcomes import Outcomes
from common.evaluation.record import Result
from common.origin import Origin
from common.tasks import (
    CROSS_VALIDATION,
    LOCAL,
    OWN,
    TASK_3,
    TASKS,
    Form,
    Task,
    name_of_phase,
    title_of,
)
from tools.results import PHASES, read_results
from tools.which_task import task_of

import numpy as np

# Number of resamples of the bootstrap.
N_DRAWS = 2000
# Two scores that differ by less than this are the same score, computed with other rounding.
_SAME_SCORE = 1e-9


@dataclass(frozen=True)
class AnswerSet:
    """What identifies the answers of a score. Only scores on equal answer sets can be compared."""

    phase: str
    # In words: the rules of the games (task 4), and how the folds were made (cross-validation).
    # Empty for other scores.
    rules: str
    # Fingerprint of the file of answers.
    data: str


@dataclass(frozen=True)
class Candidate:
    """A score that the user may mean by A or B, the two names on the command line.

    If A is the name of a model, every score of the model in the record is a candidate.
    """

    # For a score in the record: the model, its seed and version, and when it was scored. Otherwise
    # the name of the file.
    name: str
    # The number of the score in the record; 0 for a file that was scored just now, whose score is
    # not in the record.
    number: int
    task: Task
    # The test in words: phase, rules (see `AnswerSet`) and origin of the answers.
    where: str
    # A function that returns which answers were predicted right. For a score in the record, it
    # reads them from a file.
    read: Callable[[], Outcomes]
    test: AnswerSet


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument("names", nargs="*", metavar="A B", help="what to compare")
    parser.add_argument("--phase", choices=PHASES, help="only scores of this phase")
    cli.add_file(parser, "--results", layout.TEST_OUTPUT_DIR / layout.RESULTS_NAME)
    return parser


def main() -> None:
    """Read the command line, then compare two scores, or list all scores in the record."""
    options = build_parser().parse_args()
    path: Path = options.results
    words = options.names
    if not words:
        reading.require_file(path)
    elif len(words) != 2:
        raise InputError(f"{len(words)} scores to compare, expected two, A and B")
    results = read_results(path) if path.is_file() else []
    if words:
        candidates = [find_candidates(word, results, path, options.phase) for word in words]
        print(compare(words, candidates))
    else:
        list_scores(results, path, options.phase)


def list_scores(results: Sequence[Result], path: Path, phase: str | None) -> None:
    """Print every score that can be compared, with its number; `path` is the record of scores."""
    n_listed = 0
    for number, result in enumerate(results, 1):
        # A comparison needs the outcomes: which answers were predicted right. The result names the
        # file of its outcomes, or nothing if there is none.
        has_outcomes = result.outcomes != ""
        if not has_outcomes or not is_of_phase(result, phase):
            continue
        n_listed += 1
        seed = "" if result.seed is None else f", seed {result.seed}"
        where = describe_test(result.phase, result.rules, result.origin)
        about = [f"task {result.task}", where, result.time[:10], *result.doubts]
        print(f"{number:4}  {result.score:.4f}  {result.name}{seed} ({', '.join(about)})")
    if not n_listed:
        suffix = f" of phase {phase}" if phase else ""
        raise InputError(
            f"{cli.show(path)}: holds no scores{suffix} to compare; every local_evaluation.py "
            "adds one"
        )


def describe_test(phase: str, rules: str, origin: Origin) -> str:
    """Return a phrase that names the phase, the rules (if any) and the origin of the answers."""
    return ", ".join(filter(None, (name_of_phase(phase), rules, origin.answers)))


# ---- Finding the scores of A and B ---------------------------------------------------------------


def find_candidates(
    word: str, results: list[Result], path: Path, phase: str | None
) -> list[Candidate]:
    """Return all scores of the model or file that a word on the command line names.

    The scores are in the order of the record, so the last one is the latest. The record is the file
    in which every evaluation notes its score. The scores in the record are numbered from 1.

    Parameters
    ----------
    word
        One of the two things to compare: a file, the number of a score in the record, or a model's
        name.
    results
        The scores of the record.
    path
        The record.
    phase
        Only scores of this phase count; None for any phase.

    Raises
    ------
    InputError
        If there is no score, or if the word may mean several models.
    """
    file = Path(word)
    if file.exists() and file.resolve().is_relative_to(layout.RELATED_DIR):
        raise InputError(f"{word}: is of a related challenge, expected scores of the tasks 1 to 4")
    if file.suffix.lower() in (".csv", ".zip"):
        task = task_of(file)
        # A zip of task 4 is an entry, not predictions: its scores are in the record.
        if task.form is not Form.ENTRY:
            return [score_submission(file, task, phase)]
    if file.exists():
        matches = find_by_file(word, results, path, phase)
    elif word.isdecimal():
        matches = find_by_number(word, results, path, phase)
    else:
        matches = find_by_name(word, results, path, phase)
    candidates = []
    for number, result in enumerate(results, 1):
        # Different scores in the record may be equal as objects, so compare them by identity.
        if any(result is match for match in matches):
            candidates.append(as_candidate(word, result, number, path))
    return candidates


def is_of_phase(result: Result, phase: str | None) -> bool:
    """Return whether a result is of a phase; None stands for any phase."""
    return phase is None or result.phase == phase


def of_phase(results: Sequence[Result], phase: str | None) -> list[Result]:
    """Return the results of a phase; None stands for any phase."""
    return [result for result in results if is_of_phase(result, phase)]


def find_by_file(
    word: str, results: Sequence[Result], path: Path, phase: str | None
) -> list[Result]:
    """Return all recorded scores of one script, or of one entry of task 4.

    `word` is the path of the script, or of the entry's folder or zip, as the user wrote it.
    `results` are all results in the record, whose path is `path`.
    """
    name = cli.show(Path(word).resolve())
    matches = []
    for result in of_phase(results, phase):
        if name in (result.submission, result.script):
            matches.append(result)
    if not matches:
        suffix = f" of phase {phase}" if phase else ""
        raise InputError(
            f"{word}: has no score{suffix} in {cli.show(path)}; the "
            "local_evaluation.py of its task, or `python -m tools.cross_validate`, adds one"
        )
    return matches


def find_by_number(
    word: str, results: Sequence[Result], path: Path, phase: str | None
) -> list[Result]:
    """Return a list with the one result whose number in the record of scores is `word`.

    It is a list because `find_by_name` may return several results. Results are counted from 1.
    `results` are all results in the record, whose path is `path`.
    """
    number = int(word)
    if not 1 <= number <= len(results):
        raise InputError(
            f"{word}: {cli.show(path)} has {len(results)} scores, expected a number up to that "
            "(`python -m tools.compare` lists them)"
        )
    result = results[number - 1]
    if not is_of_phase(result, phase):
        raise InputError(f"{word}: is of phase {result.phase}, expected one of phase {phase}")
    return [result]


def find_by_name(
    word: str, results: Sequence[Result], path: Path, phase: str | None
) -> list[Result]:
    """Return the results of a model.

    `word` is compared with the names of models with their options (`Result.name`). If no result has
    this name, `word` is compared with the names without options (`Result.model`). `path` is the
    record.
    """
    results_of_phase = of_phase(results, phase)
    matches = [result for result in results_of_phase if result.name == word]
    if not matches:
        matches = [result for result in results_of_phase if result.model == word]
    # If a task and a related challenge have a model of this name, the user means the task's model.
    matches_in_tasks = [result for result in matches if isinstance(result.task, int)]
    if matches_in_tasks:
        matches = matches_in_tasks
    if not matches:
        raise InputError(
            f"{quote(word)}: is no file and no model in {cli.show(path)}, expected a "
            "submission, a script, or a number or name that `python -m tools.compare` lists"
        )
    require_one_model(word, matches, results)
    return matches


def require_one_model(word: str, matches: Sequence[Result], results: Sequence[Result]) -> None:
    """Raise `InputError` if a word on the command line may mean several models.

    `matches` are the results that the word may mean, `results` all results in the record of scores.
    So that the user can choose, the message gives the number of each model's latest result.
    """
    # For each model, the number of its latest result: a later result replaces an earlier one.
    latest_numbers = {}
    for number, result in enumerate(results, 1):
        if result in matches:
            latest_numbers[result.task, result.name] = number
    if len(latest_numbers) > 1:
        models = []
        for (task, name), number in latest_numbers.items():
            models.append(f"{number} ({name}, task {task})")
        raise InputError(
            f"{quote(word)} may be any of these: {', '.join(models)}; expected one such number"
        )


def as_candidate(word: str, result: Result, number: int, path: Path) -> Candidate:
    """Return the `Candidate` for a score in the record, which the user may want to compare.

    `path` is the record, `number` is the number of the score in the record, and `word` is what the
    user wrote on the command line. A file in a folder beside the record holds the outcomes: which
    answers were predicted right. `Candidate.read` reads this file, and is called only if this
    candidate is chosen. Two candidates can be compared only if their test sets, `Candidate.test`,
    are the same.
    """
    if isinstance(result.task, str) or result.task not in TASKS:
        raise InputError(
            f"{result.name}: is scored in {title_of(result.task)}, expected scores of the tasks 1 "
            "to 4"
        )
    task = TASKS[result.task]
    where = describe_test(result.phase, result.rules, result.origin)

    def read() -> Outcomes:
        """Read the outcomes, and check that they give the score in the record."""
        if not result.outcomes:
            raise InputError(
                f"{word}: its line in the record does not say which answers were predicted right "
                f"({where}): score it again"
            )
        file = path.with_name(layout.OUTCOMES_NAME) / f"{result.outcomes}.npz"
        recorded_outcomes = outcomes.read(file)
        score = score_of(task, recorded_outcomes)
        if abs(score - result.score) > _SAME_SCORE:
            raise InputError(
                f"{cli.show(file)}: its outcomes give the score {score:.4f}, but the line of "
                f"{cli.show(path)} for {quote(word)} says {result.score:.4f}: they do not belong "
                "together, score it again"
            )
        return recorded_outcomes

    return Candidate(
        name=describe_result(result),
        number=number,
        task=task,
        where=where,
        read=read,
        test=AnswerSet(result.phase, result.rules, result.data),
    )


def score_submission(path: Path, task: Task, phase: str | None) -> Candidate:
    """Score a submission, a CSV or zip of task 1, 2 or 3, to compare it with another score.

    `phase` chooses the answers that score the submission: the answers of the local split, of the
    public test or of the private test. The default is the local split. The local split of task 3
    has no judgements of experts, so the public judgements score a submission of task 3 by default.
    """
    # A submission predicts given test data. It cannot be scored on folds, nor on answers of the
    # user's own.
    if phase in (CROSS_VALIDATION, OWN):
        raise InputError(f"{path}: is a submission, expected another --phase than {phase}")
    phase = phase or LOCAL
    if task is TASK_3 and phase == LOCAL:
        # The local split has no judgements of experts: take the public phase, which is the first
        # one.
        phase = layout.PHASES[0]
    reference = task.answers_path(phase)
    provenance.require_current([reference])
    # `doubts` are reasons not to trust the score, such as a model that has learned from unknown
    # answers. The record beside the submission gives them; in tasks 1 and 2, it is compared with
    # the training answers. `predicted_right` says which answers (in task 3, which judgements) the
    # submission predicts right.
    if task is TASK_3:
        doubts = entry_origin.judge_submission(path, [reference])
        template = layout.TEMPLATE_DIR / str(task.template)
        predicted_right = ranking.match(path, reference, template, phase).outcomes
    else:
        train = task.train_path(phase)
        doubts = entry_origin.judge_submission(
            path, [reference], template_names=task.template_names, train=train
        )
        matched = pairs.match(task, path, reference, phase).pairs
        predicted_right = outcomes.of_predictions(matched)
    marks = [doubt.mark for doubt in doubts]
    return Candidate(
        name=", ".join([score_files.describe_entry(path), *marks]),
        # Scores in the record are numbered from 1, and this score is not in the record.
        number=0,
        task=task,
        where=describe_test(phase, rules="", origin=provenance.origin_of(reference)),
        # The outcomes have just been computed, so `read` returns them without reading a file.
        read=lambda: predicted_right,
        test=AnswerSet(phase, rules="", data=record.fingerprint_of(reference)),
    )


def describe_result(result: Result) -> str:
    """Describe a result: model, seed, version of the code, time, and reasons to doubt the score."""
    seed = "no seed" if result.seed is None else f"seed {result.seed}"
    parts = [result.name, seed]
    if result.code:
        parts.append(f"code {result.code}")
    parts.append(f"scored on {provenance.to_minute(result.time)}")
    if has_script_changed(result):
        parts.append(f"{result.script} has changed since")
    return ", ".join([*parts, *result.doubts])


def has_script_changed(result: Result) -> bool:
    """Return whether a result's script, or a file that it imports, has changed since the score.

    Returns False if this is not known. For an entry of task 4, it is not known, because the code of
    such an entry is a whole folder.
    """
    is_entry = not isinstance(result.task, int) or TASKS[result.task].form is Form.ENTRY
    script = layout.ROOT / result.script
    if not result.code or is_entry or script.suffix != ".py" or not script.is_file():
        return False
    return source_code.fingerprint(script) != result.code


# ---- The difference of A and B -----------------------------------------------------------------


def compare(words: Sequence[str], candidates: Sequence[list[Candidate]]) -> str:
    """Compare two scores, A and B; return lines of text that say which one is better.

    Parameters
    ----------
    words
        The two words on the command line: names of models, numbers of scores, or files.
    candidates
        For each word, the scores that the word may mean, with the latest score at the end.
        `choose_pair` chooses one score of A and one of B.
    """
    word_a, word_b = words
    candidates_a, candidates_b = candidates
    a, b = choose_pair(candidates_a, candidates_b)
    if a.task is not b.task:
        raise InputError(
            f"{word_a} is of task {a.task.number} and {word_b} of task {b.task.number}, expected "
            "two scores of one task"
        )
    outcomes_a = a.read()
    outcomes_b = b.read()
    if outcomes_a.answers != outcomes_b.answers:
        raise InputError(
            f"{word_a} was scored on {size_of(a.task, outcomes_a)} ({a.where}) and {word_b} on "
            f"{size_of(b.task, outcomes_b)} ({b.where}): two different test sets, expected the "
            "same answers"
        )
    lines = [
        f"A  {score_of(a.task, outcomes_a):.4f}  {a.name}",
        *describe_others("A", a, candidates_a),
        f"B  {score_of(a.task, outcomes_b):.4f}  {b.name}",
        *describe_others("B", b, candidates_b),
        f"task {a.task.number}, {a.where}: {size_of(a.task, outcomes_a)}",
        *describe(a.task, outcomes_a, outcomes_b),
    ]
    return "\n".join(textwrap.fill(line, 80, subsequent_indent="  ") for line in lines)


def describe_others(letter: str, chosen: Candidate, candidates: Sequence[Candidate]) -> list[str]:
    """Say which other scores the user may have meant; return no line if there are none.

    The user names each of the two scores, A and B, by a word such as a model's name. `candidates`
    are all recorded scores that the word may mean, and `chosen` is the candidate that is compared.
    `letter` is "A" or "B".
    """
    n_others = len(candidates) - 1
    if n_others == 0:
        return []
    # The candidates are in the order of the record.
    latest = candidates[-1]
    others = "1 more score" if n_others == 1 else f"{n_others} more scores"
    line = f"   {letter} has {others} in the record; this is number {chosen.number}"
    if latest is not chosen:
        line += f", and a later one is number {latest.number}: {latest.name} ({latest.where})"
    return [line]


def choose_pair(
    candidates_a: list[Candidate], candidates_b: list[Candidate]
) -> tuple[Candidate, Candidate]:
    """Return the latest scores of A and B on the same test set.

    If no score of A and no score of B share a test set, return the latest score of each.
    """
    # The latest score of A on each test set: in the dict, a later score replaces earlier ones.
    latest_a = {(a.task, a.test): a for a in candidates_a}
    # Try the latest score of B first.
    for b in reversed(candidates_b):
        if (b.task, b.test) in latest_a:
            return latest_a[b.task, b.test], b
    return candidates_a[-1], candidates_b[-1]


def size_of(task: Task, kept: Outcomes) -> str:
    """Return the size of a test in words: the numbers of answers and students.

    In task 3, these are the numbers of judgements and of pairs of questions.
    """
    n = len(kept.right)
    n_units = kept.counts.shape[1]
    return f"{n:,} {task.scored_items} of {n_units:,} {task.drawn_units}"


def score_of(task: Task, kept: Outcomes) -> float:
    """Return the score that outcomes give, as the evaluation computes it."""
    # In task 4 there is a share of right answers for each mask, in task 3 for each expert, and in
    # other tasks a single share. The score is the mean of the shares or, in task 3, the largest
    # share.
    n_right = kept.count_right().sum(axis=1)
    n_answers = kept.counts.sum(axis=1)
    shares = metrics.share_right(n_right, n_answers)
    return float(metrics.combine_parts(shares, takes_best=task.scores_best_part))


def describe(task: Task, a: Outcomes, b: Outcomes) -> list[str]:
    """Say in lines of text whether A or B is better, and how sure that is."""
    difference = score_of(task, b) - score_of(task, a)
    # The columns of `a.counts` are the units that are resampled: students or, in task 3, pairs of
    # questions.
    n_units = a.counts.shape[1]
    lines = []
    if n_units == 1:
        # Resampling a single unit would always give the same difference.
        lines.append(
            f"no difference can be told: B - A = {difference:.4f} (no interval: a single one of "
            f"the {task.drawn_units} says nothing about others)"
        )
    else:
        low, high = np.percentile(bootstrap_difference(task, a, b), (2.5, 97.5)).tolist()
        lines.append(describe_difference(difference, low, high))
        lines.append(
            f"interval: percentile bootstrap, the {task.drawn_units} drawn again {N_DRAWS:,} times"
        )
        if task is TASK_3:
            # The interval reaches about half its width to either side of the difference. So a
            # difference larger than that leaves 0 outside.
            lines.append(
                "with so few pairs, only rankings that differ by about "
                f"{(high - low) / 2:.2f} or more can be told apart"
            )
    # McNemar's test needs independent judgements. In task 3, several experts judge the same pairs.
    if task is not TASK_3:
        lines.append(describe_mcnemar(a, b))
    return lines


def describe_difference(difference: float, low: float, high: float) -> str:
    """Say whether A or B is better.

    `difference` is B - A; `low` and `high` are the ends of the difference's 95 % interval.
    """
    if low <= 0 <= high:
        return (
            f"no difference can be told: B - A = {difference:.4f} "
            f"(95 % interval {low:.4f} to {high:.4f})"
        )
    better = "B" if difference > 0 else "A"
    # Both ends of the interval have the same sign: show them without the sign.
    smaller, larger = sorted((abs(low), abs(high)))
    return (
        f"{better} is better by {abs(difference):.4f} (95 % interval {smaller:.4f} to {larger:.4f})"
    )


def bootstrap_difference(task: Task, a: Outcomes, b: Outcomes) -> FloatArray:
    """Return the score of B minus the score of A, in each of many resamples.

    A resample draws as many units as the test has, with repetition (Efron 1979, "Bootstrap methods:
    another look at the jackknife"). In tasks 1, 2 and 4 a unit is a student. In task 3 it is a pair
    of questions. The answers of a unit are divided into parts: in task 3 one part for each expert,
    in task 4 one part for each mask. Other tasks have a single part.

    Returns
    -------
    array, shape (N_DRAWS,)
    """
    n_units = a.counts.shape[1]
    # The columns of `a.counts` are the units, and its rows are the parts. For each unit, list the
    # numbers of A's right answers in each part, of B's right answers in each part, and of all
    # answers in each part. The shape is (units, 3 × parts).
    counts = np.concatenate([a.count_right(), b.count_right(), a.counts])
    counts_by_unit = np.ascontiguousarray(counts.T, np.float64)
    rng = np.random.default_rng(0)
    sums = []
    for _ in range(N_DRAWS):
        drawn = rng.integers(n_units, size=n_units, dtype=np.int32)
        times_drawn = np.bincount(drawn, minlength=n_units)
        # The product sums the counts of the units; a unit that is drawn twice counts twice.
        sums.append(times_drawn @ counts_by_unit)
    # The rows of `sums` are the resamples. Its columns are three groups of counts, one after the
    # other: split them into three arrays of the shape (N_DRAWS, parts).
    right_a, right_b, n = np.split(np.array(sums), 3, axis=1)
    # In task 3, the score is the largest share: that of the expert who agrees most with the
    # ranking. In other tasks, the score is the mean of the shares of all parts.
    takes_best = task.scores_best_part
    scores_a = metrics.combine_parts(metrics.share_right(right_a, n), takes_best=takes_best)
    scores_b = metrics.combine_parts(metrics.share_right(right_b, n), takes_best=takes_best)
    return scores_b - scores_a


def describe_mcnemar(a: Outcomes, b: Outcomes) -> str:
    """Return the result of McNemar's exact test (1947) in words, with a warning.

    The test compares the answers that only A predicts right with those that only B predicts right.
    It supposes that answers are independent. Answers of one student are not, so p may be too small.
    The confidence interval that is shown beside p resamples whole students and allows for that.
    """
    # SciPy takes a second to load, and only this function needs it.
    from scipy.stats import binomtest

    n_only_a = int((a.right & ~b.right).sum())
    n_only_b = int((b.right & ~a.right).sum())
    counts = f"only A is right on {n_only_a:,} answers, only B on {n_only_b:,}"
    # In task 4, the same answer may be a target of several masks.
    if not a.distinct:
        return f"{counts}; no test by McNemar: the same answers are counted several times"
    n_differing = n_only_a + n_only_b
    # If A and B predicted equally well, A would be right on about half of the answers on which only
    # one of A and B is right.
    p = float(binomtest(n_only_a, n_differing, 0.5).pvalue) if n_differing else 1.0
    shown = "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"
    # The columns of `a.counts` are the units that are resampled, such as students. With a single
    # unit, there is no interval.
    has_interval = a.counts.shape[1] > 1
    advice = ": trust the interval" if has_interval else ""
    return (
        f"McNemar's exact test: {shown}; {counts}; it takes all answers for independent, which "
        f"those of one student are not{advice}"
    )


if __name__ == "__main__":
    cli.run(main)
