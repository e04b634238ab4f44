"""The partial VAE: known answers, sets of answers, files, interruptions, several processes."""

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Run
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from common.answers import Answers
from common.errors import InputError
from common.models import partial_vae
from common.models.partial_vae import PartialVAE, gaussian_kl

KINDS = pytest.mark.parametrize("predicts", ["is_correct", "option"])
QUICK = {"n_dimensions": 3, "max_epochs": 12, "device": "cpu"}


def simulate(n_students: int = 400, n_questions: int = 50) -> tuple[Answers, Any]:
    """Answers of students with one ability, which wrong options tell of too; ids with gaps."""
    rng = np.random.default_rng(0)
    ability = rng.standard_normal(n_students)
    easiness, key = rng.normal(0.3, 1, n_questions), rng.integers(0, 4, n_questions)
    attraction = rng.normal(0, 1, (n_questions, 4))
    slope = rng.normal(0, 1, (n_questions, 4))
    slope[np.arange(n_questions), key] = 2
    attraction[np.arange(n_questions), key] = easiness
    student, question = (rng.random((n_students, n_questions)) < 0.6).nonzero()
    logit = attraction[question] + slope[question] * ability[student, None]
    option = (logit + rng.gumbel(size=logit.shape)).argmax(axis=1)
    answers = Answers(
        student=(5 * student + 2).astype(np.int32),
        question=(3 * question + 10).astype(np.int32),
        is_correct=(option == key[question]).astype(np.int8),
        option=(option + 1).astype(np.int8),
        correct_option=(key[question] + 1).astype(np.int8),
    )
    return answers.take(rng.permutation(len(answers))), ability


ANSWERS, ABILITY = simulate()
TEST = np.random.default_rng(1).random(len(ANSWERS)) < 0.2
TRAIN, HELD_OUT = ANSWERS.take(~TEST), ANSWERS.take(TEST)
UNKNOWN = 999_999


def fitted(predicts: Any, answers: Answers = TRAIN, **options: Any) -> PartialVAE:
    return PartialVAE(predicts, **{**QUICK, **options}).fit(answers)


def predicted(model: PartialVAE, pairs: Answers = HELD_OUT, **options: Any) -> Any:
    return model.predict_proba(pairs.student, pairs.question, **options)


def accuracy(model: PartialVAE, pairs: Answers = HELD_OUT, **options: Any) -> float:
    p = predicted(model, pairs, **options)
    if p.ndim == 1:
        return float(np.mean((p > 0.5) == pairs.is_correct))
    return float(np.mean(p.argmax(axis=1) + 1 == pairs.option))


def majority_accuracy(predicts: str) -> float:
    counts = np.zeros((200, 5))
    np.add.at(counts, (TRAIN.question, getattr(TRAIN, predicts)), 1)
    return float(np.mean(counts.argmax(axis=1)[HELD_OUT.question] == getattr(HELD_OUT, predicts)))


@pytest.fixture(scope="module")
def models() -> dict[str, PartialVAE]:
    """One fit of each kind for all tests that only read it."""
    return {predicts: fitted(predicts) for predicts in ("is_correct", "option")}


# ---- What it predicts --------------------------------------------------------------------------


@KINDS
def test_predicts_better_than_the_majority(models: dict[str, PartialVAE], predicts: str) -> None:
    model = models[predicts]
    assert accuracy(model) > majority_accuracy(predicts) + 0.04
    assert accuracy(model, n_samples=20) > majority_accuracy(predicts) + 0.04
    assert min(loss for _, loss, _ in model.history) < model.history[0][1]


@KINDS
def test_probabilities_are_calibrated(models: dict[str, PartialVAE], predicts: str) -> None:
    p = predicted(models[predicts], n_samples=20)
    assert p.dtype == np.float32
    if predicts == "is_correct":
        assert p.shape == (len(HELD_OUT),)
        p = np.stack([1 - p, p], axis=1)
        truth = HELD_OUT.is_correct
    else:
        assert p.shape == (len(HELD_OUT), 4)
        assert HELD_OUT.option is not None
        truth = HELD_OUT.option - 1
    assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    sure = p.max(axis=1) > 0.75
    assert sure.sum() > 200
    hits = (p.argmax(axis=1) == truth)[sure]
    assert p.max(axis=1)[sure].mean() == pytest.approx(hits.mean(), abs=0.05)


