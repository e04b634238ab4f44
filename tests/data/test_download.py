"""The downloader copes with a server that breaks off or fails, and with being killed.

The archive is a zip laid out like the official one, with tiny simulated files.
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
from dataclasses import dataclass, field
from hashlib import sha256
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
# The contents of files; a key is the file's path below data/.
Files = dict[str, bytes]


def make_zip(files: Files, more: str | zipfile.ZipInfo = "") -> bytes:
    """Return a zip laid out like the official archive; a hostile member `more` may be added."""
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
    """Return a stand-in for the official archive: its files, and the zip that holds them."""
    data = simulated_kit / "data"
    files = {
        file.relative_to(data).as_posix(): file.read_bytes()
        for folder in ("train_data", "metadata", "test_data")
        for file in sorted((data / folder).iterdir())
    }
    files["images/0.jpg"] = b"no real picture"
    return files, make_zip(files)


@dataclass
class Case:
    """A download into the test's folder, from a server whose behaviour the fields set."""

    # The files that the archive holds, and the bytes of the archive itself, a zip.
    files: Files
    content: bytes
    # The folder into which the script downloads.
    folder: Path
    patch: pytest.MonkeyPatch
    # The address of the archive.
    url: str = ""
    # The script gives up after this number of seconds.
    timeout: float = 60.0
    # The bytes that the server sends; None stands for the archive.
    served: bytes | None = None
    # Instead of a file, the server first sends these HTTP statuses: one for each request, in this
    # order. Later requests get the file.
    statuses: list[int] = field(default_factory=list)
    # The server breaks its first replies off after these numbers of bytes: one number for each
    # reply, in this order. Later replies are complete.
    cut_after: list[int] = field(default_factory=list)
    # Whether the last byte that the server sends is wrong.
    last_byte_is_wrong: bool = False
    # Whether the server states a range that begins one byte too late.
    states_wrong_range: bool = False
    # Whether the server honours requests for a range of bytes.
    honours_ranges: bool = True
    # Whether the server states the length of its reply.
    states_length: bool = True
    # The range of bytes that each request asked for; empty if it asked for the whole file.
    requests: list[str] = field(default_factory=list)
    # Seconds between the requests.
    pauses: list[float] = field(default_factory=list)

    def run(self, *arguments: object) -> None:
        """Run the script's main function with these arguments."""
        argv = [SCRIPT, "--output_dir", self.folder, "--url", self.url, *arguments]
        self.patch.setattr(download, "SIZE", len(self.content))
        self.patch.setattr(download, "SHA256", sha256(self.content).hexdigest())
        self.patch.setattr(download, "TIMEOUT_SECONDS", self.timeout)
        self.patch.setattr(sys, "argv", [str(argument) for argument in argv])
        download.main()

    def leave(self, content: bytes) -> None:
        """Write the partial file of an earlier run that has fetched these bytes."""
        self.folder.mkdir()
        (self.folder / "data.zip.partial").write_bytes(content)

    def check(self, *parts: str) -> None:
        """Check that the folder holds exactly the files of these parts, and the record of them.

        A part is what the flag --parts names, such as "answers" or "images". The record lists the
        .csv files.
        """
        folders = {download.PARTS[part] for part in parts}
        expected = {}
        for name, content in self.files.items():
            first_folder, *_ = name.split("/")
            if first_folder in folders:
                expected[name] = content
        written = {}
        for file in self.folder.rglob("*"):
            # The script makes submission templates from the files of the archive. Other tests check
            # these.
            is_template = file.parent.name == layout.TEMPLATE_DIR.name
            if file.is_file() and not is_template:
                written[file.relative_to(self.folder).as_posix()] = file.read_bytes()
        # The archive may be kept or not; if it is kept, it is complete.
        assert written.pop("data.zip", self.content) == self.content
        record = json.loads(written.pop(layout.OFFICIAL_MARKER_NAME))
        assert set(record["files"]) == {name for name in expected if name.endswith(".csv")}
        assert written == expected


