"""Files and measures of student response analysis: answers graded against reference answers.

Answers are a DataFrame with a row for each answer and these columns:

    id              str, unique
    text            str, possibly empty
    label           categorical of one of `LABEL_SETS`, NaN if unknown
    place           file and line, for messages
    question        number of the question from 0
    question_id     its id in the file
    question_text   its text
    references      list of its reference answers
    module          its domain, such as ``EM``, empty if unknown
    scenario        the one of `SCENARIOS` whose folder holds its file, empty if none does
    path            its file
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

from common import reading
from common.arrays import BoolArray, IntArray
from common.errors import MAX_SHOWN, InputError, Report, printable, quote, stop
from related_challenges import challenge, folds

import numpy as np
import pandas as pd

# The label sets of the corpora by their size, the finest set first.
LABEL_SETS = {
    5: ("correct", "partially_correct_incomplete", "contradictory", "irrelevant", "non_domain"),
    3: ("correct", "contradictory", "incorrect"),
    2: ("correct", "incorrect"),
}
ALL_LABELS = tuple(dict.fromkeys(name for names in LABEL_SETS.values() for name in names))
# Prediction of a system that cannot interpret an answer. It is no label and gives no feedback.
UNINTERPRETABLE = "uninterpretable"
# Names of the folders of test sets.
ANSWERS = "test-unseen-answers"
QUESTIONS = "test-unseen-questions"
DOMAINS = "test-unseen-domains"
SCENARIOS = (ANSWERS, QUESTIONS, DOMAINS)
# Folder inside a test set's that may hold its files.
CORE = "Core"

# Number of an unknown label.
UNKNOWN = -1
# The most frequent label needs this many training answers: models choose settings on five parts.
MIN_ANSWERS = 5


class Split(NamedTuple):
    """Answers to learn from and to predict, for one fit of a model."""

    # Which answers to learn from, shape (answers,).
    train: BoolArray
    # Which answers to predict, shape (answers,).
    test: BoolArray
    # Label number of every answer to learn from, `UNKNOWN` for all others, shape (answers,).
    label: IntArray


# ---- Files -----------------------------------------------------------------------------------


def read_responses(folder: Path, *, reads_labels: bool | None = True) -> pd.DataFrame:
    """Read and check all answers of a folder, or of the test sets in it.

    Parameters
    ----------
    folder : Path
        Folder of XML files, one for each question, or of test sets.
    reads_labels : bool or None
        Whether to read labels; None to read labels if any answer has one.

    Returns
    -------
    DataFrame
        Answers with the columns that the module's docstring lists. Without labels, `label` is NaN
        and its categories are empty.

    Raises
    ------
    InputError
        If the folder has no files, a file is faulty, or an answer lacks the label to be read.
    """
    files = _find_files(folder)
    rows = []
    for number, (scenario, path) in enumerate(files):
        for element in _read_elements(path):
            rows.append(element | {"question": number, "scenario": scenario, "path": path})
    elements = pd.DataFrame(rows)
    # The first element of a file is its root.
    roots = elements.drop_duplicates("question")
    _check_questions(elements, roots)
    # A student may leave an answer empty; the empty text is an answer too.
    answers = elements[elements["tag"] == "studentAnswer"]
    _refuse(roots[roots["id"] == ""], "<{tag}> has no attribute 'id'")
    _refuse(answers[answers["id"] == ""], "<{tag}> has no attribute 'id'")
    if not len(answers):
        raise InputError(f"{folder}: holds {len(files)} questions but no studentAnswer")
    first = answers.groupby("id")["place"].transform("first")
    repeated = answers.assign(first=first)[answers["id"].duplicated()]
    _refuse(repeated, "studentAnswer {id} is in {first} already, expected every id once")

    texts = elements.groupby(["question", "tag"])["text"].agg(list).unstack()
    questions = roots.set_index("question")[["id", "module", "scenario", "path"]]
    questions = questions.rename(columns={"id": "question_id"}).assign(
        question_text=texts["questionText"].str[0], references=texts["referenceAnswer"]
    )
    answers = answers[["id", "label", "text", "place", "question"]].join(questions, on="question")
    is_read = (answers["label"] != "").any() if reads_labels is None else reads_labels
    labels = _find_label_set(answers) if is_read else ()
    known = answers["label"].where(answers["label"].isin(labels))
    return answers.assign(label=pd.Categorical(known, labels)).reset_index(drop=True)


def _check_questions(elements: pd.DataFrame, roots: pd.DataFrame) -> None:
    """Refuse a file that holds no question, or whose question lacks a text or reference answer."""
    wrong_roots = roots[roots["tag"] != "question"]
    if len(wrong_roots):
        path, tag = wrong_roots[["path", "tag"]].iloc[0]
        raise InputError(f"{path}: holds <{printable(tag, MAX_SHOWN)}>, expected <question>")
    for tag in ("questionText", "referenceAnswer"):
        tagged = elements[elements["tag"] == tag]
        missing = roots[~roots["question"].isin(tagged["question"])]
        empty = tagged[tagged["text"] == ""]
        _refuse(pd.concat([missing, empty]), f"<{tag}> is missing or empty, expected text")


def _refuse(wrong: pd.DataFrame, message: str) -> None:
    """Raise `InputError` about the first of the wrong rows; without any, do nothing.

    The names in braces in the message are filled with the row's values.
    """
    if len(wrong):
        row: dict[str, Any] = {**wrong.iloc[0]}
        quoted = {name: quote(str(row[name])) for name in ("id", "label")}
        raise InputError(f"{row['place']}: {message.format(**row | quoted)}")


def labels_of(answers: pd.DataFrame) -> list[str]:
    """Return the labels of the answers' set; the position of a label is its number."""
    return list(answers["label"].cat.categories)


