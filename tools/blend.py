"""Blend entries of task 1 or 2: average the log-odds of their probabilities, with learned weights.

    python task_1/sample_model_item_response.py --local --probabilities irt.parquet
    python task_1/sample_model_partial_vae.py --local --probabilities vae.parquet
    python -m tools.blend irt.parquet vae.parquet --local
    python -m tools.blend irt.parquet vae.parquet --local --weights 0.7 0.3

Each FILE holds what a script wrote with --probabilities for one and the same template. The weights
are never chosen on the answers that are predicted: each script, whose command its file names, runs
once more on 80 % of the training answers, and the weights minimise the log loss of the other 20 %.
With --weights nothing is run. Writes the submission, its zip and the blend's own probabilities
beside them, which `python task_1/local_evaluation.py` scores as any other's.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import (
    cli,
    fingerprints,
    layout,
    metrics,
    sample_models,
    source_code,
    submission,
)
from common.answers import read_answers
from common.arrays import FloatArray, IntArray
from common.errors import InputError
from common.probabilities import Probabilities, read_probabilities, write_probabilities
from common.splits import hold_out_answers
from common.tasks import TASKS
from tools import script_runs

import numpy as np
from tqdm import tqdm

_HELD_OUT = 0.2
# Probabilities are kept this far from 0, whose logarithm no weight could outweigh.
_SMALLEST = 1e-6
# No weight is so large that sums of weighted logarithms could be.
_LARGEST = 1_000_000


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="probabilities to blend"
    )
    help_text = "one for each file, at least 0"
    parser.add_argument("--weights", nargs="+", type=float, metavar="W", help=help_text)
    parser.add_argument(
        "--local", action="store_true", help="of the local split, as in sample models"
    )
    parser.set_defaults(probabilities=None)
    cli.add_optional_folder(parser, "--input_dir", "data/train_data")
    cli.add_file_name(parser, "--train_data", layout.TRAIN_TASK_1_2)
    cli.add_template_flags(parser, layout.TEMPLATE_TASK_1_2)
    cli.add_optional_folder(parser, "--output_dir", "as a sample model's")
    parser.add_argument("--output_file", metavar="FILE", help="default as a sample model's")
    return parser


def main() -> None:
    """Read the command line, learn the weights, blend, write."""
    options = build_parser().parse_args()

    files = [read_probabilities(path) for path in options.files]
    task = files[0].task
    if len(files) == 1:
        raise InputError(f"{files[0].path}: is only one file, expected two or more to blend")
    for file in files:
        if file.task != task:
            raise InputError(
                f"{file.path}: is of task {file.task}, and {files[0].path} of task {task}"
            )
    paths = sample_models.paths(options, task)
    beside = paths.output.with_suffix(".parquet")
    cli.require_outputs([paths.output, beside], options.files)
    template = submission.read_template(paths.template)
    for file in files:
        if len(file.pairs) != len(template):
            raise InputError(
                f"{file.path}: holds {len(file.pairs):,} pairs, expected the "
                f"{len(template):,} of {paths.template}, the template of this blend"
            )
    logs = np.stack([logarithms(file.at(template, paths.template)) for file in files])
    if options.weights is None:
        commands = [repeatable(file, paths.train) for file in files]
        truth, held = run_again(commands, paths.train, task)
        weights = learn_weights(held, truth)
        print(describe(options.files, weights, held, truth))
    else:
        weights = check_weights(options.weights, len(files))
    blended = np.exp(log_blend(logs, weights))
    value = blended.argmax(axis=1) + TASKS[task].column.low
    submission.write_predictions(template, task, value, paths.output)
    # Of two values, the file holds the probability of the second.
    is_binary = len(TASKS[task].values) == 2
    write_probabilities(template, task, blended[:, 1] if is_binary else blended, beside)
    print(
        f"written: {cli.show(paths.output)}, the zip and the probabilities beside it "
        f"({len(value):,} rows)"
    )


def check_weights(weights: Sequence[float], n_files: int) -> FloatArray:
    """Return weights from the command line: one for each file, at least 0, and one of them more."""
    found = np.array(weights, np.float64)
    if len(found) != n_files:
        raise InputError(f"--weights: {len(found)} weights for {n_files} files, expected as many")
    if not ((found >= 0) & (found <= _LARGEST)).all() or not found.any():
        shown = " ".join(f"{weight:g}" for weight in weights)
        raise InputError(
            f"--weights {shown}: expected numbers from 0 to {_LARGEST:,}, not all of them 0"
        )
    return found


def repeatable(file: Probabilities, train: Path) -> tuple[Path, list[str]]:
    """Return the script that made a file, and its flags but for those that say where files lie."""
    or_else = " (or --weights, which run nothing)"
    by, task = file.origin, file.task
    if by is None:
        raise InputError(
            f"{file.path}: does not say which command made it, expected one of task {task}{or_else}"
        )
    script, flags = script_runs.repeatable(by, TASKS[task], file.path, or_else)
    # Other training answers might hold what the blend predicts.
    if fingerprints.fingerprint(train) not in by.made_from.values():
        learned = [cli.show(file.path.parent / name) for name in by.made_from]
        raise InputError(
            f"{file.path}: was learned from {(learned or ['unknown answers'])[0]}, and the blend's "
            f"weights from {cli.show(train)}, expected the same training answers (--local, "
            "--input_dir)"
        )
    if by.code != source_code.fingerprint(script):
        print(
            f"note: the code of {cli.show(script)} has changed since it made {cli.show(file.path)}"
        )
    return script, flags


def run_again(
    commands: Sequence[tuple[Path, list[str]]], train: Path, task: int
) -> tuple[IntArray, FloatArray]:
    """Run every command on 80 % of the training answers; return the truth of the others, from 0,
    (answers,), and log probabilities, (commands, answers, categories).
    """
    table = read_answers(train, options=True if TASKS[task].needs_options else None, ids=True)
    held_out = hold_out_answers(len(table), _HELD_OUT, 0)
    if held_out.all() or not held_out.any():
        raise InputError(f"{train}: holds too few answers to hold some out, expected more")
    column = TASKS[task].column
    truth = table.loc[held_out, column.name].to_numpy(np.int64) - column.low
    logs = []
    for script, flags in tqdm(commands, "Scripts", unit="script", disable=None):
        with tempfile.TemporaryDirectory(prefix="blend_") as temporary:
            folder, title = Path(temporary), "80 % of the training answers"
            fold = script_runs.Fold(title, table, held_out, script_runs.metadata_of(train), folder)
            path = folder / "probabilities.parquet"
            flags = [*flags, "--probabilities", str(path)]
            template = script_runs.run_on_fold(script, flags, fold)
            found = read_probabilities(path, task)
            logs.append(logarithms(found.at(submission.read_template(template), template)))
    return truth, np.stack(logs)


def logarithms(probability: FloatArray) -> FloatArray:
    """Return logarithms of probabilities, none of which counts as 0."""
    return np.asarray(np.log(np.maximum(probability, _SMALLEST)), np.float32)


def log_blend(logs: FloatArray, weights: FloatArray) -> FloatArray:
    """Pool log probabilities, (files, rows, categories), by weights (Genest and Zidek 1986)."""
    total = np.tensordot(weights, logs, axes=1)
    total -= total.max(axis=1, keepdims=True)
    return np.asarray(total - np.log(np.exp(total).sum(axis=1, keepdims=True)))


def learn_weights(logs: FloatArray, truth: IntArray) -> FloatArray:
    """Minimise the log loss, which is convex, over weights of at least 0, one for each file."""
    from scipy.optimize import minimize

    rows = np.arange(len(truth))
    happened = logs[:, rows, truth]

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        blended = log_blend(logs, weights)
        p = np.exp(blended)
        gradient = [
            float((p * own).sum() - known.sum()) for own, known in zip(logs, happened, strict=True)
        ]
        return float(-blended[rows, truth].mean()), np.array(gradient) / len(truth)

    start = np.full(len(logs), 1 / len(logs))
    found = minimize(loss, start, jac=True, bounds=[(0, None)] * len(logs), method="L-BFGS-B")
    return np.asarray(found.x, np.float64)


def describe(paths: Sequence[Path], weights: FloatArray, logs: FloatArray, truth: IntArray) -> str:
    """Return a table of figures held out; the blend's are by weights learned from other answers."""
    half = np.random.default_rng(0).permutation(len(truth)) % 2
    blended = np.empty(logs.shape[1:])
    for k in (0, 1):
        others = learn_weights(logs[:, half != k], truth[half != k])
        blended[half == k] = np.exp(log_blend(logs[:, half == k], others))
    names = [*map(cli.show, paths), "the blend"]
    width = max(map(len, names))
    lines = [
        f"{len(truth):,} training answers held out:",
        f"{'':{width}}  weight  log loss  accuracy",
    ]
    shown = [*(f"{weight:6.3f}" for weight in weights), ""]
    for name, weight, p in zip(names, shown, [*np.exp(logs), blended], strict=True):
        loss = -np.log(p[np.arange(len(truth)), truth], dtype=np.float64).mean()
        accuracy = metrics.accuracy(truth, p.argmax(axis=1)).value
        lines.append(f"{name:{width}}  {weight:6}  {loss:8.4f}  {accuracy:8.4f}")
    return "\n".join(lines)


if __name__ == "__main__":
    cli.run(main)
