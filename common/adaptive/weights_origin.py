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

# Largest number of files that a doubt names.
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
    # If a package of the kit has the very same weights: the record of their training in that
    # package. Otherwise None.
    kit_record: Provenance | None = None


def find_weights_origin(submission: Path) -> WeightsOrigin:
    """Return how the weights of an entry were made.

    The record of the training beside the weights says how. Files that this record does not name are
    looked up, by their content, in the records of training of the kit's packages.

    Raises
    ------
    InputError
        If the list of students beside the weights is damaged.
    """
    record = provenance.parse(entry_files.read_entry_file(submission, TRAINING) or b"")
    students = entry_files.read_trained_students(submission)
    is_recorded = record is not None and students is not None
    if record is not None and is_recorded and not (record.files or record.time):
        # Earlier versions of the kit recorded neither the time nor the files of weights.
        return WeightsOrigin(record, students, ())
    record_of_package = _read_records_of_kit()
    records = list(record_of_package.values())
    if record is not None:
        records.append(record)
    # Only files of the recorded sizes can be in a record, so no others need be read.
    fingerprints = entry_files.fingerprint_data(submission, _sizes_of_files(records))
    # The files that the entry's own record names, and the files that no record has named so far.
    recorded: set[str] = set()
    if record is not None and is_recorded:
        recorded = _names_of_recorded(record, fingerprints)
    unknown = set(fingerprints) - recorded
    recorded_contents = [fingerprints[name] for name in recorded]
    kit_record = _find_record_of_all(recorded_contents, record_of_package.values())
    for package, package_record in record_of_package.items():
        from_package = _names_of_recorded(package_record, fingerprints) & unknown
        if not from_package:
            continue
        package_students = read_students_if_valid(package)
        if package_students is None:
            continue
        unknown -= from_package
        students = package_students if students is None else np.union1d(students, package_students)
        # The package's record stands for a record that the entry lacks.
        if not is_recorded:
            record = package_record
            is_recorded = True
        if kit_record is None and not recorded:
            kit_record = package_record
    return WeightsOrigin(record, students, tuple(sorted(unknown)), kit_record)


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
    """Return the names of the files that a record lists with the same content.

    A file may have another name in the record.
    """
    recorded = record.files.values()
    return {name for name, content in fingerprint_by_name.items() if content in recorded}


def _find_record_of_all(
    contents: Collection[Fingerprint | None], records: Iterable[Provenance]
) -> Provenance | None:
    """Return the first record that names the contents of all files; None if no record does.

    Returns None if there are no files. One equal file is not enough: some files of weights do not
    depend on the answers.
    """
    if not contents:
        return None
    for record in records:
        recorded = record.files.values()
        if all(content in recorded for content in contents):
            return record
    return None


def _sizes_of_files(records: Iterable[Provenance]) -> set[int]:
    """Return the sizes of all files that records name, in bytes."""
    sizes = set()
    for record in records:
        for known in record.files.values():
            # A damaged record may hold anything.
            size = known.get("bytes") if isinstance(known, Mapping) else None
            if isinstance(size, int):
                sizes.add(size)
    return sizes


def read_students_if_valid(package: Path) -> IntArray | None:
    """Return the UserIds that weights are trained on; None if they are not recorded or damaged.

    The evaluation reports a damaged record.
    """
    try:
        return entry_files.read_trained_students(package)
    except InputError:
        return None


def judge_weights(entry: Path, origin: WeightsOrigin) -> list[Doubt]:
    """Return the doubts that the origin of an entry's weights raises about the entry's score.

    The weights of a zip, or of a folder outside the kit, may have been trained elsewhere, with
    other data and code. The record of such weights is not compared with the files of this kit.

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
    comparable_record = origin.record if is_in_kit else origin.kit_record
    if comparable_record is not None:
        _require_same_sources(entry, comparable_record)
        doubts += find_training_doubts(entry, comparable_record)
    elif origin.record is not None:
        # Without `code`, the code is not compared.
        doubts += find_training_doubts(entry, replace(origin.record, code=""))
    return doubts


def _require_same_sources(entry: Path, record: Provenance) -> None:
    """Raise `InputError` if a training file of an entry's weights has changed since."""
    # The paths of the sources are relative to the folder where the script ran.
    folder = (layout.ROOT / record.script).parent
    shown_record = replace(record, script=provenance.show_path(_find_trainer(entry, record)))
    entry_origin.require_same_sources(entry, shown_record, folder)


def find_training_doubts(entry: Path, record: Provenance) -> list[Doubt]:
    """Return the doubts that the record of the training of an entry's weights raises by itself."""
    trainer = _find_trainer(entry, record)
    shown_trainer = provenance.show_path(trainer)
    doubts = entry_origin.doubts_of_run(replace(record, script=shown_trainer))
    is_comparable = record.code and trainer.is_file() and not record.code_changed
    if is_comparable and source_code.fingerprint(trainer) != record.code:
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
    """Return names of files as text, at most `_N_NAMED` of them."""
    shown = ", ".join(map(printable, names[:_N_NAMED]))
    n_more = len(names) - _N_NAMED
    return f"{shown} and {n_more} more" if n_more > 0 else shown
