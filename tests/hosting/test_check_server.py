"""What strangers get of a competition, asked of a small server that answers in either way."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from conftest import fails, run, succeeds

SCRIPT = "hosting/check_server.py"
FILES = ("scoring_program", "reference_data")
COMPETITION = {
    "title": "Toy challenge",
    "phases": [
        {"id": 7, "name": "Public", "tasks": [
            {"name": "Task 1, public", "public_datasets": [{"type": t, "key": t} for t in FILES]}]},
        {"id": 8, "name": "Private", "tasks": [{"name": "Task 1, private"}]},
    ],
}  # fmt: skip
ADDRESS = {"data_file": "http://127.0.0.1/a.zip"}
# What the server answers, by path: JSON, a status, bytes, or the path that it redirects to.
OPEN = {
    "/api/competitions/1/": COMPETITION,
    "/datasets/download/scoring_program/": b"PK",
    "/datasets/download/reference_data/": "/storage/a.zip",
    "/storage/a.zip": b"PK" * 500,
    "/api/submissions/?phase=7": {"results": [{"id": 5, "scores": [{"score": "0.7"}]}]},
    "/api/submissions/?phase=8": [],
    "/api/submissions/5/get_details/": ADDRESS,
    "/api/submissions/5/get_detail_result/": ADDRESS,
}
CLOSED = {
    **OPEN,
    "/datasets/download/scoring_program/": 404,
    "/datasets/download/reference_data/": "/accounts/login/",
    "/accounts/login/": b"<!doctype html>",
    "/api/submissions/5/get_details/": 403,
}


@contextmanager
def serving(answers: dict[str, Any]) -> Iterator[str]:
    """Return the address of a competition on a server of this machine that answers so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert "Cookie" not in self.headers and "Authorization" not in self.headers
            answer = answers.get(self.path, 404)
            status = answer if isinstance(answer, int) else 302 if isinstance(answer, str) else 200
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", answer)
            self.send_header("Content-Type", "text/html" if body[:1] == b"<" else "application/zip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/competitions/1/"
        server.shutdown()


def test_what_a_stranger_gets_is_said_in_one_line_each() -> None:
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
    with serving(CLOSED) as url:
        assert succeeds([SCRIPT, f"{url}?secret_key=x#pages"]) == "the competition: refused (404)\n"
        said = succeeds([SCRIPT, url]).splitlines()
    assert said[1:3] == [
        "Public: Task 1, public: the scoring program: refused (404)",
        "Public: Task 1, public: the answers: refused (an HTML page instead, such as a login form)",
    ]
    assert "Public: what was submitted: refused (403)" in said
    assert said[-1] == "closed: a stranger gets no answers, and no submissions"
    expected = "expected an address such as https://SERVER/competitions/NUMBER/"
    assert expected in fails([SCRIPT, "example.org/competitions/1"])
    # Nobody answers there any more.
    address = url.replace("/competitions", "/api/competitions")
    assert f"{address}: cannot be reached (" in fails([SCRIPT, url])
