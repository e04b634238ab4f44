"""Files and measures of student response analysis: answers graded against reference answers.

Answers are a DataFrame with a row for each answer and these columns:

    id              str, unique
    text            str, possibly empty
    label           categorical, whose categories are one of `LABEL_SETS`; NaN if unknown
    place           file and line of the answer, for messages
    question        number of the question, from 0
    question_id     id of the question in its file
    question_text   text of the question
    references      list of the reference answers of the question
    module          domain of the question, such as ``EM``; empty if unknown
    scenario        test set that the file belongs to, one of `SCENARIOS`; empty if none
    path            file of the question
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias
from xml.parsers import expat

from common import fingerprints, provenance, reading
from common.arrays import BoolArray, IntArray
from common.errors import MAX_SHOWN, InputError, Report, printable, quote, stop
from common.stray_files import list_paths
from related_challenges import challenge, folds

import numpy as np
import pandas as pd

# The sets of labels, by their number of labels, from the largest set to the smallest.
LABEL_SETS = {
    5: ("correct", "partially_correct_incomplete", "contradictory", "irrelevant", "non_domain"),
    3: ("correct", "contradictory", "incorrect"),
    2: ("correct", "incorrect"),
}
ALL_LABELS = tuple(dict.fromkeys(name for names in LABEL_SETS.values() for name in names))
# A system that cannot interpret an answer predicts this. As a prediction, it is always wrong.
UNINTERPRETABLE = "uninterpretable"
# Names of the folders of test sets. A test set is also called a scenario.
UNSEEN_ANSWERS = "test-unseen-answers"
UNSEEN_QUESTIONS = "test-unseen-questions"
UNSEEN_DOMAINS = "test-unseen-domains"
SCENARIOS = (UNSEEN_ANSWERS, UNSEEN_QUESTIONS, UNSEEN_DOMAINS)
# The files of a test set may be in a subfolder of this name.
CORE = "Core"

# Where labels are numbers, this number stands for an unknown label.
UNKNOWN = -1
# The most frequent label must have at least this many training answers, since models choose their
# settings by stratified cross-validation on five parts.
MIN_ANSWERS = 5

# Names of the two corpora. The paths of a corpus's files contain its name.
BEETLE = "beetle"
SCIENTSBANK = "sciEntsBank"

# How to read labels. With "if present", they are read if any answer has one.
LabelReading: TypeAlias = Literal["required", "ignored", "if present"]


class Fit(NamedTuple):
    """Answers to learn from and to predict, for one fit of a model."""

    # Whether to learn from each answer, shape (answers,).
    train: BoolArray
    # Whether to predict each answer, shape (answers,).
    test: BoolArray
    # Label number of every answer to learn from, `UNKNOWN` for all others, shape (answers,).
    label: IntArray


# ---- Files -----------------------------------------------------------------------------------


def read_responses(folder: Path, *, labels: LabelReading = "required") -> pd.DataFrame:
    """Read and check all answers of a folder, or of the test sets in it.

    Parameters
    ----------
    folder : Path
        Folder that holds XML files, one for each question, or the folders of test sets.
    labels : {"required", "ignored", "if present"}
        How to read labels. With "if present", they are read if any answer has one.

    Returns
    -------
    DataFrame
        Answers with the columns that the module's docstring lists. If labels are not read, `label`
        is NaN and has no categories.

    Raises
    ------
    InputError
        If the folder has no files, a file is faulty, or an answer lacks the label to be read.
    """
    files = _find_files(folder)
    rows = []
    for number, (scenario, path) in enumerate(files):
        if labels != "ignored":
            # The caller reads labels, so a model may learn from this file. Note it as a source: an
            # evaluation can then tell if a model has learned from the answers on which it is
            # scored.
            provenance.note_source(path)
        for element in _read_elements(path):
            rows.append(element | {"question": number, "scenario": scenario, "path": path})
    elements = pd.DataFrame(rows)
    # Each file holds one question, and the first element of a file is its root.
    roots = elements.drop_duplicates("question")
    _check_questions(elements, roots)
    # A student may leave an answer empty; the empty text is an answer too.
    answers = elements[elements["tag"] == "studentAnswer"]
    _require_ids(roots, answers)
    if not len(answers):
        raise InputError(f"{folder}: holds {len(files)} questions but no studentAnswer")

    # `texts` has a row for each question and a column for each tag. A cell is the list of all texts
    # with the tag.
    texts = elements.groupby(["question", "tag"])["text"].agg(list).unstack()
    questions = roots.set_index("question")[["id", "module", "scenario", "path"]]
    questions = questions.rename(columns={"id": "question_id"}).assign(
        # If a question has several texts, use the first one.
        question_text=texts["questionText"].str[0],
        references=texts["referenceAnswer"],
    )
    answers = answers[["id", "label", "text", "place", "question"]].join(questions, on="question")
    has_labels = bool((answers["label"] != "").any())
    label_set: tuple[str, ...] = ()
    if labels == "required" or (labels == "if present" and has_labels):
        label_set = _find_label_set(answers)
    # If labels are not read, `label_set` is empty and every label becomes NaN.
    known = answers["label"].where(answers["label"].isin(label_set))
    return answers.assign(label=pd.Categorical(known, label_set)).reset_index(drop=True)


def _require_ids(roots: pd.DataFrame, answers: pd.DataFrame) -> None:
    """Raise `InputError` if a question or an answer has no id, or two answers have the same id."""
    _refuse_first(roots[roots["id"] == ""], "<{tag}> has no attribute 'id'")
    _refuse_first(answers[answers["id"] == ""], "<{tag}> has no attribute 'id'")
    # The place where each id occurs first.
    first_place = answers.groupby("id")["place"].transform("first")
    repeated = answers.assign(first_place=first_place)[answers["id"].duplicated()]
    _refuse_first(
        repeated, "studentAnswer {id} is in {first_place} already, expected every id once"
    )


def _check_questions(elements: pd.DataFrame, roots: pd.DataFrame) -> None:
    """Raise `InputError` for a file without a question, or a question without text or reference."""
    wrong_roots = roots[roots["tag"] != "question"]
    if len(wrong_roots):
        path, tag = wrong_roots[["path", "tag"]].iloc[0]
        raise InputError(f"{path}: holds <{printable(tag, MAX_SHOWN)}>, expected <question>")
    for tag in ("questionText", "referenceAnswer"):
        tagged = elements[elements["tag"] == tag]
        missing = roots[~roots["question"].isin(tagged["question"])]
        empty = tagged[tagged["text"] == ""]
        _refuse_first(pd.concat([missing, empty]), f"<{tag}> is missing or empty, expected text")


def _refuse_first(wrong: pd.DataFrame, message: str) -> None:
    """Raise `InputError` about the first of the wrong rows; do nothing if there are no wrong rows.

    `message` is a format string. For example, ``{tag}`` in it is replaced by the value of the
    column `tag` in the first wrong row. Ids and labels are quoted.
    """
    if not len(wrong):
        return
    values: dict[Any, Any] = wrong.iloc[0].to_dict()
    for name in ("id", "label"):
        values[name] = quote(str(values[name]))
    raise InputError(f"{values['place']}: {message.format(**values)}")


def labels_of(answers: pd.DataFrame) -> list[str]:
    """Return the answers' set of labels as a list; a label's number is its position in the list."""
    return list(answers["label"].cat.categories)


def find_question_files(folder: Path) -> list[Path]:
    """Return the XML files of a folder, or of the test sets in it."""
    return [path for _, path in _find_files(folder)]


def _find_files(folder: Path) -> list[tuple[str, Path]]:
    """Return the XML files of a folder, or of the test sets in it, as pairs (scenario, file)."""
    # A test set (scenario) is a folder whose name is in `SCENARIOS`. Its files are in this folder
    # itself or in the subfolder Core. If `folder` is a test set or its subfolder Core, the name of
    # the test set is one of the last two parts of the path, and all files belong to this test set.
    own_scenario = ""
    for scenario in SCENARIOS:
        if scenario in folder.parts[-2:]:
            own_scenario = scenario
            break
    # Pairs of a test set and a folder to search: the files in the folder belong to this test set.
    places = [(own_scenario, folder), (own_scenario, folder / CORE)]
    # A folder without XML files of its own may hold folders of test sets.
    if not any(list_paths(folder, "*.xml")):
        for scenario in SCENARIOS:
            places.append((scenario, folder / scenario))
            places.append((scenario, folder / scenario / CORE))
    files = []
    for scenario, place in places:
        for path in list_paths(place, "*.xml"):
            files.append((scenario, path))
    if not files:
        # `require_file` raises an error that says what is missing, as no file is called *.xml.
        reading.require_file(folder / "*.xml")
    return files


def _read_elements(path: Path) -> list[dict[str, Any]]:
    """Return the elements of an XML file, the root first.

    The kit records which files a result was made from. This function does not add the file to the
    record; its caller decides whether to add it.

    Each element is a dict with the keys

    - tag: the element's tag;
    - id, module: the attributes of these names, empty if missing;
    - label: the attribute `accuracy`, empty if missing;
    - place: the file and the line, for messages;
    - text: the text before the element's first child.
    """
    reading.require_file(path)
    elements: list[dict[str, Any]] = []
    # Use expat to read the file, since ElementTree does not tell the line numbers of elements.
    parser = expat.ParserCreate()
    # With a buffer, expat passes the text between two tags to `add_text` in one piece. Otherwise it
    # would pass a piece for every entity, such as &amp;. Appending each piece would be slow.
    parser.buffer_text = True
    parser.buffer_size = 2**20

    def start(tag: str, attributes: dict[str, str]) -> None:
        """Append an element to `elements`, and let expat pass the text after it to `add_text`."""
        element = {
            "id": attributes.get("id", ""),
            "module": attributes.get("module", ""),
            "label": attributes.get("accuracy", ""),
            "tag": tag,
            "place": f"{path}: line {parser.CurrentLineNumber}",
            "text": "",
        }
        elements.append(element)
        # Up to the next tag, the text that follows belongs to this element.
        parser.CharacterDataHandler = add_text

    def add_text(text: str) -> None:
        elements[-1]["text"] += text

    def end(_: str) -> None:
        # The text that follows is ignored, up to the next tag.
        parser.CharacterDataHandler = None

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        is_final = True
        with fingerprints.open_unnoticed(path) as file:
            parser.Parse(file.read(), is_final)
    except expat.ExpatError as error:
        raise InputError(f"{path}: is not XML: {error}; is the file cut off?") from None
    except (LookupError, ValueError) as error:
        # The file names an encoding that Python or expat does not know.
        raise InputError(f"{path}: cannot be read as XML: {error}") from None
    return [element | {"text": element["text"].strip()} for element in elements]


def _find_label_set(answers: pd.DataFrame) -> tuple[str, ...]:
    """Return the label set that the labels of the answers are from.

    Some labels of the set may not occur. The first rule that applies counts. The set has

    - 5 labels if `incorrect` does not occur, or if a label occurs that only this set has;
    - 2 labels if only `incorrect`, or only `correct` and `incorrect`, occur;
    - 3 labels otherwise.

    Raises
    ------
    InputError
        If an answer has no label, or a label that is not in the set.
    """
    used = set(answers["label"])
    only_in_largest = set(LABEL_SETS[5]) - set(LABEL_SETS[3])
    needs_largest_set = bool(used & only_in_largest)
    if "incorrect" not in used or needs_largest_set:
        labels = LABEL_SETS[5]
    elif used <= set(LABEL_SETS[2]):
        labels = LABEL_SETS[2]
    else:
        labels = LABEL_SETS[3]
    _refuse_first(
        answers[answers["label"] == ""],
        "<studentAnswer> has no attribute 'accuracy'; files without labels can be predicted, but "
        "not used for training or scoring",
    )
    expected = ", ".join(sorted(labels))
    _refuse_first(
        answers[~answers["label"].isin(labels)],
        "attribute 'accuracy' of studentAnswer {id} is {label}, expected one of " + expected,
    )
    return labels


# ---- Models: what to learn from and to predict ------------------------------------------------


def model_parser(doc: str | None) -> argparse.ArgumentParser:
    """Make the parser of a sample model; `doc` is the docstring of its script."""
    p = challenge.model_parser(doc, __file__, **challenge.FOLD_FLAGS)
    help_text = "predict each fold by a model trained on the other folds (the default)"
    p.add_argument("--local", action="store_true", help=help_text)
    help_text = "folder of answers to predict, or of test sets, instead of folds"
    p.add_argument("--test_dir", type=Path, metavar="DIR", help=help_text)
    help_text = "folder of the training answers with --test_dir (default: the --input_dir)"
    p.add_argument("--train_dir", type=Path, metavar="DIR", help=help_text)
    return p


def read_fits(options: argparse.Namespace) -> tuple[pd.DataFrame, list[Fit]]:
    """Read the answers, and plan which answers each fit learns from and which it predicts.

    Parameters
    ----------
    options : Namespace
        Flags of `model_parser`.

    Returns
    -------
    answers : DataFrame
        Answers to learn from, then the answers of ``--test_dir``. Labels of answers to predict are
        NaN. If folds are predicted, all labels are NaN, since each answer is in a fold.
    fits : list of Fit
        One fit for each fold, or a single fit with ``--test_dir``. A fit has the labels to learn
        from.

    Raises
    ------
    InputError
        If files or flags are faulty, or if there are too few answers or labels to learn from.
    """
    if options.local and options.test_dir is not None:
        raise InputError("--local predicts the folds, --test_dir another folder; give only one")
    # Folds are predicted unless --test_dir is given. Say so in `options.local`, which the module
    # `challenge` reads.
    options.local = options.test_dir is None
    folder = options.train_dir or options.input_dir
    if options.local and options.train_dir is not None:
        raise InputError("--train_dir needs --test_dir; without it, use --input_dir")
    answers = read_responses(folder)
    fold = challenge.read_folds(options, answers["id"].tolist())
    if fold is None:
        test_answers = read_responses(options.test_dir, labels="ignored")
        answers = append_test_answers(answers, test_answers)
        is_train = answers["label"].notna().to_numpy()
        masks = [(is_train, ~is_train)]
    else:
        masks = list(folds.train_and_test(fold))
    label_numbers = answers["label"].cat.codes.to_numpy(int)
    labels = labels_of(answers)
    fits = []
    for train, test in masks:
        _require_labels(folder, label_numbers[train], labels)
        known_numbers = np.where(train, label_numbers, UNKNOWN)
        fits.append(Fit(train=train, test=test, label=known_numbers))
    if fold is not None:
        # Every answer is predicted in some fold, so hide the labels of all answers.
        answers = answers.assign(label=pd.Categorical([None] * len(answers), labels))
    return answers, fits


def _require_labels(folder: Path, label_numbers: IntArray, labels: Sequence[str]) -> None:
    """Raise `InputError` if there are too few labels, or too few answers with the same label.

    `folder` is the folder of the answers to learn from, and `label_numbers` are their labels, as
    positions in `labels`.
    """
    counts = np.bincount(label_numbers)
    n_answers = len(label_numbers)
    n_most = counts.max()
    most_frequent = quote(labels[int(counts.argmax())])
    if n_most == n_answers:
        raise InputError(
            f"{folder}: all {n_answers:,} answers to learn from are {most_frequent}, expected at "
            "least two labels"
        )
    if n_most < MIN_ANSWERS:
        raise InputError(
            f"{folder}: the most frequent label, {most_frequent}, has only {n_most} of "
            f"{n_answers:,} answers to learn from, expected at least {MIN_ANSWERS}"
        )


def append_test_answers(train: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    """Append answers to predict to the answers to learn from.

    Questions with the same module and id, in the training files or in several test files, become
    one question, with the text and the reference answers of the first file.

    Parameters
    ----------
    train : DataFrame
        Answers to learn from.
    test : DataFrame
        Answers to predict, read without labels.

    Raises
    ------
    InputError
        If an answer is in both tables, or if `train` is a test set. Also if `test` contradicts the
        name of its test set, for example if "test-unseen-questions" holds a known question.
    """
    # The scenario of an answer is the name of its test set. A training answer has none.
    test_set_paths = train["path"][train["scenario"] != ""]
    if len(test_set_paths):
        raise InputError(
            f"{test_set_paths.iloc[0]}: belongs to a test set, expected training files"
        )
    in_both = test.merge(train[["id", "place"]], on="id", suffixes=("", "_in_train"))
    # No answer may be in both tables. The message about the first one that is shows its id and its
    # place in the training files.
    _refuse_first(
        in_both,
        "studentAnswer {id} is in the training files too ({place_in_train}), expected new answers",
    )
    both = pd.concat([train, test], ignore_index=True)
    both["label"] = pd.Categorical(both["label"], labels_of(train))
    by_question = both.groupby(["module", "question_id"], sort=False)
    # Number the questions: answers with the same module and question id get the same number.
    both["question"] = by_question.ngroup()
    # Keep the file that each answer was read from: below, the column `path` gets another meaning.
    path_of_answer = both["path"]
    # Give all answers to a question the text, the references and the path of its first answer. If
    # the question is in the training files, its first answer is a training answer.
    columns = ["question_text", "references", "path"]
    both[columns] = by_question[columns].transform("first")

    # The rows of the training answers come first. Compare the numbers of the questions, not their
    # files: two test files may hold answers to one new question.
    is_known_question = both["question"].isin(both["question"].iloc[: len(train)])
    is_known_module = both["module"].isin(train["module"])
    _require_expected_questions(both, path_of_answer, is_known_question, is_known_module)
    return both


def _require_expected_questions(
    both: pd.DataFrame,
    path_of_answer: "pd.Series[Any]",
    is_known_question: "pd.Series[bool]",
    is_known_module: "pd.Series[bool]",
) -> None:
    """Raise `InputError` if the questions of a test set contradict the name of the test set.

    Parameters
    ----------
    both : DataFrame
        Training and test answers. The column `path` holds the file of the first answer to the same
        question: a training file if the question is known, otherwise a test file.
    path_of_answer : Series of Path
        The file that each answer was read from.
    is_known_question, is_known_module : Series of bool
        Whether the question and the module of each answer are in the training files.
    """
    # The name of the test set. Training answers have none, so no check below concerns them.
    scenario = both["scenario"]
    _refuse_questions(
        both,
        path_of_answer,
        is_wrong=(scenario == UNSEEN_ANSWERS) & ~is_known_question,
        fault="is not in the training files, expected new answers only",
    )
    _refuse_questions(
        both,
        path_of_answer,
        is_wrong=scenario.isin((UNSEEN_QUESTIONS, UNSEEN_DOMAINS)) & is_known_question,
        fault="is in {training_file}, expected a new question",
    )
    _refuse_questions(
        both,
        path_of_answer,
        is_wrong=(scenario == UNSEEN_DOMAINS) & is_known_module,
        fault="is not of a new domain: its module is in the training files",
    )


def _refuse_questions(
    answers: pd.DataFrame,
    path_of_answer: "pd.Series[Any]",
    is_wrong: "pd.Series[bool]",
    fault: str,
) -> None:
    """Raise `InputError` about the question of the first wrong answer, if any answer is wrong.

    `path_of_answer` holds the file that each answer was read from; the message begins with it. If a
    question is known, the column `path` of `answers` holds its training file. `fault` says what is
    wrong with the question. In it, ``{training_file}`` stands for this file, as in ``is in
    {training_file}``.
    """
    if not is_wrong.any():
        return
    row = answers[is_wrong].iloc[0]
    path = path_of_answer[is_wrong].iloc[0]
    question = f"question {quote(row['question_id'])} of module {quote(row['module'])}"
    raise InputError(f"{path}: {question} {fault.format(training_file=row['path'])}")


def write(options: argparse.Namespace, answers: pd.DataFrame, prediction: IntArray) -> None:
    """Write predicted labels as a submission.

    Parameters
    ----------
    options : Namespace
        Flags of `model_parser`.
    answers : DataFrame
        Answers as `read_fits` returns them. Those without a label (NaN) are the answers to predict:
        all answers if folds are predicted, otherwise the answers of ``--test_dir``. Only they are
        written.
    prediction : ndarray of int, shape (answers,)
        Label numbers: positions in the list that `labels_of` returns.
    """
    is_predicted = answers["label"].isna()
    label_names = np.array(labels_of(answers), object)
    labels = label_names[prediction[is_predicted]]
    challenge.write_submission(options, {"id": answers["id"][is_predicted], "label": labels})


# ---- Predictions -----------------------------------------------------------------------------


def read_predictions(path: Path, answers: pd.DataFrame, report: Report = stop) -> list[str]:
    """Read and check a submission.

    Parameters
    ----------
    path : Path
        The submission.
    answers : DataFrame
        Answers to predict. If they were read without labels, it is not known which of the label
        sets they use (5, 3 or 2 labels), so the labels of all sets are allowed.
    report : callable
        Called with the message about each fault; by default it raises `InputError`.

    Returns
    -------
    list of str
        Label, or `UNINTERPRETABLE`, for every answer in the order of `answers`.
    """
    labels = labels_of(answers) or ALL_LABELS
    allowed = (*labels, UNINTERPRETABLE)

    def parse(text: str) -> str:
        if text not in allowed:
            # `challenge.read_predictions` catches this error, and reports the text of the cell.
            raise ValueError
        return text

    return challenge.read_predictions(
        path,
        "label",
        answers["id"].tolist(),
        source_of_ids="the answers",
        parse=parse,
        expected=f"one of {', '.join(allowed)}",
        report=report,
    )


# ---- Measures of Dzikovska et al. (2012) and of SemEval-2013 task 7 ---------------------------

# Names of rows in a table of measures, below the rows of the labels; see `evaluate`.
MACRO = "macro average"
MICRO = "micro average"
CORRECTIVE = "corrective feedback"
# Columns of a table of test sets.
HEADER = ["test set", "labels", "answers", "accuracy", "macro F1", "weighted F1"]

# Published scores of other systems, with as many digits as the source prints. A cell is empty if
# the source gives no score. The systems' names end in the numbers of these sources:
# [1] Singh, Arya, Mukerjee (2013), Student response analysis using textual entailment: tables of
#     the task's best systems, and of its lexical baseline in these authors' own run.
# [2] Ott, Ziai, Hahn, Meurers (2013), CoMeT, SemEval, abstract.
# [3] Figures of the task's paper (Dzikovska et al. 2013, S13-2045), as others quote them.
PUBLISHED = Path(__file__).with_name("published.csv")


def confusion_matrix(gold: Sequence[str], predicted: Sequence[str], ways: int) -> pd.DataFrame:
    """Return the confusion matrix of gold and predicted labels, merged to fewer labels.

    Parameters
    ----------
    gold, predicted : sequence of str
        Labels of the answers.
    ways : int
        Size of the label set to merge to. Labels that are not in it become ``incorrect``.

    Returns
    -------
    DataFrame of int
        Predicted labels in rows, ``uninterpretable`` last; gold labels in columns.
    """
    kept = [*LABEL_SETS[ways], UNINTERPRETABLE]

    def merge(labels: Sequence[str]) -> "pd.Series[str]":
        """Return the labels, with ``incorrect`` in place of labels that are not in `kept`."""
        merged = pd.Series(list(labels), dtype=object)
        return merged.where(merged.isin(kept), "incorrect")

    counts = pd.crosstab(merge(predicted), merge(gold))
    # `UNINTERPRETABLE` is never a gold label.
    return counts.reindex(kept, columns=list(LABEL_SETS[ways]), fill_value=0)


def evaluate(counts: pd.DataFrame) -> pd.DataFrame:
    """Compute the measures of Dzikovska et al. (2012, section 4).

    Parameters
    ----------
    counts : DataFrame
        Result of `confusion_matrix`. Its last row is the prediction `UNINTERPRETABLE`.

    Returns
    -------
    DataFrame of float
        Columns precision, recall and F1, where 0/0 counts as 0. The rows are

        - each label;
        - `MACRO`, the mean over the labels;
        - `MICRO`, the mean weighted by the labels' gold counts, whose recall is the accuracy;
        - `CORRECTIVE`, the decision that an answer needs correction, which is any label but
          ``correct``.
    """
    # Rows are predicted labels, and columns are gold labels. The last row, `UNINTERPRETABLE`, is
    # not a label. Answers with this prediction count as answers of their gold label (`n_gold`), but
    # as no label's prediction (`n_predicted`).
    labelled = counts.iloc[:-1].to_numpy()
    n_predicted = labelled.sum(axis=1)
    n_gold = counts.sum().to_numpy()
    # Number of answers of each label that are predicted correctly.
    n_agreed = np.diag(labelled)
    # Append the counts of one more label, "needs correction" (`CORRECTIVE`). It unites all labels
    # but the first, which is `correct`.
    agreed = np.append(n_agreed, labelled[1:, 1:].sum()).astype(float)
    predicted = np.append(n_predicted, n_predicted[1:].sum())
    gold = np.append(n_gold, n_gold[1:].sum())
    precision = agreed / np.maximum(predicted, 1)
    recall = agreed / np.maximum(gold, 1)
    # This equals 2 * precision * recall / (precision + recall).
    f1 = 2 * agreed / np.maximum(predicted + gold, 1)
    measures = np.stack([precision, recall, f1], axis=1)
    # The last row belongs to "needs correction", which is not one of the labels.
    by_label = measures[:-1]
    macro = by_label.mean(axis=0)
    micro = n_gold @ by_label / n_gold.sum()
    rows = [*by_label, macro, micro, measures[-1]]
    names = [*counts, MACRO, MICRO, CORRECTIVE]
    return pd.DataFrame(rows, names, ["precision", "recall", "F1"])


def corpus_of(folder: Path) -> str:
    """Return the corpus whose name is in the last four parts of a folder's path; empty if none.

    The task's scorer finds the corpus in this way.
    """
    names = " ".join(folder.resolve().parts[-4:]).lower()
    for corpus in (BEETLE, SCIENTSBANK):
        if corpus.lower() in names:
            return corpus
    return ""


def score_test_sets(answers: pd.DataFrame, predicted: Sequence[str], corpus: str) -> pd.DataFrame:
    """Score every test set as the task's scorer, evaluation.R, does.

    Parameters
    ----------
    answers : DataFrame
        Answers with their labels. Answers that are not of a test set are ignored.
    predicted : sequence of str
        Predicted labels.
    corpus : str
        Corpus of the answers; see `corpus_of`.

    Returns
    -------
    DataFrame
        Columns `HEADER`. A row for each test set and each number of labels that the answers' labels
        can be merged to: 5, 3 and 2 for answers with 5 labels, and only 2 for answers with 2.
    """
    rows = []
    # The task calls the number of labels "ways". The labels of the answers can be merged to a
    # smaller set of labels, but not divided into a larger one.
    possible_ways = [ways for ways in LABEL_SETS if ways <= len(labels_of(answers))]
    scored = answers.assign(predicted=predicted)
    scored = scored[scored["scenario"] != ""]
    for scenario, test_set in scored.groupby("scenario", sort=False):
        gold = test_set["label"].tolist()
        for ways in possible_ways:
            # `confusion_matrix` merges the labels to the label set with `ways` labels.
            counts = confusion_matrix(gold, test_set["predicted"].tolist(), ways)
            measures = evaluate(counts)
            # The F1 of each label, as the task's scorer computes it: 1 for a label that no answer
            # has and that is never predicted.
            f1 = _f1_of_scorer(counts, measures)
            # In the test sets of unseen answers and of unseen questions of SciEntsBank, hardly any
            # answer has the label `non_domain`: three answers in one test set, and none in the
            # other. The scorer leaves the label out of the macro average of both test sets
            # (`macroav.exclude` in evaluation.R).
            if corpus == SCIENTSBANK and ways == 5 and scenario != UNSEEN_DOMAINS:
                f1 = f1.drop("non_domain")
            # The micro average of the recalls, weighted by the labels' numbers of answers, is the
            # accuracy.
            accuracy = float(measures["recall"][MICRO])
            macro_f1 = float(f1.mean())
            weighted_f1 = float(measures["F1"][MICRO])
            rows.append((scenario, ways, len(test_set), accuracy, macro_f1, weighted_f1))
    return pd.DataFrame(rows, columns=HEADER)


def _f1_of_scorer(counts: pd.DataFrame, measures: pd.DataFrame) -> "pd.Series[float]":
    """Return the F1 of each label as the task's scorer computes it.

    If no answer has a label and the label is never predicted, the scorer sets its F1 to 1. In
    `measures`, which `evaluate` has computed from `counts`, this F1 is 0.
    """
    # `counts` has the predicted labels in its rows, and the true (gold) labels in its columns.
    n_labels = counts.shape[1]
    # The last row is `UNINTERPRETABLE`, which is not a label.
    n_predicted = counts.iloc[:-1].sum(axis=1)
    n_gold = counts.sum()
    is_absent = n_gold + n_predicted == 0
    return measures["F1"].head(n_labels).mask(is_absent, 1.0)


def tabulate_test_sets(scores: pd.DataFrame, corpus: str) -> list[list[str]]:
    """Return the rows of the table of test sets as text.

    Below the scores of each test set, the table shows published scores of other systems on this
    test set. Answers are labelled with a set of 5, 3 or 2 labels. Two scores can be compared only
    if they are for the same set.

    Parameters
    ----------
    scores : DataFrame
        Scores of `score_test_sets`.
    corpus : str
        Corpus whose published scores are shown.
    """
    published = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    published = published[published["corpus"] == corpus]
    score_columns = ["accuracy", "macro F1", "weighted F1"]
    rows = []
    for score in scores.to_dict("records"):
        scenario = score["test set"]
        ways = str(score["labels"])
        shown_scores = [f"{score[name]:.4f}" for name in score_columns]
        rows.append([scenario, ways, f"{score['answers']:,}", *shown_scores])
        is_comparable = (published["test set"] == scenario) & (published["labels"] == ways)
        for published_row in published[is_comparable].to_dict("records"):
            published_scores = [published_row[name] for name in score_columns]
            rows.append([f"  {published_row['system']}", ways, "", *published_scores])
    return rows
