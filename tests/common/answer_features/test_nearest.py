"""Similar questions and the answers to them, against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.adaptive.answered_mask import count_together
from common.answer_features import nearest_answers, similar_questions


def some_pairs(seed: int, n_students: int, n_questions: int, share: float = 0.5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    pairs = np.argwhere(rng.random((n_students, n_questions)) < share).astype(np.int32)
    return rng.permutation(pairs)


@pytest.mark.parametrize("n_neighbours", [3, 100])
def test_similarity_is_the_cosine_of_who_answered(n_neighbours: int) -> None:
    student, question = some_pairs(0, 50, 300, 0.3).T
    neighbours, similarity = similar_questions(
        student, question, 50, 300, n_neighbours=n_neighbours
    )
    mask = np.zeros((50, 300), np.float32)
    mask[student, question] = 1
    expected = count_together(mask)[1]
    np.fill_diagonal(expected, -1)
    assert neighbours.shape == (300, n_neighbours)
    assert (neighbours != np.arange(300)[:, None]).all()
    assert all(len(set(row)) == n_neighbours for row in neighbours.tolist())
    found = np.take_along_axis(expected, neighbours, 1)
    np.testing.assert_allclose(similarity, found, rtol=1e-6)
    highest = -np.sort(-expected, axis=1)[:, :n_neighbours]
    np.testing.assert_allclose(similarity, highest, rtol=1e-6)


def test_few_students_are_looked_at_where_there_are_too_many() -> None:
    student, question = some_pairs(1, 400, 20).T
    whole = similar_questions(student, question, 400, 20)[1]
    part = similar_questions(student, question, 400, 20, max_products=20_000)[1]
    assert (whole != part).any()
    # About 180 students are looked at; the cosine of independent halves is 1/2.
    np.testing.assert_allclose(part, 0.5, atol=0.15)


def test_one_question_has_no_neighbours() -> None:
    zero = np.zeros(1, np.int32)
    neighbours, similarity = similar_questions(zero, zero, 1, 1)
    assert neighbours.shape == similarity.shape == (1, 0)
    rows, nearest, near = next(
        iter(nearest_answers((zero, zero), (zero, zero), neighbours, similarity, 3))
    )
    assert rows.tolist() == [0] and (nearest == -1).all() and (near == 0).all()


@given(
    seed=st.integers(0, 1000),
    n_nearest=st.integers(1, 6),
    n_neighbours=st.integers(1, 9),
    max_cells=st.sampled_from([1, 30, 200, 10**6]),
)
def test_nearest_answers_are_the_students_answers_to_the_most_similar_questions(
    seed: int, n_nearest: int, n_neighbours: int, max_cells: int
) -> None:
    pairs = some_pairs(seed, 8, 10)
    student, question = pairs.T
    neighbours, similarity = similar_questions(student, question, 8, 10, n_neighbours=n_neighbours)
    known, asked = pairs[: len(pairs) // 2], pairs[len(pairs) // 2 :]
    place = {tuple(pair): i for i, pair in enumerate(known.tolist())}
    seen = []
    for rows, nearest, near in nearest_answers(
        (known[:, 0], known[:, 1]),
        (asked[:, 0], asked[:, 1]),
        neighbours,
        similarity,
        n_nearest,
        max_cells=max_cells,
    ):
        seen += rows.tolist()
        for row, found, how_near in zip(rows, nearest.tolist(), near.tolist(), strict=True):
            s, q = asked[row].tolist()
            expected = [
                (place[s, other], value)
                for other, value in zip(neighbours[q].tolist(), similarity[q].tolist(), strict=True)
                if (s, other) in place
            ][:n_nearest]
            expected += [(-1, 0.0)] * (n_nearest - len(expected))
            assert list(zip(found, how_near, strict=True)) == expected
    assert sorted(seen) == list(range(len(asked)))