def test_the_posterior_tells_the_ability() -> None:
    model = fitted("is_correct", n_dimensions=1, max_epochs=30)
    assert abs(np.corrcoef(model.student_mean[:, 0], ABILITY)[0, 1]) > 0.9
    # About as uncertain as it is wrong.
    error = ABILITY - model.student_mean[:, 0] * np.sign(model.student_mean[:, 0] @ ABILITY)
    assert 0.4 < np.mean(error**2 / model.student_variance[:, 0]) < 2.5


def test_learns_nothing_from_random_labels() -> None:
    noise = np.random.default_rng(0).integers(0, 2, len(TRAIN)).astype(np.int8)
    model = fitted("is_correct", Answers(TRAIN.student, TRAIN.question, noise))
    assert accuracy(model) == pytest.approx(0.5, abs=0.03)


@KINDS
@pytest.mark.parametrize("n_samples", [0, 3])
def test_unknown_students_and_questions_are_predicted(
    models: dict[str, PartialVAE], predicts: str, n_samples: int
) -> None:
    model = models[predicts]
    students, questions = np.array([2, UNKNOWN, 2, UNKNOWN, -5]), [10, 10, UNKNOWN, UNKNOWN, 0]
    p = model.predict_proba(students, np.array(questions), n_samples=n_samples)
    assert np.isfinite(p).all()
    assert model.predict_proba(students[:0], students[:0]).shape[0] == 0
    if predicts == "option":
        assert TRAIN.option is not None
        assert_allclose(p[3], np.bincount(TRAIN.option, minlength=5)[1:] / len(TRAIN), atol=1e-6)
    elif n_samples == 0:
        assert p[3] == pytest.approx(TRAIN.is_correct.mean(), abs=0.02)
        share = [TRAIN.is_correct[TRAIN.question == q].mean() for q in model.question_ids]
        by_question = model.predict_proba(np.full(len(share), UNKNOWN), model.question_ids)
        assert_allclose(by_question, share, atol=0.12)


@pytest.mark.parametrize("n_answers", [1, 2, 30])
@KINDS
def test_a_handful_of_answers_is_enough(predicts: str, n_answers: int) -> None:
    model = fitted(predicts, TRAIN.take(np.arange(n_answers)), max_epochs=2)
    assert np.isfinite(predicted(model)).all()
    assert np.isnan([row[1:] for row in model.history]).all()


@KINDS
def test_same_seed_same_model(models: dict[str, PartialVAE], predicts: str) -> None:
    again = fitted(predicts)
    assert_array_equal(predicted(again), predicted(models[predicts]))
    assert_array_equal(predicted(again, n_samples=2), predicted(models[predicts], n_samples=2))
    assert (predicted(fitted(predicts, seed=1)) != predicted(again)).any()


def test_fitting_leaves_the_global_random_numbers_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    fitted("is_correct", max_epochs=1)
    assert torch.equal(torch.rand(4), expected)


@pytest.mark.parametrize(
    "option",
    [{"n_dimensions": 1}, {"max_epochs": 2}, {"batch_size": 50}, {"learning_rate": 0.001},
     {"kl_weight": 3.0}, {"seed": 5}],
)  # fmt: skip
def test_every_option_has_an_effect(
    models: dict[str, PartialVAE], option: dict[str, float]
) -> None:
    changed = predicted(fitted("is_correct", **option))
    assert (changed != predicted(models["is_correct"])).any()


def test_huge_ids_change_nothing(models: dict[str, PartialVAE]) -> None:
    far = Answers(TRAIN.student * 9_000 + 1_000_000_000, TRAIN.question, TRAIN.is_correct)
    p = fitted("is_correct", far).predict_proba(
        HELD_OUT.student * 9_000 + 1_000_000_000, HELD_OUT.question
    )
    assert_array_equal(p, predicted(models["is_correct"]))


