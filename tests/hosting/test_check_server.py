"""check_server.py finds what a stranger can fetch; a small server stands in for the real one."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
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


@dataclass(frozen=True)
class Reply:
    """The reply of a server to a request."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/zip"
    # The path to which the server redirects, for the status 302.
    location: str = ""


def json_reply(content: Any) -> Reply:
    """Return a reply whose body is JSON."""
    return Reply(body=json.dumps(content).encode(), content_type="application/json")


def redirect(path: str) -> Reply:
    """Return a reply that sends the client to another path."""
    return Reply(status=302, location=path)


LOGIN_PAGE = Reply(body=b"<!doctype html>", content_type="text/html")
FILE_ADDRESS = json_reply({"data_file": "http://127.0.0.1/a.zip"})
# The replies of a server that sends everything to everybody, even without a login. The key is the
# path.
OPEN = {
    "/api/competitions/1/": json_reply(COMPETITION),
    "/datasets/download/scoring_program/": Reply(body=b"PK"),
    "/datasets/download/reference_data/": redirect("/storage/a.zip"),
    "/storage/a.zip": Reply(body=b"PK" * 500),
    "/api/submissions/?phase=7": json_reply({"results": [{"id": 5, "scores": [{"score": "0.7"}]}]}),
    "/api/submissions/?phase=8": json_reply([]),
    "/api/submissions/5/get_details/": FILE_ADDRESS,
    "/api/submissions/5/get_detail_result/": FILE_ADDRESS,
}
# The replies of a server that sends files of tasks and submitted files only after a login. In place
# of the file of answers, it sends the HTML page of the login.
CLOSED = {
    **OPEN,
    "/datasets/download/scoring_program/": Reply(status=404),
    "/datasets/download/reference_data/": redirect("/accounts/login/"),
    "/accounts/login/": LOGIN_PAGE,
    "/api/submissions/5/get_details/": Reply(status=403),
}


@contextmanager
def serving(replies: dict[str, Reply]) -> Iterator[str]:
    """Run a server that sends these replies, by path; yield the address of its competition 1."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Send the reply for the path, or 404 if there is none."""
            # The script must not log in.
            assert "Cookie" not in self.headers
            assert "Authorization" not in self.headers

            reply = replies.get(self.path, Reply(status=404))
            self.send_response(reply.status)
            if reply.location:
                self.send_header("Location", reply.location)
            self.send_header("Content-Type", reply.content_type)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        # The server checks every 0.01 s whether it must shut down.
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/competitions/1/"
        server.shutdown()


def test_an_open_server_is_reported_line_by_line() -> None:
    """The script requests files without a login, and reports each file that the server sends.

    The server `OPEN` sends all files. Two of them should be secret: the answers, and what was
    submitted. The exit code 1 says that the server gives away something secret. The server sends a
    scoring program of 2 bytes and answers of 1,000 bytes.
    """
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


def test_the_report_on_a_closed_server_says_how_it_refuses_each_request() -> None:
    """Without a login, the server `CLOSED` sends neither the files of tasks nor any submission."""
    with serving(CLOSED) as url:
        lines = succeeds([SCRIPT, url]).splitlines()
    assert lines[1:3] == [
        "Public: Task 1, public: the scoring program: refused (404)",
        "Public: Task 1, public: the answers: refused (an HTML page instead, such as a login form)",
    ]
    assert "Public: what was submitted: refused (403)" in lines
    assert lines[-1] == "closed: a stranger gets no answers, and no submissions"


def test_the_secret_key_of_an_address_is_kept() -> None:
    """The script sends the secret key in which the address of an unpublished competition ends.

    The server of this test knows no path with a key, and replies 404 to it. If the script dropped
    the key, the server would reply with the competition.
    """
    with serving(CLOSED) as url:
        printed = succeeds([SCRIPT, f"{url}?secret_key=x#pages"])
    assert printed == "the competition: refused (404)\n"


@pytest.mark.parametrize(
    ("path", "content", "list_name"),
    [
        ("/api/competitions/1/", {"phases": 0}, "the list of phases"),
        ("/api/competitions/1/", {"phases": ["Public"]}, "the list of phases"),
        (
            "/api/competitions/1/",
            {"phases": [{"name": "Public", "tasks": "all"}]},
            "Public: the list of tasks",
        ),
        ("/api/submissions/?phase=7", "nobody", "Public: list of leading submissions"),
        ("/api/submissions/?phase=7", {"results": [3]}, "Public: list of leading submissions"),
        ("/api/submissions/?phase=7", {"count": 3}, "Public: list of leading submissions"),
        ("/api/submissions/?phase=7", None, "Public: list of leading submissions"),
    ],
)
def test_a_reply_of_another_form_is_named(path: str, content: Any, list_name: str) -> None:
    """If a list has another form, the script cannot tell what is open, and says so."""
    with serving({**OPEN, path: json_reply(content)}) as url:
        done = run([SCRIPT, url])
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {list_name}: the server sends ")
    assert "closed" not in done.stdout


@pytest.mark.parametrize("content", [{}, {"phases": None}, [], 7])
def test_a_server_without_a_description_is_not_called_closed(content: Any) -> None:
    with serving({**OPEN, "/api/competitions/1/": json_reply(content)}) as url:
        printed = succeeds([SCRIPT, url])
    assert printed == "the competition: no description that can be read\n"


def test_an_address_of_no_competition_is_refused() -> None:
    expected = "expected an address such as https://SERVER/competitions/NUMBER/"
    assert expected in fails([SCRIPT, "example.org/competitions/1"])


def test_a_server_that_does_not_answer_is_named() -> None:
    with serving(CLOSED) as url:
        pass
    address = url.replace("/competitions", "/api/competitions")
    assert f"{address}: cannot be reached (" in fails([SCRIPT, url])
