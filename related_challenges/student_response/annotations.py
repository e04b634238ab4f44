"""Annotations of answers, and the rules that make one of five labels of them.

A file of annotations has a row for each thing that an annotator says about an answer:

    id          id of the answer in the question files
    annotator   name of the annotator
    facet       a part of the reference answer, in any words; empty for a DeMAND label
    label       one of `FACETS` if the row names a facet, otherwise one of `DEMAND`

An annotator describes an answer either by one row without a facet, whose label is about the whole
answer, or by a row for each facet.

BEETLE was annotated with a single DeMAND label for each answer (Campbell et al. 2009), SciEntsBank
with a label for each facet of the reference answer (Nielsen et al. 2008, LREC). Dzikovska et al.
(2012) made their five labels of both.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from common import reading
from common.errors import InputError, quote, stop
from common.schema import TEXT, Column
from related_challenges import challenge

import pandas as pd

# Names of the folder of annotated answers and of the file of annotations in it.
FOLDER = "annotated_data"
FILE = "annotations.csv"
COLUMNS = (
    Column("id", TEXT),
    Column("annotator", TEXT),
    Column("facet", TEXT, may_be_empty=True),
    Column("label", TEXT),
)

# Maps each DeMAND label (a label of one scheme of annotation) to one of the five labels. An answer
# with an error is contradictory, even if other parts of it are right. An answer about the student
# (metacognitive) or the conversation (social) is not about the subject: it is `non_domain`.
DEMAND = {
    "correct": "correct",
    "pc_some_missing": "partially_correct_incomplete",
    "pc_some_error": "contradictory",
    "pc_error_missing": "contradictory",
    "incorrect": "contradictory",
    "irrelevant": "irrelevant",
    "metacognitive": "non_domain",
    "social": "non_domain",
}
# The four findings about a facet: the answer states the facet (understood), states the opposite
# (contradicted), or states neither (not addressed), or the question itself states the facet
# (assumed). An assumed facet is ignored, since it tells nothing about the answer.
UNDERSTOOD = "understood"
CONTRADICTED = "contradicted"
NOT_ADDRESSED = "not addressed"
ASSUMED = "assumed"
FACETS = {
    "Assumed": ASSUMED,
    "Expressed": UNDERSTOOD,
    "Inferred": UNDERSTOOD,
    "Contra-Expr": CONTRADICTED,
    "Contra-Infr": CONTRADICTED,
    "Self-Contra": CONTRADICTED,
    "Diff-Arg": NOT_ADDRESSED,
    "Unaddressed": NOT_ADDRESSED,
}


def label_of_facets(facet_labels: Collection[str]) -> str:
    """Return the label of an answer whose facets have these labels of `FACETS`.

    The first rule that applies counts:

    - ``contradictory`` if any facet is contradicted;
    - ``correct`` if all facets are understood;
    - ``partially_correct_incomplete`` if some facets are understood;
    - ``irrelevant`` if no facet is understood.

    Parameters
    ----------
    facet_labels : collection of str
        The labels of the answer's facets. Facets with the label ``Assumed`` are ignored, so at
        least one label must be another one.
    """
    findings = {FACETS[label] for label in facet_labels} - {ASSUMED}
    if CONTRADICTED in findings:
        return "contradictory"
    if findings == {UNDERSTOOD}:
        return "correct"
    if UNDERSTOOD in findings:
        return "partially_correct_incomplete"
    return "irrelevant"


def read_labels(path: Path, answers: pd.DataFrame) -> pd.DataFrame:
    """Read annotations, and turn what each annotator says about an answer into one of five labels.

    Parameters
    ----------
    path : Path
        File of annotations.
    answers : DataFrame
        The annotated answers, as `responses.read_responses` returns them.

    Returns
    -------
    DataFrame of str
        A row for each answer, with the answer's id as its index, in the order of `answers`. A
        column for each annotator, in the order in which they occur in the file. NaN if an annotator
        says nothing about an answer.

    Raises
    ------
    InputError
        If the file is faulty, or the annotator who comes first says nothing about an answer.
    """
    source = reading.file_source(path)
    rows = reading.read_table(source, COLUMNS)
    _require_valid(source, rows, answers)

    # The label of each pair (annotator, id of the answer).
    labels: dict[Any, str] = {}
    # A view is what one annotator says about one answer: `rows_of_view` are the rows of the view.
    for (answer_id, annotator), rows_of_view in rows.groupby(["id", "annotator"], sort=False):
        has_facets = rows_of_view["facet"].iloc[0] != ""
        if has_facets:
            label = label_of_facets(rows_of_view["label"].tolist())
        else:
            # The only row holds a DeMAND label, which is about the whole answer.
            demand_label = rows_of_view["label"].iloc[0]
            label = DEMAND[demand_label]
        labels[annotator, answer_id] = label
    # A row for each answer, a column for each annotator.
    by_annotator = pd.Series(labels).unstack(level=0)
    table = by_annotator.reindex(index=answers["id"], columns=rows["annotator"].unique())
    first = table.iloc[:, 0]
    if first.isna().any():
        raise InputError(
            f"{path}: annotator {quote(first.name)}, who comes first, says nothing about answer "
            f"{quote(first.index[first.isna()][0])}; expected a view of every answer, since these "
            "views become the labels"
        )
    return table


def _require_valid(source: reading.Source, rows: pd.DataFrame, answers: pd.DataFrame) -> None:
    """Raise `InputError` if the rows of a file of annotations contradict each other or the answers.

    The label of a row is one of `FACETS` if the row names a facet, otherwise one of `DEMAND` (see
    the module's docstring). `answers` are the annotated answers.
    """
    is_known = rows["id"].isin(answers["id"])
    _refuse_rows(source, rows, "id", ~is_known, expected="the id of an answer")

    is_facet = rows["facet"] != ""
    is_wrong_demand = ~is_facet & ~rows["label"].isin(DEMAND)
    _refuse_rows(source, rows, "label", is_wrong_demand, expected=_one_of(DEMAND))
    is_wrong_facet = is_facet & ~rows["label"].isin(FACETS)
    _refuse_rows(source, rows, "label", is_wrong_facet, expected=_one_of(FACETS))

    # About one answer, an annotator has either one row without a facet, or a row for each facet.
    answer_and_annotator = [rows["id"], rows["annotator"]]
    # For each row, count the rows of the same annotator about the same answer.
    n_rows = rows.groupby(answer_and_annotator)["label"].transform("size")
    is_mixed = ~is_facet & (n_rows > 1)
    is_repeated = rows.duplicated(["id", "annotator", "facet"])
    expected = "either one row without facet or one row for each facet, from each annotator"
    _refuse_rows(source, rows, "id", is_repeated | is_mixed, expected)

    # A facet with the label Assumed says nothing about the answer, because the question itself
    # states the facet. If an annotator labels facets of an answer, one at least must have another
    # label. `FACETS` holds the finding that each label of a facet stands for.
    finding = rows["label"].map(FACETS)
    is_assumed = is_facet & (finding == ASSUMED)
    all_assumed = is_assumed.groupby(answer_and_annotator).transform("all")
    expected = "a facet that is not Assumed for each answer"
    _refuse_rows(source, rows, "id", all_assumed, expected)


def _one_of(labels: Mapping[str, str]) -> str:
    """Return the names of labels in words, for messages."""
    return f"one of {', '.join(labels)}"


def _refuse_rows(
    source: reading.Source,
    rows: pd.DataFrame,
    column: str,
    is_wrong: "pd.Series[bool]",
    expected: str,
) -> None:
    """Raise `InputError` if any of the `rows` is wrong.

    `is_wrong` says for each row whether it is wrong. The message shows the values of the first
    wrong rows in this `column`. It ends with `expected`, which says what the column should hold.
    """
    # Maps the number of each wrong row to the text that says what is wrong. `stop` raises
    # `InputError` with the message.
    faults = {row: f"is {quote(rows[column][row])}" for row in rows.index[is_wrong]}
    challenge.report_faults(source, column, faults, expected, report=stop)
