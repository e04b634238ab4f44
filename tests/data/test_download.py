"""The downloader against a local server that breaks off, fails, lies, and against kills.

Nothing of the official data is needed: the archive is a zip of the official layout that holds tiny
simulated files.
"""

import contextlib
import http.server
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import Any

import download
import pytest
from run_scripts import ROOT

from common import layout
from common.errors import InputError

SCRIPT = ROOT / "data/download.py"
ANSWERS = "train_data/train_task_1_2.csv"
Call = Callable[..., Any]


# ---- The archive and the server --------------------------------------------------------------


@dataclass(frozen=True)
class Original:
    """An archive of the official layout, and the files in it by their path below data/."""

    content: bytes
    files: Mapping[str, bytes]

    @property
    def described(self) -> download.Archive:
        train = [name for name in self.files if name.startswith("train_data/")]
        return download.Archive(
            url="http://127.0.0.1:9/unused",
            size=len(self.content),
            sha256=sha256(self.content).hexdigest(),
            files={name: sha256(self.files[name]).hexdigest() for name in train},
        )


def make_zip(files: Mapping[str, bytes], more: str | zipfile.ZipInfo = "") -> bytes:
    """Zip files of the official layout, and one more of any name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data/", b"")
        for name, content in files.items():
            archive.writestr(f"data/{name}", content)
        if more:
            archive.writestr(more, b"evil")
    return buffer.getvalue()


@pytest.fixture(scope="session")
def original(simulated_kit: Path) -> Original:
    data = simulated_kit / "data"
    files = {
        file.relative_to(data).as_posix(): file.read_bytes()
        for folder in ("train_data", "metadata", "test_data")
        for file in sorted((data / folder).iterdir())
    }
    files["images/0.jpg"] = b"no real picture"
    return Original(make_zip(files), files)


@dataclass
class Server:
    """What is served and how: each request takes the next entry of a list, if there is one."""

    content: bytes
    url: str = ""
    ranges: bool = True
    statuses: list[int] = field(default_factory=list)
    cut_after: list[int] = field(default_factory=list)
    # Instead of cutting off, kill the process whose number the address ends with.
    kills: bool = False
    hangs: bool = False
    wrong_place: bool = False
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def server(original: Original) -> Iterator[Server]:
    """Serve the archive on 127.0.0.1."""
    told = Server(original.content)
    stopped = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted, content = self.headers.get("Range", ""), told.content
            told.requests.append(wanted)
            start = int(wanted[6:-1]) if wanted and told.ranges else 0
            status = 206 if start else 200
            if told.statuses:
                status, content = told.statuses.pop(0), b""
            self.send_response(status)
            place = f"{start + told.wrong_place}-{len(content) - 1}/{len(content)}"
            self.send_header("Content-Range", f"bytes {place}")
            self.send_header("Content-Length", str(max(len(content) - start, 0)))
            self.end_headers()
            end = start + told.cut_after.pop(0) if told.cut_after else len(content)
            with contextlib.suppress(OSError):
                for first in range(start, min(end, len(content)), 1 << 14):
                    self.wfile.write(content[first : min(end, first + (1 << 14))])
            if told.kills and end < len(content):
                stopped.wait(0.03)
                os.kill(int(self.path.partition("?")[2]), signal.SIGKILL)
            if told.hangs:
                stopped.wait(20)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.daemon_threads = True
        threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True).start()
        told.url = f"http://127.0.0.1:{httpd.server_address[1]}/data.zip"
        yield told
        stopped.set()
        httpd.shutdown()


@pytest.fixture(autouse=True)
def pauses(server: Server, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let nothing wait for long; return for how many seconds it would have."""
    paused: list[float] = []
    opened = urllib.request.urlopen

    def open_shortly(request: Any, timeout: float) -> Any:
        return opened(request, timeout=timeout / (200 if server.hangs else 1))

    monkeypatch.setattr(time, "sleep", paused.append)
    monkeypatch.setattr(urllib.request, "urlopen", open_shortly)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return paused


@pytest.fixture
def free_space(monkeypatch: pytest.MonkeyPatch) -> Call:
    """Return a function that leaves so many bytes free on the disk."""

    def leave(n_bytes: int) -> None:
        usage = shutil.disk_usage(ROOT)._replace(free=n_bytes)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    return leave


def check_tree(folder: Path, original: Original, *parts: str) -> None:
    """Check that a folder holds exactly the files of these parts, byte by byte, and templates."""
    wanted = {download.PARTS[part] for part in parts}
    found = {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.parent.name != layout.TEMPLATE_DIR.name
    }
    found.pop("data.zip", None)
    assert found == {k: v for k, v in original.files.items() if k.split("/")[0] in wanted}


