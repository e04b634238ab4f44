"""Open pages in a real browser, press its keys and look at what it shows.

The browser is Chromium without a window. Chromium's DevTools protocol is spoken over two pipes, so
neither a network port nor a library is needed: https://chromedevtools.github.io/devtools-protocol.
"""

import json
import os
import re
import select
import shutil
import signal
import sys
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), None)
needs_browser = pytest.mark.skipif(
    CHROMIUM is None or sys.platform != "linux",
    reason="no chromium here: this test opens the page in a real browser on Linux",
)
# If one step takes more seconds than this, the browser is thought to hang.
_PATIENCE = 60
# Chromium reads commands from file descriptor 3 and writes replies to file descriptor 4.
_CHROMIUM_READS = 3
_CHROMIUM_WRITES = 4
# The protocol's codes of the keys that tests press.
_KEY_CODES = {"ArrowLeft": 37, "ArrowRight": 39, "Backspace": 8}


@dataclass
class Tab:
    """A tab of a running browser."""

    # The test writes to one pipe and reads from the other.
    to_browser: int
    from_browser: int
    session: str = ""
    # The number of the last command.
    number: int = 0
    # Bytes of a message that is not complete yet.
    received: bytes = b""
    # Errors and warnings of the page's scripts. Tests check that this list is empty.
    complaints: list[str] = field(default_factory=list)

    def send(self, method: str, **parameters: Any) -> Any:
        """Send a command of the protocol and return its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        reply = self.wait_for(lambda message: message.get("id") == self.number)
        assert "error" not in reply, f"{method}: {reply['error']}"
        return reply["result"]

    def wait_for(self, is_wanted: Any) -> Any:
        """Read the browser's messages until `is_wanted` is true for one; return that message."""
        while True:
            message = self._receive()
            if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.complaints.append(json.dumps(message["params"]))
            if is_wanted(message):
                return message

    def _receive(self) -> Any:
        """Return the next message of the browser."""
        while b"\0" not in self.received:
            ready, _, _ = select.select([self.from_browser], [], [], _PATIENCE)
            assert ready, f"the browser has said nothing for {_PATIENCE} seconds"
            new = os.read(self.from_browser, 1 << 16)
            assert new, "the browser has ended"
            self.received += new
        message, _, self.received = self.received.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path) -> None:
        """Open a page, and wait until it is loaded."""
        self.send("Page.navigate", url=path.as_uri())
        self.wait_for(lambda message: message.get("method") == "Page.loadEventFired")

    def run(self, script: str) -> Any:
        """Return the value of an expression in JavaScript."""
        reply = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    def text(self) -> str:
        """Return the text that the page shows, on one line."""
        return re.sub(r"\s+", " ", self.run("document.body.innerText"))

    def click(self, element_id: str) -> None:
        """Scroll to an element and click in its middle, as a mouse does."""
        element = f"document.getElementById({element_id!r})"
        self.run(f"{element}.scrollIntoView({{block: 'center'}})")
        box = f"{element}.getBoundingClientRect()"
        x, y = self.run(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({box})")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, modifiers: int = 0, *, repeated: bool = False) -> None:
        """Press a key and release it; `modifiers` is 1 if Alt is held down, and 2 for Control.

        `repeated` sends the press as a key that is held down repeats it.
        """
        code = {"key": key, "windowsVirtualKeyCode": _KEY_CODES[key], "modifiers": modifiers}
        self.send("Input.dispatchKeyEvent", type="rawKeyDown", autoRepeat=repeated, **code)
        self.send("Input.dispatchKeyEvent", type="keyUp", **code)

    def type(self, text: str) -> None:
        """Type a text into the element that has the focus."""
        self.send("Input.insertText", text=text)

    def wait_for_file(self, folder: Path, pattern: str) -> Path:
        """Return the only file in a folder whose name matches a pattern, once it is saved."""
        deadline = time.monotonic() + _PATIENCE
        # Chromium gives a file its name only when it is saved completely.
        while not (paths := list(folder.glob(pattern))):
            assert time.monotonic() < deadline, f"the browser has saved no {pattern}"
            self.run("0")
            time.sleep(0.02)
        (path,) = paths
        return path

    def resize(self, width: int, height: int, scheme: str = "light") -> None:
        """Show the page on a screen of this size, in the colour scheme "light" or "dark"."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", features=[feature])

    def picture(self, path: Path) -> None:
        """Write a picture of the whole page, PNG, for people to look at."""
        reply = self.send("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(b64decode(reply["data"]))


@contextmanager
def open_browser(profile: Path, downloads: Path) -> Iterator[Tab]:
    """Start a browser and yield a tab of it; at the end, close the browser.

    The browser keeps the data that pages store in the folder `profile`. Files that a page saves go
    to the folder `downloads`.
    """
    # The first pipe takes commands to the browser, the second pipe takes its replies back.
    browser_reads, to_browser = _high_pipe()
    from_browser, browser_writes = _high_pipe()
    process = _start(profile, browser_reads, browser_writes)
    os.close(browser_reads)
    os.close(browser_writes)
    tab = Tab(to_browser, from_browser)
    try:
        _attach(tab, downloads)
        yield tab
        # Close the browser by a command, so that it first writes the data that pages have stored
        # into the profile. A command without a session goes to the browser itself, not to the tab.
        tab.session = ""
        tab.send("Browser.close")
        _wait_until_ended(process)
    finally:
        _kill(process)
        os.close(to_browser)
        os.close(from_browser)


def _start(profile: Path, reads: int, writes: int) -> int:
    """Start Chromium with one end of each of two pipes; return its process id.

    Chromium reads commands from descriptor 3 and writes replies to descriptor 4, whatever the
    descriptors `reads` and `writes` are in this process. So both descriptors are copied to these
    numbers in Chromium's process.
    """
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
    command += ["--no-first-run", "--disable-dev-shm-usage", "--hide-scrollbars"]
    # Without these flags, Chromium looks for updates and other news on the network.
    command += ["--disable-background-networking", "--disable-component-update"]
    command += [f"--user-data-dir={profile}", "about:blank"]
    silent = os.open(os.devnull, os.O_RDWR)
    actions = [
        (os.POSIX_SPAWN_DUP2, reads, _CHROMIUM_READS),
        (os.POSIX_SPAWN_DUP2, writes, _CHROMIUM_WRITES),
        (os.POSIX_SPAWN_DUP2, silent, 1),
        (os.POSIX_SPAWN_DUP2, silent, 2),
    ]
    # The process gets a group of its own, so that all its child processes can be ended.
    process = os.posix_spawn(CHROMIUM, command, os.environ, file_actions=actions, setpgroup=0)
    os.close(silent)
    return process


def _attach(tab: Tab, downloads: Path) -> None:
    """Open a tab in the browser, and let pages save files to the folder `downloads`."""
    tab.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))
    target = tab.send("Target.createTarget", url="about:blank")["targetId"]
    attached = tab.send("Target.attachToTarget", targetId=target, flatten=True)
    tab.session = attached["sessionId"]
    for domain in ("Page", "Runtime", "Log"):
        tab.send(f"{domain}.enable")


def _high_pipe() -> tuple[int, int]:
    """Open a pipe; return the descriptor to read from and the descriptor to write to.

    Both are at least 10, so that they differ from 3 and 4, which Chromium uses.
    """
    # Windows has no module `fcntl`, and tests that need a browser are skipped there.
    import fcntl

    ends = os.pipe()
    high_ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high_ends[0], high_ends[1]


def _wait_until_ended(process: int) -> None:
    """Wait until a process has ended, at most `_PATIENCE` seconds."""
    deadline = time.monotonic() + _PATIENCE
    # WNOWAIT leaves the ended process as a zombie. So no other process gets its id, and `_kill` can
    # end the process group with this id.
    while os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        assert time.monotonic() < deadline, "the browser does not close"
        time.sleep(0.02)


def _kill(process: int) -> None:
    """End a browser and all processes that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
