"""What the ingestion program of task 4 hands to the scoring program: scores and counts, signed.

The platform lets a submission that brings its own metadata.yaml run beside the ingestion program,
with the same output folder, and it can remove that file before anybody looks. So nothing that is
written there tells an answer or a prediction; it is signed with a key that only the two programs
have, and bound to the files of the submission; and it counts only where the platform itself says
that it ran no other program.
"""

import hmac
import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

from common import fingerprints, layout, writing
from common.errors import InputError

NAME, KEY_NAME = "played_task_4.json", "key.txt"
# The platform writes it when all programs have ended, and takes no result that holds one before.
STATUS_NAME = "metadata"


def digest_of(submission: Path) -> str:
    """Return a digest of the files of a submission, without what the platform's run adds."""
    total = sha256()
    for path in sorted(submission.rglob("*")):
        name = path.relative_to(submission).as_posix()
        if path.is_file() and name not in (NAME, STATUS_NAME):
            total.update(f"{name} {fingerprints.digest(path)}\n".encode())
    return total.hexdigest()


def write(folder: Path, record: dict[str, Any], submission: str, program: Path) -> None:
    """Write what became of a submission, named by its digest, signed with the key of a program."""
    content = json.dumps({**record, "submission": submission})
    signed = {"record": content, "signature": _sign(content, program)}
    writing.write_files({folder / NAME: json.dumps(signed) + "\n"})


def _sign(content: str, program: Path) -> str:
    key = (program / layout.TEST_DIR.name / KEY_NAME).read_bytes()
    return hmac.new(key, content.encode(), "sha256").hexdigest()


def read(folder: Path, program: Path) -> dict[str, Any]:
    """Read what the ingestion program, and nothing else, wrote about the submission in a folder."""
    not_played = "the entry was not played to its end: the log of the ingestion program says why"
    try:
        signed = json.loads((folder / NAME).read_text(encoding="utf-8"))
        content, signature = str(signed["record"]), str(signed["signature"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(not_played) from None
    if not hmac.compare_digest(_sign(content, program).encode(), signature.encode()):
        raise InputError("what was played is not signed by the ingestion program of this phase")
    record: dict[str, Any] = json.loads(content)
    if "fault" in record:
        raise InputError(record["fault"])
    if record["submission"] != digest_of(folder):
        raise InputError("what was played is another submission than this one")
    status = folder / STATUS_NAME
    said = status.read_text(encoding="utf-8") if status.is_file() else ""
    if not re.search(r"^exitCode: null$", said, re.MULTILINE):
        raise InputError(
            "the zip brought a program of its own, which ran beside the game: not scored; expected "
            "only what `task_4/package.py` puts in"
        )
    # Else the record may be one that the zip brought.
    if not re.search(r"^ingestionExitCode: 0$", said, re.MULTILINE):
        raise InputError(not_played)
    return record