# ---- Fetching --------------------------------------------------------------------------------


@pytest.fixture
def fetch(server: Server, original: Original, tmp_path: Path) -> Call:
    """Fetch the archive; an earlier run may have left some bytes."""

    def call(left: bytes | None = None, url: str = "") -> None:
        path = tmp_path / "new/data.zip"
        path.parent.mkdir(exist_ok=True)
        if left is not None:
            path.with_name("data.zip.partial").write_bytes(left)
        download.fetch(original.described, url or server.url, path)
        assert path.read_bytes() == original.content
        assert [file.name for file in path.parent.iterdir()] == ["data.zip"]

    return call


@pytest.mark.parametrize(
    ("left", "behaviour", "requests"),
    [
        pytest.param(None, {}, [""], id="at once"),
        pytest.param(
            None, {"cut_after": [1000, 5000, 0, 20_000]},
            ["", "bytes=1000-", "bytes=6000-", "bytes=6000-", "bytes=26000-"], id="cut off",
        ),
        pytest.param(lambda all: all[:7000], {}, ["bytes=7000-"], id="resumed"),
        pytest.param(lambda _: b"x" * 7000, {}, ["bytes=7000-", ""], id="left rotten"),
        pytest.param(lambda all: all + b"x", {}, [""], id="left too long"),
        pytest.param(lambda all: b"x" * len(all), {}, [""], id="left rotten and whole"),
        pytest.param(
            lambda all: all[:2000], {"ranges": False, "cut_after": [9000]},
            ["bytes=2000-", "bytes=9000-"], id="a server without ranges",
        ),
        pytest.param(None, {"statuses": [503, 500, 429, 408]}, [""] * 5, id="server in trouble"),
    ],
)  # fmt: skip
def test_the_archive_arrives(
    left: Callable[[bytes], bytes] | None,
    behaviour: dict[str, Any],
    requests: list[str],
    server: Server,
    original: Original,
    fetch: Call,
) -> None:
    vars(server).update(behaviour)
    fetch(left and left(original.content))
    assert server.requests == requests


@pytest.mark.parametrize(
    ("left", "behaviour", "message", "n_requests", "n_kept"),
    [
        (7000, {"statuses": [503] * 9},
         "URL: the server answered 503 .*; 7,000 of SIZE bytes are there, run the", 5, 7000),
        (0, {"statuses": [404] * 5}, "URL: the server answered 404", 1, 0),
        (0, {"content": b"<html>Please log in</html>"}, "URL: has 26 bytes, expected SIZE", 1, 0),
        (7000, {"wrong_place": True}, "expected bytes from 7000", 5, 7000),
        (0, {"cut_after": [500] + [0] * 9, "hangs": True}, "timed out; 500 of", 6, 500),
        (0, {"url": "http://127.0.0.1:9/data.zip"}, "URL: .*refused; 0 of .* bytes are", 0, 0),
        (0, {"url": "file:///etc/passwd"}, "--url URL: expected an address that begins", 0, 0),
        (0, {"url": "data.zip"}, "--url URL: expected an address that begins", 0, 0),
    ],
    ids=lambda value: None if isinstance(value, int) else str(value)[:40],
)  # fmt: skip
def test_what_is_not_the_archive_is_refused_and_what_came_is_kept(
    left: int, behaviour: dict[str, Any], message: str, n_requests: int, n_kept: int,
    server: Server, original: Original, fetch: Call, tmp_path: Path,
    pauses: list[float],
) -> None:  # fmt: skip
    vars(server).update(behaviour)
    message = message.replace("URL", server.url).replace("SIZE", f"{len(original.content):,}")
    with pytest.raises(InputError, match=message):
        fetch(original.content[:left])
    assert len(server.requests) == n_requests
    if n_requests == 5:
        assert len(pauses) == 4 and pauses == sorted(pauses) and pauses[-1] >= 10 * pauses[0] > 0
    (kept,) = (tmp_path / "new").iterdir()
    assert (kept.name, kept.read_bytes()) == ("data.zip.partial", original.content[:n_kept])


def test_an_archive_with_another_checksum_is_removed(
    server: Server, original: Original, fetch: Call, tmp_path: Path
) -> None:
    server.content = original.content[:-1] + b"?"
    with pytest.raises(InputError, match=r"is not the official archive \(SHA-256 differs\)"):
        fetch()
    assert list((tmp_path / "new").iterdir()) == []


def test_a_full_disk_is_said_before_anything_is_fetched(
    server: Server,
    original: Original,
    fetch: Call,
    free_space: Call,
) -> None:
    """What an earlier run has left needs no more room."""
    free_space(len(original.content) - 7001)
    with pytest.raises(InputError, match=r"the disk has \d MB free, expected \d MB"):
        fetch(original.content[:7000])
    assert server.requests == []
    free_space(len(original.content) - 7000)
    fetch(original.content[:7000])


