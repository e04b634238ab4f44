"""Ask a competition server what strangers get of a competition of your own.

    python hosting/check_server.py https://SERVER/competitions/NUMBER/

Asks, without a login, for the addresses that are in question, some for each task and phase, and
says of each in one line what a stranger gets. Nothing is kept of what is downloaded.

The exit code is 1 if a stranger gets hidden answers, or what else should not be open.
"""

import http.client
import json
import re
import sys
import urllib.error
import urllib.request
from typing import Any, NamedTuple

from common import cli
from common.errors import InputError, printable, quote

_SECONDS = 20
_MAX_JSON = 16 << 20
# What a task has on the platform, by the names that it uses.
_SECRET = {
    "reference_data": "the answers",
    "ingestion_program": "the program that plays, in task 4 with answers and key",
    "scoring_program": "the scoring program",
    "input_data": "what entries are given",
}
_NOT_SECRET = ("scoring_program", "input_data")


class _Answer(NamedTuple):
    """What a server answered: its status, how many bytes it says that it sends, and the first."""

    status: int
    size: str
    content: bytes
    is_page: bool

    @property
    def refusal(self) -> str:
        """Why a stranger gets nothing; empty if it is there."""
        if self.status != 200:
            return f"refused ({self.status})"
        # Who is sent to a form for the login gets that.
        return "refused (a page instead, as of a login)" if self.is_page else ""

    def as_json(self) -> Any:
        """Return the content of an answer that should be JSON; None if it is not."""
        try:
            return None if self.refusal else json.loads(self.content)
        except (ValueError, RecursionError):
            return None


def main() -> None:
    """Ask, and print what came back."""
    p = cli.parser(__doc__)
    p.add_argument("url", metavar="URL", help="address of the competition's page")
    url = p.parse_args().url
    found = re.fullmatch(r"(https?://[^?#]+)/competitions/(\d+)/?(\?[^#]*)?(#.*)?", url)
    if not found:
        raise InputError(
            f"{quote(url)}: expected an address such as https://SERVER/competitions/NUMBER/"
        )
    server, number, query = found[1], found[2], found[3] or ""
    answer = _ask(f"{server}/api/competitions/{number}/{query}")
    about = answer.as_json()
    if not isinstance(about, dict) or "phases" not in about:
        print(f"the competition: {answer.refusal or 'no description that can be read'}")
        return
    print(f"the competition: everybody reads what it is: {printable(str(about.get('title')), 80)}")
    n_open = sum(_check_phase(server, phase) for phase in about["phases"])
    if n_open:
        print(f"open: {n_open} of these should not be; keep private answers off this server")
        sys.exit(1)
    print("closed: a stranger gets no answers, and no submissions")


def _ask(address: str) -> _Answer:
    """Ask a server for something, following redirections, without cookies or a password."""
    request = urllib.request.Request(address, headers={"Accept": "application/json, */*"})
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as reply:
            size = reply.headers.get("Content-Length") or "?"
            is_page = reply.headers.get_content_type() == "text/html"
            return _Answer(reply.status, size, reply.read(_MAX_JSON), is_page)
    except urllib.error.HTTPError as error:
        return _Answer(error.code, "", b"", False)
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise InputError(f"{address}: cannot be reached ({reason})") from None


def _check_phase(server: str, phase: dict[str, Any]) -> int:
    """Print what a stranger gets of a phase; return how much of it should not be open."""
    n_open = 0
    name = printable(str(phase.get("name")), 80)
    for task in phase.get("tasks") or []:
        listed = task.get("public_datasets") or []
        title = f"{name}: {printable(str(task.get('name')), 80)}"
        if not listed:
            print(f"{title}: the addresses of its files are not told")
        for data in listed:
            kind = str(data.get("type"))
            answer = _ask(f"{server}/datasets/download/{data.get('key')}/")
            what = answer.refusal or f"everybody can download it ({answer.size} bytes)"
            n_open += not answer.refusal and kind not in _NOT_SECRET
            print(f"{title}: {_SECRET.get(kind, printable(kind, 40))}: {what}")
    said = _ask(f"{server}/api/submissions/?phase={phase.get('id')}").as_json()
    listed = said.get("results", []) if isinstance(said, dict) else said
    if not listed:
        print(f"{name}: list of leading submissions: nothing")
        return n_open
    n_scored = sum(bool(one.get("scores")) for one in listed)
    print(f"{name}: list of leading submissions: everybody reads {len(listed)}, {n_scored} scored")
    for address, what, is_secret in (
        ("get_details", "what was submitted", True),
        ("get_detail_result", "page of a score", False),
    ):
        answer = _ask(f"{server}/api/submissions/{listed[0].get('id')}/{address}/")
        n_open += is_secret and not answer.refusal
        print(f"{name}: {what}: {answer.refusal or 'everybody gets its address'}")
    return n_open


if __name__ == "__main__":
    cli.run(main)
