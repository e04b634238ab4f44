"""Score the sample models of tasks 1 and 2 on real answers, as the pages in this folder report.

Run:     KIT_REAL_DATA=… python tests/benchmarks/sample_models_on_real_answers.py
         … --scripts task_1/sample_model_partial_vae.py --splits 3
         … --scripts task_1/my_idea.py --flags "--dimensions 12"
         … --blend item_response partial_vae gradient_boosting
Writes:  a table for each task to the terminal

Every script runs as a user runs it, from CSV to submission and probabilities, with its default
flags. Models that read metadata get those of questions and students; those of answers are not
published. The figures are means ± standard deviations:

Pool:           over the ten fixed splits of `real_answers`, 80 % for training and 20 % for scoring.
Course subset:  over five seeds of the model, trained on the training part and scored on the
                validation part. These answers are right or wrong, without options.

A blend chooses its weights inside each training part.
"""

import itertools
import shlex
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from common import cli, layout, metrics, reading, submission, writing
from common.probabilities import read_probabilities
from common.tasks import TASKS
from tools import script_runs

import numpy as np
import pandas as pd
from real_answers import (
    SEEDS,
    pool_splits,
    read_course_subset,
    read_pool,
    write_course_metadata,
    write_pool_metadata,
)
from running import metadata_flags, run_script, short_name
from tqdm import tqdm

COURSE_SEEDS = range(5)
COLUMNS = ("accuracy", "log loss", "AUC", "calibration error")
TRAIN = "train.csv"
TEMPLATE = "template.csv"
PROBABILITIES = "probabilities.parquet"

# The scores of one run, in the order of `COLUMNS`. A score that the run does not have is NaN.
Figures = list[float]


def main() -> None:
    """Run every script on every split; print the tables."""
    p = cli.parser(__doc__)
    p.add_argument("--scripts", nargs="+", type=Path, metavar="FILE", help="default: all samples")
    p.add_argument("--tasks", nargs="+", type=int, choices=(1, 2), default=(1, 2))
    p.add_argument("--splits", type=int, default=len(SEEDS), help="use only the first N splits")
    p.add_argument("--flags", default="", help="further flags for the scripts, in quotes")
    p.add_argument("--blend", nargs="+", metavar="MODEL", help="blend these samples instead")
    p.add_argument("--skip_course", action="store_true", help="leave the course subset out")
    options = p.parse_args()
    scripts = options.scripts or sorted(layout.ROOT.glob("task_[12]/sample_model_*.py"))
    flags = shlex.split(options.flags)
    pool = read_pool()
    for task in options.tasks:
        print_header(f"task {task}, pool, {options.splits} splits")
        if options.blend:
            samples = [
                layout.ROOT / f"task_{task}/sample_model_{name}.py" for name in options.blend
            ]
            name = " + ".join(options.blend)
            print_pool(name, task, pool, n_splits=options.splits, scripts=samples, flags=flags)
            continue
        task_scripts = [path for path in scripts if path.resolve().parent.name == f"task_{task}"]
        for script in task_scripts:
            name = short_name(script)
            print_pool(name, task, pool, n_splits=options.splits, scripts=[script], flags=flags)
        if task == 1 and not options.skip_course:
            print_header("task 1, course subset")
            course_parts = (read_course_subset("train"), read_course_subset("valid"))
            for script in task_scripts:
                print_course(script, course_parts, flags)


def print_course(
    script: Path, course_parts: tuple[pd.DataFrame, pd.DataFrame], flags: list[str]
) -> None:
    """Print a table row with the mean scores of a model of task 1 on the course subset.

    The course subset is a set of answers of tasks 1 and 2; `course_parts` are its training answers
    and its answers to score. A model whose script has the flag --seed runs with several seeds.
    """
    flags_by_seed = [flags]
    if "--seed" in script_runs.declared_flags(script):
        flags_by_seed = [[*flags, "--seed", f"{seed}"] for seed in COURSE_SEEDS]
    figures = [
        score([script], 1, course_parts, write_course_metadata, flags_of_run)
        for flags_of_run in flags_by_seed
    ]
    print_row(short_name(script), summarise(figures))


def print_pool(
    name: str,
    task: int,
    pool: pd.DataFrame,
    n_splits: int,
    scripts: Sequence[Path],
    flags: list[str],
) -> None:
    """Print the mean scores of a model, or of a blend of several models, as a row of a table.

    A blend averages the models' predictions, with learned weights. The answers of `pool` are split
    at random into training answers and answers to score. The means are taken over the first
    `n_splits` splits. `COLUMNS` names the scores.
    """
    splits = itertools.islice(pool_splits(pool), n_splits)
    figures = [
        score(scripts, task, (train, test), write_pool_metadata, flags)
        for _seed, train, test in tqdm(splits, name, n_splits)
    ]
    print_row(name, summarise(figures))


