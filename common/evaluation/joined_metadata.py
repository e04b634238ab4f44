"""Find metadata that belong to other data than the answers that they are joined to.

The same id means different students or questions in two simulations, or in a simulation and in real
data. Joining such data raises no error, but the result is meaningless.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import cli, fingerprints, layout, provenance, reading, schema
from common.errors import InputError
from common.evaluation.doubt import Doubt
from common.fingerprints import Fingerprint
from common.origin import Origin
from common.tasks import TASKS

# The names of all metadata files.
NAMES = frozenset(
    [layout.SUBJECT_METADATA, *(name for task in TASKS.values() for name in task.data.metadata)]
)


def find_doubts(answers: Iterable[Path], metadata: Iterable[Path], consequence: str) -> list[Doubt]:
    """Return a doubt if metadata files were not made for the same data as the answers.

    Two simulations use the same ids for different students and questions, and so do a simulation
    and real data. So the metadata of one data set do not describe the students and questions of
    another. `find_foreign` finds metadata files of other data than the answers.

    Parameters
    ----------
    answers
        Files of answers. The first one that holds answers of students counts. Files with judgements
        of experts, for instance, hold none.
    metadata
        Metadata files. Other files are ignored.
    consequence
        The meaning of the doubt for the score, as the end of the doubt's sentence.
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


@dataclass(frozen=True)
class _Simulation:
    """A simulation whose marker file lies in a data folder."""

    marker: dict[str, Any]
    # Whether the answers come from the simulation: it wrote their file, or a file from which that
    # file was made.
    wrote_answers: bool

    def wrote(self, path: Path, fingerprint: Fingerprint) -> bool:
        """Return whether the simulation wrote the file at `path`, which has this fingerprint."""
        fingerprints_of_files = self.marker["files"].values()
        return fingerprint in fingerprints_of_files or fingerprints.is_listed(
            path, fingerprints_of_files
        )


def find_foreign(reference: Path, metadata: Sequence[Path]) -> list[Path]:
    """Return the metadata files that belong to other data than the answers.

    This is so in three cases: the answers and the metadata come from different simulations, only
    the metadata are simulated, or only the answers are. `reference` is the file of the answers.
    """
    simulations = _find_simulations(reference, metadata)
    answers_are_simulated = provenance.origin_of(reference) is Origin.SIMULATED
    return [path for path in metadata if _is_foreign(path, simulations, answers_are_simulated)]


def _is_foreign(
    path: Path, simulations: Sequence[_Simulation], answers_are_simulated: bool
) -> bool:
    """Return whether a metadata file does not belong to the answers that are evaluated.

    Real metadata belong to real answers. Simulated metadata belong to answers of the same
    simulation.

    Parameters
    ----------
    path
        The metadata file.
    simulations
        The simulations that are known from markers in the folders of the answers and of the
        metadata. A marker is a file that lists the files that a simulation wrote.
    answers_are_simulated
        Whether the answers are simulated; the simulation that wrote them need not be known.
    """
    fingerprint = provenance.fingerprint_of_source(path)
    # The known simulations that wrote the metadata file. There may be several, since several
    # markers may list the same file.
    writers = [simulation for simulation in simulations if simulation.wrote(path, fingerprint)]
    if not writers:
        # The file is real, or it comes from an unknown simulation. In both cases, it does not
        # belong to simulated answers. It belongs to real answers only if it is real.
        return answers_are_simulated or provenance.origin_of(path) is Origin.SIMULATED
    # From here on, it is certain that the metadata are simulated.
    if any(simulation.wrote_answers for simulation in writers):
        return False
    another_wrote_answers = any(simulation.wrote_answers for simulation in simulations)
    if another_wrote_answers:
        return True
    # No known simulation wrote the answers. If the answers are simulated nevertheless, the
    # simulation that wrote the metadata may have written them too: give them the benefit of the
    # doubt. If the answers are real, the simulated metadata do not belong to them.
    return not answers_are_simulated


def _find_simulations(reference: Path, metadata: Sequence[Path]) -> list[_Simulation]:
    """Return the simulations that have left a marker in the data folders of the given files.

    A marker is a file that lists the files which a simulation has written, with their fingerprints.
    `reference` holds the answers.
    """
    # A dict drops repeated folders and keeps their order.
    folders: dict[Path, None] = {}
    for path in (reference, *metadata):
        folders.update(dict.fromkeys(fingerprints.data_folders(path)))
    simulations = []
    for folder in folders:
        marker = fingerprints.read_marker(folder)
        if marker:
            wrote_answers = _answers_come_from(marker, reference)
            simulations.append(_Simulation(marker, wrote_answers))
    return simulations


def _holds_answers(path: Path) -> bool:
    """Return whether a file holds answers: a CSV file with the columns UserId and QuestionId."""
    if path.suffix != ".csv" or path.name in NAMES or not path.is_file():
        return False
    try:
        header = reading.read_header(reading.unnoticed_source(path))
    except InputError:
        return False
    return {schema.USER_ID.name, schema.QUESTION_ID.name}.issubset(header)


def _answers_come_from(marker: dict[str, Any], reference: Path) -> bool:
    """Return whether the true answers come from a simulation.

    `marker` is the content of the simulation's file SIMULATED.json, which lists its files.
    `reference` is the file of the true answers.
    """
    # The fingerprints of the file of answers, and of the files that it was made from.
    answers_and_sources = [provenance.fingerprint_of_source(reference)]
    record = provenance.read(reference)
    if record is not None:
        answers_and_sources += record.made_from.values()
    simulated_files = marker["files"].values()
    if any(fingerprint in simulated_files for fingerprint in answers_and_sources):
        return True
    # The file may hold rows of a simulated file and yet have another fingerprint, for instance if a
    # spreadsheet has saved it again.
    return provenance.has_rows_of(reference, [marker])
