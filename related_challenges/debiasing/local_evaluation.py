"""Debiasing: score recommendations by NDCG@50 and hit rate@50, as the organisers' script does.

Run:     python related_challenges/debiasing/local_evaluation.py
Reads:   data/test_output/submission.csv and data/test_input/debias_track_answer.csv; if the latter
         is missing, underexpose_test_qtime_with_answer-T.csv and the clicks of all phases T
Writes:  data/test_output/scores_debiasing.txt and .html, and a line in results.jsonl, the record of
         all scores

The score is NDCG@50 over all users, summed over the phases. scores_debiasing.txt holds the sums
over the phases of all four metrics, named as on the challenge's leaderboard. Rows of users who are
not scored are ignored. --phase T scores as at phase T of the challenge: phases 0 to T count, or 7
to T if T is 7 or more. --time takes the phase from the challenge's schedule. From phase 7 on, the
organisers' sum included a score of 1 for each of the phases 0 to 6, for everybody. --official_sum
adds these 7.
"""

import argparse

from common import cli, pages, reading
from common.arrays import FloatArray
from common.errors import InputError
from related_challenges import challenge

import clicks
import pandas as pd
from submission import read_recommendations, select_users

NAMES_ON_LEADERBOARD = ("ndcg_50_full", "ndcg_50_half", "hitrate_50_full", "hitrate_50_half")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = challenge.evaluation_parser(
        __doc__, __file__, input_dir=challenge.TEST_INPUT_FOLDER, ref_data=clicks.ANSWERS
    )
    phase_flags = clicks.add_phase(parser)
    help_text = "from phase 7 on, add 7 to each sum"
    parser.add_argument("--official_sum", action="store_true", help=help_text)
    help_text = "short for --phase 9 --official_sum, the rules of the final ranking"
    phase_flags.add_argument("--final_stage", action="store_true", help=help_text)
    return parser


def main() -> None:
    """Compare the submission with the clicks to predict, and write its score.

    The challenge ran in phases. The score is a sum over some of them; see
    `clicks.phases_that_count`.
    """
    # `clicks.answer_files` finds the files with the clicks to predict. A submission is refused if
    # its model has read one of them.
    options = challenge.start_evaluation(build_parser(), clicks.answer_files)
    # --final_stage is short for --phase 9 --official_sum.
    if options.final_stage:
        options.phase = max(clicks.PHASES)
        options.official_sum = True
    if options.official_sum and options.phase not in clicks.FINAL_PHASES:
        raise InputError(
            "--official_sum needs --phase 7, 8 or 9: before phase 7, the challenge added no number "
            "to the sums"
        )
    all_answers = clicks.read_answers(options.reference)
    answers = clicks.answers_that_count(options.phase, all_answers, options.reference)
    recommended = read_recommendations(options.submission)
    items = select_users(options.submission, recommended, answers["user_id"].to_numpy())
    scores = clicks.score(items, answers)
    # From phase 7 on, the final stage, the organisers' script added a score of 1 for each of the
    # phases 0 to 6 to each sum.
    added_to_sums = clicks.N_EARLIER_PHASES if options.official_sum else 0
    write_scores(options, answers, scores, added_to_sums)


def write_scores(
    options: argparse.Namespace, answers: pd.DataFrame, scores: pd.DataFrame, added: int
) -> None:
    """Print and write the scores of the phases, their means and their sums.

    Parameters
    ----------
    options : Namespace
        Flags of this script.
    answers : DataFrame
        Clicks to predict, from the phases that count.
    scores : DataFrame
        Result of `clicks.score`.
    added : int
        A number that is added to each sum over the phases.
    """
    sums = clicks.sum_over_phases(scores) + added
    table = tabulate_scores(scores, sums, added)
    rows = []
    for name, row in zip(table.index, table.to_numpy(), strict=True):
        rows.append([name, *(f"{value:.4f}" for value in row)])
    parts = {}
    for name in table.index:
        for metric in table.columns:
            parts[f"{metric}, {name}"] = float(table.loc[name, metric])

    added_text = f", plus {added}" if added else ""
    unit = "phases" if len(scores) > 1 else "phase"
    sum_text = f"a sum over {len(scores)} {unit}{added_text}"
    terminal_header = ["", "NDCG full", "NDCG half", "hit full", "hit half"]
    page_header = ["", *clicks.METRICS]
    reference = options.reference
    challenge.write_scores(
        options,
        [
            *challenge.align_columns([terminal_header, *rows], first_width=10, other_width=10),
            f"score {sums[0]:.4f} (NDCG@50 full of {len(answers):,} users, {sum_text})",
        ],
        title="Debiasing: the next item clicked",
        metric_name="NDCG@50 full, sum over the phases",
        metric=f"NDCG@50 over all test users, {sum_text}",
        score=float(sums[0]),
        # If the file of answers is missing, `clicks.read_answers` has computed the answers from
        # other files in its folder. The folder is then the reference.
        reference=reference if reading.is_there(reference) else reference.parent,
        facts=[
            ("Users scored", f"{len(answers):,}"),
            ("Users of rare items (half)", f"{clicks.is_rare(answers).sum():,}"),
        ],
        rules=describe_rules(options, added_text),
        parts=parts,
        figures=dict(zip(NAMES_ON_LEADERBOARD, sums.tolist(), strict=True)),
        body=pages.part("table", page_header, rows, caption="Metrics by phase", stacks=True),
    )


def tabulate_scores(scores: pd.DataFrame, sums: FloatArray, added: int) -> pd.DataFrame:
    """Return a table of the scores: a row for each phase, then a row of means and a row of sums.

    `sums` are the sums over the phases. They already include the number `added`.
    """
    table = scores.rename(index="phase {}".format)
    table.loc["mean"] = clicks.sum_over_phases(scores) / len(scores)
    table.loc[f"sum + {added}" if added else "sum"] = sums
    return table


def describe_rules(options: argparse.Namespace, added_text: str) -> str:
    """Return in words which phases are scored, for the record of scores; empty if all are."""
    if options.phase is None:
        return ""
    if options.phase == max(clicks.PHASES) and options.official_sum:
        return "final stage"
    return f"phase {options.phase}{added_text}"


if __name__ == "__main__":
    cli.run(main)
