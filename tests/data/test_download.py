"""The downloader against a local server that breaks off, fails, lies, and against kills.

The archive is a zip of the official layout that holds tiny simulated files.
"""

import contextlib
import http.server
import io
import json
import os
import re
import shutil
import signal
import sys
import threading
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import Any

from common import fingerprints, layout
from common.errors import InputError

import download
import pytest
from conftest import Write
from platforms import on_unix
from run_scripts import PATIENCE, ROOT

SCRIPT = ROOT / "data/download.py"
ANSWERS = "train_data/train_task_1_2.csv"
Files = dict[str, bytes]


def make_zip(files: Files, more: str | zipfile.ZipInfo = "") -> bytes:
    """Zip files as the official archive does, and one more of any name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data/", b"")
        for name, content in files.items():
            archive.writestr(f"data/{name}", content)
        if more:
            archive.writestr(more, b"evil")
    return buffer.getvalue()


@pytest.fixture(scope="session")
def original(simulated_kit: Path) -> tuple[Files, bytes]:
    """Return the files of the archive, by their path below data/, and the archive."""
    data = simulated_kit / "data"
    files = {
        file.relative_to(data).as_posix(): file.read_bytes()
        for folder in ("train_data", "metadata", "test_data")
        for file in sorted((data / folder).iterdir())
    }
    files["images/0.jpg"] = b"no real picture"
    return files, make_zip(files)


class Case:
    """A download into a folder of the test's own, from a server that behaves as it is told."""

    def __init__(self, files: Files, content: bytes, folder: Path, patch: pytest.MonkeyPatch):
        self.files, self.content, self.folder, self.patch = files, content, folder, patch
        self.served, self.url, self.timeout = content, "", 60.0
        # Each request takes the next entry of these two, if there is one left.
        self.statuses: list[int] = []
        self.cut_after: list[int] = []
        self.rots = self.wrong_place = False
        self.ranges = self.states_length = True
        self.requests: list[str] = []
        self.pauses: list[float] = []

    def run(self, *arguments: object) -> None:
        """Run the script's main function."""
        argv = [SCRIPT, "--output_dir", self.folder, "--url", self.url, *arguments]
        self.patch.setattr(download, "SIZE", len(self.content))
        self.patch.setattr(download, "SHA256", sha256(self.content).hexdigest())
        self.patch.setattr(download, "TIMEOUT_SECONDS", self.timeout)
        self.patch.setattr(sys, "argv", [str(argument) for argument in argv])
        download.main()

    def leave(self, content: bytes) -> None:
        """Leave what an earlier run has fetched."""
        self.folder.mkdir()
        (self.folder / "data.zip.partial").write_bytes(content)

    def check(self, *parts: str) -> None:
        """Check that the folder holds exactly the files of these parts, byte by byte."""
        wanted = {download.PARTS[part] for part in parts}
        found = {
            file.relative_to(self.folder).as_posix(): file.read_bytes()
            for file in self.folder.rglob("*")
            if file.is_file() and file.parent.name != layout.TEMPLATE_DIR.name
        }
        assert found.pop("data.zip", self.content) == self.content
        assert found == {k: v for k, v in self.files.items() if k.split("/")[0] in wanted}


@pytest.fixture
def case(
    original: tuple[Files, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Case]:
    """Serve the archive on 127.0.0.1, and let nothing wait for long."""
    case = Case(*original, tmp_path / "data", monkeypatch)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = case.served[:-1] + b"?" if case.rots else case.served
            wanted = self.headers.get("Range", "")
            case.requests.append(wanted)
            start = int(wanted[6:-1]) if wanted and case.ranges else 0
            status = 206 if start else 200
            if case.statuses:
                status, content = case.statuses.pop(0), b""
            self.send_response(status)
            place = f"{start + case.wrong_place}-{len(content) - 1}/{len(content)}"
            self.send_header("Content-Range", f"bytes {place}")
            if case.states_length:
                self.send_header("Content-Length", str(max(len(content) - start, 0)))
            self.end_headers()
            end = start + case.cut_after.pop(0) if case.cut_after else len(content)
            with contextlib.suppress(OSError):
                self.wfile.write(content[start:end])

    monkeypatch.setattr(time, "sleep", case.pauses.append)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.daemon_threads = True
        threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True).start()
        case.url = f"http://127.0.0.1:{httpd.server_address[1]}/data.zip"
        yield case
        httpd.shutdown()


