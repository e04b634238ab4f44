"""Files of fitted item response models, which one script writes and others read.

A file holds the record of how the model was fitted. So a script that reads it can tell whether the
model was fitted to the same answers.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

from common import cli, provenance, reading
from common.errors import InputError
from common.fingerprints import matches
from common.item_response import (
    DEFAULT_DIMENSIONS,
    ItemResponse,
    ItemResponseOptions,
    saved,
)
from common.item_response.base import BaseItemResponse
from common.origin import Origin, combine

# Seed of a fit without the flag --seed.
_DEFAULT_SEED = 0


@dataclass(frozen=True)
class FoundModel:
    """A model of right and wrong answers, from a fit or from a file."""

    # An estimator without contexts.
    model: ItemResponse
    # Whether the model was fitted with contexts, such as quizzes.
    had_contexts: bool
    # A text for a page: which answers the model was fitted to, and from which file it was read.
    source: str
    # Whether the answers, and all other files from which the model was made, are official,
    # simulated or of unknown origin.
    origin: Origin


def add_save_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag that names the file to which the fitted model is written."""
    help_text = "write the fitted model to FILE (.npz) as well"
    parser.add_argument("--save_model", type=Path, metavar="FILE", help=help_text)


def add_fit_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags for the settings of a fit, and a flag for a fitted model to be read instead."""
    help_text = "a model of these answers that a script wrote with --save_model"
    parser.add_argument("--model", type=Path, metavar="FILE", help=help_text)
    help_text = "abilities of a student, without --model"
    default = str(DEFAULT_DIMENSIONS)
    cli.add_optional_number(parser, "--dimensions", default, help_text, parse=cli.count)
    default = str(_DEFAULT_SEED)
    cli.add_optional_number(parser, "--seed", default, "without --model", parse=cli.seed)


def refuse_model_with_settings(options: argparse.Namespace) -> None:
    """Raise `InputError` if the flags name both a fitted model and settings of a fit."""
    if options.model is None:
        return
    for flag in ("--dimensions", "--seed"):
        if getattr(options, flag.removeprefix("--")) is not None:
            raise InputError(
                f"{flag}: is a setting of a fit, but --model takes the place of a fit; leave out "
                f"{flag} or --model"
            )


def new_model(options: argparse.Namespace) -> ItemResponse:
    """Return an estimator that is not fitted yet, with the settings that the flags name."""
    n_dimensions = DEFAULT_DIMENSIONS if options.dimensions is None else options.dimensions
    seed = _DEFAULT_SEED if options.seed is None else options.seed
    return ItemResponse(n_dimensions, seed=seed)


def write_model(model: BaseItemResponse, path: Path | None) -> None:
    """Write a fitted model and the record of this run to `path`; do nothing if `path` is None."""
    if path is None:
        return
    model.save(path, record=provenance.this_process(path.parent).as_json().decode())
    print(f"written: {cli.show(path)} (the fitted model)")


def read_model(path: Path, train: Path) -> FoundModel:
    """Read a model that was fitted to the answers in the file `train`.

    The model is returned in its simplest form: as a model of right and wrong answers, even if it
    was fitted to the options chosen, and without contexts such as quizzes.

    The records of the files that this process writes will name the model file, and what the model
    was made from.

    Raises
    ------
    InputError
        If the file is no model, is of another version, or was not fitted to these answers.
    """
    reading.require_file(path)
    provenance.note_source(path)
    content = saved.read(path)
    # The record says how the model was made: from which files, and by which command.
    record = provenance.parse(content.record)
    if record is None:
        raise InputError(
            f"{path}: does not say to which answers it was fitted, expected a file that a script "
            "has written with --save_model"
        )
    # The record holds the fingerprints of the files that the model was fitted to.
    if not any(matches(train, fingerprint) for fingerprint in record.made_from.values()):
        raise InputError(
            f"{path}: was not fitted to {train}, or that has changed since; it was written by "
            f"`{record.command}`"
        )
    # The records of files that this process writes will also name the files from which the model
    # was made. `record` lists them.
    provenance.note_part(record, path.parent)
    # Whether the model was fitted with contexts. Find this out now, since `model` below has none.
    had_contexts = bool(content.posterior.levels)
    # Make an estimator of the class that wrote the file, then turn it into an estimator of right
    # and wrong answers without contexts.
    if content.estimator == ItemResponseOptions.__name__:
        # `right_or_wrong` also leaves out the contexts.
        model = saved.restore(path, content, ItemResponseOptions.from_saved).right_or_wrong()
    else:
        model = saved.restore(path, content, ItemResponse.from_saved).without_contexts()
    early = ", which was stopped early" if record.interrupted else ""
    # This text says on a page where its model comes from.
    source = (
        f"{cli.show(train)}, with the model {cli.show(path)}, written by {record.command}{early}"
    )
    # The origin of the training answers and of the model: official, simulated or unknown.
    origin = combine([provenance.origin_of(train), record.origin])
    return FoundModel(model, had_contexts, source, origin)
