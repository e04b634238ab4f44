"""Task 1: logistic matrix factorisation, which is multidimensional item response theory.

Run:     python task_1/sample_model_matrix_factorization.py --local     predict the local split
         python task_1/local_evaluation.py                              score that
         python task_1/sample_model_matrix_factorization.py             predict the template
         python task_1/sample_model_matrix_factorization.py --help      all flags
Writes:  submission_task_1.csv and the zip to upload
Scores:  0.741 on small simulated data, where the majority model scores 0.666;
         0.7165 ± 0.0021 on real answers with --dimensions 12, the majority 0.6305

Control-C ends the fit early and predicts with what it has learned so far.
"""

import numpy as np

from common import cli, layout, run_log, schema, submission
from common.answers import read_answers
from common.models import distributed, matrix_factorization
from common.models.matrix_factorization import MatrixFactorization

TASK = 1


def main() -> None:
    """Load, model, predict, write."""
    parser = cli.sample_model_parser(__doc__, TASK)
    matrix_factorization.add_flags(parser)
    options = parser.parse_args()
    paths = cli.sample_model_paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, options=False)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: the columns of `answers`. Out: `prediction`, 0 or 1 for every row of `template`.
    processes = distributed.join()
    model = MatrixFactorization(
        "is_correct",
        n_dimensions=options.dimensions,
        n_samples=options.samples,
        max_steps=options.max_steps,
        guessing=options.guessing,
        seed=options.seed,
    )
    note = run_log.open_log(options.log if processes.rank == 0 else None)
    model.fit(answers, checkpoint=options.checkpoint, processes=processes, note=note)
    if processes.rank > 0:
        return
    if options.model_file:
        model.save(options.model_file)
    p_right = model.predict_proba(template.student, template.question)
    prediction = (p_right > 0.5).astype(np.int8)
    note("predicted", rows=len(prediction))
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(
        template, schema.IS_CORRECT, prediction, paths.output, layout.submission_name(TASK)
    )
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
