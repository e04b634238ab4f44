"""Task 4: compare strategies of choosing questions, all with the same calibrated model.

Run:     python task_4/compare_strategies.py                        students of the local split
         python task_4/compare_strategies.py --phase public         the students of a phase
         python task_4/compare_strategies.py --phase public --protocol bobcat
Writes:  data/test_output/strategies_task_4.html, and the same tables to the terminal

The script plays every public function of strategies.py on the same students and masks. The model is
that of item_response/, fitted once. STRATEGIES.md explains the columns.
"""

from __future__ import annotations

import argparse
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import charts, cli, layout, pages, provenance, reading, writing
from common.adaptive import training
from common.adaptive.game import Reference, Rules, make_reference, read_reference
from common.answers import read_students
from common.arrays import IntArray
from common.errors import InputError
from common.origin import Origin, combine
from common.pages import Html
from common.tasks import LOCAL, TASK_4

import numpy as np
import pandas as pd
from ability import Bank, parse_fraction
from strategy_games import (
    OWN,
    GameLimits,
    Games,
    Strategy,
    calibrate,
    compare,
    find_strategies,
    play,
    score,
)
from tqdm import tqdm

OUTPUT_NAME = "strategies_task_4.html"
PUBLISHED = Path(__file__).with_name("published.csv")
# Number of splits with --protocol, unless --masks gives another number.
N_SPLITS = 5
# Number of questions in a test of the challenge.
_CHALLENGE_LENGTH = 10
# The kit's own strategy is compared with each of the others after these numbers of questions: once
# early, and once at the end of a test.
_COMPARED = (5, _CHALLENGE_LENGTH)
# Names of strategies are cut to this many characters in the tables on the terminal.
_NAME_WIDTH = 24
# A table is printed for each measure. The key is the title of the table, and the value is a column
# of the result of `strategy_games.score`.
_MEASURES = {"Accuracy": "accuracy", "AUC": "auc", "Log loss": "log_loss"}


@dataclass(frozen=True)
class Files:
    """The files of answers that this script reads."""

    # Files with the answers of the students to learn from.
    train: list[Path]
    # File with the answers of the students to be examined.
    reference: Path
    # Where the answers come from.
    origin: Origin


@dataclass(frozen=True)
class Case:
    """Students to be examined, with one mask of hidden answers, and the model.

    The model was fitted to other students.
    """

    bank: Bank
    reference: Reference
    mask: str


@dataclass(frozen=True)
class Result:
    """Results of all games that were played by the same rules, for the page and the terminal."""

    # The rules of the games, in words.
    title: str
    # A chart of the accuracy after each number of questions.
    curves: Html
    # Tables of text by caption, with a row for each strategy.
    tables: dict[str, pd.DataFrame]
    notes: list[str]


@dataclass(frozen=True)
class Protocol:
    """How a paper splits students and answers; published.csv holds the paper's results."""

    # The protocol in words, for the page.
    title: str
    # The number of equal parts that the shuffled students are divided into.
    n_parts: int
    # The number of parts whose students are examined.
    n_test: int
    # The number of parts that are left out, because the paper validates on them.
    n_unused: int
    # Share of an examined student's answers that are to be predicted.
    target_share: float
    # The paper, and notes on its results, for the page.
    source: str


PROTOCOLS = {
    "bobcat": Protocol(
        title="BOBCAT's protocol: students 60/20/20, of an examined student's answers 80 % may be "
        "asked and 20 % are to be predicted",
        n_parts=5,
        n_test=1,
        n_unused=1,
        target_share=0.2,
        source="Ghosh and Lan 2021, arXiv 2108.07386, Eedi-2, ten questions",
    ),
    "ncat": Protocol(
        title="NCAT's protocol: students 70/30, of an examined student's answers half may be asked "
        "and half are to be predicted",
        n_parts=10,
        n_test=3,
        n_unused=0,
        target_share=0.5,
        source="Zhuang et al. 2022, AAAI; neither the figures nor the number of questions were "
        "checked in the paper",
    ),
}