def score(
    scripts: Sequence[Path],
    task: int,
    parts: tuple[pd.DataFrame, pd.DataFrame],
    write_metadata: Callable[[Path], None],
    flags: list[str],
) -> Figures:
    """Run a sample model on files that are made from answers; return its scores (see `Figures`).

    `parts` are the training answers and the answers to score. If there are several scripts, all of
    them are run, and the weighted average of their predictions is scored.
    """
    train, test = parts
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        write_metadata(folder)
        write_answers(folder, train, test)
        for script in scripts:
            run_model(script, folder, flags)
        # `read_figures` expects a submission and probabilities in `folder`. Copy them from a single
        # model, or make them by a blend.
        if len(scripts) == 1:
            shutil.copy(folder / scripts[0].stem / TASKS[task].submission, folder)
            shutil.copy(folder / scripts[0].stem / PROBABILITIES, folder)
        else:
            blend_models(scripts, task, folder)
        return read_figures(folder, task, test)


def run_model(script: Path, folder: Path, flags: list[str]) -> None:
    """Run a sample model on the files in `folder`; write its results to a subfolder.

    The name of the subfolder is that of the script.
    """
    output = folder / script.stem
    output_flags = ["--output_dir", output, "--probabilities", output / PROBABILITIES]
    metadata = metadata_flags(script, folder)
    run_script([script, *input_flags(folder), *output_flags, *metadata, *flags])


def blend_models(scripts: Sequence[Path], task: int, folder: Path) -> None:
    """Blend the models that `run_model` has run; write submission and probabilities to `folder`."""
    probabilities = [folder / script.stem / PROBABILITIES for script in scripts]
    # tools/blend.py reads the training answers too, to choose the weight of each model.
    blend = [layout.ROOT / "tools/blend.py", *probabilities, *input_flags(folder)]
    run_script([*blend, "--output_dir", folder])
    # tools/blend.py names the file of probabilities after the submission, but `read_figures`
    # expects the name PROBABILITIES.
    written = (folder / TASKS[task].submission).with_suffix(".parquet")
    written.rename(folder / PROBABILITIES)


def input_flags(folder: Path) -> list[object]:
    """Return the flags that name the files of `write_answers`."""
    return [
        *("--input_dir", folder, "--train_data", TRAIN),
        *("--submission_template_dir", folder, "--submission_template_file", TEMPLATE),
    ]


def write_answers(folder: Path, train: pd.DataFrame, test: pd.DataFrame) -> None:
    """Write a file of training answers and a template: the pairs of student and question in `test`.

    The model learns from the training answers and predicts the pairs of the template.
    """
    names = ["QuestionId", "UserId", "IsCorrect"]
    if "AnswerValue" in train:
        names += ["CorrectAnswer", "AnswerValue"]
    writing.write_files({folder / TRAIN: {name: train[name].to_numpy() for name in names}})
    pairs = {name: test[name].to_numpy() for name in ("QuestionId", "UserId")}
    writing.write_files({folder / TEMPLATE: pairs})


def read_figures(folder: Path, task: int, test: pd.DataFrame) -> Figures:
    """Score the submission and the probabilities in a folder against the answers `test`.

    Returns accuracy, log loss, AUC and calibration error, in the order of `COLUMNS`.
    """
    outcome = "IsCorrect" if task == 1 else "AnswerValue"
    truth: np.ndarray = test[outcome].to_numpy()
    source = reading.file_source(folder / TASKS[task].submission)
    column = TASKS[task].column
    predicted = submission.read_pair_values(source, column)[column.name].to_numpy()
    # Shape (answers, classes). A class is an outcome in task 1 and an option in task 2.
    p_class = read_probabilities(folder / PROBABILITIES, task).value
    # Classes count from 0, but the options of task 2 count from 1, their `column.low`.
    true_class = truth - column.low
    scores = metrics.score_probabilities(true_class, p_class)
    return [
        metrics.accuracy(truth, predicted).value,
        scores.log_loss,
        float("nan") if scores.auc is None else scores.auc,
        scores.calibration_error,
    ]


def summarise(figures: Sequence[Figures]) -> list[str]:
    """Return the text "mean ± standard deviation" over the runs for each of the `COLUMNS`."""
    cells = []
    for values in np.array(figures).T:
        deviation = f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else ""
        cells.append("" if np.isnan(values).any() else f"{np.mean(values):.4f}{deviation}")
    return cells


def print_header(title: str) -> None:
    """Print the title and the head of a table in Markdown."""
    print(f"\n{title}")
    print_row("model", COLUMNS)
    print_row("---", ["---"] * len(COLUMNS))


def print_row(name: str, cells: Sequence[str]) -> None:
    """Print a row of a table in Markdown."""
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    cli.run(main)