# ---- The whole command -----------------------------------------------------------------------


@pytest.fixture
def command(original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the script's main function on a folder of the test's own, and a small archive."""

    def call(*arguments: object, content: bytes = original.content) -> Path:
        described = Original(content, original.files).described
        monkeypatch.setattr(download, "OFFICIAL", described)
        folder = tmp_path / "data"
        argv = [SCRIPT, "--output_dir", folder, *arguments]
        monkeypatch.setattr(sys, "argv", [str(argument) for argument in argv])
        download.main()
        return folder

    return call


@pytest.fixture
def unpack(command: Call, original: Original, tmp_path: Path) -> Call:
    """Run the command on an archive that is there already."""

    def call(*arguments: object, content: bytes = original.content) -> Path:
        path = tmp_path / "mine.zip"
        path.write_bytes(content)
        return Path(command("--archive", path, *arguments, content=content))

    return call


def test_the_whole_way(
    command: Call, server: Server, original: Original, tmp_path: Path, capsys: Any
) -> None:
    log = tmp_path / "log.jsonl"
    folder = command("--url", server.url, "--log", log)
    check_tree(folder, original, "answers", "metadata", "tests")
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "next: python quickstart.py"
    assert "images" not in out

    def n_rows(*names: str) -> int:
        return sum(original.files[name].count(b"\n") - 1 for name in names)

    templates = folder / layout.TEMPLATE_DIR.name
    ranking = (templates / layout.TEMPLATE_TASK_3).read_text()
    assert ranking.count("\n") == n_rows("metadata/question_metadata_task_3_4.csv") + 1
    tests = [f"test_data/test_{phase}_answers_task_1.csv" for phase in layout.PHASES]
    assert (templates / layout.TEMPLATE_TASK_1_2).read_text().count("\n") == n_rows(*tests) + 1
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events == ["start", "fetched", "unpacked"]

    # Again: nothing is fetched, nothing is written again.
    before = {file: file.stat().st_mtime_ns for file in (folder / "train_data").iterdir()}
    command("--url", server.url)
    assert len(server.requests) == 1
    assert {file: file.stat().st_mtime_ns for file in (folder / "train_data").iterdir()} == before


def test_parts_of_an_archive_that_is_there(
    unpack: Call, original: Original, free_space: Call, capsys: Any
) -> None:
    folder = unpack("--parts", "metadata,images")
    check_tree(folder, original, "metadata", "images")
    assert "never share or publish them" in capsys.readouterr().out
    templates = [file.name for file in (folder / layout.TEMPLATE_DIR.name).glob("*.csv")]
    assert templates == [layout.TEMPLATE_TASK_3]
    # There has to be room for what is not there yet.
    n_bytes = sum(len(data) for name, data in original.files.items() if "train_data/" in name)
    free_space(n_bytes - 1)
    with pytest.raises(InputError, match=r"the disk has \d MB free"):
        unpack("--parts", "answers,metadata")
    check_tree(folder, original, "metadata", "images")
    free_space(n_bytes)
    unpack("--parts", "answers,metadata")
    check_tree(folder, original, "metadata", "images", "answers")


def test_an_archive_that_is_not_the_official_one(
    command: Call, fails: Call, tmp_path: Path
) -> None:
    path = tmp_path / "mine.zip"
    line = fails(["data/download.py", "--output_dir", tmp_path, "--archive", path])
    assert line == f"{path}: file not found, expected the official archive"
    path.write_bytes(b"PK")
    with pytest.raises(InputError, match=r"mine\.zip: is not the official archive, expected"):
        command("--archive", path)


def write_data(folder: Path, files: Mapping[str, bytes], simulated: Mapping[str, bytes]) -> None:
    """Write files, and mark some with these contents as simulated."""
    marked = {
        name: {"bytes": len(content), "sha256": sha256(content).hexdigest()}
        for name, content in simulated.items()
    }
    marker = {layout.SIMULATED_MARKER_NAME: json.dumps({"files": marked}).encode()}
    for name, content in {**files, **(marker if marked else {})}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def test_simulated_data_make_way(unpack: Call, original: Original, tmp_path: Path) -> None:
    old = {ANSWERS: b"old", "metadata/subject_metadata.csv": b"older"}
    made = {f"test_input/{layout.VALID_TASK_1_2}": b"of these"}
    write_data(tmp_path / "data", old | made, {**old, "train_data/gone.csv": b"0"})
    unpack("--parts", "answers")
    check_tree(tmp_path / "data", original, "answers")


@pytest.mark.parametrize("simulated", [{}, {ANSWERS: b"changed since"}], ids=["real", "changed"])
def test_other_files_are_never_overwritten(
    unpack: Call, tmp_path: Path, simulated: dict[str, bytes]
) -> None:
    write_data(tmp_path / "data", {ANSWERS: b"my own"}, simulated)
    with pytest.raises(InputError, match=f"{ANSWERS}: is there and is not the archive's"):
        unpack()
    assert (tmp_path / "data" / ANSWERS).read_bytes() == b"my own"
    assert not (tmp_path / "data/metadata").exists()


LINK = zipfile.ZipInfo("data/train_data/outside.csv")
LINK.external_attr = 0o120777 << 16
LEAVES = "which would leave the folder"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda all: make_zip(all.files, "data/train_data/../../../outside.csv"), LEAVES),
        (lambda all: make_zip(all.files, "/outside.csv"), LEAVES),
        (lambda all: make_zip(all.files, "..\\outside.csv"), LEAVES),
        (lambda all: make_zip(all.files, "C:/outside.csv"), LEAVES),
        (lambda all: make_zip(all.files, LINK), LEAVES),
        (lambda _: make_zip({ANSWERS: b"1"}), "no folder metadata, expected it for --parts meta"),
        (lambda all: make_zip({**all.files, ANSWERS: b"UserId\n1\n"}),
         f"{ANSWERS} has SHA-256 .*, expected CHECKSUM"),
        (lambda all: all.content.replace(zlib.crc32(all.files[ANSWERS]).to_bytes(4, "little"), b"no!!"),
         f"{ANSWERS} is damaged"),
    ],
    ids=["..", "/", "backslash", "C:", "link", "no folder", "other bytes", "damaged"],
)  # fmt: skip
def test_of_a_faulty_archive_nothing_is_unpacked(
    make: Callable[[Original], bytes], message: str, unpack: Call, original: Original,
    tmp_path: Path,
) -> None:  # fmt: skip
    message = message.replace("CHECKSUM", original.described.files[ANSWERS])
    with pytest.raises(InputError, match=message):
        unpack(content=make(original))
    left = {file.suffix for file in tmp_path.rglob("*") if file.is_file()}
    assert left <= {".zip", ".partial"}


# ---- Kills -----------------------------------------------------------------------------------

# Forks one run for each number that it reads, so that twenty of them take seconds, and answers with
# its exit code. A run kills itself just before its access to the disk of that number.
DRIVER = """
import json, os, signal, sys

script, url, folder, described = sys.argv[1:]
sys.path.insert(0, os.path.dirname(script))
import download

download.OFFICIAL = download.Archive(**json.loads(described))


def run(left):
    def count(event, details):
        nonlocal left
        touches = event in ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate")
        if touches and str(details[0]).startswith(folder):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.argv[1:] = ["--url", f"{url}?{os.getpid()}", "--output_dir", folder]
    sys.stdout = sys.stderr
    sys.addaudithook(count)
    download.main()
    os._exit(0)


for line in sys.stdin:
    child = os.fork()
    if child == 0:
        run(int(line))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture
def killed(server: Server, original: Original, tmp_path: Path) -> Iterator[Call]:
    """Run the command; return whether it was killed, at that access to the disk or by the server.

    Whatever happened, every file that has its final name has its final content.
    """
    if not hasattr(os, "fork"):
        pytest.skip("the system cannot fork")
    described = json.dumps(vars(original.described))
    folder = tmp_path / "data"
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(SCRIPT), server.url, str(folder), described],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as driver:  # fmt: skip

        def run(number: int = -1) -> bool:
            assert driver.stdin and driver.stdout
            driver.stdin.write(f"{number}\n")
            driver.stdin.flush()
            code = int(driver.stdout.readline())
            for name, content in {**original.files, "data.zip": original.content}.items():
                assert not (folder / name).exists() or (folder / name).read_bytes() == content, name
            assert code in (0, -signal.SIGKILL)
            return code != 0

        yield run
    check_tree(folder, original, "answers", "metadata", "tests")


def test_killed_20_times_in_the_transfer_the_bytes_are_right(
    killed: Call, server: Server, original: Original
) -> None:
    moments = random.Random(20)
    server.kills = True
    server.cut_after = [moments.randrange(len(original.content) // 21) for _ in range(20)]
    assert [killed() for _ in range(21)] == [True] * 20 + [False]
    # Where a kill left something, it was resumed.
    assert sum(wanted != "" for wanted in server.requests) >= 3


def test_killed_before_every_touch_of_the_disk_the_bytes_are_right(
    killed: Call,
) -> None:
    n_kills = sum(takewhile(bool, map(killed, (*range(1, 12), *range(12, 200, 3)))))
    assert n_kills >= 16
