"""Task 2: logistic matrix factorisation, which is multidimensional item response theory.

Run:     python task_2/sample_model_matrix_factorization.py --local     predict the local split
         python task_2/local_evaluation.py                              score that
         python task_2/sample_model_matrix_factorization.py             predict the template
         python task_2/sample_model_matrix_factorization.py --help      all flags
Writes:  submission_task_2.csv and the zip to upload
Scores:  0.654 on small simulated data, where the majority model scores 0.625;
         0.5694 ± 0.0020 on real answers with --dimensions 12, the majority 0.5539

Control-C ends the fit early and predicts with what it has learned so far.
"""

from common import cli, layout, run_log, schema, submission
from common.answers import read_answers
from common.models import distributed, matrix_factorization
from common.models.matrix_factorization import MatrixFactorization

TASK = 2


def main() -> None:
    """Load, model, predict, write."""
    parser = cli.sample_model_parser(__doc__, TASK)
    matrix_factorization.add_flags(parser)
    options = parser.parse_args()
    paths = cli.sample_model_paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, options=True)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: the columns of `answers`. Out: `prediction`, 1 to 4 for every row of `template`.
    processes = distributed.join()
    model = MatrixFactorization(
        "option",
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
    p_option = model.predict_proba(template.student, template.question)
    prediction = schema.OPTIONS[0] + p_option.argmax(axis=1)
    note("predicted", rows=len(prediction))
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(
        template, schema.ANSWER_VALUE, prediction, paths.output, layout.submission_name(TASK)
    )
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
