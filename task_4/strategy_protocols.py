"""How the literature splits students and answers, and what it publishes."""

from collections.abc import Iterator
from dataclasses import dataclass

from common.adaptive.game import Reference, make_reference
from common.errors import InputError

import numpy as np
import pandas as pd

MASK = "targets"


@dataclass(frozen=True)
class Protocol:
    """How one paper splits students and answers.

    The students are shuffled and cut into `n_parts` equal parts, of which `n_test` are examined and
    `n_unused` validate settings there: here none are chosen, and their answers are not used. Of a
    student examined, `target_share` of the answers are to be predicted. `published` is what the
    paper reports, method, accuracy and AUC ("" where unknown), and `source` where that stands.
    """

    title: str
    n_parts: int
    n_test: int
    n_unused: int
    target_share: float
    published: tuple[tuple[str, str, str], ...]
    source: str


PROTOCOLS = {
    "bobcat": Protocol(
        title="BOBCAT's protocol: students 60/20/20, of an examined student's answers 80 % may be "
        "asked and 20 % are to be predicted",
        n_parts=5,
        n_test=1,
        n_unused=1,
        target_share=0.2,
        published=(
            ("IRT-Active", "0.6804", "0.7436"),
            ("BiIRT-Approx", "0.6947", "0.7596"),
            ("BiNN-Approx", "0.7004", "0.7663"),
        ),
        source="Ghosh and Lan 2021, arXiv 2108.07386, Eedi-2, ten questions",
    ),
    "ncat": Protocol(
        title="NCAT's protocol: students 70/30, of an examined student's answers half may be asked "
        "and half are to be predicted",
        n_parts=10,
        n_test=3,
        n_unused=0,
        target_share=0.5,
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
        source="Zhuang et al. 2022, AAAI; not checked in its text, nor after how many questions",
    ),
}


def splits(
    answers: pd.DataFrame, protocol: Protocol, n_splits: int, n_questions: int, n_columns: int
) -> Iterator[tuple[pd.DataFrame, Reference]]:
    """Yield for every split what to learn from, and whom to examine.

    Split s examines the next part of the shuffled students, so that `n_parts / n_test` splits
    examine everyone once; after that they are shuffled again. Students with fewer answers that may
    be asked than the test has questions are not examined; the arrays get `n_columns` columns.
    """
    students, row = np.unique(answers["UserId"], return_inverse=True)
    if len(students) < protocol.n_parts:
        raise InputError(f"{len(students)} students, expected at least {protocol.n_parts}")
    at_once = protocol.n_parts // protocol.n_test
    for number in range(n_splits):
        turn, place = divmod(number, at_once)
        order = np.random.default_rng([turn, 0]).permutation(len(students))
        part = np.empty(len(students), np.int64)
        part[order] = np.arange(len(students)) * protocol.n_parts // len(students)
        # The part of each answer's student, counted from the first one that is examined.
        after = (part[row] - place * protocol.n_test) % protocol.n_parts
        learned = answers[after >= protocol.n_test + protocol.n_unused]
        examined = answers[after < protocol.n_test]
        targets = _hide(examined, protocol.target_share, np.random.default_rng([number, 1]))
        _, student = np.unique(examined["UserId"], return_inverse=True)
        enough = (np.bincount(student, ~targets) >= n_questions)[student]
        if not enough.any():
            raise InputError(
                f"no student of split {number + 1} has {n_questions} answers that may be asked: "
                "choose a smaller --questions"
            )
        masks = {MASK: targets[enough]}
        examined = examined[enough]
        yield learned, make_reference(f"split {number + 1}", examined, masks, n_columns)


def _hide(answers: pd.DataFrame, share: float, rng: np.random.Generator) -> np.ndarray:
    """Choose the share of each student's answers, rounded up, that are to be predicted."""
    _, student, count = np.unique(answers["UserId"], return_inverse=True, return_counts=True)
    order = np.lexsort((rng.random(len(answers)), student))
    place = np.empty(len(answers), np.int64)
    place[order] = np.arange(len(answers)) - np.repeat(np.cumsum(count) - count, count)
    return np.asarray(place < np.ceil(share * count)[student])
