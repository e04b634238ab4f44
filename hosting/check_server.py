"""Check what anybody can download of your competition from its server without a login.

    python hosting/check_server.py https://SERVER/competitions/NUMBER/

Requests the files and pages of each task and phase without a login, and prints in one line for each
what a stranger gets. Nothing that is downloaded is kept.

The exit code is 1 if a stranger gets hidden answers or anything else that should not be open.
"""

import argparse
import http.client
import json
import re
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from common import cli
from common.errors import InputError, printable, quote

# Seconds to wait for a reply.
_TIMEOUT = 20
# At most this many bytes of a reply are read.
_MAX_REPLY = 16 * 2**20
# The address of a competition's page. For an unpublished competition, it ends in a query,
# ?secret_key=…, which the API needs too. A part after # is ignored.
_ADDRESS = re.compile(
    r"(?P<server>https?://[^?#]+)/competitions/(?P<number>\d+)/?(?P<query>\?[^#]*)?(#.*)?"
)
# A name that the server sends is cut to this many characters when it is printed.
_MAX_NAME = 80
# The kind of a file that the server sends is cut to this many characters when it is printed.
_MAX_KIND = 40


@dataclass(frozen=True)
class Item:
    """A file or page of the competition on the server."""

    title: str
    # Whether the server must not send the file or page without a login.
    is_secret: bool


# The files of a task. The keys are the kinds of files in the API of the platform, Codabench.
_FILES = {
    "reference_data": Item("the answers", is_secret=True),
    "ingestion_program": Item(
        "the ingestion program, in task 4 with answers and signing key", is_secret=True
    ),
    "scoring_program": Item("the scoring program", is_secret=False),
    "input_data": Item("the public data that entries read", is_secret=False),
}
# The pages about a submission. The keys are the last parts of their addresses on the platform.
_SUBMISSION_PAGES = {
    "get_details": Item("what was submitted", is_secret=True),
    "get_detail_result": Item("page of a score", is_secret=False),
}


@dataclass(frozen=True)
class Reply:
    """The reply to a request without a login."""

    # Why the server did not send the content; empty if it did.
    refusal: str = ""
    # Number of bytes of the content, as the server states it; "?" if the server does not state it.
    size: str = ""
    # The parsed content; None if the content is not JSON.
    content: Any = None


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument("url", metavar="URL", help="address of the competition's page")
    return parser


def main() -> None:
    """Print what the server sends without a login; exit with 1 if it sends something secret."""
    url = build_parser().parse_args().url
    address = _ADDRESS.fullmatch(url)
    if not address:
        raise InputError(
            f"{quote(url)}: expected an address such as https://SERVER/competitions/NUMBER/"
        )
    server = address["server"]
    reply = _ask(f"{server}/api/competitions/{address['number']}/{address['query'] or ''}")
    competition = reply.content
    if not isinstance(competition, dict) or competition.get("phases") is None:
        print(f"the competition: {reply.refusal or 'no description that can be read'}")
        return
    title = printable(str(competition.get("title")), _MAX_NAME)
    print(f"the competition: anybody can read its description: {title}")
    phases = _require_objects(competition["phases"], "the list of phases")
    # The number of files and pages that the server sends although they should be secret.
    n_open = sum(_check_phase(server, phase) for phase in phases)
    if n_open:
        print(
            f"open: {n_open} of the items above should be secret; keep private answers off this "
            "server"
        )
        sys.exit(1)
    print("closed: a stranger gets no answers, and no submissions")


