"""Student responses: divide the answers into folds for cross-validation.

Run:     python related_challenges/student_response/local_data_split.py
         python related_challenges/student_response/local_data_split.py --by_question
         python related_challenges/student_response/local_data_split.py --by_domain
Reads:   data/train_data/*.xml
Writes:  data/test_input/folds.csv, with the columns id and fold

By default each answer is assigned on its own. With --by_question, all answers to a question are in
the same fold: a model is scored only on questions that it has not been trained on, as it would be
for a new exercise. With --by_domain, all questions of a module are in the same fold: a model is
scored only on new topics. --folds can then be at most the number of modules, 12 for SciEntsBank.
"""

import argparse

from common import cli
from common.errors import InputError
from related_challenges import challenge

import responses


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = challenge.fold_parser(__doc__, __file__, n_folds=10)
    grouping = parser.add_mutually_exclusive_group()
    help_text = "keep each question's answers in one fold"
    grouping.add_argument("--by_question", action="store_true", help=help_text)
    help_text = "keep the answers of each module in one fold"
    grouping.add_argument("--by_domain", action="store_true", help=help_text)
    return parser


def main() -> None:
    """Assign the answers to folds, and write the folds."""
    options = build_parser().parse_args()
    answers = responses.read_responses(options.input_dir)
    # `group` holds the number of each answer's group. The answers of a group are in the same fold.
    if options.by_question:
        group, _ = answers["question"].factorize()
    elif options.by_domain:
        paths_without_module = answers["path"][answers["module"] == ""]
        if len(paths_without_module):
            raise InputError(
                f"{paths_without_module.iloc[0]}: <question> has no attribute 'module', which "
                "--by_domain needs"
            )
        # Sort the modules, so that the folds do not depend on which file of a module comes first.
        group, _ = answers["module"].factorize(sort=True)
    else:
        # Each answer is a group of its own.
        group, _ = answers["id"].factorize()
    paths = answers["path"].unique().tolist()
    challenge.split_into_folds(options, "answers", answers["id"].tolist(), group, paths)


if __name__ == "__main__":
    cli.run(main)
