"""A copy of the kit with the simulated samples of the related challenges, and a fast way to run."""

import io
import runpy
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

ROOT = Path(__file__).resolve().parents[2]

# So that tests can import the challenges' own modules, as their scripts do.
sys.path += [str(path) for path in sorted((ROOT / "related_challenges").iterdir()) if path.is_dir()]


def run_here(arguments: Sequence[object], kit: Path = ROOT) -> str:
    """Run a script that must succeed inside this process, which saves importing again.

    The script is read and run as from the command line, with its own folder first on the path.
    """
    script, *flags = (str(argument) for argument in arguments)
    path = kit / script
    siblings = [sibling.stem for sibling in path.parent.glob("*.py")]
    hidden = {name: sys.modules.pop(name) for name in siblings if name in sys.modules}
    argv, search_path, handler = sys.argv, sys.path[:], signal.getsignal(signal.SIGTERM)
    sys.argv, sys.path[:0] = [str(path), *flags], [str(path.parent)]
    output, errors = io.StringIO(), io.StringIO()
    try:
        with (
            redirect_stdout(output),
            redirect_stderr(errors),
            # The scripts of a copy run with this kit's modules here, on purpose.
            patch("common.cli._require_own_kit"),
            pytest.raises(SystemExit) as stop,
        ):
            runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.argv, sys.path[:] = argv, search_path
        signal.signal(signal.SIGTERM, handler)
        for name in siblings:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)
    assert not stop.value.code, errors.getvalue()
    return output.getvalue()


@pytest.fixture(scope="session")
def succeeds() -> Callable[..., str]:
    """Run a script that must succeed; return what it prints."""
    return run_here


@pytest.fixture(scope="session")
def challenge_kit(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function from a challenge's name to a copy of the kit with its sample."""
    kit = tmp_path_factory.mktemp("related") / "kit"
    ignored = shutil.ignore_patterns("data", "__pycache__")
    for folder in ("common", "related_challenges"):
        shutil.copytree(ROOT / folder, kit / folder, ignore=ignored)

    def prepare(name: str) -> Path:
        if not (kit / f"related_challenges/{name}/data").exists():
            run_here([f"related_challenges/{name}/generate_sample.py"], kit=kit)
        return kit

    return prepare
