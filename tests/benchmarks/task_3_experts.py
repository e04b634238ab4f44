"""Measure what the official panel's judgements say, and whether figures of other panels hold.

The five public experts are compared with one another and with rankings. The script then computes
how often intervals of kappa contain the true kappa. It also computes how often two rankings can be
told apart after as many further pairs as the evaluation advises. `task_3_experts.md` shows the
tables.

Run:     KIT_REAL_DATA=FOLDER python tests/benchmarks/task_3_experts.py
"""

import tempfile
from itertools import combinations
from pathlib import Path

from common import cli, layout, submission
from common.arrays import FloatArray
from common.evaluation import expert_agreement, ranking
from common.evaluation.expert_agreement import ExpertPair
from common.tasks import TASK_3

import numpy as np
import pandas as pd
import real_answers
import scipy.stats
from running import run_script

MODELS = ("random", "entropy", "rank_average")
# Each cell in the table of `print_coverage` is a share of this number of simulated panels. With
# this number, a share of 0.95 has a standard error of 0.005.
N_PANELS = 2000
KAPPAS = (0.0, 0.3, 0.6, 0.9)
PANEL_SIZES = (25, 100)
# `print_further_pairs` compares two rankings of questions, once for each combination of a true
# share and a first number. A true share is the probability that experts prefer the better ranking
# on a pair of questions.
TRUE_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9)
# The number of pairs that experts judge before the evaluation advises further pairs.
N_FIRST_JUDGED = (10, 25)


def main() -> None:
    """Print all tables."""
    cli.parser(__doc__).parse_args()
    panel = real_answers.real_data_dir() / "eedi_tasks_3_4" / "test_data"
    judgements = ranking.read_judgements(panel / TASK_3.answers_name("public"))
    print_experts(judgements)
    ranks = rank_questions()
    print_rankings(judgements, ranks)
    print_contests(judgements, ranks)
    print_coverage()
    print_further_pairs()


# ---- The public panel ----------------------------------------------------------------------------


def print_experts(judgements: pd.DataFrame) -> None:
    """Print a table of how far experts agree: a row for each two of them, then the means."""
    print("| experts | pairs | agreement | kappa |\n|---|---|---|---|")
    pairs = expert_agreement.compare_experts(judgements)
    for two in pairs:
        print(f"| {two.first} and {two.second} | {two.n_pairs} | {show(two)} |")
    agreement = np.mean([two.agreement for two in pairs])
    kappa = np.mean([two.kappa for two in pairs])
    print(f"| mean | | {agreement:.2f} | {kappa:.2f} |\n")


def show(two: ExpertPair) -> str:
    """Return two cells of a table row: agreement and kappa of two experts, with intervals."""
    return (
        f"{two.agreement:.2f} ({two.agreement_low:.2f} to {two.agreement_high:.2f}) | "
        f"{two.kappa:z.2f} ({two.kappa_low:z.2f} to {two.kappa_high:z.2f})"
    )


def rank_questions() -> dict[str, pd.Series]:
    """Return several rankings of the questions: for each name, the rank of each QuestionId.

    The sample models of task 3 rank by the answers in the pool: the public answers of tasks 3 and
    4. The ranking "correct_entropy" uses published counts instead: how many students answered each
    question, and how many of them were right. The counts include students who are not in the pool.
    """
    folder = real_answers.real_data_dir() / "eedi_tasks_3_4"
    questions = pd.read_csv(folder / "metadata" / layout.QUESTION_METADATA_TASK_3_4)
    ranks = rank_by_models(questions)
    question_ids = ranks[MODELS[0]].index
    stats = pd.read_csv(folder / "train_task_3_4_question_stats.csv", index_col="QuestionId")
    share_right = (stats["NumCorrect"] / stats["NumAnswers"]).reindex(question_ids)
    # The nearer the share of right answers is to 0.5, the higher is the entropy of right and wrong
    # answers. The question with the highest entropy, and so the smallest distance, has rank 1.
    distance = (share_right - 0.5).abs()
    ranks["correct_entropy"] = distance.rank(method="first", na_option="bottom").astype(int)
    return ranks


