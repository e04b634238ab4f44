"""A fitted estimator comes back from a file as it was; other files are refused."""

import pickle
from pathlib import Path
from typing import Any

from common.errors import InputError
from common.item_response import ItemResponse, ItemResponseOptions

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from planted_contexts import TEST, TRAIN, fit, fit_options, groups, predict


@pytest.mark.parametrize("context_of", [lambda rows: None, groups], ids=["none", "two levels"])
def test_a_loaded_estimator_predicts_the_same(context_of: Any, tmp_path: Path) -> None:
    model = fit(TRAIN, context_of(TRAIN), n_steps=3, seed=4)
    model.save(tmp_path / "model.npz")
    loaded = ItemResponse.load(tmp_path / "model.npz")
    assert_array_equal(
        predict(loaded, TEST, context_of(TEST)), predict(model, TEST, context_of(TEST))
    )
    assert_array_equal(loaded.discrimination_, model.discrimination_)
    assert loaded.history_ == model.history_
    settings = "n_dimensions", "guessing", "seed", "n_steps"
    assert [getattr(loaded, name) for name in settings] == [2, 0.0, 4, 3]


def test_a_loaded_estimator_can_be_fitted_again_and_knows_new_students(tmp_path: Path) -> None:
    model = fit(TRAIN)
    model.save(str(tmp_path / "model.npz"))
    loaded = ItemResponse.load(str(tmp_path / "model.npz"))
    assert loaded.n_steps is None
    first = TRAIN[TRAIN.student == TRAIN.student.iloc[0]]
    arguments = first.student, first.question, first.is_right
    assert_array_equal(loaded.transform(*arguments).mean, model.transform(*arguments).mean)
    assert fit(TRAIN, start=loaded, n_steps=1).posterior_ is not None


@pytest.mark.parametrize("context_of", [lambda rows: None, groups], ids=["none", "two levels"])
def test_a_loaded_estimator_of_options_predicts_the_same(context_of: Any, tmp_path: Path) -> None:
    model = fit_options(TRAIN, context_of(TRAIN))
    model.save(tmp_path / "model.npz")
    loaded = ItemResponseOptions.load(tmp_path / "model.npz")
    # The fit has learned habits (preferences of a student for options) only if it was given
    # contexts.
    assert (loaded.habits_ is None) == (context_of(TRAIN) is None)
    pairs = TEST.student, TEST.question
    assert_array_equal(
        loaded.predict_proba(*pairs, context=context_of(TEST)),
        model.predict_proba(*pairs, context=context_of(TEST)),
    )


def test_an_estimator_of_options_is_not_one_of_right_and_wrong_answers(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    fit_options(TRAIN).save(path)
    with pytest.raises(InputError, match=r"expected an ItemResponse$"):
        ItemResponse.load(path)


def test_nothing_is_written_without_a_fit(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not fitted, call fit first"):
        ItemResponse().save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


def _write_other_arrays(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, weights=np.zeros(3))


def _write_later_version(path: Path) -> None:
    fit(TRAIN, n_steps=1).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    arrays["version"] = np.array(99)
    with path.open("wb") as file:
        np.savez(file, **arrays)


def _leave_out_an_array(path: Path) -> None:
    fit(TRAIN, n_steps=1).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    del arrays["guessing"]
    with path.open("wb") as file:
        np.savez(file, **arrays)


def _write_objects(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, format=np.array([{}], dtype=object))


def _cut_short(path: Path) -> None:
    fit(TRAIN, n_steps=1).save(path)
    path.write_bytes(path.read_bytes()[:-200])


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: None, "is no file, expected one that ItemResponse.save wrote"),
        (lambda path: path.write_bytes(b""), r"cannot be read \("),
        (lambda path: path.write_bytes(pickle.dumps([1])), r"cannot be read \("),
        (lambda path: path.write_text("QuestionId,UserId\n"), r"cannot be read \("),
        (_write_objects, r"cannot be read \("),
        (_cut_short, r"cannot be read \("),
        (_write_other_arrays, "holds other arrays"),
        (_write_later_version, "has version 99, expected 2; fit the model again"),
        (_leave_out_an_array, "lacks the array 'guessing'"),
    ],
)
def test_other_files_are_refused(write: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    write(path)
    with pytest.raises(InputError, match=message) as raised:
        ItemResponse.load(path)
    assert str(raised.value).startswith(f"{path}: ")


def test_a_file_of_options_without_one_of_their_arrays_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    student, question = np.divmod(np.arange(60), 6)
    option = 1 + (student + question) % 4
    ItemResponseOptions(1, n_steps=1).fit(student, question, option, np.full(60, 1)).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    del arrays["further_n_options"]
    np.savez(path, **arrays)
    with pytest.raises(InputError, match="lacks the array 'n_options'"):
        ItemResponseOptions.load(path)
