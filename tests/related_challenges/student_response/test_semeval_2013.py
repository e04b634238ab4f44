"""Student responses: the measures of the task's scorer, and what is published."""

from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from question_files import TWO_ANSWERS, Write

responses = import_module("responses")
semeval_2013 = import_module("semeval_2013")


def scorers_f1(gold: list[str], predicted: list[str], name: str) -> float:
    """Compute the F1 of a label as `fmeasure` in the task's evaluation.R does."""
    both = sum(g == p == name for g, p in zip(gold, predicted, strict=True))
    n_predicted, n_gold = predicted.count(name), gold.count(name)
    precision = both / n_predicted if n_predicted else float(n_gold == 0)
    recall = both / n_gold if n_gold else float(n_predicted == 0)
    return 2 * precision * recall / (precision + recall) if precision or recall else 0.0


@given(
    st.lists(
        st.tuples(
            st.sampled_from(responses.LABEL_SETS[5]),
            st.sampled_from((*responses.LABEL_SETS[5], responses.UNINTERPRETABLE)),
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([2, 3, 5]),
    st.booleans(),
)
def test_measures_of_the_task_are_its_scorers(
    pairs: list[tuple[str, str]], ways: int, excludes: bool
) -> None:
    gold, predicted = map(list, zip(*pairs, strict=True))
    excluded = ["non_domain"] if excludes else []
    found = semeval_2013.measure(gold, predicted, ways, excluded)
    gold = [responses.coarsen(name, ways) for name in gold]
    predicted = [responses.coarsen(name, ways) for name in predicted]
    f1 = {name: scorers_f1(gold, predicted, name) for name in responses.LABEL_SETS[ways]}
    kept = [value for name, value in f1.items() if name not in excluded]
    accuracy = sum(g == p for g, p in zip(gold, predicted, strict=True)) / len(gold)
    weighted = sum(f1[name] for name in gold) / len(gold)
    assert found == pytest.approx((accuracy, sum(kept) / len(kept), weighted))


def test_the_macro_average_leaves_out_what_the_scorer_does() -> None:
    left_out = {
        (corpus, ways, scenario)
        for corpus in ("", semeval_2013.BEETLE, semeval_2013.SCIENTSBANK)
        for ways in (2, 3, 5)
        for scenario in responses.SCENARIOS
        if semeval_2013.excluded_labels(corpus, ways, scenario)
    }
    assert left_out == {
        (semeval_2013.SCIENTSBANK, 5, "test-unseen-answers"),
        (semeval_2013.SCIENTSBANK, 5, "test-unseen-questions"),
    }


def test_the_table_shows_what_is_published(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "3way/sciEntsBank"
    write("3way/sciEntsBank/test-unseen-domains/a.xml", TWO_ANSWERS.format("a", *["correct"] * 2))
    answers = responses.read_responses(folder)
    corpus = semeval_2013.corpus_of(folder)
    assert corpus == semeval_2013.SCIENTSBANK
    scores = semeval_2013.score_scenarios(answers, ["correct", "irrelevant"], corpus)
    assert [(score.ways, score.answers, score.accuracy) for score in scores] == [
        (5, 2, 0.5),
        (3, 2, 0.5),
        (2, 2, 0.5),
    ]
    header, rows = semeval_2013.table(scores, corpus)
    assert all(len(row) == len(header) for row in rows)
    assert rows[1] == ["  best [3]", "5", "", "", "0.375", ""]
    assert len(rows) == 4
