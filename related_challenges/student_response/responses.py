"""Files and measures of student response analysis: answers graded against reference answers.

Answers are a DataFrame, a row each, with the columns id; text; label, a categorical of one of
`LABEL_SETS`, empty where it is not known; and place, file and line, for messages. Of its question a
row has question, a number from 0; question_id; question_text; references, a list of texts; module,
the domain, such as ``EM``; scenario, which of `SCENARIOS` the file lies in; and path. The module
and the scenario are empty where there is none.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.parsers import expat

from common import reading
from common.arrays import BoolArray, IntArray
from common.errors import MAX_SHOWN, InputError, Report, printable, quote, stop
from related_challenges import challenge, folds

import numpy as np
import pandas as pd

# The label sets of the corpora, the finest first; the first label is the most frequent one.
LABEL_SETS = {
    5: ("correct", "partially_correct_incomplete", "contradictory", "irrelevant", "non_domain"),
    3: ("correct", "contradictory", "incorrect"),
    2: ("correct", "incorrect"),
}
ALL_LABELS = tuple(dict.fromkeys(name for names in LABEL_SETS.values() for name in names))
# A system may fail to interpret an answer; that is not a label, and leads to no feedback.
UNINTERPRETABLE = "uninterpretable"
# Test sets lie in folders of these names, those of BEETLE possibly in another folder in there.
ANSWERS, QUESTIONS, DOMAINS = SCENARIOS = (
    "test-unseen-answers", "test-unseen-questions", "test-unseen-domains"
)  # fmt: skip
CORE = "Core"

UNKNOWN = -1  # number of a label that is not known
# Of the most frequent label, to learn from: settings are chosen on five parts of them.
MIN_ANSWERS = 5

Splits = list[tuple[BoolArray, BoolArray, IntArray]]


# ---- Files -----------------------------------------------------------------------------------


def read_responses(folder: Path, *, reads_labels: bool | None = True) -> pd.DataFrame:
    """Read all answers of a folder, or of its test sets, one XML file for each question; labels are
    read, or not (False), or if any answer has one (None).
    """
    files = _find_files(folder)
    elements = pd.DataFrame(
        element | {"question": number, "scenario": scenario, "path": path}
        for number, (scenario, path) in enumerate(files)
        for element in _read_elements(path)
    )
    roots = elements.drop_duplicates("question")
    for path, tag in roots.loc[roots["tag"] != "question", ["path", "tag"]].to_numpy():
        raise InputError(f"{path}: holds <{printable(tag, MAX_SHOWN)}>, expected <question>")
    for tag in ("questionText", "referenceAnswer"):
        found = elements[elements["tag"] == tag]
        missing = roots[~roots["question"].isin(found["question"])]
        told = f"<{tag}> is missing or empty, expected text"
        _refuse(pd.concat([missing, found[found["text"] == ""]]), told)
    # A student may leave an answer empty; that is an answer too.
    answers = elements[elements["tag"] == "studentAnswer"]
    for named in (roots, answers):
        _refuse(named[named["id"] == ""], "<{tag}> has no attribute 'id'")
    if not len(answers):
        raise InputError(f"{folder}: holds {len(files)} questions but no studentAnswer")
    first = answers.groupby("id")["place"].transform("first")
    told = "studentAnswer {id} is in {first} already, expected every id once"
    _refuse(answers.assign(first=first)[answers["id"].duplicated()], told)

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


def _refuse(wrong: pd.DataFrame, told: str) -> None:
    """Raise `InputError` about the first of some rows, if there are any, filled in what is told."""
    if len(wrong):
        row: dict[str, Any] = {**wrong.iloc[0]}
        quoted = {name: quote(str(row[name])) for name in ("id", "label")}
        raise InputError(f"{row['place']}: {told.format(**row | quoted)}")


def labels_of(answers: pd.DataFrame) -> list[str]:
    """Return the labels of the set that the answers use, of which codes are the numbers."""
    return list(answers["label"].cat.categories)


def _find_files(folder: Path) -> list[tuple[str, Path]]:
    """Find the files of a folder, or those of its test sets, each with its scenario."""
    own = next((name for name in SCENARIOS if name in folder.parts[-2:]), "")
    places = [(own, folder), (own, folder / CORE)]
    if not any(folder.glob("*.xml")):
        places += [(name, folder / name / part) for name in SCENARIOS for part in ("", CORE)]
    files = [(name, path) for name, place in places for path in sorted(place.glob("*.xml"))]
    if not files:
        reading.require_file(folder / "*.xml")
    return files


def _read_elements(path: Path) -> list[dict[str, Any]]:
    """Return the elements of an XML file: known attributes, tag, place, and text at their start."""
    reading.require_file(path)
    elements: list[dict[str, Any]] = []
    parser = expat.ParserCreate()  # The standard library's trees do not tell lines.
    # Of text in small pieces, as entities make it, each would copy all that came before it.
    parser.buffer_text, parser.buffer_size = True, 1 << 20

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

    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(path.read_bytes(), True)
    except expat.ExpatError as error:
        raise InputError(f"{path}: is not XML: {error}; is the file cut off?") from None
    except (LookupError, ValueError) as error:
        # An encoding that Python or its XML reader does not know.
        raise InputError(f"{path}: cannot be read as XML: {error}") from None
    return [element | {"text": element["text"].strip()} for element in elements]


def _find_label_set(answers: pd.DataFrame) -> tuple[str, ...]:
    """Find the smallest set that holds all labels; 5-way files may lack the rare ones."""
    used = {*answers["label"]}
    labels = LABEL_SETS[5]
    if "incorrect" in used and not used & {*LABEL_SETS[5]} - {*LABEL_SETS[3]}:
        labels = LABEL_SETS[2] if used <= {*LABEL_SETS[2]} else LABEL_SETS[3]
    told = "files without labels can be predicted, not learned from or scored"
    _refuse(answers[answers["label"] == ""], f"<studentAnswer> has no attribute 'accuracy'; {told}")
    told = f"is {{label}}, expected one of {', '.join(sorted(labels))}"
    wrong = answers[~answers["label"].isin(labels)]
    _refuse(wrong, f"attribute 'accuracy' of studentAnswer {{id}} {told}")
    return labels


# ---- Models: what to learn from and to predict ------------------------------------------------


def model_parser(doc: str | None) -> argparse.ArgumentParser:
    """Make the parser of a sample model: what to learn from, and what to predict."""
    p = challenge.model_parser(doc, __file__, **challenge.FOLDS)
    for flag, told in (
        ("--test_dir", "predict these answers, or the test sets in there, instead of folds"),
        ("--train_dir", "with --test_dir: learn from these answers"),
    ):
        p.add_argument(flag, type=Path, metavar="DIR", help=told)
    return p


def read(options: argparse.Namespace) -> tuple[pd.DataFrame, Splits]:
    """Read all answers that the flags name, those of ``--test_dir`` after those of ``--train_dir``;
    of what is to be predicted, and so of all answers in folds, the labels are empty. For every fit,
    return which answers to learn from, which to predict, and the labels' numbers, `UNKNOWN` for
    those that are not to be learned from.
    """
    options.local = options.test_dir is None
    folder = options.train_dir or options.input_dir
    if options.local and options.train_dir is not None:
        raise InputError("--train_dir needs --test_dir; folds are made of --input_dir")
    answers = read_responses(folder)
    fold = challenge.read_folds(options, answers["id"].tolist())
    if fold is None:
        answers = join(answers, read_responses(options.test_dir, reads_labels=False))
        is_train = answers["label"].notna().to_numpy()
        pairs = [(is_train, ~is_train)]
    else:
        pairs = list(folds.splits(fold))
    numbers, labels, splits = answers["label"].cat.codes.to_numpy(int), labels_of(answers), []
    for learned, asked in pairs:
        counts = np.bincount(numbers[learned])
        n, n_most, name = learned.sum(), counts.max(), quote(labels[counts.argmax()])
        told = f"of {n:,} answers to learn from only {n_most} are {name}, the most frequent label"
        expected = f"at least {MIN_ANSWERS}"
        if n_most == n:
            told, expected = f"all {n:,} answers to learn from are {name}", "at least two labels"
        if n_most < MIN_ANSWERS or n_most == n:
            raise InputError(f"{folder}: {told}, expected {expected}")
        splits.append((learned, asked, np.where(learned, numbers, UNKNOWN)))
    if fold is not None:
        answers = answers.assign(label=pd.Categorical([None] * len(answers), labels))
    return answers, splits


def join(train: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    """Append answers to predict, questions matched by module and id; refuse a false scenario."""
    of_tests = train["path"][train["scenario"] != ""]
    if len(of_tests):
        raise InputError(f"{of_tests.iloc[0]}: is of a test set, expected files to learn from")
    known = test.merge(train[["id", "place"]], on="id", suffixes=("", "_learned"))
    told = "studentAnswer {id} is to be learned from as well: {place_learned}"
    _refuse(known, f"{told}, expected other answers")
    both = pd.concat([train, test], ignore_index=True)
    both["label"] = pd.Categorical(both["label"], labels_of(train))
    by_question = both.groupby(["module", "question_id"], sort=False)
    both["question"] = by_question.ngroup()
    asked = ["question_text", "references", "path"]
    own_path, both[asked] = both["path"], by_question[asked].transform("first")
    scenario, is_new = both["scenario"], both["path"] == own_path
    is_known_module = both["module"].isin(train["module"])
    faults = {
        " is not in the training files, expected new answers only": (scenario == ANSWERS) & is_new,
        " is in {}, expected a new question": scenario.isin((QUESTIONS, DOMAINS)) & ~is_new,
        ": the module is in the training files, expected a new one": is_known_module
        & (scenario == DOMAINS),
    }
    for told, wrong in faults.items():
        if wrong.any():
            row = both[wrong].iloc[0]
            name = f"question {quote(row['question_id'])} of module {quote(row['module'])}"
            raise InputError(f"{own_path[wrong].iloc[0]}: {name}{told.format(row['path'])}")
    return both


def write(options: argparse.Namespace, answers: pd.DataFrame, prediction: IntArray) -> None:
    """Write the labels of all answers, given as numbers, or of those of ``--test_dir`` alone."""
    rows = answers["label"].isna()
    labels = np.array(labels_of(answers), object)[prediction[rows]]
    challenge.write_submission(options, {"id": answers["id"][rows], "label": labels})


# ---- Predictions -----------------------------------------------------------------------------


def read_predictions(path: Path, answers: pd.DataFrame, report: Report = stop) -> list[str]:
    """Read and check a submission: the label predicted for every answer, in their order."""
    allowed = {name: name for name in (*(labels_of(answers) or ALL_LABELS), UNINTERPRETABLE)}
    expected, ids = f"one of {', '.join(allowed)}", answers["id"].tolist()
    places = path, "label", ids, "the answers"
    return challenge.read_predictions(*places, allowed.__getitem__, expected, report)


# ---- Measures: those of Dzikovska et al. (2012), and of SemEval-2013 task 7 -------------------

MACRO, MICRO, CORRECTIVE = "macro average", "micro average", "corrective feedback"
BEETLE, SCIENTSBANK = "beetle", "sciEntsBank"
HEADER = ["test set", "labels", "answers", "accuracy", "macro F1", "weighted F1"]

# Of a system, in as many digits as the source has, nothing where none was found.
# [1] Singh, Arya, Mukerjee (2013), Student response analysis using textual entailment: tables of
#     the task's best systems and of its lexical baseline as they ran it.
# [2] Ott, Ziai, Hahn, Meurers (2013), CoMeT, SemEval, abstract.
# [3] Figures of the task's paper (Dzikovska et al. 2013, S13-2045) as quoted by others.
PUBLISHED = Path(__file__).with_name("published.csv")


def count(gold: Sequence[str], predicted: Sequence[str], ways: int) -> pd.DataFrame:
    """Count predicted labels (rows, ``uninterpretable`` last) by gold ones, both made coarser."""
    kept = [*LABEL_SETS[ways], UNINTERPRETABLE]
    coarser = {name: name if name in kept else "incorrect" for name in {*gold, *predicted}}
    counts = pd.crosstab(pd.Series(predicted).map(coarser), pd.Series(gold).map(coarser))
    return counts.reindex(kept, columns=kept[:-1], fill_value=0)


def evaluate(counts: pd.DataFrame) -> pd.DataFrame:
    """Compute the measures of the paper (2012, section 4) from what `count` returns, 0/0 as 0: of
    labels, their mean (`MACRO`), that weighted by gold counts (`MICRO`, its recall the accuracy),
    and of the decision that an answer needs correction, any label but ``correct`` (`CORRECTIVE`).
    """
    # An answer without an interpretation is in the gold totals, but predicts and corrects nothing.
    labelled = counts.head(counts.shape[1]).to_numpy()
    # Of each label, and last of the decision to correct, which is any label but the first.
    agreed = np.array([*np.diag(labelled), labelled[1:, 1:].sum()], float)
    predicted, gold = labelled.sum(axis=1), counts.sum().to_numpy()
    n_predicted, n_gold = (np.append(n, n[1:].sum()) for n in (predicted, gold))
    ratios = (agreed, n_predicted), (agreed, n_gold), (2 * agreed, n_predicted + n_gold)
    found = np.stack([above / np.maximum(below, 1) for above, below in ratios], axis=1)
    by_label = found[:-1]
    rows = [*by_label, by_label.mean(axis=0), gold @ by_label / gold.sum(), found[-1]]
    names = [*counts, MACRO, MICRO, CORRECTIVE]
    return pd.DataFrame(rows, names, ["precision", "recall", "F1"])


def corpus_of(folder: Path) -> str:
    """Return the corpus that a folder's path names, as the task's scorer does; possibly none."""
    names = " ".join(folder.resolve().parts[-4:]).lower()
    return next((corpus for corpus in (BEETLE, SCIENTSBANK) if corpus.lower() in names), "")


def score_test_sets(answers: pd.DataFrame, predicted: Sequence[str], corpus: str) -> pd.DataFrame:
    """Score test sets as the task's evaluation.R, in all ways that their labels allow."""
    rows = []
    given = answers.assign(predicted=predicted)
    for scenario, own in given[given["scenario"] != ""].groupby("scenario", sort=False):
        for ways in (n for n in LABEL_SETS if n <= len(labels_of(answers))):
            counts = count(own["label"].tolist(), own["predicted"].tolist(), ways)
            measured = evaluate(counts)
            # What no answer has and none is predicted to have counts 1; `evaluate` gives it 0.
            is_absent = counts.sum() + counts.head(ways).sum(axis=1) == 0
            f1 = measured["F1"].head(ways).mask(is_absent, 1.0)
            # As `macroav.exclude` there says: these have three such answers and none.
            if corpus == SCIENTSBANK and ways == 5 and scenario != DOMAINS:
                f1 = f1.drop("non_domain")
            figures = measured["recall"][MICRO], f1.mean(), measured["F1"][MICRO]
            rows.append((scenario, ways, len(own), *map(float, figures)))
    return pd.DataFrame(rows, columns=HEADER)


def rows_shown(scores: pd.DataFrame, corpus: str) -> list[list[str]]:
    """Return the rows of a table of scores, each above what is published beside it."""
    known = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    known = known[known["corpus"] == corpus]
    rows = []
    for scenario, ways, n_answers, *figures in scores.itertuples(index=False):
        rows.append([scenario, str(ways), f"{n_answers:,}", *map("{:.4f}".format, figures)])
        own = known[(known["test set"] == scenario) & (known["labels"] == str(ways))]
        for system, *published in own[["system", *HEADER[3:]]].to_numpy():
            rows.append([f"  {system}", str(ways), "", *published])
    return rows
