"""Record how a file was made: by which script and options, from which files, in what time.

The record is a .json file in the same folder; files that are made together share one. A file of
probabilities contains its record. Scripts that read a split or a template check its record, so
that files of two splits are never mixed.

This module needs the standard library only: the quickstart uses it before anything is installed.
"""

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from common import fingerprints, layout, official_files, running_script, source_code
from common.errors import InputError
from common.fingerprints import Fingerprint, digest, fingerprint, matches
from common.origin import Origin, combine
from common.stray_files import list_paths

# The value of `Provenance.script` for files that a notebook made.
NOTEBOOK = "notebook"
# Options that only say where files and folders are. All other options may change what a model
# computes.
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
    "save_model",
    "log",
)
# The folder of Python's own modules, with a separator at the end.
_STANDARD_LIBRARY = f"{Path(os.__file__).parent}{os.sep}"


@dataclass
class ThisRun:
    """The files that the running script has read so far, and what else its record will say."""

    # When the run started. The first run starts when this module is imported.
    started: float = field(default_factory=time.perf_counter)
    # Whether `start_run` has started the run.
    has_begun: bool = False
    # Whether `watching_reads`, in which `cli.run` calls a script's `main`, will end this run. If a
    # notebook calls `main` itself, the run has no such end.
    has_end: bool = False
    # Fingerprints of the data files that the run has read. The record of every file that the script
    # writes names these data files as sources.
    sources: dict[Path, Fingerprint] = field(default_factory=dict)
    # The script's result may have parts that other scripts made, such as predictions that this
    # script averages (see `note_part`). This maps each file that a part was made from to its
    # fingerprint at that time. The file need not exist any more.
    sources_of_parts: dict[Path, Fingerprint] = field(default_factory=dict)
    # Maps each script that made a part of the result to the fingerprints of its code (see
    # `Provenance.code_of_parts`).
    code_of_parts: dict[str, list[str]] = field(default_factory=dict)
    # Whether `watching_reads` is at work: every data file that Python opens for reading then
    # becomes a source of this run.
    is_watching: bool = False
    # The SHA-256 of each file of the kit's code when `note_code` was called, to tell later whether
    # the code has changed; "" for a file that could not be read.
    code_at_start: dict[Path, str] = field(default_factory=dict)
    # Whether Control-C has stopped a fit early.
    interrupted: bool = False
    # Whether the run has used predictions whose sources are not recorded.
    unknown_sources: bool = False


RUN = ThisRun()
# How the names of data files end.
_DATA_SUFFIXES = (".csv", ".txt", ".xml")


