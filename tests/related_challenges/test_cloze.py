"""Cloze: the metric by known answers and a second implementation, bad input, the scripts."""

import argparse
import json
import re
import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError

queries = import_module("queries")

Write = Callable[[str, str | bytes], Path]
FOLDER = "related_challenges/cloze"
TRAIN = "KCT_train_public.txt"


@pytest.mark.parametrize(
    ("guess", "answer", "score"),
    [
        ("columbia university", "Columbia University", 1),
        ("ucla", "Columbia University", 0),
        ("columbia city", "Columbia University", 0.5),
        ("The U.S.A.", "usa", 1),
        ("an", "the", 1),
        ("...", "", 1),
        ("the", "usa", 0),
        ("usa", "?", 0),
        ("new york new york", "new york", 2 / 3),
        ("York, New", "new york", 1),
    ],
)
def test_worked_examples(guess: str, answer: str, score: float) -> None:
    assert queries.token_f1(guess, answer) == pytest.approx(score)


def test_best_guess_and_best_answer_count() -> None:
    guesses = ["columbia city", "ucla", "columbia university"]
    assert queries.score_query(guesses, ["Columbia University"]) == 1
    assert queries.score_query(["ucla"], ["mit", "UCLA"]) == 1
    assert queries.score_query([], ["mit"]) == 0


def plain_f1(guess: str, answer: str) -> float:
    """Token F1 with lists alone, words taken out one by one."""

    def split(text: str) -> list[str]:
        text = re.sub(r"[!-/:-@\[-`{-~]", "", text.lower())
        return [word for word in re.split(r"\s+", text) if word not in ("", "a", "an", "the")]

    left, right = split(guess), split(answer)
    if not left and not right:
        return 1.0
    rest, shared = list(right), 0
    for word in left:
        if word in rest:
            rest.remove(word)
            shared += 1
    if not shared:
        return 0.0
    precision, recall = shared / len(left), shared / len(right)
    return 2 * precision * recall / (precision + recall)


words = st.lists(st.sampled_from(["a", "The", "an", "x", "X.", "y", "z", "!", "ü"])).map(" ".join)


