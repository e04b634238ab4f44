"""Task 3: score a ranking of questions against a panel of experts, or against itself.

Run:     python task_3/local_evaluation.py --phase public     the official panel: five teachers
         python task_3/local_evaluation.py --ref_data FILE    a panel of your own
         python task_3/local_evaluation.py                    the local split, or else the upload
Writes:  data/test_output/scores_task_3_public.txt and .html, for a panel of your own
         scores_task_3_own.txt and .html, for the local split scores_task_3.txt and .html

The score is the share of pairs on which the ranking agrees with its best expert, who agrees most. A
panel is a CSV file with two QuestionIds, left and right, and a column for each expert, of any name:
1 if the left question is better, 2 if the right one is, or nothing. An empty judgement does not
count; with --missing disagrees it counts as disagreement. With few pairs, random rankings agree
well with their best experts too. The page lists the pairs on which ranking and experts disagree.

For the local split, the script takes the ranking that a model made with --local, by one half of the
students, and runs the model on the other half (with another seed, if it takes one). The result is
Spearman's and Kendall's correlation of the two rankings, with 95 % intervals.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common import cli, fingerprints, layout, provenance, reading, schema, source_code
from common.arrays import IntArray
from common.errors import InputError
from common.evaluation import entry_origin, ranking, score_files
from common.evaluation.phases import choose_phase, name_older
from common.evaluation.record import Evaluation
from common.metrics import Score
from common.origin import Origin
from common.submission import read_ranking
from common.tasks import LOCAL, OWN, TASK_3

import numpy as np
import pandas as pd

# Quantile of the standard normal distribution for 95 % intervals.
_Z = 1.96
# With fewer questions than this, Kendall's correlation has no interval: the formula of its variance
# in `correlate` divides by the number of questions minus 4.
_MIN_QUESTIONS = 5


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    # If neither this flag nor --ref_data is given, the script usually compares the two halves of
    # the local split (see `choose_phase`).
    parser.add_argument("--phase", choices=layout.PHASES, help="score by this phase's pairs")
    help_text = "a panel of your own, CSV, in --input_dir or in the current folder"
    parser.add_argument("--ref_data", metavar="FILE", help=help_text)
    parser.add_argument(
        "--missing",
        choices=ranking.MISSING,
        default="ignored",
        help="how an empty judgement counts (default ignored)",
    )
    cli.add_optional_folder(
        parser, "--input_dir", "data/test_data, for the local split data/test_input"
    )
    cli.add_optional_folder(
        parser, "--submission_dir", "submissions, for the local split data/test_output"
    )
    help_text = (
        f"CSV or zip (default {TASK_3.submission}, for the local split {TASK_3.local_submission})"
    )
    parser.add_argument("--submit_data", metavar="FILE", help=help_text)
    parser.add_argument(
        "--rankings",
        type=Path,
        nargs="+",
        metavar="FILE",
        default=[],
        help="further rankings: do the experts tell them apart from this one?",
    )
    cli.add_template_flags(parser, layout.TEMPLATE_TASK_3)
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR)
    return parser


def main() -> None:
    """Score the ranking that the flags name."""
    options = build_parser().parse_args()
    options.phase = choose_phase(options, TASK_3)
    if options.phase == LOCAL and options.ref_data:
        # Without a phase, the ranking would be scored without experts. But `--ref_data` names a
        # file with the judgements of a panel, so score against this panel. A phase is then only
        # needed for the default folders of files, so take the first one.
        options.phase = layout.PHASES[0]
    default = TASK_3.submission_path(options.phase)
    submission_dir = options.submission_dir or default.parent
    submitted = submission_dir / (options.submit_data or default.name)
    template = cli.template_path(options, layout.TEMPLATE_DIR, layout.TEMPLATE_TASK_3)
    if options.phase != LOCAL:
        evaluate_by_experts(options, submitted, template)
        return
    if options.rankings:
        raise InputError(
            "--rankings needs the judgements of experts, expected --phase or --ref_data too"
        )
    evaluate_halves(options, submitted, template)


# ---- Against a panel of experts ------------------------------------------------------------------


def evaluate_by_experts(options: argparse.Namespace, submitted: Path, template: Path) -> None:
    """Score a ranking against a panel of experts, print and write the score.

    `submitted` is the file with the ranking, `template` the file with the questions to rank. The
    flag --rankings may name files with further rankings, the rivals. The same judgements tell
    whether a rival is better or worse than the ranking.
    """
    official = TASK_3.answers_path(options.phase)
    input_dir = options.input_dir or official.parent
    # The file with the experts' judgements.
    reference = cli.input_file(input_dir, options.ref_data or official.name)
    # The name of the phase for the files of scores. It is `OWN` if the judgements are from a panel
    # of the user's own.
    phase = TASK_3.phase_of(options.phase, options.ref_data)
    # Remove the scores of an earlier run, so that they do not stay if this run fails.
    inputs = [submitted, reference, template, *options.rankings]
    score_files.remove_scores(options.output_dir, TASK_3.number, phase, inputs)
    # Doubts are reasons not to trust a score. One is that the ranking was made with the judgements.
    doubts = entry_origin.judge_submission(submitted, [reference])
    rivals, notes = read_rivals(options.rankings, reference, template)

    matched = ranking.match(submitted, reference, template, phase, options.missing)
    score = ranking.score(matched)
    # `evaluation` holds the score and its facts, for the record of scores. `page_values` holds
    # further values that the page of the score shows.
    evaluation, page_values = ranking.explain(matched, score, rivals=rivals)
    # The record marks the score as simulated if the file of judgements, or a file in `made_from`,
    # is simulated.
    made_from = ranking_if_simulated(submitted, phase)
    evaluation = replace(evaluation, doubts=doubts, made_from=made_from)

    lines = describe_agreement(page_values["agreement"], page_values["experts"])
    # Each fact has a title and a text. The text with the title `ranking.LUCK` is a sentence on the
    # scores that random rankings reach by chance.
    facts = dict(evaluation.facts)
    sentence_on_luck = facts[ranking.LUCK]
    # The score is the ranking's agreement with the expert with whom it agrees most.
    lines.append(f"score {evaluation.score.value:.4f} (best expert); {sentence_on_luck}")
    lines += [describe_rival(rival) for rival in page_values["rivals"]]
    lines += notes
    score_files.publish(
        options.output_dir, evaluation, lines, template="ranking.html", **page_values
    )


def read_rivals(
    paths: Sequence[Path], reference: Path, template: Path
) -> tuple[dict[str, pd.Series], list[str]]:
    """Read the rankings that are compared with the scored ranking.

    `reference` is the file with the experts' judgements, `template` the file with the questions to
    rank. The results are the rankings by name, and a note for each reason not to trust a ranking,
    such as that it was made with the judgements.
    """
    rivals = {}
    notes = []
    for path in paths:
        name = cli.show(path)
        rivals[name] = read_ranking(path, template)
        for doubt in entry_origin.judge_submission(path, [reference]):
            notes.append(f"note: {name}: {doubt.sentence}")
    return rivals, notes


def describe_agreement(figures: pd.DataFrame, experts: Sequence[str]) -> list[str]:
    """Describe how well a ranking agrees with each expert, with all on average, and with the best.

    Parameters
    ----------
    figures
        The table that `compare_with_experts` returns. It has a row for each expert, and the rows
        "mean", for all experts on average, and "best", for the expert with the largest share. Its
        columns are `share`, the share of judged pairs on which ranking and expert agree; `low` and
        `high`, the interval of this share; `n_judged`, the number of judged pairs; `others`, how
        often the expert agrees with the other experts.
    experts
        The names of all experts.

    Returns
    -------
    list
        A line for each expert, for the mean and for the best.
    """
    # An expert without judgements has no row in `figures`, and so gets NaN throughout.
    figures = figures.reindex([*experts, "mean", "best"])
    width = max(20, *map(len, experts))
    lines = []
    for name, row in figures.iterrows():
        line = f"{name:{width}} "
        if np.isnan(row["share"]):
            line += "none"
        else:
            line += f"{row['share']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        if not np.isnan(row["n_judged"]):
            line += f" of {row['n_judged']:.0f} pairs"
        if not np.isnan(row["others"]):
            line += f"; agreement with other experts {row['others']:.2f}"
        lines.append(line)
    return lines


def describe_rival(rival: ranking.Rival) -> str:
    """Say in a line of text whether the experts find another ranking better than the scored one."""
    best = float(rival.agreement["share"]["best"])
    contest = rival.contest
    return (
        f"{rival.name}: {best:.4f} (best expert); of {contest.n_pairs} judged pairs on which it "
        f"disagrees with the scored ranking, {contest.n_first} speak for the scored one and "
        f"{contest.n_second} for the other; {contest.verdict}"
    )


def ranking_if_simulated(submitted: Path, phase: str) -> list[Path]:
    """Return the ranking's file, in a list, if it makes the score simulated; else an empty list.

    A score is simulated if it comes from simulated data. Usually the experts' file shows whether
    the data are simulated. But the file of a user's own panel (the phase `OWN`) does not show it.
    If the ranking was made from simulated answers, the panel has judged simulated questions, so the
    score is simulated.
    """
    is_simulated = provenance.origin_of(submitted) is Origin.SIMULATED
    return [submitted] if phase == OWN and is_simulated else []


# ---- The local split, without experts ------------------------------------------------------------


def evaluate_halves(options: argparse.Namespace, submitted: Path, template: Path) -> None:
    """Compare the rankings that a model makes from each half of the students.

    `submitted` is the ranking from the first half. The script that made it runs again here, on the
    second half. The score is the rank correlation of the two rankings.
    """
    # Remove the scores of an earlier run, so that they do not stay if this run fails.
    score_files.remove_scores(options.output_dir, TASK_3.number, LOCAL, (submitted, template))
    rank_by_first = read_ranking(submitted, template)
    # The record beside the ranking says which command made the ranking, and from which files.
    origin = read_local_origin(submitted)
    folder = options.input_dir or Path(origin.options.get("input_dir", layout.TEST_INPUT_DIR))
    first_half = folder / TASK_3.local_train
    # local_data_split.py writes the answers of the second half of the students to this file. In the
    # other tasks, this file holds the answers to be predicted.
    second_half = folder / TASK_3.local_answers
    # Raise an error if the training file has changed since it was split into these halves.
    provenance.require_current([first_half, second_half])
    # The ranking must come from the present first half, and the other files that the ranking was
    # made from must not have changed since.
    require_same_split(submitted, origin, first_half)
    entry_origin.require_same_sources(submitted, origin, submitted.parent)
    common_questions = find_common_questions(first_half, second_half)
    rank_by_second = rank_by_other_half(submitted, origin, template)

    ranks = pd.DataFrame({"first": rank_by_first, "second": rank_by_second})
    ranks = ranks.reindex(common_questions).dropna()
    if len(ranks) < _MIN_QUESTIONS:
        raise InputError(f"{folder}: {len(ranks)} questions are answered in both halves, too few")
    evaluation, lines = explain_halves(ranks, submitted, second_half)
    evaluation = replace(evaluation, doubts=entry_origin.find_doubts(origin))
    # Add a line if there is an older ranking, which is not scored.
    lines += name_older(options, TASK_3, submitted)
    kendall = evaluation.parts["Kendall"]
    score_files.publish(options.output_dir, evaluation, lines, figures={"kendall": kendall})


def explain_halves(
    ranks: pd.DataFrame, submitted: Path, second_half: Path
) -> tuple[Evaluation, list[str]]:
    """Return the score of a ranking on the two halves of the students, and lines to print.

    `ranks` has a row for each question. Its columns are ``first`` and ``second``, the ranks that
    the model gives from the first and from the second half of the students.
    """
    correlations = correlate(ranks)
    spearman = correlations["Spearman"].value
    kendall = correlations["Kendall"].value
    texts = {name: str(correlation) for name, correlation in correlations.items()}
    evaluation = Evaluation(
        task=TASK_3.number,
        metric="Spearman's rank correlation of the model's rankings by two halves of the students",
        score=Score(spearman, n=len(ranks)),
        submission=submitted,
        reference=second_half,
        phase=LOCAL,
        parts={"Spearman": spearman, "Kendall": kendall},
        facts=[("Questions answered in both halves", f"{len(ranks):,}"), *texts.items()],
        metric_name="rank correlation of two halves",
    )
    lines = [f"{name:8} {text}" for name, text in texts.items()]
    lines.append(
        f"score {spearman:.4f} (Spearman; {len(ranks):,} questions that both halves of the "
        "students answered)"
    )
    return evaluation, lines


def find_common_questions(first_half: Path, second_half: Path) -> IntArray:
    """Return the QuestionIds that occur in two files of answers, sorted."""
    in_first = reading.read_table(first_half, [schema.QUESTION_ID])["QuestionId"]
    in_second = reading.read_table(second_half, [schema.QUESTION_ID])["QuestionId"]
    return np.intersect1d(in_first, in_second)


def read_local_origin(submitted: Path) -> provenance.Provenance:
    """Return how a ranking was made: by a sample model, from the first half of the students.

    Raises
    ------
    InputError
        If no record beside the ranking says that a sample model made it with --local and without
        --train_data. Such a ranking may come from answers other than those of the first half.
    """
    origin = provenance.read(submitted)
    if origin is None or "local" not in origin.options or "train_data" in origin.options:
        raise InputError(
            f"{submitted}: no record beside it says that a sample model made it with --local "
            "(and without --train_data); run a sample model in this way, to compare its ranking on "
            "the two halves of the students"
        )
    return origin


def require_same_split(submitted: Path, origin: provenance.Provenance, first_half: Path) -> None:
    """Raise `InputError` if a ranking was made from another version of the file `first_half`."""
    for path, recorded in origin.made_from.items():
        is_first_half = Path(path).name == first_half.name
        if is_first_half and not fingerprints.matches(first_half, recorded):
            raise InputError(
                f"{submitted}: was made from another split; make it again with `{origin.command}`"
            )


def rank_by_other_half(submitted: Path, origin: provenance.Provenance, template: Path) -> pd.Series:
    """Rank by the second half of the students, with the script that made the ranking `submitted`.

    Returns
    -------
    Series
        The rank of each question by the second half, by QuestionId; 1 is the best.
    """
    # Import this module only here: scoring against experts does not need it.
    from tools import script_runs

    # `command_to_repeat` returns the script and the flags that made the ranking. It leaves out
    # flags that name paths, except --metadata_dir and those in `keep`: the paths of the answers and
    # of the template.
    kept_flags = ("input_dir", "submission_template_dir", "submission_template_file")
    script, flags = script_runs.command_to_repeat(origin, TASK_3, submitted, keep=kept_flags)
    if source_code.fingerprint(script) != origin.code:
        raise InputError(
            f"{submitted}: was made by another version of {cli.show(script)}; "
            f"make it again with `{origin.command}`"
        )
    if "--seed" in script_runs.declared_flags(script):
        # The run on the first half used the seed of the record. With the same seed, both runs would
        # draw the same random numbers, and the two rankings would agree too well.
        flags += ["--seed", str((origin.seed or 0) + 1)]
    # --local=second makes the script read the second half instead of the first half.
    with tempfile.TemporaryDirectory(prefix="other_half_") as folder:
        command = [script, *flags, "--local=second", "--output_dir", folder]
        script_runs.run_script(command, "the other half of the students")
        return read_ranking(Path(folder) / TASK_3.local_submission, template)


@dataclass(frozen=True)
class Correlation:
    """A rank correlation, from -1 to 1."""

    value: float
    # Ends of the 95 % interval.
    low: float
    high: float

    def __str__(self) -> str:
        """Return the correlation and its interval in words."""
        return f"{self.value:.4f} ({self.low:.2f} to {self.high:.2f})"


def correlate(ranks: pd.DataFrame) -> dict[str, Correlation]:
    """Compute the rank correlations of the columns ``first`` and ``second``.

    Parameters
    ----------
    ranks
        A row for each question, at least five.

    Returns
    -------
    dict
        The correlations by name: Spearman and Kendall.

    Notes
    -----
    The intervals are those of Fisher's z. Its standard error is that of Bonett & Wright (2000) for
    Spearman's correlation, and that of Fieller, Hartley & Pearson (1957) for Kendall's.
    """
    n = len(ranks)
    rho = float(ranks["first"].corr(ranks["second"], method="spearman"))
    tau = float(ranks["first"].corr(ranks["second"], method="kendall"))
    return {
        "Spearman": _with_interval(rho, variance=(1 + rho**2 / 2) / (n - 3)),
        "Kendall": _with_interval(tau, variance=0.437 / (n - 4)),
    }


def _with_interval(value: float, variance: float) -> Correlation:
    """Return a correlation with its 95 % interval.

    `variance` is the variance of Fisher's z, artanh(value).
    """
    # The z of the correlations 1 and -1 is infinite, which is no reason for a warning.
    with np.errstate(divide="ignore"):
        z = np.arctanh(value)
    half_width = _Z * variance**0.5
    low = np.tanh(z - half_width)
    high = np.tanh(z + half_width)
    return Correlation(value, float(low), float(high))


if __name__ == "__main__":
    cli.run(main)
