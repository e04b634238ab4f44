"""The downloader against a local server that breaks off, fails, lies, and against kills.

Nothing of the official data is needed: the archive is a zip of the official layout that holds tiny
simulated files.
"""

import contextlib
import http.server
import importlib.util
import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from common import layout
from common.errors import InputError
from common.provenance import fingerprint

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "data" / "download.py"


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("download", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by name.
    sys.modules["download"] = module
    spec.loader.exec_module(module)
    return module


download = load_script()


# ---- The archive and the server --------------------------------------------------------------


@dataclass(frozen=True)
class Original:
    """An archive of the official layout, and the files in it by their path below data/."""

    content: bytes
    files: dict[str, bytes]

    @property
    def described(self) -> Any:
        train = [name for name in self.files if name.startswith("train_data/")]
        return download.Archive(
            url="http://127.0.0.1:9/unused",
            size=len(self.content),
            sha256=sha256(self.content).hexdigest(),
            files={name: sha256(self.files[name]).hexdigest() for name in train},
        )


def make_zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data/", b"")
        for name, content in files.items():
            archive.writestr(f"data/{name}", content)
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
            wanted = self.headers.get("Range", "")
            behaviour.requests.append(wanted)
            content = behaviour.content
            self.close_connection = True
            if behaviour.statuses:
                status = behaviour.statuses.pop(0)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start = 0
            if wanted and behaviour.ranges:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if start >= len(content):
                    self.send_response(416)
                    self.end_headers()
                    return
                place = start + behaviour.wrong_place
                self.send_response(206)
                self.send_header(
                    "Content-Range", f"bytes {place}-{len(content) - 1}/{len(content)}"
                )
            else:
                self.send_response(200)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            end = len(content)
            if behaviour.cut_after:
                end = min(end, start + behaviour.cut_after.pop(0))
            try:
                for place in range(start, end, behaviour.block):
                    self.wfile.write(content[place : min(end, place + behaviour.block)])
                    if stopped.wait(behaviour.pause_seconds):
                        return
                if behaviour.hang:
                    stopped.wait(20)
            except OSError:
                pass

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
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def archive(original: Original) -> Any:
    return original.described


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


def test_fetches(server: Server, archive: Any, original: Original, tmp_path: Path) -> None:
    path = tmp_path / "new" / "data.zip"
    download.fetch(archive, server.url, path)
    assert path.read_bytes() == original.content
    assert server.behaviour.requests == [""]
    assert [file.name for file in path.parent.iterdir()] == ["data.zip"]


def test_goes_on_after_cuts_with_range_requests(
    server: Server, archive: Any, original: Original, tmp_path: Path
) -> None:
    server.behaviour.cut_after = [1000, 5000, 0, 20_000]
    download.fetch(archive, server.url, tmp_path / "data.zip")
    assert (tmp_path / "data.zip").read_bytes() == original.content
    starts = ["", "bytes=1000-", "bytes=6000-", "bytes=6000-", "bytes=26000-"]
    assert server.behaviour.requests == starts


def test_goes_on_from_what_an_earlier_run_left(
    server: Server, archive: Any, original: Original, tmp_path: Path
) -> None:
    (tmp_path / "data.zip.partial").write_bytes(original.content[:7000])
    download.fetch(archive, server.url, tmp_path / "data.zip")
    assert (tmp_path / "data.zip").read_bytes() == original.content
    assert server.behaviour.requests == ["bytes=7000-"]


@pytest.mark.parametrize("left", ["rotten", "too long", "rotten and whole"])
def test_starts_again_if_what_was_left_is_wrong(
    server: Server, archive: Any, original: Original, tmp_path: Path, left: str
) -> None:
    content = {
        "rotten": b"x" * 7000,
        "too long": original.content + b"x",
        "rotten and whole": b"x" * len(original.content),
    }[left]
    (tmp_path / "data.zip.partial").write_bytes(content)
    download.fetch(archive, server.url, tmp_path / "data.zip")
    assert (tmp_path / "data.zip").read_bytes() == original.content
    assert server.behaviour.requests[-1] == ""


def test_a_server_without_ranges_serves_too(
    server: Server, archive: Any, original: Original, tmp_path: Path
) -> None:
    server.behaviour.ranges = False
    server.behaviour.cut_after = [9000]
    (tmp_path / "data.zip.partial").write_bytes(original.content[:2000])
    download.fetch(archive, server.url, tmp_path / "data.zip")
    assert (tmp_path / "data.zip").read_bytes() == original.content
    assert len(server.behaviour.requests) == 2


def test_tries_again_after_errors_of_the_server(
    server: Server, archive: Any, original: Original, tmp_path: Path
) -> None:
    server.behaviour.statuses = [503, 500, 429]
    download.fetch(archive, server.url, tmp_path / "data.zip")
    assert (tmp_path / "data.zip").read_bytes() == original.content


def test_gives_up_on_a_server_in_trouble_and_keeps_what_came(
    server: Server, archive: Any, original: Original, tmp_path: Path
) -> None:
    (tmp_path / "data.zip.partial").write_bytes(original.content[:7000])
    server.behaviour.statuses = [503] * 10
    with pytest.raises(InputError, match=r"answered 503 .*; 7,000 of .* bytes are there, run the"):
        download.fetch(archive, server.url, tmp_path / "data.zip")
    assert len(server.behaviour.requests) == 4
    assert (tmp_path / "data.zip.partial").read_bytes() == original.content[:7000]
    assert not (tmp_path / "data.zip").exists()


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_refusal_is_final(server: Server, archive: Any, tmp_path: Path, status: int) -> None:
    server.behaviour.statuses = [status] * 5
    with pytest.raises(InputError, match=f"{server.url}: the server answered {status}"):
        download.fetch(archive, server.url, tmp_path / "data.zip")
    assert len(server.behaviour.requests) == 1


def test_wrong_bytes_are_never_kept(
    server: Server, archive: Any, original: Original, tmp_path: Path
) -> None:
    server.behaviour.content = original.content[:-1] + b"?"
    with pytest.raises(InputError, match=r"is not the official archive \(SHA-256 differs\)"):
        download.fetch(archive, server.url, tmp_path / "data.zip")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_size_is_refused_at_once(
    server: Server, archive: Any, original: Original, tmp_path: Path
) -> None:
    server.behaviour.content = b"<html>Please log in</html>"
    message = f"has 26 bytes, expected {len(original.content):,}"
    with pytest.raises(InputError, match=message):
        download.fetch(archive, server.url, tmp_path / "data.zip")
    assert not (tmp_path / "data.zip").exists()


def test_a_server_that_sends_another_range_is_not_believed(
    server: Server, archive: Any, original: Original, tmp_path: Path
) -> None:
    (tmp_path / "data.zip.partial").write_bytes(original.content[:7000])
    server.behaviour.wrong_place = True
    with pytest.raises(InputError, match="expected bytes from 7000"):
        download.fetch(archive, server.url, tmp_path / "data.zip")


def test_a_server_that_hangs_is_asked_again(
    server: Server, archive: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 0.2)
    server.behaviour.cut_after = [500] * 2 + [0] * 10
    server.behaviour.hang = True
    with pytest.raises(InputError, match="timed out; 1,000 of"):
        download.fetch(archive, server.url, tmp_path / "data.zip")


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/data.zip", "file:///etc/passwd", "data.zip"])
def test_only_web_addresses(archive: Any, tmp_path: Path, url: str) -> None:
    with pytest.raises(InputError, match="--url"):
        download.fetch(archive, url, tmp_path / "data.zip")


def test_a_server_that_is_not_there(archive: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"refused; 0 of .* bytes are there"):
        download.fetch(archive, "http://127.0.0.1:9/data.zip", tmp_path / "data.zip")


def test_a_full_disk_is_said_before_anything_is_fetched(
    server: Server, archive: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(InputError, match="the disk has 0 MB free"):
        download.fetch(archive, server.url, tmp_path / "data.zip")
    assert server.behaviour.requests == []


# ---- The whole command -----------------------------------------------------------------------


@pytest.fixture
def command(archive: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the script's main function on a folder of the test's own."""

    def run(*arguments: str) -> Path:
        folder = tmp_path / "data"
        monkeypatch.setattr(download, "OFFICIAL", archive)
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--output_dir", str(folder), *arguments])
        download.main()
        return folder

    return run


def test_the_whole_way(
    command: Any, server: Server, original: Original, capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:  # fmt: skip
    log = tmp_path / "log.jsonl"
    folder = command("--url", server.url, "--log", str(log))
    check_tree(folder, original, ("answers", "metadata", "tests"))
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "next: python quickstart.py"
    assert "images" not in out
    templates = folder / layout.TEMPLATE_DIR.name
    ranking = (templates / layout.TEMPLATE_TASK_3).read_text().splitlines()
    questions = original.files["metadata/question_metadata_task_3_4.csv"].count(b"\n") - 1
    assert len(ranking) == questions + 1
    n_pairs = sum(
        original.files[f"test_data/test_{phase}_answers_task_1.csv"].count(b"\n") - 1
        for phase in layout.PHASES
    )
    assert (templates / layout.TEMPLATE_TASK_1_2).read_text().count("\n") == n_pairs + 1
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events == ["start", "fetched", "unpacked"]

    # Again: nothing is fetched, nothing is written again.
    before = {file: file.stat().st_mtime_ns for file in (folder / "train_data").iterdir()}
    command("--url", server.url)
    assert len(server.behaviour.requests) == 1
    assert {file: file.stat().st_mtime_ns for file in (folder / "train_data").iterdir()} == before


def test_parts_of_an_archive_that_is_there(
    command: Any, original: Original, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.zip"
    path.write_bytes(original.content)
    folder = command("--archive", str(path), "--parts", "metadata,images")
    check_tree(folder, original, ("metadata", "images"))
    assert "never share or publish them" in capsys.readouterr().out
    assert [file.name for file in (folder / layout.TEMPLATE_DIR.name).glob("*.csv")] == [
        layout.TEMPLATE_TASK_3
    ]
    folder = command("--archive", str(path), "--parts", "answers")
    check_tree(folder, original, ("metadata", "images", "answers"))


def test_an_archive_that_is_not_the_official_one(command: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine.zip"
    with pytest.raises(InputError, match=r"mine\.zip: file not found"):
        command("--archive", str(path))
    path.write_bytes(b"PK")
    with pytest.raises(InputError, match=r"mine\.zip: is not the official archive, expected"):
        command("--archive", str(path))


def test_simulated_data_make_way(
    command: Any, original: Original, tmp_path: Path, simulated_kit: Path
) -> None:
    folder = tmp_path / "data"
    (folder / "train_data").mkdir(parents=True)
    (folder / "metadata").mkdir()
    old = {"train_data/train_task_1_2.csv": b"old", "metadata/subject_metadata.csv": b"older"}
    for name, content in old.items():
        (folder / name).write_bytes(content)
    files = {name: fingerprint(folder / name) for name in old}
    marker = {"files": {**files, "train_data/gone.csv": {"bytes": 3, "sha256": "0"}}}
    (folder / layout.SIMULATED_MARKER_NAME).write_text(json.dumps(marker))
    (folder / "test_input").mkdir()
    (folder / "test_input" / layout.VALID_TASK_1_2).write_text("made of simulated data")
    path = tmp_path / "mine.zip"
    path.write_bytes(original.content)
    command("--archive", str(path), "--parts", "answers")
    check_tree(folder, original, ("answers",))


@pytest.mark.parametrize("marked", [False, True])
def test_other_files_are_never_overwritten(
    command: Any, original: Original, tmp_path: Path, marked: bool
) -> None:
    file = tmp_path / "data" / "train_data" / "train_task_3_4.csv"
    file.parent.mkdir(parents=True)
    file.write_text("my own")
    if marked:  # simulated once, changed since
        marker = {"files": {"train_data/train_task_3_4.csv": {"bytes": 7, "sha256": "0"}}}
        (tmp_path / "data" / layout.SIMULATED_MARKER_NAME).write_text(json.dumps(marker))
    path = tmp_path / "mine.zip"
    path.write_bytes(original.content)
    with pytest.raises(InputError, match=r"train_task_3_4.csv: is there and is not the archive's"):
        command("--archive", str(path))
    assert file.read_text() == "my own"
    assert not (tmp_path / "data" / "metadata").exists()


@pytest.mark.parametrize(
    "name",
    [
        "../outside.csv",
        "data/../../outside.csv",
        "/outside.csv",
        "data/train_data/../../../outside.csv",
        "..\\outside.csv",
        "C:/outside.csv",
    ],
)
def test_paths_that_would_leave_the_folder_are_refused(
    command: Any, original: Original, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in original.files.items():
            archive.writestr(f"data/{file}", content)
        archive.writestr(name, b"evil")
    described = Original(path.read_bytes(), original.files).described
    with pytest.raises(InputError, match="which would leave the folder"):
        download.plan(path, ("answers",), tmp_path / "data")
    monkeypatch.setattr(download, "OFFICIAL", described)
    assert not list(tmp_path.rglob("outside.csv"))
    assert not (tmp_path / "data").exists()


def test_links_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.zip"
    link = zipfile.ZipInfo("data/train_data/train_task_1_2.csv")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(InputError, match="would leave the folder"):
        download.plan(path, ("answers",), tmp_path / "data")


def test_a_part_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "mine.zip"
    path.write_bytes(make_zip({"train_data/a.csv": b"1"}))
    with pytest.raises(InputError, match="holds no folder metadata, expected it for --parts meta"):
        download.plan(path, ("answers", "metadata"), tmp_path / "data")


def test_a_training_file_with_another_checksum_is_refused(
    original: Original, archive: Any, tmp_path: Path
) -> None:
    path = tmp_path / "mine.zip"
    name = "train_data/train_task_3_4.csv"
    path.write_bytes(make_zip({**original.files, name: b"UserId\n1\n"}))
    files = download.plan(path, ("answers",), tmp_path / "data")
    with pytest.raises(InputError, match=f"{name} has SHA-256 .*, expected {archive.files[name]}"):
        download.unpack(path, files, archive, tmp_path / "data")
    assert not (tmp_path / "data" / name).exists()


def test_the_script_itself_ends_with_one_line(fails: Any, tmp_path: Path) -> None:
    wrong = ["data/download.py", "--output_dir", tmp_path, "--archive", tmp_path / "no.zip"]
    assert fails(wrong) == f"{tmp_path / 'no.zip'}: file not found, expected the official archive"


# ---- Kills -----------------------------------------------------------------------------------

# Forks one run after another, so that twenty of them take seconds. A run that gets a number on its
# line kills itself just before that many-th access to the disk.
DRIVER = """
import importlib.util, json, os, signal, sys

script, described, *arguments = sys.argv[1:]
spec = importlib.util.spec_from_file_location("download", script)
download = importlib.util.module_from_spec(spec)
sys.modules["download"] = download
spec.loader.exec_module(download)
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
def driver(server: Server, archive: Any, tmp_path: Path) -> Iterator[Driver]:
    if not hasattr(os, "fork"):
        pytest.skip("the system cannot fork")
    described = {name: getattr(archive, name) for name in ("url", "size", "sha256", "files")}
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
    # The transfer drips for about three seconds in all; then it takes some tenths to unpack.
    server.behaviour.block = len(original.content) // 60
    server.behaviour.pause_seconds = 0.05
    moments = random.Random(20)
    stages = set()
    for _ in range(20):
        child = driver.start()
        time.sleep(moments.uniform(0.0, 0.4))
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
    for number in (*range(1, 12), *range(12, 200, 2)):
        driver.start(die_at=number)
        code = driver.wait()
        check_nothing_wrong(folder, original)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        n_kills += 1
    assert code == 0
    assert n_kills >= 20
    check_tree(folder, original, ("answers", "metadata", "tests"))
