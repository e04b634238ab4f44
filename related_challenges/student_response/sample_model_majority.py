"""Student responses baseline: the most frequent label for every answer.

Run:     python related_challenges/student_response/local_data_split.py
         python related_challenges/student_response/sample_model_majority.py
         python related_challenges/student_response/local_evaluation.py
Writes:  data/test_output/submission.csv
Scores:  accuracy 0.42, macro F1 0.12 on the BEETLE training answers, 5-way, 10 folds
"""

import numpy as np
import responses

from common import challenge, cli, folds, layout


def main() -> None:
    """Load, model, predict, write."""
    p = challenge.model_parser(__doc__, __file__)
    test_input = challenge.data_dir(__file__) / layout.TEST_INPUT_DIR.name
    challenge.add_folder(p, "--submission_template_dir", test_input)
    challenge.add_file(p, "--submission_template_file", responses.FOLDS)
    options = p.parse_args()
    answers = responses.read_responses(options.input_dir)
    template = options.submission_template_dir / options.submission_template_file
    fold = folds.read_folds(template, answers.ids)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`. Out: `prediction`, a label's number for each, learnt from other folds.
    prediction = np.empty(len(answers), int)
    for train, test in folds.splits(fold):
        prediction[test] = np.bincount(answers.label[train]).argmax()
    # ---- End of the model. --------------------------------------------------------------------

    path = options.output_dir / options.output_file
    responses.write_predictions(path, answers, prediction, template)
    print(f"written: {cli.show(path)} ({len(answers):,} rows)")


if __name__ == "__main__":
    cli.run(main)