# ---- Posterior and decoder ---------------------------------------------------------------------


def test_kl_of_gaussians_is_that_of_samples() -> None:
    generator = torch.Generator().manual_seed(0)
    mean, other_mean = torch.tensor([0.5, -1.0]), torch.tensor([1.5, 0.0])
    variance, other_variance = torch.tensor([0.3, 2.0]), torch.tensor([2.5, 0.7])
    p = torch.distributions.Normal(mean, variance.sqrt())
    q = torch.distributions.Normal(other_mean, other_variance.sqrt())
    x = mean + variance.sqrt() * torch.randn(400_000, 2, generator=generator)
    sampled = (p.log_prob(x) - q.log_prob(x)).sum(1).mean().item()
    assert gaussian_kl(mean, variance, other_mean, other_variance).item() == pytest.approx(
        sampled, rel=0.01
    )
    assert gaussian_kl(mean, variance, mean, variance).item() == pytest.approx(0, abs=1e-6)


@KINDS
def test_posterior_of_the_training_sets(models: dict[str, PartialVAE], predicts: str) -> None:
    """Sets in any order give what the fit gave; an empty set gives the prior."""
    model = models[predicts]
    order = np.random.default_rng(0).permutation(len(TRAIN))
    shuffled = TRAIN.take(order)
    bag = np.searchsorted(model.student_ids, shuffled.student)
    n = len(model.student_ids)
    mean, variance = model.posterior(bag, shuffled.question, getattr(shuffled, predicts), n + 1)
    assert_allclose(mean[:-1], model.student_mean, atol=1e-4)
    assert_allclose(variance[:-1], model.student_variance, rtol=1e-4)
    assert_array_equal(mean[-1], 0)
    assert_array_equal(variance[-1], 1)


@given(
    predicts=st.sampled_from(["is_correct", "option"]),
    rows=st.lists(st.integers(0, len(TRAIN) - 1), max_size=30, unique=True),
)
@settings(max_examples=30, deadline=None)
def test_more_answers_never_make_less_certain(
    models: dict[str, PartialVAE], predicts: str, rows: list[int]
) -> None:
    """Each answer adds its row of evidence, and one to an unknown question adds nothing."""
    model, known = models[predicts], TRAIN.take(np.array(rows, np.int64))
    answer = getattr(known, predicts)

    def posterior(n: int, question: Any = known.question) -> Any:
        return model.posterior(np.zeros(n, np.int64), question[:n], answer[:n], 1)

    variances = [posterior(n)[1] for n in range(len(rows) + 1)]
    assert all((after < before).all() for before, after in itertools.pairwise(variances))
    score, precision = model.evidence()
    place = np.searchsorted(model.question_ids, known.question), answer - (predicts == "option")
    assert_allclose(1 / variances[-1][0], 1 + precision[place].sum(axis=0), rtol=1e-3)
    mean = posterior(len(rows))[0]
    assert_allclose(mean[0], score[place].sum(axis=0) * variances[-1][0], atol=1e-4)
    nothing, _ = posterior(len(rows), np.full(len(rows), UNKNOWN))
    assert_array_equal(nothing, 0)


@KINDS
def test_decoding_the_posterior_mean_predicts(models: dict[str, PartialVAE], predicts: str) -> None:
    model = models[predicts]
    p = model.decode(model.student_mean[:7])
    shape = (7, len(model.question_ids)) + ((4,) if predicts == "option" else ())
    assert p.shape == shape
    student, question = (g.ravel() for g in np.meshgrid(model.student_ids[:7], model.question_ids))
    expected = model.predict_proba(student, question).reshape(
        len(model.question_ids), *p.shape[:1], *shape[2:]
    )
    assert_allclose(p, expected.swapaxes(0, 1), atol=1e-5)


def test_wrong_sets_are_told(models: dict[str, PartialVAE]) -> None:
    bag, question, answer = np.array([0, 1]), np.array([10, 13]), np.array([1, 2])
    with pytest.raises(InputError, match="answer goes from 1 to 2, expected 0 to 1"):
        models["is_correct"].posterior(bag, question, answer, 2)
    with pytest.raises(InputError, match="bag goes from 0 to 1, expected 0 to 0"):
        models["option"].posterior(bag, question, answer, 1)


