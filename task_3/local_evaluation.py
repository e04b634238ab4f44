"""Task 3: score a ranking of questions against a panel of experts, or against itself.

Run:     python task_3/local_evaluation.py --phase public     the official panel: five teachers
         python task_3/local_evaluation.py --ref_data FILE    your own panel
         python task_3/local_evaluation.py                    the local split, without experts
Writes:  data/test_output/scores_task_3_public.txt and .html, or of the local split
         scores_task_3.txt and .html

The score is the share of pairs on which the ranking agrees with its best expert. A panel is a CSV
with left and right, two QuestionIds, and a column for each expert, of any name: 1 where the left
question is better, 2 where the right one is, or nothing. What is empty does not count;
--missing disagrees counts it as disagreement. With few pairs, a random ranking agrees well with its
best expert too: what it reaches is printed beside the score, as are the 95 % interval of every
figure and how often the experts agree with each other. The page also lists the pairs on which
ranking and experts disagree.

Of the local split, the ranking that a sample model made with --local, by one half of the students,
is compared with that of the same model by the other half, which is made anew (with another seed,
where the model takes one): Spearman's and Kendall's rank correlation, with 95 % intervals.
"""

import argparse
import tempfile
from pathlib import Path

from common import cli, fingerprints, layout, provenance, reading, schema, source_code
from common.errors import InputError
from common.evaluation import ranking, score_files
from common.evaluation.record import Evaluation
from common.metrics import Score
from common.submission import read_ranking
from common.tasks import LOCAL, TASK_3

import numpy as np
import pandas as pd

_Z = 1.96  # of a normal distribution, for 95 % intervals


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument("--phase", choices=layout.PHASES, help="which official pairs")
    parser.add_argument(
        "--ref_data", metavar="FILE", help="the judgements (default those of the phase)"
    )
    parser.add_argument(
        "--missing", choices=ranking.MISSING, default="ignored", help="default ignored"
    )
    cli.add_optional_folder(
        parser, "--input_dir", "data/test_data, of the local split data/test_input"
    )
    cli.add_optional_folder(
        parser, "--submission_dir", "submissions, of the local split data/test_output"
    )
    help_text = (
        f"CSV or zip (default {TASK_3.submission}, of the local split {TASK_3.local_submission})"
    )
    parser.add_argument("--submit_data", metavar="FILE", help=help_text)
    cli.add_template_flags(parser, layout.TEMPLATE_TASK_3)
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR)
    return parser


def main() -> None:
    """Score the ranking that the flags name."""
    options = build_parser().parse_args()
    is_local = not options.phase and not options.ref_data
    options.phase = LOCAL if is_local else options.phase or layout.PHASES[0]
    default = TASK_3.submission_path(options.phase)
    submission_dir = options.submission_dir or default.parent
    submitted = submission_dir / (options.submit_data or default.name)
    template = cli.template_path(options, layout.TEMPLATE_DIR, layout.TEMPLATE_TASK_3)
    evaluate = evaluate_halves if is_local else evaluate_by_experts
    evaluate(options, submitted, template)


def evaluate_by_experts(options: argparse.Namespace, submitted: Path, template: Path) -> None:
    """Score a ranking against a panel of experts."""
    official = TASK_3.answers_path(options.phase)
    reference = (options.input_dir or official.parent) / (options.ref_data or official.name)
    inputs = submitted, reference, template
    score_files.remove_scores(options.output_dir, TASK_3.number, options.phase, inputs)
    matched = ranking.match(submitted, reference, template, options.phase, options.missing)
    evaluation, page = ranking.explain(matched, ranking.score(matched))
    lines = []
    figures = page["agreement"].reindex([*page["experts"], "mean", "best"])
    width = max(20, *map(len, page["experts"]))
    for expert, share, low, high, n_judged, others in figures.itertuples(name=None):
        known = f"{share:.2f} ({low:.2f} to {high:.2f})" if share == share else "none"
        pairs = f" of {n_judged:.0f} pairs" if n_judged == n_judged else ""
        among = f"; experts among themselves {others:.2f}" if others == others else ""
        lines.append(f"{expert:{width}} {known}{pairs}{among}")
    luck = dict(evaluation.facts)[ranking.LUCK]
    lines.append(f"score {evaluation.score.value:.4f} (best expert); {luck}")
    score_files.publish(options.output_dir, evaluation, lines, template="ranking.html", **page)


