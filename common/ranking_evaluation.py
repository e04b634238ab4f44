"""Score a ranking of questions against expert judgements, in task 3."""

from dataclasses import dataclass
from pathlib import Path

from common import charts, cli, io, layout, metrics, pages, schema, submission
from common.expert_judgements import (
    Comparison,
    Judgements,
    compare_with_experts,
    rank_pairs,
    read_judgements,
)
from common.scores import outcomes, results, score_files
from common.scores.results import Evaluation

import numpy as np

TASK = 3


def evaluate(doc: str | None) -> None:
    """Run the `local_evaluation.py` of task 3.

    Parameters
    ----------
    doc
        The script's docstring, its help.
    """
    p = cli.parser(doc)
    p.add_argument(
        "--phase", choices=layout.PHASES, default="public", help="which pairs (default public)"
    )
    p.add_argument(
        "--input_dir",
        type=Path,
        metavar="DIR",
        default=layout.TEST_DIR,
        help="default data/test_data",
    )
    p.add_argument("--ref_data", metavar="FILE", help="the judgements (default those of the phase)")
    p.add_argument(
        "--submission_dir",
        type=Path,
        metavar="DIR",
        default=layout.SUBMISSION_DIR,
        help="default submissions",
    )
    p.add_argument(
        "--submit_data",
        metavar="FILE",
        default=layout.submission_name(TASK),
        help=f"CSV or zip (default {layout.submission_name(TASK)})",
    )
    cli.add_template_flags(p, layout.TEMPLATE_TASK_3)
    p.add_argument(
        "--output_dir",
        type=Path,
        metavar="DIR",
        default=layout.TEST_OUTPUT_DIR,
        help="default data/test_output",
    )
    options = p.parse_args()
    name = score_files.score_name(TASK, options.phase)
    score_files.remove_scores(options.output_dir, name)
    reference_path = options.input_dir / (
        options.ref_data or layout.expert_judgements_name(options.phase)
    )
    submission_path = options.submission_dir / options.submit_data
    template_path = cli.template_path(options, layout.TEMPLATE_DIR, layout.TEMPLATE_TASK_3)

    judged = judge(submission_path, reference_path, template_path, options.phase)
    paths = score_files.write_scores(
        options.output_dir, name, judged.evaluation, body=judged.body, style=STYLE
    )
    results.append_result(options.output_dir, TASK, judged.evaluation)
    figures = judged.figures
    for row in (*figures.experts, figures.mean, figures.best):
        pairs = "" if row.n_judged is None else f" of {row.n_judged} pairs"
        known = f"{row.share:.2f} ({row.low:.2f} to {row.high:.2f}){pairs}"
        others = "" if row.others is None else f"; experts among themselves {row.others:.2f}"
        print(f"{row.name:20} {'none' if row.n_judged == 0 else known + others}")
    print(f"score {figures.best.share:.4f} (best expert); {judged.luck}")
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


@dataclass(frozen=True)
class Judged:
    """A ranking beside the judgements of the experts.

    Attributes
    ----------
    evaluation
        Its score, the agreement with the best expert, and what else the record holds.
    figures
        Agreement with every expert.
    n_pairs
        Number of pairs judged.
    luck
        What random rankings reach, in words.
    body
        The rest of the page, HTML.
    """

    evaluation: Evaluation
    figures: Comparison
    n_pairs: int
    luck: str
    body: str


def judge(
    submission_path: Path,
    reference_path: Path,
    template_path: Path,
    phase: str,
    *,
    with_answers: bool = True,
) -> Judged:
    """Check a ranking and score it.

    Parameters
    ----------
    submission_path
        CSV, or a zip that holds it.
    reference_path
        CSV of the judgements.
    template_path
        The template, which lists the questions to be ranked.
    phase
        ``public`` or ``private``.
    with_answers
        Whether the page lists pairs with what each expert said of them; not where participants
        see the page and may submit again.

    Raises
    ------
    InputError
        If the submission is not complete and valid; there is no score then.
    """
    source = submission.submission_source(
        submission_path, layout.submission_name(TASK), template_path
    )
    judgements = read_judgements(reference_path)
    expected = submission.read_ranking_template(template_path)
    question, ranking = submission.read_ranking(source, expected)
    rank_left, rank_right = rank_pairs(judgements, question, ranking)
    agrees = metrics.pair_agreement(rank_left, rank_right, judgements.better)
    figures = compare_with_experts(judgements, rank_left, rank_right)
    floor = metrics.random_best_agreement(judgements.left, judgements.right, judgements.better)
    floor_mean, floor_high = float(floor.mean()), float(np.percentile(floor, 95))

    luck = (
        f"random rankings reach {floor_mean:.2f} on average as the best of "
        f"{len(schema.EXPERT_NAMES)}, at most 1 in 20 exceeds {floor_high:.2f}"
    )
    evaluation = Evaluation(
        title=results.TASK_TITLES[TASK],
        metric="Share of pairs on which the ranking agrees with its best expert",
        score=figures.best.share,
        submission=submission_path,
        reference=reference_path,
        phase=phase,
        parts={
            **{row.name: row.share for row in figures.experts if row.n_judged},
            "random rankings, mean": floor_mean,
            "random rankings, 95th percentile": floor_high,
        },
        facts=[("Pairs", f"{len(judgements.left)}"), ("Read it with care", luck)],
        outcomes=outcomes.of_judgements(
            judgements.left, judgements.right, judgements.better, agrees
        ),
    )
    body = agreement_section(figures, (floor_mean, floor_high)) + concordance_section(judgements)
    if with_answers:
        body += disagreement_section(judgements, rank_left, rank_right)
    return Judged(evaluation, figures, len(judgements.left), luck, body)


