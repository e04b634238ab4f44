"""Measures of predicted labels: those of Dzikovska et al. (2012), and of SemEval-2013 task 7."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import responses

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
    kept = [*responses.LABEL_SETS[ways], responses.UNINTERPRETABLE]
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
        for ways in (n for n in responses.LABEL_SETS if n <= len(responses.labels_of(answers))):
            counts = count(own["label"].tolist(), own["predicted"].tolist(), ways)
            measured = evaluate(counts)
            # What no answer has and none is predicted to have counts 1; `evaluate` gives it 0.
            is_absent = counts.sum() + counts.head(ways).sum(axis=1) == 0
            f1 = measured["F1"].head(ways).mask(is_absent, 1.0)
            # As `macroav.exclude` there says: these have three such answers and none.
            if corpus == SCIENTSBANK and ways == 5 and scenario != responses.DOMAINS:
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
