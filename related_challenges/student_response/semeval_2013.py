"""SemEval-2013 task 7: its measures for every test set, and figures published for it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import grading_measures
import numpy as np
import responses

BEETLE, SCIENTSBANK = "beetle", "sciEntsBank"
ANSWERS, QUESTIONS, DOMAINS = responses.SCENARIOS

# Accuracy, macro F1 and weighted F1 by corpus, number of labels and scenario, in as many digits as
# the source has; nothing where none was found.
# [1] Singh, Arya, Mukerjee (2013), Student response analysis using textual entailment: tables of
#     the task's best systems and of its lexical baseline as they ran it.
# [2] Ott, Ziai, Hahn, Meurers (2013), CoMeT, SemEval, abstract.
# [3] Figures of the task's paper (Dzikovska et al. 2013, S13-2045) as quoted by others.
Published = tuple[str, str, str, str]
PUBLISHED: dict[tuple[str, int, str], tuple[Published, ...]] = {
    (BEETLE, 5, ANSWERS): (
        ("lexical baseline [1]", "", "0.42", "0.48"),
        ("CoMeT [1]", "", "0.569", "0.675"),
        ("ETS, best [1, 3]", "", "0.619", "0.705"),
    ),
    (BEETLE, 5, QUESTIONS): (
        ("lexical baseline [1]", "", "0.41", "0.46"),
        ("CoMeT [1]", "", "0.300", "0.445"),
        ("ETS, best [1, 3]", "", "0.552", "0.614"),
    ),
    (BEETLE, 3, ANSWERS): (
        ("lexical baseline [1]", "", "0.55", "0.58"),
        ("ETS [1]", "", "0.710", "0.723"),
        ("CoMeT, best [1, 2]", "0.731", "0.715", "0.728"),
    ),
    (BEETLE, 3, QUESTIONS): (
        ("lexical baseline [1]", "", "0.48", "0.50"),
        ("CoMeT [1]", "", "0.466", "0.488"),
        ("ETS, best [1]", "", "0.585", "0.597"),
    ),
    (BEETLE, 2, ANSWERS): (
        ("lexical baseline [1]", "", "0.78", "0.80"),
        ("ETS and CoMeT, best [1]", "", "0.833", ""),
    ),
    (BEETLE, 2, QUESTIONS): (
        ("lexical baseline [1]", "", "0.73", "0.73"),
        ("ETS, best of the systems [1]", "", "0.702", ""),
    ),
    (SCIENTSBANK, 5, ANSWERS): (("best [3]", "", "0.581", ""),),
    (SCIENTSBANK, 5, QUESTIONS): (("best [3]", "", "0.384", ""),),
    (SCIENTSBANK, 5, DOMAINS): (("best [3]", "", "0.375", ""),),
}


@dataclass(frozen=True)
class Score:
    """The task's three measures on one test set, with its labels or with coarser ones.

    Attributes
    ----------
    scenario
        One of `responses.SCENARIOS`.
    ways
        2, 3 or 5: number of labels.
    answers
        How many there are.
    accuracy, macro_f1, weighted_f1
        From 0 to 1.
    """

    scenario: str
    ways: int
    answers: int
    accuracy: float
    macro_f1: float
    weighted_f1: float


def corpus_of(folder: Path) -> str:
    """Return the corpus that a folder's path names, as the task's scorer does; possibly none."""
    names = " ".join(folder.resolve().parts[-4:]).lower()
    return next((corpus for corpus in (BEETLE, SCIENTSBANK) if corpus.lower() in names), "")


def excluded_labels(corpus: str, ways: int, scenario: str) -> tuple[str, ...]:
    """Return the labels that the macro average leaves out.

    Of SciEntsBank's 5-way labels this is ``non_domain`` with unseen answers and unseen questions,
    which have three such answers and none; with unseen domains it counts.

    References
    ----------
    The task's scorer: `macroav.exclude` in `semeval.challenge.evaluation` of evaluation.R.
    """
    leaves_out = corpus == SCIENTSBANK and ways == 5 and scenario in (ANSWERS, QUESTIONS)
    return ("non_domain",) if leaves_out else ()


def measure(
    gold: Sequence[str], predicted: Sequence[str], ways: int, excluded: Collection[str] = ()
) -> tuple[float, float, float]:
    """Compute accuracy, macro F1 and weighted F1 as the task's scorer does.

    Parameters
    ----------
    gold, predicted
        Label of every answer, of the set of that many ways or of a finer one.
    ways
        2, 3 or 5.
    excluded
        Labels that the macro average leaves out.

    Notes
    -----
    A label that no answer has and none is predicted to have gets an F1 of 1, as in the scorer's
    evaluation.R; `grading_measures.evaluate` gives it 0.
    """
    labels = responses.LABEL_SETS[ways]
    counts = grading_measures.count(
        [responses.coarsen(name, ways) for name in gold],
        [responses.coarsen(name, ways) for name in predicted],
        labels,
    )
    measured = grading_measures.evaluate(counts)
    is_absent = (counts.sum(axis=0) == 0) & (counts[: len(labels)].sum(axis=1) == 0)
    f1 = np.where(is_absent, 1.0, measured.by_label[:, 2])
    kept = [number for number, name in enumerate(labels) if name not in excluded]
    return measured.accuracy, float(f1[kept].mean()), float(measured.micro[2])


def score_scenarios(
    answers: responses.Responses, predicted: Sequence[str], corpus: str
) -> list[Score]:
    """Score every test set with all its labels, then with coarser ones: 5, 3 and 2 ways.

    Parameters
    ----------
    answers
        The true labels; questions without a scenario are left out.
    predicted
        Label predicted for every answer.
    corpus
        As `corpus_of` returns it.
    """
    scores = []
    scenario_of = [answers.questions[number].scenario for number in answers.question]
    for scenario in responses.SCENARIOS:
        rows = [row for row, name in enumerate(scenario_of) if name == scenario]
        gold = [answers.labels[answers.label[row]] for row in rows]
        for ways in responses.LABEL_SETS:
            if rows and ways <= len(answers.labels):
                left_out = excluded_labels(corpus, ways, scenario)
                measures = measure(gold, [predicted[row] for row in rows], ways, left_out)
                scores.append(Score(scenario, ways, len(rows), *measures))
    return scores


def table(scores: Sequence[Score], corpus: str) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of a table of scores, each above what is published beside it."""
    header = ["test set", "labels", "answers", "accuracy", "macro F1", "weighted F1"]
    rows = []
    for score in scores:
        measures = (score.accuracy, score.macro_f1, score.weighted_f1)
        cells = [f"{value:.4f}" for value in measures]
        rows.append([score.scenario, str(score.ways), f"{score.answers:,}", *cells])
        for system, *figures in PUBLISHED.get((corpus, score.ways, score.scenario), ()):
            rows.append([f"  {system}", str(score.ways), "", *figures])
    return header, rows
