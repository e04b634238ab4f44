"""Blend entries of task 1 or 2: average the log-odds of their probabilities, with learned weights.

    python task_1/sample_model_item_response.py --local --probabilities irt.parquet
    python task_1/sample_model_partial_vae.py --local --probabilities vae.parquet
    python -m tools.blend irt.parquet vae.parquet --local
    python -m tools.blend irt.parquet vae.parquet --local --weights 0.7 0.3

Each FILE holds what a script wrote with --probabilities, all for the same template. The weights are
learned from training answers only: the command that made each file, which the file names, runs once
more on 80 % of the training answers, and the weights minimise the log loss on the other 20 %. With
--weights no command runs.

Writes the submission, its zip, and beside them the probabilities of the blend. `python
task_1/local_evaluation.py` scores them like those of any other entry.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common import (
    answer_options,
    cli,
    fingerprints,
    layout,
    metrics,
    provenance,
    sample_models,
    source_code,
    submission,
)
from common.answers import read_for_task
from common.arrays import FloatArray, IntArray
from common.errors import InputError
from common.evaluation import entry_origin
from common.probabilities import Probabilities, read_probabilities, write_probabilities
from common.splits import hold_out_answers
from common.tasks import TASKS
from tools import script_runs

import numpy as np
from tqdm import tqdm

# Share of the training answers on which the weights are learned.
_HELD_OUT = 0.2
# A smaller probability is raised to this one. The logarithm of 0, minus infinity, would outweigh
# the probabilities of all other files.
_SMALLEST_PROBABILITY = 1e-6
# Larger weights are refused: with a weight such as 1e308, a weighted logarithm could be infinite.
_LARGEST_WEIGHT = 1_000_000
# The name of the temporary file into which a script writes its probabilities.
_PROBABILITIES = "probabilities.parquet"

# A script, and its flags except those for paths.
Command = tuple[Path, list[str]]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="probabilities to blend"
    )
    help_text = "one for each file, at least 0"
    parser.add_argument("--weights", nargs="+", type=float, metavar="W", help=help_text)
    parser.add_argument(
        "--local",
        action="store_true",
        help="blend predictions of the local split, and write beside its files",
    )
    # `sample_models.paths` reads these options, whose flags this script does not have.
    parser.set_defaults(probabilities=None, metadata_dir=None)
    cli.add_optional_folder(parser, "--input_dir", "data/train_data")
    cli.add_file_name(parser, "--train_data", layout.TRAIN_TASK_1_2)
    cli.add_template_flags(parser, layout.TEMPLATE_TASK_1_2)
    cli.add_optional_folder(parser, "--output_dir", "the output folder of sample models")
    parser.add_argument(
        "--output_file", metavar="FILE", help="default: the name of sample models' files"
    )
    return parser


def main() -> None:
    """Read the command line, learn the weights, blend, write."""
    options = build_parser().parse_args()

    files = read_files(options.files)
    task = files[0].task
    paths = sample_models.paths(options, task)
    probabilities_path = paths.output.with_suffix(".parquet")
    cli.require_outputs([paths.output, probabilities_path], options.files)
    template = submission.read_template(paths.template)
    require_lengths(files, len(template), paths.template)
    # The probabilities are blended as logarithms. `at` returns the probabilities of a file in the
    # order of the template.
    logs = np.stack([logarithms(file.at(template, paths.template)) for file in files])
    if options.weights is None:
        weights = find_weights(files, paths, task)
    else:
        weights = check_weights(options.weights, len(files))
    blended = np.exp(log_blend(logs, weights))
    if TASKS[task].needs_options:
        blended = answer_options.for_template(blended, template)
    # The columns of `blended` are categories, counted from 0: wrong and right (task 1), or the
    # options (task 2). The submission counts the categories from `low`, which is 0 in task 1 and 1
    # in task 2.
    most_probable = blended.argmax(axis=1)
    predicted = most_probable + TASKS[task].column.low
    submission.write_predictions(template, task, predicted, paths.output)
    # A file of probabilities for task 1 holds only the probability that an answer is right. A file
    # for task 2 holds the probabilities of all options.
    probabilities = blended if TASKS[task].needs_options else blended[:, 1]
    write_probabilities(template, task, probabilities, probabilities_path)
    print(
        f"written: {cli.show(paths.output)}, the zip and the probabilities beside it "
        f"({len(predicted):,} rows)"
    )


def read_files(paths: Sequence[Path]) -> list[Probabilities]:
    """Read the files to blend.

    `note_part` notes how each file was made, so that the record of the blend names the sources of
    all files and the reasons to doubt them. Raises `InputError` unless there are two or more files
    of one task, or if a source of a file has changed since.
    """
    files = [read_probabilities(path) for path in paths]
    require_one_task(files)
    for file in files:
        folder = file.path.parent
        if file.record is not None:
            entry_origin.require_same_sources(file.path, file.record, folder)
        provenance.note_part(file.record, folder)
    return files


def find_weights(
    files: Sequence[Probabilities], paths: sample_models.Paths, task: int
) -> FloatArray:
    """Learn the weight of each file of probabilities, and print a table of the weights.

    The commands that made the files are run again, but now a part of the training answers is held
    out. The weights are those with which the blend predicts this part best.
    """
    commands = [command_to_repeat(file, paths.train) for file in files]
    held_out = predict_held_out(commands, paths, task)
    weights = learn_weights(held_out.logs, held_out.truth)
    names = [cli.show(file.path) for file in files]
    print(describe_weights(names, weights, held_out.logs, held_out.truth))
    return weights


def require_one_task(files: Sequence[Probabilities]) -> None:
    """Raise `InputError` unless there are two or more files, all of one task."""
    first = files[0]
    if len(files) == 1:
        raise InputError(f"{first.path}: is only one file, expected two or more to blend")
    for file in files:
        if file.task != first.task:
            raise InputError(
                f"{file.path}: is of task {file.task}, and {first.path} of task {first.task}"
            )
        n_categories = file.value.shape[1]
        if n_categories != first.value.shape[1]:
            raise InputError(
                f"{file.path}: holds probabilities of {n_categories} options, and {first.path} of "
                f"{first.value.shape[1]}, expected files for the same answers"
            )


def require_lengths(files: Sequence[Probabilities], n_rows: int, template: Path) -> None:
    """Raise `InputError` unless each file predicts as many pairs as the template lists."""
    for file in files:
        if len(file.pairs) != n_rows:
            raise InputError(
                f"{file.path}: holds {len(file.pairs):,} pairs, expected the "
                f"{n_rows:,} of {template}, the template of this blend"
            )


def check_weights(weights: Sequence[float], n_files: int) -> FloatArray:
    """Return the weights of the command line as an array.

    Raises `InputError` unless there is a weight for each file, all lie between 0 and a million, and
    not all are 0.
    """
    checked = np.array(weights, np.float64)
    if len(checked) != n_files:
        raise InputError(f"--weights: {len(checked)} weights for {n_files} files, expected as many")
    is_valid = (checked >= 0) & (checked <= _LARGEST_WEIGHT)
    if not is_valid.all() or not checked.any():
        shown = " ".join(f"{weight:g}" for weight in weights)
        raise InputError(
            f"--weights {shown}: expected numbers from 0 to {_LARGEST_WEIGHT:,}, not all of them 0"
        )
    return checked


def command_to_repeat(file: Probabilities, train: Path) -> Command:
    """Return the script that made a file of probabilities, and its flags except those for paths.

    The command will be run again to find the weight of the file. `train` is the file of the
    training answers of this blend. Raises `InputError` if the command is unknown or cannot be
    repeated, or if the script has learned from other training answers.
    """
    # The error messages end with this advice.
    other_way = " (or give --weights: then no command runs)"
    record = file.record
    if record is None:
        raise InputError(
            f"{file.path}: does not say which command made it, expected one of task "
            f"{file.task}{other_way}"
        )
    # This call also checks that the recorded command is safe to run: a record may have been edited.
    script, flags = script_runs.command_to_repeat(
        record, TASKS[file.task], file.path, or_else=other_way
    )
    # Refuse probabilities of a model that has learned from other training answers, since these
    # might include answers that the blend predicts. `made_from` maps the path of each file that the
    # model has read to its fingerprint. The path is relative to the folder of `file`.
    if fingerprints.fingerprint(train) not in record.made_from.values():
        learned_from = "unknown answers"
        if record.made_from:
            first_source = next(iter(record.made_from))
            learned_from = cli.show(file.path.parent / first_source)
        raise InputError(
            f"{file.path}: was learned from {learned_from}, and the blend's "
            f"weights from {cli.show(train)}, expected the same training answers (--local, "
            "--input_dir)"
        )
    if record.code != source_code.fingerprint(script):
        print(
            f"note: the code of {cli.show(script)} has changed since it made {cli.show(file.path)}"
        )
    return script, flags


@dataclass(frozen=True)
class HeldOut:
    """Training answers that were held out, and the predictions of each model for them."""

    # The category that is true of each answer, counted from 0: wrong or right (task 1), or the
    # chosen option (task 2); int64 (n_answers,).
    truth: IntArray
    # Logarithms of the predicted probabilities, float32 (n_commands, n_answers, n_categories). Each
    # command runs one model.
    logs: FloatArray


def predict_held_out(commands: Sequence[Command], paths: sample_models.Paths, task: int) -> HeldOut:
    """Let every command learn from 80 % of the training answers and predict the other 20 %.

    Raises `InputError` if there are too few answers.
    """
    train = paths.train
    answers = read_for_task(train, TASKS[task])
    is_held_out = hold_out_answers(len(answers), _HELD_OUT, seed=0)
    if is_held_out.all() or not is_held_out.any():
        raise InputError(f"{train}: holds too few answers to hold some out, expected more")
    # `truth` counts the categories from 0. The file of answers counts them from `column.low`.
    column = TASKS[task].column
    truth = answers.loc[is_held_out, column.name].to_numpy(np.int64) - column.low
    logs = []
    for script, flags in tqdm(commands, "Finding weights", unit="script", disable=None):
        with tempfile.TemporaryDirectory(prefix="blend_") as temporary:
            fold = script_runs.Fold(
                title="80 % of the training answers",
                answers=answers,
                is_held_out=is_held_out,
                metadata_dir=script_runs.existing_metadata(paths.metadata),
                folder=Path(temporary),
            )
            path = fold.folder / _PROBABILITIES
            template = script_runs.run_on_fold(script, [*flags, "--probabilities", str(path)], fold)
            probabilities = read_probabilities(path, task)
            # The template lists the held-out pairs in the order of `truth`. Bring the probabilities
            # into this order.
            pairs = submission.read_template(template)
            logs.append(logarithms(probabilities.at(pairs, template)))
    return HeldOut(truth, np.stack(logs))


def predict_template(
    commands: Sequence[Command], paths: sample_models.Paths, task: int
) -> FloatArray:
    """Let every command learn from all training answers and predict the template.

    A command is a script with its flags. The predictions of the scripts become parts of the blend.
    `note_part` notes which files each script has learned from and which code it has run, for the
    record of the blend.

    Returns
    -------
    array of float32, shape (n_commands, n_pairs, n_categories)
        The logarithms of the probabilities.
    """
    metadata_dir = script_runs.existing_metadata(paths.metadata)
    logs = []
    for script, flags in tqdm(commands, "Predicting", unit="script", disable=None):
        with tempfile.TemporaryDirectory(prefix="blend_") as temporary:
            path = Path(temporary) / _PROBABILITIES
            path_flags = script_runs.flags_for_paths(paths.train, paths.template, path.parent)
            path_flags += ["--probabilities", path]
            path_flags += script_runs.metadata_flags(script, metadata_dir)
            script_runs.run_script([script, *path_flags, *flags], "all training answers")
            # The file has the rows of the template, in the same order.
            predicted = read_probabilities(path, task)
            provenance.note_part(predicted.record, path.parent)
        logs.append(logarithms(predicted.value))
    return np.stack(logs)


def logarithms(probability: FloatArray) -> FloatArray:
    """Return the logarithms of probabilities as float32; probabilities below 1e-6 count as 1e-6."""
    bounded = np.maximum(probability, _SMALLEST_PROBABILITY)
    return np.asarray(np.log(bounded), np.float32)


def log_blend(logs: FloatArray, weights: FloatArray) -> FloatArray:
    """Blend probabilities by a weighted geometric mean.

    Parameters
    ----------
    logs
        Logarithms of the probabilities, shape (n_files, n_rows, n_categories).
    weights
        A weight for each file, at least 0.

    Returns
    -------
    array, shape (n_rows, n_categories)
        Logarithms of the blended probabilities. The probabilities of each row sum to 1.

    Notes
    -----
    This is the logarithmic opinion pool of Genest and Zidek (1986, "Combining probability
    distributions", Statistical Science 1).
    """
    # The weighted sum of the files' logarithms.
    total = np.tensordot(weights, logs, axes=1)
    # Subtract the maximum of each row, so that no exponential overflows.
    total -= total.max(axis=1, keepdims=True)
    log_of_sum = np.log(np.exp(total).sum(axis=1, keepdims=True))
    return np.asarray(total - log_of_sum)


def learn_weights(logs: FloatArray, truth: IntArray) -> FloatArray:
    """Return the weights, at least 0, that minimise the log loss of the blend.

    Parameters
    ----------
    logs
        Logarithms of the probabilities, shape (n_files, n_answers, n_categories).
    truth
        Index of the right category of each answer, shape (n_answers,).

    Returns
    -------
    array of float64, shape (n_files,)
        The weights. They are a global minimum, because the loss is convex in them.
    """
    from scipy.optimize import minimize

    rows = np.arange(len(truth))
    # The logarithm of the probability that each file gives to the right category, shape (n_files,
    # n_answers).
    logs_of_truth = logs[:, rows, truth]

    def loss_and_gradient(weights: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean log loss of the blend, and its derivative by each weight.

        For one answer, the blend gives category c the log-probability

            log p[c] = Σ_f w[f] · logs[f, c] - log Σ_c' exp(Σ_f w[f] · logs[f, c']),

        where f are the files and w their weights. The second term makes the probabilities sum to 1.
        The loss of the answer is -log p[right category]. Its derivative by w[f] is

            Σ_c p[c] · logs[f, c] - logs[f, right category].
        """
        log_blended = log_blend(logs, weights)
        p = np.exp(log_blended)
        # The derivative of the sum of all answers' losses by the weight of each file.
        derivatives = []
        for file_logs, file_logs_of_truth in zip(logs, logs_of_truth, strict=True):
            derivatives.append(float((p * file_logs).sum() - file_logs_of_truth.sum()))
        mean_loss = -log_blended[rows, truth].mean()
        return float(mean_loss), np.array(derivatives) / len(truth)

    n_files = len(logs)
    equal_weights = np.full(n_files, 1 / n_files)
    bounds = [(0, None)] * n_files
    result = minimize(loss_and_gradient, equal_weights, jac=True, bounds=bounds, method="L-BFGS-B")
    return np.asarray(result.x, np.float64)


def describe_weights(
    names: Sequence[str], weights: FloatArray, logs: FloatArray, truth: IntArray
) -> str:
    """Return, as a text table, the weight of each file and its scores on the held-out answers.

    The scores are the log loss and the accuracy.

    `names` are the names of the files. `logs` are the logarithms of the probabilities, shape
    (n_files, n_answers, n_categories). `truth` is the index of the right category of each answer.

    The last row is the blend. To score it fairly, the held-out answers are divided into two halves.
    The predictions for each half are blended with weights learned from the other half. So no answer
    is scored with weights that were learned from it.
    """
    # Assign every answer to one of two halves, 0 or 1, at random: half of the numbers of a
    # permutation are even.
    half = np.random.default_rng(0).permutation(len(truth)) % 2
    # The probabilities of the blend, shape (n_answers, n_categories).
    blended = np.empty(logs.shape[1:])
    for this_half in (0, 1):
        is_blended = half == this_half
        is_learned_from = ~is_blended
        half_weights = learn_weights(logs[:, is_learned_from], truth[is_learned_from])
        blended[is_blended] = np.exp(log_blend(logs[:, is_blended], half_weights))
    # The table has a row for each file, then a row for the blend, whose weight stays empty.
    row_names = [*names, "the blend"]
    shown_weights = [*(f"{weight:6.3f}" for weight in weights), ""]
    probabilities = [*np.exp(logs), blended]
    width = max(len(name) for name in row_names)
    lines = [
        f"{len(truth):,} training answers held out:",
        f"{'':{width}}  weight  log loss  accuracy",
    ]
    for name, weight, probability in zip(row_names, shown_weights, probabilities, strict=True):
        log_of_truth = np.log(probability[np.arange(len(truth)), truth], dtype=np.float64)
        loss = -log_of_truth.mean()
        accuracy = metrics.accuracy(truth, probability.argmax(axis=1)).value
        lines.append(f"{name:{width}}  {weight:6}  {loss:8.4f}  {accuracy:8.4f}")
    return "\n".join(lines)


if __name__ == "__main__":
    cli.run(main)
