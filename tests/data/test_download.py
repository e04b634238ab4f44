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
from pathlib import Path
from typing import Any

import download
import pytest

from common import layout
from common.errors import InputError
from common.provenance import fingerprint

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "data/download.py"
Call = Callable[..., Path]


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
    files = {
        file.relative_to(simulated_kit / "data").as_posix(): file.read_bytes()
        for folder in ("train_data", "metadata", "test_data")
        for file in sorted((simulated_kit / "data" / folder).iterdir())
    }
    files["images/0.jpg"] = b"no real picture"
    return Original(make_zip(files), files)


@dataclass
class Behaviour:
    """What the server does: each request takes the next entry of a list, if there is one left."""

    content: bytes
    ranges: bool = True
    statuses: list[int] = field(default_factory=list)
    cut_after: list[int] = field(default_factory=list)
    pause_seconds: float = 0.0
    block: int = 1 << 16
    hang: bool = False
    wrong_place: bool = False
    requests: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Server:
    url: str
    behaviour: Behaviour


@pytest.fixture
def server(original: Original) -> Iterator[Server]:
    """Serve the archive on 127.0.0.1."""
    behaviour = Behaviour(original.content)
    stopped = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            wanted, content = self.headers.get("Range", ""), behaviour.content
            behaviour.requests.append(wanted)
            self.close_connection = True
            start = int(wanted[6:-1]) if wanted and behaviour.ranges else 0
            status = 206 if start else 200
            if behaviour.statuses:
                status, content = behaviour.statuses.pop(0), b""
            self.send_response(status)
            if status == 206:
                told = f"{start + behaviour.wrong_place}-{len(content) - 1}/{len(content)}"
                self.send_header("Content-Range", f"bytes {told}")
            self.send_header("Content-Length", str(max(len(content) - start, 0)))
            self.end_headers()
            end = len(content)
            if behaviour.cut_after:
                end = min(end, start + behaviour.cut_after.pop(0))
            with contextlib.suppress(OSError):
                for place in range(start, end, behaviour.block):
                    self.wfile.write(content[place : min(end, place + behaviour.block)])
                    if stopped.wait(behaviour.pause_seconds):
                        return
                if behaviour.hang:
                    stopped.wait(20)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield Server(f"http://127.0.0.1:{httpd.server_address[1]}/data.zip", behaviour)
    stopped.set()
    httpd.shutdown()
    httpd.server_close()
    thread.join(5)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let nothing wait for long; return for how many seconds it would have."""
    paused: list[float] = []
    monkeypatch.setattr(time, "sleep", paused.append)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return paused


@pytest.fixture
def free_space(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that leaves so many bytes free on the disk."""

    def leave(n_bytes: int) -> None:
        usage = shutil.disk_usage(ROOT)._replace(free=n_bytes)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    return leave


def check_tree(folder: Path, original: Original, parts: tuple[str, ...]) -> None:
    """Check that a folder holds exactly the files of these parts, byte by byte, and templates."""
    wanted = {download.PARTS[part] for part in parts}
    expected = {
        name: content for name, content in original.files.items() if name.split("/")[0] in wanted
    }
    found = {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.parent.name != layout.TEMPLATE_DIR.name
    }
    found.pop("data.zip", None)
    assert found == expected


# ---- Fetching --------------------------------------------------------------------------------


@pytest.fixture
def fetch(server: Server, original: Original, tmp_path: Path) -> Call:
    """Fetch the archive; an earlier run may have left some bytes. Return where it goes."""

    def call(left: bytes | None = None, url: str = server.url) -> Path:
        path = tmp_path / "new/data.zip"
        path.parent.mkdir(exist_ok=True)
        if left is not None:
            path.with_name("data.zip.partial").write_bytes(left)
        download.fetch(original.described, url, path)
        assert path.read_bytes() == original.content
        assert [file.name for file in path.parent.iterdir()] == ["data.zip"]
        return path

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
    vars(server.behaviour).update(behaviour)
    fetch(left and left(original.content))
    assert server.behaviour.requests == requests