def _ask(address: str) -> Reply:
    """Request an address without a login; raise `InputError` if the server cannot be reached."""
    request = urllib.request.Request(address, headers={"Accept": "application/json, */*"})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as reply:
            # A server may refuse by redirecting to its login form, an HTML page. No file of a
            # competition is an HTML page.
            if reply.headers.get_content_type() == "text/html":
                return Reply(refusal="refused (an HTML page instead, such as a login form)")
            size = reply.headers.get("Content-Length") or "?"
            text = reply.read(_MAX_REPLY)
    except urllib.error.HTTPError as error:
        return Reply(refusal=f"refused ({error.code})")
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise InputError(f"{address}: cannot be reached ({reason})") from None
    try:
        return Reply(size=size, content=json.loads(text))
    except (ValueError, RecursionError):
        return Reply(size=size)


def _require_objects(content: Any, name: str) -> list[dict[str, Any]]:
    """Return a list of JSON objects that the server has sent; an empty list if it has sent none.

    Raises `InputError` if the content is anything else: then nobody can tell what is open.
    """
    objects = [] if content is None else content
    if not isinstance(objects, list) or not all(isinstance(item, dict) for item in objects):
        raise InputError(
            f"{name}: the server sends {quote(content)}, expected a list of JSON objects; check by "
            "hand what strangers can download"
        )
    return objects


def _check_phase(server: str, phase: dict[str, Any]) -> int:
    """Print which files and pages of a phase the server sends without a login.

    Returns the number of secret files and pages that the server sends.
    """
    name = printable(str(phase.get("name")), _MAX_NAME)
    n_open = 0
    for task in _require_objects(phase.get("tasks"), f"{name}: the list of tasks"):
        n_open += _check_task(server, name, task)
    return n_open + _check_submissions(server, name, phase)


def _check_task(server: str, phase_name: str, task: dict[str, Any]) -> int:
    """Print which files of a task the server sends without a login.

    Returns the number of secret files that the server sends.
    """
    title = f"{phase_name}: {printable(str(task.get('name')), _MAX_NAME)}"
    files = _require_objects(task.get("public_datasets"), f"{title}: the list of files")
    if not files:
        print(f"{title}: the server does not list its files")
    n_open = 0
    for file in files:
        kind = str(file.get("type"))
        # Files of an unknown kind count as secret, since they may hold answers.
        unknown_item = Item(printable(kind, _MAX_KIND), is_secret=True)
        item = _FILES.get(kind, unknown_item)
        reply = _ask(f"{server}/datasets/download/{file.get('key')}/")
        is_sent = not reply.refusal
        if item.is_secret and is_sent:
            n_open += 1
        result = reply.refusal or f"anybody can download it ({reply.size} bytes)"
        print(f"{title}: {item.title}: {result}")
    return n_open


def _check_submissions(server: str, phase_name: str, phase: dict[str, Any]) -> int:
    """Print what the server sends without a login about the submissions of a phase.

    Requests the list of submissions, and the pages of the first submission in the list. Returns the
    number of secret pages that the server sends.
    """
    list_name = f"{phase_name}: list of leading submissions"
    reply = _ask(f"{server}/api/submissions/?phase={phase.get('id')}")
    content = reply.content
    # If the server cuts the list into parts, the content is a dict, with the first part of the list
    # under "results".
    if isinstance(content, dict) and "results" in content:
        content = content["results"]
    if content is None and not reply.refusal:
        raise InputError(f"{list_name}: the server sends no JSON; check by hand what it sends")
    submissions = _require_objects(content, list_name)
    if not submissions:
        print(f"{list_name}: empty or refused")
        return 0
    n_scored = sum(bool(submission.get("scores")) for submission in submissions)
    print(f"{list_name}: anybody can read {len(submissions)}, {n_scored} scored")
    n_open = 0
    first_id = submissions[0].get("id")
    for page_name, page in _SUBMISSION_PAGES.items():
        reply = _ask(f"{server}/api/submissions/{first_id}/{page_name}/")
        is_sent = not reply.refusal
        if page.is_secret and is_sent:
            n_open += 1
        result = reply.refusal or "anybody gets a link to it"
        print(f"{phase_name}: {page.title}: {result}")
    return n_open


if __name__ == "__main__":
    cli.run(main)