@dataclass(frozen=True)
class Provenance:
    """How a file was made."""

    # Path of the script relative to the kit's folder; `NOTEBOOK` in a notebook.
    script: str
    # The options of the command, as `options_of` returns them.
    options: dict[str, Any]
    # Seconds from the start of the script until it wrote the file.
    seconds: float
    # The most memory that the script used before it wrote the file, in bytes; None if unknown.
    memory: int | None = None
    # Fingerprint of the code: the script and the files of the kit that it imports.
    code: str = ""
    # The folds of a cross-validation, such as "10 folds --by_question"; "" without folds.
    split: str = ""
    # The common origin of the sources (see `made_from`): official, simulated or unknown.
    origin: Origin = Origin.UNKNOWN
    # Fingerprints of the files that this record describes: the script wrote them together. The keys
    # are the names of the files.
    files: dict[str, Fingerprint] = field(default_factory=dict)
    # Fingerprints of the sources, the files that the script made its files from. The keys are paths
    # relative to the folder of the record.
    made_from: dict[str, Fingerprint] = field(default_factory=dict)
    # The fields below are missing in records of earlier versions.
    # When the files were written, in UTC: "2020-10-31T23:59:00+00:00".
    time: str = ""
    # Whether Control-C has stopped the fit early. The fit then made fewer steps than planned.
    interrupted: bool = False
    # Whether code changed while the script ran. Then `code` is not the code that ran.
    code_changed: bool = False
    # Name that the user of a notebook has given to the model. Otherwise it is "", and the model is
    # named after the script.
    name: str = ""
    # Whether `made_from` is incomplete: the files were also made from predictions whose sources are
    # not recorded.
    unknown_sources: bool = False
    # The files may be made from predictions of other scripts, for instance in a blend. This maps
    # each of these scripts to the fingerprints of the code that made its predictions. A fingerprint
    # is "" if the code changed while the script ran.
    code_of_parts: dict[str, list[str]] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The model's name: `name` or, if that is empty, the script's without "sample_model_"."""
        return self.name or Path(self.script).stem.removeprefix("sample_model_")

    @property
    def seed(self) -> int | None:
        """The seed in the options; None if there is none, or if it is not a whole number."""
        seed = self.options.get("seed")
        return int(seed) if isinstance(seed, str) and seed.isdecimal() else None

    @property
    def command(self) -> str:
        """The command line that made the files, to be typed in the kit's folder."""
        return _as_typed(self.script, flags_of(self.options))

    def as_json(self) -> bytes:
        """Return the record as the content of a file."""
        return (json.dumps(asdict(self), indent=1) + "\n").encode()


# ---- Options -------------------------------------------------------------------------------------


def options_of(words: Iterable[str]) -> dict[str, Any]:
    """Return the options of a command line.

    The keys are flags without ``--``. Arguments without a flag have the key ``files``. A value is a
    text, a list of texts, or True for a flag without a value.
    """
    options: dict[str, Any] = {}
    # The key of the option to which the next word without "--" belongs.
    key = "files"
    for word in words:
        if word.startswith("--"):
            flag, has_value, value = word[2:].partition("=")
            options[flag] = value if has_value else True
            # A word after --flag is a value of this flag. A word after --flag=value belongs to no
            # flag, so it is a file. --local has no value either, except in task 3: there its value
            # gets the key "files" too.
            next_word_is_value = not has_value and flag != "local"
            key = flag if next_word_is_value else "files"
            continue
        # If the option has no value so far, it is missing in `options`, or has the value True.
        earlier = options.get(key, True)
        if earlier is True:
            options[key] = word
        elif isinstance(earlier, list):
            options[key] = [*earlier, word]
        else:
            # The option has one value so far. With the second value, it gets a list of values.
            options[key] = [earlier, word]
    return options


def flags_of(options: Mapping[str, Any]) -> list[str]:
    """Return options as the words of a command line, such as --seed and 1."""
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
    """Return the options of a command that may change what a model computes.

    Options that only name files and folders (`PLACES`) are left out, unless they are in `keep`.
    """
    return {name: value for name, value in options.items() if name not in PLACES or name in keep}


def this_command() -> str:
    """Return the command that is running, word for word, as typed in the kit's folder."""
    script, options = _script_and_options()
    return _as_typed(script, running_script.arguments() if options else [])


def _as_typed(script: str, words: Sequence[str]) -> str:
    """Return the command line that runs a script with the arguments `words`.

    A script in tools/ is run as a module: ``python -m tools.NAME``.
    """
    module = ".".join(Path(script).with_suffix("").parts)
    start = ["-m", module] if script.startswith("tools/") else [script]
    return shlex.join(["python", *start, *words])


def _script_and_options() -> tuple[str, dict[str, Any]]:
    """Return the script that runs, and its options."""
    script = running_script.find_script()
    if script is None:
        return NOTEBOOK, {}
    return show_path(script), options_of(running_script.arguments())


def show_path(path: Path) -> str:
    """Return a path relative to the kit's folder, with forward slashes on every system."""
    path = path.resolve()
    if path.is_relative_to(layout.ROOT):
        path = path.relative_to(layout.ROOT)
    return path.as_posix()


