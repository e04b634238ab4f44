"""Task 1: partial variational autoencoder, which reads any set of answers into a latent vector.

Run:     python task_1/sample_model_partial_vae.py --local     predict the local split
         python task_1/local_evaluation.py                     score that
         python task_1/sample_model_partial_vae.py             predict the template
Writes:  submission_task_1.csv and the zip to upload
Scores:  0.7142 ± 0.0018 on real answers, where the majority model scores 0.6305

Control-C ends the training early and predicts with the best model so far.
"""

import numpy as np

from common import cli, layout, run_log, schema, submission
from common.answers import read_answers
from common.models import distributed, partial_vae
from common.models.partial_vae import PartialVAE

TASK = 1


def main() -> None:
    """Load, model, predict, write."""
    parser = cli.sample_model_parser(__doc__, TASK)
    partial_vae.add_flags(parser)
    options = parser.parse_args()
    paths = cli.sample_model_paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, options=False)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: the columns of `answers`. Out: `prediction`, 0 or 1 for every row of `template`.
    processes = distributed.join()
    model = PartialVAE(
        "is_correct",
        n_dimensions=options.dimensions,
        max_epochs=options.max_epochs,
        batch_size=options.batch_size,
        learning_rate=options.learning_rate,
        kl_weight=options.kl_weight,
        seed=options.seed,
        device=options.device,
    )
    note = run_log.open_log(options.log if processes.rank == 0 else None)
    model.fit(answers, checkpoint=options.checkpoint, processes=processes, note=note)
    if processes.rank > 0:
        return
    if options.model_file:
        model.save(options.model_file)
    p_right = model.predict_proba(template.student, template.question, n_samples=options.samples)
    prediction = (p_right > 0.5).astype(np.int8)
    note("predicted", rows=len(prediction))
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(
        template, schema.IS_CORRECT, prediction, paths.output, layout.submission_name(TASK)
    )
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
