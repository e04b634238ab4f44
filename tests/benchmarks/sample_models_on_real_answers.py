"""Accuracy of the sample models of tasks 1 and 2 on real answers, as their READMEs report it.

Run:     KIT_REAL_DATA=… python tests/benchmarks/sample_models_on_real_answers.py
         … --scripts task_1/sample_model_partial_vae.py --splits 3
         … --scripts task_1/my_idea.py --flags "--dimensions 12"
Writes:  a table for each task to the terminal

Every script runs as a user runs it, from CSV to submission, with its default flags. Pool: the ten
fixed splits of `real_answers`, 80 % for training and 20 % for scoring, mean ± standard deviation
over the splits, which share one pool. Course subset (right or wrong only): trained on its training
part, scored on its validation part, mean ± standard deviation over five seeds of the model. Models
that read metadata get those of the questions and students; those of the answers are not published.
"""

import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from real_answers import (
    SEEDS,
    pool_splits,
    read_course_subset,
    read_pool,
    write_course_metadata,
    write_pool_metadata,
)
from running import metadata_flags, run_script
from tqdm import tqdm

from common import cli, io, layout, schema
from common.answers import Answers
from common.submission import read_pair_values

COURSE_SEEDS = range(5)


def main() -> None:
    """Run every script on every split; print the tables."""
    p = cli.parser(__doc__)
    p.add_argument("--scripts", nargs="+", type=Path, metavar="FILE", help="default: all samples")
    p.add_argument("--splits", type=int, default=len(SEEDS), help="use only the first N splits")
    p.add_argument("--flags", default="", help="further flags for the scripts, in quotes")
    options = p.parse_args()
    scripts = options.scripts or sorted(layout.ROOT.glob("task_[12]/sample_model_*.py"))
    flags = shlex.split(options.flags)
    pool, course = read_pool(), (read_course_subset("train"), read_course_subset("valid"))
    for task in (1, 2):
        own = [path for path in scripts if path.resolve().parent.name == f"task_{task}"]
        if not own:
            continue
        print(
            f"\n| task {task} | pool, {options.splits} splits |" + " course subset |" * (task == 1)
        )
        print("|---|---|" + "---|" * (task == 1))
        for script in own:
            scores = [
                score(script, task, (train, test), write_pool_metadata, flags)
                for seed, train, test in tqdm(pool_splits(pool), script.stem, len(SEEDS))
                if seed < options.splits
            ]
            cells = [script.stem.removeprefix("sample_model_"), show(scores)]
            if task == 1:
                seeded = "--seed" in script.read_text(encoding="utf-8")
                cells.append(
                    show(
                        [
                            score(
                                script,
                                task,
                                course,
                                write_course_metadata,
                                [*flags, *["--seed", str(s)] * seeded],
                            )
                            for s in (COURSE_SEEDS if seeded else [0])
                        ]
                    )
                )
            print(f"| {' | '.join(cells)} |", flush=True)


def score(
    script: Path,
    task: int,
    parts: tuple[Answers, Answers],
    write_metadata: Callable[[Path], None],
    flags: list[str],
) -> float:
    """Run a sample model on files made from answers; return its accuracy."""
    train, test = parts
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_metadata(folder)
        pairs = {"QuestionId": test.question, "UserId": test.student}
        columns = {
            "QuestionId": train.question,
            "UserId": train.student,
            "IsCorrect": train.is_correct,
        }
        if train.option is not None:
            columns |= {"CorrectAnswer": train.correct_option, "AnswerValue": train.option}
        io.write_csv(folder / "train.csv", columns)
        io.write_csv(folder / "template.csv", pairs)
        run_script(
            [
                *(script, "--input_dir", folder, "--train_data", "train.csv"),
                *("--submission_template_dir", folder),
                *("--submission_template_file", "template.csv", "--output_dir", folder),
                *metadata_flags(script, folder),
                *flags,
            ]
        )
        source = io.file_source(folder / layout.submission_name(task))
        predicted = read_pair_values(source, schema.PREDICTED_COLUMN[task]).value
    return float(np.mean(predicted == (test.is_correct if task == 1 else test.option)))


def show(scores: list[float]) -> str:
    """Return mean ± standard deviation."""
    deviation = f" ± {np.std(scores, ddof=1):.4f}" if len(scores) > 1 else ""
    return f"{np.mean(scores):.4f}{deviation}"


if __name__ == "__main__":
    cli.run(main)
