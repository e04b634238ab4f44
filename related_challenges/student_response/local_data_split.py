"""Student responses: divide the answers into folds for cross-validation.

Run:     python related_challenges/student_response/local_data_split.py
         python related_challenges/student_response/local_data_split.py --by_question
         python related_challenges/student_response/local_data_split.py --by_domain
Reads:   data/train_data/*.xml
Writes:  data/test_input/folds.csv, with the columns id and fold

With --by_question, all answers to a question are in the same fold: a model is scored only on
questions that it has not been trained on, as with a new exercise. With --by_domain, all questions
of a module are in the same fold (SciEntsBank has 12 modules): a model is scored only on new topics.
"""

import argparse

from common import cli
from common.errors import InputError
from related_challenges import challenge

import responses


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = challenge.fold_parser(__doc__, __file__, n_folds=10)
    together = parser.add_mutually_exclusive_group()
    help_text = "keep each question's answers in one fold"
    together.add_argument("--by_question", action="store_true", help=help_text)
    help_text = "keep the answers of each module in one fold"
    together.add_argument("--by_domain", action="store_true", help=help_text)
    return parser


def main() -> None:
    """Split the files that the flags name."""
    options = build_parser().parse_args()
    answers = responses.read_responses(options.input_dir)
    if options.by_question:
        group, _ = answers["question"].factorize()
    elif options.by_domain:
        without_module = answers["path"][answers["module"] == ""]
        if len(without_module):
            raise InputError(
                f"{without_module.iloc[0]}: <question> has no attribute 'module', which "
                "--by_domain needs"
            )
        # Sorted, so that the folds do not depend on the order of files.
        group, _ = answers["module"].factorize(sort=True)
    else:
        group, _ = answers["id"].factorize()
    paths = answers["path"].unique().tolist()
    challenge.split_into_folds(options, "answers", answers["id"].tolist(), group, paths)


if __name__ == "__main__":
    cli.run(main)