# ---- What happens while a script runs ------------------------------------------------------------


def start_run(*, has_end: bool) -> None:
    """Start the run of a script: forget what this process has noted for earlier scripts.

    `has_end` tells whether `watching_reads` will end the run, see `ThisRun.has_end`.
    """
    global RUN
    # The first script of a process uses the `RUN` that was made when this module was imported, so
    # that the time of the run includes the imports. A notebook may have imported the module long
    # ago, so there a script always gets a new `RUN`.
    if RUN.has_begun or running_script.in_kernel():
        RUN = ThisRun()
    RUN.has_begun = True
    RUN.has_end = has_end


def note_source(path: Path) -> None:
    """Note that this process has read a file: the records of its results then name it as a source.

    If the file changes and is read again, the fingerprint of its first content is kept.
    """
    key = path.absolute()
    if key not in RUN.sources and path.is_file():
        RUN.sources[key] = fingerprint(path)


def note_part(record: Provenance | None, folder: Path) -> None:
    """Note how another script made a part of this process's result, such as predictions to average.

    The records of the files that this process writes then name the sources of the part. They also
    say whether these sources are unknown, and whether the fit of the part was stopped early.

    Parameters
    ----------
    record
        The record of the part; None if the part has no record.
    folder
        The folder of the record. The paths in the record are relative to this folder.
    """
    if record is None:
        RUN.unknown_sources = True
        return
    RUN.unknown_sources |= record.unknown_sources
    RUN.interrupted |= record.interrupted
    for name, known in record.made_from.items():
        RUN.sources_of_parts[(folder / name).absolute()] = known
    for script, codes in record.code_of_parts.items():
        RUN.code_of_parts.setdefault(script, []).extend(codes)
    if record.code:
        # `record.code` is a fingerprint of code. If the code changed while the part was made, the
        # fingerprint may be wrong. Then note the empty text, which means that the code is unknown.
        code = "" if record.code_changed else record.code
        RUN.code_of_parts.setdefault(record.script, []).append(code)


@contextmanager
def watching_reads() -> Iterator[None]:
    """Note every data file that Python opens for reading, also with pandas."""
    _add_hook()
    run = RUN
    run.is_watching = True
    try:
        yield
    finally:
        run.is_watching = False
        run.has_end = False


@cache
def _add_hook() -> None:
    """Add the audit hook `_note_opened`, only once (`cache`), since Python cannot remove a hook."""
    sys.addaudithook(_note_opened)


def _note_opened(event: str, arguments: tuple[Any, ...]) -> None:
    """Note a data file that is opened for reading; Python calls this audit hook for many events.

    The data files that this process reads within `watching_reads` are sources of its results.
    Files of Python and of installed libraries, such as sample data of scikit-learn, are no sources.
    """
    if event != "open" or not RUN.is_watching:
        return
    path, mode, _ = arguments
    # `mode` is None in a call of `os.open`. `path` is a number if a file descriptor is opened.
    is_read = mode is not None and mode.startswith("r")
    is_path = isinstance(path, str | os.PathLike)
    if not is_path or not is_read:
        return
    # `fspath` may also return bytes. A file named by bytes is not noted.
    name = os.fspath(path)
    is_data_file = isinstance(name, str) and name.lower().endswith(_DATA_SUFFIXES)
    if not is_data_file or _is_of_library(name):
        return
    # Python calls this function before it opens the file. If the file cannot be read, raise nothing
    # here: Python's own `open` will raise the error, and the script may handle it.
    with suppress(OSError):
        note_source(Path(name))


def _is_of_library(path: str) -> bool:
    """Return whether a file belongs to Python or to an installed library.

    Libraries may lie in the kit's `.venv`.
    """
    return "site-packages" in path or path.startswith(_STANDARD_LIBRARY)