ARRIVES: dict[str, tuple[Callable[[bytes], bytes], dict[str, Any], list[str]]] = {
    "cut off": (lambda _: b"", {"cut_after": [1000, 5000, 0, 20_000]},
                ["", "bytes=1000-", "bytes=6000-", "bytes=6000-", "bytes=26000-"]),
    "left rotten": (lambda _: b"x" * 7000, {}, ["bytes=7000-", ""]),
    "left too long": (lambda all: all + b"x", {}, [""]),
    "left rotten and whole": (lambda all: b"x" * len(all), {}, [""]),
    "server without ranges": (lambda all: all[:2000], {"ranges": False, "cut_after": [9000]},
                              ["bytes=2000-", "bytes=9000-"]),
    "server in trouble": (lambda _: b"", {"statuses": [503, 500, 429, 408]}, [""] * 5),
}  # fmt: skip


@pytest.mark.parametrize(("left", "behaviour", "requests"), ARRIVES.values(), ids=ARRIVES.keys())
def test_the_archive_arrives(
    left: Callable[[bytes], bytes], behaviour: dict[str, Any], requests: list[str], case: Case
) -> None:
    vars(case).update(behaviour)
    case.leave(left(case.content))
    case.run()
    assert case.requests == requests
    case.check("answers", "metadata", "tests")


# What the server does, or which server it is; what is said; how many requests, how many bytes kept.
REFUSED = [
    (7000, {"statuses": [503] * 9},
     "URL: the server answered 503 .*; 7,000 of SIZE bytes are there, run the command", 5, 7000),
    (0, {"statuses": [404] * 5}, "URL: the server answered 404", 1, 0),
    (0, {"served": b"<html>Please log in</html>"}, "URL: has 26 bytes, expected SIZE", 1, 0),
    (0, {"rots": True}, r"URL: .* is not the official archive \(SHA-256 differs\)", 1, None),
    (7000, {"wrong_place": True}, "expected bytes from 7000", 5, 7000),
    (0, {"timeout": 0}, "URL: .*; 0 of .* bytes are there", 0, 0),
    (0, {"url": "http://127.0.0.1:9/data.zip"}, "URL: .*refused; 0 of .* bytes are there", 0, 0),
    (7000, {"served": b"<html>Please log in</html>", "states_length": False, "ranges": False},
     "URL: sends other bytes than those already fetched", 1, 7000),
    *((7000, {"url": url}, "--url URL: expected an address that begins", 0, 7000)
      for url in ("http://", "http://[::1", "http://a:b", "http://a b", "http://\u00e9", "file://a")),
    (0, {"url": "http://a..b/"}, "URL: the host name is not valid", 0, 0),
]  # fmt: skip


@pytest.mark.parametrize(("left", "behaviour", "message", "n_requests", "n_kept"), REFUSED)
def test_what_is_not_the_archive_is_refused_and_what_came_is_kept(
    left: int, behaviour: dict[str, Any], message: str, n_requests: int, n_kept: int | None,
    case: Case,
) -> None:  # fmt: skip
    vars(case).update(behaviour)
    case.leave(case.content[:left])
    message = message.replace("URL", re.escape(case.url)).replace("SIZE", f"{len(case.content):,}")
    with pytest.raises(InputError, match=message):
        case.run()
    assert len(case.requests) == n_requests
    if n_requests == 5:
        assert case.pauses == [1, 3, 10, 30]
    kept = {path.name: path.read_bytes() for path in case.folder.iterdir()}
    assert kept == ({} if n_kept is None else {"data.zip.partial": case.content[:n_kept]})


def test_a_full_disk_is_said_before_anything_is_fetched_or_unpacked(case: Case) -> None:
    """What is there already needs no more room."""
    case.leave(case.content[:7000])
    n_answers = sum(len(data) for name, data in case.files.items() if "train_data/" in name)
    usage, free = shutil.disk_usage(ROOT), 0
    case.patch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free))
    for part, needed in (("images", len(case.content) - 7000), ("answers", n_answers)):
        free = needed - 1
        with pytest.raises(InputError, match=r"the disk has \d MB free, expected \d MB"):
            case.run("--parts", part)
        assert len(case.requests) == (part == "answers")
        free = needed
        case.run("--parts", part)
    case.check("images", "answers")