def evaluate_halves(options: argparse.Namespace, submitted: Path, template: Path) -> None:
    """Compare a ranking by one half of the students with the same model's by the other."""
    score_files.remove_scores(options.output_dir, TASK_3.number, LOCAL, (submitted, template))
    first = read_ranking(submitted, template)
    by = provenance.read(submitted)
    if by is None or "local" not in by.options or "train_data" in by.options:
        raise InputError(
            f"{submitted}: no record beside it says that a sample model made it with --local, "
            "which is needed to rank by the other half of the students too"
        )
    folder = options.input_dir or Path(by.options.get("input_dir", layout.TEST_INPUT_DIR))
    halves = [folder / TASK_3.local_train, folder / TASK_3.local_answers]
    provenance.require_current(halves)
    learned = [by.made_from[path] for path in by.made_from if Path(path).name == halves[0].name]
    if learned and not fingerprints.matches(halves[0], learned[0]):
        raise InputError(f"{submitted}: was made from another split, `{by.command}` makes it again")
    answered = [reading.read_table(half, [schema.QUESTION_ID])["QuestionId"] for half in halves]
    second = rank_by_other_half(submitted, by, template)

    both = np.intersect1d(answered[0], answered[1])
    ranks = pd.DataFrame({"first": first, "second": second}).reindex(both).dropna()
    if len(ranks) < 5:
        raise InputError(f"{folder}: {len(ranks)} questions are answered in both halves, too few")
    figures = correlate(ranks)
    words = {name: f"{r:.4f} ({low:.2f} to {high:.2f})" for name, (r, low, high) in figures.items()}
    evaluation = Evaluation(
        task=TASK_3.number,
        metric="Spearman's rank correlation of the model's rankings by two halves of the students",
        score=Score(figures["Spearman"][0], n=len(ranks)),
        submission=submitted,
        reference=halves[1],
        phase=LOCAL,
        parts={name: r for name, (r, _, _) in figures.items()},
        facts=[("Questions answered in both halves", f"{len(ranks):,}"), *words.items()],
        metric_name="rank correlation of two halves",
    )
    kendall = {"kendall": figures["Kendall"][0]}
    lines = [f"{measure:8} {text}" for measure, text in words.items()]
    lines.append(
        f"score {evaluation.score.value:.4f} (Spearman; {len(ranks):,} questions that both halves "
        "of the students answered)"
    )
    score_files.publish(options.output_dir, evaluation, lines, figures=kendall)


def rank_by_other_half(submitted: Path, by: provenance.Provenance, template: Path) -> pd.Series:
    """Run the script that made a ranking by one half of the students on the other half."""
    from tools import script_runs

    places = ("input_dir", "submission_template_dir", "submission_template_file")
    script, flags = script_runs.command_to_repeat(by, TASK_3, submitted, keep=places)
    if source_code.fingerprint(script) != by.code:
        raise InputError(
            f"{submitted}: was made by other code than now lies in {cli.show(script)}, "
            f"`{by.command}` makes it again"
        )
    if "--seed" in script_runs.declared_flags(script):
        flags += ["--seed", str((by.seed or 0) + 1)]
    with tempfile.TemporaryDirectory(prefix="other_half_") as folder:
        command = [script, *flags, "--local=second", "--output_dir", folder]
        script_runs.run_script(command, "the other half of the students")
        return read_ranking(Path(folder) / TASK_3.local_submission, template)


def correlate(ranks: pd.DataFrame) -> dict[str, tuple[float, float, float]]:
    """Return Spearman's and Kendall's rank correlation with 95 % intervals by Fisher's z, with the
    standard errors of Bonett & Wright (2000) and of Fieller, Hartley & Pearson (1957).
    """
    n, (first, second) = len(ranks), (ranks[name] for name in ("first", "second"))
    rho, tau = first.corr(second, method="spearman"), first.corr(second, method="kendall")
    figures = {}
    for name, r, variance in (
        ("Spearman", rho, (1 + rho**2 / 2) / (n - 3)),
        ("Kendall", tau, 0.437 / (n - 4)),
    ):
        with np.errstate(divide="ignore"):  # Of 1 and -1, z is infinite.
            low, high = np.tanh(np.arctanh(r) + np.array([-_Z, _Z]) * variance**0.5)
        figures[name] = (float(r), float(low), float(high))
    return figures


if __name__ == "__main__":
    cli.run(main)
