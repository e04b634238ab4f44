"""Student responses: divide the answers into folds for cross-validation.

Run:     python related_challenges/student_response/local_data_split.py [--by_question]
Reads:   data/train_data/*.xml
Writes:  data/test_input/folds.csv, with the columns id and fold

With --by_question all answers to a question are in one fold, so that a model is scored only on
questions that it has not been trained on, as with a new exercise.
"""

import numpy as np
import responses

from common import challenge, cli, folds


def main() -> None:
    """Split the files that the flags name."""
    p = challenge.split_parser(__doc__, __file__)
    p.add_argument("--folds", type=int, metavar="N", default=10, help="default 10")
    p.add_argument(
        "--by_question", action="store_true", help="keep each question's answers in one fold"
    )
    p.add_argument("--seed", type=cli.seed, metavar="N", default=0, help="default 0")
    options = p.parse_args()
    answers = responses.read_responses(options.input_dir)
    group = answers.question if options.by_question else np.arange(len(answers))
    fold = folds.assign_folds(group, options.folds, options.seed)
    path = options.output_dir / responses.FOLDS
    folds.write_folds(path, answers.ids, fold, sorted(options.input_dir.glob("*.xml")))
    print(f"written: {cli.show(path)} ({len(answers):,} answers, {options.folds} folds)")


if __name__ == "__main__":
    cli.run(main)
