"""Files and metrics of student response analysis: answers graded against reference answers."""

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers import expat

from common import io
from common.errors import MAX_SHOWN, InputError, Report, printable, quote, stop
from common.folds import ID, match_ids
from common.schema import TEXT, Column

import numpy as np
import numpy.typing as npt
import pandas as pd

# The label sets of the corpora, the finest first; the first label is the most frequent one.
LABEL_SETS = {
    5: ("correct", "partially_correct_incomplete", "contradictory", "irrelevant", "non_domain"),
    3: ("correct", "contradictory", "incorrect"),
    2: ("correct", "incorrect"),
}
# Every label once.
ALL_LABELS = tuple(dict.fromkeys(name for names in LABEL_SETS.values() for name in names))
# A system may fail to interpret an answer; that is not a label, and leads to no feedback.
UNINTERPRETABLE = "uninterpretable"
# Number of a label that is not known.
UNKNOWN = -1
# Test sets lie in folders of these names, those of BEETLE possibly in another folder in there.
SCENARIOS = ("test-unseen-answers", "test-unseen-questions", "test-unseen-domains")
CORE = "Core"
# Attribute of an element with its line in the file.
LINE = "line"

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Responses:
    """Students' answers to questions, as equally long columns.

    Every answer has an id, a text, the row of its question and the number of its label among those
    that the files use, one of `LABEL_SETS`; if they were not read, there are none, and the number
    is `UNKNOWN`. For messages it has a place, a file and a line.

    The columns of the questions are id; text; references, a list of texts; module, the domain, such
    as ``EM``; scenario, which of `SCENARIOS` the file lies in; and path. The module and the
    scenario are empty where there is none.
    """

    questions: pd.DataFrame
    ids: list[str]
    texts: list[str]
    question: IntArray
    label: IntArray
    labels: tuple[str, ...]
    places: list[str]

    def __len__(self) -> int:
        """Count the answers."""
        return len(self.ids)


def read_responses(folder: Path, *, reads_labels: bool | None = True) -> Responses:
    """Read all questions of a folder, or of its test sets, one XML file each.

    Where labels are not read, the files need have none, and those that they have do not matter;
    with None they are read if any answer has one.
    """
    questions: list[dict[str, Any]] = []
    texts, numbers, names = [], [], []
    place_of: dict[str, str] = {}
    for scenario, path in _find_files(folder):
        root = _parse(path)
        questions.append(_read_question(path, root) | {"scenario": scenario, "path": path})
        for element in root.findall("studentAnswers/studentAnswer"):
            answer_id = _attribute(path, element, "id")
            place = f"{path}: line {element.get(LINE)}"
            if answer_id in place_of:
                raise InputError(
                    f"{place}: studentAnswer {quote(answer_id)} is in {place_of[answer_id]} "
                    "already, expected every id once"
                )
            place_of[answer_id] = place
            # A student may leave an answer empty; that is an answer too.
            texts.append((element.text or "").strip())
            numbers.append(len(questions) - 1)
            names.append(element.get("accuracy", ""))
    ids, places = list(place_of), list(place_of.values())
    if not ids:
        raise InputError(f"{folder}: holds {len(questions)} questions but no studentAnswer")
    if reads_labels is None:
        reads_labels = any(names)
    labels = _find_label_set(names, places, ids) if reads_labels else ()
    label = np.array([labels.index(name) if labels else UNKNOWN for name in names])
    table = pd.DataFrame(questions)
    return Responses(table, ids, texts, np.array(numbers), label, labels, places)


def _find_files(folder: Path) -> list[tuple[str, Path]]:
    """Find the files of a folder, or those of its test sets, each with its scenario."""
    own = folder.parent.name if folder.name == CORE else folder.name
    own = own if own in SCENARIOS else ""
    places = [(own, folder), (own, folder / CORE)] if own else [("", folder)]
    if not any(folder.glob("*.xml")):
        places += [(name, folder / name / part) for name in SCENARIOS for part in ("", CORE)]
    files = [(name, path) for name, place in places for path in sorted(place.glob("*.xml"))]
    if not files:
        io.require_file(folder / "*.xml")
    return files