def _find_files(folder: Path) -> list[tuple[str, Path]]:
    """Return the XML files of a folder, or of the test sets in it, each after its scenario."""
    # The folder may be a test set, or the folder inside it.
    scenario = next((name for name in SCENARIOS if name in folder.parts[-2:]), "")
    folders = [(scenario, folder), (scenario, folder / CORE)]
    if not any(folder.glob("*.xml")):
        for name in SCENARIOS:
            folders += [(name, folder / name), (name, folder / name / CORE)]
    files = []
    for name, part in folders:
        files += [(name, path) for path in sorted(part.glob("*.xml"))]
    if not files:
        reading.require_file(folder / "*.xml")
    return files


def _read_elements(path: Path) -> list[dict[str, Any]]:
    """Return the elements of an XML file, the root first.

    An element has its attributes id, module and label (``accuracy`` in the file), its tag, its
    place for messages, and the text before its first child.
    """
    reading.require_file(path)
    elements: list[dict[str, Any]] = []
    # ElementTree does not know the lines of elements.
    parser = expat.ParserCreate()
    # Unbuffered, a text with many entities comes in many pieces, and each copies all before it.
    parser.buffer_text = True
    parser.buffer_size = 1 << 20

    def start(tag: str, attributes: dict[str, str]) -> None:
        known = {name: attributes.get(name, "") for name in ("id", "module")}
        known["label"] = attributes.get("accuracy", "")
        place = f"{path}: line {parser.CurrentLineNumber}"
        elements.append({**known, "tag": tag, "place": place, "text": ""})
        parser.CharacterDataHandler = add_text

    def add_text(text: str) -> None:
        elements[-1]["text"] += text

    def end(_: str) -> None:
        parser.CharacterDataHandler = None

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(path.read_bytes(), True)
    except expat.ExpatError as error:
        raise InputError(f"{path}: is not XML: {error}; is the file cut off?") from None
    except (LookupError, ValueError) as error:
        # The file names an encoding that Python or expat does not know.
        raise InputError(f"{path}: cannot be read as XML: {error}") from None
    return [element | {"text": element["text"].strip()} for element in elements]


def _find_label_set(answers: pd.DataFrame) -> tuple[str, ...]:
    """Return the label set that the answers use; refuse a missing label or one of another set.

    The label `incorrect` marks the sets of 2 and 3 labels. Without it the set is that of 5 labels,
    some of which may not occur.
    """
    used = set(answers["label"])
    only_5_way = set(LABEL_SETS[5]) - set(LABEL_SETS[3])
    labels = LABEL_SETS[5]
    if "incorrect" in used and not used & only_5_way:
        labels = LABEL_SETS[2] if used <= set(LABEL_SETS[2]) else LABEL_SETS[3]
    _refuse(
        answers[answers["label"] == ""],
        "<studentAnswer> has no attribute 'accuracy'; files without labels can be predicted, not "
        "learned from or scored",
    )
    _refuse(
        answers[~answers["label"].isin(labels)],
        "attribute 'accuracy' of studentAnswer {id} is {label}, expected one of "
        f"{', '.join(sorted(labels))}",
    )
    return labels


