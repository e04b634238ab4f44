"""Task 3: be the expert. Judge pairs of questions in your browser, and score rankings by that.

The page shows two questions side by side and asks which one is of higher quality, as the teachers
of the official panel were asked. It shows the images of the questions if they are in data/images,
otherwise what the answers say. It needs no network. The browser keeps your judgements until you
save them, as a panel that the evaluation reads. To be blind, do not look at rankings before.

Run:     python task_3/judge.py                    a page with 25 random pairs
         python task_3/judge.py --phase public     with the pairs of the official public panel
         python task_3/judge.py --between A B      with pairs on which two rankings disagree
         python task_3/judge.py --merge ann.csv ben.csv    one panel of several experts' files
Writes:  data/test_output/judge.html, with --merge data/test_output/panel.csv
Then:    python task_3/local_evaluation.py --ref_data data/test_output/panel.csv
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from common import cli, layout, metadata, pages, provenance, reading, writing
from common.arrays import BoolArray, IntArray
from common.errors import InputError
from common.evaluation.ranking import read_judgements
from common.pages import Html
from common.submission import read_ranking, read_ranking_template
from common.tasks import TASK_3

import numpy as np
import pandas as pd
import question_features as features
from question_features import FEATURES, QuestionAnswers
from question_report import FEW_ANSWERS, decimal, describe_options, draw, find_image
from tqdm import tqdm

# Number of pairs of questions on the page, as in each official panel. A panel is a file with the
# judgements of experts.
N_PAIRS = 25


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    which_pairs = parser.add_mutually_exclusive_group()
    help_text = "judge the pairs of this phase's official panel, all of them"
    which_pairs.add_argument("--phase", choices=layout.PHASES, help=help_text)
    which_pairs.add_argument(
        "--between",
        type=Path,
        nargs=2,
        metavar=("A", "B"),
        help="judge pairs on which these two rankings disagree, CSV or zip",
    )
    which_pairs.add_argument(
        "--merge",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="make one panel of these panels, which the page has saved",
    )
    cli.add_number(parser, "--n_pairs", N_PAIRS, "how many pairs to draw")
    cli.add_number(parser, "--seed", 0, "draws other pairs")
    cli.add_folder(parser, "--input_dir", layout.TRAIN_DIR)
    cli.add_folder(parser, "--metadata_dir", layout.METADATA_DIR)
    cli.add_folder(parser, "--images_dir", layout.IMAGES_DIR)
    cli.add_folder(parser, "--test_dir", layout.TEST_DIR)
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR)
    cli.add_file_name(parser, "--train_data", layout.TRAIN_TASK_3_4)
    cli.add_file(parser, "--output", layout.TEST_OUTPUT_DIR / "panel.csv", "the merged panel")
    cli.add_template_flags(parser, layout.TEMPLATE_TASK_3)
    return parser


def main() -> None:
    """Write the page, or merge panels that it has saved."""
    options = build_parser().parse_args()
    if options.merge:
        merge(options.merge, options.output)
    else:
        write_page(options)


# ---- The page ------------------------------------------------------------------------------------


def write_page(options: argparse.Namespace) -> None:
    """Choose pairs of questions and write the page that asks for judgements of them."""
    page_path = options.output_dir / "judge.html"
    cli.require_outputs([page_path])
    train = options.input_dir / options.train_data
    reading.require_file(train)
    template = cli.template_path(options, layout.TEMPLATE_DIR, layout.TEMPLATE_TASK_3)
    question_ids = read_ranking_template(template)
    # The page needs no features from metadata, so read the answers alone.
    data = features.read_for_features([], train, question_ids, metadata_dir=None)
    pairs = choose_pairs(options, template, question_ids, data)
    origin = provenance.origin_of(train)
    # The browser stores the judgements under this key. A page with other pairs has another key.
    key = sha256(f"{origin} {pairs.tolist()}".encode()).hexdigest()[:16]
    # The page's script reads these settings.
    settings = {"pairs": pairs.tolist(), "key": f"judge-{key}", "origin": origin}
    cards = make_cards(np.unique(pairs), data, options.metadata_dir, options.images_dir)
    page = pages.render(
        "judge.html",
        title="Which question is of higher quality?",
        tab="Judge questions",
        origin=origin,
        cards=cards,
        n_without_image=sum(card.image is None for card in cards),
        # The page says that a bar is grey if it stands for fewer answers than this.
        few=FEW_ANSWERS,
        # The page writes numbers by this function.
        decimal=decimal,
        settings=settings,
    )
    writing.write_files({page_path: page})
    print(f"{len(pairs)} pairs of {len(cards)} questions; open the page in a browser")
    print(f"written: {cli.show(page_path)}")


def choose_pairs(
    options: argparse.Namespace, template: Path, question_ids: IntArray, data: QuestionAnswers
) -> IntArray:
    """Return the pairs of QuestionIds to judge, shape (pairs, 2).

    With --phase, they are the pairs that the challenge's experts judged. With --between, which
    names two rankings, they are drawn from the pairs on which these rankings disagree. Otherwise
    they are drawn from all pairs. `question_ids` are the questions of the `template`.
    """
    if options.phase:
        panel = options.test_dir / TASK_3.answers_name(options.phase)
        pairs = np.array([*read_judgements(panel).index])
        unknown = np.setdiff1d(pairs, question_ids)
        if len(unknown):
            raise InputError(
                f"{panel}: QuestionId {unknown[0]} is judged, but it is not one of the questions "
                f"of {template}: the two belong to different data"
            )
        return pairs
    answered = data.questions.index[data.n_answers > 0]
    candidates = np.intersect1d(question_ids, answered)
    rankings = [read_ranking(path, template) for path in options.between or ()]
    pairs = draw_pairs(candidates, rankings, options.n_pairs, options.seed)
    if len(pairs) == 0 and rankings:
        first, second = options.between
        raise InputError(
            f"{second}: puts the answered questions in the same order as {first}, so there is no "
            "pair to judge; expected two different rankings"
        )
    if len(pairs) == 0:
        raise InputError(
            f"{options.input_dir / options.train_data}: holds answers to {len(candidates)} of the "
            f"questions of {template}, expected answers to at least two"
        )
    return pairs


def draw_pairs(
    question_ids: IntArray, rankings: Sequence[pd.Series], n_pairs: int, seed: int
) -> IntArray:
    """Draw pairs of questions at random, no pair twice.

    Parameters
    ----------
    question_ids
        The questions to draw from, each once.
    rankings
        Two rankings, which hold ranks by QuestionId. Only pairs on which the two rankings disagree
        are drawn. If there are no rankings, all pairs may be drawn.
    n_pairs
        How many pairs to draw. If there are fewer pairs, all of them are returned.
    seed
        Seed of the random numbers.

    Returns
    -------
    array of int, shape (pairs, 2)
        The QuestionIds of the left and the right question.
    """
    rng = np.random.default_rng(seed)
    # Every pair of questions, as two positions in `question_ids`.
    first, second = np.triu_indices(len(question_ids), k=1)
    if rankings:
        # Whether the first question of each pair is the better one, by each of the two rankings.
        by_one, by_other = (
            is_first_better(ranking[question_ids], first, second) for ranking in rankings
        )
        disagree = by_one != by_other
        first = first[disagree]
        second = second[disagree]
    drawn = rng.permutation(len(first))[:n_pairs]
    pairs = question_ids[np.stack([first[drawn], second[drawn]], axis=1)]
    # Draw which question is on the left, so that the side does not show the better question.
    is_exchanged = rng.random(len(pairs)) < 0.5
    pairs[is_exchanged] = pairs[is_exchanged, ::-1]
    return pairs


def is_first_better(rank: pd.Series, first: IntArray, second: IntArray) -> BoolArray:
    """Return whether the first question of each pair has the better rank, shape (pairs,).

    `first` and `second` are positions in `rank`.
    """
    ranks = rank.to_numpy()
    return np.asarray(ranks[first] < ranks[second])


@dataclass(frozen=True)
class Card:
    """A question as the page shows it: its image, or else what the answers say."""

    question_id: int
    # URI of the image on this machine; None if there is no image.
    image: str | None
    # Names of the subjects; "" if they are unknown.
    subjects: str
    n_answers: int
    # Share of right answers, and the correlation of a right answer with the student's ability; NaN
    # if they are unknown.
    rate: float
    discrimination: float
    # A chart of the options that students chose. None if the page shows an image instead, or if the
    # question has no answers.
    chart: Html | None
    # Whether bars of the chart are grey, because they rest on few answers.
    has_grey_bars: bool


def make_cards(
    question_ids: IntArray, data: QuestionAnswers, metadata_dir: Path, images_dir: Path
) -> list[Card]:
    """Return the card of each question: its image or, if there is none, a chart of its answers."""
    # The rows of these questions in `data.questions`, which is sorted by QuestionId.
    rows = np.searchsorted(data.questions.index, question_ids)
    subjects = metadata.name_subjects(metadata_dir, question_ids)
    rates = FEATURES["correct_rate"].values(data)[rows]
    discriminations = FEATURES["point_biserial"].values(data)[rows]
    n_answers = data.n_answers[rows]
    options = describe_options(data)
    cards = []
    steps = tqdm(question_ids.tolist(), "questions", unit="question", disable=None, leave=False)
    for position, question_id in enumerate(steps):
        image = find_image(images_dir, question_id)
        chart = None
        has_grey_bars = False
        if image is None and n_answers[position] > 0:
            by_ability = features.option_counts_by_ability(data, question_id)
            # The vertical axis goes up to 1, that is 100 %, so that the charts of both questions of
            # a pair have the same axis.
            chart = draw(options.loc[question_id], by_ability, reaches=1.0)
            has_grey_bars = bool((by_ability.sum(axis=1) < FEW_ANSWERS).any())
        card = Card(
            question_id=question_id,
            image=image,
            subjects=subjects[position],
            n_answers=int(n_answers[position]),
            rate=float(rates[position]),
            discrimination=float(discriminations[position]),
            chart=chart,
            has_grey_bars=has_grey_bars,
        )
        cards.append(card)
    return cards


# ---- Several experts -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Judgement:
    """An expert's judgement of a pair of questions, and the file that holds it."""

    # QuestionId of the question that the expert finds better.
    better: int
    path: Path


