"""Where answers come from: official files, a simulation, or a source that is not known."""

from collections.abc import Iterable
from enum import StrEnum


class Origin(StrEnum):
    """The three origins of answers; `provenance.origin_of` finds the origin of a file.

    Only scores on official answers can be compared with published scores.
    """

    # The file has the checksum of an official file, or its record says that it was made from
    # official files.
    OFFICIAL = "official"
    # The file's record, the marker of its data folder (SIMULATED.json), or its rows show that the
    # answers are simulated.
    SIMULATED = "simulated"
    # All other files.
    UNKNOWN = "unknown"

    @property
    def answers(self) -> str:
        """Answers of this origin in words, as titles and tables name them."""
        return "answers of unknown origin" if self is Origin.UNKNOWN else f"{self} answers"


def combine(origins: Iterable[Origin]) -> Origin:
    """Return the origin of something that is made from files of the given origins.

    The result is simulated if any of the files is simulated, official if all files are official,
    and unknown otherwise.
    """
    present = set(origins)
    if Origin.SIMULATED in present:
        return Origin.SIMULATED
    return Origin.OFFICIAL if present == {Origin.OFFICIAL} else Origin.UNKNOWN
