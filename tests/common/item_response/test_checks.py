"""Arguments of the estimators: a wrong one is refused, and different types of ids are accepted."""

from typing import Any

from common.errors import InputError
from common.item_response import ItemResponse, ItemResponseOptions

import numpy as np
import pytest

STUDENT = [1, 1, 2]
QUESTION = [5, 6, 5]
RIGHT = [1, 0, 1]
OPTION = [1, 2, 3]
RIGHT_OPTION = [1, 4, 3]

# Error messages, and the settings that cause them.
SETTINGS = {
    "n_dimensions is 0, expected at least 1": {"n_dimensions": 0},
    "n_dimensions is 2.5, expected a whole number": {"n_dimensions": 2.5},
    "guessing is 1.0, expected 0 to 0.9": {"guessing": 1.0},
    "guessing is nan, expected 0 to 0.9": {"guessing": float("nan")},
    "seed is -1, expected at least 0": {"seed": -1},
    "n_steps is 0, expected at least 1": {"n_steps": 0},
}


@pytest.mark.parametrize("message", SETTINGS)
@pytest.mark.parametrize("estimator", [ItemResponse, ItemResponseOptions])
def test_settings_out_of_range_are_refused(estimator: Any, message: str) -> None:
    outcomes = [RIGHT] if estimator is ItemResponse else [OPTION, RIGHT_OPTION]
    with pytest.raises(InputError) as error:
        estimator(**SETTINGS[message]).fit(STUDENT, QUESTION, *outcomes)
    assert str(error.value) == message


# Error messages, and the arguments of `fit` that cause them.
ANSWERS: dict[str, dict[str, Any]] = {
    "student has shape (1, 3), expected one dimension": {"student": [STUDENT]},
    "student has dtype float64, expected whole numbers": {"student": [1.0, 1.0, 2.0]},
    "student holds -7 at position 2, expected at least 0": {"student": [1, 1, -7]},
    "question has 2 values, expected 3, as student has": {"question": [5, 6]},
    "question has dtype <U1, expected whole numbers": {"question": ["a", "b", "c"]},
    "is_correct holds 2 at position 1, expected 0 to 1": {"is_correct": [1, 2, 0]},
    "is_correct has 4 values, expected 3, as student has": {"is_correct": [1, 0, 1, 1]},
    "is_correct has dtype float64, expected whole numbers": {"is_correct": [1.0, 0.0, 1.0]},
    "context has shape (2, 1), expected (3, levels), one row for each answer, pair or question": {
        "context": [[1], [2]]
    },
    "context holds -1 at position 1, expected at least 0": {"context": [[0, 4], [3, -1], [2, 2]]},
}


@pytest.mark.parametrize("message", ANSWERS)
def test_wrong_answers_are_refused(message: str) -> None:
    answers = {"student": STUDENT, "question": QUESTION, "is_correct": RIGHT, **ANSWERS[message]}
    with pytest.raises(InputError) as error:
        ItemResponse().fit(**answers)
    assert str(error.value) == message


@pytest.mark.parametrize("name", ["option", "correct_option"])
def test_options_are_1_to_4(name: str) -> None:
    answers: dict[str, Any] = {"option": OPTION, "correct_option": RIGHT_OPTION, name: [1, 0, 4]}
    with pytest.raises(InputError) as error:
        ItemResponseOptions().fit(STUDENT, QUESTION, **answers)
    assert str(error.value) == f"{name} holds 0 at position 1, expected 1 to 4"


@pytest.mark.parametrize("estimator", [ItemResponse, ItemResponseOptions])
def test_no_answers_are_refused(estimator: Any) -> None:
    nothing = np.zeros(0, int)
    outcomes = [nothing] if estimator is ItemResponse else [nothing, nothing]
    with pytest.raises(InputError, match="there are no answers to learn from"):
        estimator().fit(nothing, nothing, *outcomes)