# ---- Models: what to learn from and to predict ------------------------------------------------


def model_parser(doc: str | None) -> argparse.ArgumentParser:
    """Make the parser of a sample model; `doc` is the docstring of its script."""
    p = challenge.model_parser(doc, __file__, **challenge.FOLD_FLAGS)
    help_text = "predict these answers, or the test sets in this folder, instead of folds"
    p.add_argument("--test_dir", type=Path, metavar="DIR", help=help_text)
    help_text = "with --test_dir: learn from these answers"
    p.add_argument("--train_dir", type=Path, metavar="DIR", help=help_text)
    return p


def read(options: argparse.Namespace) -> tuple[pd.DataFrame, list[Split]]:
    """Read the answers that the flags name, and say for every fit what to learn and to predict.

    Parameters
    ----------
    options : Namespace
        Flags of `model_parser`.

    Returns
    -------
    answers : DataFrame
        Answers to learn from, then those of ``--test_dir``. The label of an answer to predict is
        NaN; if folds are predicted, all labels are.
    splits : list of Split
        One for each fold, or a single one with ``--test_dir``.

    Raises
    ------
    InputError
        If files or flags are faulty, or if there are too few answers or labels to learn from.
    """
    options.local = options.test_dir is None
    folder = options.train_dir or options.input_dir
    if options.local and options.train_dir is not None:
        raise InputError("--train_dir needs --test_dir; folds are made of --input_dir")
    answers = read_responses(folder)
    fold = challenge.read_folds(options, answers["id"].tolist())
    if fold is None:
        answers = join(answers, read_responses(options.test_dir, labels="ignored"))
        is_train = answers["label"].notna().to_numpy()
        pairs = [(is_train, ~is_train)]
    else:
        pairs = list(folds.train_and_test(fold))
    numbers = answers["label"].cat.codes.to_numpy(int)
    labels = labels_of(answers)
    splits = []
    for train, test in pairs:
        _require_labels(folder, numbers[train], labels)
        splits.append(Split(train, test, np.where(train, numbers, UNKNOWN)))
    if fold is not None:
        answers = answers.assign(label=pd.Categorical([None] * len(answers), labels))
    return answers, splits


def _require_labels(folder: Path, numbers: IntArray, labels: Sequence[str]) -> None:
    """Refuse answers to learn from if they have a single label, or too few of the most frequent."""
    counts = np.bincount(numbers)
    n_answers = len(numbers)
    n_most = counts.max()
    most_frequent = quote(labels[int(counts.argmax())])
    if n_most == n_answers:
        raise InputError(
            f"{folder}: all {n_answers:,} answers to learn from are {most_frequent}, expected at "
            "least two labels"
        )
    if n_most < MIN_ANSWERS:
        raise InputError(
            f"{folder}: of {n_answers:,} answers to learn from only {n_most} are {most_frequent}, "
            f"the most frequent label, expected at least {MIN_ANSWERS}"
        )


