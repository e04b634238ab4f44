"""Score the samples of the science exam on the 200 public questions.

Run:     KIT_REAL_DATA=… python tests/benchmarks/science_exam_on_real_questions.py
Writes:  a table to the terminal

The score is MAP@3. For samples that learn, the score is the mean over several seeds of the folds.
The table shows each score and its difference from the score of the longest option, with 95 %
intervals over the questions.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from common import cli, layout
from common.arrays import FloatArray

import numpy as np
import pandas as pd
from real_answers import real_data_dir
from running import load_module, run_script
from tqdm import tqdm

FOLDER = layout.RELATED_DIR / "science_exam"
SEEDS = range(5)
# The rows of the printed table. The key is the name of the row. The value is the sample model, its
# flags, and the seeds with which it is run.
MODELS = {
    "longest_option": ("longest_option", [], [0]),
    "constant": ("constant", [], [0]),
    "word_overlap": ("word_overlap", [], [0]),
    "tfidf": ("tfidf", [], [0]),
    "ranker": ("ranker", [], SEEDS),
    "ensemble": ("ensemble", [], SEEDS),
    "ensemble of the other samples": (
        "ensemble",
        ["--members", "length", "overlap", "cosine"],
        SEEDS,
    ),
}


def main() -> None:
    """Run every model with every seed; compare the models' scores on each question."""
    cli.parser(__doc__).parse_args()
    exam = load_module(FOLDER / "exam.py")
    data = real_data_dir() / "related" / "llm_science_exam"
    questions = exam.read_questions(data / exam.TRAIN_FILE, answers=True)
    points_by_model = {}
    for name, (model, flags, seeds) in tqdm(MODELS.items(), "models", disable=None):
        run_flags = ["--input_dir", data, *flags]
        points_by_model[name] = score_model(exam, questions, model, run_flags, seeds)
    print_table(exam, points_by_model)


def score_model(
    exam: ModuleType,
    questions: pd.DataFrame,
    model: str,
    flags: Sequence[object],
    seeds: Sequence[int],
) -> FloatArray:
    """Return a sample model's score on each of the questions, the mean over the seeds.

    A model with a single seed is run without --seed, because it may lack this flag. `exam` is the
    module exam.py of the science exam.
    """
    script = FOLDER / f"sample_model_{model}.py"
    points_by_seed = []
    for seed in seeds:
        seed_flags = ["--seed", seed] if len(seeds) > 1 else []
        with tempfile.TemporaryDirectory() as folder:
            run_script([script, "--output_dir", folder, *flags, *seed_flags])
            guesses = exam.read_predictions(Path(folder) / "submission.csv", questions)
        points_by_seed.append(exam.score_questions(questions, guesses))
    points: FloatArray = np.mean(points_by_seed, axis=0)
    return points


def print_table(exam: ModuleType, points_by_model: dict[str, FloatArray]) -> None:
    """Print each model's mean score over the questions and its difference from "longest_option".

    Both have 95 % intervals.

    `points_by_model` holds the score of each model on each question.
    """
    print("| model | MAP@3 | 95 % interval | difference from the longest option |")
    print("|---|---|---|---|")
    points_of_longest = points_by_model["longest_option"]
    for name, points in points_by_model.items():
        low, high = exam.interval_95(points)
        # Both models answer the same questions, so compare them question by question.
        differences = points - points_of_longest
        difference = differences.mean()
        standard_error = differences.std(ddof=1) / len(differences) ** 0.5
        # The normal distribution has 95 % of its mass within 1.96 standard errors.
        margin = 1.96 * standard_error
        print(
            f"| {name} | {points.mean():.4f} | {low:.3f} to {high:.3f} | {difference:+.4f} "
            f"({difference - margin:+.3f} to {difference + margin:+.3f}) |"
        )


if __name__ == "__main__":
    cli.run(main)
