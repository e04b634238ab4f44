"""How files were made: by which script and options, how long it took, from which other files.

A .json beside a file, or beside several made together, is its record; probabilities hold theirs
inside. Whoever reads a split or a template checks it, so that two splits are never used together.
Only the standard library is used: the quickstart asks before anything is installed.
"""

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, BinaryIO

from common import layout, source_code
from common.errors import InputError

Fingerprint = dict[str, int | str]

# Options that say where a model reads and writes; the others say what it computes.
PLACES = (
    *("input_dir", "train_data", "more_train_data", "metadata_dir"),
    *("submission_template_dir", "submission_template_file"),
    *("output_dir", "output_file", "probabilities", "log"),
)
# Scripts import this module as they start.
_STARTED = time.perf_counter()
# Of a file that is larger than all samples only these are read: that takes a millisecond.
_N_SAMPLES, _SAMPLE_SIZE = 64, 1 << 16
# A name in the folders of the data, and never elsewhere.
_IN_TREE = re.compile(r"([^./\\:][^/\\:]*/)+[^./\\:][^/\\:]*")
# What this process has checked, and so learns from.
CHECKED: dict[Path, Fingerprint] = {}


@dataclass(frozen=True)
class Made:
    """How a file was made."""

    # As seen from the kit's folder; "notebook" in one.
    script: str
    # As `options_of` returns them.
    options: dict[str, Any]
    # From the start of the script until it wrote the file, and the largest memory until then.
    seconds: float
    memory: int | None = None
    code: str = ""
    # The folds, each predicted after learning from the others: "10 folds --by_question".
    split: str = ""
    # Whether any of the files that it was made from is simulated.
    simulated: bool = False
    # Fingerprints of the files made together, by name, and of what they were made from.
    files: dict[str, Fingerprint] = field(default_factory=dict)
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


# ---- Options ---------------------------------------------------------------------------------


def options_of(words: Iterable[str]) -> dict[str, Any]:
    """Return the options of a command line: a text, a list or True by flag, or by ``files``."""
    options: dict[str, Any] = {}
    name = "files"
    for word in words:
        if word.startswith("--"):
            name, has_value, value = word[2:].partition("=")
            options[name] = value if has_value else True
            # Beside files, --local is the only flag of the kit without a value.
            if has_value or name == "local":
                name = "files"
        else:
            former = options.get(name, True)
            several = former if isinstance(former, list) else [former]
            options[name] = word if former is True else [*several, word]
    return options


def flags_of(options: Mapping[str, Any]) -> list[str]:
    """Return the words of a command line that gives these options."""
    words = []
    for name, value in options.items():
        words += [] if name == "files" else [f"--{name}"]
        words += [] if value is True else value if isinstance(value, list) else [value]
    return words


def settings(options: Mapping[str, Any], keep: Collection[str] = ()) -> dict[str, Any]:
    """Return the options but for those that say where files lie, apart from some to keep."""
    kept = {*options} - {*PLACES} | {*keep}
    return {name: value for name, value in options.items() if name in kept}


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
    """Show a path from the kit's folder, with forward slashes on every system."""
    path = path.resolve()
    return (path.relative_to(layout.ROOT) if path.is_relative_to(layout.ROOT) else path).as_posix()


# ---- The record of a file ----------------------------------------------------------------------


def this_process(
    folder: Path,
    files: Mapping[Path, BinaryIO] | None = None,
    made_from: Sequence[Path] | None = None,
    split: str = "",
) -> Made:
    """Return the record of complete open files in a folder, made from some or all `CHECKED`."""
    for file in (files or {}).values():
        file.flush()
    known = CHECKED if made_from is None else {path: fingerprint(path) for path in made_from}
    learned = {path: known[path] for path in known if path.is_file()}
    script, options = _script_and_options()
    path = layout.ROOT / script
    return Made(
        script=script,
        options=options,
        seconds=round(time.perf_counter() - _STARTED, 2),
        memory=_peak_memory(),
        code=source_code.fingerprint(path) if path.is_file() else "",
        split=split,
        simulated=is_simulated(*learned),
        files={path.name: fingerprint(Path(file.name)) for path, file in (files or {}).items()},
        made_from={_as_seen_from(folder, path): learned[path] for path in learned},
    )


def _peak_memory() -> int | None:
    try:
        import resource
    except ImportError:  # Windows.
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in kilobytes, macOS in bytes.
    return peak if sys.platform == "darwin" else 1024 * peak