@pytest.mark.parametrize("estimator", [ItemResponse, ItemResponseOptions])
def test_predicting_before_fitting_is_refused(estimator: Any) -> None:
    with pytest.raises(InputError, match=f"this {estimator.__name__} is not fitted, call fit"):
        estimator().predict_proba(STUDENT, QUESTION)


def test_pairs_without_contexts_are_refused_if_answers_had_contexts() -> None:
    model = ItemResponse(n_steps=1).fit(STUDENT, QUESTION, RIGHT, context=[1, 1, 2])
    with pytest.raises(InputError, match="had contexts, expected those of the pairs as well"):
        model.predict_proba(STUDENT, QUESTION)


def test_pairs_with_other_levels_of_contexts_than_answers_are_refused() -> None:
    model = ItemResponse(n_steps=1).fit(STUDENT, QUESTION, RIGHT)
    with pytest.raises(InputError, match="context has 1 levels, expected 0, as the fit had"):
        model.predict_proba(STUDENT, QUESTION, context=[1, 1, 2])


def test_a_start_with_other_dimensions_is_refused() -> None:
    start = ItemResponse(n_dimensions=2, n_steps=1).fit(STUDENT, QUESTION, RIGHT)
    with pytest.raises(InputError, match="start has 2 dimensions, expected 3"):
        ItemResponse(n_dimensions=3).fit(STUDENT, QUESTION, RIGHT, start=start)


def test_a_start_with_other_levels_of_contexts_is_refused() -> None:
    start = ItemResponse(n_dimensions=2, n_steps=1).fit(STUDENT, QUESTION, RIGHT)
    with pytest.raises(InputError, match="start has 0 levels of contexts, expected 1"):
        ItemResponse(n_dimensions=2).fit(STUDENT, QUESTION, RIGHT, start=start, context=[1, 1, 2])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_the_integer_type_of_ids_changes_no_prediction(dtype: Any) -> None:
    """Predictions are the same if the ids 0, 3, 7 and a high one are replaced by 0, 1, 2 and 3.

    The high id is the largest one of the type, or 2**62 for types of 64 bits. It must not overflow.
    """
    high = min(int(np.iinfo(dtype).max), 2**62)
    is_correct = [1, 0, 1, 0]

    def fit_and_predict(ids: list[int], id_type: Any) -> np.ndarray:
        """Fit four answers of students, questions and contexts with these four ids; predict them.

        `ids` are four increasing ids, of the type `id_type`.
        """
        id_0, id_3, id_7, id_high = ids
        student = np.array([id_0, id_high, id_high, id_7], id_type)
        question = np.array([id_3, id_3, id_high, id_high], id_type)
        context = np.array([id_high, id_0, id_high, id_0], id_type)
        model = ItemResponse(n_steps=2).fit(student, question, is_correct, context=context)
        return model.predict_proba(student, question, context=context)

    predicted = fit_and_predict([0, 3, 7, high], dtype)
    expected = fit_and_predict([0, 1, 2, 3], int)
    np.testing.assert_array_equal(predicted, expected)


def test_right_and_wrong_may_be_booleans() -> None:
    numbers = ItemResponse(n_steps=1).fit(STUDENT, QUESTION, RIGHT)
    booleans = ItemResponse(n_steps=1).fit(STUDENT, QUESTION, np.array(RIGHT, bool))
    np.testing.assert_array_equal(
        numbers.predict_proba(STUDENT, QUESTION), booleans.predict_proba(STUDENT, QUESTION)
    )


def test_a_single_level_of_contexts_may_be_a_vector() -> None:
    vector = ItemResponse(n_steps=2).fit(STUDENT, QUESTION, RIGHT, context=[1, 1, 2])
    column = ItemResponse(n_steps=2).fit(STUDENT, QUESTION, RIGHT, context=[[1], [1], [2]])
    np.testing.assert_array_equal(
        vector.predict_proba(STUDENT, QUESTION, context=[1, 1, 2]),
        column.predict_proba(STUDENT, QUESTION, context=[[1], [1], [2]]),
    )
