"""Find out how the weights of an entry (task 4) were made, and what that means for its score.

`replace_weights` leaves a record beside the weights. A zip that was made by hand may lack the
record. Then the contents of its files tell which package of the kit they come from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common import layout, provenance, source_code
from common.adaptive import entry_files
from common.adaptive.weights import TRAINER, TRAINING, read_record
from common.arrays import IntArray
from common.errors import InputError, printable
from common.evaluation import entry_origin
from common.evaluation.doubt import EARLIER_CODE, Doubt
from common.evaluation.entry_origin import UNKNOWN_SOURCES
from common.fingerprints import Fingerprint
from common.provenance import Provenance
from common.tasks import TASK_4

import numpy as np

# A warning about files of an entry names at most this many of them.
_N_NAMED = 3


@dataclass(frozen=True)
class WeightsOrigin:
    """How the weights of an entry were made, as far as it is known."""

    # The record of the training. None if no record is known, or the entry has no weights.
    record: Provenance | None
    # UserIds that the weights are trained on; None if they are not known.
    students: IntArray | None
    # Names of the entry's files that may be weights and that no record names.
    unknown_files: tuple[str, ...]
    # If a package of the kit has exactly the same weights, the record of its training; else None.
    kit_record: Provenance | None = None


@dataclass(frozen=True)
class _FilesFromPackage:
    """Files of an entry that have the same content as files of weights in a package of the kit."""

    # Names of the entry's files.
    names: set[str]
    # The record of the training in the package.
    record: Provenance
    # UserIds that the package's weights are trained on.
    students: IntArray


def find_weights_origin(submission: Path) -> WeightsOrigin:
    """Return how the weights of an entry were made.

    An entry may have a record of the training in a file beside the weights, and a list of the
    students that the weights are trained on. Only with this list does the record count as complete.

    A complete record says how the weights that it names were made. All other weights are compared
    with the weights of the kit's packages. If they are equal to weights of a package, the package's
    record says how they were made.

    Raises
    ------
    InputError
        If the list of students beside the weights is damaged.
    """
    own_record = provenance.parse(entry_files.read_entry_file(submission, TRAINING) or b"")
    own_students = entry_files.read_trained_students(submission)
    complete_record = None if own_students is None else own_record
    if complete_record is not None and not (complete_record.files or complete_record.time):
        # This record has no time and names no files of weights, because an earlier version of the
        # kit wrote it. So it counts as the record of all weights of the entry.
        return WeightsOrigin(complete_record, own_students, ())
    record_of_package = _read_records_of_kit()
    records = list(record_of_package.values())
    if own_record is not None:
        records.append(own_record)
    # The fingerprint of each of the entry's files that may hold weights. It is None if no record
    # names a file of the same size: the file need not be read then.
    fingerprints = entry_files.fingerprint_data(submission, _sizes_of_files(records))
    # First find the files that the entry's own record names. Then look for the other files in the
    # packages of the kit.
    own_files: set[str] = set()
    if complete_record is not None:
        own_files = _names_of_recorded(complete_record, fingerprints)
    unknown = set(fingerprints) - own_files
    from_packages = _find_in_packages(unknown, fingerprints, record_of_package)

    students = own_students
    for found in from_packages:
        unknown -= found.names
        students = found.students if students is None else np.union1d(students, found.students)
    record = own_record
    if from_packages and complete_record is None:
        record = from_packages[0].record
    # If a package of the kit has exactly the same weights, find the record of its training.
    kit_record = None
    if own_files:
        contents = [fingerprints[name] for name in own_files]
        kit_record = _find_record_of_all(contents, record_of_package.values())
    elif from_packages:
        kit_record = from_packages[0].record
    return WeightsOrigin(record, students, tuple(sorted(unknown)), kit_record)


def _find_in_packages(
    names: Collection[str],
    fingerprints: Mapping[str, Fingerprint | None],
    record_of_package: Mapping[Path, Provenance],
) -> list[_FilesFromPackage]:
    """Find the files of an entry that are equal to weights of the kit's packages.

    Only the entry's files in `names` are looked up. `fingerprints` holds the fingerprint of each of
    the entry's files. If several packages have a file that is equal, the file counts as a file of
    the first of these packages. A package without a valid list of its training students is skipped.
    """
    from_packages = []
    not_yet_found = set(names)
    for package, record in record_of_package.items():
        found = _names_of_recorded(record, fingerprints) & not_yet_found
        if not found:
            continue
        students = read_students_if_valid(package)
        if students is not None:
            from_packages.append(_FilesFromPackage(found, record, students))
            not_yet_found -= found
    return from_packages


def _read_records_of_kit() -> dict[Path, Provenance]:
    """Return the valid records of training in the kit's packages, by the package's folder."""
    records = {}
    for path in sorted(TASK_4.folder.glob(f"*/{TRAINING}")):
        record = read_record(path.parent)
        if record is not None:
            records[path.parent] = record
    return records


def _names_of_recorded(
    record: Provenance, fingerprint_by_name: Mapping[str, Fingerprint | None]
) -> set[str]:
    """Return the names of those files whose content a record lists, under this or another name."""
    recorded = record.files.values()
    return {name for name, content in fingerprint_by_name.items() if content in recorded}


def _find_record_of_all(
    contents: Collection[Fingerprint | None], records: Iterable[Provenance]
) -> Provenance | None:
    """Return the first record that names the contents of all files; None if no record does.

    It is not enough that a record names one of the files: some files of weights do not depend on
    the training answers, so they are equal in several trainings.
    """
    for record in records:
        recorded = record.files.values()
        if all(content in recorded for content in contents):
            return record
    return None


def _sizes_of_files(records: Iterable[Provenance]) -> set[int]:
    """Return the sizes of all files that records name, in bytes."""
    sizes = set()
    for record in records:
        for fingerprint in record.files.values():
            # In a damaged record, values may be of any type.
            size = fingerprint.get("bytes") if isinstance(fingerprint, Mapping) else None
            if isinstance(size, int):
                sizes.add(size)
    return sizes


def read_students_if_valid(package: Path) -> IntArray | None:
    """Return the UserIds that a package's weights are trained on; None if there is no valid list.

    A damaged list is no error here. It is reported when the package is evaluated.
    """
    try:
        return entry_files.read_trained_students(package)
    except InputError:
        return None


def judge_weights(entry: Path, origin: WeightsOrigin) -> list[Doubt]:
    """Return the doubts that the origin of an entry's weights raises about the entry's score.

    A doubt is a reason why the score may be wrong. The record of weights that were trained in this
    kit is compared with the present data and code of the kit. The weights of a zip, or of a folder
    outside the kit, may have been trained elsewhere, with other data and code. Their record is
    compared only if a package of the kit has exactly the same weights.

    Parameters
    ----------
    entry
        The folder or zip that the user has named. A copy of it may have been played.
    origin
        How the weights that were played were made.

    Raises
    ------
    InputError
        If weights of this kit are played and their training data have changed since.
    """
    doubts = []
    if origin.unknown_files:
        names = _join_names(origin.unknown_files)
        sentence = f"{UNKNOWN_SOURCES.mark}: no record of training names {names}"
        doubts.append(Doubt(UNKNOWN_SOURCES.mark, sentence))
    is_in_kit = entry.is_dir() and entry.resolve().is_relative_to(layout.ROOT)
    # The record of the training, if the weights were trained in this kit; else None. The weights of
    # a zip, or of a folder outside the kit, were trained in the kit if a package of the kit has
    # exactly the same weights: `origin.kit_record` is then the record of this package.
    record_in_kit = origin.record if is_in_kit else origin.kit_record
    if record_in_kit is not None:
        _require_same_sources(entry, record_in_kit)
        doubts += find_training_doubts(entry, record_in_kit)
    elif origin.record is not None:
        # The weights may have been trained elsewhere, with other code. Remove the fingerprint of
        # the code from the record, so that it is not compared with the code of this kit.
        record_without_code = replace(origin.record, code="")
        doubts += find_training_doubts(entry, record_without_code)
    return doubts


def _require_same_sources(entry: Path, record: Provenance) -> None:
    """Raise `InputError` if a training file of an entry's weights changed after the training."""
    # In the record, the paths of the training files are relative to the folder of the script that
    # trained the weights.
    folder = (layout.ROOT / record.script).parent
    shown_record = replace(record, script=provenance.show_path(_find_trainer(entry, record)))
    entry_origin.require_same_sources(entry, shown_record, folder)