def _read_question(path: Path, root: ET.Element) -> dict[str, Any]:
    """Return what a file says of its question."""
    text = _text(path, root.find("questionText"), "questionText")
    found = root.findall("referenceAnswers/referenceAnswer")
    references = [_text(path, element, "referenceAnswer") for element in found]
    if not references:
        raise InputError(f"{path}: holds no referenceAnswer, expected at least one")
    question_id = _attribute(path, root, "id")
    return {
        "id": question_id,
        "text": text,
        "references": references,
        "module": root.get("module", ""),
    }


def _parse(path: Path) -> ET.Element:
    """Parse a file as `ET.parse` does, and note the line of every element as its attribute."""
    io.require_file(path)
    builder = ET.TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def start(tag: str, attributes: dict[str, str]) -> None:
        builder.start(tag, attributes | {LINE: str(parser.CurrentLineNumber)})

    parser.StartElementHandler = start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(path.read_bytes(), True)
        root = builder.close()
    except expat.ExpatError as error:
        raise InputError(f"{path}: is not XML: {error}; is the file cut off?") from None
    except (LookupError, ValueError) as error:
        # An encoding that Python or its XML reader does not know.
        raise InputError(f"{path}: cannot be read as XML: {error}") from None
    if root.tag != "question":
        raise InputError(f"{path}: holds <{printable(root.tag, MAX_SHOWN)}>, expected <question>")
    return root


def _text(path: Path, element: ET.Element | None, tag: str) -> str:
    text = "" if element is None else (element.text or "").strip()
    if not text:
        where = "" if element is None else f"line {element.get(LINE)}: "
        raise InputError(f"{path}: {where}<{tag}> is missing or empty, expected text")
    return text


def _attribute(path: Path, element: ET.Element, name: str) -> str:
    value = element.get(name)
    if not value:
        where = f"{path}: line {element.get(LINE)}"
        raise InputError(f"{where}: <{element.tag}> has no attribute '{name}'")
    return value


def _find_label_set(names: list[str], places: list[str], ids: list[str]) -> tuple[str, ...]:
    """Find the smallest set that holds all labels; 5-way files may lack the rare ones."""
    used = set(names)
    if "" in used:
        raise InputError(
            f"{places[names.index('')]}: <studentAnswer> has no attribute 'accuracy'; files "
            "without labels can be predicted, not learned from or scored"
        )
    for ways in sorted(LABEL_SETS):
        if used <= set(LABEL_SETS[ways]) and ("incorrect" in used or ways == max(LABEL_SETS)):
            return LABEL_SETS[ways]
    # One label of a 5-way set beside one of a 3-way set, or one of neither.
    known = set(LABEL_SETS[5 if used & set(LABEL_SETS[5][1:2] + LABEL_SETS[5][3:]) else 3])
    wrong = next(number for number, name in enumerate(names) if name not in known)
    raise InputError(
        f"{places[wrong]}: attribute 'accuracy' of studentAnswer {quote(ids[wrong])} is "
        f"{quote(names[wrong])}, expected one of {', '.join(sorted(known))}"
    )


def coarsen(name: str, ways: int) -> str:
    """Return the label of a set of 2, 3 or 5 that corresponds to one of any set."""
    return name if name in (*LABEL_SETS[ways], UNINTERPRETABLE) else "incorrect"


def read_predictions(path: Path, responses: Responses, report: Report = stop) -> list[str]:
    """Read and check a submission: the label predicted for every answer, in their order."""
    data = io.read_columns(path, (ID, Column("label", TEXT)), report)
    rows = match_ids(path, data["id"], responses.ids, "the answers", report)
    allowed = (*(responses.labels or ALL_LABELS), UNINTERPRETABLE)
    # An empty cell has been reported already.
    wrong = [row for row, name in enumerate(data["label"]) if name and name not in allowed]
    if wrong:
        more = f" ({len(wrong)} such rows)" if len(wrong) > 1 else ""
        report(
            f"{path}: column 'label': row {io.file_source(path).row_number(wrong[0])} is "
            f"{quote(data['label'][wrong[0]])}{more}, expected one of {', '.join(allowed)}"
        )
    return [str(data["label"][row]) for row in rows]
