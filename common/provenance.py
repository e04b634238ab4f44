"""How a file was made: by which script and options, from which other files, in what time.

The record is a .json file beside the file, or beside several files that were made together. A file
of probabilities holds its record inside. Whoever reads a split or a template checks its record, so
that two splits are never mixed.

This module needs the standard library only: the quickstart uses it before anything is installed.
"""

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from common import layout, source_code
from common.errors import InputError
from common.fingerprints import Fingerprint, fingerprint, matches, simulated_files

# Options that say where a model reads and writes. The other options say what it computes.
PLACES = (
    "input_dir",
    "train_data",
    "more_train_data",
    "metadata_dir",
    "submission_template_dir",
    "submission_template_file",
    "output_dir",
    "output_file",
    "probabilities",
    "log",
)
# When the script started, since every script imports this module first.
_STARTED = time.perf_counter()
# Fingerprints of the files that this process has checked, and so learns from.
CHECKED: dict[Path, Fingerprint] = {}


@dataclass(frozen=True)
class Provenance:
    """How a file was made."""

    # Relative to the kit's folder; "notebook" in a notebook.
    script: str
    # As `options_of` returns them.
    options: dict[str, Any]
    # From the start of the script until it wrote the file.
    seconds: float
    # Peak memory until then, in bytes.
    memory: int | None = None
    # Fingerprint of the script and of its imports from the kit.
    code: str = ""
    # The folds, each predicted after learning from the others, such as "10 folds --by_question".
    split: str = ""
    # Whether any of the files that it was made from is simulated.
    simulated: bool = False
    # Fingerprints, by name, of the files made together.
    files: dict[str, Fingerprint] = field(default_factory=dict)
    # Fingerprints, by relative path, of the files that they were made from.
    made_from: dict[str, Fingerprint] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """Name of the script, without the prefix of sample models."""
        return Path(self.script).stem.removeprefix("sample_model_")

    @property
    def seed(self) -> int | None:
        """The seed among the options."""
        seed = self.options.get("seed")
        return int(seed) if isinstance(seed, str) and seed.isdecimal() else None

    @property
    def command(self) -> str:
        """The command as typed in the kit's folder; a script in tools/ runs as a module."""
        return _as_typed(self.script, flags_of(self.options))

    def as_json(self) -> bytes:
        """Return the record as the content of a file."""
        return (json.dumps(asdict(self), indent=1) + "\n").encode()


# ---- Options -------------------------------------------------------------------------------------


def options_of(words: Iterable[str]) -> dict[str, Any]:
    """Return the options of a command line by flag; arguments without a flag are ``files``.

    The value of an option is a text, a list of texts, or True for a flag without a value.
    """
    options: dict[str, Any] = {}
    name = "files"
    for word in words:
        if word.startswith("--"):
            name, has_value, value = word[2:].partition("=")
            options[name] = value if has_value else True
            # Beside files, --local is the kit's only flag without a value.
            if has_value or name == "local":
                name = "files"
        else:
            former = options.get(name, True)
            if former is True:
                options[name] = word
            elif isinstance(former, list):
                options[name] = [*former, word]
            else:
                options[name] = [former, word]
    return options


def flags_of(options: Mapping[str, Any]) -> list[str]:
    """Return the words of a command line that gives these options."""
    words: list[str] = []
    for name, value in options.items():
        if name != "files":
            words.append(f"--{name}")
        if isinstance(value, list):
            words += value
        elif value is not True:
            words.append(value)
    return words


def settings(options: Mapping[str, Any], keep: Collection[str] = ()) -> dict[str, Any]:
    """Return the options that say what a model computes, and the `PLACES` to keep."""
    return {name: value for name, value in options.items() if name not in PLACES or name in keep}


def this_command() -> str:
    """Return the command that is running, word for word, as typed in the kit's folder."""
    script, options = _script_and_options()
    return _as_typed(script, sys.argv[1:] if options else [])


def _as_typed(script: str, words: Sequence[str]) -> str:
    module = ".".join(Path(script).with_suffix("").parts)
    start = ["-m", module] if script.startswith("tools/") else [script]
    return shlex.join(["python", *start, *words])


def _script_and_options() -> tuple[str, dict[str, Any]]:
    if "ipykernel" in sys.modules:
        return "notebook", {}
    return show_path(Path(sys.argv[0])), options_of(sys.argv[1:])


def show_path(path: Path) -> str:
    """Return a path relative to the kit's folder, with forward slashes on every system."""
    path = path.resolve()
    return (path.relative_to(layout.ROOT) if path.is_relative_to(layout.ROOT) else path).as_posix()


# ---- The record of a file ------------------------------------------------------------------------


