"""Tell by its name a file that the system or an editor has left beside data, packages and entries.

Nobody has put such a file there on purpose, so whatever lists a folder or a zip leaves it out. This
module needs the standard library only: the quickstart uses it before anything is installed.
"""

import re
from collections.abc import Iterator
from pathlib import Path

# Names of stray files and folders, in any letter case.
_NAMES = re.compile(
    r"""
    \.(?!\.?$).*                            # hidden files: ._train.csv, .DS_Store, .git
    | __MACOSX | Icon\r                     # macOS; zips that it makes hold a folder __MACOSX
    | (eh)?thumbs(_vista)?\.db | desktop\.ini | \$RECYCLE\.BIN | System\ Volume\ Information
    | .*Zone\.Identifier | .*:\$DATA        # streams of Windows, as files of their own
    | @eaDir | lost\+found                  # network storage, and a file system's own folder
    | __pycache__                           # compiled Python
    | .*~ | ~\$.* | \#.*\# | .*\.(bak|orig|sw[op])    # backups and locks of editors
    | .*\.(partial|crdownload)              # files that are not complete
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def is_stray(name: str) -> bool:
    """Return whether a file or folder of this name is one that a system or an editor has left."""
    return _NAMES.fullmatch(name) is not None


def is_stray_path(path: str) -> bool:
    """Return whether a file, or a folder in which it lies, was left by the system or an editor.

    `path` is relative to the folder or zip that is listed, and has slashes on every system.
    """
    return any(map(is_stray, path.split("/")))


def list_paths(folder: Path, pattern: str = "**/*") -> Iterator[Path]:
    """Yield the paths in a folder that match a pattern of `Path.glob`, sorted.

    Stray files and folders are left out, such as files that an editor has left. The default pattern
    matches all files and folders, also those in subfolders.
    """
    for path in sorted(folder.glob(pattern)):
        if not is_stray_path(path.relative_to(folder).as_posix()):
            yield path
