"""Cross-validate an entry: run its own script on every split of the training answers.

    python -m tools.cross_validate task_1/my_idea.py
    python -m tools.cross_validate task_2/my_idea.py --folds 10 --repeats 2 -- --dimensions 12
    python -m tools.cross_validate task_4/my_questions

The answers (task 4: the students) are assigned to folds at random. For each fold, the script learns
from the other folds and predicts this one, as it would predict the test. Flags after -- are passed
to the script; they must not name files that it reads or writes.

The mean and the standard deviation of the scores become one line of the record and of the
scoreboard, which compares only entries on the same folds. `python -m tools.compare` says whether
the difference between two entries is more than chance. Nothing else is written: in task 4, a copy
of the package is trained, not the package.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
from common.adaptive.weights import TRAINER, WEIGHTS, copy_package
from common.adaptive.weights_origin import find_weights_origin, judge_weights
from common.answers import read_for_task
from common.arrays import BoolArray
from common.errors import InputError, quote, without_folder
from common.evaluation import entry_origin, outcomes, pairs, record
from common.evaluation.doubt import Doubt, keep_first_of_each_mark
from common.evaluation.entry_origin import UNKNOWN_SOURCES, require_unseen
from common.metrics import Score
from common.provenance import Provenance
from common.sandbox import Limits
from common.splits import assign_folds, hold_out_answers
from common.stray_files import is_stray
from common.tasks import CROSS_VALIDATION, Form, Task
from tools import script_runs
from tools.script_runs import Fold
from tools.which_task import task_of

import numpy as np
import pandas as pd
from tqdm import tqdm

# In task 4, this share of an examined student's answers are targets, which the entry has to
# predict. The local split has the same share.
_TARGET_SHARE = 0.2
# Flags that must not be passed to the entry: the flags for files and folders, and --local. With
# them, the entry would read other answers than the fold's answers, or leave files behind.
_FORBIDDEN_FLAGS = [f"--{name}" for name in (*provenance.PLACES, "local")]


@dataclass(frozen=True)
class EntryCode:
    """The code of an entry: where the user has it, and where the folds run it."""

    # The entry's script as the user has named it. For a package of task 4, its train_model.py.
    script: Path
    # The script that every fold runs. In `kit_copy`, it stays the same if the user edits `script`.
    # If there is no copy, it is `script` itself.
    frozen_script: Path
    # A temporary copy of the kit, with `frozen_script` in it. None for an entry outside of the kit,
    # because such an entry is not copied.
    kit_copy: Path | None


@dataclass(frozen=True)
class FoldRun:
    """The predictions of an entry for one fold."""

    # "fold 1" or "repeat 1, fold 1".
    title: str
    # A row for every answer predicted: every answer that the fold holds out or, in task 4, the
    # targets among them. Among the columns are UserId, QuestionId, truth and predicted.
    predicted: pd.DataFrame
    # How the predictions were made.
    training: Provenance
    # Reasons to doubt the score.
    doubts: Sequence[Doubt] = ()

    @property
    def accuracy(self) -> float:
        """The score of the fold: the share of right predictions."""
        truth = self.predicted["truth"].to_numpy()
        return metrics.accuracy(truth, self.predicted["predicted"].to_numpy()).value


def main() -> None:
    """Read the command line, run every fold, print and record the scores."""
    options, flags = _parse(sys.argv[1:])
    entry: Path = options.entry
    task = task_of(entry)
    is_package = task.form is Form.ENTRY
    script = entry.resolve()
    if is_package:
        reading.require_file(entry / TRAINER)
        script /= TRAINER
    # If the rules or the limits of the game are not the default ones, the user has given flags of
    # task 4.
    elif read_rules(options) != Rules() or read_limits(options) != Limits():
        raise InputError(f"{entry}: is of task {task.number}, expected no flags of task 4")
    path = record.results_path(options.output_dir)
    cli.require_outputs([path])
    train = options.input_dir / (options.train_data or task.data.train)
    provenance.require_current([train])
    # If the script is in the kit, all folds run the same copy of the code, even if the user edits
    # the script in the meantime. Otherwise `doubt_changes` looks for changes.
    with frozen_copy(script) as code:
        fingerprint_before = source_code.fingerprint(script)
        runs = run_folds(options, task, train, code, flags)
        # Doubts are reasons not to trust the score.
        doubts: list[Doubt] = []
        for run in runs:
            doubts += run.doubts
        doubts += doubt_changes(code, fingerprint_before, runs)

    folds_text = describe_folds(options)
    scored = evaluate(options, task, train, script, flags, runs, folds_text)
    # Several folds may give the same reason to doubt the score: keep it once.
    scored = replace(scored, doubts=keep_first_of_each_mark(doubts))
    record.append_result(options.output_dir, scored)
    deviation = statistics.stdev(run.accuracy for run in runs)
    print(
        f"score {scored.score.value:.4f} ± {deviation:.4f} (mean, and standard deviation over the "
        f"folds; {folds_text})"
    )
    for doubt in scored.doubts:
        print(f"note: {doubt.sentence}")
    print(f"recorded in {cli.show(path)}")


@contextmanager
def frozen_copy(script: Path) -> Iterator[EntryCode]:
    """Make a temporary copy of a script of the kit, with the code that it imports.

    Every fold runs the copy, so that an edit of the script in the meantime changes nothing. The
    copy has the kit's metadata: a script may read them, because they hold no outcomes. The copy has
    no answers, so a script that ignores its flags and looks for answers in the kit's folders finds
    none. A script outside of the kit is not copied.
    """
    if not script.is_relative_to(layout.ROOT):
        yield EntryCode(script, frozen_script=script, kit_copy=None)
        return
    with tempfile.TemporaryDirectory(prefix="frozen_") as temporary:
        copy = Path(temporary).resolve() / layout.ROOT.name
        files = set(source_code.files_of(script))
        # The script may also need files that it does not import: files of any kind in its folder
        # and, if it blends submissions, other scripts there and programs in tools/. So copy whole
        # folders, except for stray files and trained weights.
        for folder in (script.parent, layout.ROOT / "common", layout.ROOT / "tools"):
            files |= {path for path in folder.rglob("*") if belongs_in_copy(path, folder)}
        for file in files:
            target = copy / file.relative_to(layout.ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        if layout.METADATA_DIR.is_dir():
            metadata_dir = copy / layout.METADATA_DIR.relative_to(layout.ROOT)
            metadata_dir.parent.mkdir(parents=True, exist_ok=True)
            link_folder(link=metadata_dir, folder=layout.METADATA_DIR)
        script_in_copy = copy / script.relative_to(layout.ROOT)
        yield EntryCode(script, frozen_script=script_in_copy, kit_copy=copy)


def link_folder(link: Path, folder: Path) -> None:
    """Make a symlink to a folder, or a copy of the folder where symlinks are not possible."""
    try:
        link.symlink_to(folder, target_is_directory=True)
    except OSError:
        # Windows may not allow symlinks.
        shutil.copytree(folder, link)


def belongs_in_copy(path: Path, folder: Path) -> bool:
    """Return whether a file in a folder belongs in the temporary copy of the entry's code.

    All folds of a cross-validation run this copy. Stray files, such as an editor's temporary files,
    are left out. Trained weights are left out too, because the model is trained anew for each fold.
    """
    parts = path.relative_to(folder).parts
    is_left_out = any(part.startswith(WEIGHTS) or is_stray(part) for part in parts)
    return path.is_file() and not is_left_out


def describe_folds(options: argparse.Namespace) -> str:
    """Say in words how the answers were split, and which folder of metadata the user has named."""
    repeats = f"{options.repeats} repeats, " if options.repeats > 1 else ""
    text = f"{options.folds} folds, {repeats}seed {options.seed}"
    if options.metadata_dir:
        text += f", metadata of {cli.show(options.metadata_dir)}"
    return text


def evaluate(
    options: argparse.Namespace,
    task: Task,
    train: Path,
    script: Path,
    flags: Sequence[str],
    runs: Sequence[FoldRun],
    folds_text: str,
) -> record.Evaluation:
    """Combine the runs of an entry on all folds into one evaluation, for the record of scores.

    `folds_text` says in words how the folds were made.
    """
    accuracy_by_fold = {run.title: run.accuracy for run in runs}
    # A row for every prediction. The column `part` holds the number of its fold, from 0 (with
    # repeats, the folds of all repeats are numbered on).
    predictions = [run.predicted.assign(part=index) for index, run in enumerate(runs)]
    targets = pd.concat(predictions)
    memories = [run.training.memory for run in runs if run.training.memory is not None]
    # In task 4, also record the rules of the game, which the user may have changed by flags.
    rules = folds_text
    if task.form is Form.ENTRY:
        rules = f"{read_rules(options)}, {folds_text}"
    return record.Evaluation(
        task=task.number,
        metric="Accuracy: mean over the folds",
        score=Score(statistics.fmean(accuracy_by_fold.values()), n=len(targets)),
        submission=options.entry,
        reference=train,
        phase=CROSS_VALIDATION,
        rules=rules,
        parts=accuracy_by_fold,
        training=Provenance(
            script=cli.show(script),
            options=provenance.options_of(flags),
            seconds=statistics.fmean(run.training.seconds for run in runs),
            memory=max(memories, default=None),
            code=runs[0].training.code,
        ),
        outcomes=outcomes.of_predictions(targets),
    )


def doubt_changes(code: EntryCode, fingerprint_before: str, runs: Sequence[FoldRun]) -> list[Doubt]:
    """Return a reason to doubt the score if the code of an entry changed while the folds ran.

    `code` says where the code lies. An entry in the kit was copied first, and the folds ran the
    copy, which does not change. For any other entry, `fingerprint_before` is the fingerprint of its
    script before the first fold, and `run.training.code` is the fingerprint of the code that a fold
    ran.
    """
    if code.kit_copy is not None:
        return []
    has_script_changed = source_code.fingerprint(code.script) != fingerprint_before
    # A package of task 4 has other files besides its script. If one of these files was changed
    # between two folds, the folds ran different code.
    codes_of_folds = {run.training.code for run in runs}
    if has_script_changed or len(codes_of_folds) > 1:
        return [entry_origin.code_changed_doubt(provenance.show_path(code.script))]
    return []


def run_folds(
    options: argparse.Namespace, task: Task, train: Path, code: EntryCode, flags: Sequence[str]
) -> list[FoldRun]:
    """Run an entry on every fold; print each score."""
    answers = read_for_task(train, task)
    metadata_dir = script_runs.existing_metadata(
        sample_models.metadata_folder(train.parent, options.metadata_dir)
    )
    runs = []
    n_runs = options.repeats * options.folds
    with tqdm(total=n_runs, desc="Folds", unit="fold", disable=None) as progress:
        for split in make_splits(answers, task, options):
            with tempfile.TemporaryDirectory(prefix="cross_validate_") as temporary:
                # A `Fold` is a `Split` with metadata and with a folder for its files, which exists
                # only while the entry runs.
                fold = Fold(
                    title=split.title,
                    answers=split.answers,
                    is_held_out=split.is_held_out,
                    metadata_dir=metadata_dir,
                    folder=Path(temporary),
                )
                run = run_fold(options, task, train, code, flags, fold)
            runs.append(run)
            progress.write(f"{run.title}: {run.accuracy:.4f}", file=sys.stdout)
            progress.update()
    return runs


def run_fold(
    options: argparse.Namespace,
    task: Task,
    train: Path,
    code: EntryCode,
    flags: Sequence[str],
    fold: Fold,
) -> FoldRun:
    """Run an entry on one fold.

    The entry is a package of task 4, which plays a game, or a script of task 1 or 2, which predicts
    answers. Raises `InputError`, with a message that names the entry and the fold, if the entry
    fails or has read the answers of all folds in the file `train`.
    """
    try:
        if task.form is Form.ENTRY:
            run = play_fold(code, flags, fold, read_rules(options), read_limits(options))
        else:
            run = predict_fold(code, flags, fold, task)
        require_unseen(options.entry, run.training, [train])
    except InputError as fault:
        message = name_fold(str(fault), options.entry, fold)
        # The text may name a file in the temporary copy of the kit. Name the user's file instead.
        raise InputError(script_runs.name_in_kit(message, code.kit_copy)) from None
    return run


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument("entry", type=Path, metavar="ENTRY", help="a script, or a folder of task 4")
    cli.add_number(parser, "--folds", 5)
    cli.add_number(parser, "--repeats", 1, "assign the answers to folds anew N times")
    cli.add_number(parser, "--seed", 0, "seed of the random folds")
    cli.add_folder(parser, "--input_dir", layout.TRAIN_DIR)
    parser.add_argument("--train_data", metavar="FILE", help="default that of the task")
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR)
    add_game_flags(parser)
    sample_models.add_metadata_flag(parser)
    return parser


def _parse(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Split a command line at ``--`` into the options of this script and the flags of the entry.

    Raises `InputError` if the entry's flags name files.
    """
    position = words.index("--") if "--" in words else len(words)
    flags = list(words[position + 1 :])
    for word in flags:
        # A value may follow "=" in the same word: the name of "--seed=3" is "--seed".
        name = word.partition("=")[0]
        # By default, argparse accepts the beginning of a flag in place of the flag: "--input" for
        # "--input_dir". So the beginning of a forbidden flag is forbidden too. But "-" and "--" are
        # no flags.
        is_flag = name not in ("", "-", "--")
        begins_forbidden_flag = any(flag.startswith(name) for flag in _FORBIDDEN_FLAGS)
        if is_flag and begins_forbidden_flag:
            raise InputError(
                f"{quote(word)} after --: says where the entry reads or writes, which this script "
                "chooses for each fold; expected other flags of the entry"
            )
    return build_parser().parse_args(words[:position]), flags


