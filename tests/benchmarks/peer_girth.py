"""Fit the two-parameter model with girth in an environment of its own; print parameters as JSON.

pip install girth     (into another environment)
THAT_PYTHON tests/benchmarks/peer_girth.py answers.npy
"""

import json
import sys
import time

import numpy as np
from girth import twopl_mml

# More quadrature points, wider bounds and more iterations than by default, so that the parameters
# equal those of exact marginal maximum likelihood to four digits.
EXACT_OPTIONS = {"max_iteration": 1000, "quadrature_n": 101, "quadrature_bounds": (-7, 7)}


def main() -> None:
    """Fit the matrix of right (1) and wrong (0) answers in a file, a row for each student.

    The model is fitted twice: first with girth's default settings, to measure the time that users
    of girth wait; then with EXACT_OPTIONS, to get more exact parameters.
    """
    answers = np.load(sys.argv[1])
    # girth expects a row for each question.
    by_question = answers.T
    begin = time.process_time()
    twopl_mml(by_question)
    seconds = time.process_time() - begin
    parameters = twopl_mml(by_question, EXACT_OPTIONS)
    discrimination = np.asarray(parameters["Discrimination"])
    # girth's difficulty is the ability at which the logit is 0. The kit's logit is discrimination ·
    # ability − difficulty, so the kit's difficulty is girth's discrimination · difficulty.
    difficulty = discrimination * np.asarray(parameters["Difficulty"])
    print(
        json.dumps(
            {
                "discrimination": discrimination.tolist(),
                "difficulty": difficulty.tolist(),
                "seconds": seconds,
            }
        )
    )


if __name__ == "__main__":
    main()
