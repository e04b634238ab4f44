"""The notebook runs from top to bottom on simulated answers, and shows what it showed before."""

import re
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT, copy_kit
from nbclient import NotebookClient

STORED = nbformat.read(ROOT / "walkthrough.ipynb", as_version=4)
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*")


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    """Return what the cells printed or returned as text, a text for each output."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    found = []
    for output in outputs:
        assert output.output_type != "error", output
        data = output.get("data", {})
        text = output.get("text", data.get("text/plain", ""))
        found.append("(picture)" if "image/png" in data else text)
    return found


@pytest.mark.slow
def test_it_shows_what_it_showed_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kit = copy_kit(tmp_path / "kit")
    # The scripts that it runs are the copy's too.
    monkeypatch.setenv("PYTHONPATH", str(kit))
    fresh = nbformat.from_dict(STORED)
    for cell in fresh.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(fresh, timeout=300, resources={"metadata": {"path": str(kit)}})
    before, now = texts(STORED), texts(client.execute())
    # To look for a kernel imports this, by which scripts know that they run in a notebook.
    sys.modules.pop("ipykernel", None)
    assert (kit / "submissions/submission_task_1.zip").is_file()
    # The copy has to simulate its data first, which says so.
    now = [text for text in now if not text.startswith("simulated data")]
    assert [NUMBER.sub("#", text) for text in now] == [NUMBER.sub("#", text) for text in before]
    for old, new in zip(before, now, strict=True):
        # Another processor rounds otherwise, so that a few predictions may differ.
        for one, other in zip(NUMBER.findall(old), NUMBER.findall(new), strict=True):
            shown, expected = (float(number.replace(",", "")) for number in (other, one))
            assert shown == pytest.approx(expected, rel=0.02, abs=0.005), new


def test_what_the_stored_outputs_show() -> None:
    found = texts(STORED)
    assert found.count("(picture)") == 4
    scores = [float(text.split()[1]) for text in found if text.startswith("score ")]
    assert len(scores) == 2
    assert scores[1] > scores[0] + 0.05
    assert any("B is better by" in text for text in found)
    assert any("valid for task 1" in text for text in found)
    assert not [text for text in found if re.search(r"(^|\s)(/|[A-Z]:\\)\w", text)]


def test_every_section_has_things_to_try() -> None:
    page = "\n".join(cell.source for cell in STORED.cells if cell.cell_type == "markdown")
    sections = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    assert len(sections) == 7
    for section in sections:
        to_try = section.split("**To try**")[1]
        assert re.findall(r"^(\d)\. ", to_try, re.MULTILINE) == ["1", "2"]