@dataclass(frozen=True)
class Split:
    """All answers, and which of them one fold holds out."""

    # "fold 1" or "repeat 1, fold 1".
    title: str
    # All training answers. In task 4, the column IsTarget marks the answers to predict.
    answers: pd.DataFrame
    # True for an answer that the fold holds out, shape (n_answers,).
    is_held_out: BoolArray


def make_splits(answers: pd.DataFrame, task: Task, options: argparse.Namespace) -> Iterator[Split]:
    """Assign the answers to folds at random; yield each fold.

    In task 4, all answers of a student are in the same fold. A random share of the answers are
    targets, which the entry predicts when it examines the student.
    """
    is_entry = task.form is Form.ENTRY
    # The number of each answer's group. `assign_folds` puts all answers of a group into the same
    # fold. In task 4, the answers of a student are a group. In other tasks, each answer is a group
    # of its own.
    group = np.arange(len(answers))
    if is_entry:
        group = pd.factorize(answers["UserId"], sort=True)[0]
    for repeat in range(options.repeats):
        seeds = [options.seed, repeat]
        fold_of_answer = assign_folds(group, options.folds, seeds)
        if is_entry:
            # The folds are drawn with `seeds`. A further seed, 1, makes the choice of targets
            # independent of the choice of folds.
            is_target = hold_out_answers(len(answers), _TARGET_SHARE, [*seeds, 1])
            answers = answers.assign(**{schema.IS_TARGET: is_target.astype(np.int8)})
        for k in range(options.folds):
            title = f"fold {k + 1}"
            if options.repeats > 1:
                title = f"repeat {repeat + 1}, {title}"
            yield Split(title, answers, is_held_out=fold_of_answer == k)