def test_gives_up_on_a_server_in_trouble_and_keeps_what_came(
    server: Server, original: Original, fetch: Call, tmp_path: Path, pauses: list[float]
) -> None:
    server.behaviour.statuses = [503] * 10
    with pytest.raises(InputError, match=r"answered 503 .*; 7,000 of .* bytes are there, run the"):
        fetch(original.content[:7000])
    assert len(server.behaviour.requests) == 5
    assert len(pauses) == 4 and pauses == sorted(pauses) and pauses[-1] >= 10 * pauses[0] > 0
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["data.zip.partial"]
    assert (tmp_path / "new/data.zip.partial").read_bytes() == original.content[:7000]


def test_what_is_not_the_archive_is_refused(
    server: Server, original: Original, fetch: Call, tmp_path: Path
) -> None:
    server.behaviour.statuses = [404] * 5
    with pytest.raises(InputError, match=f"{server.url}: the server answered 404"):
        fetch()
    assert len(server.behaviour.requests) == 1
    server.behaviour.statuses = []
    server.behaviour.content = original.content[:-1] + b"?"
    with pytest.raises(InputError, match=r"is not the official archive \(SHA-256 differs\)"):
        fetch()
    assert list((tmp_path / "new").iterdir()) == []
    server.behaviour.content = b"<html>Please log in</html>"
    with pytest.raises(InputError, match=f"has 26 bytes, expected {len(original.content):,}"):
        fetch()
    server.behaviour.content, server.behaviour.wrong_place = original.content, True
    with pytest.raises(InputError, match="expected bytes from 7000"):
        fetch(original.content[:7000])
    for url in ("file:///etc/passwd", "data.zip"):
        with pytest.raises(InputError, match=f"--url {url}: expected an address"):
            fetch(url=url)
    assert not (tmp_path / "new/data.zip").exists()


def test_a_server_that_hangs_or_is_not_there(
    server: Server, fetch: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"refused; 0 of .* bytes are there"):
        fetch(url="http://127.0.0.1:9/data.zip")
    opened = urllib.request.urlopen
    monkeypatch.setattr(
        urllib.request, "urlopen", lambda request, timeout: opened(request, timeout=timeout / 300)
    )
    server.behaviour.cut_after = [500] * 2 + [0] * 10
    server.behaviour.hang = True
    with pytest.raises(InputError, match="timed out; 1,000 of"):
        fetch()


def test_a_full_disk_is_said_before_anything_is_fetched(
    server: Server, original: Original, fetch: Call, free_space: Callable[[int], None]
) -> None:
    """What an earlier run has left needs no more room."""
    free_space(len(original.content) - 7001)
    with pytest.raises(InputError, match=r"the disk has \d MB free, expected \d MB"):
        fetch(original.content[:7000])
    assert server.behaviour.requests == []
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
        monkeypatch.setattr(
            sys, "argv", [str(SCRIPT), "--output_dir", str(folder), *map(str, arguments)]
        )
        download.main()
        return folder

    return call


@pytest.fixture
def unpack(command: Call, original: Original, tmp_path: Path) -> Call:
    """Run the command on an archive that is there already."""

    def call(*arguments: object, content: bytes = original.content) -> Path:
        path = tmp_path / "mine.zip"
        path.write_bytes(content)
        return command("--archive", path, *arguments, content=content)

    return call


