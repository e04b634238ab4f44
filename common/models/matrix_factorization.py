"""Logistic matrix factorisation of students × questions, for right or wrong and for the option.

`item_response` holds the mathematics. Here: from `Answers` to its arrays and back, stopping on
held-out answers, and files. Students and questions without training answers are predicted too: an
unknown student is one of average ability, an unknown question one of average easiness.

The chosen option is modelled by stick breaking (Linderman, Johnson and Adams 2015, "Dependent
multinomial models made easy"): is the answer right? If not, is it the most popular
distractor? If not, the next? Each of these is a right/wrong question with slopes of its own on the
same ability, so that the same fit serves both tasks, and the right option has P(right). Only the
first can be guessed: who guesses a distractor does not know the answer either.
"""

import argparse
import json
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from common import cli, run_log
from common.answers import Answers, find_ids, number_ids
from common.errors import InputError
from common.io import atomic_write, require_file
from common.models import item_response
from common.models.distributed import Processes
from common.models.item_response import Fit, Gaussians, Observations
from common.models.preparation import (
    N_OPTIONS,
    checksum,
    hold_out_to_stop,
    order_options,
    require_categories,
)
from common.run_log import Note, no_note

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.integer[Any]]
Arrays = dict[str, npt.NDArray[Any]]

DEFAULT_DIMENSIONS, DEFAULT_MAX_STEPS = 8, 60
# Chosen on answers held out of the training parts of the real pool (tests/benchmarks).
_DEFAULT_GUESSING = {"is_correct": 0.2, "option": 0.0}
_KIND, _CHECKPOINT_KIND = "matrix factorization", "matrix factorization checkpoint"
# Stop when this many steps together lower the held-out log loss by less than such a share.
_PATIENCE, _LEAST_GAIN = 2, 1.25e-3
# Steps with all answers after that, if at least such a share of them had been held out.
_LAST_STEPS, _SHARE_FOR_LAST_STEPS = 1, 0.01
# Draws left out at first; draws from one kept draw to the next, for neighbours hardly differ.
_BURN_IN, _THINNING = 40, 4
_CHECKPOINT_SECONDS = 10.0
_PLAIN_ARRAYS = (
    "student_ids",
    "question_ids",
    "ability_draws",
    "question_draws",
    "stage_of_option",
    "option_shares",
)


