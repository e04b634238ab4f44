"""How the literature splits students and answers, and what it publishes."""

from collections.abc import Iterator
from typing import NamedTuple

from common.adaptive.game import Reference, make_reference
from common.errors import InputError

import numpy as np
import pandas as pd


class Protocol(NamedTuple):
    """How one paper splits students and answers, and what it publishes, and where.

    The students are shuffled and cut into `n_parts` equal parts, of which `n_test` are examined and
    `n_unused` validate settings there: here none are chosen, and their answers are not used. Of a
    student examined, `target_share` of the answers are to be predicted.
    """

    title: str
    n_parts: int
    n_test: int
    n_unused: int
    target_share: float
    source: str
    # Method, accuracy, AUC ("" where unknown).
    published: tuple[tuple[str, str, str], ...]


PROTOCOLS = {
    "bobcat": Protocol(
        "BOBCAT's protocol: students 60/20/20, of an examined student's answers 80 % may be asked "
        "and 20 % are to be predicted",
        n_parts=5,
        n_test=1,
        n_unused=1,
        target_share=0.2,
        source="Ghosh and Lan 2021, arXiv 2108.07386, Eedi-2, ten questions",
        published=(
            ("IRT-Active", "0.6804", "0.7436"),
            ("BiIRT-Approx", "0.6947", "0.7596"),
            ("BiNN-Approx", "0.7004", "0.7663"),
        ),
    ),
    "ncat": Protocol(
        "NCAT's protocol: students 70/30, of an examined student's answers half may be asked and "
        "half are to be predicted",
        n_parts=10,
        n_test=3,
        n_unused=0,
        target_share=0.5,
        source="Zhuang et al. 2022, AAAI; not checked in its text, nor after how many questions",
        published=(
            ("IRT, random", "0.658", ""),
            ("IRT, MFI", "0.676", ""),
            ("IRT, KLI", "0.672", ""),
            ("IRT, MAAT", "0.674", ""),
            ("IRT, BOBCAT", "0.681", ""),
            ("IRT, NCAT", "0.703", ""),
            ("NCDM, BOBCAT", "0.695", ""),
            ("NCDM, NCAT", "0.716", "0.739"),
        ),
    ),
}


def splits(
    answers: pd.DataFrame, protocol: Protocol, n_splits: int, n_questions: int, n_columns: int
) -> Iterator[tuple[pd.DataFrame, Reference]]:
    """Yield for every split what to learn from, and whom to examine with a mask of its name.

    Split s examines the next part of the shuffled students, so that `n_parts / n_test` splits
    examine everyone once; after that they are shuffled again. Students with fewer answers that may
    be asked than the test has questions are not examined; the arrays get `n_columns` columns.
    """
    students, row = np.unique(answers["UserId"], return_inverse=True)
    if len(students) < protocol.n_parts:
        raise InputError(f"{len(students)} students, expected at least {protocol.n_parts}")
    for number in range(n_splits):
        name = f"split {number + 1}"
        turn, place = divmod(number, protocol.n_parts // protocol.n_test)
        order = np.random.default_rng([turn, 0]).permutation(len(students))
        part = np.empty(len(students), np.int64)
        part[order] = np.arange(len(students)) * protocol.n_parts // len(students)
        # The part of each answer's student, counted from the first one that is examined.
        after = (part[row] - place * protocol.n_test) % protocol.n_parts
        learned = answers[after >= protocol.n_test + protocol.n_unused]
        # The first of each student's answers, in random order, are to be predicted, rounded up.
        examined = answers[after < protocol.n_test]
        drawn = pd.Series(np.random.default_rng([number, 1]).random(len(examined)), examined.index)
        by_student = drawn.groupby(examined["UserId"])
        n_answers = by_student.transform("size")
        is_target = by_student.rank(method="first") <= np.ceil(protocol.target_share * n_answers)
        n_askable = (~is_target).groupby(examined["UserId"]).transform("sum")
        enough = (n_askable >= n_questions).to_numpy()
        if not enough.any():
            raise InputError(
                f"no student of {name} has {n_questions} answers that may be asked: "
                "choose a smaller --questions"
            )
        masks = {name: is_target[enough].to_numpy()}
        yield learned, make_reference(name, examined[enough], masks, n_columns)