def main() -> None:
    """Calibrate the models, play the games, print the tables, write the page."""
    options = build_parser().parse_args()
    page_path = options.output_dir / OUTPUT_NAME
    writing.require_writable(page_path)
    began = time.perf_counter()
    files = find_files(options)
    cases = list(read_cases(options, files))
    calibration_seconds = time.perf_counter() - began

    strategies = find_strategies()
    if options.strategies:
        strategies = {name: strategies[name] for name in strategies if name in options.strategies}
    results = play_by_rules(options, cases, strategies)
    for result in results:
        print(as_text(result), end="\n\n")

    facts = describe(options, cases)
    seconds = time.perf_counter() - began
    facts["Time"] = f"calibration {calibration_seconds:.0f} s, all {seconds:.0f} s"
    writing.write_files({page_path: render_page(options, files, strategies, results, facts)})
    for name, value in facts.items():
        print(textwrap.fill(f"{name}: {value}", 80, subsequent_indent="  "))
    if files.origin is Origin.SIMULATED:
        print("from simulated answers: the figures say nothing about real students")
    print(f"written: {cli.show(page_path)}")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    # The default usage would list all flags over many lines.
    parser.usage = "%(prog)s [flags]"
    cli.add_number(parser, "--questions", 20, "length of a test")
    phases = (LOCAL, *layout.PHASES)
    parser.add_argument(
        "--phase", choices=phases, default=LOCAL, help="students to examine (default local)"
    )
    help_text = "use only the first masks (with --protocol, the first splits)"
    parser.add_argument("--masks", type=cli.count, metavar="N", help=help_text)
    names = tuple(find_strategies())
    parser.add_argument(
        "--strategies", nargs="+", choices=names, metavar="NAME", help="play only these"
    )
    help_text = "ask no question of more than this share of the students"
    parser.add_argument(
        "--max_exposure", type=_parse_share, metavar="SHARE", default=1.0, help=help_text
    )
    help_text = "end a test once the standard error of the overall ability is at most S"
    parser.add_argument(
        "--stop_at_error", type=parse_fraction, metavar="S", default=0.0, help=help_text
    )
    # The next two flags exclude each other. --targets_queryable allows the game to ask an answer
    # that is to be predicted (a target). The protocols of the papers do not allow this.
    rules = parser.add_mutually_exclusive_group()
    help_text = "play a second time, with targets that may be asked"
    rules.add_argument("--targets_queryable", action="store_true", help=help_text)
    help_text = "split all students as a paper does"
    rules.add_argument("--protocol", choices=tuple(PROTOCOLS), help=help_text)
    default = "data/test_input, for a phase data/train_data; folder of the training files"
    cli.add_optional_folder(parser, "--input_dir", default)
    help_text = f"default {layout.TRAIN_TASK_4}, for a phase {layout.TRAIN_TASK_3_4}"
    parser.add_argument("--train_data", metavar="FILE", help=help_text)
    training.add_more_train_data_flag(parser)
    default = "data/test_input, for a phase data/test_data; folder of the students examined"
    cli.add_optional_folder(parser, "--ref_dir", default)
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR)
    return parser


def _parse_share(text: str) -> float:
    """Read a number above 0 and at most 1 from the command line."""
    if float(text) == 1:
        return 1.0
    return parse_fraction(text)


# ---- The students to be examined ----------------------------------------------------------------


def find_files(options: argparse.Namespace) -> Files:
    """Return the files that the flags name; refuse simulated files beside official ones."""
    # `training_paths` reads `options.local`, the flag --local of the scripts that train. This
    # script has the flag --phase instead, so set the option here.
    options.local = options.phase == LOCAL
    train, _ = training.training_paths(options)
    default = TASK_4.answers_path(options.phase)
    reference = (options.ref_dir or default.parent) / default.name
    paths = [*train, reference]
    for path in paths:
        reading.require_file(path)
    provenance.require_current([reference])
    origin_by_path = {path: provenance.origin_of(path) for path in paths}
    simulated = []
    not_simulated = []
    for path, origin in origin_by_path.items():
        if origin is Origin.SIMULATED:
            simulated.append(path)
        else:
            not_simulated.append(path)
    if simulated and not_simulated:
        raise InputError(
            f"{simulated[0]}: is simulated, and {not_simulated[0]} is not, expected answers of one "
            "kind"
        )
    # The answers are official only if all files are official.
    return Files(train, reference, origin=combine(origin_by_path.values()))


