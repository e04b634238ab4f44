"""Cross-validate an entry: run its own script on every split of the training answers.

    python -m tools.cross_validate task_1/my_idea.py
    python -m tools.cross_validate task_2/my_idea.py --folds 10 --repeats 2 -- --dimensions 12
    python -m tools.cross_validate task_4/my_questions

The answers (task 4: the students) are dealt into folds at random. For each fold the script learns
from the others and predicts it, as it would the test; flags after -- are its own, but for those
that say which files it reads or writes. Mean and standard deviation of the scores are one line of
the record and of the scoreboard, where only entries on the same folds stand in one table; `python
-m tools.compare` tells two of them apart. Nothing else is written: task 4 trains copies of the
package.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common import (
    cli,
    layout,
    metrics,
    provenance,
    reading,
    sample_models,
    schema,
    source_code,
    writing,
)
from common.adaptive.entry_files import fingerprint_code
from common.adaptive.game import Rules
from common.adaptive.playing import list_targets, play_all
from common.adaptive.setting import (
    Setting,
    add_game_flags,
    read_limits,
    read_rules,
    read_students,
)
from common.adaptive.weights import copy_package, read_origin
from common.answers import read_answers
from common.arrays import BoolArray
from common.errors import InputError, quote
from common.evaluation import outcomes, pairs, record
from common.metrics import Score
from common.provenance import Provenance
from common.sandbox import Limits
from common.splits import assign_folds, hold_out_answers
from common.tasks import Form, Task
from tools import script_runs
from tools.results import CROSS_VALIDATION
from tools.script_runs import Fold
from tools.which_task import task_of

import numpy as np
import pandas as pd
from tqdm import tqdm

# Of the answers of a student held out (task 4), the share to be predicted, as in the local split.
_TARGETS = 0.2
# Flags that would show an entry other answers than those of its folds, or leave files behind.
_PLACES = [f"--{name}" for name in (*provenance.PLACES, "local")]


@dataclass(frozen=True)
class FoldRun:
    """What an entry predicted of one fold, and how."""

    # "fold 1" or "repeat 1, fold 1".
    title: str
    # UserId, QuestionId, truth and predicted of every answer held out.
    predicted: pd.DataFrame
    made: Provenance

    @property
    def accuracy(self) -> float:
        """The score of the fold."""
        truth = self.predicted["truth"].to_numpy()
        return metrics.accuracy(truth, self.predicted["predicted"].to_numpy()).value


def main() -> None:
    """Read the command line, run every fold, print and record the scores."""
    options, flags = _parse(sys.argv[1:])
    entry: Path = options.entry
    task = task_of(entry)
    rules = read_rules(options)
    limits = read_limits(options)
    script = entry.resolve()
    if task.form is Form.ENTRY:
        reading.require_file(entry / "train_model.py")
        script /= "train_model.py"
    elif (rules, limits) != (Rules(), Limits()):
        raise InputError(f"{entry}: is of task {task.number}, expected no flags of task 4")
    path = record.results_path(options.output_dir)
    cli.require_outputs([path])
    train = options.input_dir / (options.train_data or task.data.train)
    provenance.require_current([train])
    runs = run_folds(options, task, train, script, flags)

    repeats = f"{options.repeats} repeats, " if options.repeats > 1 else ""
    how = f"{options.folds} folds, {repeats}seed {options.seed}"
    if options.metadata_dir:
        how += f", metadata of {cli.show(options.metadata_dir)}"
    accuracy_by_fold = {run.title: run.accuracy for run in runs}
    targets = pd.concat([run.predicted.assign(part=index) for index, run in enumerate(runs)])
    memories = [run.made.memory for run in runs if run.made.memory is not None]
    scored = record.Evaluation(
        task=task.number,
        metric="Accuracy: mean over the folds",
        score=Score(statistics.fmean(accuracy_by_fold.values()), n=len(targets)),
        submission=entry,
        reference=train,
        phase=CROSS_VALIDATION,
        rules=f"{rules}, {how}" if task.form is Form.ENTRY else how,
        parts=accuracy_by_fold,
        training=Provenance(
            script=cli.show(script),
            options=provenance.options_of(flags),
            seconds=statistics.fmean(run.made.seconds for run in runs),
            memory=max(memories, default=None),
            code=runs[0].made.code,
        ),
        outcomes=outcomes.of_predictions(targets),
    )
    record.append_result(options.output_dir, scored)
    deviation = statistics.stdev(accuracy_by_fold.values())
    print(f"score {scored.score.value:.4f} ± {deviation:.4f} (mean and standard deviation; {how})")
    print(f"recorded in {cli.show(path)}")


def run_folds(
    options: argparse.Namespace, task: Task, train: Path, script: Path, flags: Sequence[str]
) -> list[FoldRun]:
    """Run an entry on every fold; print each score."""
    table = read_answers(train, options=True if task.needs_options else None, ids=True)
    metadata = script_runs.metadata_of(train, options.metadata_dir)
    runs = []
    n_runs = options.repeats * options.folds
    with tqdm(total=n_runs, desc="Folds", unit="fold", disable=None) as progress:
        for title, answers, held_out in deal(table, task, options):
            with tempfile.TemporaryDirectory(prefix="cross_validate_") as temporary:
                fold = Fold(title, answers, held_out, metadata, Path(temporary))
                try:
                    if task.form is Form.ENTRY:
                        rules = read_rules(options)
                        limits = read_limits(options)
                        run = play_fold(script.parent, flags, fold, rules, limits)
                    else:
                        run = predict_fold(options.entry, flags, fold, task)
                except InputError as fault:
                    message = name_fold(str(fault), options.entry, fold)
                    raise InputError(message) from None
            runs.append(run)
            progress.write(f"{title}: {run.accuracy:.4f}", file=sys.stdout)
            progress.update()
    return runs


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument("entry", type=Path, metavar="ENTRY", help="a script, or a folder of task 4")
    cli.add_number(parser, "--folds", 5)
    cli.add_number(parser, "--repeats", 1, "deal N times")
    cli.add_number(parser, "--seed", 0, "of the folds")
    cli.add_folder(parser, "--input_dir", layout.TRAIN_DIR)
    parser.add_argument("--train_data", metavar="FILE", help="default that of the task")
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR)
    add_game_flags(parser)
    sample_models.add_metadata_flag(parser)
    return parser


def _parse(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the options, and the flags after ``--``, which are the entry's own."""
    place = words.index("--") if "--" in words else len(words)
    flags = list(words[place + 1 :])
    for word in flags:
        # Python's parsers complete a flag that is cut off, unless they are told not to.
        name = word.partition("=")[0]
        if len(name) > 2 and any(flag.startswith(name) for flag in _PLACES):
            raise InputError(
                f"{quote(word)} after --: says where the entry reads or writes, which each fold "
                "does, expected other flags of the entry"
            )
    return build_parser().parse_args(words[:place]), flags


