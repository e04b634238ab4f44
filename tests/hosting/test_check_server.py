"""check_server.py finds what a stranger can fetch; a small server stands in for the real one."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from conftest import fails, run, succeeds

SCRIPT = "hosting/check_server.py"
# The server's description of the competition. It lists the files of the public task only.
COMPETITION = {
    "title": "Toy challenge",
    "phases": [
        {
            "id": 7,
            "name": "Public",
            "tasks": [
                {
                    "name": "Task 1, public",
                    "public_datasets": [
                        {"type": "scoring_program", "key": "scoring_program"},
                        {"type": "reference_data", "key": "reference_data"},
                    ],
                }
            ],
        },
        {"id": 8, "name": "Private", "tasks": [{"name": "Task 1, private"}]},
    ],
}
FILE_ADDRESS = {"data_file": "http://127.0.0.1/a.zip"}
# The answer of a server to each path: JSON (a dict or list), a status, bytes, or the path to which
# it redirects (a str). This server gives everything to strangers.
OPEN: dict[str, Any] = {
    "/api/competitions/1/": COMPETITION,
    "/datasets/download/scoring_program/": b"PK",
    "/datasets/download/reference_data/": "/storage/a.zip",
    "/storage/a.zip": b"PK" * 500,
    "/api/submissions/?phase=7": {"results": [{"id": 5, "scores": [{"score": "0.7"}]}]},
    "/api/submissions/?phase=8": [],
    "/api/submissions/5/get_details/": FILE_ADDRESS,
    "/api/submissions/5/get_detail_result/": FILE_ADDRESS,
}
# This server gives strangers neither files nor submissions.
CLOSED: dict[str, Any] = {
    **OPEN,
    "/datasets/download/scoring_program/": 404,
    "/datasets/download/reference_data/": "/accounts/login/",
    "/accounts/login/": b"<!doctype html>",
    "/api/submissions/5/get_details/": 403,
}


def status_and_body(answer: Any) -> tuple[int, bytes]:
    """Return the HTTP status and the body that stand for an answer of a server.

    - Bytes are a file or a page.
    - An int is a status, such as 404 for a path that does not exist.
    - A str is the path to which the server redirects.
    - Any other object is sent as JSON.
    """
    if isinstance(answer, bytes):
        return 200, answer
    body = json.dumps(answer).encode()
    if isinstance(answer, int):
        return answer, body
    if isinstance(answer, str):
        return 302, body
    return 200, body


@contextmanager
def serving(answers: dict[str, Any]) -> Iterator[str]:
    """Run a server that sends these answers, by path; yield the address of its competition.

    `status_and_body` says how an answer is sent.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Send the answer for the path, or 404 if there is none."""
            # The script must send no login.
            assert "Cookie" not in self.headers
            assert "Authorization" not in self.headers

            answer = answers.get(self.path, 404)
            status, body = status_and_body(answer)

            self.send_response(status)
            if status == 302:
                self.send_header("Location", answer)
            # The script takes an HTML page for a refusal. All other types are equal for the script.
            is_page = body.startswith(b"<")
            self.send_header("Content-Type", "text/html" if is_page else "application/zip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        # The server looks every 0.01 s whether it should shut down.
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/competitions/1/"
        server.shutdown()


def test_an_open_server_is_reported_line_by_line() -> None:
    """The server `OPEN` sends everything that the script requests."""
    with serving(OPEN) as url:
        done = run([SCRIPT, url])
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "the competition: anybody can read its description: Toy challenge",
        "Public: Task 1, public: the scoring program: anybody can download it (2 bytes)",
        "Public: Task 1, public: the answers: anybody can download it (1000 bytes)",
        "Public: list of leading submissions: anybody can read 1, 1 scored",
        "Public: what was submitted: anybody gets a link to it",
        "Public: page of a score: anybody gets a link to it",
        "Private: Task 1, private: the server does not list its files",
        "Private: list of leading submissions: empty or refused",
        "open: 2 of the items above should be secret; keep private answers off this server",
    ]


def test_a_closed_server_is_reported_with_its_refusals() -> None:
    """The server `CLOSED` sends no file of a task and not what was submitted."""
    with serving(CLOSED) as url:
        lines = succeeds([SCRIPT, url]).splitlines()
    assert lines[1:3] == [
        "Public: Task 1, public: the scoring program: refused (404)",
        "Public: Task 1, public: the answers: refused (an HTML page instead, such as a login form)",
    ]
    assert "Public: what was submitted: refused (403)" in lines
    assert lines[-1] == "closed: a stranger gets no answers, and no submissions"


def test_the_secret_key_of_an_address_is_kept() -> None:
    """The address of a competition that is not published ends in a secret key.

    The server knows only the path without a key: 404 shows that the script has sent the key.
    """
    with serving(CLOSED) as url:
        printed = succeeds([SCRIPT, f"{url}?secret_key=x#pages"])
    assert printed == "the competition: refused (404)\n"


def test_an_address_of_no_competition_is_refused() -> None:
    expected = "expected an address such as https://SERVER/competitions/NUMBER/"
    assert expected in fails([SCRIPT, "example.org/competitions/1"])


def test_a_server_that_does_not_answer_is_named() -> None:
    with serving(CLOSED) as url:
        pass
    address = url.replace("/competitions", "/api/competitions")
    assert f"{address}: cannot be reached (" in fails([SCRIPT, url])
