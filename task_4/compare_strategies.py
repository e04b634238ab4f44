"""Task 4: compare strategies of choosing questions, with one calibrated model for all of them.

Run:     python task_4/compare_strategies.py                        students of the local split
         python task_4/compare_strategies.py --phase public         a phase's students
         python task_4/compare_strategies.py --phase public --protocol bobcat
Writes:  data/test_output/strategies_task_4.html, and the same tables to the terminal

Every public function of strategies.py is played on the same students and masks; the model is that
of item_response/, fitted once. STRATEGIES.md explains the columns.
"""

import argparse
import textwrap
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import charts, cli, layout, pages, provenance, reading, writing
from common.adaptive import training
from common.adaptive.game import Reference, Rules, make_reference, read_reference
from common.answers import read_students
from common.errors import InputError
from common.tasks import LOCAL, TASK_4

import numpy as np
import pandas as pd
from ability import Bank, share
from strategy_games import OWN, Games, calibrate, compare, find_strategies, play, score
from tqdm import tqdm

OUTPUT_NAME = "strategies_task_4.html"
PUBLISHED = Path(__file__).with_name("published.csv")
N_SPLITS = 5
# Length of the challenge's tests; there and earlier strategies are compared in pairs.
_LENGTH = 10
_COMPARED = (5, _LENGTH)
_NAME_WIDTH = 24
_MEASURES = {"Accuracy": "accuracy", "AUC": "auc", "Log loss": "log_loss"}

Case = tuple[Bank, Reference, str]  # with the name of a mask


@dataclass(frozen=True)
class Protocol:
    """How a paper splits students and answers; published.csv holds the paper's results."""

    # In words, for the page.
    title: str
    # The shuffled students are divided into so many equal parts.
    n_parts: int
    # Parts whose students are examined.
    n_test: int
    # Parts that are left out, because the paper validates on them.
    n_unused: int
    # Share of an examined student's answers that are to be predicted.
    target_share: float
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
        source="Zhuang et al. 2022, AAAI; not checked in its text, nor after how many questions",
    ),
}


def main() -> None:
    """Play, print, write the page."""
    options = build_parser().parse_args()
    page_path = options.output_dir / OUTPUT_NAME
    writing.require_writable(page_path)
    strategies = find_strategies()
    if options.strategies:
        strategies = {name: strategies[name] for name in strategies if name in options.strategies}
    began = time.perf_counter()
    train, reference_path, simulated = find_files(options)
    cases = list(read_cases(options, train, reference_path))
    calibrated_in = time.perf_counter() - began

    rules = {"Targets may not be asked": Rules()}
    if options.targets_queryable:
        rules["Targets may be asked"] = Rules(targets_queryable=True)
    limits = options.questions, options.max_exposure, options.stop_at_error
    results = []
    with tqdm(total=len(rules) * len(strategies) * len(cases), desc="Games", disable=None) as bar:
        for title, rule in rules.items():
            games: Games = {name: {} for name in strategies}
            for seed, case in enumerate(cases):
                for name, strategy in strategies.items():
                    games[name][case[-1]] = play(*case, rule, strategy, *limits, seed)
                    bar.update()
            results.append(report(title, games, options))
    for result in results:
        print(as_text(result), end="\n\n")

    facts = describe(options, cases)
    seconds = time.perf_counter() - began
    facts["Time"] = f"calibration {calibrated_in:.0f} s, all {seconds:.0f} s"
    # A protocol splits all students, whichever file they are in.
    files = {"Learned from": train, "Examined": [reference_path]}
    if options.protocol:
        files = {"Students of": [*train, reference_path]}
    published = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    published = published[published["protocol"] == options.protocol].drop(columns="protocol")
    page = pages.render(
        "strategies.html",
        title="Task 4: which question to ask next",
        simulated=simulated,
        results=results,
        # Never show published scores beside simulated answers.
        protocol=None if simulated else PROTOCOLS.get(options.protocol),
        published=published.to_numpy(),
        sentences=[
            (name, (strategy.__doc__ or "").strip().partition("\n")[0])
            for name, strategy in strategies.items()
        ],
        facts=[(name, ", ".join(map(cli.show, paths))) for name, paths in files.items()]
        + [*facts.items()],
    )
    writing.write_files({page_path: page})
    for name, value in facts.items():
        print(textwrap.fill(f"{name}: {value}", 80, subsequent_indent="  "))
    if simulated:
        print("from simulated answers: the figures say nothing about real students")
    print(f"written: {cli.show(page_path)}")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.usage = "%(prog)s [flags]"
    cli.add_number(parser, "--questions", 20, "length of a test")
    phases = (LOCAL, *layout.PHASES)
    parser.add_argument(
        "--phase", choices=phases, default=LOCAL, help="whom to examine (default local)"
    )
    few = "use the first masks only; of a protocol, splits"
    parser.add_argument("--masks", type=cli.count, metavar="N", help=few)
    known = tuple(find_strategies())
    parser.add_argument(
        "--strategies", nargs="+", choices=known, metavar="NAME", help="play only these"
    )
    limit = "share of students asked one question"
    parser.add_argument("--max_exposure", type=_share, metavar="SHARE", default=1.0, help=limit)
    stop = "end a test at this standard error of the overall ability (STRATEGIES.md)"
    parser.add_argument("--stop_at_error", type=share, metavar="S", default=0.0, help=stop)
    # No protocol lets targets be asked.
    rules = parser.add_mutually_exclusive_group()
    rule = "play by the other rule as well"
    rules.add_argument("--targets_queryable", action="store_true", help=rule)
    protocol = "split all students as a paper does"
    rules.add_argument("--protocol", choices=tuple(PROTOCOLS), help=protocol)
    folders = "data/test_input, of a phase data/train_data: the training files"
    cli.add_optional_folder(parser, "--input_dir", folders)
    files = f"default {layout.TRAIN_TASK_4}, of a phase {layout.TRAIN_TASK_3_4}"
    parser.add_argument("--train_data", metavar="FILE", help=files)
    training.add_more_train_data_flag(parser)
    folders = "data/test_input, of a phase data/test_data: the students examined"
    cli.add_optional_folder(parser, "--ref_dir", folders)
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR)
    return parser


