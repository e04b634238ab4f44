r"""Partial variational autoencoder: from any set of answers to a student's latent vector, and back.

A student has a latent vector z of k numbers, N(0, I) before any answer. The *encoder* reads the set
of answers that are known, however many, and gives the Gaussian posterior of z; the *decoder* gives
the probabilities of any answer from z. Both are trained together (Ma et al. 2019, "EDDI: Efficient
dynamic discovery of high-value information with partial VAE"; Wang et al. 2020, "Educational
question mining at scale", arXiv 2003.05980): of each student in a batch, all answers or a random
share of them are shown to the encoder, and

    loss = - sum of log p(answer | z) over all answers of the student + β KL(q(z | shown) ‖ N(0, I))

with z drawn from q, so that the encoder learns to predict the answers that it has not seen.

Encoder. The point-net-plus form sums h([x·e_q, e_q, b_q]) over the set, e_q an embedding and b_q a
bias of question q, and maps the sum to mean and variance by a network g. An answer x takes few
values, so h is nothing but one row of a table of questions × categories, and a batch of students is
one `EmbeddingBag` sum over ragged sets: nothing of the size students × questions is ever made.

Where this differs from the papers:

* The table is learned itself, instead of through e_q and the network h. Every row holds k scores s
  and k precisions t > 0: shared parts (a linear map of the surprise 1[x] - share of x, and a
  constant per category) plus a part of its own that is shrunk towards 0.
* g is Bayes' rule for Gaussian evidence, not a network: variance = 1 / (1 + Σt) and mean =
  variance·Σs. The empty set gives the prior exactly, more answers give less variance, and a further
  answer only adds its row. On real answers it had a lower log loss than a network g.
* The decoder is linear in z with loadings for each question (a low-rank last layer), evaluated
  only at the entries of a batch; hidden layers before it did not score higher. Categories are the
  right answer, then the wrong options from the most to the least popular, with logits relative to
  the right one.
* Loadings, intercepts and rows of the table are shrunk by Gaussian priors whose weight does not
  grow with the number of answers, so that the same settings serve 50,000 and 15 million answers.
"""

import argparse
import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

from common import cli, run_log
from common.answers import Answers, find_ids, number_ids
from common.errors import InputError
from common.io import atomic_write, require_file
from common.models.distributed import Processes
from common.models.preparation import (
    N_OPTIONS,
    checksum,
    hold_out_to_stop,
    order_options,
    require_categories,
)
from common.run_log import Note, no_note

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.integer[Any]]

DEFAULT_DIMENSIONS, DEFAULT_LEARNING_RATE = 8, 0.02
_KIND, _CHECKPOINT_KIND = "partial VAE", "partial VAE checkpoint"
# Precisions of the Gaussian priors of what each question has of its own: loadings and intercepts
# around their means, rows of the encoder's table around 0. Chosen on held-out training answers.
_LOADING_PRECISION = {"is_correct": 40.0, "option": 60.0}
_INTERCEPT_PRECISION, _EVIDENCE_PRECISION = 2.0, 30.0
# Share of the students in a batch who show the encoder all their answers. If all showed a random
# subset, the decoder would learn loadings for latent vectors that are less certain than they are
# when it predicts.
_SHOW_ALL = 0.5
# Answers at the overall shares that are added to those of a question for its shares.
_PSEUDO_ANSWERS = 4.0
# Students per step: 1 % of all, within these bounds. At least so many steps in all, and so many
# passes over the answers.
_SMALLEST_BATCH, _LARGEST_BATCH = 128, 1024
_LEAST_STEPS, _LEAST_EPOCHS = 420, 16
# The learning rate rises over the first steps and falls along a cosine to this share of itself.
_WARM_UP_STEPS, _LAST_RATE = 15, 0.02
# Epochs without a better held-out loss before training stops.
_PATIENCE = 10
# Students, or answers, that are handled at once where no gradient is needed.
_CHUNK_STUDENTS, _CHUNK_ANSWERS = 4096, 1 << 19
# Below so many answers the steps are so short that threads would mostly wait for each other.
_THREADED_ANSWERS = 2_000_000