def test_the_whole_way(
    command: Call,
    server: Server,
    original: Original,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = tmp_path / "log.jsonl"
    folder = command("--url", server.url, "--log", log)
    check_tree(folder, original, ("answers", "metadata", "tests"))
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "next: python quickstart.py"
    assert "images" not in out

    def n_rows(name: str) -> int:
        return original.files[name].count(b"\n") - 1

    templates = folder / layout.TEMPLATE_DIR.name
    ranking = (templates / layout.TEMPLATE_TASK_3).read_text()
    assert ranking.count("\n") == n_rows("metadata/question_metadata_task_3_4.csv") + 1
    n_pairs = sum(n_rows(f"test_data/test_{phase}_answers_task_1.csv") for phase in layout.PHASES)
    assert (templates / layout.TEMPLATE_TASK_1_2).read_text().count("\n") == n_pairs + 1
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events == ["start", "fetched", "unpacked"]

    # Again: nothing is fetched, nothing is written again.
    before = {file: file.stat().st_mtime_ns for file in (folder / "train_data").iterdir()}
    command("--url", server.url)
    assert len(server.behaviour.requests) == 1
    assert {file: file.stat().st_mtime_ns for file in (folder / "train_data").iterdir()} == before


def test_parts_of_an_archive_that_is_there(
    unpack: Call,
    original: Original,
    free_space: Callable[[int], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = unpack("--parts", "metadata,images")
    check_tree(folder, original, ("metadata", "images"))
    assert "never share or publish them" in capsys.readouterr().out
    templates = [file.name for file in (folder / layout.TEMPLATE_DIR.name).glob("*.csv")]
    assert templates == [layout.TEMPLATE_TASK_3]
    # There has to be room for what is not there yet.
    answers = (data for name, data in original.files.items() if name.startswith("train_data/"))
    n_bytes = sum(map(len, answers))
    free_space(n_bytes - 1)
    with pytest.raises(InputError, match=r"the disk has \d MB free"):
        unpack("--parts", "answers,metadata")
    check_tree(folder, original, ("metadata", "images"))
    free_space(n_bytes)
    unpack("--parts", "answers,metadata")
    check_tree(folder, original, ("metadata", "images", "answers"))


def test_an_archive_that_is_not_the_official_one(
    command: Call, fails: Callable[..., str], tmp_path: Path
) -> None:
    path = tmp_path / "mine.zip"
    line = fails(["data/download.py", "--output_dir", tmp_path, "--archive", path])
    assert line == f"{path}: file not found, expected the official archive"
    path.write_bytes(b"PK")
    with pytest.raises(InputError, match=r"mine\.zip: is not the official archive, expected"):
        command("--archive", path)


def test_simulated_data_make_way(unpack: Call, original: Original, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    old = {"train_data/train_task_1_2.csv": b"old", "metadata/subject_metadata.csv": b"older"}
    for name, content in (*old.items(), (f"test_input/{layout.VALID_TASK_1_2}", b"of these")):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(content)
    files = {name: fingerprint(folder / name) for name in old}
    marker = {"files": {**files, "train_data/gone.csv": {"bytes": 3, "sha256": "0"}}}
    (folder / layout.SIMULATED_MARKER_NAME).write_text(json.dumps(marker))
    unpack("--parts", "answers")
    check_tree(folder, original, ("answers",))


@pytest.mark.parametrize("marked", [False, True])
def test_other_files_are_never_overwritten(unpack: Call, tmp_path: Path, marked: bool) -> None:
    file = tmp_path / "data/train_data/train_task_3_4.csv"
    file.parent.mkdir(parents=True)
    file.write_text("my own")
    if marked:  # simulated once, changed since
        marker = {"files": {"train_data/train_task_3_4.csv": {"bytes": 7, "sha256": "0"}}}
        (tmp_path / "data" / layout.SIMULATED_MARKER_NAME).write_text(json.dumps(marker))
    with pytest.raises(InputError, match=r"train_task_3_4.csv: is there and is not the archive's"):
        unpack()
    assert file.read_text() == "my own"
    assert not (tmp_path / "data/metadata").exists()


def link(name: str) -> zipfile.ZipInfo:
    found = zipfile.ZipInfo(name)
    found.external_attr = 0o120777 << 16
    return found


@pytest.mark.parametrize(
    "more",
    ["data/train_data/../../../outside.csv", "/outside.csv", "..\\outside.csv", "C:/outside.csv",
     link("data/train_data/outside.csv")],
    ids=str,
)  # fmt: skip
def test_paths_that_would_leave_the_folder_are_refused(
    unpack: Call, original: Original, tmp_path: Path, more: str | zipfile.ZipInfo
) -> None:
    with pytest.raises(InputError, match="which would leave the folder"):
        unpack(content=make_zip(original.files, more))
    assert not list(tmp_path.rglob("outside.csv"))
    assert not (tmp_path / "data").exists()


def test_an_archive_with_faulty_files(unpack: Call, original: Original, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no folder metadata, expected it for --parts meta"):
        unpack("--parts", "answers,metadata", content=make_zip({"train_data/a.csv": b"1"}))
    name = "train_data/train_task_3_4.csv"
    checksum = original.described.files[name]
    with pytest.raises(InputError, match=f"{name} has SHA-256 .*, expected {checksum}"):
        unpack(content=make_zip({**original.files, name: b"UserId\n1\n"}))
    checksum = zlib.crc32(original.files[name]).to_bytes(4, "little")
    with pytest.raises(InputError, match=f"{name} is damaged"):
        unpack("--parts", "answers", content=original.content.replace(checksum, b"none"))
    assert not (tmp_path / "data" / name).exists()


# ---- Kills -----------------------------------------------------------------------------------

# Forks one run after another, so that twenty of them take seconds. A run that gets a number on its
# line kills itself just before that many-th access to the disk.
DRIVER = """
import json, os, signal, sys

script, described, *arguments = sys.argv[1:]
sys.path.insert(0, os.path.dirname(script))
import download

download.OFFICIAL = download.Archive(**json.loads(described))
sys.argv = [script, *arguments]


def die_at(number):
    left = [number]
    folder = arguments[arguments.index("--output_dir") + 1]

    def count(event, details):
        touches = event in ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate")
        if touches and str(details[0]).startswith(folder):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


for line in sys.stdin:
    child = os.fork()
    if child == 0:
        if line.strip():
            die_at(int(line))
        try:
            download.cli.run(download.main)
        except SystemExit as end:
            os._exit(end.code)
        finally:
            os._exit(70)
    print(child, flush=True)
    status = os.waitpid(child, 0)[1]
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


@dataclass(frozen=True)
class Driver:
    process: "subprocess.Popen[str]"

    def start(self, die_at: int | None = None) -> int:
        """Start a run; return its process id."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{die_at or ''}\n")
        self.process.stdin.flush()
        return self._read()

    def wait(self) -> int:
        """Return the exit code of the run."""
        return self._read()

    def _read(self) -> int:
        assert self.process.stdout is not None
        # Skip what the run prints.
        while not (line := self.process.stdout.readline().strip()).lstrip("-").isdigit():
            assert line or self.process.poll() is None
        return int(line)


@pytest.fixture
def driver(server: Server, original: Original, tmp_path: Path) -> Iterator[Driver]:
    if not hasattr(os, "fork"):
        pytest.skip("the system cannot fork")
    described = vars(original.described)
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(SCRIPT), json.dumps(described),
         "--url", server.url, "--output_dir", str(tmp_path / "data")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    yield Driver(process)
    assert process.stdin is not None
    process.stdin.close()
    process.wait(20)


def check_nothing_wrong(folder: Path, original: Original) -> None:
    """Check that every file that has its final name has its final content."""
    for name, content in original.files.items():
        if (folder / name).exists():
            assert (folder / name).read_bytes() == content, name
    if (folder / "data.zip").exists():
        assert (folder / "data.zip").read_bytes() == original.content


def test_killed_at_20_random_moments_the_bytes_are_right(
    driver: Driver, server: Server, original: Original, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    # The transfer drips for a second or two in all; then it takes some tenths to unpack.
    server.behaviour.block = len(original.content) // 60
    server.behaviour.pause_seconds = 0.02
    moments = random.Random(20)
    stages = set()
    for _ in range(20):
        child = driver.start()
        threading.Event().wait(moments.uniform(0.0, 0.2))
        # A run that was quicker than the kill has ended by itself.
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        assert driver.wait() in (0, -signal.SIGKILL)
        check_nothing_wrong(folder, original)
        stages.add(((folder / "data.zip").exists(), (folder / "train_data").exists()))
    assert (False, False) in stages, "no kill hit the transfer"
    driver.start()
    assert driver.wait() == 0
    check_tree(folder, original, ("answers", "metadata", "tests"))
    n_resumed = sum(wanted != "" for wanted in server.behaviour.requests)
    assert n_resumed >= 3


def test_killed_before_every_touch_of_the_disk_the_bytes_are_right(
    driver: Driver, original: Original, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    n_kills = 0
    for number in (*range(1, 12), *range(12, 200, 3)):
        driver.start(die_at=number)
        code = driver.wait()
        check_nothing_wrong(folder, original)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        n_kills += 1
    assert code == 0
    assert n_kills >= 16
    check_tree(folder, original, ("answers", "metadata", "tests"))