@pytest.fixture
def case(
    original: tuple[Files, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Case]:
    """Return a download from a server on this computer; pauses are recorded, but take no time."""
    case = Case(*original, tmp_path / "data", monkeypatch)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Send the file, or the range asked for; the fields of `case` say with which faults.

            The comments in `Case` explain the fields. A list, such as `statuses`, has an element
            for each request.
            """
            requested_range = self.headers.get("Range", "")
            case.requests.append(requested_range)
            # The first byte to send.
            start = 0
            if requested_range and case.honours_ranges:
                # `requested_range` is for example "bytes=1000-".
                start = int(requested_range.removeprefix("bytes=").removesuffix("-"))

            content = case.content if case.served is None else case.served
            if case.last_byte_is_wrong:
                content = content[:-1] + b"?"
            # The status 206 stands for a part of a file, and 200 for a whole file.
            status = 206 if start > 0 else 200
            if case.statuses:
                status = case.statuses.pop(0)
                content = b""

            self.send_response(status)
            # The first byte that the reply claims to send.
            stated_start = start
            if case.states_wrong_range:
                stated_start += 1
            stated_range = f"{stated_start}-{len(content) - 1}/{len(content)}"
            self.send_header("Content-Range", f"bytes {stated_range}")
            if case.states_length:
                # The script may ask for bytes beyond the end of the file. Then it gets no bytes.
                n_bytes = max(len(content) - start, 0)
                self.send_header("Content-Length", str(n_bytes))
            self.end_headers()

            end = len(content)
            if case.cut_after:
                # Break off early, without the bytes that the header has announced.
                n_sent = case.cut_after.pop(0)
                end = start + n_sent
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


# ---- Fetching ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trouble:
    """Trouble in spite of which the archive must be downloaded.

    Either the server causes it, or a partial file that an earlier run of the script has left.
    """

    # The ranges of bytes that the script must request; "" stands for the whole file.
    requests: list[str]
    # A function of the archive's content. It returns the content of the partial file, for example
    # the first 2,000 bytes of the archive. By default the partial file is empty.
    make_partial: Callable[[bytes], bytes] = lambda archive: b""
    # The values of those fields of `Case` that make the server cause trouble; for example,
    # `statuses`.
    behaviour: dict[str, Any] = field(default_factory=dict)


TROUBLES = {
    "the connection breaks off": Trouble(
        behaviour={"cut_after": [1000, 5000, 0, 20_000]},
        requests=["", "bytes=1000-", "bytes=6000-", "bytes=6000-", "bytes=26000-"],
    ),
    "other bytes were left": Trouble(
        make_partial=lambda archive: b"x" * 7000, requests=["bytes=7000-", ""]
    ),
    "too many bytes were left": Trouble(make_partial=lambda archive: archive + b"x", requests=[""]),
    "as many other bytes were left": Trouble(
        make_partial=lambda archive: b"x" * len(archive), requests=[""]
    ),
    "the server knows no ranges": Trouble(
        make_partial=lambda archive: archive[:2000],
        behaviour={"honours_ranges": False, "cut_after": [9000]},
        requests=["bytes=2000-", "bytes=9000-"],
    ),
    "the server is in trouble": Trouble(
        behaviour={"statuses": [503, 500, 429, 408]}, requests=["", "", "", "", ""]
    ),
}


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES.keys())
def test_the_archive_arrives_in_spite_of_trouble(trouble: Trouble, case: Case) -> None:
    vars(case).update(trouble.behaviour)
    case.leave(trouble.make_partial(case.content))
    case.run()
    assert case.requests == trouble.requests
    case.check("answers", "metadata", "tests")


@dataclass(frozen=True)
class Refusal:
    """A download that must fail."""

    # The values of those fields of `Case` that make the download fail; for example, `statuses`.
    behaviour: dict[str, Any]
    # The error message as a regular expression, in which URL stands for the archive's address and
    # SIZE for its number of bytes.
    message: str
    # How many requests the script sends to the server before it gives up.
    n_requests: int
    # How many bytes an earlier run has fetched; the partial file holds them.
    n_fetched_before: int = 0
    # Whether the partial file stays unchanged; otherwise the script removes it.
    partial_is_kept: bool = True


LOGIN_PAGE = b"<html>Please log in</html>"
REFUSED = {
    "server stays in trouble": Refusal(
        {"statuses": [503] * 9},
        "URL: the server answered 503 .*; 7,000 of SIZE bytes are there, run the command",
        n_requests=5,
        n_fetched_before=7000,
    ),
    "not found": Refusal({"statuses": [404] * 5}, "URL: the server answered 404", n_requests=1),
    "login page": Refusal({"served": LOGIN_PAGE}, "URL: has 26 bytes, expected SIZE", n_requests=1),
    "wrong last byte": Refusal(
        {"last_byte_is_wrong": True},
        r"URL: .* is not the official archive \(SHA-256 differs\)",
        n_requests=1,
        partial_is_kept=False,
    ),
    "another range than asked for": Refusal(
        {"states_wrong_range": True},
        "expected bytes from 7000",
        n_requests=5,
        n_fetched_before=7000,
    ),
    "no time": Refusal({"timeout": 0}, "URL: .*; 0 of .* bytes are there", n_requests=0),
    "no server": Refusal(
        {"url": "http://127.0.0.1:9/data.zip"},
        "URL: .*refused; 0 of .* bytes are there",
        n_requests=0,
    ),
    "login page instead of the rest": Refusal(
        {"served": LOGIN_PAGE, "states_length": False, "honours_ranges": False},
        "URL: sends other bytes than those already fetched",
        n_requests=1,
        n_fetched_before=7000,
    ),
    "no such host": Refusal(
        {"url": "http://a..b/"}, "URL: the host name is not valid", n_requests=0
    ),
}
REFUSED |= {
    f"address {url}": Refusal(
        {"url": url},
        "--url URL: expected an address that begins",
        n_requests=0,
        n_fetched_before=7000,
    )
    for url in (
        "http://",
        "http://[::1",
        "http://a:b",
        "http://a b",
        "http://\u00e9",
        "file://a",
    )
}


@pytest.mark.parametrize("refusal", REFUSED.values(), ids=REFUSED)
def test_a_download_that_fails_keeps_the_bytes_fetched_before_unless_they_are_wrong(
    refusal: Refusal, case: Case
) -> None:
    """The download that `refusal` describes fails, with the message that it names.

    The partial file of an earlier run stays, so that a later run can continue. But if its bytes are
    wrong, the script removes it.
    """
    # Set the fields of `case` that make the download fail.
    vars(case).update(refusal.behaviour)
    partial = case.content[: refusal.n_fetched_before]
    case.leave(partial)

    message = refusal.message.replace("URL", re.escape(case.url))
    message = message.replace("SIZE", f"{len(case.content):,}")
    with pytest.raises(InputError, match=message):
        case.run()

    assert len(case.requests) == refusal.n_requests
    if refusal.n_requests == 5:
        # The script has given up after five attempts, with these pauses between them.
        assert case.pauses == [1, 3, 10, 30]
    files = {path.name: path.read_bytes() for path in case.folder.iterdir()}
    assert files == ({"data.zip.partial": partial} if refusal.partial_is_kept else {})


def run_on_disk_with(case: Case, n_free: int, part: str) -> None:
    """Run the script for a part as if the disk had `n_free` bytes free."""
    usage = shutil.disk_usage(ROOT)._replace(free=n_free)
    with case.patch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda folder: usage)
        case.run("--parts", part)


FULL_DISK = r"the disk has \d MB free, expected \d MB"


def test_a_full_disk_is_reported_before_anything_is_fetched(case: Case) -> None:
    """Only the bytes that an earlier run has not fetched yet need free space."""
    case.leave(case.content[:7000])
    n_needed = len(case.content) - 7000
    with pytest.raises(InputError, match=FULL_DISK):
        run_on_disk_with(case, n_needed - 1, "images")
    assert case.requests == []
    run_on_disk_with(case, n_needed, "images")
    case.check("images")


def test_a_full_disk_is_reported_before_anything_is_unpacked(case: Case) -> None:
    """Only the files that an earlier run has not unpacked yet need free space."""
    case.run("--parts", "images")
    n_needed = sum(len(data) for name, data in case.files.items() if "train_data/" in name)
    with pytest.raises(InputError, match=FULL_DISK):
        run_on_disk_with(case, n_needed - 1, "answers")
    case.check("images")
    run_on_disk_with(case, n_needed, "answers")
    case.check("images", "answers")


# ---- Unpacking ---------------------------------------------------------------------------------


def test_by_default_all_parts_but_the_images_are_unpacked_and_templates_built(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    log = case.folder.parent / "log.jsonl"
    case.run("--log", log)
    case.check("answers", "metadata", "tests")
    assert capsys.readouterr().out.endswith("\nnext: python quickstart.py\n")
    templates = {path.name for path in (case.folder / layout.TEMPLATE_DIR.name).glob("*.csv")}
    assert templates == {layout.TEMPLATE_TASK_1_2, layout.TEMPLATE_TASK_3}
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events == ["start", "fetched", "unpacked"]


def test_a_second_run_neither_fetches_nor_writes_anything_again(case: Case) -> None:
    case.run()
    train = case.folder / "train_data"
    before = {file: file.stat().st_mtime_ns for file in train.iterdir()}
    case.run()
    assert len(case.requests) == 1
    assert {file: file.stat().st_mtime_ns for file in train.iterdir()} == before


def test_the_user_s_copy_of_the_archive_is_unpacked_in_parts_without_a_request(
    case: Case, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --archive, the script unpacks the user's copy of the archive, and fetches nothing.

    The first run unpacks two parts. The second run adds a part, and keeps the others.
    """
    archive = write("mine.zip", case.content)

    case.run("--parts", "metadata", "images", "--archive", archive)

    case.check("metadata", "images")
    assert "never share or publish them" in capsys.readouterr().out
    # The template of tasks 1 and 2 needs the part "tests", which is not unpacked here.
    templates = [file.name for file in (case.folder / layout.TEMPLATE_DIR.name).glob("*.csv")]
    assert templates == [layout.TEMPLATE_TASK_3]

    case.run("--parts", "answers", "metadata", "--archive", archive)

    case.check("metadata", "images", "answers")
    assert case.requests == []


def test_simulated_data_and_files_made_from_them_are_removed(case: Case, write: Write) -> None:
    """The script removes simulated data, and files that were made from them.

    The marker of simulated data, SIMULATED.json, lists the simulated files. Here, one of the listed
    files is missing.
    """
    simulated = (ANSWERS, "metadata/subject_metadata.csv", "train_data/gone.csv")
    marked = {name: fingerprints.fingerprint(write(f"data/{name}", "old")) for name in simulated}
    write(f"data/{layout.SIMULATED_MARKER_NAME}", json.dumps({"files": marked}))
    (case.folder / "train_data/gone.csv").unlink()
    # Another script has made this file from the simulated answers.
    write(f"data/test_input/{layout.VALID_TASK_1_2}", "a part of the simulated answers")

    case.run("--parts", "metadata", "images", "--archive", write("mine.zip", case.content))

    case.check("metadata", "images")


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


def test_simulated_files_of_a_competition_are_never_overwritten(case: Case, write: Write) -> None:
    path = write(f"data/{ANSWERS}", "simulated by the organiser")
    marked = {"hosted": True, "files": {ANSWERS: fingerprints.fingerprint(path)}}
    marker = write(f"data/{layout.SIMULATED_MARKER_NAME}", json.dumps(marked))
    with pytest.raises(InputError, match=f"{ANSWERS}: differs from the archive's file"):
        case.run()
    case.run("--parts", "metadata")
    assert path.is_file()
    assert marker.is_file()


SYMLINK = zipfile.ZipInfo("data/train_data/outside.csv")
SYMLINK.external_attr = 0o120777 << 16


def refuse(case: Case, archive: bytes, message: str) -> None:
    """Run the script on an archive that it must refuse, and check that nothing was unpacked."""
    path = case.folder.with_suffix(".zip")
    path.write_bytes(archive)
    with pytest.raises(InputError, match=message):
        case.run("--archive", path)
    files = [file for file in case.folder.parent.rglob("*") if file.is_file()]
    assert files == [path]


@pytest.mark.parametrize(
    "member",
    [
        "data/train_data/../../../outside.csv",
        "/outside.csv",
        "..\\outside.csv",
        "C:/outside.csv",
        pytest.param(SYMLINK, id="symlink"),
    ],
)
def test_an_archive_with_a_member_that_would_leave_the_folder_is_refused(
    case: Case, member: str | zipfile.ZipInfo
) -> None:
    case.content = make_zip(case.files, member)
    refuse(case, case.content, "which would leave the folder")


def test_a_damaged_archive_is_refused(case: Case) -> None:
    checksum_in_zip = zlib.crc32(case.files[ANSWERS]).to_bytes(4, "little")
    case.content = case.content.replace(checksum_in_zip, b"none")
    refuse(case, case.content, f"is a damaged zip file .*{ANSWERS}")


def test_another_file_than_the_archive_is_refused(case: Case) -> None:
    refuse(case, b"PK", r"zip: is not the official archive, expected")


def test_an_archive_that_is_missing_is_named(case: Case) -> None:
    path = case.folder.with_suffix(".zip")
    with pytest.raises(InputError, match=r"zip: file not found, expected the official archive"):
        case.run("--archive", path)


# ---- Kills -------------------------------------------------------------------------------------


def run_and_kill(case: Case, number: int) -> bool:
    """Run the script in a child process that kills itself just before a disk access.

    `number` counts the disk accesses from 1. The function returns False if the script has finished
    with fewer accesses.
    """
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(PATIENCE)
            kill_at_disk_access(case.folder, number)
            case.run()
            os._exit(0)
        finally:
            # The process comes here only if the script has raised an error. It must end, and not go
            # on with the tests. The exit code makes the assertion below fail.
            os._exit(70)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    # A file under its final name must be complete.
    for name, content in {**case.files, "data.zip": case.content}.items():
        path = case.folder / name
        if path.exists():
            assert path.read_bytes() == content, name
    was_killed = code == -signal.SIGKILL
    assert was_killed or code == 0
    return was_killed


def kill_at_disk_access(folder: Path, number: int) -> None:
    """Let this process kill itself just before it accesses a folder for the `number`th time."""
    n_accesses = 0

    def kill_in_time(event: str, details: Any) -> None:
        nonlocal n_accesses
        is_access = event in ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate")
        # For these events, the first detail is the path of the file or folder.
        if is_access and str(details[0]).startswith(str(folder)):
            n_accesses += 1
            if n_accesses == number:
                os.kill(os.getpid(), signal.SIGKILL)

    # Python calls `kill_in_time` before each opening, renaming or removing of a file.
    sys.addaudithook(kill_in_time)


@on_unix("fork, which makes the process that is killed")
def test_files_are_complete_or_missing_whenever_the_script_is_killed(case: Case) -> None:
    """The script is killed and started again until a run finishes.

    Each run continues where the previous run was killed. `run_and_kill` kills a run just before one
    of its disk accesses, and checks that each file is complete or missing. In addition, the server
    breaks the transfer off 20 times, so that all runs together need 21 replies.
    """
    n_breaks = 20
    n_replies = n_breaks + 1
    # Each of the first 20 replies sends 1/21 of the file; the last reply sends the rest.
    case.cut_after = [len(case.content) // n_replies] * n_breaks
    # Kill the first run before its first disk access, the second run before its second one, and so
    # on. After eleven runs, take only every third access, to save time.
    numbers_of_access = (*range(1, 12), *range(12, 200, 3))
    n_kills = 0
    for number in numbers_of_access:
        was_killed = run_and_kill(case, number)
        if not was_killed:
            # The run has finished before this access.
            break
        n_kills += 1
    # The first 16 runs are killed at the disk accesses 1, 2, …, 11, 12, 15, 18, 21 and 24. With
    # fewer kills, the test would reach only the first disk accesses of a run.
    assert n_kills >= 16

    case.check("answers", "metadata", "tests")
    # The first request asks for the whole file, without a range. Each of the 20 times that the
    # server breaks the transfer off, one more request follows, for another range. The kills cause
    # no request.
    ranges = [requested for requested in case.requests if requested]
    assert len(ranges) == n_breaks
    different_ranges = set(ranges)
    assert len(different_ranges) == n_breaks
