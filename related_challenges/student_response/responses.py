"""Files and metrics of student response analysis: answers graded against reference answers."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from common import challenge, io
from common.errors import MAX_SHOWN, InputError, Report, printable, quote, stop
from common.folds import match_ids
from common.schema import TEXT, Column

# The label sets of the corpora, the finest first; the first label is the most frequent one.
LABEL_SETS = {
    5: ("correct", "partially_correct_incomplete", "contradictory", "irrelevant", "non_domain"),
    3: ("correct", "contradictory", "incorrect"),
    2: ("correct", "incorrect"),
}
CORRECT = "correct"
# A system may fail to interpret an answer; that is not a label, and leads to no feedback.
UNINTERPRETABLE = "uninterpretable"
FOLDS = "folds.csv"

_ID = Column("id", TEXT)
_LABEL = Column("label", TEXT)

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """A question with its reference answers."""

    id: str
    text: str
    references: tuple[str, ...]


@dataclass(frozen=True)
class Responses:
    """Students' answers to questions, as equally long columns.

    Attributes
    ----------
    questions
        The questions, in order of their files' names.
    ids
        Id of every answer.
    texts
        What the students wrote.
    question
        Number of the question of every answer, shape (answers,).
    label
        Number of the label of every answer in `labels`, shape (answers,).
    labels
        The labels that the files use, one of `LABEL_SETS`.
    """

    questions: list[Question]
    ids: list[str]
    texts: list[str]
    question: IntArray
    label: IntArray
    labels: tuple[str, ...]

    def __len__(self) -> int:
        """Count the answers."""
        return len(self.ids)


def read_responses(folder: Path) -> Responses:
    """Read all questions of a folder, one XML file each.

    Raises
    ------
    InputError
        If there is no such file, one is not as expected, an answer's id appears twice, or the
        labels do not belong to one set.
    """
    paths = sorted(folder.glob("*.xml"))
    if not paths:
        io.require_file(folder / "*.xml")
    questions, ids, texts, numbers, names = [], [], [], [], []
    file_of: dict[str, Path] = {}
    for number, path in enumerate(paths):
        root = _parse(path)
        text = _text(path, root.find("questionText"), "questionText")
        found = root.findall("referenceAnswers/referenceAnswer")
        references = tuple(_text(path, element, "referenceAnswer") for element in found)
        if not references:
            raise InputError(f"{path}: holds no referenceAnswer, expected at least one")
        questions.append(Question(_attribute(path, root, "id"), text, references))
        for element in root.findall("studentAnswers/studentAnswer"):
            answer_id = _attribute(path, element, "id")
            if answer_id in file_of:
                raise InputError(
                    f"{path}: studentAnswer {quote(answer_id)} is in {file_of[answer_id]} already"
                )
            file_of[answer_id] = path
            ids.append(answer_id)
            # A student may leave an answer empty; that is an answer too.
            texts.append((element.text or "").strip())
            numbers.append(number)
            names.append(_attribute(path, element, "accuracy"))
    if not ids:
        raise InputError(f"{folder}: holds {len(paths)} questions but no studentAnswer")
    labels = _find_label_set(names, [file_of[answer_id] for answer_id in ids], ids)
    label = np.array([labels.index(name) for name in names])
    return Responses(questions, ids, texts, np.array(numbers), label, labels)


def _parse(path: Path) -> ET.Element:
    io.require_file(path)
    try:
        root = ET.parse(path).getroot()
    except ET.ParseError as error:
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
        raise InputError(f"{path}: <{tag}> is missing or empty, expected text")
    return text


def _attribute(path: Path, element: ET.Element, name: str) -> str:
    value = element.get(name)
    if not value:
        raise InputError(f"{path}: <{element.tag}> has no attribute '{name}'")
    return value


def _find_label_set(
    names: Sequence[str], files: Sequence[Path], ids: Sequence[str]
) -> tuple[str, ...]:
    """Find the smallest set that holds all labels; 5-way files may lack the rare ones."""
    used = set(names)
    for ways in sorted(LABEL_SETS):
        if used <= set(LABEL_SETS[ways]) and ("incorrect" in used or ways == max(LABEL_SETS)):
            return LABEL_SETS[ways]
    # One label of a 5-way set beside one of a 3-way set, or one of neither.
    known = set(LABEL_SETS[5 if used & set(LABEL_SETS[5][1:2] + LABEL_SETS[5][3:]) else 3])
    wrong = next(number for number, name in enumerate(names) if name not in known)
    raise InputError(
        f"{files[wrong]}: attribute 'accuracy' of studentAnswer {quote(ids[wrong])} is "
        f"{quote(names[wrong])}, expected one of {', '.join(sorted(known))}"
    )


def coarsen(name: str, ways: int) -> str:
    """Return the label of a coarser set that corresponds to a label of any set.

    Parameters
    ----------
    name
        A label, or ``uninterpretable``, which stays as it is.
    ways
        2, 3 or 5: size of the set wanted.
    """
    return name if name in (*LABEL_SETS[ways], UNINTERPRETABLE) else "incorrect"


def write_predictions(
    path: Path, responses: Responses, label: IntArray, folds_file: Path | None = None
) -> None:
    """Write a submission: the label predicted for every answer.

    Parameters
    ----------
    path
        Where the CSV goes.
    responses
        What was predicted.
    label
        Number of the label of every answer in ``responses.labels``, shape (answers,).
    folds_file
        The folds, each predicted after learning from the others; None if there were none.
    """
    names = np.array(responses.labels, object)[label]
    columns = {"id": np.array(responses.ids, object), "label": names}
    challenge.write_submission(path, columns, folds_file=folds_file)


def read_predictions(path: Path, responses: Responses, report: Report = stop) -> list[str]:
    """Read and check a submission; `report` says what to do with a fault.

    Returns
    -------
    list of str
        The label predicted for every answer, in the order of the responses.

    Raises
    ------
    InputError
        If an answer is missing, unknown or twice there, or a label is not in the set.
    """
    data = io.read_columns(path, (_ID, _LABEL), report)
    rows = match_ids(path, data["id"], responses.ids, "the answers", report)
    allowed = (*responses.labels, UNINTERPRETABLE)
    # An empty cell has been reported already.
    wrong = [row for row, name in enumerate(data["label"]) if name and name not in allowed]
    if wrong:
        more = f" ({len(wrong)} such rows)" if len(wrong) > 1 else ""
        report(
            f"{path}: column 'label': row {io.file_source(path).row_number(wrong[0])} is "
            f"{quote(data['label'][wrong[0]])}{more}, expected one of {', '.join(allowed)}"
        )
    return [str(data["label"][row]) for row in rows]


def count(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> IntArray:
    """Count every combination of predicted and gold label, as the paper's figures do.

    Returns
    -------
    array of int64, shape (labels + 1, labels)
        Predictions in rows, gold labels in columns; the last row is ``uninterpretable``.
    """
    rows = [*labels, UNINTERPRETABLE]
    cells = np.zeros((len(rows), len(labels)), np.int64)
    predicted_number = [rows.index(name) for name in predicted]
    np.add.at(cells, (predicted_number, [labels.index(name) for name in gold]), 1)
    return cells


@dataclass(frozen=True)
class Measures:
    """Precision, recall and F1 in columns, in the order of the tables of Dzikovska et al. (2012).

    Attributes
    ----------
    by_label
        Shape (labels, 3).
    macro
        Mean over the labels, shape (3,).
    micro
        Mean weighted by how many gold answers have each label, shape (3,); the paper's micro
        average. Its recall is the accuracy.
    corrective
        The decision whether the answer needs correction, which is anything but ``correct``,
        shape (3,).
    """

    by_label: FloatArray
    macro: FloatArray
    micro: FloatArray
    corrective: FloatArray

    @property
    def accuracy(self) -> float:
        """Share of answers with the right label."""
        return float(self.micro[1])


def evaluate(counts: IntArray) -> Measures:
    """Compute the paper's measures from a matrix of counts; 0/0 counts as 0.

    Parameters
    ----------
    counts
        Predictions in rows, gold labels in columns, ``correct`` first. A row beyond the labels
        holds the answers without an interpretation: they count in the gold totals, but are no
        prediction of any label and lead to no correction.

    References
    ----------
    Dzikovska, Nielsen, Brew (2012), Towards effective tutorial feedback for explanation questions:
    a dataset and baselines, NAACL-HLT, section 4 and tables 2 and 3.
    """
    labelled = counts[: counts.shape[1]]
    gold, predicted, agreed = counts.sum(axis=0), labelled.sum(axis=1), np.diag(labelled)
    by_label = precision_recall_f1(agreed, predicted, gold)
    corrected = labelled[1:, 1:].sum()
    return Measures(
        by_label=by_label,
        macro=by_label.mean(axis=0),
        micro=gold @ by_label / gold.sum(),
        corrective=precision_recall_f1(corrected, predicted[1:].sum(), gold[1:].sum()),
    )


def precision_recall_f1(agreed: Any, predicted: Any, gold: Any) -> FloatArray:
    """Return precision, recall and F1 along a last axis of 3, from counts; 0/0 counts as 0."""
    agreed = np.asarray(agreed, float)
    ratios = (agreed, predicted), (agreed, gold), (2 * agreed, np.add(predicted, gold))
    return np.stack([above / np.maximum(below, 1) for above, below in ratios], axis=-1)