def test_the_whole_way(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    log = case.folder.parent / "log.jsonl"
    case.run("--log", log)
    case.check("answers", "metadata", "tests")
    assert capsys.readouterr().out.endswith("\nnext: python quickstart.py\n")
    templates = {path.name for path in (case.folder / layout.TEMPLATE_DIR.name).glob("*.csv")}
    assert templates == {layout.TEMPLATE_TASK_1_2, layout.TEMPLATE_TASK_3}
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events == ["start", "fetched", "unpacked"]
    # Again: nothing is fetched, nothing is written again.
    train = case.folder / "train_data"
    before = {file: file.stat().st_mtime_ns for file in train.iterdir()}
    case.run()
    assert len(case.requests) == 1
    assert {file: file.stat().st_mtime_ns for file in train.iterdir()} == before


def test_parts_of_an_archive_that_is_there(
    case: Case, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    """All simulated data make way, and what was made of them."""
    simulated = (ANSWERS, "metadata/subject_metadata.csv", "train_data/gone.csv")
    marked = {name: fingerprints.fingerprint(write(f"data/{name}", "old")) for name in simulated}
    write(f"data/{layout.SIMULATED_MARKER_NAME}", json.dumps({"files": marked}))
    (case.folder / "train_data/gone.csv").unlink()
    write(f"data/test_input/{layout.VALID_TASK_1_2}", "of these")
    archive = write("mine.zip", case.content)
    case.run("--parts", "metadata", "images", "--archive", archive)
    case.check("metadata", "images")
    assert "never share or publish them" in capsys.readouterr().out
    templates = [file.name for file in (case.folder / layout.TEMPLATE_DIR.name).glob("*.csv")]
    assert templates == [layout.TEMPLATE_TASK_3]
    case.run("--parts", "answers", "metadata", "--archive", archive)
    case.check("metadata", "images", "answers")
    assert case.requests == []


@pytest.mark.parametrize("was_simulated", [False, True])
def test_other_files_are_never_overwritten(case: Case, write: Write, was_simulated: bool) -> None:
    path = write(f"data/{ANSWERS}", "simulated")
    if was_simulated:
        marked = {"files": {ANSWERS: fingerprints.fingerprint(path)}}
        write(f"data/{layout.SIMULATED_MARKER_NAME}", json.dumps(marked))
    path.write_bytes(b"my own")
    with pytest.raises(InputError, match=f"{ANSWERS}: differs from the archive's file"):
        case.run()
    assert path.read_bytes() == b"my own"
    assert not (case.folder / "metadata").exists()


LINK = zipfile.ZipInfo("data/train_data/outside.csv")
LINK.external_attr = 0o120777 << 16
LEAVING = ("data/train_data/../../../outside.csv", "/outside.csv", "..\\outside.csv",
           "C:/outside.csv", LINK)  # fmt: skip


def test_of_a_faulty_archive_nothing_is_unpacked(case: Case) -> None:
    # The checksum that the zip itself has of the file.
    checksum = zlib.crc32(case.files[ANSWERS]).to_bytes(4, "little")
    damaged = case.content.replace(checksum, b"none")
    path = case.folder.with_suffix(".zip")
    for archive, message in (
        *((make_zip(case.files, more), "which would leave the folder") for more in LEAVING),
        (damaged, f"is a damaged zip file .*{ANSWERS}"),
    ):
        case.content = archive
        path.write_bytes(archive)
        with pytest.raises(InputError, match=message):
            case.run("--archive", path)
        left = {file.suffix for file in case.folder.parent.rglob("*") if file.is_file()}
        assert left == {".zip"}
    path.write_bytes(b"PK")
    with pytest.raises(InputError, match=r"zip: is not the official archive, expected"):
        case.run("--archive", path)
    path.unlink()
    with pytest.raises(InputError, match=r"zip: file not found, expected the official archive"):
        case.run("--archive", path)


def killed(case: Case, number: int) -> bool:
    """Run the command in a process that kills itself just before that access to the disk."""

    def count(event: str, details: Any) -> None:
        nonlocal number
        touches = event in ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate")
        if touches and str(details[0]).startswith(str(case.folder)):
            number -= 1
            if number == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            signal.alarm(PATIENCE)
            sys.addaudithook(count)
            case.run()
            os._exit(0)
        finally:
            os._exit(70)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    # A file that has its final name must have its content.
    for name, content in {**case.files, "data.zip": case.content}.items():
        path = case.folder / name
        assert not path.exists() or path.read_bytes() == content, name
    assert code in (0, -signal.SIGKILL)
    return code != 0


@on_unix("fork, which makes the process that is killed")
def test_killed_before_every_touch_of_the_disk_the_bytes_are_right(case: Case) -> None:
    """Also in the transfer, which breaks off 20 times: where a kill left something, it resumes."""
    case.cut_after = [len(case.content) // 21] * 20
    numbers = (*range(1, 12), *range(12, 200, 3))
    assert sum(takewhile(bool, (killed(case, number) for number in numbers))) >= 16
    case.check("answers", "metadata", "tests")
    starts = [wanted for wanted in case.requests if wanted]
    assert len(starts) == len({*starts}) == 20