def fingerprint_of_source(path: Path) -> Fingerprint:
    """Return the fingerprint of a file: the one that `note_source` has noted, if there is one."""
    return RUN.sources.get(path.absolute()) or fingerprint(path)


def note_code() -> None:
    """Note the contents of the kit's loaded modules, to tell later whether they have changed."""
    for module in list(sys.modules.values()):
        # A module that is built into Python has no file.
        file = getattr(module, "__file__", None)
        if file is None or _is_of_library(file):
            continue
        # A module's file may be relative to the current folder, which may change later.
        path = os.path.abspath(file)  # noqa: PTH100
        if _is_in_kit(path):
            RUN.code_at_start[Path(path)] = _digest_or_empty(Path(path))


def _is_in_kit(path: str) -> bool:
    """Return whether an absolute path lies in the kit's folder.

    The paths are compared as texts: `note_code` asks for thousands of modules, and
    `Path.is_relative_to` would take much longer.
    """
    # On Windows, paths that differ only in letter case are equal, and `normcase` makes them so.
    return os.path.normcase(path).startswith(os.path.normcase(layout.ROOT) + os.sep)


def note_interrupt() -> None:
    """Note that Control-C has stopped a fit early."""
    RUN.interrupted = True


def now() -> str:
    """Return the current time as text, in UTC and to the second: ``2020-10-31T23:59:00+00:00``."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def to_minute(time: str) -> str:
    """Return a time from `now` in a form for people: "2020-10-31 23:59 UTC"."""
    return f"{time[:16].replace('T', ' ')} UTC"


def _digest_or_empty(path: Path) -> str:
    """Return the SHA-256 of a file; empty if the file cannot be read."""
    try:
        return digest(path)
    except OSError:
        return ""


def _has_code_changed() -> bool:
    """Return whether a file of code has changed since `note_code`."""
    return any(_digest_or_empty(path) != known for path, known in RUN.code_at_start.items())


# ---- The record of a file ------------------------------------------------------------------------


def this_process(
    folder: Path,
    files: Mapping[Path, BinaryIO] | None = None,
    made_from: Sequence[Path] | None = None,
    split: str = "",
    name: str = "",
) -> Provenance:
    """Return the record of files that this process has written: its command, sources and time.

    Parameters
    ----------
    folder
        Folder of the record. The paths of source files are relative to this folder.
    files
        The files, by their final paths. The values are the open temporary files, which are written
        completely and not renamed yet.
    made_from
        The source files. By default they are the files that this process has read so far and that
        still exist; none in a notebook, which may have read files for other purposes.
    split
        Description of the folds, see `Provenance.split`.
    name
        Name of the model, see `Provenance.name`.
    """
    written = {}
    for path, file in (files or {}).items():
        file.flush()
        written[path.name] = fingerprint(Path(file.name))
    script, options = _script_and_options()
    sources = _list_sources(script, made_from)
    existing_sources = [path for path in sources if path.is_file()]
    script_path = layout.ROOT / script
    return Provenance(
        script=script,
        options=options,
        seconds=round(time.perf_counter() - RUN.started, 2),
        memory=_peak_memory(),
        code=source_code.fingerprint(script_path) if script_path.is_file() else "",
        split=split,
        name=name,
        origin=origin_of(*existing_sources),
        files=written,
        made_from={_relative_to(folder, path): known for path, known in sources.items()},
        time=now(),
        interrupted=RUN.interrupted,
        code_changed=_has_code_changed(),
        unknown_sources=RUN.unknown_sources,
        code_of_parts=RUN.code_of_parts,
    )


def _list_sources(script: str, made_from: Sequence[Path] | None) -> dict[Path, Fingerprint]:
    """Return the sources of the files that this process writes, with their fingerprints.

    `script` is the script that runs. `made_from` holds the paths of the sources if the caller knows
    them; see `this_process`.
    """
    if made_from is not None:
        return {path: fingerprint(path) for path in made_from}
    if script == NOTEBOOK:
        return {}
    sources = {path: known for path, known in RUN.sources.items() if path.is_file()}
    return sources | RUN.sources_of_parts


def _peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None on Windows."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # `ru_maxrss` is in kilobytes on Linux and in bytes on macOS.
    return peak if sys.platform == "darwin" else 1024 * peak


def _relative_to(folder: Path, path: Path) -> str:
    """Return a path relative to a folder, which stays valid if the whole tree is moved."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:
        # The path and the folder are on two drives of Windows.
        return path.resolve().as_posix()