def join(train: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    """Append answers to predict to answers to learn from.

    Questions with the same module and id become the same question, with the text and the reference
    answers of the training file.

    Parameters
    ----------
    train : DataFrame
        Answers to learn from.
    test : DataFrame
        Answers to predict, read without labels.

    Raises
    ------
    InputError
        If `train` is a test set, if an answer is in both, or if the questions and modules of a test
        set are known although it should have new ones, or the reverse.
    """
    test_set_paths = train["path"][train["scenario"] != ""]
    if len(test_set_paths):
        raise InputError(
            f"{test_set_paths.iloc[0]}: is of a test set, expected files to learn from"
        )
    in_both = test.merge(train[["id", "place"]], on="id", suffixes=("", "_learned"))
    _refuse(
        in_both,
        "studentAnswer {id} is to be learned from as well: {place_learned}, expected other answers",
    )
    both = pd.concat([train, test], ignore_index=True)
    both["label"] = pd.Categorical(both["label"], labels_of(train))
    by_question = both.groupby(["module", "question_id"], sort=False)
    both["question"] = by_question.ngroup()
    own_path = both["path"]
    columns = ["question_text", "references", "path"]
    both[columns] = by_question[columns].transform("first")

    scenario = both["scenario"]
    is_new_question = both["path"] == own_path
    is_known_module = both["module"].isin(train["module"])
    _refuse_questions(
        both,
        own_path,
        (scenario == ANSWERS) & is_new_question,
        " is not in the training files, expected new answers only",
    )
    _refuse_questions(
        both,
        own_path,
        scenario.isin((QUESTIONS, DOMAINS)) & ~is_new_question,
        " is in {}, expected a new question",
    )
    _refuse_questions(
        both,
        own_path,
        (scenario == DOMAINS) & is_known_module,
        ": the module is in the training files, expected a new one",
    )
    return both


def _refuse_questions(
    answers: pd.DataFrame, path: "pd.Series[Any]", is_wrong: "pd.Series[bool]", message: str
) -> None:
    """Raise `InputError` about the question of the first wrong answer; without any, do nothing.

    `path` holds the answers' own files; the braces in the message are filled with the file in which
    the question occurs first.
    """
    if is_wrong.any():
        row = answers[is_wrong].iloc[0]
        question = f"question {quote(row['question_id'])} of module {quote(row['module'])}"
        raise InputError(f"{path[is_wrong].iloc[0]}: {question}{message.format(row['path'])}")


def write(options: argparse.Namespace, answers: pd.DataFrame, prediction: IntArray) -> None:
    """Write predicted labels as a submission.

    Parameters
    ----------
    options : Namespace
        Flags of `model_parser`.
    answers : DataFrame
        Answers as `read` returns them. Those without a label are written: in folds all answers,
        with ``--test_dir`` those to predict.
    prediction : ndarray of int, shape (answers,)
        Label numbers; positions in `labels_of`.
    """
    rows = answers["label"].isna()
    labels = np.array(labels_of(answers), object)[prediction[rows]]
    challenge.write_submission(options, {"id": answers["id"][rows], "label": labels})


# ---- Predictions -----------------------------------------------------------------------------


def read_predictions(path: Path, answers: pd.DataFrame, report: Report = stop) -> list[str]:
    """Read and check a submission.

    Parameters
    ----------
    path : Path
        The submission.
    answers : DataFrame
        Answers to predict. If their label set is unknown, all labels are allowed.
    report : callable
        Called with the message about each fault; by default it raises `InputError`.

    Returns
    -------
    list of str
        Label, or `UNINTERPRETABLE`, for every answer in the order of `answers`.
    """
    labels = labels_of(answers) or ALL_LABELS
    # Looking up an unknown label raises.
    allowed = {name: name for name in (*labels, UNINTERPRETABLE)}
    return challenge.read_predictions(
        path,
        "label",
        answers["id"].tolist(),
        "the answers",
        allowed.__getitem__,
        f"one of {', '.join(allowed)}",
        report,
    )


# ---- Measures: those of Dzikovska et al. (2012), and of SemEval-2013 task 7 -------------------

# Rows of a table of measures.
MACRO = "macro average"
MICRO = "micro average"
CORRECTIVE = "corrective feedback"
# Corpora, as the paths of their files name them.
BEETLE = "beetle"
SCIENTSBANK = "sciEntsBank"
# Columns of a table of test sets.
HEADER = ["test set", "labels", "answers", "accuracy", "macro F1", "weighted F1"]

# Published scores of systems, with the digits of their source, empty if none was found. Sources:
# [1] Singh, Arya, Mukerjee (2013), Student response analysis using textual entailment: tables of
#     the task's best systems and of its lexical baseline as they ran it.
# [2] Ott, Ziai, Hahn, Meurers (2013), CoMeT, SemEval, abstract.
# [3] Figures of the task's paper (Dzikovska et al. 2013, S13-2045) as quoted by others.
PUBLISHED = Path(__file__).with_name("published.csv")


def count(gold: Sequence[str], predicted: Sequence[str], ways: int) -> pd.DataFrame:
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
    coarser = {name: name if name in kept else "incorrect" for name in {*gold, *predicted}}
    counts = pd.crosstab(pd.Series(predicted).map(coarser), pd.Series(gold).map(coarser))
    return counts.reindex(kept, columns=kept[:-1], fill_value=0)


def evaluate(counts: pd.DataFrame) -> pd.DataFrame:
    """Compute the measures of the paper (2012, section 4).

    Parameters
    ----------
    counts : DataFrame
        Confusion matrix of `count`.

    Returns
    -------
    DataFrame of float
        Columns precision, recall and F1, 0/0 as 0. Rows: every label; `MACRO`, the mean over the
        labels; `MICRO`, the mean weighted by gold counts, whose recall is the accuracy;
        `CORRECTIVE`, the decision that an answer needs correction, any label but ``correct``.
    """
    # Uninterpretable answers count in the gold totals, but not as predictions of any label.
    labelled = counts.head(counts.shape[1]).to_numpy()
    n_predicted = labelled.sum(axis=1)
    n_gold = counts.sum().to_numpy()
    n_agreed = np.diag(labelled)
    # The decision to correct is appended: any label but the first.
    agreed = np.append(n_agreed, labelled[1:, 1:].sum()).astype(float)
    predicted = np.append(n_predicted, n_predicted[1:].sum())
    gold = np.append(n_gold, n_gold[1:].sum())
    precision = agreed / np.maximum(predicted, 1)
    recall = agreed / np.maximum(gold, 1)
    f1 = 2 * agreed / np.maximum(predicted + gold, 1)
    measures = np.stack([precision, recall, f1], axis=1)
    by_label = measures[:-1]
    macro = by_label.mean(axis=0)
    micro = n_gold @ by_label / n_gold.sum()
    rows = [*by_label, macro, micro, measures[-1]]
    names = [*counts, MACRO, MICRO, CORRECTIVE]
    return pd.DataFrame(rows, names, ["precision", "recall", "F1"])


def corpus_of(folder: Path) -> str:
    """Return the corpus that a folder's path names, as the task's scorer does; empty if none."""
    names = " ".join(folder.resolve().parts[-4:]).lower()
    return next((corpus for corpus in (BEETLE, SCIENTSBANK) if corpus.lower() in names), "")


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
        Columns `HEADER`; a row for each test set and each size of label set, up to the answers'.
    """
    rows = []
    sizes = [ways for ways in LABEL_SETS if ways <= len(labels_of(answers))]
    scored = answers.assign(predicted=predicted)
    scored = scored[scored["scenario"] != ""]
    for scenario, test_set in scored.groupby("scenario", sort=False):
        for ways in sizes:
            counts = count(test_set["label"].tolist(), test_set["predicted"].tolist(), ways)
            measures = evaluate(counts)
            # The scorer gives 1 to a label that neither occurs nor is predicted; `evaluate` 0.
            is_absent = counts.sum() + counts.head(ways).sum(axis=1) == 0
            f1 = measures["F1"].head(ways).mask(is_absent, 1.0)
            # As `macroav.exclude` in the scorer: these test sets have three such answers and none.
            if corpus == SCIENTSBANK and ways == 5 and scenario != DOMAINS:
                f1 = f1.drop("non_domain")
            accuracy = float(measures["recall"][MICRO])
            macro_f1 = float(f1.mean())
            weighted_f1 = float(measures["F1"][MICRO])
            rows.append((scenario, ways, len(test_set), accuracy, macro_f1, weighted_f1))
    return pd.DataFrame(rows, columns=HEADER)


def test_set_rows(scores: pd.DataFrame, corpus: str) -> list[list[str]]:
    """Return the rows of the table of test sets as text, each above the published scores for it.

    Parameters
    ----------
    scores : DataFrame
        Scores of `score_test_sets`.
    corpus : str
        Corpus whose published scores are shown.
    """
    published = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    published = published[published["corpus"] == corpus]
    rows = []
    for scenario, ways, n_answers, *figures in scores.itertuples(index=False):
        rows.append([scenario, str(ways), f"{n_answers:,}", *map("{:.4f}".format, figures)])
        is_same = (published["test set"] == scenario) & (published["labels"] == str(ways))
        for system, *cells in published.loc[is_same, ["system", *HEADER[3:]]].to_numpy():
            rows.append([f"  {system}", str(ways), "", *cells])
    return rows
