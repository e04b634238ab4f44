"""Matrix factorisation from `Answers` to predictions: known answers, files, interruptions."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Run
from numpy.testing import assert_allclose, assert_array_equal

from common.answers import Answers
from common.errors import InputError
from common.models import item_response, matrix_factorization
from common.models.distributed import Processes
from common.models.matrix_factorization import MatrixFactorization

KINDS = pytest.mark.parametrize("predicts", ["is_correct", "option"])


def simulate(n_students: int = 300, n_questions: int = 60, per_student: int = 40, seed: int = 0):  # type: ignore[no-untyped-def]
    """Answers whose distractors tell of ability, with ids that have gaps; true probabilities."""
    rng = np.random.default_rng(seed)
    ability, easiness = rng.standard_normal(n_students), rng.normal(0.3, 1, n_questions)
    key = rng.integers(0, 4, n_questions)
    attraction = rng.normal(0, 1, (n_questions, 4))
    slope = rng.normal(0, 1, (n_questions, 4))
    student = np.repeat(np.arange(n_students), per_student)
    question = np.concatenate(
        [rng.choice(n_questions, per_student, replace=False) for _ in range(n_students)]
    )
    right = 1 / (1 + np.exp(-(1.5 * ability[student] + easiness[question])))
    wrong = np.exp(attraction[question] + slope[question] * ability[student, None])
    wrong[np.arange(len(student)), key[question]] = 0
    probability = wrong / wrong.sum(axis=1, keepdims=True) * (1 - right)[:, None]
    probability[np.arange(len(student)), key[question]] = right
    option = (rng.random((len(student), 1)) > probability.cumsum(axis=1)[:, :-1]).sum(axis=1)
    answers = Answers(
        student=(7 * student + 3).astype(np.int32),
        question=(2 * question + 11).astype(np.int32),
        is_correct=(option == key[question]).astype(np.int8),
        option=(option + 1).astype(np.int8),
        correct_option=(key[question] + 1).astype(np.int8),
    )
    return answers.take(rng.permutation(len(student))), ability, easiness


ANSWERS, ABILITY, EASINESS = simulate()
TEST = np.random.default_rng(1).random(len(ANSWERS)) < 0.2
TRAIN, HELD_OUT = ANSWERS.take(~TEST), ANSWERS.take(TEST)


def fitted(predicts: Any, answers: Answers = TRAIN, **options: Any) -> MatrixFactorization:
    return MatrixFactorization(predicts, **{"n_dimensions": 2, **options}).fit(answers)


def predicted(model: MatrixFactorization, pairs: Answers = HELD_OUT) -> Any:
    return model.predict_proba(pairs.student, pairs.question)


def accuracy(model: MatrixFactorization, pairs: Answers = HELD_OUT) -> float:
    p = predicted(model, pairs)
    if p.ndim == 1:
        return float(np.mean((p > 0.5) == pairs.is_correct))
    return float(np.mean(p.argmax(axis=1) + 1 == pairs.option))


def log_loss(model: MatrixFactorization, pairs: Answers) -> float:
    p = predicted(model, pairs)
    if p.ndim == 1:
        chosen = np.where(pairs.is_correct == 1, p, 1 - p)
    else:
        assert pairs.option is not None
        chosen = p[np.arange(len(p)), pairs.option - 1]
    return float(-np.log(chosen).mean())


def majority_accuracy(predicts: str) -> float:
    column, test = getattr(TRAIN, predicts), getattr(HELD_OUT, predicts)
    counts = np.zeros((200, 5))
    np.add.at(counts, (TRAIN.question, column), 1)
    return float(np.mean(counts.argmax(axis=1)[HELD_OUT.question] == test))


@KINDS
def test_predicts_better_than_the_majority(predicts: str) -> None:
    assert accuracy(fitted(predicts)) > majority_accuracy(predicts) + 0.04


@KINDS
def test_steps_predict_new_answers_better(predicts: str) -> None:
    # On the 20 % held out here: the start fits what it sees best, and steps shrink it.
    losses = [log_loss(fitted(predicts, max_steps=steps), HELD_OUT) for steps in (1, 2, 4)]
    assert all(later < earlier for earlier, later in itertools.pairwise(losses)), losses


@KINDS
def test_probabilities_are_calibrated(predicts: str) -> None:
    p = predicted(fitted(predicts))
    assert p.dtype == np.float32
    if predicts == "is_correct":
        assert p.shape == (len(HELD_OUT),)
        sure = p[(p > 0.8)], HELD_OUT.is_correct[p > 0.8]
    else:
        assert p.shape == (len(HELD_OUT), 4)
        assert_allclose(p.sum(axis=1), 1, atol=1e-5)
        assert HELD_OUT.option is not None
        chosen = p.argmax(axis=1)
        rows = p.max(axis=1) > 0.7
        sure = p.max(axis=1)[rows], (chosen + 1 == HELD_OUT.option)[rows]
    assert (p >= 0).all()
    assert (p <= 1).all()
    assert len(sure[0]) > 200
    assert sure[0].mean() == pytest.approx(sure[1].mean(), abs=0.05)


def test_one_dimension_gives_abilities_and_difficulties() -> None:
    model = fitted("is_correct", n_dimensions=1)
    assert np.corrcoef(model.students.mean[:-1, 0], ABILITY)[0, 1] > 0.9
    assert np.corrcoef(model.questions.mean[:-1, 1], EASINESS)[0, 1] > 0.97


def test_the_right_option_has_the_probability_of_a_right_answer() -> None:
    right = predicted(fitted("is_correct"))
    assert HELD_OUT.correct_option is not None
    options = predicted(fitted("option"))
    of_right = options[np.arange(len(options)), HELD_OUT.correct_option - 1]
    # Not equal: distractors tell about ability too.
    assert np.corrcoef(right, of_right)[0, 1] > 0.97


def test_learns_nothing_from_random_labels() -> None:
    rng = np.random.default_rng(0)
    noise = Answers(TRAIN.student, TRAIN.question, rng.integers(0, 2, len(TRAIN)).astype(np.int8))
    assert accuracy(fitted("is_correct", noise)) == pytest.approx(0.5, abs=0.03)


@KINDS
@pytest.mark.parametrize("n_samples", [0, 2])
def test_unknown_students_and_questions_are_predicted(predicts: str, n_samples: int) -> None:
    model = fitted(predicts, n_samples=n_samples)
    students = np.array([3, 999_999, 3, 999_999, -5])
    questions = np.array([11, 11, 999_999, 999_999, 0])
    p = model.predict_proba(students, questions)
    assert np.isfinite(p).all()
    if predicts == "is_correct":
        share = np.array([TRAIN.is_correct[TRAIN.question == q].mean() for q in model.question_ids])
        unknown = np.full(len(share), 999_999)
        by_question = model.predict_proba(unknown, model.question_ids)
        # An unknown student: as the question is. An unknown pair: about the overall share.
        share = np.maximum(share, model.guessing)
        assert_allclose(by_question, share, atol=0.1 if n_samples == 0 else 0.35)
        if n_samples == 0:
            assert p[3] == pytest.approx(TRAIN.is_correct.mean(), abs=0.05)
    else:
        assert TRAIN.option is not None
        shares = np.bincount(TRAIN.option, minlength=5)[1:] / len(TRAIN)
        assert_allclose(p[3], shares, atol=1e-6)
    assert model.predict_proba(students[:0], questions[:0]).shape[0] == 0


def test_a_student_with_few_answers_falls_back_to_the_question() -> None:
    rows = np.flatnonzero(TRAIN.student == 3)
    model = fitted("is_correct", TRAIN.take(np.delete(np.arange(len(TRAIN)), rows[1:])))
    everyone = model.predict_proba(np.full(60, 999_999), model.question_ids)
    with_one = model.predict_proba(np.full(60, 3), model.question_ids)
    assert np.abs(with_one - everyone).max() < 0.25
    assert np.abs(with_one - everyone).max() > 0


@pytest.mark.parametrize("n_answers", [1, 2, 30])
@KINDS
def test_a_handful_of_answers_is_enough(predicts: str, n_answers: int) -> None:
    few = TRAIN.take(np.arange(n_answers))
    model = fitted(predicts, few, n_dimensions=5, n_samples=1)
    assert np.isfinite(predicted(model)).all()


@KINDS
@pytest.mark.parametrize("n_samples", [0, 3])
def test_same_seed_same_model(predicts: str, n_samples: int) -> None:
    one = predicted(fitted(predicts, n_samples=n_samples))
    assert_array_equal(one, predicted(fitted(predicts, n_samples=n_samples)))
    assert (one != predicted(fitted(predicts, n_samples=n_samples, seed=1))).any()


@pytest.mark.parametrize(
    "option", [{"n_dimensions": 1}, {"n_samples": 2}, {"max_steps": 1}, {"seed": 5}]
)
def test_every_option_has_an_effect(option: dict[str, int]) -> None:
    assert (predicted(fitted("is_correct", **option)) != predicted(fitted("is_correct"))).any()


def test_order_of_answers_and_huge_ids_change_nothing_but_noise() -> None:
    far = Answers(TRAIN.student * 9_000 + 1_000_000_000, TRAIN.question, TRAIN.is_correct)
    model = fitted("is_correct", far)
    p = model.predict_proba(HELD_OUT.student * 9_000 + 1_000_000_000, HELD_OUT.question)
    assert_array_equal(p, predicted(fitted("is_correct")))


# ---- Files -------------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("n_samples", [0, 2])
def test_a_saved_model_predicts_the_same(tmp_path: Path, predicts: str, n_samples: int) -> None:
    model = fitted(predicts, n_samples=n_samples)
    path = tmp_path / "folder" / "model.npz"
    model.save(path)
    loaded = MatrixFactorization.load(path)
    assert_array_equal(predicted(loaded), predicted(model))
    assert loaded.history == model.history
    assert loaded.predicts == predicts
    with np.load(path, allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)


def test_a_faulty_model_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    with pytest.raises(InputError, match="not found"):
        MatrixFactorization.load(path)
    fitted("is_correct").save(path)
    whole = path.read_bytes()
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}

    def fault(**changed: Any) -> str:
        np.savez(path, **{n: a for n, a in {**arrays, **changed}.items() if a is not None})
        with pytest.raises(InputError) as error:
            MatrixFactorization.load(path)
        assert str(path) in str(error.value)
        return str(error.value)

    assert "'partial VAE'" in fault(kind=np.array("partial VAE"))
    assert "expected 'matrix factorization'" in fault(kind=None)
    message = fault(student_mean=np.zeros((4, 2), np.float32))
    assert "student_mean" in message
    assert "(4, 2), expected (301, 2)" in message
    assert "'student_mean' is missing" in fault(student_mean=None)
    assert "settings" in fault(settings=np.array("{}x"))
    assert "settings" in fault(settings=np.array(json.dumps({"layers": 3})))
    for content in (whole[: len(whole) // 2], b"", b"PK not a zip", np.arange(3).tobytes()):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"is not an \.npz file"):
            MatrixFactorization.load(path)


def test_a_file_with_code_in_it_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    np.savez(path, kind=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match=r"is not an \.npz file"):
        MatrixFactorization.load(path)


# ---- Faults and interruptions ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value", "name"),
    [("is_correct", 2, "IsCorrect"), ("option", 0, "AnswerValue"), ("option", 5, "AnswerValue"),
     ("correct_option", 9, "CorrectAnswer")],
)  # fmt: skip
def test_an_answer_outside_the_categories_is_told(column: str, value: int, name: str) -> None:
    columns = {n: getattr(TRAIN, n).copy() for n in TRAIN.__dataclass_fields__}
    columns[column][17] = value
    with pytest.raises(InputError, match=f"answer 17: {name} is {value}, expected"):
        MatrixFactorization("option").fit(Answers(**columns))


def test_options_are_needed_to_predict_options() -> None:
    with pytest.raises(InputError, match="AnswerValue"):
        MatrixFactorization("option").fit(Answers(TRAIN.student, TRAIN.question, TRAIN.is_correct))
    with pytest.raises(InputError, match="no answers"):
        MatrixFactorization().fit(TRAIN.take(np.zeros(len(TRAIN), bool)))


@pytest.mark.parametrize(
    "option", [{"n_dimensions": 0}, {"n_samples": -1}, {"max_steps": 0}, {"seed": -1}]
)
def test_a_wrong_option_is_told(option: dict[str, int]) -> None:
    (name,) = option
    with pytest.raises(InputError, match=name):
        MatrixFactorization(**option)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected 'is_correct' or 'option'"):
        MatrixFactorization("confidence")  # type: ignore[arg-type]


def test_a_loss_that_is_not_a_number_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    nan = np.float32("nan")
    monkeypatch.setattr(item_response, "_expected_terms", lambda m, v, right, g: (m * nan, v))
    monkeypatch.setattr(item_response, "_find_start", start_without_search)
    with pytest.raises(FloatingPointError, match=r"step 1: the loss is not a number"):
        fitted("is_correct", n_dimensions=1)


def start_without_search(observations: Any, k: int, group: Any, seed: int, reduce: Any) -> Any:
    return item_response._first_guess(observations, group, reduce)


def interrupt_after(monkeypatch: pytest.MonkeyPatch, name: str, calls: int) -> Callable[[], None]:
    """Press Control-C at a call of a method of the model; give a way to stop doing so."""
    real = getattr(MatrixFactorization, name)
    count = 0

    def pressed(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count > calls:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(MatrixFactorization, name, pressed)
    return lambda: monkeypatch.setattr(MatrixFactorization, name, real)


@KINDS
def test_control_c_keeps_the_model_so_far(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, predicts: str
) -> None:
    release = interrupt_after(monkeypatch, "_evaluate", 2)
    model = fitted(predicts, n_samples=5)
    assert model.interrupted
    assert len(model.history) == 2
    assert len(model.ability_draws) == 0
    assert accuracy(model) > majority_accuracy(predicts)
    model.save(tmp_path / "model.npz")
    release()
    interrupt_after(monkeypatch, "_evaluate", 0)
    with pytest.raises(KeyboardInterrupt):
        fitted(predicts)


@KINDS
def test_a_run_that_was_killed_goes_on_to_the_same_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, predicts: str
) -> None:
    """Killed once in the fit and once while sampling."""
    monkeypatch.setattr(matrix_factorization, "_CHECKPOINT_SECONDS", 0)
    path = tmp_path / "fit.checkpoint"
    options: dict[str, Any] = {"n_dimensions": 2, "n_samples": 2}
    expected = predicted(fitted(predicts, **options))

    class KilledError(Exception):
        pass

    def kill_at(n: int) -> None:
        real = matrix_factorization._Checkpoint.write
        count = 0

        def write(*arguments: Any) -> None:
            nonlocal count
            real(*arguments)
            count += 1
            if count == n:
                raise KilledError

        with monkeypatch.context() as patch, pytest.raises(KilledError):
            patch.setattr(matrix_factorization._Checkpoint, "write", write)
            MatrixFactorization(predicts, **options).fit(TRAIN, checkpoint=path)  # type: ignore[arg-type]

    kill_at(2)
    kill_at(40)
    model = MatrixFactorization(predicts, **options)  # type: ignore[arg-type]
    calls = []
    real = MatrixFactorization._evaluate
    monkeypatch.setattr(
        MatrixFactorization,
        "_evaluate",
        lambda *a: calls.append(1) or real(*a),  # type: ignore[func-returns-value]
    )
    model.fit(TRAIN, checkpoint=path)
    assert not calls
    assert_array_equal(predicted(model), expected)


def test_a_checkpoint_of_another_fit_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(matrix_factorization, "_CHECKPOINT_SECONDS", 0)
    path = tmp_path / "fit.checkpoint"
    MatrixFactorization(n_dimensions=2).fit(TRAIN, checkpoint=path)
    with pytest.raises(InputError, match="another fit"):
        MatrixFactorization(n_dimensions=3).fit(TRAIN, checkpoint=path)
    with pytest.raises(InputError, match="another fit"):
        MatrixFactorization(n_dimensions=2).fit(HELD_OUT, checkpoint=path)
    with pytest.raises(InputError, match="kind 'matrix factorization checkpoint'"):
        MatrixFactorization.load(path)


# ---- The scripts, as a user runs them ----------------------------------------------------------


def read_score(kit: Path, task: int) -> float:
    path = kit / f"data/test_output/scores_task_{task}.txt"
    return float(path.read_text().removeprefix("score:"))


@pytest.mark.parametrize("task", [1, 2])
def test_scripts_beat_the_majority(tiny_kit: Path, run: Run, task: int) -> None:
    assert run([f"task_{task}/local_data_split.py"], kit=tiny_kit).returncode == 0
    scores = {}
    for name in ("majority", "matrix_factorization"):
        for script in (f"sample_model_{name}.py", "local_evaluation.py"):
            flags = ["--local"] if script.startswith("sample") else []
            done = run([f"task_{task}/{script}", *flags], kit=tiny_kit)
            assert done.returncode == 0, done.stderr
        scores[name] = read_score(tiny_kit, task)
    assert scores["matrix_factorization"] > scores["majority"] + 0.01


def test_flags_of_the_script(tiny_kit: Path, run: Run, fails: Callable[..., str]) -> None:
    """Each flag reaches the model; faults are one line."""
    assert run(["task_1/local_data_split.py"], kit=tiny_kit).returncode == 0
    script = ["task_1/sample_model_matrix_factorization.py", "--local"]
    path = tiny_kit / "model.npz"
    flags = {"--dimensions": 2, "--samples": 1, "--max_steps": 2, "--seed": 3}
    done = run([*script, *itertools.chain(*flags.items()), "--model_file", path], kit=tiny_kit)
    assert done.returncode == 0, done.stderr
    model = MatrixFactorization.load(path)
    assert (model.n_dimensions, model.n_samples, model.max_steps, model.seed) == (2, 1, 2, 3)
    assert len(model.ability_draws) == 1
    assert len(model.history) <= 2
    assert "n_dimensions is 0" in fails([*script, "--dimensions", 0], kit=tiny_kit)
    text = tiny_kit / "pyproject.toml"
    assert "not an .npz" in fails([*script, "--checkpoint", text], kit=tiny_kit)


# ---- Several processes -------------------------------------------------------------------------


def test_two_processes_fit_what_one_fits(tmp_path: Path, run: Run) -> None:
    """By torchrun on gloo; each has half of the students, samples included."""
    data, script = tmp_path / "answers.npz", tmp_path / "fit.py"
    np.savez(data, **{n: getattr(TRAIN, n) for n in TRAIN.__dataclass_fields__})
    script.write_text(
        "import atexit, sys\n"
        "from pathlib import Path\n"
        "import numpy as np\n"
        "import torch.distributed\n"
        "from common.answers import Answers\n"
        "from common.models import distributed\n"
        "from common.models.matrix_factorization import MatrixFactorization\n"
        # Registered before the processes join, so it runs after they have left one another.
        "together = torch.distributed.is_initialized\n"
        "atexit.register(lambda: sys.stdout.write('together %s\\n' % together()))\n"
        "processes = distributed.join()\n"
        f"answers = Answers(**np.load({str(data)!r}))\n"
        "model = MatrixFactorization('option', n_dimensions=2, n_samples=5)\n"
        "model.fit(answers, processes=processes)\n"
        f"model.save(Path({str(tmp_path)!r}) / ('model_%d.npz' % processes.rank))\n"
        # One write, so that the lines of two processes never mix.
        "sys.stdout.write('processes %d\\n' % processes.size)\n"
    )
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = run([*launcher, str(script)])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("processes 2") == 2
    assert done.stdout.count("together False") == 2
    first, second = (MatrixFactorization.load(tmp_path / f"model_{rank}.npz") for rank in (0, 1))
    assert_array_equal(predicted(first), predicted(second))
    alone = fitted("option", n_samples=5)
    assert_allclose(first.history, alone.history, atol=1e-3)
    assert_allclose(first.students.mean, alone.students.mean, atol=0.02)
    # The samples are other draws from the same distribution.
    assert np.abs(predicted(first) - predicted(alone)).mean() < 0.05
    assert accuracy(first) == pytest.approx(accuracy(alone), abs=0.02)


def test_sums_over_one_process_are_the_array_itself() -> None:
    array = np.arange(3.0)
    assert_array_equal(Processes().sum(array), array)