def parse(content: bytes | str) -> Provenance | None:
    """Return the record that is the content of a file; None if the content is no valid record."""
    try:
        fields = with_origin(json.loads(content))
        record = Provenance(**{**fields, "seconds": float(fields["seconds"])})
        return record if _is_valid(record) else None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def with_origin(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record, with the value of the field `origin` as an `Origin`.

    Earlier versions of the kit wrote a field `simulated`, true or false, instead of `origin`. A
    file that is not simulated may be official or not. So false becomes `Origin.UNKNOWN`. Raises
    `ValueError` if one of the two fields is not valid.
    """
    kept = dict(fields)
    if "simulated" in kept and "origin" not in kept:
        is_simulated = kept.pop("simulated")
        if not isinstance(is_simulated, bool):
            raise ValueError("simulated: expected true or false")
        kept["origin"] = Origin.SIMULATED if is_simulated else Origin.UNKNOWN
    if "origin" in kept:
        kept["origin"] = Origin(kept["origin"])
    return kept


def _is_valid(record: Provenance) -> bool:
    """Return whether all fields of a record, which anybody may have edited, are valid.

    Some wrong fields, such as a list in place of a dict, raise an exception here. `parse` catches
    the exception, and treats the record as invalid. The type of `seconds` is not checked here,
    since `parse` converts it.
    """
    texts = [record.script, record.split, record.name, *flags_of(record.options)]
    texts += [*record.files, *record.made_from, *record.code_of_parts]
    codes_of_parts = record.code_of_parts.values()
    fingerprints_of_code = [record.code, *chain.from_iterable(codes_of_parts)]
    if record.time:
        # If the text is not a time, this raises ValueError.
        datetime.fromisoformat(record.time)
    return (
        # A file name cannot contain NUL.
        all(isinstance(text, str) and "\0" not in text for text in texts)
        # The path of a script ends in a name, unlike "" and "/".
        and Path(record.script).name != ""
        # The memory is a whole number. `isinstance` would take True and False for whole numbers.
        and (record.memory is None or type(record.memory) is int)
        # A fingerprint of code consists of hexadecimal digits; it is empty if the code is unknown.
        and all(re.fullmatch(r"[0-9a-f]*", code) for code in fingerprints_of_code)
        and isinstance(record.interrupted, bool)
        and isinstance(record.code_changed, bool)
        and isinstance(record.unknown_sources, bool)
        and all(isinstance(codes, list) for codes in codes_of_parts)
        and isinstance(record.files, dict)
        and isinstance(record.made_from, dict)
    )


def read(path: Path) -> Provenance | None:
    """Read the record of a file; None if there is none, or if the file has changed since."""
    record = _read_beside(path)
    if record is None:
        return None
    # The file may have been renamed: compare it with all files that the record describes.
    is_described = any(matches(path, known) for known in record.files.values())
    return record if is_described else None


def _read_beside(path: Path) -> Provenance | None:
    """Read the record beside a file; None if there is no valid record.

    Raises `InputError` if the record of a split or a template is damaged.
    """
    beside = record_path(path)
    if not beside.is_file():
        return None
    record = parse(beside.read_bytes())
    # The values of `RECORD_OF_FILE` are the names of the records of splits and templates. A .json
    # file with another name may be a file of the user that is no record.
    if record is None and beside.name in layout.RECORD_OF_FILE.values():
        raise InputError(
            f"{beside}: is damaged or of an earlier version of the kit, expected the record of "
            f"{path.name}: make that file again, or remove the .json if it is your own"
        )
    return record


def record_path(path: Path) -> Path:
    """Return the path of the record that describes a file.

    All files of a local split, for instance, share one record. If the file has a shared record and
    this record exists, its path is returned. Otherwise the record of x.csv is x.json beside it.
    """
    own = path.with_suffix(".json")
    shared = path.with_name(layout.RECORD_OF_FILE.get(path.name, own.name))
    return shared if shared.is_file() else own


def require_current(paths: Iterable[Path]) -> None:
    """Raise `InputError` if a file, or one of its sources, has changed since the file was made.

    All files in `paths` that exist are noted as sources of this run.
    """
    for path in filter(Path.is_file, paths):
        record = _read_beside(path) if path.name in layout.RECORD_OF_FILE else None
        if record is not None:
            _require_as_recorded(path, record)
        note_source(path)


def _require_as_recorded(path: Path, record: Provenance) -> None:
    """Raise `InputError` if a file or one of its sources is not as the file's record says."""
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


# ---- Where answers come from ---------------------------------------------------------------------


def origin_of(*paths: Path) -> Origin:
    """Return the common origin of files: official, simulated or unknown.

    A folder stands for all files in it. A file is official only if it has the checksum of an
    official file, or its record says that it was made from official files. A file is simulated if
    its record says so, if the marker of its data folder lists it, or if its rows are known to be
    simulated.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += [inside for inside in list_paths(path) if inside.is_file()]
        else:
            files.append(path)
    return combine(_origin_of_file(file.absolute(), frozenset()) for file in files)


def _origin_of_file(path: Path, seen: frozenset[Path]) -> Origin:
    """Return the origin of a file, by its record, its content or its rows.

    If these do not tell the origin, the origin is combined from the origins of the file's sources,
    for which the function calls itself. `seen` holds the files of the calls that are not finished
    yet. If `path` is among them, the records say that the file was made from itself. This cannot
    be, so its origin is unknown.
    """
    if not path.is_file() or path in seen:
        return Origin.UNKNOWN
    record = read(path)
    if record is not None and record.origin is not Origin.UNKNOWN:
        return record.origin
    if official_files.is_official(path):
        return Origin.OFFICIAL
    if fingerprints.is_simulated_copy(path):
        return Origin.SIMULATED
    markers = map(fingerprints.read_marker, fingerprints.data_folders(path))
    if has_rows_of(path, [marker for marker in markers if marker is not None]):
        return Origin.SIMULATED
    if record is None:
        return Origin.UNKNOWN
    # When the record was written, the origin of the file's sources was unknown. It may be known
    # now, so find the origin of each source again.
    origins = []
    for name, recorded_fingerprint in record.made_from.items():
        source = path.parent / name
        # Resolve the folder of the source, but not the source itself, which may be a symlink: the
        # folder of the symlink may hold the marker of the simulation that wrote the file.
        source = source.parent.resolve() / source.name
        is_unchanged = matches(source, recorded_fingerprint)
        origins.append(_origin_of_file(source, seen | {path}) if is_unchanged else Origin.UNKNOWN)
    return combine(origins)


def has_rows_of(path: Path, markers: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the rows of a file come from simulated files.

    A data folder with simulated files has a marker, the file SIMULATED.json. It may hold
    sketches of the simulated files: hashes of some of their rows, by which copies of the rows are
    recognised. `markers` holds the contents of such markers.
    """
    sketches = [marker["sketches"] for marker in markers if marker.get("sketches")]
    if not sketches:
        return False
    try:
        # Import `row_sketches` only here: it needs NumPy and pandas, which may not be installed.
        from common import row_sketches
    except ImportError:
        return False
    return row_sketches.is_known(path, sketches)