def read_cases(options: argparse.Namespace, files: Files) -> Iterator[Case]:
    """Read the answers, calibrate the model, and yield a `Case` for each mask.

    A case holds the students to be examined with their answers (the reference), a mask, which says
    which of these answers are hidden, and a model that has learned from other students. With
    --protocol, the students are split several times. Each split has its own reference, one mask and
    its own model.
    """
    if options.protocol:
        # A protocol splits all students, whichever file they are in.
        answers = read_students([*files.train, files.reference])
        # Arrays have a column for each QuestionId, from 0 to the largest one.
        n_columns = int(answers["QuestionId"].max()) + 1
        protocol = PROTOCOLS[options.protocol]
        # Each split has one mask, so the flag --masks sets the number of splits.
        n_splits = options.masks or N_SPLITS
        splits_of_students = splits(
            answers, protocol, n_splits, n_questions=options.questions, n_columns=n_columns
        )
        for learned, reference in splits_of_students:
            # A reference from `splits` has one mask, whose name is the name of the reference.
            yield Case(calibrate(learned, n_columns), reference, mask=reference.name)
        return
    answers = read_students(files.train)
    reference = read_reference(files.reference, int(answers["QuestionId"].max()) + 1)
    # The model must not learn from a student whom it examines: `require_others` raises an error if
    # it would. The message of the error begins with the names of the training files and ends with a
    # hint.
    train = ", ".join(map(str, files.train))
    hint = "were all files written by the same run of local_data_split.py?"
    reference.require_others(answers["UserId"].to_numpy(), f"{train}: holds", hint)
    bank = calibrate(answers, reference.is_correct.shape[1])
    # The keys of `reference.targets` are the names of the masks. Take the first --masks of them, or
    # all without this flag.
    for mask in list(reference.targets)[: options.masks]:
        yield Case(bank, reference, mask)


def splits(
    answers: pd.DataFrame, protocol: Protocol, n_splits: int, n_questions: int, n_columns: int
) -> Iterator[tuple[pd.DataFrame, Reference]]:
    """Split students and answers as a paper does.

    The students are shuffled and divided into parts. Each split examines the next ``n_test`` parts;
    when fewer than ``n_test`` are left, the students are shuffled anew.

    Parameters
    ----------
    answers
        UserId, QuestionId and IsCorrect of each answer.
    protocol
        How the paper splits.
    n_splits
        The number of splits.
    n_questions
        The length of a test. Students with fewer answers that may be asked are left out.
    n_columns
        The number of questions; all QuestionIds are smaller.

    Yields
    ------
    answers
        The answers to learn from.
    reference
        The students to be examined. The reference and its only mask are named after the split, such
        as "split 1".

    Raises
    ------
    InputError
        If there are too few students or answers.
    """
    student_ids, student = np.unique(answers["UserId"], return_inverse=True)
    n_students = len(student_ids)
    if n_students < protocol.n_parts:
        raise InputError(f"{n_students} students, expected at least {protocol.n_parts}")
    for number in range(n_splits):
        part_of_answer = _divide_students(n_students, protocol, split_number=number)[student]
        learned = answers[part_of_answer >= protocol.n_test + protocol.n_unused]
        examined = answers[part_of_answer < protocol.n_test]
        name = f"split {number + 1}"
        is_target = _choose_targets(examined, protocol.target_share, split_number=number)
        # For each answer: how many answers of its student may be asked.
        n_askable = (~is_target).groupby(examined["UserId"]).transform("sum")
        has_enough = (n_askable >= n_questions).to_numpy()
        if not has_enough.any():
            raise InputError(
                f"no student of {name} has {n_questions} answers that may be asked: "
                "choose a smaller --questions"
            )
        masks = {name: is_target[has_enough].to_numpy()}
        yield learned, make_reference(name, examined[has_enough], masks, n_columns)


