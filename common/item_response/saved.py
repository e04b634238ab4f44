"""Save a fitted estimator to a file of NumPy arrays, and load it; no pickle is involved."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from common.errors import InputError
from common.item_response.context import Level, SharedEffects
from common.item_response.fitting import HeldOutScore, Settings
from common.item_response.model import Gaussians
from common.item_response.steps import Posterior
from common.run_log import ignore_event
from common.writing import atomic_write, require_writable

import numpy as np
import numpy.typing as npt

_FORMAT = "item response estimator"
# The version of the file format. `read` refuses a file of another version. Increase this number
# whenever the arrays of a file change.
_VERSION = 2

# In a file, the names of the arrays that only one class of estimator has begin with this prefix.
_CLASS_PREFIX = "further_"

Arrays = dict[str, npt.NDArray[Any]]
Estimator = TypeVar("Estimator")


@dataclass(frozen=True)
class SavedEstimator:
    """The content of a file: a fitted estimator."""

    # Name of the estimator's class: ItemResponse or ItemResponseOptions.
    estimator: str
    posterior: Posterior
    history: list[HeldOutScore]
    settings: Settings
    # The context of an answer is, for instance, the quiz in which it was given. Contexts may be
    # nested in several levels (see MODEL.md). This is the number of levels in the training answers.
    # The fit has used either all of them or none: `posterior.levels` holds those that it used.
    n_levels: int
    # Arrays that only estimators of this class have. The keys are the names of the arrays.
    class_arrays: Arrays
    # A note on how the file was made, which the caller gave when saving; "" if none was given.
    record: str


def write(path: Path, saved: SavedEstimator) -> None:
    """Write a fitted estimator to `path`. If writing fails, `path` stays as it was."""
    posterior = saved.posterior
    settings = saved.settings
    scores = [(score.loss, score.accuracy) for score in saved.history]
    # The array gets the columns loss and accuracy even if there are no scores, and so no rows.
    history = np.array(scores).reshape(-1, 2)
    arrays: Arrays = {
        "format": np.array(_FORMAT),
        "version": np.array(_VERSION),
        "estimator": np.array(saved.estimator),
        "record": np.array(saved.record),
        "n_dimensions": np.array(settings.n_dimensions),
        # The guessing probability in the settings of the fit, a single number. The array "guessing"
        # below has a number for each item.
        "guessing_setting": np.array(settings.guessing),
        "n_levels": np.array(saved.n_levels),
        "seed": np.array(settings.seed),
        # None in the settings means that the fit chooses the number of steps. The file has -1 then.
        "n_steps": np.array(-1 if settings.n_steps is None else settings.n_steps),
        "history": history,
        "guessing": posterior.guessing,
        "variance": posterior.variance,
        # A shared effect of a context is the same for all students. The effects on single students
        # are added below, as effects_0, effects_1 and so on.
        "shared_mean": posterior.shared.mean,
        "shared_variance": posterior.shared.variance,
        "shared_prior": posterior.shared.prior,
        "student_ids": posterior.student_ids,
        "question_ids": posterior.question_ids,
        **_from_gaussians("students", posterior.students),
        **_from_gaussians("items", posterior.items),
        **_from_gaussians("prior", posterior.prior),
        **from_levels("level", posterior.levels),
    }
    for number in range(len(posterior.levels)):
        arrays[f"effects_{number}"] = posterior.effects[number]
        arrays[f"context_ids_{number}"] = posterior.context_ids[number]
    # Without the prefix, an array of the class could have the name of an array above.
    for name, array in saved.class_arrays.items():
        arrays[f"{_CLASS_PREFIX}{name}"] = array
    require_writable(path)
    with atomic_write(path) as (file,):
        np.savez(file, **arrays)  # type: ignore[arg-type]


def read(path: Path) -> SavedEstimator:
    """Read a fitted estimator that `write` wrote, or raise `InputError` for another file."""
    arrays = _read_arrays(path)
    try:
        return _from_arrays(arrays)
    except KeyError as error:
        raise _lacks(path, error) from None


def _lacks(path: Path, name: object) -> InputError:
    """Return the error of a file that lacks an array."""
    return InputError(f"{path}: lacks the array {name}, expected a file that `save` wrote")


def restore(
    path: Path, content: SavedEstimator, from_saved: Callable[[SavedEstimator], Estimator]
) -> Estimator:
    """Call `from_saved` to turn the content of the file `path` into an estimator.

    Raises `InputError` if the file lacks an array that the estimator's class needs.
    """
    try:
        return from_saved(content)
    except KeyError as error:
        raise _lacks(path, error) from None


def _from_arrays(arrays: Arrays) -> SavedEstimator:
    """Return the estimator that the arrays of a file describe.

    Raises `KeyError` if an array is missing.
    """
    # None means that the fit chooses the number of steps. `write` writes −1 in its place.
    n_steps = int(arrays["n_steps"])
    settings = Settings(
        n_dimensions=int(arrays["n_dimensions"]),
        guessing=float(arrays["guessing_setting"]),
        seed=int(arrays["seed"]),
        n_steps=None if n_steps == -1 else n_steps,
        log_event=ignore_event,
    )
    history = [HeldOutScore(*score) for score in arrays["history"].tolist()]
    # The number of levels of contexts that the fit has used: all levels of its answers (`n_levels`
    # in the file), or 0. The array "variance" has a row for each used level.
    n_used_levels = len(arrays["variance"])
    posterior = Posterior(
        students=_to_gaussians("students", arrays),
        items=_to_gaussians("items", arrays),
        prior=_to_gaussians("prior", arrays),
        guessing=arrays["guessing"],
        effects=tuple(arrays[f"effects_{number}"] for number in range(n_used_levels)),
        variance=arrays["variance"],
        shared=SharedEffects(
            mean=arrays["shared_mean"],
            variance=arrays["shared_variance"],
            prior=arrays["shared_prior"],
        ),
        student_ids=arrays["student_ids"],
        question_ids=arrays["question_ids"],
        context_ids=tuple(arrays[f"context_ids_{number}"] for number in range(n_used_levels)),
        levels=to_levels("level", arrays, n_used_levels),
    )
    class_arrays = {
        name.removeprefix(_CLASS_PREFIX): array
        for name, array in arrays.items()
        if name.startswith(_CLASS_PREFIX)
    }
    return SavedEstimator(
        estimator=str(arrays["estimator"]),
        posterior=posterior,
        history=history,
        settings=settings,
        n_levels=int(arrays["n_levels"]),
        class_arrays=class_arrays,
        record=str(arrays["record"]),
    )


def _read_arrays(path: Path) -> Arrays:
    """Read the arrays of a file, or raise `InputError`, for instance if it has another version."""
    if not path.is_file():
        raise InputError(f"{path}: is no file, expected one that ItemResponse.save wrote")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception as error:
        # If a file is damaged, zipfile and NumPy raise exceptions of many types.
        raise InputError(
            f"{path}: cannot be read ({error}), expected a file that ItemResponse.save wrote"
        ) from error
    if "format" not in arrays or str(arrays["format"]) != _FORMAT:
        raise InputError(f"{path}: holds other arrays, expected those that ItemResponse.save wrote")
    if int(arrays["version"]) != _VERSION:
        raise InputError(
            f"{path}: has version {arrays['version']}, expected {_VERSION}; fit the model again"
        )
    return arrays


def _from_gaussians(name: str, vectors: Gaussians) -> Arrays:
    return {f"{name}_mean": vectors.mean, f"{name}_covariance": vectors.covariance}


def _to_gaussians(name: str, arrays: Arrays) -> Gaussians:
    return Gaussians(arrays[f"{name}_mean"], arrays[f"{name}_covariance"])


def from_levels(name: str, levels: tuple[Level, ...]) -> Arrays:
    """Return the levels of contexts as arrays for a file; each array's name begins with `name`."""
    arrays: Arrays = {}
    for number, level in enumerate(levels):
        arrays[f"{name}_{number}_start"] = level.start
        arrays[f"{name}_{number}_parent"] = level.parent
        arrays[f"{name}_{number}_label"] = level.label
    return arrays


def to_levels(name: str, arrays: Arrays, n_levels: int) -> tuple[Level, ...]:
    """Make the levels of contexts again from the arrays that `from_levels` has returned."""
    levels = []
    for number in range(n_levels):
        start = arrays[f"{name}_{number}_start"]
        parent = arrays[f"{name}_{number}_parent"]
        levels.append(Level(start, parent, arrays[f"{name}_{number}_label"]))
    return tuple(levels)
