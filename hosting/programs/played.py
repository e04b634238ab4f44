"""The signed record of an entry's scores in task 4, played_task_4.json.

The ingestion program writes the record, and the scoring program reads it. On the platform, a
submission can contain a metadata.yaml. The platform then runs the submission's own program at the
same time as the ingestion program, in the same output folder. That program can delete the
metadata.yaml, so that nobody sees that it ran. Three rules make the record safe against such a
program:

- The record holds scores and counts only, never an answer or a prediction.
- It is signed with a key that only the two programs have, together with a digest of the
  submission's files.
- It counts only if the platform states that no other program ran.
"""

import hmac
import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

from common import fingerprints, layout, writing
from common.errors import InputError

# Name of the signed record in the output folder of the ingestion program.
NAME = "played_task_4.json"
# Name of the file with the signing key. The ingestion program and the scoring program each have a
# copy of this file, in their own folder test_data.
KEY_NAME = "key.txt"
# Name of the file with the exit codes, which the platform writes when all programs have ended. No
# program can forge this file: the platform rejects an output folder that already holds it.
STATUS_NAME = "metadata"
# The error message if the ingestion program has failed or has written no record.
_NOT_PLAYED = "the entry was not played to its end: the log of the ingestion program says why"


def digest_of(submission: Path) -> str:
    """Return a digest of the files of a submission, without the files that a run has added."""
    total = sha256()
    for path in sorted(submission.rglob("*")):
        name = path.relative_to(submission).as_posix()
        if path.is_file() and name not in (NAME, STATUS_NAME):
            total.update(f"{name} {fingerprints.digest(path)}\n".encode())
    return total.hexdigest()


def write(folder: Path, record: dict[str, Any], submission: str, program: Path) -> None:
    """Write a signed record.

    Parameters
    ----------
    folder
        The output folder of the ingestion program.
    record
        Scores and counts, or the key ``fault`` if the entry failed.
    submission
        The digest of the submission's files.
    program
        The folder of the ingestion program, which holds the key.
    """
    content = json.dumps({**record, "submission": submission})
    signed = {"record": content, "signature": _sign(content, program)}
    writing.write_files({folder / NAME: json.dumps(signed) + "\n"})


def _sign(content: str, program: Path) -> str:
    """Return the signature of a text; the key lies in the folder `program`, see `KEY_NAME`."""
    key = (program / layout.TEST_DIR.name / KEY_NAME).read_bytes()
    return hmac.new(key, content.encode(), "sha256").hexdigest()


def read(folder: Path, program: Path) -> dict[str, Any]:
    """Read the record of the ingestion program, and check that no other program wrote it.

    A submission can bring a program of its own, which could write a false record.

    Parameters
    ----------
    folder
        The folder with the submission's files, the record, and the platform's file of exit codes.
    program
        The folder of the scoring program's data. It holds the key with which the ingestion program
        has signed the record.

    Raises
    ------
    InputError
        If the entry failed, or if the record is missing or cannot be trusted.
    """
    try:
        # A JSON object with the record, as a text, and its signature.
        signed = json.loads((folder / NAME).read_text(encoding="utf-8"))
        content = str(signed["record"])
        signature = str(signed["signature"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(_NOT_PLAYED) from None
    if not hmac.compare_digest(_sign(content, program).encode(), signature.encode()):
        raise InputError("the record is not signed by the ingestion program of this phase")
    record: dict[str, Any] = json.loads(content)
    if "fault" in record:
        raise InputError(record["fault"])
    if record["submission"] != digest_of(folder):
        raise InputError("the record is of another submission than this one")
    _require_only_ingestion_ran(folder)
    return record


def _require_only_ingestion_ran(folder: Path) -> None:
    """Raise `InputError` if the submission ran a program, or if the ingestion program failed.

    The platform writes the exit codes of both programs into a YAML file in `folder`. `exitCode` is
    the exit code of the submission's own program, `ingestionExitCode` the exit code of the
    ingestion program. If a program did not run, its exit code is null. The ingestion program has
    failed if its exit code is not 0.
    """
    path = folder / STATUS_NAME
    status = path.read_text(encoding="utf-8") if path.is_file() else ""
    if not re.search(r"^exitCode: null$", status, re.MULTILINE):
        raise InputError(
            "the zip brought a program of its own, which ran beside the game: not scored; expected "
            "only the files that `task_4/package.py` puts into the zip"
        )
    # A submission could contain the signed record of an earlier run. If the submission makes the
    # ingestion program crash, no new record replaces the old record. The exit code of the crash is
    # not 0.
    if not re.search(r"^ingestionExitCode: 0$", status, re.MULTILINE):
        raise InputError(_NOT_PLAYED)
