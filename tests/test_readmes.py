"""Every command in a README runs, in order, in a kit with tiny data; every link leads somewhere."""

import re
from pathlib import Path

import pytest
from conftest import PAGES, ROOT, commands, run_as_on

# The guide's way has a test of its own.
WITH_COMMANDS = [page for page in PAGES if "WRITE" not in page.name and commands(ROOT / page)]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=str)
def test_commands_run(page: Path, tiny_kit: Path) -> None:
    for program, *arguments in commands(ROOT / page):
        assert program in ("python", "python3")
        if arguments[0] == "quickstart.py":
            continue  # tests/test_quickstart.py runs it; with --test it is these very tests.
        done = run_as_on(page, arguments, tiny_kit)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"


@pytest.mark.files
@pytest.mark.parametrize("page", [*PAGES, Path("walkthrough.ipynb")], ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", text):
        assert (ROOT / page.parent / target).exists(), target


@pytest.mark.files
def test_scores_are_those_of_the_pages_of_measurements() -> None:
    """A score that ends a row of a table in a README is on a page of measurements too."""
    pages = (ROOT / "tests/benchmarks").glob("*.md")
    known = "".join(path.read_text(encoding="utf-8") for path in pages)
    readmes = [page for page in PAGES if page.name == "README.md" and page.parts[0] != "tests"]
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in readmes)
    rows = re.findall(r"\| (0\.\d+(?: ± 0\.\d+)?) \|$", text, re.MULTILINE)
    assert len(rows) > 30
    assert not [score for score in rows if f" {score} " not in known and f"**{score}" not in known]