def predict_fold(code: EntryCode, flags: Sequence[str], fold: Fold, task: Task) -> FoldRun:
    """Let a script of task 1 or 2 learn from all other folds and predict the answers of `fold`."""
    script = code.frozen_script
    # The script writes its submission into the fold's folder. `template` is the path of the list of
    # answers to predict, which lies in the same folder.
    template = script_runs.run_on_fold(script, flags, fold, code.kit_copy)
    submission = fold.folder / task.submission
    if not submission.is_file():
        raise InputError(f"{script}: has not written {submission.name} on {fold.title}")
    reference = fold.folder / "held_out.csv"
    writing.write_files({reference: fold.answers[fold.is_held_out]})
    predicted = pairs.match(task, submission, reference).pairs
    # The record of how the submission was made; None if the user's script has written no record.
    written_record = provenance.read(submission)
    doubts = doubt_record(written_record, code.script, template)
    # `training` says how the predictions were made. If the script has written no record, only the
    # script is known: there are no options, and the seconds are NaN.
    if written_record is None:
        training = Provenance(script=str(script), options={}, seconds=float("nan"))
    else:
        training = written_record
        # Refuse a script that has read a copy of the answers that it has to predict. The file
        # `train`, which the script learns from, holds none of these answers, so it is not searched.
        entry_origin.require_no_shared_rows(
            code.script,
            training,
            fold.folder,
            reference,
            train=fold.folder / script_runs.TRAIN,
        )
    training = replace(training, code=source_code.fingerprint(script))
    return FoldRun(fold.title, predicted, training, doubts)