def deal(
    table: pd.DataFrame, task: Task, options: argparse.Namespace
) -> Iterator[tuple[str, pd.DataFrame, BoolArray]]:
    """Deal the answers into folds, in task 4 by student: title, answers, which are held out."""
    is_entry = task.form is Form.ENTRY
    group = np.arange(len(table))
    if is_entry:
        group = pd.factorize(table["UserId"], sort=True)[0]
    for repeat in range(options.repeats):
        seeds = [options.seed, repeat]
        number = assign_folds(group, options.folds, seeds)
        if is_entry:
            # A different stream of random numbers from the one that dealt the students.
            targets = hold_out_answers(len(table), _TARGETS, [*seeds, 1])
            table = table.assign(**{schema.IS_TARGET: targets.astype(np.int8)})
        for k in range(options.folds):
            title = f"repeat {repeat + 1}, " * (options.repeats > 1) + f"fold {k + 1}"
            yield title, table, number == k


def predict_fold(script: Path, flags: Sequence[str], fold: Fold, task: Task) -> FoldRun:
    """Let a script of task 1 or 2 learn from the other folds and predict this one."""
    script_runs.run_on_fold(script, flags, fold)
    path, reference = fold.folder / task.submission, fold.folder / "held_out.csv"
    if not path.is_file():
        raise InputError(f"{script}: has not written {path.name} on {fold.title}")
    writing.write_files({reference: fold.table[fold.held_out]})
    predicted = pairs.match(task, path, reference).pairs
    took = provenance.read(path) or Provenance(str(script), {}, float("nan"))
    took = replace(took, code=source_code.fingerprint(script))
    return FoldRun(fold.title, predicted, took)


def play_fold(
    package: Path, flags: Sequence[str], fold: Fold, rules: Rules, limits: Limits
) -> FoldRun:
    """Train a copy of a package of task 4 on the other students, and examine these with it."""
    copy, data = fold.folder / package.name, fold.folder / "data" / layout.TRAIN_DIR.name
    copy_package(package, copy)
    train, reference_path = data / script_runs.TRAIN, data / "students.csv"
    writing.write_files({train: fold.table[~fold.held_out].drop(columns=schema.IS_TARGET)})
    writing.write_files({reference_path: fold.table[fold.held_out]})
    metadata = data.parent / layout.METADATA_DIR.name
    if fold.metadata is not None:
        try:
            metadata.symlink_to(fold.metadata, target_is_directory=True)
        except OSError:  # Where links are not allowed (Windows).
            shutil.copytree(fold.metadata, metadata)
    trainer = package / "train_model.py"
    command = [copy / trainer.name, "--input_dir", data, "--train_data", train.name, *flags]
    script_runs.run_script(command, fold.title, shown=trainer)
    started = time.perf_counter()
    setting = Setting(copy, reference_path, train, metadata, rules, limits)
    reference = read_students(setting)
    predicted = list_targets(reference, play_all(setting, reference).games)
    seconds = time.perf_counter() - started
    took = read_origin(copy) or Provenance(str(trainer), {}, seconds)
    code = fingerprint_code(copy, source_code.fingerprint(trainer))
    return FoldRun(fold.title, predicted, replace(took, seconds=seconds, code=code))


def name_fold(fault: str, entry: Path, fold: Fold) -> str:
    """Let a fault name the entry and the fold, instead of files that will be gone."""
    if fold.title in fault:
        return fault
    for path in (fold.folder / entry.resolve().name, fold.folder):
        fault = fault.removeprefix(f"{path}: ").replace(f"{path}{os.sep}", "")
    return f"{cli.show(entry.resolve())}: {fold.title}: {fault}"


if __name__ == "__main__":
    cli.run(main)