def _divide_students(n_students: int, protocol: Protocol, split_number: int) -> IntArray:
    """Return the number of the part that each student belongs to in a split, shape (students,).

    Students in the parts 0 to ``n_test - 1`` are examined. The next ``n_unused`` parts are left
    out. The model learns from the students of all other parts.
    """
    # Each split examines `n_test` parts of the shuffled students. The next split takes the next
    # parts of the same shuffle. If fewer than `n_test` parts are left, the students are shuffled
    # anew.
    splits_per_shuffle = protocol.n_parts // protocol.n_test
    shuffle_number, n_earlier_splits = divmod(split_number, splits_per_shuffle)
    # The second seed is 0 here and 1 in `_choose_targets`, so that the shuffle and the choice of
    # targets are independent.
    rng = np.random.default_rng([shuffle_number, 0])
    shuffled = rng.permutation(n_students)
    # Cut the shuffled list of students into `n_parts` parts of about the same size. Element s of
    # `part` is the part of student s.
    part = np.empty(n_students, np.int64)
    place_in_list = np.arange(n_students)
    part[shuffled] = place_in_list * protocol.n_parts // n_students
    # Earlier splits of the same shuffle have examined the first `n_examined` parts. Renumber the
    # parts so that the next part becomes part 0. The subtraction gives negative numbers to the
    # examined parts. The remainder (%) turns these into the largest numbers.
    n_examined = n_earlier_splits * protocol.n_test
    return (part - n_examined) % protocol.n_parts


def _choose_targets(examined: pd.DataFrame, share: float, split_number: int) -> pd.Series:
    """Choose targets among the answers of each examined student, at random.

    The number of targets is `share` of the student's answers, rounded up. Returns whether each
    answer is a target. The number of the split is the seed.
    """
    rng = np.random.default_rng([split_number, 1])
    random_key = pd.Series(rng.random(len(examined)), examined.index)
    by_student = random_key.groupby(examined["UserId"])
    n_targets = np.ceil(share * by_student.transform("size"))
    # The answers of a student with the smallest random keys become targets.
    is_target: pd.Series = by_student.rank(method="first") <= n_targets
    return is_target


# ---- The games -----------------------------------------------------------------------------------


def play_by_rules(
    options: argparse.Namespace, cases: Sequence[Case], strategies: Mapping[str, Strategy]
) -> list[Result]:
    """Play every strategy in every case; with --targets_queryable, by two different rules."""
    rules_by_title = {"Targets may not be asked": Rules()}
    if options.targets_queryable:
        rules_by_title["Targets may be asked"] = Rules(targets_queryable=True)
    limits = GameLimits(options.questions, options.max_exposure, options.stop_at_error)
    n_games = len(rules_by_title) * len(strategies) * len(cases)
    results = []
    with tqdm(total=n_games, desc="Games", disable=None) as bar:
        for title, rules in rules_by_title.items():
            # No variable holds the games, so their memory is freed before the games by the next
            # rules.
            results.append(report(title, play_all(cases, strategies, rules, limits, bar), options))
    return results


def play_all(
    cases: Sequence[Case],
    strategies: Mapping[str, Strategy],
    rules: Rules,
    limits: GameLimits,
    bar: tqdm[Any],
) -> Games:
    """Play every strategy in every case by the same rules; move the progress bar."""
    games: Games = {name: {} for name in strategies}
    for case_number, case in enumerate(cases):
        for name, strategy in strategies.items():
            # The seed depends only on the case, so that all strategies get equal random numbers.
            games[name][case.mask] = play(
                case.bank, case.reference, case.mask, rules, strategy, limits, seed=case_number
            )
            bar.update()
    return games


# ---- What is shown -------------------------------------------------------------------------------


def report(title: str, games: Games, options: argparse.Namespace) -> Result:
    """Score all games that were played by the same rules.

    If the kit's own strategy `OWN` was played, a table compares it with each of the others.
    """
    scores = score(games)
    tables = score_tables(scores, stops=options.stop_at_error > 0)
    others = [name for name in games if name != OWN]
    if OWN in games and others:
        caption = f"{OWN} ahead in accuracy, ± 2 standard errors (*: 0 is outside)"
        # Each game was scored several times: after each of these numbers of questions.
        numbers = scores["n"].unique().tolist()
        tables[caption] = _comparison_table(games, others, numbers)
    notes = []
    for name, by_mask in games.items():
        # How often a student was asked a question although as many students as --max_exposure
        # allows had been asked it before.
        n_over_limit = sum(game.n_over_limit for game in by_mask.values())
        if n_over_limit:
            notes.append(
                f"{name} exceeds the limit of exposure {n_over_limit} times: no other question was "
                "left"
            )
    return Result(title, _draw_accuracy(title, scores), tables, notes)


