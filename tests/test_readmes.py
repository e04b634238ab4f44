"""Every command in a README runs, in order, in a kit with tiny data; every link leads somewhere."""

import re
from pathlib import Path

import pytest
from conftest import PAGES, ROOT, commands, run_as_on

# The guide's way has a test of its own.
WITH_COMMANDS = [
    page for page in PAGES if commands(ROOT / page) and page.name != "WRITE_YOUR_OWN_ENTRY.md"
]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=str)
def test_commands_run(page: Path, tiny_kit: Path) -> None:
    for program, *arguments in commands(ROOT / page):
        assert program in ("python", "python3")
        if arguments[0] == "quickstart.py":
            continue  # tests/test_quickstart.py runs it; with --test it is these very tests.
        done = run_as_on(page, arguments, tiny_kit)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", text):
        assert (ROOT / page.parent / target).exists(), target


def test_best_scores_of_related_challenges_are_those_of_the_main_page() -> None:
    main = (ROOT / "README.md").read_text(encoding="utf-8").partition("On real answers")[2]
    known = [float(number) for number in re.findall(r"\b0\.\d+", main)]
    page = (ROOT / "related_challenges/README.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if re.match(r"\| \[", line)]
    assert len(rows) == 4
    for row in rows:
        for number in re.findall(r"\b0\.\d+", row):
            assert any(number == f"{score:.3f}" for score in known), row


def test_the_main_commands_are_the_promised_ones() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "\npython3 quickstart.py\n" in text
    assert "\npython3 quickstart.py --test\n" in text


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_prose_wraps_at_one_width(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    long = [
        line
        for line in prose.splitlines()
        # Tables cannot wrap, nor can a single long word, such as a link.
        if len(line) > 100 and not line.startswith(("|", "    ")) and " " in line.strip()[:60]
    ]
    assert not long