def rank_by_models(questions: pd.DataFrame) -> dict[str, pd.Series]:
    """Run the sample models of task 3 on the pool; return their rankings of the questions."""
    ranks = {}
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        # A template lists the questions, with an empty column for the ranks.
        template = folder / layout.TEMPLATE_TASK_3
        sorted_ids = questions[["QuestionId"]].sort_values("QuestionId")
        sorted_ids.assign(ranking="").to_csv(template, index=False)
        real_answers.read_pool().to_csv(folder / layout.TRAIN_TASK_3_4, index=False)
        for model in MODELS:
            flags = ["--submission_template_dir", folder, "--output_dir", folder / model]
            # The random ranking reads no answers.
            if model != "random":
                flags += ["--input_dir", folder]
            run_script([layout.ROOT / f"task_3/sample_model_{model}.py", *flags])
            ranks[model] = submission.read_ranking(folder / model / TASK_3.submission, template)
    return ranks


def print_rankings(judgements: pd.DataFrame, ranks: dict[str, pd.Series]) -> None:
    """Print how far each ranking agrees with each expert."""
    print("| ranking | expert | pairs | agreement | kappa |\n|---|---|---|---|---|")
    for name, rank in ranks.items():
        left, right = (judgements.index.get_level_values(side) for side in (0, 1))
        prefers_left = rank[left].to_numpy() < rank[right].to_numpy()
        preferred = pd.Series(np.where(prefers_left, 1, 2), judgements.index)
        for expert in judgements:
            two = expert_agreement.compare_two(name, str(expert), preferred, judgements[expert])
            print(f"| {name} | {expert} | {two.n_pairs} | {show(two)} |")
    print()


def print_contests(judgements: pd.DataFrame, ranks: dict[str, pd.Series]) -> None:
    """Print, for every two rankings, which one the panel prefers."""
    agrees = {name: ranking.agreement(judgements, rank) for name, rank in ranks.items()}
    print("| rankings | pairs | for the first | for the second | verdict |\n|---|---|---|---|---|")
    for first, second in combinations(ranks, 2):
        contest = expert_agreement.contest(agrees[first], agrees[second])
        counts = f"{contest.n_pairs} | {contest.n_first} | {contest.n_second}"
        print(f"| {first} and {second} | {counts} | {contest.verdict} |")
    print()


# ---- Whether the figures hold --------------------------------------------------------------------


def print_coverage() -> None:
    """Print the share of simulated panels whose interval of kappa contains the true kappa.

    Kappa is the agreement of two experts beyond chance.
    """
    print("| true kappa |", " | ".join(f"{n} pairs" for n in PANEL_SIZES), "|")
    print("|---|" + "---|" * len(PANEL_SIZES))
    rng = np.random.default_rng(0)
    for kappa in KAPPAS:
        shares = [f"{cover(rng, kappa, n):.3f}" for n in PANEL_SIZES]
        print(f"| {kappa} |", " | ".join(shares), "|")
    print()


def cover(rng: np.random.Generator, kappa: float, n_pairs: int) -> float:
    """Return the share of simulated panels whose interval contains the true kappa.

    The first expert prefers either side with probability 1/2. With probability `kappa`, the second
    expert copies the first one, and otherwise prefers either side with probability 1/2. So the true
    kappa is the probability of copying.
    """
    n_containing = 0
    for _ in range(N_PANELS):
        by_first = pd.Series(rng.integers(1, 3, n_pairs))
        by_second = by_first.where(rng.random(n_pairs) < kappa, rng.integers(1, 3, n_pairs))
        two = expert_agreement.compare_two("first", "second", by_first, by_second)
        n_containing += two.kappa_low <= kappa <= two.kappa_high
    return n_containing / N_PANELS


def print_further_pairs() -> None:
    """Print how often a sign test finds that experts prefer one of two rankings of questions.

    Experts judge pairs of questions. If their judgements do not show which ranking they prefer, the
    evaluation advises how many more pairs they should judge. A row of the table tells how often the
    test decides at first, and how often it decides after these further pairs.
    """
    header = "true share | judged first | told apart | median of further pairs | told apart then"
    print(f"| {header} | the worse one preferred |\n|---|---|---|---|---|---|")
    for n in N_FIRST_JUDGED:
        for share in TRUE_SHARES:
            print(further_pairs_row(n, share))