class PartialVAE:
    """Partial variational autoencoder for right/wrong or for the chosen option.

    Parameters
    ----------
    predicts
        "is_correct" (task 1) or "option" (task 2).
    n_dimensions
        Length k of the latent vector.
    max_epochs
        Most passes over the answers; 0 chooses by the number of students (16 for the full official
        data, more for few students). The learning rate falls over this time; training stops earlier
        when held-out answers say so.
    batch_size
        Students per step; 0 chooses 1 % of all, from 128 to 1024.
    learning_rate
        Largest step size of Adam.
    kl_weight
        β of the loss.
    seed
        The same seed, answers and number of processes give the same model, bit by bit on a CPU.
    device
        "cpu", "cuda" and so on; None takes a CUDA device if there is one.

    Attributes
    ----------
    student_ids, question_ids : array of int, shapes (students,) and (questions,)
        UserIds and QuestionIds of the training answers, in increasing order.
    student_mean, student_variance : array of float32, shape (students, k)
        Posterior of every student given all training answers.
    history : list of (float, float, float)
        After each epoch: training loss per answer, log loss and accuracy on held-out answers (NaN
        if there are too few answers to hold any out).
    interrupted : bool
        Whether Control-C ended the fit early.
    """

    def __init__(
        self,
        predicts: Literal["is_correct", "option"] = "is_correct",
        *,
        n_dimensions: int = DEFAULT_DIMENSIONS,
        max_epochs: int = 0,
        batch_size: int = 0,
        learning_rate: float = DEFAULT_LEARNING_RATE,
        kl_weight: float = 1.0,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        if predicts not in ("is_correct", "option"):
            raise InputError(f"predicts is {predicts!r}, expected 'is_correct' or 'option'")
        for name, value, least in (
            ("n_dimensions", n_dimensions, 1),
            ("max_epochs", max_epochs, 0),
            ("batch_size", batch_size, 0),
            ("kl_weight", kl_weight, 0),
            ("seed", seed, 0),
        ):
            if not value >= least:
                raise InputError(f"{name} is {value}, expected at least {least}")
        if not learning_rate > 0:
            raise InputError(f"learning_rate is {learning_rate}, expected more than 0")
        self.predicts = predicts
        self.n_dimensions = n_dimensions
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.kl_weight = kl_weight
        self.seed = seed
        self.device = _choose_device(device)
        self.history: list[tuple[float, float, float]] = []
        self.interrupted = False

    # ---- Fitting ------------------------------------------------------------------------------

    def fit(
        self,
        answers: Answers,
        *,
        checkpoint: Path | None = None,
        processes: Processes | None = None,
        note: Note = no_note,
    ) -> "PartialVAE":
        """Learn from answers.

        Control-C ends the fit early and keeps the best model so far, once there is one.

        Parameters
        ----------
        answers
            Training answers, with both option columns if options are to be predicted.
        checkpoint
            File to write to after every epoch, and to go on from if it is there; going on gives the
            same model as a run in one go.
        processes
            The processes that share the work, each with its own students; every one is given all
            answers. Default: this one alone.
        note
            Called after every epoch, ``note("epoch", epoch=…, loss=…, held_out_loss=…,
            accuracy=…)``, as in `history`.

        Raises
        ------
        InputError
            If an answer is none of the categories, the checkpoint is of another fit, or the loss is
            no longer a number.
        """
        processes = processes or Processes()
        require_categories(answers, self.predicts)
        self.student_ids, student = number_ids(answers.student)
        self.question_ids, question = number_ids(answers.question)
        # The last question is without answers and stands for every unknown one.
        n_questions = len(self.question_ids) + 1
        if self.predicts == "is_correct":
            self.rank_of_option = np.zeros((0, N_OPTIONS), np.int8)
            self.option_shares = np.zeros(0, np.float32)
            category = 1 - answers.is_correct
        else:
            assert answers.option is not None and answers.correct_option is not None
            self.rank_of_option, self.option_shares = order_options(
                question, answers.option, answers.correct_option, n_questions
            )
            category = self.rank_of_option[question, answers.option - 1]
        held_out = np.zeros(len(answers), bool)
        held_out[hold_out_to_stop(len(answers), self.seed)] = True
        shares = _category_shares(
            question[~held_out], category[~held_out], n_questions, self._n_categories
        )
        self._network = _Network(shares, self.n_dimensions, self.seed).to(self.device)
        sets = _Sets.of(student, question, category, held_out, self.device)

        identity = self._settings() | {"checksum": checksum(answers), "processes": processes.size}
        with _few_threads(len(answers)):
            self._train(sets, _Checkpoint(checkpoint, identity, processes), processes, note)
            mean, variance = self._encode_all(sets, range(sets.n_students), held_out=True)
        self.student_mean, self.student_variance = mean.cpu().numpy(), variance.cpu().numpy()
        return self

    def _train(self, sets: "_Sets", saved: "_Checkpoint", processes: Processes, note: Note) -> None:
        """Train until held-out answers say stop; keep the parameters that predict them best."""
        network = self._network
        own = range(processes.rank, sets.n_students, processes.size)
        batch_size = self.batch_size or min(
            max(_SMALLEST_BATCH, sets.n_students // 100), _LARGEST_BATCH
        )
        # No process may run out of students before the others do.
        most_steps = max(1, sets.n_students // processes.size)
        steps_per_epoch = min(math.ceil(sets.n_students / batch_size), most_steps)
        n_epochs = self.max_epochs or max(_LEAST_EPOCHS, math.ceil(_LEAST_STEPS / steps_per_epoch))
        n_steps = n_epochs * steps_per_epoch
        # Fused: one pass over the parameters per step.
        optimiser = torch.optim.Adam(network.parameters(), betas=(0.9, 0.99), fused=True)
        best, best_epoch = _copy(network), 0
        self.history, self.interrupted = [], False
        if saved.state is not None:
            network.load_state_dict(saved.state["network"])
            optimiser.load_state_dict(saved.state["optimiser"])
            best, best_epoch = saved.state["best"], saved.state["best_epoch"]
            self.history = [(a, b, c) for a, b, c in saved.state["history"]]
        bar = tqdm(
            desc="training",
            total=n_steps,
            initial=len(self.history) * steps_per_epoch,
            unit="step",
            disable=processes.rank > 0 or None,
        )
        try:
            while len(self.history) < n_epochs and len(self.history) - best_epoch < _PATIENCE:
                epoch = len(self.history) + 1
                # A stream for every epoch and process: going on from a checkpoint changes nothing.
                generator = _generator(self.device, self.seed, epoch, processes.rank)
                order = torch.randperm(len(own), generator=generator, device=self.device)
                students = order * processes.size + processes.rank
                losses = []
                for step, batch in enumerate(students.tensor_split(steps_per_epoch)):
                    for group in optimiser.param_groups:
                        done = (epoch - 1) * steps_per_epoch + step
                        group["lr"] = self.learning_rate * _rate(done, n_steps)
                    optimiser.zero_grad()
                    # The share of this batch in the loss per answer, whose mean over the steps and
                    # sum over the processes is the loss.
                    loss = self._loss(sets.batch(batch), generator) * (
                        steps_per_epoch / sets.n_answers
                    ) + network.shrinkage() / (sets.n_answers * processes.size)
                    loss.backward()  # type: ignore[no-untyped-call]
                    losses.append(_sum_up(network, loss, processes))
                    if not math.isfinite(losses[-1]):
                        raise InputError(
                            f"the loss became {losses[-1]} in epoch {epoch}, step {step + 1}: "
                            f"learning_rate is {self.learning_rate}, expected a smaller one"
                        )
                    optimiser.step()
                    bar.update()
                held_out_loss, accuracy = self._evaluate(sets, own, processes)
                self.history.append((sum(losses) / len(losses), held_out_loss, accuracy))
                bar.set_postfix_str(
                    f"epoch {epoch} loss {self.history[-1][0]:.4f}, held out {held_out_loss:.4f}, "
                    f"accuracy {accuracy:.4f}"
                )
                note(
                    "epoch",
                    epoch=epoch,
                    loss=self.history[-1][0],
                    held_out_loss=held_out_loss,
                    accuracy=accuracy,
                )
                # Without held-out answers the loss is NaN, and the last epoch counts as the best.
                if best_epoch == 0 or not held_out_loss >= self.history[best_epoch - 1][1]:
                    best, best_epoch = _copy(network), epoch
                saved.write(
                    {
                        "network": network.state_dict(),
                        "optimiser": optimiser.state_dict(),
                        "best": best,
                        "best_epoch": best_epoch,
                        "history": self.history,
                    }
                )
        except KeyboardInterrupt:
            if best_epoch == 0:
                raise
            self.interrupted = True
            tqdm.write(f"interrupted: going on with epoch {best_epoch}", file=sys.stderr)
        bar.close()
        network.load_state_dict(best)

    def _loss(self, batch: "_Batch", generator: torch.Generator) -> Tensor:
        """Negative evidence lower bound of a batch, summed over its students."""
        n_students = len(batch.count)
        random = _Random(generator, self.device)
        share_shown = random.uniform(n_students)
        share_shown[random.uniform(n_students) < _SHOW_ALL] = 1
        shown = random.uniform(len(batch.bag)) < share_shown.index_select(0, batch.bag)
        mean, variance = self._network.encode(batch.where(shown & ~batch.held_out), n_students)
        z = mean + variance.sqrt() * random.normal(*mean.shape)
        logits = self._network.logits(z, batch.question, batch.bag)
        reconstruction = (_negative_log(logits, batch.category) * ~batch.held_out).sum()
        prior_mean, prior_variance = torch.zeros_like(mean), torch.ones_like(variance)
        divergence = gaussian_kl(mean, variance, prior_mean, prior_variance).sum()
        return reconstruction + self.kl_weight * divergence

    @torch.no_grad()
    def _evaluate(
        self, sets: "_Sets", students: range, processes: Processes
    ) -> tuple[float, float]:
        """Log loss and accuracy on the held-out answers of all processes; NaN without any."""
        sums = np.zeros(3)
        if sets.n_held_out:
            mean, _ = self._encode_all(sets, students, held_out=False)
            rows = sets.held_out_rows(students)
            logits = self._network.logits(mean, rows.question, rows.bag)
            sums[0] = float(_negative_log(logits, rows.category).double().sum())
            right = _probabilities(logits).argmax(1) == rows.category
            sums[1:] = int(right.sum()), len(right)
        loss, n_right, n = processes.sum(sums).tolist()
        return (loss / n, n_right / n) if n else (math.nan, math.nan)

    @torch.no_grad()
    def _encode_all(
        self, sets: "_Sets", students: range, *, held_out: bool
    ) -> tuple[Tensor, Tensor]:
        """Posterior of many students, given their answers with or without those held out."""
        means, variances = [], []
        for first in range(0, len(students), _CHUNK_STUDENTS):
            chunk = students[first : first + _CHUNK_STUDENTS]
            batch = sets.batch(torch.as_tensor(chunk, device=self.device))
            known = batch if held_out else batch.where(~batch.held_out)
            mean, variance = self._network.encode(known, len(chunk))
            means.append(mean)
            variances.append(variance)
        return torch.cat(means), torch.cat(variances)

    # ---- Predicting ---------------------------------------------------------------------------

    @torch.no_grad()
    def predict_proba(
        self, students: IntArray, questions: IntArray, *, n_samples: int = 0
    ) -> FloatArray:
        """Predict answers; unknown students and questions are allowed.

        A student without answers is predicted from the prior, so gets the question's rate; a
        question without answers is one of average easiness, or gets the overall shares of the
        options.

        Parameters
        ----------
        students, questions
            UserId and QuestionId of each pair, shape (pairs,).
        n_samples
            0 predicts with the posterior mean of the student. More averages the probabilities over
            so many draws from the posterior, which takes that many times as long. It hardly changes
            which answer is the most probable, but the probabilities of students with few answers
            are less extreme.

        Returns
        -------
        array of float32
            Shape (pairs,): probability that the answer is right. Or, if options are predicted,
            shape (pairs, 4): probability of each option, rows sum to 1.
        """
        if n_samples < 0:
            raise InputError(f"n_samples is {n_samples}, expected at least 0")
        student = find_ids(self.student_ids, np.asarray(students))
        question = find_ids(self.question_ids, np.asarray(questions))
        # The last row is the prior, for students without answers.
        mean = functional.pad(self._tensor(self.student_mean), (0, 0, 0, 1))
        variance = functional.pad(self._tensor(self.student_variance), (0, 0, 0, 1), value=1)
        random = _Random(_generator(self.device, self.seed), self.device)
        total = np.zeros((len(question), self._n_categories), np.float32)
        for _ in range(max(n_samples, 1)):
            z = mean + variance.sqrt() * random.normal(*mean.shape) if n_samples else mean
            for first in range(0, len(question), _CHUNK_ANSWERS):
                rows = slice(first, first + _CHUNK_ANSWERS)
                logits = self._network.logits(
                    z, self._tensor(question[rows]), self._tensor(student[rows])
                )
                total[rows] += _probabilities(logits).cpu().numpy()
        return self._by_answer(total / np.float32(max(n_samples, 1)), question)

    @torch.no_grad()
    def decode(self, latent: FloatArray) -> FloatArray:
        """Predict all known questions from latent vectors.

        Parameters
        ----------
        latent
            Latent vectors, posterior means for instance, shape (n, k).

        Returns
        -------
        array of float32
            Shape (n, questions), questions in the order of `question_ids`: probability of right.
            Or, if options are predicted, shape (n, questions, 4): probability of each option.
        """
        logits = self._network.all_logits(self._tensor(np.asarray(latent, np.float32)))
        question = np.arange(len(self.question_ids))
        return self._by_answer(
            _probabilities(logits)[:, :-1].cpu().numpy(),
            np.broadcast_to(question, logits[:, :-1, 0].shape),
        )

    @torch.no_grad()
    def evidence(self) -> tuple[FloatArray, FloatArray]:
        """Give what each answer to each known question tells about the latent vector.

        The posterior of a set of answers has the variance 1 / (1 + sum of their precisions) and the
        mean variance × (sum of their scores), for each of the k dimensions by itself; so a further
        answer only adds its row.

        Returns
        -------
        score, precision : array of float32, shape (questions, answers, k)
            Questions in the order of `question_ids`. Answers: 0 wrong and 1 right; or, if options
            are predicted, option 1 to 4 at the places 0 to 3.
        """
        score, precision = (part.cpu().numpy()[:-1] for part in self._network.evidence())
        if self.predicts == "is_correct":
            return score[:, ::-1].copy(), precision[:, ::-1].copy()
        rank = self.rank_of_option[:-1, :, None].astype(np.int64)
        return np.take_along_axis(score, rank, 1), np.take_along_axis(precision, rank, 1)

    def posterior(
        self, bag: IntArray, question: IntArray, answer: IntArray, n_bags: int
    ) -> tuple[FloatArray, FloatArray]:
        """Give the posterior of the latent vector for any sets of answers.

        Parameters
        ----------
        bag
            Number of the set that each answer belongs to, from 0 to n_bags - 1, shape (answers,),
            in any order.
        question
            QuestionId of each answer; an answer to an unknown question tells nothing.
        answer
            IsCorrect (0 or 1) or AnswerValue (1 to 4) of each answer, whichever is predicted.
        n_bags
            How many sets there are; one without answers gets the prior, N(0, I).

        Returns
        -------
        mean, variance : array of float32, shape (n_bags, k)
        """
        bag, question, answer = (np.asarray(column) for column in (bag, question, answer))
        low, high = (0, 1) if self.predicts == "is_correct" else (1, N_OPTIONS)
        for name, values, least, most in (
            ("bag", bag, 0, n_bags - 1),
            ("answer", answer, low, high),
        ):
            if len(values) and not least <= values.min() <= values.max() <= most:
                raise InputError(
                    f"{name} goes from {values.min()} to {values.max()}, expected {least} to {most}"
                )
        number = find_ids(self.question_ids, question)
        known = number < len(self.question_ids)
        sums = [np.zeros((n_bags, self.n_dimensions), np.float32) for _ in range(2)]
        for total, part in zip(sums, self.evidence(), strict=True):
            np.add.at(total, bag[known], part[number[known], answer[known] - low])
        variance = np.asarray(1 / (1 + sums[1]), np.float32)
        return sums[0] * variance, variance

    @property
    def _n_categories(self) -> int:
        return 2 if self.predicts == "is_correct" else N_OPTIONS

    def _tensor(self, array: npt.NDArray[Any]) -> Tensor:
        return torch.as_tensor(array, device=self.device)

    def _by_answer(self, probability: FloatArray, question: IntArray) -> FloatArray:
        """From categories, last axis, to probability of right or of options 1 to 4."""
        if self.predicts == "is_correct":
            return np.ascontiguousarray(probability[..., 0])
        probability = np.take_along_axis(
            probability, self.rank_of_option[question].astype(np.int64), -1
        )
        probability[question == len(self.question_ids)] = self.option_shares
        return probability

    # ---- Files --------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        """Arguments that make this model again; the device is not one of the model's."""
        return {
            "predicts": self.predicts,
            "n_dimensions": self.n_dimensions,
            "max_epochs": self.max_epochs,
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "kl_weight": self.kl_weight,
            "seed": self.seed,
        }

    def save(self, path: Path) -> None:
        """Write the model to a file that PyTorch reads with weights_only=True."""
        arrays = {name: torch.from_numpy(getattr(self, name)) for name in _SAVED_ARRAYS}
        network = {name: value.cpu() for name, value in self._network.state_dict().items()}
        state = {"settings": self._settings(), "history": self.history}
        _write(path, _KIND, {**state, "arrays": arrays, "network": network})

    @classmethod
    def load(cls, path: Path, *, device: str | None = None) -> "PartialVAE":
        """Read a model that `save` wrote; nothing in the file is run.

        Raises
        ------
        InputError
            If the file is missing, damaged, of another kind, or its arrays do not fit together.
        """
        state = _read(path, _KIND)
        try:
            model = cls(**state["settings"], device=device)
            arrays, values = state["arrays"], state["network"]
            n_students, n_questions = len(arrays["student_ids"]), len(arrays["question_ids"]) + 1
            model._network = _Network(
                np.ones((n_questions, model._n_categories), np.float32), model.n_dimensions, 0
            )
            expected = {name: tuple(v.shape) for name, v in model._network.state_dict().items()}
            expected |= {
                "student_mean": (n_students, model.n_dimensions),
                "student_variance": (n_students, model.n_dimensions),
            }
            if model.predicts == "option":
                expected["rank_of_option"] = (n_questions, N_OPTIONS)
                expected["option_shares"] = (N_OPTIONS,)
            for name, shape in expected.items():
                found = tuple((values if name in values else arrays)[name].shape)
                if found != shape:
                    raise InputError(f"{path}: '{name}' has the shape {found}, expected {shape}")
            for name in _SAVED_ARRAYS:
                setattr(model, name, arrays[name].numpy())
            model.history = [(a, b, c) for a, b, c in state["history"]]
        except KeyError as error:
            raise InputError(f"{path}: {error} is missing, is the file whole?") from None
        except (TypeError, AttributeError):
            raise InputError(f"{path}: what is in it is not what a model has") from None
        model._network.load_state_dict(values)
        model._network.to(model.device)
        return model


_SAVED_ARRAYS = (
    "student_ids",
    "question_ids",
    "student_mean",
    "student_variance",
    "rank_of_option",
    "option_shares",
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the sample models: the arguments of `PartialVAE`, and files."""

    def add(name: str, kind: Callable[[str], Any], default: Any, metavar: str, text: str) -> None:
        parser.add_argument(name, type=kind, default=default, metavar=metavar, help=text)

    add(
        "--dimensions",
        int,
        DEFAULT_DIMENSIONS,
        "K",
        f"latent vector (default {DEFAULT_DIMENSIONS})",
    )
    add("--max_epochs", int, 0, "N", "most passes over the answers (default: by their number)")
    add("--batch_size", int, 0, "N", "students per step (default: 1 %% of all, 128 to 1024)")
    add("--learning_rate", float, DEFAULT_LEARNING_RATE, "RATE", f"default {DEFAULT_LEARNING_RATE}")
    add("--kl_weight", float, 1.0, "BETA", "weight of the divergence in the loss (default 1)")
    add("--samples", int, 0, "N", "predict with N draws, N times as long (default 0, the mean)")
    add("--seed", cli.seed, 0, "N", "another seed, another random start")
    add("--device", str, None, "NAME", "cpu, cuda … (default: a CUDA device if there is one)")
    add("--checkpoint", Path, None, "FILE", "write to FILE after every epoch; go on from it")
    add("--model_file", Path, None, "FILE", "also save the model, as .pt")
    run_log.add_log_flag(parser)


def gaussian_kl(
    mean: Tensor, variance: Tensor, other_mean: Tensor, other_variance: Tensor
) -> Tensor:
    """Kullback-Leibler divergence KL(p ‖ q) of Gaussians with independent dimensions.

    Parameters
    ----------
    mean, variance
        Of p, shape (…, k); variances are positive.
    other_mean, other_variance
        Of q, the same shape.

    Returns
    -------
    Tensor, shape (…,)
        In nats, at least 0.
    """
    ratio = variance / other_variance
    distance = (mean - other_mean).square() / other_variance
    return 0.5 * (ratio + distance - 1 - ratio.log()).sum(-1)


class _Network(nn.Module):
    """The parameters: a table for the encoder, loadings and intercepts for the decoder.

    Category 0 is the right answer. There is one logit, that of right, for right/wrong; or one for
    each of the four options. Whatever a question has of its own is shrunk towards a shared part.
    """

    share: Tensor

    def __init__(self, shares: FloatArray, n_dimensions: int, seed: int) -> None:
        super().__init__()
        n_questions, self.n_categories = shares.shape
        self.n_logits = 1 if self.n_categories == 2 else self.n_categories
        generator = torch.Generator().manual_seed(seed)

        def small(*shape: int) -> nn.Parameter:
            return nn.Parameter(0.1 * torch.randn(shape, generator=generator))

        share = torch.as_tensor(shares, dtype=torch.float32)
        log = share.log()
        start = log[:, :1] - log[:, 1:] if self.n_logits == 1 else log - log.mean(1, keepdim=True)
        self.register_buffer("share", share)
        self.intercept = nn.Parameter(start)
        self.mean_intercept = nn.Parameter(start[-1].clone())
        mean_loading = torch.zeros(self.n_logits, n_dimensions)
        # Students who are good are so at most questions: the first dimension starts as ability.
        mean_loading[0, 0] = 1
        self.mean_loading = nn.Parameter(mean_loading)
        self.loading_per_intercept = nn.Parameter(torch.zeros(self.n_logits, n_dimensions))
        self.loading = small(n_questions, self.n_logits, n_dimensions)
        self.surprise_score = small(self.n_categories, n_dimensions)
        # The last question, which stands for unknown ones, stays as it starts: like all together.
        with torch.no_grad():
            self.loading[-1] = 0
        # Twice k columns: scores, then precisions before the softplus, which start at 0.13.
        start_evidence = torch.zeros(self.n_categories, 2 * n_dimensions)
        start_evidence[:, n_dimensions:] = -2
        self.mean_evidence = nn.Parameter(start_evidence)
        self.own_evidence = nn.Parameter(
            torch.zeros(n_questions, self.n_categories, 2 * n_dimensions)
        )

    def evidence(self) -> tuple[Tensor, Tensor]:
        """Scores and precisions of every answer, each of shape (questions, categories, k)."""
        score, precision = (self.mean_evidence + self.own_evidence).chunk(2, dim=-1)
        # 1[x] - share, times the matrix of scores, without the identity matrix.
        surprise = self.surprise_score - (self.share @ self.surprise_score)[:, None]
        return score + surprise, functional.softplus(precision)

    def encode(self, known: "_Batch", n_students: int) -> tuple[Tensor, Tensor]:
        """Mean and variance of the students' latent vectors, each of shape (n_students, k)."""
        table = torch.cat(self.evidence(), dim=-1).flatten(0, 1)
        start = known.count.cumsum(0) - known.count
        row = known.question * self.n_categories + known.category
        sums = functional.embedding_bag(row, table, start.to(row.dtype), mode="sum")
        score, precision = sums.chunk(2, dim=-1)
        variance = 1 / (1 + precision)
        return score * variance, variance

    def logits(self, z: Tensor, question: Tensor, student: Tensor) -> Tensor:
        """Logits of entries only, shape (entries, logits); `student` is the row of z of each."""
        loading = self.loadings().index_select(0, question)
        product = (loading * z.index_select(0, student)[:, None]).sum(-1)
        return self.intercept.index_select(0, question) + product

    def all_logits(self, z: Tensor) -> Tensor:
        """Logits of every question, shape (n, questions, logits)."""
        return self.intercept + torch.einsum("nk,qlk->nql", z, self.loadings())

    def loadings(self) -> Tensor:
        """Slopes of the logits along z, shape (questions, logits, k).

        Easy and hard questions differ in how well they tell abilities apart, so the shared part is
        a line in the intercept: with 32 answers per question (course subset of task_1/README.md)
        that raised the accuracy in cross-validation from 0.7088 to 0.7105.
        """
        easier = (self.intercept - self.mean_intercept)[:, :, None]
        shared = self.mean_loading + easier * self.loading_per_intercept
        return shared + self.loading

    def shrinkage(self) -> Tensor:
        """Negative log density of the priors, up to a constant."""
        loading_precision = _LOADING_PRECISION["is_correct" if self.n_logits == 1 else "option"]
        return 0.5 * (
            loading_precision * self.loading.square().sum()
            + _INTERCEPT_PRECISION * (self.intercept[:-1] - self.mean_intercept).square().sum()
            + _EVIDENCE_PRECISION * self.own_evidence.square().sum()
        )


@dataclass(frozen=True)
class _Batch:
    """Answers of some students, sorted by student.

    question, category, held_out: of each answer. bag: place of its student among these students.
    count: number of answers of each student.
    """

    question: Tensor
    category: Tensor
    held_out: Tensor
    bag: Tensor
    count: Tensor

    def where(self, chosen: Tensor) -> "_Batch":
        """Give the chosen answers of the same students."""
        row = chosen.nonzero()[:, 0]
        bag = self.bag.index_select(0, row)
        return _Batch(
            self.question.index_select(0, row),
            self.category.index_select(0, row),
            self.held_out.index_select(0, row),
            bag,
            torch.bincount(bag, minlength=len(self.count)),
        )


@dataclass(frozen=True)
class _Sets:
    """All answers, sorted by student: those of student i lie from start[i] to start[i + 1].

    n_held_out: how many answers are held out. n_answers: how many are not.
    """

    start: Tensor
    question: Tensor
    category: Tensor
    held_out: Tensor
    n_answers: int
    n_held_out: int

    @classmethod
    def of(
        cls,
        student: IntArray,
        question: IntArray,
        category: IntArray,
        held_out: npt.NDArray[np.bool_],
        device: torch.device,
    ) -> "_Sets":
        """Sort answers by student; students are numbered from 0, each has answers."""
        # A sparse matrix with one answer in each column: its conversion is a stable counting sort,
        # several times faster than argsort.
        n = len(student)
        one = scipy.sparse.csc_array((np.ones(n, bool), student, np.arange(n + 1)))
        by_student = one.tocsr()
        order = by_student.indices
        n_held_out = int(held_out.sum())
        return cls(
            torch.as_tensor(by_student.indptr.astype(np.int64), device=device),
            torch.as_tensor(question[order].astype(np.int32), device=device),
            torch.as_tensor(category[order].astype(np.int8), device=device),
            torch.as_tensor(held_out[order], device=device),
            n_answers=n - n_held_out,
            n_held_out=n_held_out,
        )

    @property
    def n_students(self) -> int:
        return len(self.start) - 1

    def batch(self, students: Tensor) -> _Batch:
        """Collect all answers of some students, held out or not."""
        first = self.start.index_select(0, students)
        count = self.start.index_select(0, students + 1) - first
        place = torch.arange(len(students), device=students.device)
        bag = torch.repeat_interleave(place, count)
        # Row of each answer: first row of its student, and how many of his come before it.
        shift = first - (count.cumsum(0) - count)
        row = torch.arange(len(bag), device=bag.device) + shift.index_select(0, bag)
        return _Batch(
            self.question.index_select(0, row),
            self.category.index_select(0, row).int(),
            self.held_out.index_select(0, row),
            bag,
            count,
        )

    def held_out_rows(self, students: range) -> _Batch:
        """Collect the held-out answers of some students."""
        row = self.held_out.nonzero()[:, 0]
        student = torch.searchsorted(self.start, row, right=True) - 1
        own = student % students.step == students.start
        row, bag = row[own], student[own] // students.step
        return _Batch(
            self.question[row],
            self.category[row].int(),
            self.held_out[row],
            bag,
            torch.bincount(bag, minlength=len(students)),
        )


@dataclass(frozen=True)
class _Random:
    """Random numbers of one stream on one device."""

    generator: torch.Generator
    device: torch.device

    def uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.generator, device=self.device)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator, device=self.device)


class _Checkpoint:
    """A file with the state of an unfinished training; the first process alone writes it."""

    def __init__(self, path: Path | None, identity: dict[str, Any], processes: Processes) -> None:
        self._path = path if processes.rank == 0 else None
        self._identity = identity
        self.state: dict[str, Any] | None = None
        if path is not None and path.exists():
            state = _read(path, _CHECKPOINT_KIND)
            for name, value in identity.items():
                found = state.get("identity", {}).get(name)
                if found != value:
                    raise InputError(
                        f"{path}: is a checkpoint of another fit: its {name} is {found}, expected "
                        f"{value}; remove it to start anew"
                    )
            self.state = state

    def write(self, state: dict[str, Any]) -> None:
        if self._path is not None:
            _write(self._path, _CHECKPOINT_KIND, {"identity": self._identity, **state})


def _write(path: Path, kind: str, state: dict[str, Any]) -> None:
    with atomic_write(path) as (file,):
        torch.save({"kind": kind, **state}, file)


def _read(path: Path, kind: str) -> dict[str, Any]:
    """Read a file of tensors, numbers and texts; anything else in it is refused, not run."""
    require_file(path)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # Bytes that are no such file fail in any way, an IndexError among them.
        raise InputError(f"{path}: is not a file of tensors, or is damaged") from None
    found = state.get("kind", "an unknown kind") if isinstance(state, dict) else "an unknown kind"
    if found != kind:
        raise InputError(f"{path}: holds a model of the kind '{found}', expected '{kind}'")
    return dict(state)


@contextlib.contextmanager
def _few_threads(n_answers: int) -> Iterator[None]:
    """Let PyTorch use one thread where there are few answers."""
    n_threads = torch.get_num_threads()
    if n_answers < _THREADED_ANSWERS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


def _choose_device(name: str | None) -> torch.device:
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise InputError(f"device is {name!r}, which this machine does not have") from None
    return device


def _generator(device: torch.device, *key: int) -> torch.Generator:
    """Make a stream of random numbers of its own for every key."""
    seed = int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> np.uint64(1))
    return torch.Generator(device).manual_seed(seed)


def _category_shares(
    question: IntArray, category: IntArray, n_questions: int, n_categories: int
) -> FloatArray:
    """Shares of the categories for each question, shrunk towards the overall shares."""
    cells = question * np.int32(n_categories) + category
    count = np.bincount(cells, minlength=n_questions * n_categories).reshape(n_questions, -1)
    # One answer of every category more, so that no share is 0.
    overall = (count.sum(0) + 1) / (count.sum() + n_categories)
    shares = (count + _PSEUDO_ANSWERS * overall) / (count.sum(1, keepdims=True) + _PSEUDO_ANSWERS)
    return np.asarray(shares, np.float32)


def _rate(step: int, n_steps: int) -> float:
    """Share of the largest learning rate to use in a step."""
    cosine = 0.5 + 0.5 * math.cos(math.pi * step / n_steps)
    return max(min(1.0, (step + 1) / _WARM_UP_STEPS) * cosine, _LAST_RATE)


def _negative_log(logits: Tensor, category: Tensor) -> Tensor:
    """Negative log probability of the category of each row; natural logarithm."""
    if logits.shape[1] == 1:
        return functional.softplus(torch.where(category == 0, -logits[:, 0], logits[:, 0]))
    return functional.cross_entropy(logits, category.long(), reduction="none")


def _probabilities(logits: Tensor) -> Tensor:
    """Probabilities of the categories, last axis."""
    if logits.shape[-1] == 1:
        return torch.cat([logits.sigmoid(), (-logits).sigmoid()], dim=-1)
    return logits.softmax(-1)


def _sum_up(network: nn.Module, loss: Tensor, processes: Processes) -> float:
    """Add up gradients and losses of all processes; each ends up with the sums."""
    if processes.size == 1:
        return loss.item()
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    flat = torch.cat([loss.detach().reshape(1), *(g.reshape(-1) for g in gradients)])
    total = torch.as_tensor(processes.sum(flat.cpu().numpy()), device=flat.device)
    first = 1
    for gradient in gradients:
        gradient.copy_(total[first : first + gradient.numel()].view_as(gradient))
        first += gradient.numel()
    return total[0].item()


def _copy(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in network.state_dict().items()}