# ---- The page -----------------------------------------------------------------------------------

STYLE = """
.key { font-size: .875rem; opacity: .8; margin: .4rem 0 1.4rem; }
.pairs small { opacity: .7; font-weight: 400; padding-left: .3rem; }
.pairs td, .pairs th { text-align: left; white-space: nowrap; padding-inline: .6rem; }
.pairs .mark { text-align: center; } .pairs .yes { color: rgb(var(--accent)); }
.pairs .no { opacity: .75; }
"""


def agreement_section(figures: Comparison, random_range: tuple[float, float]) -> str:
    """Return the chart and the table of agreements as HTML.

    Parameters
    ----------
    figures
        Of the ranking.
    random_range
        What random rankings reach as the best of the experts: mean and 95th percentile.
    """
    judging = [row for row in (*figures.experts, figures.mean, figures.best) if row.n_judged != 0]
    chart = charts.dot_chart(
        [
            charts.Dot(
                row.name,
                row.share,
                interval=(row.low, row.high),
                mark=row.others,
                band=random_range if row is figures.best else None,
            )
            for row in judging
        ],
        label="Agreement of the ranking with each expert, with 95 % intervals",
        digits=2,
        limits=(0, 1),
        chance=0.5,
        axis="share of pairs",
    )
    texts = [
        (
            row.name,
            f"{row.share:.2f}",
            f"{row.low:.2f} to {row.high:.2f}",
            "" if row.n_judged is None else f"{row.n_judged}",
            "" if row.others is None else f"{row.others:.2f}",
        )
        for row in judging
    ]
    header = ["expert", "agreement", "95 % interval", "pairs judged", "with the other experts"]
    return (
        f"<h2>Agreement with each expert</h2><figure>{chart}"
        '<figcaption class="key">Dot: share of pairs on which the ranking agrees, with its 95 % '
        "interval. Diamond: how often the other experts agree with this one, on average. Dashed "
        "line: chance. Grey: what random rankings reach with their best expert, from the average "
        "to what at most 1 in 20 exceeds.</figcaption></figure>"
        f"{pages.table(header, texts, stacks=True)}"
    )


def concordance_section(judgements: Judgements) -> str:
    """Return the table of how often the experts agree with each other, as HTML."""
    concordance, _ = metrics.expert_concordance(judgements.better)
    rows = [
        (name, *("" if np.isnan(share) else f"{share:.2f}" for share in shares))
        for name, shares in zip(schema.EXPERT_NAMES, concordance, strict=True)
    ]
    return (
        "<h2>Agreement among the experts</h2>"
        "<p>A ranking can hardly agree with the experts better than they agree with each other.</p>"
        + pages.table(["", *schema.EXPERT_NAMES], rows)
    )


def disagreement_section(
    judgements: Judgements, rank_left: io.IntArray, rank_right: io.IntArray
) -> str:
    """Return the list of pairs on which any expert contradicts the ranking, as HTML."""
    left, right = judgements.left, judgements.right
    agrees = metrics.pair_agreement(rank_left, rank_right, judgements.better)
    n_against = (agrees == 0).sum(axis=0)
    contested = np.argsort(-n_against, kind="stable")[: np.count_nonzero(n_against)]
    lines = []
    for pair in contested:
        sides = [(left[pair], rank_left[pair]), (right[pair], rank_right[pair])]
        better, worse = sorted(sides, key=lambda side: int(side[1]))
        cells = "".join(
            '<td class="mark" title="no judgement">–</td>'
            if np.isnan(value)
            else '<td class="mark yes" title="agrees">✓</td>'
            if value
            else '<td class="mark no" title="contradicts">✗</td>'
            for value in agrees[:, pair]
        )
        lines.append(
            f'<tr><th scope="row">{better[0]} <small>rank {better[1]}</small></th>'
            f"<td>{worse[0]} <small>rank {worse[1]}</small></td>{cells}</tr>"
        )
    n_pairs = len(left)
    head = "".join(f'<th scope="col" class="mark">{name}</th>' for name in schema.EXPERT_NAMES)
    return (
        "<h2>Pairs on which ranking and experts disagree</h2>"
        f"<p>{len(contested)} of {n_pairs} pairs of QuestionIds, the most contested first; no "
        f"expert contradicts the ranking on the other {n_pairs - len(contested)}. ✓ agrees with "
        'the ranking, ✗ contradicts it.</p><div class="wide"><table class="pairs"><thead><tr>'
        '<th scope="col">ranked better</th>'
        f'<th scope="col">worse</th>{head}</tr></thead><tbody>'
        + "\n".join(lines)
        + "</tbody></table></div>"
    )
