"""Student responses: divide the answers into folds for cross-validation.

Run:     python related_challenges/student_response/local_data_split.py
         python related_challenges/student_response/local_data_split.py --by_question
         python related_challenges/student_response/local_data_split.py --by_domain
Reads:   data/train_data/*.xml
Writes:  data/test_input/folds.csv, with the columns id and fold

With --by_question all answers to a question are in one fold, so that a model is scored only on
questions that it has not been trained on, as with a new exercise. With --by_domain all questions of
a module are (SciEntsBank has 12), so that it is scored only on topics that are new to it.
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
    for flag, help_text in (
        ("--by_question", "keep each question's answers in one fold"),
        ("--by_domain", "keep the answers of each module in one fold"),
    ):
        together.add_argument(flag, action="store_true", help=help_text)
    return parser


def main() -> None:
    """Split the files that the flags name."""
    options = build_parser().parse_args()
    answers = responses.read_responses(options.input_dir)
    name = "question" if options.by_question else "module" if options.by_domain else "id"
    if options.by_domain:
        without = answers["path"][answers["module"] == ""]
        if len(without):
            told = "<question> has no attribute 'module', which --by_domain needs"
            raise InputError(f"{without.iloc[0]}: {told}")
    group = answers[name].factorize(sort=options.by_domain)[0]
    paths = answers["path"].unique().tolist()
    challenge.split_into_folds(options, "answers", answers["id"].tolist(), group, paths)


if __name__ == "__main__":
    cli.run(main)