# ---- Files -------------------------------------------------------------------------------------


@KINDS
def test_a_saved_model_predicts_the_same(
    models: dict[str, PartialVAE], tmp_path: Path, predicts: str
) -> None:
    path = tmp_path / "folder" / "model.pt"
    models[predicts].save(path)
    loaded = PartialVAE.load(path)
    assert_array_equal(predicted(loaded), predicted(models[predicts]))
    assert_array_equal(loaded.evidence()[0], models[predicts].evidence()[0])
    assert loaded.history == models[predicts].history
    assert loaded.predicts == predicts


def test_a_faulty_model_file_is_told(models: dict[str, PartialVAE], tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    with pytest.raises(InputError, match="not found"):
        PartialVAE.load(path)
    models["is_correct"].save(path)
    whole, state = path.read_bytes(), torch.load(path, weights_only=True)

    def fault(part: str | None = None, **changed: Any) -> str:
        new = {**state, **({part: {**state[part], **changed}} if part else changed)}
        torch.save(new, path)
        with pytest.raises(InputError) as error:
            PartialVAE.load(path)
        assert str(path) in str(error.value)
        return str(error.value)

    assert "expected 'partial VAE'" in fault(kind="matrix factorization")
    message = fault("arrays", student_mean=torch.zeros(4, 3))
    assert "'student_mean' has the shape (4, 3), expected (400, 3)" in message
    assert "'loading'" in fault("network", loading=torch.zeros(51, 4))
    assert "is not what a model has" in fault("settings", layers=3)
    del state["history"]
    assert "'history' is missing" in fault()
    for content in (whole[: len(whole) // 2], b"", b"PK no zip", b"QuestionId,UserId\n1,2\n"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="is not a file of tensors"):
            PartialVAE.load(path)


def test_a_file_with_code_in_it_is_not_run(tmp_path: Path) -> None:
    class Code:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    path = tmp_path / "model.pt"
    for write in (torch.save, lambda x, p: p.write_bytes(pickle.dumps(x))):
        write({"kind": Code()}, path)
        with pytest.raises(InputError, match="is not a file of tensors"):
            PartialVAE.load(path)
    assert not (tmp_path / "ran").exists()


# ---- Faults and interruptions ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value", "name"),
    [("is_correct", 2, "IsCorrect"), ("option", 5, "AnswerValue"),
     ("correct_option", 0, "CorrectAnswer")],
)  # fmt: skip
def test_an_answer_outside_the_categories_is_told(column: str, value: int, name: str) -> None:
    columns = {n: getattr(TRAIN, n).copy() for n in TRAIN.__dataclass_fields__}
    columns[column][17] = value
    with pytest.raises(InputError, match=f"answer 17: {name} is {value}, expected"):
        fitted("option", Answers(**columns))


@pytest.mark.parametrize(
    "option",
    [{"n_dimensions": 0}, {"max_epochs": -1}, {"batch_size": -1}, {"learning_rate": 0.0},
     {"kl_weight": float("nan")}, {"seed": -1}, {"device": "abacus"}],
)  # fmt: skip
def test_a_wrong_option_is_told(option: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(option))):
        PartialVAE(**option)


def test_other_wrong_arguments_are_told(models: dict[str, PartialVAE]) -> None:
    with pytest.raises(InputError, match="expected 'is_correct' or 'option'"):
        PartialVAE("confidence")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="n_samples is -1"):
        predicted(models["option"], n_samples=-1)
    with pytest.raises(InputError, match="AnswerValue"):
        fitted("option", Answers(TRAIN.student, TRAIN.question, TRAIN.is_correct))


def test_a_loss_that_is_not_a_number_is_told() -> None:
    with pytest.raises(InputError, match=r"the loss became \w+ in epoch \d+.*learning_rate is 1e"):
        fitted("is_correct", learning_rate=1e30)


