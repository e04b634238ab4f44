"""Score the samples of the science exam on the 200 public questions.

Run:     KIT_REAL_DATA=… python tests/benchmarks/science_exam_on_real_questions.py
Writes:  a table to the terminal

The score is MAP@3. For samples that learn, the score is the mean over several seeds of the folds.
The table shows each score and its difference from the score of the longest option, with 95 %
intervals over the questions.
"""

import tempfile
from pathlib import Path

from common import cli, layout

import numpy as np
from real_answers import real_data_dir
from running import load_module, run_script
from tqdm import tqdm

FOLDER = layout.RELATED_DIR / "science_exam"
SEEDS = range(5)
# The rows of the printed table: name, then the sample model, its flags and its seeds.
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
    # For each model, its score on each question, averaged over the seeds.
    points_by_model = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (model, flags, seeds) in tqdm(MODELS.items(), "models", disable=None):
            points_by_seed = []
            for seed in seeds:
                script = FOLDER / f"sample_model_{model}.py"
                seeded = ["--seed", seed] if len(seeds) > 1 else []
                run_script([script, "--input_dir", data, "--output_dir", folder, *flags, *seeded])
                guesses = exam.read_predictions(Path(folder) / "submission.csv", questions)
                points_by_seed.append(exam.score_questions(questions, guesses))
            points_by_model[name] = np.mean(points_by_seed, axis=0)
    print("| model | MAP@3 | 95 % interval | difference from the longest option |")
    print("|---|---|---|---|")
    points_of_longest = points_by_model["longest_option"]
    for name, points in points_by_model.items():
        low, high = exam.interval_95(points)
        difference = points - points_of_longest
        margin = 1.96 * difference.std(ddof=1) / len(difference) ** 0.5
        mean = difference.mean()
        print(
            f"| {name} | {points.mean():.4f} | {low:.3f} to {high:.3f} | {mean:+.4f} "
            f"({mean - margin:+.3f} to {mean + margin:+.3f}) |"
        )


if __name__ == "__main__":
    cli.run(main)