def _draw_accuracy(title: str, scores: pd.DataFrame) -> Html:
    """Draw a curve of the accuracy of each strategy.

    The kit's own strategy `OWN` comes first, so its curve has the first colour and lies on top.
    """
    numbers = scores["n"].unique().tolist()
    accuracy = scores.groupby(["strategy", "n"])["accuracy"].mean()
    played = scores["strategy"].unique().tolist()
    own = [name for name in played if name == OWN]
    names = own + [name for name in played if name != OWN]
    curves = []
    # The number of a curve determines its colour.
    for number, name in enumerate(names):
        values = accuracy[name].tolist()
        curves.append(charts.Curve(name, steps=numbers, values=values, number=number))
    return charts.curve_chart(
        curves,
        label=f"Accuracy after each number of questions, {title}",
        axis="questions asked",
        value_axis="accuracy on the hidden answers",
    )


def _comparison_table(games: Games, others: Sequence[str], numbers: Sequence[int]) -> pd.DataFrame:
    """Return a table that compares the kit's own strategy `OWN` with others.

    The table has a row for each of the `others`. The games were scored after each of the `numbers`
    of questions.
    """
    # If a test ends before the first number of questions in `_COMPARED`, compare after its last
    # question.
    compared = [n for n in _COMPARED if n in numbers] or numbers[-1:]
    columns = {}
    for n in compared:
        columns[f"after {n}"] = [_compare_with_own(games, name, n) for name in others]
    return pd.DataFrame(columns, pd.Index(others, name="strategy"))


def _compare_with_own(games: Games, name: str, n: int) -> str:
    """Return how far the kit's own strategy is ahead of another one after n questions, as text.

    The text holds the difference in accuracy ± two standard errors. A star marks a difference of
    more than two standard errors.
    """
    difference, error = compare(games[OWN], games[name], n)
    mark = "*" if abs(difference) > 2 * error else " "
    return f"{difference:+.4f} ± {2 * error:.4f}{mark}"


def score_tables(scores: pd.DataFrame, stops: bool) -> dict[str, pd.DataFrame]:
    """Return tables of scores.

    Parameters
    ----------
    scores
        The result of `strategy_games.score`: a row for each strategy, mask and number n of
        questions, with a column for each score after n questions.
    stops
        Whether tests may end early. If so, a table shows their mean length too.

    Returns
    -------
    dict
        Tables of text by caption. Rows are strategies. Columns are numbers n of questions, or a
        score and n with a line break between them.
    """
    by_strategy_and_n = scores.drop(columns="mask").groupby(["strategy", "n"], sort=False)
    # Means and standard deviations over the masks: a row for each strategy. A column is named by a
    # score and n, such as ("auc", 10).
    means: Any = by_strategy_and_n.mean().unstack("n", sort=False)
    deviations = by_strategy_and_n.std().unstack("n", sort=False)
    # The numbers n of questions, without 0: the scores before the first question are the same for
    # all strategies.
    numbers = scores["n"].unique()[1:].tolist()
    last = numbers[-1]
    # A table has room for only one column of standard deviations. The column is about the scores
    # after ten questions, the length of a test in the challenge, or at the end of a shorter test.
    n_main = _CHALLENGE_LENGTH if _CHALLENGE_LENGTH in numbers else last
    # With a single mask, there is no standard deviation over the masks.
    has_deviations = scores["mask"].nunique() > 1
    tables = {}
    for title, score_name in _MEASURES.items():
        table = means[score_name][numbers].rename(columns=str)
        if has_deviations:
            table[f"± ({n_main})"] = deviations[score_name, n_main]
        tables[f"{title} after n questions"] = table.map("{:.4f}".format)
    # The last table says how the questions were used.
    caption = "Largest exposure, mean test overlap, share of the bank used"
    names_of_use = ["exposure", "overlap", "bank"]
    numbers_of_use = [n_main] if n_main == last else [n_main, last]
    if stops:
        caption += ", mean length"
        names_of_use.append("length")
        # Two columns for each of four scores would not fit into 80 characters.
        numbers_of_use = [last]
    tables[caption] = _format_scores(means, names_of_use, numbers_of_use)
    return tables


