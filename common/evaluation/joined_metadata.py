"""Find metadata that belong to other data than the answers that they are joined to.

Ids of two simulations, or of a simulation and of real students, name different students and
questions. Joining them raises no error, but what comes of it means nothing.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from common import cli, fingerprints, layout, provenance, reading, schema
from common.errors import InputError
from common.evaluation.doubt import Doubt
from common.origin import Origin
from common.tasks import TASKS

# The names of all metadata files.
NAMES = frozenset(
    [layout.SUBJECT_METADATA, *(name for task in TASKS.values() for name in task.data.metadata)]
)


def find_doubts(answers: Iterable[Path], metadata: Iterable[Path], consequence: str) -> list[Doubt]:
    """Return a doubt if metadata files belong to other data than the answers.

    Parameters
    ----------
    answers
        Files of which the first one that holds answers of students counts: a panel of task 3, for
        instance, holds none.
    metadata
        Metadata files, or other files, which are ignored.
    consequence
        What the doubt means for the score, as the end of a sentence.
    """
    paths = [path for path in metadata if path.name in NAMES and path.is_file()]
    if not paths:
        return []
    reference = next(filter(_holds_answers, answers), None)
    foreign = [] if reference is None else find_foreign(reference, paths)
    if not foreign:
        return []
    names = ", ".join(cli.show(path.resolve()) for path in foreign)
    return [
        Doubt(
            mark="metadata of other data",
            sentence=f"metadata of other data than the answers: {names}; {consequence}",
        )
    ]


def find_foreign(reference: Path, metadata: Sequence[Path]) -> list[Path]:
    """Return the metadata files that belong to other data than the answers.

    These are metadata of another simulation than the answers, simulated metadata if the answers are
    not simulated, and metadata that are not simulated if the answers are.
    """
    # The data folders whose markers may know one of the files.
    folders: dict[Path, None] = {}
    for path in (reference, *metadata):
        folders.update(dict.fromkeys(fingerprints.data_folders(path)))
    markers = filter(None, map(fingerprints.read_marker, folders))
    # For each simulation: its marker, and whether the answers come from this simulation.
    simulations = [(marker, _knows_answers(marker, reference)) for marker in markers]
    is_simulation_known = any(knows_answers for _, knows_answers in simulations)
    answers_are_simulated = provenance.origin_of(reference) is Origin.SIMULATED
    foreign = []
    for path in metadata:
        known = provenance.fingerprint_of_source(path)
        # For each simulation that has written this metadata file: whether the answers come from it.
        wrote_answers_too = [
            knows_answers
            for marker, knows_answers in simulations
            if known in marker["files"].values()
            or fingerprints.is_listed(path, marker["files"].values())
        ]
        if not wrote_answers_too:
            # No simulation in these folders has written the metadata, but another one may have.
            is_foreign = answers_are_simulated or provenance.origin_of(path) is Origin.SIMULATED
        elif any(wrote_answers_too):
            is_foreign = False
        else:
            # If it is not known which simulation the answers come from, it may be the same one.
            is_foreign = is_simulation_known or not answers_are_simulated
        if is_foreign:
            foreign.append(path)
    return foreign


def _holds_answers(path: Path) -> bool:
    """Return whether a file has columns of students and questions."""
    if path.suffix != ".csv" or path.name in NAMES or not path.is_file():
        return False
    try:
        header = reading.read_header(reading.unnoticed_source(path))
    except InputError:
        return False
    return {schema.USER_ID.name, schema.QUESTION_ID.name}.issubset(header)


def _knows_answers(marker: dict[str, Any], reference: Path) -> bool:
    """Return whether the true answers come from the simulation that a marker describes."""
    # Fingerprints of the file of answers and of the files that it was made from.
    answers_and_sources = [provenance.fingerprint_of_source(reference)]
    record = provenance.read(reference)
    if record is not None:
        answers_and_sources += record.made_from.values()
    simulated = marker["files"].values()
    if any(known in simulated for known in answers_and_sources):
        return True
    # The rows of the file may be those of a simulated file, although its content is not.
    return provenance.has_rows_of(reference, [marker])
