"""How a submission was made: the command, its time and memory, a fingerprint of its code.

A small .json beside a submission, or beside the weights of an entry of task 4, holds it; a file of
probabilities holds it inside.
"""

import json
import re
import shlex
import sys
import time
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from common import io, layout, source_code

# Scripts import this module as they start.
_STARTED = time.perf_counter()


@dataclass(frozen=True)
class Origin:
    """How a submission was made.

    Attributes
    ----------
    command
        The script and its flags.
    seconds
        From the start of the script until it wrote the submission.
    code
        Fingerprint of the script and of all that it imports from the kit.
    memory
        Largest memory of the process until then, in bytes; None where the system does not tell.
    split
        How the examples were divided into folds, each predicted after learning from the others:
        ``10 folds --by_question``; nothing where they were not.
    """

    command: tuple[str, ...]
    seconds: float
    code: str = ""
    memory: int | None = None
    split: str = ""

    @property
    def model(self) -> str:
        """Name of the script, without the prefix of sample models."""
        return Path(self.command[0]).stem.removeprefix("sample_model_")

    @property
    def seed(self) -> int | None:
        """The seed that the command names, if it does."""
        for word, following in zip(self.command, (*self.command[1:], ""), strict=True):
            name, _, value = word.partition("=")
            if name == "--seed" and (value or following).isdigit():
                return int(value or following)
        return None


def origin_of(csv: Path, split: str = "") -> bytes:
    """Return the origin of a submission that this process has just written, as a file's content."""
    size, checksum = _size_and_checksum(csv)
    origin = {**asdict(this_process()), "split": split}
    return _as_file({**origin, "bytes": size, "crc32": checksum})


def origin_of_weights() -> bytes:
    """Return the origin of weights that this process has just written, as a file's content."""
    return _as_file(asdict(this_process()))


def this_process() -> Origin:
    """Return the origin of what this process makes."""
    script = Path(sys.argv[0])
    code = source_code.fingerprint(script) if script.is_file() and not _is_notebook() else ""
    seconds = round(time.perf_counter() - _STARTED, 2)
    return Origin(tuple(this_command()), seconds, code, _peak_memory())


def _peak_memory() -> int | None:
    """Return the largest memory that this process has taken, in bytes; None on Windows."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in kilobytes, macOS in bytes.
    return peak if sys.platform == "darwin" else 1024 * peak


def _as_file(origin: Mapping[str, object]) -> bytes:
    return (json.dumps(origin, indent=1) + "\n").encode()


def read_origin(submission: Path) -> Origin | None:
    """Read how a submission was made; None if it is not known, or the file has changed since."""
    if not submission.is_file():
        return None  # Opening a pipe would wait for ever.
    try:
        content = submission.with_suffix(".json").read_bytes()
        origin = io.parse_json(content.decode())
        if _size_and_checksum(submission) != (origin["bytes"], origin["crc32"]):
            return None
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return None
    return parse_origin(content)


def parse_origin(content: bytes) -> Origin | None:
    """Return the origin that a file holds; None if it is damaged."""
    try:
        origin = io.parse_json(content.decode())
        command = tuple(str(word) for word in origin["command"])
        code, memory = origin.get("code", ""), origin.get("memory")
        split = origin.get("split", "")
        is_valid = (
            bool(command)
            and isinstance(code, str)
            and re.fullmatch(r"[0-9a-f]*", code) is not None
            and (memory is None or type(memory) is int)
            and isinstance(split, str)
        )
        seconds = float(origin["seconds"])
        return Origin(command, seconds, code, memory, split) if is_valid else None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None


def _size_and_checksum(path: Path) -> tuple[int, int]:
    """Return size and CRC-32 of a CSV; a zip stores both of the one in it."""
    if path.suffix.lower() == ".zip":
        with zipfile.ZipFile(path) as archive:
            (member,) = archive.infolist()
            return member.file_size, member.CRC
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum = zlib.crc32(block, checksum)
    return path.stat().st_size, checksum


def _is_notebook() -> bool:
    """Return whether this process runs a Jupyter notebook, whose command names no script of it."""
    return "ipykernel" in sys.modules


def this_command() -> list[str]:
    """Return the command that is running, its script as seen from the kit's folder."""
    if _is_notebook():
        return ["notebook"]
    return [show_path(Path(sys.argv[0])), *sys.argv[1:]]


def join_command(command: tuple[str, ...]) -> str:
    """Return a command as typed in the kit's folder; one in tools/ runs as a module."""
    first, *flags = command
    is_module = first.startswith("tools/")
    script = ["-m", ".".join(Path(first).with_suffix("").parts)] if is_module else [first]
    return shlex.join(["python", *script, *flags])


def show_path(path: Path) -> str:
    """Show a path from the kit's folder, with forward slashes on every system."""
    path = path.resolve()
    return (path.relative_to(layout.ROOT) if path.is_relative_to(layout.ROOT) else path).as_posix()