def interrupt_at(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """Press Control-C when the held-out answers are scored for that time."""
    real = PartialVAE._evaluate
    count = itertools.count(1)

    def pressed(*arguments: Any) -> Any:
        if next(count) == call:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(PartialVAE, "_evaluate", pressed)


def test_control_c_keeps_the_best_model_so_far(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    interrupt_at(monkeypatch, 5)
    model = fitted("is_correct")
    assert model.interrupted
    assert len(model.history) == 4
    assert accuracy(model) > majority_accuracy("is_correct")
    model.save(tmp_path / "model.pt")
    interrupt_at(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        fitted("is_correct")


@KINDS
def test_an_interrupted_training_goes_on_to_the_same_model(
    models: dict[str, PartialVAE], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, predicts: Any
) -> None:
    path = tmp_path / "training.checkpoint"
    with monkeypatch.context() as patch:
        interrupt_at(patch, 5)
        PartialVAE(predicts, **QUICK).fit(TRAIN, checkpoint=path)
    model = PartialVAE(predicts, **QUICK).fit(TRAIN, checkpoint=path)
    assert model.history == models[predicts].history
    assert_array_equal(predicted(model), predicted(models[predicts]))
    with pytest.raises(InputError, match=r"another fit: its seed is 0, expected 1"):
        PartialVAE(predicts, **QUICK, seed=1).fit(TRAIN, checkpoint=path)
    with pytest.raises(InputError, match="another fit: its checksum"):
        PartialVAE(predicts, **QUICK).fit(HELD_OUT, checkpoint=path)
    with pytest.raises(InputError, match="kind 'partial VAE checkpoint'"):
        PartialVAE.load(path)


def test_training_stops_when_held_out_answers_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = itertools.chain([0.7, 0.5, 0.6], itertools.repeat(0.65))
    monkeypatch.setattr(PartialVAE, "_evaluate", lambda *_: (next(losses), 0.5))
    model = fitted("is_correct", max_epochs=60)
    assert len(model.history) == 2 + partial_vae._PATIENCE
    monkeypatch.setattr(PartialVAE, "_evaluate", lambda *_: (0.5, 0.5))
    one = fitted("is_correct", max_epochs=2)
    # The first of equally good epochs stays the best one.
    assert len(one.history) == 2


# ---- Several processes -------------------------------------------------------------------------


def test_two_processes_fit_what_one_fits(
    models: dict[str, PartialVAE], tmp_path: Path, run: Run
) -> None:
    """By torchrun on gloo; each has half of the students."""
    data, script = tmp_path / "answers.npz", tmp_path / "fit.py"
    np.savez(data, **{n: getattr(TRAIN, n) for n in TRAIN.__dataclass_fields__})
    script.write_text(
        "import atexit, sys\n"
        "from pathlib import Path\n"
        "import numpy as np\n"
        "import torch.distributed\n"
        "from common.answers import Answers\n"
        "from common.models import distributed\n"
        "from common.models.partial_vae import PartialVAE\n"
        # Registered before the processes join, so it runs after they have left one another.
        "together = torch.distributed.is_initialized\n"
        "atexit.register(lambda: sys.stdout.write('together %s\\n' % together()))\n"
        "processes = distributed.join()\n"
        f"model = PartialVAE('option', **{QUICK!r})\n"
        f"model.fit(Answers(**np.load({str(data)!r})), processes=processes)\n"
        f"model.save(Path({str(tmp_path)!r}) / f'model_{{processes.rank}}.pt')\n"
        # One write, so that the lines of two processes never mix.
        "sys.stdout.write('processes %d\\n' % processes.size)\n"
    )
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = run([*launcher, str(script)])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("processes 2") == 2
    assert done.stdout.count("together False") == 2
    first, second = (PartialVAE.load(tmp_path / f"model_{rank}.pt") for rank in (0, 1))
    assert_array_equal(predicted(first), predicted(second))
    alone = models["option"]
    assert_allclose(first.history[-1], alone.history[-1], atol=0.02)
    assert np.abs(predicted(first) - predicted(alone)).mean() < 0.03
    assert accuracy(first) == pytest.approx(accuracy(alone), abs=0.02)
