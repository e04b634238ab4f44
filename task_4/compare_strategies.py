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
from collections.abc import Iterator
from pathlib import Path

from common import cli, io, layout, made, pages
from common.adaptive import training
from common.adaptive.game import Reference, Rules, read_reference
from common.answers import read_students
from common.errors import InputError

import numpy as np
import pandas as pd
from ability import Bank
from strategy_games import PlayedGame, Setting, Strategy, find_strategies, load_package, play
from strategy_protocols import PROTOCOLS, splits
from strategy_report import as_text, compare_games
from tqdm import tqdm

LOCAL = "local"
OUTPUT_NAME = "strategies_task_4.html"
N_SPLITS = 5


# Students to be examined with one mask, and the model for them.
Case = tuple[Bank, Reference, str]


def main() -> None:
    """Play, print, write the page."""
    options = parse()
    page_path = options.output_dir / OUTPUT_NAME
    io.require_place(page_path)
    chosen = choose_strategies(options.strategies)
    setting = Setting(options.questions, options.max_exposure, options.stop_at_error)
    began = time.perf_counter()
    train, reference_path = find_files(options)
    cases = list(read_cases(options, train, reference_path))
    calibrated_in = time.perf_counter() - began

    rules = {"Targets may not be asked": Rules()}
    if options.targets_queryable:
        rules["Targets may be asked"] = Rules(targets_queryable=True)
    results = []
    with tqdm(total=len(rules) * len(chosen) * len(cases), desc="Games", disable=None) as bar:
        for title, rule in rules.items():
            games: dict[str, dict[str, PlayedGame]] = {name: {} for name in chosen}
            for seed, (bank, reference, mask) in enumerate(cases):
                for name, strategy in chosen.items():
                    played = play(bank, reference, mask, rule, strategy, setting, seed)
                    games[name][mask] = played
                    bar.update()
            stops = setting.stop_at_error > 0
            results.append(compare_games(title, games, setting.checkpoints, stops=stops))
    for result in results:
        print(as_text(result), end="\n\n")

    simulated = made.is_simulated(*train, reference_path)
    facts = describe(options, setting, cases)
    seconds = time.perf_counter() - began
    facts.append(("Time", f"calibration {calibrated_in:.0f} s, all {seconds:.0f} s"))
    # A protocol splits all students, whichever file they are in.
    files = {"Learned from": train, "Examined": [reference_path]}
    if options.protocol:
        files = {"Students of": [*train, reference_path]}
    page = pages.render(
        "strategies.html",
        title="Task 4: which question to ask next",
        simulated=simulated,
        results=results,
        # Beside simulated answers stands nothing that was published of a protocol.
        published=None if simulated else PROTOCOLS.get(options.protocol),
        sentences=[
            (name, (strategy.__doc__ or "").strip().partition("\n")[0])
            for name, strategy in chosen.items()
        ],
        facts=[(name, ", ".join(map(cli.show, paths))) for name, paths in files.items()] + facts,
    )
    io.write_text(page_path, page)
    for name, value in facts:
        print(textwrap.fill(f"{name}: {value}", 80, subsequent_indent="  "))
    if simulated:
        print("from simulated answers: the figures say nothing about real students")
    print(f"written: {cli.show(page_path)}")


def parse() -> argparse.Namespace:
    """Read the flags."""
    p = cli.parser(__doc__)
    p.usage = "%(prog)s [flags]"
    length = "length of a test (default 20)"
    p.add_argument("--questions", type=cli.count, metavar="N", default=20, help=length)
    phases = (LOCAL, *layout.PHASES)
    p.add_argument("--phase", choices=phases, default=LOCAL, help="whom to examine (default local)")
    few = "use the first masks only; of a protocol, splits"
    p.add_argument("--masks", type=cli.count, metavar="N", help=few)
    p.add_argument("--strategies", nargs="+", metavar="NAME", help="play only these")
    limit = "share of students asked one question"
    p.add_argument("--max_exposure", type=_share, metavar="SHARE", default=1.0, help=limit)
    stop = "end a test at this standard error of the overall ability (STRATEGIES.md)"
    p.add_argument("--stop_at_error", type=cli.share, metavar="S", default=0.0, help=stop)
    rule = "play by the other rule as well"
    p.add_argument("--targets_queryable", action="store_true", help=rule)
    protocol = "split all students as a paper does"
    p.add_argument("--protocol", choices=tuple(PROTOCOLS), help=protocol)
    folders = "data/test_input, of a phase data/train_data: the training files"
    cli.add_folder(p, "--input_dir", folders)
    p.add_argument(
        "--train_data",
        metavar="FILE",
        help=f"default {layout.TRAIN_TASK_4}, of a phase {layout.TRAIN_TASK_3_4}",
    )
    training.add_more_train_data_flag(p)
    folders = "data/test_input, of a phase data/test_data: the students examined"
    cli.add_folder(p, "--ref_dir", folders)
    cli.add_folder(p, "--output_dir", layout.TEST_OUTPUT_DIR)
    options = p.parse_args()
    if options.protocol and options.targets_queryable:
        raise InputError(
            "--targets_queryable: no protocol lets targets be asked, expected one flag"
        )
    return options