class MatrixFactorization:
    """Logistic matrix factorisation with biases, which is multidimensional item response theory.

    Parameters
    ----------
    predicts
        "is_correct" (task 1) or "option" (task 2).
    n_dimensions
        Dimensions of the ability, at least 1. Those that the answers do not support shrink away.
    n_samples
        Draws from the posterior to average predictions over; 0 predicts from the variational fit
        alone. Each costs four passes over the answers and the memory of all abilities.
    max_steps
        Most steps of the variational fit; it stops earlier when held-out answers say so.
    guessing
        Probability that a student who does not know the answer is right all the same, 0 to 0.9.
        Default: 0.2, but 0 if options are predicted.
    seed
        The same seed, answers and number of processes give the same model.

    Attributes
    ----------
    history : list of (float, float)
        Log loss and accuracy on held-out answers after each step of the variational fit; NaN if
        there are too few answers to hold any out.
    interrupted : bool
        Whether Control-C ended the fit early.
    """

    def __init__(
        self,
        predicts: Literal["is_correct", "option"] = "is_correct",
        *,
        n_dimensions: int = DEFAULT_DIMENSIONS,
        n_samples: int = 0,
        max_steps: int = DEFAULT_MAX_STEPS,
        guessing: float | None = None,
        seed: int = 0,
    ) -> None:
        for name, value, least in (
            ("n_dimensions", n_dimensions, 1),
            ("n_samples", n_samples, 0),
            ("max_steps", max_steps, 1),
            ("seed", seed, 0),
        ):
            if value < least:
                raise InputError(f"{name} is {value}, expected at least {least}")
        if predicts not in ("is_correct", "option"):
            raise InputError(f"predicts is {predicts!r}, expected 'is_correct' or 'option'")
        guessing = _DEFAULT_GUESSING[predicts] if guessing is None else guessing
        if not 0 <= guessing <= 0.9:
            raise InputError(f"guessing is {guessing}, expected 0 to 0.9")
        self.predicts = predicts
        self.n_dimensions = n_dimensions
        self.n_samples = n_samples
        self.max_steps = max_steps
        self.guessing = guessing
        self.seed = seed
        self.history: list[tuple[float, float]] = []
        self.interrupted = False

    def fit(
        self,
        answers: Answers,
        *,
        checkpoint: Path | None = None,
        processes: Processes | None = None,
        note: Note = no_note,
    ) -> "MatrixFactorization":
        """Learn from answers.

        Control-C ends the fit early and keeps the best model so far, once there is one.

        Parameters
        ----------
        answers
            Training answers, with both option columns if options are to be predicted.
        checkpoint
            File to write to on the way, and to go on from if it is there.
        processes
            The processes that share the work, each with its own students; every one is given all
            answers. Default: this one alone.
        note
            Called after every step, ``note("step", step=…, loss=…, accuracy=…)`` with the log loss
            and accuracy on held-out answers, and after every sweep of sampling.

        Raises
        ------
        InputError
            If an answer is none of the categories, or the checkpoint is of another fit.
        FloatingPointError
            If the loss is not a number.
        """
        processes = processes or Processes()
        require_categories(answers, self.predicts)
        self.student_ids, student = number_ids(answers.student)
        self.question_ids, question = number_ids(answers.question)
        # In random order, so that the first students are a fair sample; the last one is without
        # answers and stands for every unknown student.
        n = len(self.student_ids)
        place = np.append(np.random.default_rng(self.seed).permutation(n), n).astype(np.int32)
        data = self._arrange(answers, place[student], question, processes)
        saved = _Checkpoint(checkpoint, self._settings(), answers, processes)
        self.interrupted = False
        state = self._fit_variational(data, saved, note)
        sampling = self._sample(data, state, saved, note)

        # Back into the order of the ids, with the students of all processes.
        own = (np.arange(n + 1) % processes.size == processes.rank).astype(np.float32)[:, None]
        self.students = Gaussians(
            processes.sum(state.students.mean * own)[place],
            processes.sum(state.students.covariance * own[:, :, None])[place],
        )
        self.questions = state.questions
        self.ability_draws = np.empty((len(sampling.ability), n + 1, self.n_dimensions), np.float32)
        for i, ability in enumerate(sampling.ability):
            self.ability_draws[i] = processes.sum(ability * own)[place]
        self.question_draws = np.array(sampling.question, np.float32).reshape(
            -1, len(data.group), self.n_dimensions + 1
        )
        return self

    def predict_proba(self, students: IntArray, questions: IntArray) -> FloatArray:
        """Predict answers; unknown students and questions are allowed.

        Parameters
        ----------
        students, questions
            UserId and QuestionId of each pair, shape (pairs,).

        Returns
        -------
        array of float32
            Shape (pairs,): probability that the answer is right. Or, if options are predicted,
            shape (pairs, 4): probability of each option, rows sum to 1.
        """
        student = find_ids(self.student_ids, np.asarray(students))
        question = find_ids(self.question_ids, np.asarray(questions))
        if len(self.ability_draws):
            outcome: FloatArray = np.zeros(1, np.float32)
            for ability, drawn in zip(self.ability_draws, self.question_draws, strict=True):
                logit = [
                    item_response.logits(ability, drawn, student, self._virtual(question, stage))
                    for stage in range(self._n_stages)
                ]
                outcome = outcome + self._outcomes([item_response.sigmoid(x) for x in logit])
            outcome = outcome / np.float32(len(self.ability_draws))
        else:
            outcome = self._outcomes_of_fit(self.students, self.questions, student, question)
        if self.predicts == "is_correct":
            return np.ascontiguousarray(outcome[:, 0])
        probability = np.take_along_axis(outcome, self.stage_of_option[question], axis=1)
        probability[question == len(self.question_ids)] = self.option_shares
        return probability

    def save(self, path: Path) -> None:
        """Write the model to an .npz file; numbers and text only, nothing that could run."""
        _write_arrays(
            path,
            _KIND,
            {
                "settings": np.array(json.dumps(self._settings())),
                "history": np.array(self.history, np.float64).reshape(-1, 2),
                **{name: getattr(self, name) for name in _PLAIN_ARRAYS},
                "student_mean": self.students.mean,
                "student_covariance": self.students.covariance,
                "question_mean": self.questions.mean,
                "question_covariance": self.questions.covariance,
            },
        )

    @classmethod
    def load(cls, path: Path) -> "MatrixFactorization":
        """Read a model that `save` wrote.

        Raises
        ------
        InputError
            If the file is missing, damaged, of another kind, or its arrays do not fit together.
        """
        arrays = _read_arrays(path, _KIND)
        try:
            model = cls(**json.loads(str(arrays["settings"])))
            n, q, k = (
                len(arrays["student_ids"]) + 1,
                len(arrays["question_ids"]) + 1,
                model.n_dimensions,
            )
            virtual, draws = q * model._n_stages, len(arrays["ability_draws"])
            expected = {
                "student_mean": (n, k),
                "student_covariance": (n, k, k),
                "question_mean": (virtual, k + 1),
                "question_covariance": (virtual, k + 1, k + 1),
                "ability_draws": (draws, n, k),
                "question_draws": (draws, virtual, k + 1),
                "stage_of_option": (q, N_OPTIONS),
                "option_shares": (N_OPTIONS,),
            }
            for name, shape in expected.items():
                if arrays[name].shape != shape:
                    raise InputError(
                        f"{path}: array '{name}' has shape {arrays[name].shape}, expected {shape}"
                    )
        except KeyError as error:
            raise InputError(f"{path}: array {error} is missing, is the file whole?") from None
        except (TypeError, json.JSONDecodeError):
            raise InputError(f"{path}: the settings in it are not those of a model") from None
        for name in _PLAIN_ARRAYS:
            setattr(model, name, arrays[name])
        model.history = [(float(a), float(b)) for a, b in arrays["history"]]
        model.students = Gaussians(arrays["student_mean"], arrays["student_covariance"])
        model.questions = Gaussians(arrays["question_mean"], arrays["question_covariance"])
        return model

    # ---- From answers to the arrays of `item_response` ----------------------------------------

    @property
    def _n_stages(self) -> int:
        """How many right/wrong questions make up one question."""
        return 1 if self.predicts == "is_correct" else N_OPTIONS - 1

    def _virtual(self, question: IntArray, stage: int | IntArray) -> IntArray:
        return np.asarray(question + stage * np.int32(len(self.question_ids) + 1))

    def _outcomes_of_fit(
        self, students: Gaussians, questions: Gaussians, student: IntArray, question: IntArray
    ) -> FloatArray:
        """Probability that an answer ends at each stage, shape (pairs, stages + 1)."""
        moments = [
            item_response.logit_moments(
                students, questions, student, self._virtual(question, stage)
            )
            for stage in range(self._n_stages)
        ]
        return self._outcomes([item_response.probability(*m) for m in moments])

    def _outcomes(self, passes: list[FloatArray]) -> FloatArray:
        """Turn the probabilities to know the answer, or to pass, at each stage into outcomes."""
        known, *others = passes
        right = np.float32(self.guessing) + np.float32(1 - self.guessing) * known
        return _break_stick([right, *others])

    def _arrange(
        self, answers: Answers, student: IntArray, question: IntArray, processes: Processes
    ) -> "_Data":
        """Sort this process's answers by student, and set some aside to stop on."""
        n_questions = len(self.question_ids) + 1
        if self.predicts == "is_correct":
            self.stage_of_option = np.zeros((n_questions, N_OPTIONS), np.int8)
            self.option_shares = np.zeros(N_OPTIONS, np.float32)
            outcome = (answers.is_correct == 0).astype(np.int8)
        else:
            assert answers.option is not None and answers.correct_option is not None
            self.stage_of_option, self.option_shares = order_options(
                question, answers.option, answers.correct_option, n_questions
            )
            outcome = self.stage_of_option[question, answers.option - 1]
        is_held_out = np.zeros(len(answers), bool)
        is_held_out[hold_out_to_stop(len(answers), self.seed)] = True
        held_out_share = float(is_held_out.mean())
        if processes.size > 1:
            own = student % processes.size == processes.rank
            student, question, outcome = student[own], question[own], outcome[own]
            is_held_out = is_held_out[own]
        test = np.flatnonzero(is_held_out)
        test_answers = student[test], question[test], outcome[test]
        group = np.repeat(np.arange(self._n_stages, dtype=np.int8), n_questions)
        if self._n_stages > 1:
            # The rows that reach each stage, stage by stage.
            rows = [np.flatnonzero(outcome >= stage) for stage in range(self._n_stages)]
            stage = np.repeat(np.arange(self._n_stages, dtype=np.int8), [len(r) for r in rows])
            reached = np.concatenate(rows)
            student, is_held_out = student[reached], is_held_out[reached]
            question = self._virtual(question[reached], stage)
            outcome = outcome[reached] - stage
        observations, order = item_response.sort_by_student(
            student, question, outcome == 0, len(self.student_ids) + 1, len(group)
        )
        used = ~is_held_out[order] if len(test) else None
        return _Data(observations, used, held_out_share, group, *test_answers, processes)

    # ---- Fitting ------------------------------------------------------------------------------

    def _fit_variational(self, data: "_Data", saved: "_Checkpoint", note: Note) -> Fit:
        """Fit without the held-out answers until these say stop, then a little with all."""
        state, last_steps = saved.state, saved.last_steps
        self.history = list(saved.history)
        bar = _bar("fitting", self.max_steps, len(self.history), data.processes)
        steps = self._steps(data, state, data.used, len(self.history))
        try:
            while last_steps == 0 and not self._has_converged():
                state = next(steps)
                loss, accuracy = self._evaluate(data, state)
                self.history.append((loss, accuracy))
                bar.set_postfix(loss=f"{loss:.4f}", accuracy=f"{accuracy:.4f}", refresh=False)
                bar.update()
                note("step", step=len(self.history), loss=loss, accuracy=accuracy)
                saved.write(state, self.history)
            steps = self._steps(data, state, None, len(self.history) + last_steps)
            n_last_steps = _LAST_STEPS * (data.held_out_share >= _SHARE_FOR_LAST_STEPS)
            while last_steps < n_last_steps:
                state = next(steps)
                last_steps += 1
                saved.write(state, self.history, last_steps)
        except KeyboardInterrupt:
            if not self.history:
                raise
            self._note_interruption(f"step {len(self.history)}")
        bar.close()
        assert state is not None
        return state

    def _steps(
        self,
        data: "_Data",
        state: Fit | None,
        used: npt.NDArray[np.bool_] | None,
        first_step: int,
    ) -> Iterator[Fit]:
        return item_response.fit(
            replace(data.observations, used=used),
            self.n_dimensions,
            group=data.group,
            guessing=self._guessing_at(data.group),
            seed=self.seed,
            start=state,
            first_step=first_step,
            reduce=data.processes.sum,
        )

    def _guessing_at(self, stage: IntArray) -> FloatArray | float:
        """Give the guessing of questions at each stage; one number if there is only one."""
        if self._n_stages == 1:
            return self.guessing
        return np.where(stage == 0, np.float32(self.guessing), np.float32(0))

    def _has_converged(self) -> bool:
        if len(self.history) >= self.max_steps:
            return True
        if len(self.history) <= _PATIENCE:
            return False
        before, now = self.history[-1 - _PATIENCE][0], self.history[-1][0]
        return before - now < _LEAST_GAIN * before

    def _evaluate(self, data: "_Data", state: Fit) -> tuple[float, float]:
        """Log loss and accuracy on the held-out answers of all processes; NaN without any."""
        p = self._outcomes_of_fit(
            state.students, state.questions, data.test_student, data.test_question
        )
        chosen = p[np.arange(len(p)), data.test_outcome]
        n_right = (p.argmax(axis=1) == data.test_outcome).sum()
        sums = np.array([-np.log(np.maximum(chosen, 1e-7)).sum(), n_right, len(p)], np.float64)
        loss, right, n = data.processes.sum(sums)
        if not np.isfinite(state.questions.mean).all() or not np.isfinite(loss):
            raise FloatingPointError(
                f"matrix factorization, step {len(self.history) + 1}: the loss is not a number"
            )
        return (loss / n, right / n) if n else (float("nan"), float("nan"))

    def _sample(self, data: "_Data", state: Fit, saved: "_Checkpoint", note: Note) -> "_Sampling":
        """Draw from the posterior, beginning at the variational fit, with all answers."""
        so_far = saved.sampling or _Sampling(0, state, [], [])
        n_sweeps = _BURN_IN + _THINNING * self.n_samples if self.n_samples else 0
        if self.interrupted or so_far.sweeps >= n_sweeps:
            return so_far
        bar = _bar("sampling", n_sweeps, so_far.sweeps, data.processes)
        try:
            for draw in item_response.sample(
                data.observations,
                so_far.last,
                group=data.group,
                guessing=self._guessing_at(data.group),
                seed=self.seed,
                first_sweep=so_far.sweeps,
                rank=data.processes.rank,
                reduce=data.processes.sum,
            ):
                sweeps = so_far.sweeps + 1
                keep = sweeps > _BURN_IN and (sweeps - _BURN_IN) % _THINNING == 0
                so_far = _Sampling(
                    sweeps,
                    replace(
                        state,
                        students=replace(state.students, mean=draw.ability),
                        questions=replace(state.questions, mean=draw.question),
                        prior=draw.prior,
                    ),
                    so_far.ability + [draw.ability] * keep,
                    so_far.question + [draw.question.astype(np.float32)] * keep,
                )
                bar.update()
                note("sweep", sweep=sweeps, kept=len(so_far.ability))
                saved.write(state, self.history, _LAST_STEPS, so_far)
                if sweeps == n_sweeps:
                    break
        except KeyboardInterrupt:
            self._note_interruption(f"{len(so_far.ability)} samples")
        bar.close()
        return so_far

    def _note_interruption(self, reached: str) -> None:
        self.interrupted = True
        tqdm.write(f"interrupted: going on with the model after {reached}", file=sys.stderr)

    def _settings(self) -> dict[str, Any]:
        return {
            "predicts": self.predicts,
            "n_dimensions": self.n_dimensions,
            "n_samples": self.n_samples,
            "max_steps": self.max_steps,
            "guessing": self.guessing,
            "seed": self.seed,
        }


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the sample models: the arguments of `MatrixFactorization`, and files."""
    parser.add_argument(
        "--dimensions",
        type=int,
        metavar="K",
        default=DEFAULT_DIMENSIONS,
        help=f"latent dimensions; time grows with their square (default {DEFAULT_DIMENSIONS})",
    )
    parser.add_argument(
        "--samples",
        type=int,
        metavar="N",
        default=0,
        help="average over N draws from the posterior: more accurate, four passes over the "
        "answers each; 50 are plenty (default 0)",
    )
    parser.add_argument(
        "--max_steps",
        type=int,
        metavar="N",
        default=DEFAULT_MAX_STEPS,
        help=f"most passes of the fit; held-out answers stop it (default {DEFAULT_MAX_STEPS})",
    )
    parser.add_argument(
        "--guessing",
        type=float,
        metavar="P",
        help="chance to be right without knowing the answer (default 0.2; 0 for options)",
    )
    parser.add_argument(
        "--seed", type=cli.seed, metavar="N", default=0, help="another seed, another random start"
    )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE",
        help="write the unfinished fit to FILE, and go on from it if it is there",
    )
    parser.add_argument(
        "--model_file", type=Path, metavar="FILE", help="also save the model, as .npz"
    )
    run_log.add_log_flag(parser)


@dataclass(frozen=True)
class _Data:
    """Answers of this process as `item_response` needs them, and those held out.

    observations: all answers. used: False for those held out; None if there are none.
    held_out_share: share of those, over all processes. group: stage of each virtual question.
    test_…: the held-out answers. processes: who shares the work.
    """

    observations: Observations
    used: npt.NDArray[np.bool_] | None
    held_out_share: float
    group: IntArray
    test_student: IntArray
    test_question: IntArray
    test_outcome: IntArray
    processes: Processes


@dataclass(frozen=True)
class _Sampling:
    """Where sampling stands: sweeps done, the last draw as a fit, and the draws kept."""

    sweeps: int
    last: Fit
    ability: list[FloatArray]
    question: list[FloatArray]


class _Checkpoint:
    """A file with the state of an unfinished fit; each process has its own."""

    def __init__(
        self, path: Path | None, settings: dict[str, Any], answers: Answers, processes: Processes
    ) -> None:
        self.history: list[tuple[float, float]] = []
        self.state: Fit | None = None
        self.last_steps = 0
        self.sampling: _Sampling | None = None
        self._path = path
        self._written = time.monotonic()
        if path is None:
            return
        if processes.size > 1:
            self._path = path = path.with_name(f"{path.name}.{processes.rank}")
        identity = {
            "answers": len(answers),
            "checksum": checksum(answers),
            "process": f"{processes.rank} of {processes.size}",
        }
        self._identity = json.dumps(settings | identity)
        if path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        arrays = _read_arrays(path, _CHECKPOINT_KIND)
        if str(arrays["identity"]) != self._identity:
            raise InputError(
                f"{path}: is a checkpoint of another fit: it has {arrays['identity']}, expected "
                f"{self._identity}; remove it to start anew"
            )
        self.history = [(float(a), float(b)) for a, b in arrays["history"]]
        self.last_steps = int(arrays["last_steps"])
        self.state = _as_fit(arrays, "state")
        if "sweeps" in arrays:
            self.sampling = _Sampling(
                int(arrays["sweeps"]),
                _as_fit(arrays, "last"),
                list(arrays["ability"]),
                list(arrays["question"]),
            )

    def write(
        self,
        state: Fit,
        history: list[tuple[float, float]],
        last_steps: int = 0,
        sampling: _Sampling | None = None,
    ) -> None:
        """Write the state, unless that was done a moment ago."""
        if self._path is None or time.monotonic() - self._written < _CHECKPOINT_SECONDS:
            return
        arrays = {
            "identity": np.array(self._identity),
            "history": np.array(history, np.float64),
            "last_steps": np.array(last_steps),
            **_as_arrays(state, "state"),
        }
        if sampling is not None:
            arrays |= {"sweeps": np.array(sampling.sweeps), **_as_arrays(sampling.last, "last")}
            arrays |= {
                "ability": np.array(sampling.ability, np.float32),
                "question": np.array(sampling.question, np.float32),
            }
        _write_arrays(self._path, _CHECKPOINT_KIND, arrays)
        self._written = time.monotonic()


# The parts of a fit in a file.
_PARTS = ("students", "questions", "prior")


def _as_arrays(fit: Fit, name: str) -> Arrays:
    return {f"{name}_kind": fit.kind} | {
        f"{name}_{part}_{field}": getattr(getattr(fit, part), field)
        for part in _PARTS
        for field in ("mean", "covariance")
    }


def _as_fit(arrays: Arrays, name: str) -> Fit:
    students, questions, prior = (
        Gaussians(arrays[f"{name}_{part}_mean"], arrays[f"{name}_{part}_covariance"])
        for part in _PARTS
    )
    return Fit(students, questions, prior, arrays[f"{name}_kind"])


def _write_arrays(path: Path, kind: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    with atomic_write(path) as (file,):
        np.savez(file, allow_pickle=False, kind=np.array(kind), **arrays)


def _read_arrays(path: Path, kind: str) -> Arrays:
    """Read a file of arrays; without pickle, so that nothing in it can run."""
    require_file(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError, AttributeError, zipfile.BadZipFile):
        raise InputError(f"{path}: is not an .npz file of arrays, or is damaged") from None
    found = str(arrays.get("kind", "an unknown kind"))
    if found != kind:
        raise InputError(f"{path}: holds a model of the kind '{found}', expected '{kind}'")
    return arrays


def _break_stick(right: list[FloatArray]) -> FloatArray:
    """Probability that the stick breaks at each stage or not at all; (pairs, stages + 1)."""
    outcome = np.empty((len(right[0]), len(right) + 1), np.float32)
    left: FloatArray = np.ones(len(right[0]), np.float32)
    for stage, probability in enumerate(right):
        outcome[:, stage] = left * probability
        left = left * (1 - probability)
    outcome[:, -1] = left
    return outcome


def _bar(what: str, total: int, done: int, processes: Processes) -> "tqdm[Any]":
    return tqdm(desc=what, total=total, initial=done, disable=processes.rank > 0 or None)