# The judgements of an expert by pair; the smaller QuestionId of a pair comes first.
JudgementsByPair = dict[tuple[int, int], Judgement]


def merge(paths: Sequence[Path], output: Path) -> None:
    """Merge panels into one, and write it with a record of the files that it was made from.

    A panel is a CSV file with the judgements of one or more experts. An expert may occur in several
    of them. A file is refused if an expert has judged a pair differently in an earlier file.
    """
    if output.suffix.lower() != ".csv":
        raise InputError(f"{output}: expected the name of a CSV file, such as panel.csv")
    record = output.with_suffix(".json")
    cli.require_outputs([output, record], paths)
    # Files may show the questions of a pair on different sides. The merged panel keeps the order
    # and the sides of each pair's first occurrence.
    sides_by_pair: dict[tuple[int, int], tuple[int, int]] = {}
    by_expert: dict[str, JudgementsByPair] = {}
    for path in paths:
        panel = read_judgements(path)
        for left, right in panel.index:
            sides_by_pair.setdefault(_pair_key(left, right), (left, right))
        for expert in panel:
            known = by_expert.setdefault(str(expert), {})
            add_judgements(known, panel[expert].dropna(), str(expert), path)
    table = panel_table(sides_by_pair, by_expert)
    writing.write_files({output: table}, record=record)
    for expert, judgements in by_expert.items():
        print(f"{expert}: {len(judgements)} of {len(table)} pairs")
    print(f"written: {cli.show(output)}")


