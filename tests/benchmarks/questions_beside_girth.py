"""Compare difficulty and discrimination of questions with those of girth, and with true ones.

Run:     KIT_REAL_DATA=… python tests/benchmarks/questions_beside_girth.py GIRTH/bin/python
Writes:  tables to the terminal

GIRTH is an environment with girth, which fits the two-parameter model by marginal maximum
likelihood (see peer_girth.py). The kit's estimator has one ability and no guessing. Its attributes
are posterior means; `QuestionStatistics.parameters` are estimates without a prior.

LSAT7 is a public table of five questions and 1,000 students (Bock and Lieberman 1970), for which
the tests of the R package mirt state the parameters. SAT12 has 32 questions and 600 students.
"""

import json
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import cli
from common.arrays import FloatArray, IntArray
from common.item_response import ItemResponse
from common.item_response.question_statistics import QuestionStatistics

import numpy as np
import pandas as pd
from real_answers import real_data_dir

# Numbers of students with each pattern of wrong (0) and right (1) answers, from 00000 to 11111.
_LSAT7_COUNTS = (
    *(12, 19, 1, 7, 3, 19, 3, 17, 10, 5, 3, 7, 7, 23, 8, 28),
    *(7, 39, 11, 34, 14, 51, 15, 90, 6, 25, 7, 35, 18, 136, 32, 308),
)
# Slopes and intercepts by mirt, from the file tests/testthat/test-01-mirtOne.R of its repository.
_MIRT_SLOPES = (0.988, 1.081, 1.706, 0.7651, 0.7358)
_MIRT_INTERCEPTS = (1.8561, 0.808, 1.8043, 0.486, 1.8545)
# Simulated students and questions.
_N_STUDENTS = 5000
_N_QUESTIONS = 40


@dataclass(frozen=True)
class Parameters:
    """Parameters of questions by one method; logit = discrimination · ability − difficulty."""

    # Shape (questions,).
    discrimination: FloatArray
    difficulty: FloatArray
    # Processor time of the estimation.
    seconds: float = 0.0


def fit_girth(python: Path, answers: IntArray) -> Parameters:
    """Return the parameters of questions by the library girth.

    girth is installed in another environment, whose interpreter is `python`. `answers` has a row
    for each student.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.npy"
        np.save(path, answers)
        script = Path(__file__).with_name("peer_girth.py")
        done = subprocess.run(
            [python, script, path], check=True, capture_output=True, text=True, cwd=folder
        )
    result: dict[str, Any] = json.loads(done.stdout)
    return Parameters(
        np.array(result["discrimination"]), np.array(result["difficulty"]), result["seconds"]
    )


def fit_kit(answers: IntArray) -> dict[str, Parameters]:
    """Return the parameters of questions by the kit, of two kinds.

    "the kit, attributes" are the posterior means, the attributes of a fitted `ItemResponse`.
    "the kit, `parameters`" are the estimates without a prior, from `QuestionStatistics.parameters`.
    `answers` has a row for each student.
    """
    # The number of the student and of the question, for each element of `answers`.
    student, question = np.indices(answers.shape).reshape(2, -1)
    is_correct = answers.ravel()
    begin = time.process_time()
    model = ItemResponse(n_dimensions=1, guessing=0.0).fit(student, question, is_correct)
    seconds_of_fit = time.process_time() - begin
    # The logit is discrimination · ability − difficulty. A fit may turn the sign of all abilities
    # and discriminations, which changes no logit. Choose the sign so that the discriminations are
    # positive on average. The difficulties do not depend on the sign.
    slopes = model.discrimination_[:, 0]
    sign = np.sign(slopes.mean())
    posterior_means = Parameters(slopes * sign, model.difficulty_, seconds_of_fit)
    table = QuestionStatistics(model, student, question, is_correct).parameters()
    # The estimates without a prior need the fitted model too, so their time includes the fit.
    estimates_without_prior = Parameters(
        table["discrimination"].to_numpy(),
        table["difficulty"].to_numpy(),
        seconds=time.process_time() - begin,
    )
    return {
        "the kit, attributes": posterior_means,
        "the kit, `parameters`": estimates_without_prior,
    }


def print_comparison(name: str, reference: str, fits: dict[str, Parameters]) -> None:
    """Print how the parameters of each method differ from those of the reference method.

    A key of `fits` is the name of a method. `name` is the name of the set of answers.
    """
    expected = fits[reference]
    for method, fit in fits.items():
        if method == reference:
            continue
        cells = []
        for estimate, target in (
            (fit.discrimination, expected.discrimination),
            (fit.difficulty, expected.difficulty),
        ):
            difference = estimate - target
            cells += [
                f"{np.corrcoef(estimate, target)[0, 1]:.4f}",
                f"{difference.mean():+.3f}",
                f"{np.abs(difference).mean():.3f}",
            ]
        print(f"| {name} | {method} | {reference} | {' | '.join(cells)} | {fit.seconds:.2f} s |")


def read_sat12() -> IntArray:
    """Return the answers of SAT12, a row for each student; a missing answer counts as wrong."""
    table = pd.read_csv(real_data_dir() / "sat12" / "sat12_600x32.csv")
    matrix = table.pivot_table(index="UserId", columns="QuestionId", values="IsCorrect")
    return matrix.fillna(0).to_numpy().astype(np.int64)


def lsat7() -> IntArray:
    """Return the answers of LSAT7, a row for each student."""
    patterns = np.indices((2, 2, 2, 2, 2)).reshape(5, -1).T
    return np.repeat(patterns, _LSAT7_COUNTS, axis=0)


def simulate() -> tuple[IntArray, Parameters]:
    """Return answers that follow the two-parameter model, and its parameters."""
    rng = np.random.default_rng(0)
    discrimination = rng.lognormal(0, 0.4, _N_QUESTIONS)
    difficulty = rng.normal(0, 1, _N_QUESTIONS)
    ability = rng.normal(size=(_N_STUDENTS, 1))
    is_right = rng.logistic(size=(_N_STUDENTS, _N_QUESTIONS)) < (
        discrimination * ability - difficulty
    )
    return is_right.astype(np.int64), Parameters(discrimination, difficulty)


def main() -> None:
    """Print tables that compare parameters of questions by the kit and by other software.

    Simulated answers have true parameters, with which the kit and the Python library girth are
    compared. On all three sets of answers, the kit is compared with girth. On LSAT7, girth is also
    compared with the published parameters of the R package mirt.
    """
    parser = cli.parser(__doc__)
    parser.add_argument("girth", type=Path, help="Python of an environment with girth")
    options = parser.parse_args()
    print(
        "| answers | method | compared with | discrimination: correlation | bias | "
        "mean absolute difference | difficulty: correlation | bias | mean absolute difference | "
        "processor |\n"
        "|---|---|---|---|---|---|---|---|---|---|"
    )
    simulated, truth = simulate()
    girth = fit_girth(options.girth, simulated)
    kit = fit_kit(simulated)
    print_comparison("simulated", "truth", {"truth": truth, "girth": girth, **kit})
    print_comparison("simulated", "girth", {"girth": girth, **kit})
    for name, answers in (("SAT12", read_sat12()), ("LSAT7", lsat7())):
        girth = fit_girth(options.girth, answers)
        print_comparison(name, "girth", {"girth": girth, **fit_kit(answers)})
    mirt = Parameters(np.array(_MIRT_SLOPES), -np.array(_MIRT_INTERCEPTS))
    print_comparison("LSAT7", "mirt", {"mirt": mirt, "girth": girth})


if __name__ == "__main__":
    cli.run(main)
