"""Files of student response analysis: students' answers, graded against reference answers.

Answers are a DataFrame, a row each, with the columns id; text; label, a categorical of one of
`LABEL_SETS`, empty where it is not known; and place, file and line, for messages. Of its question a
row has question, a number from 0; question_id; question_text; references, a list of texts; module,
the domain, such as ``EM``; scenario, which of `SCENARIOS` the file lies in; and path. The module
and the scenario are empty where there is none.
"""

from pathlib import Path
from typing import Any
from xml.parsers import expat

from common import challenge, io
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
# Test sets lie in folders of these names, those of BEETLE possibly in another folder in there.
SCENARIOS = ("test-unseen-answers", "test-unseen-questions", "test-unseen-domains")
CORE = "Core"

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]


def read_responses(folder: Path, *, reads_labels: bool | None = True) -> pd.DataFrame:
    """Read all answers of a folder, or of its test sets, one XML file for each question.

    Where labels are not read, the files need have none, and those that they have do not matter;
    with None they are read if any answer has one.
    """
    files = _find_files(folder)
    rows = []
    for number, (scenario, path) in enumerate(files):
        elements = _read_elements(path)
        question = _read_question(path, elements) | {"question": number, "scenario": scenario}
        for element in elements:
            if element["tag"] == "studentAnswer":
                own = {"id": _attribute(path, element, "id"), "label": element.get("accuracy", "")}
                # A student may leave an answer empty; that is an answer too.
                own |= {"text": element["text"], "place": f"{path}: line {element['line']}"}
                rows.append(own | question)
    if not rows:
        raise InputError(f"{folder}: holds {len(files)} questions but no studentAnswer")
    answers = pd.DataFrame(rows)
    repeated = answers[answers["id"].duplicated()]
    if len(repeated):
        known, place = repeated[["id", "place"]].iloc[0]
        first = answers.loc[answers["id"] == known, "place"].iloc[0]
        told = f"studentAnswer {quote(known)} is in {first} already"
        raise InputError(f"{place}: {told}, expected every id once")
    is_read = (answers["label"] != "").any() if reads_labels is None else reads_labels
    labels = _find_label_set(answers) if is_read else ()
    known = answers["label"].where(answers["label"].isin(labels))
    return answers.assign(label=pd.Categorical(known, labels))


def labels_of(answers: pd.DataFrame) -> list[str]:
    """Return the labels of the set that the answers use, of which codes are the numbers."""
    return list(answers["label"].cat.categories)


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


def _read_elements(path: Path) -> list[dict[str, Any]]:
    """Return the elements of an XML file in order: attributes, tag, line, and text at their start.

    The standard library's trees do not tell lines.
    """
    io.require_file(path)
    elements: list[dict[str, Any]] = []
    still_open: list[dict[str, Any]] = []
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        elements.append({**attributes, "tag": tag, "line": parser.CurrentLineNumber, "text": ""})
        still_open.append(elements[-1])

    def add_text(text: str) -> None:
        if still_open[-1] is elements[-1]:
            elements[-1]["text"] += text

    parser.StartElementHandler, parser.CharacterDataHandler = start, add_text
    parser.EndElementHandler = lambda _: still_open.pop()
    try:
        parser.Parse(path.read_bytes(), True)
    except expat.ExpatError as error:
        raise InputError(f"{path}: is not XML: {error}; is the file cut off?") from None
    except (LookupError, ValueError) as error:
        # An encoding that Python or its XML reader does not know.
        raise InputError(f"{path}: cannot be read as XML: {error}") from None
    root = elements[0]["tag"]
    if root != "question":
        raise InputError(f"{path}: holds <{printable(root, MAX_SHOWN)}>, expected <question>")
    return [element | {"text": element["text"].strip()} for element in elements]


def _read_question(path: Path, elements: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a file says of its question."""
    texts: dict[str, list[str]] = {"questionText": [], "referenceAnswer": []}
    for element in elements:
        if element["tag"] in texts:
            texts[element["tag"]].append(element["text"])
            if not element["text"]:
                where = f"{path}: line {element['line']}"
                raise InputError(f"{where}: <{element['tag']}> is missing or empty, expected text")
    if not texts["questionText"]:
        raise InputError(f"{path}: <questionText> is missing or empty, expected text")
    if not texts["referenceAnswer"]:
        raise InputError(f"{path}: holds no referenceAnswer, expected at least one")
    return {
        "question_id": _attribute(path, elements[0], "id"),
        "question_text": texts["questionText"][0],
        "references": texts["referenceAnswer"],
        "module": elements[0].get("module", ""),
        "path": path,
    }


def _attribute(path: Path, element: dict[str, Any], name: str) -> str:
    if not element.get(name):
        where = f"{path}: line {element['line']}"
        raise InputError(f"{where}: <{element['tag']}> has no attribute '{name}'")
    return str(element[name])


def _find_label_set(answers: pd.DataFrame) -> tuple[str, ...]:
    """Find the smallest set that holds all labels; 5-way files may lack the rare ones."""
    used = {*answers["label"]}
    if "" in used:
        raise InputError(
            f"{answers['place'][answers['label'] == ''].iloc[0]}: <studentAnswer> has no attribute "
            "'accuracy'; files without labels can be predicted, not learned from or scored"
        )
    for ways in sorted(LABEL_SETS):
        if used <= {*LABEL_SETS[ways]} and ("incorrect" in used or ways == max(LABEL_SETS)):
            return LABEL_SETS[ways]
    # One label of a 5-way set beside one of a 3-way set, or one of neither.
    known = LABEL_SETS[5 if used & ({*LABEL_SETS[5]} - {*LABEL_SETS[3]}) else 3]
    wrong = answers[~answers["label"].isin(known)].iloc[0]
    raise InputError(
        f"{wrong['place']}: attribute 'accuracy' of studentAnswer {quote(wrong['id'])} is "
        f"{quote(wrong['label'])}, expected one of {', '.join(sorted(known))}"
    )


def coarsen(name: str, ways: int) -> str:
    """Return the label of a set of 2, 3 or 5 that corresponds to one of any set."""
    return name if name in (*LABEL_SETS[ways], UNINTERPRETABLE) else "incorrect"


def read_predictions(path: Path, answers: pd.DataFrame, report: Report = stop) -> list[str]:
    """Read and check a submission: the label predicted for every answer, in their order."""
    data = io.read_columns(path, (ID, Column("label", TEXT)), report)
    rows = match_ids(path, data["id"], answers["id"].tolist(), "the answers", report)
    allowed = (*(labels_of(answers) or ALL_LABELS), UNINTERPRETABLE)
    # An empty cell has been reported already.
    faults = {
        row: f"is {quote(name)}"
        for row, name in enumerate(data["label"])
        if name and name not in allowed
    }
    challenge.report_cells(path, "label", faults, f"one of {', '.join(allowed)}", report)
    return [str(data["label"][row]) for row in rows]