def _as_seen_from(folder: Path, path: Path) -> str:
    """Return a relative path, so that the whole tree may be moved."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # Another drive on Windows.
        return path.resolve().as_posix()


def parse(content: bytes | str) -> Made | None:
    """Return the record that a file of unknown origin holds; None if it is damaged."""
    try:
        found = json.loads(content)
        made = Made(**{**found, "seconds": float(found["seconds"])})
        texts = (made.script, made.split, *flags_of(made.options), *made.files, *made.made_from)
        is_valid = (
            # No file's name holds a NUL.
            all(isinstance(text, str) and "\0" not in text for text in texts)
            and Path(made.script).name != ""
            and (made.memory is None or type(made.memory) is int)
            and re.fullmatch(r"[0-9a-f]*", made.code) is not None
            and isinstance(made.simulated, bool)
            and all(isinstance(known, dict) for known in (made.files, made.made_from))
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    return made if is_valid else None


def read(path: Path) -> Made | None:
    """Read the record of a file; None if there is none, or the file has changed since."""
    made = _read_beside(path)
    is_it = made is not None and any(matches(path, known) for known in made.files.values())
    return made if is_it else None


def _read_beside(path: Path) -> Made | None:
    """Read the record beside a file; raise `InputError` if that of a split or template is none."""
    place = record_path(path)
    if not place.is_file():
        return None
    made = parse(place.read_bytes())
    if made is None and place.name in layout.STAMP_OF_FILE.values():
        raise InputError(
            f"{place}: is damaged or of an earlier version of the kit, expected the record of "
            f"{path.name}: make that again, or remove the .json if it is your own"
        )
    return made


def record_path(path: Path) -> Path:
    """Return where the record of a file lies: that of several made together, or its own."""
    own = path.with_suffix(".json")
    shared = path.with_name(layout.STAMP_OF_FILE.get(path.name, own.name))
    return shared if shared.is_file() else own


def require_current(paths: Iterable[Path]) -> None:
    """Raise `InputError` if a file, or what it was made from, has changed; add it to `CHECKED`."""
    for path in filter(Path.is_file, paths):
        if path.name in layout.STAMP_OF_FILE and (made := _read_beside(path)):
            if not matches(path, made.files.get(path.name)):
                raise InputError(
                    f"{path}: is not the file that {record_path(path)} describes, so it may be of "
                    f"another split or of other data; `{made.command}` makes it again, or remove "
                    "the .json if the file is your own"
                )
            for name, known in made.made_from.items():
                source = path.parent / name
                if source.is_file() and not matches(source, known):
                    raise InputError(
                        f"{path}: was made from other data than now lie in {source.resolve()}; "
                        f"`{made.command}` makes it again"
                    )
        CHECKED[path.absolute()] = fingerprint(path)


# ---- Which files are the same, and which are simulated ---------------------------------------


def fingerprint(path: Path) -> Fingerprint:
    """Return the size of a file and the SHA-256 of its content, of a large one that of samples."""
    size = path.stat().st_size
    if size <= _N_SAMPLES * _SAMPLE_SIZE:
        return {"bytes": size, "sha256": digest(path)}
    samples = sha256()
    with path.open("rb") as file:
        for k in range(_N_SAMPLES):
            file.seek(k * (size - _SAMPLE_SIZE) // (_N_SAMPLES - 1))
            samples.update(file.read(_SAMPLE_SIZE))
    return {"bytes": size, "sha256_of_samples": samples.hexdigest()}


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of all files in a folder."""
    if not path.is_dir():
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    total = sha256()
    for inside in sorted(filter(Path.is_file, path.rglob("*"))):
        total.update(f"{inside.relative_to(path).as_posix()} {digest(inside)}\n".encode())
    return total.hexdigest()


def matches(path: Path, known: object) -> bool:
    """Return whether a file is there and has the content of a fingerprint."""
    if not isinstance(known, Mapping) or not path.is_file():
        return False
    # A file of another size need not be read.
    if path.stat().st_size != known.get("bytes"):
        return False
    # Earlier versions of the kit read large files whole.
    return known == fingerprint(path) or ("sha256" in known and known["sha256"] == digest(path))


def read_marker(data_dir: Path) -> dict[str, Any] | None:
    """Read fingerprints of simulated `files`, and those `replaced`, by name; None without any."""
    try:
        marker = json.loads((data_dir / layout.SIMULATED_MARKER_NAME).read_bytes())
        names = [*marker["files"].keys(), *marker.setdefault("replaced", {}).keys()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return marker if all(_IN_TREE.fullmatch(name) for name in names) else None


def simulated_files(data_dir: Path, only: Path | None = None) -> list[Path]:
    """Return the unchanged simulated files, or one, in a folder laid out like `data/`."""
    marker = read_marker(data_dir) or {}
    # While the simulation replaces its files, some are still the former ones.
    named = [file for kind in ("files", "replaced") for file in marker.get(kind, {}).items()]
    known = [(data_dir / name, content) for name, content in named]
    found = {path for path, content in known if only in (None, path) and matches(path, content)}
    return sorted(found)


def is_simulated(*paths: Path) -> bool:
    """Return whether any of the files, or those in folders, is simulated or made from such."""
    return any(
        _is_simulated(file.absolute())
        for path in paths
        for file in (sorted(path.rglob("*")) if path.is_dir() else [path])
    )


def _is_simulated(path: Path) -> bool:
    if made := read(path):
        return made.simulated
    return any(simulated_files(data_dir, path) for data_dir in path.parents[1:4])


def is_running(process: int) -> bool:
    """Return whether a process of that number runs; on Windows always True."""
    try:
        if os.name != "nt":  # Asking there would end it.
            os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
