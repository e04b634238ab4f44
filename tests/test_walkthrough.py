"""The notebook runs from top to bottom on simulated answers, and shows what it showed before."""

import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
from conftest import ROOT, copy_kit
from nbclient import NotebookClient

NOTEBOOK = "walkthrough.ipynb"
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*")


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    """Return what the cells printed or returned as text, a text for each output."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error", output
            data = output.get("data", {})
            text = output.get("text", data.get("text/plain", ""))
            found.append("(picture)" if "image/png" in data else text)
    return found


@pytest.fixture(scope="module")
def stored() -> nbformat.NotebookNode:
    return nbformat.read(ROOT / NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def executed(
    stored: nbformat.NotebookNode, tmp_path_factory: pytest.TempPathFactory
) -> nbformat.NotebookNode:
    """The notebook run in a copy of the kit that has no data yet."""
    kit = copy_kit(tmp_path_factory.mktemp("walkthrough") / "kit")
    fresh = nbformat.from_dict(stored)
    for cell in fresh.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(fresh, timeout=300, resources={"metadata": {"path": str(kit)}})
    with pytest.MonkeyPatch.context() as patch:
        # The scripts that it runs are the copy's too.
        patch.setenv("PYTHONPATH", str(kit))
        client.execute()
    assert (kit / "submissions/submission_task_1.zip").is_file()
    return fresh


@pytest.mark.slow
def test_it_shows_what_it_showed_before(
    stored: nbformat.NotebookNode, executed: nbformat.NotebookNode
) -> None:
    # The copy has to simulate its data first, which says so.
    before, now = texts(stored), texts(executed)
    now = [text for text in now if not text.startswith("simulated data")]
    assert [NUMBER.sub("#", text) for text in now] == [NUMBER.sub("#", text) for text in before]
    for old, new in zip(before, now, strict=True):
        numbers = [
            [float(number.replace(",", "")) for number in NUMBER.findall(text)]
            for text in (old, new)
        ]
        # Another processor rounds otherwise, so that a few predictions may differ.
        assert np.allclose(*numbers, rtol=0.02, atol=0.003), new


def test_pictures_and_scores_are_in_it(stored: nbformat.NotebookNode) -> None:
    found = texts(stored)
    assert found.count("(picture)") == 4
    scores = [float(text.split()[1]) for text in found if text.startswith("score ")]
    assert len(scores) == 2
    assert scores[1] > scores[0] + 0.05
    assert any("B is better by" in text for text in found)
    assert any("valid for task 1" in text for text in found)


def test_sections_end_with_two_things_to_try(stored: nbformat.NotebookNode) -> None:
    page = "\n".join(cell.source for cell in stored.cells if cell.cell_type == "markdown")
    sections = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    assert len(sections) == 7
    for section in sections:
        to_try = section.split("**To try**")[1]
        assert re.findall(r"^(\d)\. ", to_try, re.MULTILINE) == ["1", "2"]


def test_links_lead_somewhere(stored: nbformat.NotebookNode) -> None:
    page = "\n".join(cell.source for cell in stored.cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert len(links) >= 5
    assert all((Path(ROOT) / link).is_file() for link in links)


def test_no_output_names_a_folder_of_a_machine(stored: nbformat.NotebookNode) -> None:
    assert not [text for text in texts(stored) if re.search(r"(^|\s)(/|[A-Z]:\\)\w", text)]
