"""The notebook runs from top to bottom on simulated answers; its stored outputs are right."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT, copy_kit
from nbclient import NotebookClient
from recorded import recorded_doubts
from run_scripts import PATIENCE
from sample_blocks import needs_blocks

STORED = nbformat.read(ROOT / "walkthrough.ipynb", as_version=4)
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*")
# Text that differs from run to run: the time of making or scoring a submission, and the version of
# its code.
VARYING = re.compile(r" on \d{4}-\d\d-\d\d \d\d:\d\d UTC|, code [0-9a-f]{12}")


def output_texts(notebook: nbformat.NotebookNode) -> list[str]:
    """Return the outputs of all cells of a notebook as texts; a picture becomes "(picture)"."""
    texts: list[str] = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            text = as_text(output)
            # On a slow machine, the line end of a printed text comes as a separate output. Add it
            # to the printed text.
            if text == "\n" and texts:
                texts[-1] += text
            else:
                texts.append(text)
    return texts


def as_text(output: nbformat.NotebookNode) -> str:
    """Return an output of a cell as a text."""
    # A printed text is the field `text`. Other outputs, such as pictures, are in the field `data`,
    # by format.
    if "data" not in output:
        return str(output.get("text", ""))
    if "image/svg+xml" in output["data"]:
        return "(picture)"
    return str(output["data"]["text/plain"])


def numbers(text: str) -> list[float]:
    """Return the numbers in a text."""
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def comparable(text: str) -> str:
    """Return a text in one line, without the parts that differ from run to run."""
    return VARYING.sub("", " ".join(text.split()))


# ---- The stored outputs ------------------------------------------------------------------------

STORED_TEXTS = output_texts(STORED)


def test_the_second_model_of_the_notebook_is_better_than_the_first() -> None:
    scores = []
    for text in STORED_TEXTS:
        # A line of the text begins with, for example, "score 0.6123 (accuracy".
        _, found, rest = text.partition("\nscore ")
        if found:
            scores.append(float(rest.split()[0]))
    first, second = scores
    assert second > first + 0.05


def test_the_notebook_shows_four_pictures() -> None:
    assert STORED_TEXTS.count("(picture)") == 4


def test_the_notebook_shows_no_path_of_its_author_s_machine() -> None:
    absolute_path = re.compile(r"(^|\s)(/|[A-Z]:\\)\w")
    assert not [text for text in STORED_TEXTS if absolute_path.search(text)]


# ---- A new run ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class NewRun:
    """A run of the notebook in a copy of the kit."""

    kit: Path
    # The outputs of all cells, without the messages about simulating data.
    texts: list[str]


@pytest.fixture(scope="module")
def new_run(tmp_path_factory: pytest.TempPathFactory) -> NewRun:
    """Run the notebook from top to bottom in a copy of the kit, which has no data yet."""
    kit = copy_kit(tmp_path_factory.mktemp("notebook") / "kit")
    notebook = nbformat.from_dict(STORED)
    resources = {"metadata": {"path": str(kit)}}
    client = NotebookClient(notebook, timeout=PATIENCE, resources=resources)
    try:
        with pytest.MonkeyPatch.context() as patch:
            # Let the scripts that the notebook runs import the modules of the copy.
            patch.setenv("PYTHONPATH", str(kit))
            all_texts = output_texts(client.execute())
    finally:
        # nbclient has imported ipykernel. Later tests run scripts in this process. Such a script
        # would find ipykernel loaded and behave as in a notebook.
        sys.modules.pop("ipykernel", None)
    # The stored notebook has no messages about simulating data, because its kit already had data.
    comparable_texts = [text for text in all_texts if not text.startswith("simulated data")]
    return NewRun(kit, comparable_texts)


runs_notebook = needs_blocks("task_1/sample_model_majority.py")


@pytest.mark.slow
@runs_notebook
def test_a_run_of_the_notebook_writes_a_submission_without_doubts(new_run: NewRun) -> None:
    assert (new_run.kit / "submissions/submission_task_1.zip").is_file()
    assert recorded_doubts(new_run.kit) == []


@pytest.mark.slow
@runs_notebook
def test_a_new_run_shows_the_stored_texts(new_run: NewRun) -> None:
    """Numbers in the texts are ignored here; the next test compares them."""
    stored = [NUMBER.sub("#", comparable(text)) for text in STORED_TEXTS]
    new = [NUMBER.sub("#", comparable(text)) for text in new_run.texts]
    assert new == stored


@pytest.mark.slow
@runs_notebook
def test_a_new_run_shows_nearly_the_stored_numbers(new_run: NewRun) -> None:
    """On another processor, rounding errors may change about 2 % of the 2,560 predictions.

    A change is about as likely to make a prediction right as to make it wrong. So the change of the
    accuracy is a random number with mean 0 and standard deviation √(0.02 / 2,560) = 0.003. Four of
    these deviations are 0.012, which is 2 % of an accuracy near 0.6.
    """
    for stored, new in zip(STORED_TEXTS, new_run.texts, strict=True):
        expected = pytest.approx(numbers(comparable(stored)), rel=0.02, abs=0.005)
        assert numbers(comparable(new)) == expected, new