def this_process(
    folder: Path,
    files: Mapping[Path, BinaryIO] | None = None,
    made_from: Sequence[Path] | None = None,
    split: str = "",
) -> Provenance:
    """Return the record of files that this process has written.

    Parameters
    ----------
    folder
        Folder of the record, from which it names other files.
    files
        The complete, still open files by path.
    made_from
        The source files; by default all that are `CHECKED`.
    split
        What the record says about folds.
    """
    open_files = files or {}
    for file in open_files.values():
        file.flush()
    if made_from is None:
        sources = {path: known for path, known in CHECKED.items() if path.is_file()}
    else:
        sources = {path: fingerprint(path) for path in made_from}
    script, options = _script_and_options()
    path = layout.ROOT / script
    return Provenance(
        script=script,
        options=options,
        seconds=round(time.perf_counter() - _STARTED, 2),
        memory=_peak_memory(),
        code=source_code.fingerprint(path) if path.is_file() else "",
        split=split,
        simulated=is_simulated(*sources),
        files={path.name: fingerprint(Path(file.name)) for path, file in open_files.items()},
        made_from={_relative_to(folder, path): known for path, known in sources.items()},
    )


def _peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None on Windows."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in kilobytes, macOS in bytes.
    return peak if sys.platform == "darwin" else 1024 * peak


def _relative_to(folder: Path, path: Path) -> str:
    """Return a relative path, so that the whole tree may be moved."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # Another drive on Windows.
        return path.resolve().as_posix()


def parse(content: bytes | str) -> Provenance | None:
    """Return the record in a file of unknown origin; None if the record is damaged."""
    try:
        fields = json.loads(content)
        record = Provenance(**{**fields, "seconds": float(fields["seconds"])})
        return record if _is_valid(record) else None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _is_valid(record: Provenance) -> bool:
    """Return whether all fields have their types; other errors mean that they do not."""
    texts = [record.script, record.split, *flags_of(record.options)]
    texts += [*record.files, *record.made_from]
    return (
        # No file name holds a NUL.
        all(isinstance(text, str) and "\0" not in text for text in texts)
        and Path(record.script).name != ""
        and (record.memory is None or type(record.memory) is int)
        and re.fullmatch(r"[0-9a-f]*", record.code) is not None
        and isinstance(record.simulated, bool)
        and isinstance(record.files, dict)
        and isinstance(record.made_from, dict)
    )


def read(path: Path) -> Provenance | None:
    """Read the record of a file; None if there is none, or the file has changed since."""
    record = _read_beside(path)
    if record is None or not any(matches(path, known) for known in record.files.values()):
        return None
    return record


def _read_beside(path: Path) -> Provenance | None:
    """Read the record beside a file; a damaged one of a split or template is an `InputError`."""
    place = record_path(path)
    if not place.is_file():
        return None
    record = parse(place.read_bytes())
    if record is None and place.name in layout.STAMP_OF_FILE.values():
        raise InputError(
            f"{place}: is damaged or of an earlier version of the kit, expected the record of "
            f"{path.name}: make that again, or remove the .json if it is your own"
        )
    return record


def record_path(path: Path) -> Path:
    """Return the path of a file's record: one of several files, if it exists, or its own."""
    own = path.with_suffix(".json")
    shared = path.with_name(layout.STAMP_OF_FILE.get(path.name, own.name))
    return shared if shared.is_file() else own


def require_current(paths: Iterable[Path]) -> None:
    """Raise `InputError` if a file, or a file that it was made from, has changed since.

    The existing files are added to `CHECKED`.
    """
    for path in filter(Path.is_file, paths):
        record = _read_beside(path) if path.name in layout.STAMP_OF_FILE else None
        if record is not None:
            _require_as_recorded(path, record)
        CHECKED[path.absolute()] = fingerprint(path)


def _require_as_recorded(path: Path, record: Provenance) -> None:
    if not matches(path, record.files.get(path.name)):
        raise InputError(
            f"{path}: is not the file that {record_path(path)} describes, so it may be of "
            f"another split or of other data; `{record.command}` makes it again, or remove "
            "the .json if the file is your own"
        )
    for name, known in record.made_from.items():
        source = path.parent / name
        if source.is_file() and not matches(source, known):
            raise InputError(
                f"{path}: was made from other data than now lie in {source.resolve()}; "
                f"`{record.command}` makes it again"
            )


def is_simulated(*paths: Path) -> bool:
    """Return whether any file, also in a folder, is simulated or was made from a simulated one."""
    return any(
        _is_simulated(file.absolute())
        for path in paths
        for file in (sorted(path.rglob("*")) if path.is_dir() else [path])
    )


def _is_simulated(path: Path) -> bool:
    record = read(path)
    if record is not None:
        return record.simulated
    return any(simulated_files(data_dir, path) for data_dir in path.parents[1:4])
