"""Ask a competition server what strangers get of a competition of your own.

    python hosting/check_server.py https://SERVER/competitions/NUMBER/

Asks, without a login, for the addresses that are in question, some for each task and phase, and
says of each in one line what a stranger gets. Nothing is kept of what is downloaded.

The exit code is 1 if a stranger gets hidden answers, or what else should not be open.
"""

import argparse
import http.client
import json
import re
import sys
import urllib.error
import urllib.request
from typing import Any

from common import cli
from common.errors import InputError, printable, quote

_SECONDS = 20
_MAX_JSON = 16 << 20
# What a task has on the platform, by the names that it uses, and whether it is secret.
_FILES = {
    "reference_data": ("the answers", True),
    "ingestion_program": ("the program that plays, in task 4 with answers and key", True),
    "scoring_program": ("the scoring program", False),
    "input_data": ("what entries are given", False),
}


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = cli.parser(__doc__)
    parser.add_argument("url", metavar="URL", help="address of the competition's page")
    return parser


def main() -> None:
    """Ask, and print what came back."""
    url = build_parser().parse_args().url
    found = re.fullmatch(r"(https?://[^?#]+)/competitions/(\d+)/?(\?[^#]*)?(#.*)?", url)
    if not found:
        raise InputError(
            f"{quote(url)}: expected an address such as https://SERVER/competitions/NUMBER/"
        )
    server = found[1]
    refusal, _, about = _ask(f"{server}/api/competitions/{found[2]}/{found[3] or ''}")
    if not isinstance(about, dict) or "phases" not in about:
        print(f"the competition: {refusal or 'no description that can be read'}")
        return
    print(f"the competition: everybody reads what it is: {printable(str(about.get('title')), 80)}")
    n_open = sum(_check_phase(server, phase) for phase in about["phases"])
    if n_open:
        print(f"open: {n_open} of these should not be; keep private answers off this server")
        sys.exit(1)
    print("closed: a stranger gets no answers, and no submissions")


def _ask(address: str) -> tuple[str, str, Any]:
    """Ask without a login; return why a stranger gets nothing, or empty; size, as told; JSON."""
    request = urllib.request.Request(address, headers={"Accept": "application/json, */*"})
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as reply:
            # Who is sent to a form for the login gets that.
            if reply.headers.get_content_type() == "text/html":
                return "refused (a page instead, as of a login)", "", None
            size, content = reply.headers.get("Content-Length") or "?", reply.read(_MAX_JSON)
    except urllib.error.HTTPError as error:
        return f"refused ({error.code})", "", None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise InputError(f"{address}: cannot be reached ({reason})") from None
    try:
        return "", size, json.loads(content)
    except (ValueError, RecursionError):
        return "", size, None


def _check_phase(server: str, phase: dict[str, Any]) -> int:
    """Print what a stranger gets of a phase; return how much of it should not be open."""
    n_open = 0
    name = printable(str(phase.get("name")), 80)
    for task in phase.get("tasks") or []:
        title = f"{name}: {printable(str(task.get('name')), 80)}"
        listed = task.get("public_datasets") or []
        for data in listed:
            kind = str(data.get("type"))
            what, is_secret = _FILES.get(kind, (printable(kind, 40), True))
            refusal, size, _ = _ask(f"{server}/datasets/download/{data.get('key')}/")
            n_open += is_secret and not refusal
            print(f"{title}: {what}: {refusal or f'everybody can download it ({size} bytes)'}")
        if not listed:
            print(f"{title}: the addresses of its files are not told")
    _, _, said = _ask(f"{server}/api/submissions/?phase={phase.get('id')}")
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
        refusal, _, _ = _ask(f"{server}/api/submissions/{listed[0].get('id')}/{address}/")
        n_open += is_secret and not refusal
        print(f"{name}: {what}: {refusal or 'everybody gets its address'}")
    return n_open


if __name__ == "__main__":
    cli.run(main)
