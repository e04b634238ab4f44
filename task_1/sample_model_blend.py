"""Task 1: a blend of the other sample models: the weighted mean of their log-odds.

Run:     python task_1/sample_model_blend.py --local     predict the local split
         python task_1/local_evaluation.py               score that prediction
         python task_1/sample_model_blend.py             predict the official pairs
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submission_task_1.csv and the zip to upload
Scores:  accuracy 0.7339 on real answers (first three splits; gradient boosting 0.7339)

First the models learn from 80 % of the training answers and predict the others: the weights
minimise the log loss of the blend on these held-out answers. Then the models learn from all
training answers and predict the template. Trees depend on their seed, so the predictions of
gradient boosting are then the mean of three fits. In all, a blend takes about as long as five runs
of gradient boosting.

The blend is the logarithmic opinion pool of Genest and Zidek (1986, "Combining probability
distributions", Statistical Science 1). `python -m tools.blend` blends files of probabilities, such
as those of your own models.
"""

import argparse
from pathlib import Path

from common import cli, sample_models, submission
from common.probabilities import write_probabilities
from tools.blend import (
    Command,
    describe_weights,
    learn_weights,
    log_blend,
    predict_held_out,
    predict_template,
)

import numpy as np

TASK = 1
# Maps each model to blend to its number of fits. The fits of a model have different seeds, and the
# prediction of the model is their mean.
N_FITS = {"gradient_boosting": 3, "item_response": 1, "partial_vae": 1}


def list_commands(name: str, seed: int) -> list[Command]:
    """Return the commands that fit a model, each with another seed: a script and its flags.

    `name` is the name of the model, and `seed` is the seed of the blend.
    """
    script = Path(__file__).with_name(f"sample_model_{name}.py")
    n_fits = N_FITS[name]
    # Fit i gets the seed n_fits · seed + i. So two fits of a model never share a seed, not even if
    # they belong to blends with different `seed`.
    return [(script, ["--seed", str(n_fits * seed + i)]) for i in range(n_fits)]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = sample_models.parser(__doc__, TASK)
    sample_models.add_metadata_flag(parser)
    # --help shows `description`, then the names of the models, then `default_in_words`.
    cli.add_optional_names(
        parser, "--models", description="some of", names=list(N_FITS), default_in_words="all"
    )
    cli.add_number(parser, "--seed", 0, "seed of the models")
    return parser


def main() -> None:
    """Let the models predict, find their weights, blend the predictions, write the submission."""
    options = build_parser().parse_args()
    paths = sample_models.paths(options, TASK)
    template = submission.read_template(paths.template)
    # The names of the models to blend: those given with --models, or all models in `N_FITS`.
    models = options.models or list(N_FITS)
    # For each model, a list of commands. Each command fits the model with another seed.
    commands = [list_commands(name, options.seed) for name in models]

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `models`, `commands`, `paths`. Out, for each template row: `prediction`, `p_right`.
    # Every model predicts answers that are held out of the training answers, so that its weight
    # does not depend on answers that it has learned from. One fit of each model is enough for the
    # weights.
    # `held_out.logs` has the log probabilities of wrong and right, shape (models, answers, 2).
    # `held_out.truth` is 1 for a right answer.
    first_fits = [fits[0] for fits in commands]
    held_out = predict_held_out(first_fits, paths, TASK)
    weights = learn_weights(held_out.logs, held_out.truth)
    print(describe_weights(models, weights, held_out.logs, held_out.truth))

    # For each model, the mean of the log probabilities over its fits.
    logs = np.stack([predict_template(fits, paths, TASK).mean(axis=0) for fits in commands])
    # The columns are P(wrong) and P(right).
    probability = np.exp(log_blend(logs, weights))
    p_right = probability[:, 1]
    prediction = (p_right > 0.5).astype(np.int8)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_right, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