def further_pairs_row(n: int, share: float) -> str:
    """Return a row that says how often two rankings are told apart after more pairs are judged.

    Experts judge `n` pairs of questions. On each pair they prefer the better ranking, with
    probability `share`, or the worse one. If a sign test does not tell the rankings apart, the
    evaluation advises a number of further pairs, and experts judge these pairs too. The
    probabilities are computed exactly from binomial distributions, not simulated.

    The cells: the probability that the rankings are told apart at once, the median of the advised
    numbers, the probability that the rankings are told apart in the end, and the probability that
    the worse ranking then wins.
    """
    # Experts prefer the better ranking on `count` of the first n pairs. Compute the probability of
    # each count from 0 to n, and the number of further pairs that the evaluation then advises. It
    # advises 0 if the rankings are told apart already, and None if experts prefer each ranking on
    # half of the pairs.
    p_count = scipy.stats.binom.pmf(np.arange(n + 1), n, share)
    n_advised = [expert_agreement.count_further(count, n) for count in range(n + 1)]
    p_at_once = 0.0
    p_better_wins = 0.0
    p_worse_wins = 0.0
    for count in range(n + 1):
        if n_advised[count] == 0:
            p_at_once += p_count[count]
        n_judged_then = n_advised[count] or 0
        p_better_given_count, p_worse_given_count = tell_apart(count, n, n_judged_then, share)
        p_better_wins += p_count[count] * p_better_given_count
        p_worse_wins += p_count[count] * p_worse_given_count
    p_apart = p_better_wins + p_worse_wins
    median = median_advised(n_advised, p_count)
    return f"| {share} | {n} | {p_at_once:.2f} | {median} | {p_apart:.2f} | {p_worse_wins:.3f} |"


def median_advised(n_further: list[int | None], p_count: FloatArray) -> int:
    """Return the median of the advised numbers of further pairs.

    How many further pairs are advised depends on a count: the number of judged pairs on which
    experts prefer the better ranking. `n_further` has the advised number for each count, and
    `p_count` the probability of the count. The median weights each advised number by this
    probability. It leaves out counts for which no further pairs are advised (0 or None).
    """
    advised = sorted((number, p) for number, p in zip(n_further, p_count, strict=True) if number)
    cumulative = np.cumsum([p for _, p in advised])
    median, _ = advised[int(np.searchsorted(cumulative, cumulative[-1] / 2))]
    return median


def tell_apart(count: int, n: int, further: int, share: float) -> tuple[float, float]:
    """Return two probabilities: that a sign test prefers the better ranking, or the worse one.

    Experts have judged `n` pairs of questions. On `count` of these, they prefer the better ranking.
    They then judge `further` more pairs. On each of these, they prefer the better ranking with
    probability `share`. The sign test uses all judged pairs, `n + further`. It is two-sided, at the
    level 0.05.
    """
    # On `further_count` of the further pairs, experts prefer the better ranking. List all possible
    # counts and their probabilities.
    further_count = np.arange(further + 1)
    p_further = scipy.stats.binom.pmf(further_count, further, share)
    n_all = n + further
    count_all = count + further_count
    # Under the null hypothesis, both rankings are equally good: on each pair, experts prefer either
    # one with probability 1/2. The p-value is twice the probability that a ranking is then
    # preferred on `count_of_less_preferred` pairs or fewer.
    count_of_less_preferred = np.minimum(count_all, n_all - count_all)
    p_value = 2 * scipy.stats.binom.cdf(count_of_less_preferred, n_all, 0.5)
    is_apart = p_value <= 0.05
    prefers_better = 2 * count_all > n_all
    p_better = p_further[is_apart & prefers_better].sum()
    p_worse = p_further[is_apart & ~prefers_better].sum()
    return float(p_better), float(p_worse)


if __name__ == "__main__":
    cli.run(main)