def _format_scores(
    means: pd.DataFrame, names: Sequence[str], numbers: Sequence[int]
) -> pd.DataFrame:
    """Return a table of text that shows some scores after some numbers of questions.

    `means` has a row for each strategy, and a column for each score and number of questions.
    """
    columns = {}
    for name in names:
        # The score `length` is a number of questions, such as 8.25. The other scores are shares.
        template = "{:.2f}" if name == "length" else "{:.3f}"
        for n in numbers:
            columns[f"{name}\n{n}"] = means[name, n].map(template.format)
    return pd.DataFrame(columns)


def as_text(result: Result) -> str:
    """Return the title, the tables and the notes of a result as text of at most 80 columns."""
    parts = [result.title]
    for caption, table in result.tables.items():
        # The name of a column may have several lines. The header then gets a level for each line.
        lines_of_names = [tuple(str(name).split("\n")) for name in table]
        header = pd.MultiIndex.from_tuples(lines_of_names)
        # pandas prints the name of the last header level above the row names, which are names of
        # strategies.
        header = header.set_names("strategy", level=-1)
        shown = table.set_axis(header, axis=1)
        # The name of the index, "strategy" too, would take a line of its own: remove it.
        shown = shown.rename_axis(None)
        shown = shown.rename(index=lambda name: name[:_NAME_WIDTH])
        parts.append(f"\n{caption}\n{shown.to_string(sparsify=False)}")
    parts += [f"note: {note}" for note in result.notes]
    return "\n".join(parts)


def describe(options: argparse.Namespace, cases: Sequence[Case]) -> dict[str, str]:
    """Return titles and texts for the page: how many students, which rules, and the like."""
    students = np.unique(np.concatenate([case.reference.student for case in cases]))
    n_targets = sum(int(case.reference.targets[case.mask].sum()) for case in cases)
    unit = "split" if options.protocol else "mask"
    if len(cases) > 1:
        unit += "s"
    facts = {
        "Students": f"{len(students):,}",
        "Targets": f"{n_targets:,} in {len(cases)} {unit}",
        "Length": f"{options.questions} questions",
    }
    if options.protocol:
        facts["Protocol"] = PROTOCOLS[options.protocol].title
    if options.max_exposure < 1:
        facts["Limit of exposure"] = f"{options.max_exposure:g} of the students"
    if options.stop_at_error:
        facts["Stop"] = f"at a standard error of {options.stop_at_error:g} deviations"
    return facts


def render_page(
    options: argparse.Namespace,
    files: Files,
    strategies: Mapping[str, Strategy],
    results: Sequence[Result],
    facts: Mapping[str, str],
) -> str:
    """Return the page with all results and facts."""
    if options.protocol:
        # A protocol joins the students of all files and splits them anew, so no file is only
        # learned from or only examined.
        paths_by_title = {"Students of": [*files.train, files.reference]}
    else:
        paths_by_title = {"Learned from": files.train, "Examined": [files.reference]}
    file_facts = []
    for title, paths in paths_by_title.items():
        file_facts.append((title, ", ".join(map(cli.show, paths))))
    # The page describes each strategy in a sentence, the first line of its docstring.
    sentences = []
    for name, strategy in strategies.items():
        first_line = (strategy.__doc__ or "").strip().partition("\n")[0]
        sentences.append((name, first_line))
    # The published scores of the same protocol. Without --protocol, `options.protocol` is None,
    # which differs from the protocol of every published score, so none is shown.
    published = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    has_same_protocol = published["protocol"] == options.protocol
    published = published[has_same_protocol].drop(columns="protocol")
    return pages.render(
        "strategies.html",
        title="Task 4: which question to ask next",
        origin=files.origin,
        results=results,
        # The page compares published scores only with results on official answers.
        protocol=PROTOCOLS.get(options.protocol) if files.origin is Origin.OFFICIAL else None,
        published=published.to_numpy(),
        sentences=sentences,
        facts=[*file_facts, *facts.items()],
    )


if __name__ == "__main__":
    cli.run(main)
