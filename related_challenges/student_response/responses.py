"""Files and metrics of student response analysis: answers graded against reference answers."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
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

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """A question with its reference answers, as in its file.

    The module is the domain that it belongs to, such as ``EM``, and the scenario which of
    `SCENARIOS` the file lies in; nothing where there is none.
    """

    id: str
    text: str
    references: tuple[str, ...]
    module: str
    scenario: str
    path: Path


@dataclass(frozen=True)
class Responses:
    """Students' answers to questions, as equally long columns.

    Every answer has an id, a text, the number of its question and that of its label among those
    that the files use, one of `LABEL_SETS`; if they were not read, there are none, and the number
    is `UNKNOWN`. The line in the question's file is for messages.
    """

    questions: list[Question]
    ids: list[str]
    texts: list[str]
    question: IntArray
    label: IntArray
    labels: tuple[str, ...]
    lines: IntArray

    def __len__(self) -> int:
        """Count the answers."""
        return len(self.ids)

    def place(self, answer: int) -> str:
        """Say where an answer stands, for messages."""
        path = self.questions[self.question[answer]].path
        return f"{path}: line {self.lines[answer]}: studentAnswer {quote(self.ids[answer])}"


def read_responses(folder: Path, *, reads_labels: bool | None = True) -> Responses:
    """Read all questions of a folder, one XML file each.

    Parameters
    ----------
    folder
        Holds the files, or at least one of `SCENARIOS`, whose files are then read.
    reads_labels
        Whether to read the answers' labels; if not, the files need have none, and those that they
        have do not matter. None: if any answer has one.
    """
    questions: list[Question] = []
    ids, texts, numbers, names, lines = [], [], [], [], []
    place_of: dict[str, str] = {}
    for scenario, path in _find_files(folder):
        question, elements, line_of = _read_question(path, scenario)
        for element in elements:
            answer_id = _attribute(path, element, "id", line_of)
            place = f"{path}: line {line_of[element]}"
            if answer_id in place_of:
                raise InputError(
                    f"{place}: studentAnswer {quote(answer_id)} is in {place_of[answer_id]} "
                    "already, expected every id once"
                )
            place_of[answer_id] = place
            ids.append(answer_id)
            # A student may leave an answer empty; that is an answer too.
            texts.append((element.text or "").strip())
            numbers.append(len(questions))
            lines.append(line_of[element])
            names.append(element.get("accuracy", ""))
        questions.append(question)
    if not ids:
        raise InputError(f"{folder}: holds {len(questions)} questions but no studentAnswer")
    if reads_labels is None:
        reads_labels = any(names)
    labels = _find_label_set(names, place_of, ids) if reads_labels else ()
    label = np.array([labels.index(name) if labels else UNKNOWN for name in names])
    return Responses(questions, ids, texts, np.array(numbers), label, labels, np.array(lines))


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


def _read_question(
    path: Path, scenario: str
) -> tuple[Question, list[ET.Element], dict[ET.Element, int]]:
    """Read a file: the question, its studentAnswer elements, and the line of every element."""
    root, line_of = _parse(path)
    text = _text(path, root.find("questionText"), "questionText", line_of)
    found = root.findall("referenceAnswers/referenceAnswer")
    references = tuple(_text(path, element, "referenceAnswer", line_of) for element in found)
    if not references:
        raise InputError(f"{path}: holds no referenceAnswer, expected at least one")
    question_id = _attribute(path, root, "id", line_of)
    question = Question(question_id, text, references, root.get("module", ""), scenario, path)
    return question, root.findall("studentAnswers/studentAnswer"), line_of


def _parse(path: Path) -> tuple[ET.Element, dict[ET.Element, int]]:
    """Parse a file as `ET.parse` does, and note the line of every element."""
    io.require_file(path)
    builder = ET.TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    line_of: dict[ET.Element, int] = {}

    def start(tag: str, attributes: dict[str, str]) -> None:
        line_of[builder.start(tag, attributes)] = parser.CurrentLineNumber

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
    return root, line_of


def _text(path: Path, element: ET.Element | None, tag: str, line_of: dict[ET.Element, int]) -> str:
    text = "" if element is None else (element.text or "").strip()
    if not text:
        where = "" if element is None else f"line {line_of[element]}: "
        raise InputError(f"{path}: {where}<{tag}> is missing or empty, expected text")
    return text


def _attribute(path: Path, element: ET.Element, name: str, line_of: dict[ET.Element, int]) -> str:
    value = element.get(name)
    if not value:
        line = line_of[element]
        raise InputError(f"{path}: line {line}: <{element.tag}> has no attribute '{name}'")
    return value


def _find_label_set(
    names: Sequence[str], place_of: dict[str, str], ids: Sequence[str]
) -> tuple[str, ...]:
    """Find the smallest set that holds all labels; 5-way files may lack the rare ones."""
    used = set(names)
    if "" in used:
        raise InputError(
            f"{place_of[ids[names.index('')]]}: <studentAnswer> has no attribute 'accuracy'; files "
            "without labels can be predicted, not learned from or scored"
        )
    for ways in sorted(LABEL_SETS):
        if used <= set(LABEL_SETS[ways]) and ("incorrect" in used or ways == max(LABEL_SETS)):
            return LABEL_SETS[ways]
    # One label of a 5-way set beside one of a 3-way set, or one of neither.
    known = set(LABEL_SETS[5 if used & set(LABEL_SETS[5][1:2] + LABEL_SETS[5][3:]) else 3])
    wrong = next(number for number, name in enumerate(names) if name not in known)
    raise InputError(
        f"{place_of[ids[wrong]]}: attribute 'accuracy' of studentAnswer {quote(ids[wrong])} is "
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