def _share(text: str) -> float:
    return 1.0 if float(text) == 1 else share(text)


# ---- Whom to examine ---------------------------------------------------------------------------


def find_files(options: argparse.Namespace) -> tuple[list[Path], Path, bool]:
    """Return the training files, that of the students to be examined, and if they are simulated."""
    options.local = options.phase == LOCAL
    train, _ = training.training_paths(options)
    reference = TASK_4.answers_path(options.phase)
    reference = (options.ref_dir or reference.parent) / reference.name
    for path in (*train, reference):
        reading.require_file(path)
    provenance.require_current([reference])
    simulated = {provenance.is_simulated(path): path for path in (*train, reference)}
    if len(simulated) == 2:
        raise InputError(
            f"{simulated[True]}: is simulated, and {simulated[False]} is not, expected answers of "
            "one kind"
        )
    return train, reference, True in simulated


def read_cases(
    options: argparse.Namespace, train: list[Path], reference_path: Path
) -> Iterator[Case]:
    """Read the answers, calibrate, and yield whom to examine."""
    if options.protocol:
        answers = read_students([*train, reference_path])
        n_columns = int(answers["QuestionId"].max()) + 1
        protocol, n_splits = PROTOCOLS[options.protocol], options.masks or N_SPLITS
        for learned, reference in splits(answers, protocol, n_splits, options.questions, n_columns):
            yield calibrate(learned, n_columns), reference, reference.name
        return
    answers = read_students(train)
    reference = read_reference(reference_path, int(answers["QuestionId"].max()) + 1)
    holder, hint = ", ".join(map(str, train)), "are all files of one split?"
    reference.require_others(answers["UserId"].to_numpy(), f"{holder}: holds", hint)
    bank = calibrate(answers, reference.is_correct.shape[1])
    for mask in list(reference.targets)[: options.masks]:
        yield bank, reference, mask


