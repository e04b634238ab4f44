"""Every command in a README runs, in order, in a kit with tiny data; every link leads somewhere."""

import re
from pathlib import Path

import pytest
from conftest import PAGES, ROOT, commands, run_page_command
from recorded import recorded_doubts

# The guide is walked in a test of its own, test_write_your_own_entry.py.
WITH_COMMANDS = [page for page in PAGES if "WRITE" not in page.name and commands(ROOT / page)]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=str)
def test_commands_run_in_order(page: Path, tiny_kit: Path) -> None:
    has_scored = False
    for program, *arguments in commands(ROOT / page):
        assert program in ("python", "python3")
        if arguments[0] == "quickstart.py":
            # tests/test_quickstart.py runs it; with `--test` it would run these tests again.
            continue
        done = run_page_command(page, arguments, tiny_kit)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"
        has_scored |= arguments[0].endswith("local_evaluation.py")
    if has_scored:
        assert recorded_doubts(tiny_kit) == []


@pytest.mark.files
@pytest.mark.parametrize("page", [*PAGES, Path("walkthrough.ipynb")], ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", text):
        assert (ROOT / page.parent / target).exists(), target


@pytest.mark.files
def test_scores_are_those_of_the_pages_of_measurements() -> None:
    """Every score in the last cell of a README's table is also in tests/benchmarks/*.md."""
    pages = (ROOT / "tests/benchmarks").glob("*.md")
    measured = "".join(path.read_text(encoding="utf-8") for path in pages)
    readmes = [page for page in PAGES if page.name == "README.md" and page.parts[0] != "tests"]
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in readmes)
    scores = re.findall(r"\| (0\.\d+(?: ± 0\.\d+)?) \|$", text, re.MULTILINE)
    assert len(scores) > 30
    # The pages of measurements may show a score in bold.
    missing = [
        score for score in scores if f" {score} " not in measured and f"**{score}" not in measured
    ]
    assert missing == []