@given(st.lists(words, max_size=5), st.lists(words, min_size=1, max_size=3))
def test_metric_agrees_with_a_plain_one(guesses: list[str], answers: list[str]) -> None:
    expected = max((plain_f1(g, a) for g in guesses for a in answers), default=0.0)
    assert queries.score_query(guesses, answers) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,ret\n01,[]\n", "1 of 2 ids are missing, first '1'"),
        ('id,ret\n1,[]\n01,"[""a"",""b"",""c"",""d"",""e"",""f""]"\n', "row 3 holds 6 answers"),
        ("id,ret\n1,[]\n01,ucla\n", "row 3 is 'ucla', expected a JSON list"),
        ("id,ret\n1,[]\n01,[1]\n", r"row 3 is '\[1\]', expected a JSON list"),
        ("id,ret\n1,[]\n01,{}\n", "row 3 is '{}', expected a JSON list"),
        ("id,ret\n1,[]\n01,\n", "row 3 is empty"),
        ("id,ret\n1,[]\n01,[]\n1,[]\n", "row 4 repeats '1' of row 2"),
        ("id,ret\n1,[]\n01,[]\n001,[]\n", "row 4 is '001', which is not in the queries"),
        ("\ufeffid,ret\n1,[]\n01,[]\n", "byte order mark"),
        ("id,answer\n1,[]\n01,[]\n", "column 'ret' is missing"),
    ],
)
def test_refuses_a_wrong_submission(write: Write, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        queries.read_guesses(write("submission.csv", content), ["1", "01"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"qid": "1", "query": "x [MASK]", "answer": ["y"]', "line 1 is not JSON"),
        ("[]", "line 1 holds no JSON object"),
        ('{"qid": 1, "query": "x [MASK]", "answer": ["y"]}', "line 1: 'qid' is 1, expected text"),
        ('{"qid": "1", "query": "x", "answer": ["y"]}', r"holds no \[MASK\]"),
        ('{"qid": "1", "query": "[MASK]", "answer": []}', r"'answer' is \[\], expected a list"),
        ('{"qid": "1", "query": "[MASK]", "answer": "y"}', "'answer' is 'y', expected a list"),
        ('{"qid": "1", "query": "[MASK]"}', "'answer' is None"),
        ('{"qid": "1", "query": "[MASK]", "answer": ["y"]}\n' * 2, "line 2 repeats qid '1'"),
        (
            '{"qid": "1", "query": "[MASK] \\ud800", "answer": ["y"]}',
            "'query' holds half a char",
        ),
        ('{"qid": "1", "query": "[MASK]", "answer": ["\\udfff"]}', "'answer' holds half a char"),
        ('{"qid": "1", "query": "[MASK]", "x": ' + "[" * 100_000, "line 1 is not JSON .nests too"),
        ('{"qid": "1", "query": "[MASK]", "x": ' + "9" * 5000 + "}", "line 1 is not JSON"),
        ('{"qid": "\\u001b[2J", "query": "x"}', r"'query' holds no \[MASK\]: 'x'"),
        (
            '{"qid": "1", "query": "[MASK]", "answer": ["y"], "domain": ["a"]}',
            r"line 1: 'domain' is \['a'\], expected text, a number or a boolean",
        ),
        (
            '{"qid": "1", "query": "[MASK]", "answer": ["y"], "NeedReasoning": 0.5}',
            "line 1: 'NeedReasoning' is 0.5, expected",
        ),
        ("\n", "is empty"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_refuses_wrong_queries(write: Write, content: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        queries.read_queries(write(TRAIN, content), answers=True)


def test_a_text_may_hold_what_ends_a_line_elsewhere(write: Write) -> None:
    texts = ["a\u2028[MASK]", "b\x0c[MASK]", "c\x85[MASK]"]
    lines = [json.dumps({"qid": text, "query": text}, ensure_ascii=False) for text in texts]
    path = write("queries.txt", "\r\n".join(lines))
    # JSON itself writes a form feed as an escape; the others may appear unescaped.
    assert [query.text for query in queries.read_queries(path, answers=False)] == texts


def test_guesses_survive_writing_and_reading(tmp_path: Path) -> None:
    path = tmp_path / "submission.csv"
    guesses = {"007": ['a "b", c', "ü"], "7": []}
    options = argparse.Namespace(output_dir=tmp_path, output_file=path.name, local=False)
    queries.write_guesses(options, guesses)
    assert path.read_bytes().startswith(b"id,ret\n")
    assert queries.read_guesses(path, ["7", "007"]) == [[], ['a "b", c', "ü"]]
    with pytest.raises(InputError, match="6 answers, at most 5"):
        queries.write_guesses(options, {"1": list("abcdef")})


def test_best_guesses_are_ordered_and_at_most_five() -> None:
    assert queries.best_guesses({"a": 1, "b": 3, "c": 1, "d": 2, "e": 0, "f": 0}) == list("bdace")


def test_kinds_of_queries_are_read_where_they_are_there(write: Write) -> None:
    kinds: list[dict[str, object]] = [
        {"domain": "places", "NeedReasoning": True},
        {"domain": 3, "NeedReasoning": 0},
        {"domain": None, "NeedReasoning": "two facts"},
        {},
    ]
    lines = [
        json.dumps({"qid": str(number), "query": "[MASK]", "answer": ["x"], **more})
        for number, more in enumerate(kinds)
    ]
    found = queries.read_queries(write(TRAIN, "\n".join(lines)), answers=True)
    assert [(query.domain, query.needs_reasoning) for query in found] == [
        ("places", "yes"), ("3", "no"), ("", "two facts"), ("", ""),
    ]  # fmt: skip


def test_scores_by_kind_are_means_of_their_queries(
    write: Write, succeeds: Callable[..., str]
) -> None:
    """On the page, in print and in the record; without kinds the page has no such table."""
    kinds: list[dict[str, object]] = [
        {"domain": "a", "NeedReasoning": 1},
        {"domain": "a"},
        {},
        {"domain": "b"},
    ]
    records = [
        {"qid": str(number), "query": "[MASK]", "answer": ["x"], **more}
        for number, more in enumerate(kinds)
    ]
    folder = write(TRAIN, "\n".join(map(json.dumps, records))).parent
    write("submission.csv", 'id,ret\n0,"[""x""]"\n1,[]\n2,"[""y"",""x""]"\n3,[]\n')
    flags = ["--input_dir", folder, "--submission_dir", folder, "--output_dir", folder]
    out = succeeds([f"{FOLDER}/local_evaluation.py", *flags])
    line = json.loads((folder / "results.jsonl").read_text())
    assert line["score"] == 0.5
    assert line["parts"] == {
        "domain: a": 0.5, "domain: b": 0.0, "domain: unknown": 1.0,
        "reasoning: yes": 1.0, "reasoning: unknown": pytest.approx(1 / 3),
    }  # fmt: skip
    assert re.search(r"^domain: a +2 +0\.5000 +50\.0%$", out, re.MULTILINE)
    page = (folder / "scores_cloze.html").read_text()
    assert "reasoning: unknown" in page and "0.3333" in page
    out = succeeds([f"{FOLDER}/local_evaluation.py", *flags, "--candidates", "1"])
    assert "score 0.2500" in out
    last = json.loads((folder / "results.jsonl").read_text().splitlines()[-1])
    assert (last["score"], last["rules"]) == (0.25, "first guess")
    for record in records:
        record.pop("domain", None)
        record.pop("NeedReasoning", None)
    write(TRAIN, "\n".join(map(json.dumps, records)))
    out = succeeds([f"{FOLDER}/local_evaluation.py", *flags])
    assert "domain" not in out + (folder / "scores_cloze.html").read_text()


def score_of(folder: Path) -> float:
    return float((folder / "scores_cloze.txt").read_text().removeprefix("score:"))


def test_scripts(
    challenge_kit: Callable[[str], Path],
    succeeds: Callable[..., str],
    run: Callable[..., "subprocess.CompletedProcess[str]"],
) -> None:
    kit = challenge_kit("cloze")
    data = kit / FOLDER / "data"
    succeeds([f"{FOLDER}/local_data_split.py", "--folds", "3"], kit=kit)
    reference = queries.read_queries(data / "train_data" / TRAIN, answers=True)
    scores = {}
    for model in ("frequent", "back_off", "nearest_queries", "mix"):
        succeeds([f"{FOLDER}/sample_model_{model}.py", "--local"], kit=kit)
        path = data / "test_output/submission.csv"
        guesses = queries.read_guesses(path, [query.id for query in reference])
        pairs = zip(guesses, reference, strict=True)
        points = [queries.score_query(guess, query.answers) for guess, query in pairs]
        scores[model] = sum(points) / len(points)
    done = run([f"{FOLDER}/local_evaluation.py"], kit=kit)  # In a process of its own, as users do.
    assert f"score {scores['mix']:.4f}" in done.stdout
    assert score_of(data / "test_output") == pytest.approx(scores["mix"])
    assert all(scores["frequent"] + 0.1 < scores[name] for name in scores if name != "frequent")

    succeeds([f"{FOLDER}/sample_model_mix.py", "--output_file", "test.csv"], kit=kit)
    test = queries.read_queries(data / "train_data/KCT_test_public.txt", answers=False)
    guesses = queries.read_guesses(data / "test_output/test.csv", [query.id for query in test])
    assert all(len(guess) == 5 for guess in guesses)
    assert {query.needs_reasoning for query in reference} == {"yes", "no"}
    assert {query.domain for query in test} == {"people", "places", "education"}


@pytest.mark.parametrize("model", ["frequent", "back_off", "nearest_queries", "mix"])
def test_the_number_of_candidates_is_a_flag(
    model: str, challenge_kit: Callable[[str], Path], succeeds: Callable[..., str], tmp_path: Path
) -> None:
    kit = challenge_kit("cloze")
    test = queries.read_queries(kit / FOLDER / "data/train_data/KCT_test_public.txt", answers=False)
    ids = [query.id for query in test]
    found = {}
    for n in (2, 5):
        flags = ["--output_dir", tmp_path, "--candidates", n]
        succeeds([f"{FOLDER}/sample_model_{model}.py", *flags], kit=kit)
        found[n] = queries.read_guesses(tmp_path / "submission.csv", ids)
    assert found[2] == [guesses[:2] for guesses in found[5]]


def test_more_candidates_than_allowed_are_refused(
    challenge_kit: Callable[[str], Path], run: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    model = f"{FOLDER}/sample_model_frequent.py"
    done = run([model, "--candidates", "6"], kit=challenge_kit("cloze"))
    assert done.returncode == 2
    assert "--candidates: 6 is above 5, the most that are allowed" in done.stderr


@pytest.mark.parametrize(
    ("script", "flags", "missing"),
    [
        ("local_data_split", [], TRAIN),
        ("local_evaluation", [], TRAIN),
        ("sample_model_frequent", ["--local"], TRAIN),
        ("sample_model_frequent", ["--train_data", "mine.txt"], "KCT_test_public.txt"),
        ("local_evaluation", ["--ref_data", "other.txt"], "other.txt"),
    ],
)
def test_a_missing_file_is_named_with_what_is_there(
    script: str, flags: list[str], missing: str, write: Write, run: Callable[..., object]
) -> None:
    line = '{"qid": "1", "query": "x [MASK]", "answer": ["y"]}'
    path = write("mine.txt", line)
    done: Any = run(
        [f"{FOLDER}/{script}.py", *flags, "--input_dir", path.parent, "--output_dir", path.parent]
    )
    expected = f"error: {path.parent / missing}: file not found; the folder holds mine.txt"
    assert (done.returncode, done.stderr.strip()) == (2, expected)


def test_models_do_not_see_the_answers_they_predict(
    write: Write, succeeds: Callable[..., str]
) -> None:
    # Every query has an answer of its own, so that only a model that has seen it can know it.
    line = '{{"qid": "{0}", "query": "person {0} was born in [MASK].", "answer": ["place{0}"]}}\n'
    folder = write(TRAIN, "".join(line.format(number) for number in range(40))).parent
    flags = ["--input_dir", folder, "--output_dir", folder]
    succeeds([f"{FOLDER}/local_data_split.py", *flags])
    succeeds(
        [f"{FOLDER}/sample_model_mix.py", *flags, "--local", "--submission_template_dir", folder]
    )
    succeeds([f"{FOLDER}/local_evaluation.py", *flags, "--submission_dir", folder])
    assert score_of(folder) == 0


def test_missing_split_names_the_command(
    challenge_kit: Callable[[str], Path], fails: Callable[..., str], tmp_path: Path
) -> None:
    kit = challenge_kit("cloze")
    model = f"{FOLDER}/sample_model_frequent.py"
    template = kit / "related_challenges/other/data/test_input"
    line = fails([model, "--local", "--submission_template_dir", template], kit=kit)
    assert "`python related_challenges/other/local_data_split.py` makes it" in line


def test_real_queries(real_data: Path, tmp_path: Path, succeeds: Callable[..., str]) -> None:
    flags: list[object] = ["--input_dir", real_data / "related/cloze"]
    name = "KCT_train_public.reconstructed.txt"
    train = [*flags, "--train_data", name, "--output_dir", tmp_path]
    succeeds([f"{FOLDER}/local_data_split.py", *train])
    model = f"{FOLDER}/sample_model_frequent.py"
    succeeds([model, *train, "--local", "--submission_template_dir", tmp_path])
    evaluation = [f"{FOLDER}/local_evaluation.py", *flags, "--ref_data", name]
    succeeds([*evaluation, "--submission_dir", tmp_path, "--output_dir", tmp_path])
    assert score_of(tmp_path) == pytest.approx(0.211, abs=0.002)