def _share(text: str) -> float:
    return 1.0 if float(text) == 1 else cli.share(text)


def choose_strategies(names: list[str] | None) -> dict[str, Strategy]:
    """Return the strategies of these names, all if there are none."""
    known = find_strategies()
    for name in names or ():
        if name not in known:
            raise InputError(f"--strategies is {name}, expected some of {', '.join(known)}")
    return {name: strategy for name, strategy in known.items() if not names or name in names}


def find_files(options: argparse.Namespace) -> tuple[list[Path], Path]:
    """Return the training files, and the file of the students to be examined."""
    options.local = options.phase == LOCAL
    train, _ = training.training_paths(options)
    reference = layout.answers_path(4, options.phase)
    reference = (options.ref_dir or reference.parent) / reference.name
    for path in (*train, reference):
        io.require_file(path)
    made.require_current([reference])
    simulated = {made.is_simulated(path): path for path in (*train, reference)}
    if len(simulated) == 2:
        raise InputError(
            f"{simulated[True]}: is simulated, and {simulated[False]} is not, expected answers of "
            "one kind"
        )
    return train, reference


def read_cases(
    options: argparse.Namespace, train: list[Path], reference_path: Path
) -> Iterator[Case]:
    """Read the answers, calibrate, and yield whom to examine."""
    package, trainer = load_package()

    def calibrate(answers: pd.DataFrame, n_questions: int) -> Bank:
        popularity = np.bincount(answers["QuestionId"].to_numpy(), minlength=n_questions)
        return Bank(package, trainer.fit(answers, n_questions), popularity)

    if options.protocol:
        answers = read_students([*train, reference_path])
        n_columns = int(answers["QuestionId"].max()) + 1
        protocol, n_splits = PROTOCOLS[options.protocol], options.masks or N_SPLITS
        for learned, reference in splits(answers, protocol, n_splits, options.questions, n_columns):
            yield calibrate(learned, n_columns), reference, reference.name
        return
    answers = read_students(train)
    reference = read_reference(reference_path, int(answers["QuestionId"].max()) + 1)
    known = np.intersect1d(reference.student, answers["UserId"].to_numpy())
    if len(known):
        raise InputError(
            f"{reference_path}: UserId {known[0]} is in the training files too ({len(known)} such "
            "students), expected other students: are all files of one split?"
        )
    bank = calibrate(answers, reference.is_correct.shape[1])
    for mask in list(reference.targets)[: options.masks]:
        yield bank, reference, mask


def describe(
    options: argparse.Namespace, setting: Setting, cases: list[Case]
) -> list[tuple[str, str]]:
    """Return what was measured, as names and values."""
    students = np.unique(np.concatenate([reference.student for _, reference, _ in cases]))
    n_targets = sum(int(reference.targets[mask].sum()) for _, reference, mask in cases)
    parts = ("split" if options.protocol else "mask") + "s" * (len(cases) > 1)
    facts = [
        ("Students", f"{len(students):,}"),
        ("Targets", f"{n_targets:,} in {len(cases)} {parts}"),
        ("Length", f"{setting.n_questions} questions"),
    ]
    if options.protocol:
        facts.append(("Protocol", PROTOCOLS[options.protocol].title))
    if setting.max_exposure < 1:
        facts.append(("Limit of exposure", f"{setting.max_exposure:g} of the students"))
    if setting.stop_at_error:
        facts.append(("Stop", f"at a standard error of {setting.stop_at_error:g} deviations"))
    return facts


if __name__ == "__main__":
    cli.run(main)