def add_judgements(known: JudgementsByPair, judged: pd.Series, expert: str, path: Path) -> None:
    """Add the judgements in a column of a file to the known judgements of the same expert.

    `judged` is the column. For each pair (left, right) it holds the side of the better question: 1
    for the left side, 2 for the right side.

    Raises `InputError` if the expert has judged a pair in two ways.
    """
    for (left, right), side in zip(judged.index.tolist(), judged.tolist(), strict=True):
        judgement = Judgement(left if side == 1 else right, path)
        # `setdefault` returns the known judgement of the pair. If there is none, it adds the new
        # judgement and returns it.
        earlier = known.setdefault(_pair_key(left, right), judgement)
        if earlier.better != judgement.better:
            raise InputError(
                f"{path}: column '{expert}': of the questions {left} and {right}, "
                f"{judgement.better} is better, but {earlier.better} is better in {earlier.path}; "
                "if these are two people, give them two names, otherwise empty one of the cells"
            )


def panel_table(
    sides_by_pair: Mapping[tuple[int, int], tuple[int, int]],
    by_expert: Mapping[str, JudgementsByPair],
) -> pd.DataFrame:
    """Return the judgements of several experts as a table in the form of the official panel files.

    The columns left and right hold the two questions of a pair, as they were shown to the experts.
    Each further column holds the judgements of one expert: 1 if the left question is better, 2 if
    the right one is.

    `sides_by_pair` holds the left and the right question of each pair. A pair has the same key in
    `sides_by_pair` and in the judgements of each expert.
    """
    table = pd.DataFrame([*sides_by_pair.values()], columns=["left", "right"])
    for expert, judgements in by_expert.items():
        column: list[int | None] = []
        for pair, (left, _) in sides_by_pair.items():
            judgement = judgements.get(pair)
            if judgement is None:
                column.append(None)
            else:
                column.append(1 if judgement.better == left else 2)
        # The dtype Int8 allows empty cells.
        table[expert] = pd.array(column, dtype="Int8")
    return table


def _pair_key(left: int, right: int) -> tuple[int, int]:
    """Return a key that is the same if the sides of a pair are exchanged."""
    return min(left, right), max(left, right)


if __name__ == "__main__":
    cli.run(main)