def find_training_doubts(entry: Path, record: Provenance) -> list[Doubt]:
    """Return the doubts about the training of an entry's weights.

    There is a doubt if the training was interrupted, if the code that trains changed during the
    training, or if it has changed after the training. A change after the training is found only if
    the record has a fingerprint of the code, `record.code`.
    """
    trainer = _find_trainer(entry, record)
    shown_trainer = provenance.show_path(trainer)
    # The sentences of doubts take the name of the script from the record. Put the entry's trainer,
    # the script that trains its weights, into the record.
    doubts = entry_origin.doubts_of_run(replace(record, script=shown_trainer))
    if record.code_changed:
        # The code changed during the training, so `doubts` holds a doubt about the code already. A
        # second doubt, about changes after the training, would add nothing.
        return doubts
    can_compare = record.code and trainer.is_file()
    if can_compare and source_code.fingerprint(trainer) != record.code:
        sentence = (
            f"{printable(shown_trainer)} or a file that it imports has changed since it trained "
            "the weights: train them again to score the code as it is"
        )
        doubts.append(Doubt(EARLIER_CODE, sentence))
    return doubts


def _find_trainer(entry: Path, record: Provenance) -> Path:
    """Return the script that trains an entry's weights.

    This is the trainer in the entry's folder or, without one, the script that the record names.
    """
    beside = entry / TRAINER
    return beside if beside.is_file() else layout.ROOT / record.script


def _join_names(names: Sequence[str]) -> str:
    """Return at most `_N_NAMED` names of files as text, and how many more there are."""
    shown = ", ".join(map(printable, names[:_N_NAMED]))
    n_more = len(names) - _N_NAMED
    return f"{shown} and {n_more} more" if n_more > 0 else shown