def doubt_record(record: Provenance | None, script: Path, template: Path) -> list[Doubt]:
    """Return the reasons to doubt the score of a fold that the record of its submission gives.

    A reason concerns the files that the submission was made from, or the run that made it. A change
    of the code while the folds run is not looked for here: see `doubt_changes`.

    Parameters
    ----------
    record
        The record: how the submission was made, and from which files. None if there is none.
    script
        The entry's script as the user knows it. The record names a temporary copy of it.
    template
        The file that lists the answers to predict. A submission that was made only from this file
        has learned from unknown answers.
    """
    if record is None:
        return [UNKNOWN_SOURCES]
    doubts_about_sources = entry_origin.doubt_sources(record, [template.name])
    # The fold has run a temporary copy of the user's script, and the record names this copy. The
    # sentences of doubts take the name from the record, so put the user's script into the record.
    shown_record = replace(record, script=provenance.show_path(script))
    return [*doubts_about_sources, *entry_origin.doubts_of_run(shown_record)]


def play_fold(
    code: EntryCode, flags: Sequence[str], fold: Fold, rules: Rules, limits: Limits
) -> FoldRun:
    """Train a package of task 4 on the students of all other folds, and examine those of `fold`.

    A copy of the package is trained: the weights of the package itself stay as they are.
    """
    package = code.frozen_script.parent
    copy = fold.folder / package.name
    copy_package(package, copy)
    # The trainer reads answers and metadata from these folders, which are laid out like `data/`.
    train_dir = fold.folder / "data" / layout.TRAIN_DIR.name
    metadata_dir = fold.folder / "data" / layout.METADATA_DIR.name
    train = train_dir / script_runs.TRAIN
    students = train_dir / "students.csv"
    train_answers = fold.answers[~fold.is_held_out].drop(columns=schema.IS_TARGET)
    writing.write_files({train: train_answers})
    writing.write_files({students: fold.answers[fold.is_held_out]})
    if fold.metadata_dir is not None:
        link_folder(link=metadata_dir, folder=fold.metadata_dir)
    trainer = code.frozen_script
    command = [copy / trainer.name, "--input_dir", train_dir, "--train_data", train.name, *flags]
    script_runs.run_script(command, fold.title, trainer, code.kit_copy)

    started = time.perf_counter()
    setting = Setting(
        submission=copy,
        reference=students,
        train=train,
        metadata_dir=metadata_dir,
        rules=rules,
        limits=limits,
    )
    weights_origin = find_weights_origin(copy)
    reference = read_students(setting, weights_origin)
    doubts = []
    for doubt in judge_weights(package, weights_origin):
        # The text may name a file in the temporary copy of the kit. Name the user's file instead.
        sentence = script_runs.name_in_kit(doubt.sentence, code.kit_copy)
        doubts.append(replace(doubt, sentence=sentence))
    predicted = list_targets(reference, play_all(setting, reference).games)
    seconds_of_game = time.perf_counter() - started
    # `training` says how the weights were trained. If the trainer, the script that trains them, has
    # written no record, only its path is known. In task 4, the recorded seconds are those of the
    # game, without the training.
    code_played = fingerprint_code(copy, source_code.fingerprint(trainer))
    training = weights_origin.record or Provenance(str(trainer), {}, seconds_of_game)
    training = replace(training, seconds=seconds_of_game, code=code_played)
    return FoldRun(fold.title, predicted, training, doubts)


def name_fold(fault: str, entry: Path, fold: Fold) -> str:
    """Return an error message that names the entry and the fold instead of temporary files."""
    # A message of `run_script` names the fold already.
    if fold.title in fault:
        return fault
    # Leave out the paths of the copied entry and of the folder of the fold, which are temporary.
    for path in (fold.folder / entry.resolve().name, fold.folder):
        fault = without_folder(fault.removeprefix(f"{path}: "), path)
    return f"{cli.show(entry.resolve())}: {fold.title}: {fault}"


if __name__ == "__main__":
    cli.run(main)