def splits(
    answers: pd.DataFrame, protocol: Protocol, n_splits: int, n_questions: int, n_columns: int
) -> Iterator[tuple[pd.DataFrame, Reference]]:
    """Yield what to learn from, and whom to examine by a mask of the split's name: part after part
    of the shuffled students, but for those with too few answers that may be asked.
    """
    students, row = np.unique(answers["UserId"], return_inverse=True)
    if len(students) < protocol.n_parts:
        raise InputError(f"{len(students)} students, expected at least {protocol.n_parts}")
    for number in range(n_splits):
        name = f"split {number + 1}"
        turn, place = divmod(number, protocol.n_parts // protocol.n_test)
        order = np.random.default_rng([turn, 0]).permutation(len(students))
        part = np.empty(len(students), np.int64)
        part[order] = np.arange(len(students)) * protocol.n_parts // len(students)
        # The part of each answer's student, counted from the first one that is examined.
        after = (part[row] - place * protocol.n_test) % protocol.n_parts
        learned = answers[after >= protocol.n_test + protocol.n_unused]
        # The first of each student's answers, in random order, are to be predicted, rounded up.
        examined = answers[after < protocol.n_test]
        drawn = pd.Series(np.random.default_rng([number, 1]).random(len(examined)), examined.index)
        by_student = drawn.groupby(examined["UserId"])
        n_answers = by_student.transform("size")
        n_targets = np.ceil(protocol.target_share * n_answers)
        is_target = by_student.rank(method="first") <= n_targets
        enough = (n_answers - n_targets >= n_questions).to_numpy()
        if not enough.any():
            raise InputError(
                f"no student of {name} has {n_questions} answers that may be asked: "
                "choose a smaller --questions"
            )
        masks = {name: is_target[enough].to_numpy()}
        yield learned, make_reference(name, examined[enough], masks, n_columns)


# ---- What is shown -----------------------------------------------------------------------------


def report(title: str, games: Games, options: argparse.Namespace) -> dict[str, Any]:
    """Score all games that were played by one rule; return what strategies.html shows of it."""
    scores = score(games)
    numbers = scores["n"].unique().tolist()
    accuracy = scores.groupby(["strategy", "n"])["accuracy"].mean()
    curves = charts.curve_chart(
        [
            charts.Curve(name, numbers, accuracy[name].tolist(), number)
            for number, name in enumerate(sorted(games, key=lambda name: name != OWN))
        ],
        label=f"Accuracy after each number of questions, {title}",
        axis="questions asked",
        value_axis="accuracy on the hidden answers",
    )

    def ahead(name: str, n: int) -> str:
        value, error = compare(games[OWN], games[name], n)
        return f"{value:+.4f} ± {2 * error:.4f}{'*' if abs(value) > 2 * error else ' '}"

    tables = score_tables(scores, stops=options.stop_at_error > 0)
    others = [name for name in games if name != OWN]
    if OWN in games and others:
        compared = [n for n in _COMPARED if n in numbers] or numbers[-1:]
        columns = {f"after {n}": [ahead(name, n) for name in others] for n in compared}
        caption = f"{OWN} ahead in accuracy, ± 2 standard errors (* beyond)"
        tables[caption] = pd.DataFrame(columns, pd.Index(others, name="strategy"))
    return {
        "title": title,
        "curves": curves,
        "tables": tables,
        "notes": [
            f"{name} exceeds the limit of exposure {n} times: no other question was left"
            for name, played in games.items()
            if (n := sum(game.n_over_limit for game in played.values()))
        ],
    }


def score_tables(scores: pd.DataFrame, stops: bool) -> dict[str, pd.DataFrame]:
    """Return tables of scores as text by what they show, with mean lengths if tests end early."""
    games = scores.drop(columns="mask").groupby(["strategy", "n"], sort=False)
    means, deviations = (found.unstack("n", sort=False) for found in (games.mean(), games.std()))
    *_, last = steps = scores["n"].unique()[1:].tolist()
    # Exposure is shown after ten questions, and at the end.
    shown = [_LENGTH, last] if _LENGTH in steps[:-1] else [last]
    tables = {}
    for title, name in _MEASURES.items():
        table = means[name][steps].rename(columns=str)
        if scores["mask"].nunique() > 1:
            table[f"± ({shown[0]})"] = deviations[name, shown[0]]
        tables[f"{title} after n questions"] = table.map("{:.4f}".format)
    title = "Largest exposure, mean test overlap, share of the bank used"
    form = dict.fromkeys(("exposure", "overlap", "bank"), "{:.3f}".format)
    if stops:
        # More would not fit.
        title, form["length"], shown = f"{title}, mean length", "{:.2f}".format, [last]
    columns = {f"{name}\n{n}": means[name, n].map(form[name]) for name in form for n in shown}
    return {**tables, title: pd.DataFrame(columns)}


def as_text(result: Mapping[str, Any]) -> str:
    """Return all tables of a rule as text of at most 80 columns."""
    parts = [result["title"]]
    for title, table in result["tables"].items():
        heads = pd.MultiIndex.from_tuples([head.split("\n") for head in table])
        shown = table.set_axis(heads.set_names("strategy", level=-1), axis=1).rename_axis(None)
        shown = shown.rename(index=lambda name: name[:_NAME_WIDTH])
        parts.append(f"\n{title}\n{shown.to_string(sparsify=False)}")
    return "\n".join([*parts, *(f"note: {note}" for note in result["notes"])])


def describe(options: argparse.Namespace, cases: list[Case]) -> dict[str, str]:
    """Return what was measured, by name."""
    students = np.unique(np.concatenate([reference.student for _, reference, _ in cases]))
    n_targets = sum(int(reference.targets[mask].sum()) for _, reference, mask in cases)
    parts = ("split" if options.protocol else "mask") + "s" * (len(cases) > 1)
    limit, stop = options.max_exposure, options.stop_at_error
    facts = {
        "Students": f"{len(students):,}",
        "Targets": f"{n_targets:,} in {len(cases)} {parts}",
        "Length": f"{options.questions} questions",
        "Protocol": PROTOCOLS[options.protocol].title if options.protocol else "",
        "Limit of exposure": f"{limit:g} of the students" if limit < 1 else "",
        "Stop": f"at a standard error of {stop:g} deviations" if stop else "",
    }
    return {name: value for name, value in facts.items() if value}


if __name__ == "__main__":
    cli.run(main)
