"""Fit a model of another library in an environment of its own; write its probabilities.

THAT_PYTHON tests/benchmarks/peer_models.py EduCDM_MIRT arrays.npz '{"lr": 0.01}' p.npy

`peers_on_real_answers.py` runs this program. It needs nothing of the kit but peer_cmfrec.py beside
it. It prints the processor time as JSON.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Answers:
    """Right and wrong answers to learn from, and the pairs to predict; all ids count from 0."""

    student: np.ndarray
    question: np.ndarray
    is_correct: np.ndarray
    test_student: np.ndarray
    test_question: np.ndarray
    # 1 if a question has a subject, else 0, shape (n_questions, n_subjects).
    has_subject: np.ndarray
    n_students: int

    @property
    def n_questions(self) -> int:
        """The number of questions."""
        return len(self.has_subject)


# ---- Matrix factorisation ----------------------------------------------------------------------


def fit_cmfrec(answers: Answers, **settings: Any) -> np.ndarray:
    """Return the predictions of collective matrix factorisation, which may lie outside 0 to 1."""
    from peer_cmfrec import predict

    return predict(vars(answers), settings)


def fit_surprise(answers: Answers, **settings: Any) -> np.ndarray:
    """Return the predictions of Surprise's SVD, matrix factorisation with biases."""
    import pandas as pd
    from surprise import SVD, Dataset, Reader

    columns = {"user": answers.student, "item": answers.question, "rating": answers.is_correct}
    data = Dataset.load_from_df(pd.DataFrame(columns), Reader(rating_scale=(0, 1)))
    model = SVD(random_state=0, **settings).fit(data.build_full_trainset())
    pairs = zip(answers.test_student, answers.test_question, strict=True)
    return np.array([model.predict(student, question).est for student, question in pairs])


def fit_lightfm(answers: Answers, epochs: int) -> np.ndarray:
    """Return the probabilities of LightFM with the logistic loss."""
    import scipy.sparse
    from lightfm import LightFM

    # Right answers are 1, wrong ones -1.
    outcome = np.where(answers.is_correct == 1, 1, -1).astype(np.int32)
    shape = answers.n_students, answers.n_questions
    matrix = scipy.sparse.coo_matrix((outcome, (answers.student, answers.question)), shape)
    model = LightFM(loss="logistic", random_state=0).fit(matrix, epochs=epochs)
    logit = model.predict(
        answers.test_student.astype(np.int32), answers.test_question.astype(np.int32)
    )
    return 1 / (1 + np.exp(-logit.astype(np.float64)))


# ---- Item response theory ----------------------------------------------------------------------


def fit_girth(answers: Answers, model: str) -> np.ndarray:
    """Return the probabilities of a logistic model with one ability, by marginal likelihood.

    `model` is a function of girth: "onepl_mml" (one parameter for each question) or "twopl_mml"
    (two).
    """
    import girth

    dataset = np.full((answers.n_questions, answers.n_students), girth.INVALID_RESPONSE)
    dataset[answers.question, answers.student] = answers.is_correct
    # Leave out questions whose answers are all right or all wrong: their difficulty is infinite.
    n_answers = np.bincount(answers.question, minlength=answers.n_questions)
    n_right = np.bincount(
        answers.question, weights=answers.is_correct, minlength=answers.n_questions
    )
    is_mixed = (n_right > 0) & (n_right < n_answers)
    fit = getattr(girth, model)
    parameters = fit(dataset[is_mixed])
    # The difficulty, and so the probability, of a question that was left out is NaN.
    difficulty = np.full(answers.n_questions, np.nan)
    difficulty[is_mixed] = parameters["Difficulty"]
    discrimination = np.ones(answers.n_questions)
    discrimination[is_mixed] = parameters["Discrimination"]
    ability = girth.ability_eap(dataset[is_mixed], difficulty[is_mixed], discrimination[is_mixed])
    return predict_two_parameters(answers, ability, difficulty, discrimination)


def fit_py_irt(answers: Answers, priors: str) -> np.ndarray:
    """Return the probabilities of py-irt's two-parameter model, by variational inference."""
    from py_irt.config import IrtConfig
    from py_irt.dataset import Dataset
    from py_irt.training import IrtModelTrainer

    # py-irt calls students subjects, and questions items. Their ids must be text.
    students = [str(number) for number in range(answers.n_students)]
    questions = [str(number) for number in range(answers.n_questions)]
    dataset = Dataset(
        item_ids=set(questions),
        subject_ids=set(students),
        item_id_to_ix={question: number for number, question in enumerate(questions)},
        ix_to_item_id=dict(enumerate(questions)),
        subject_id_to_ix={student: number for number, student in enumerate(students)},
        ix_to_subject_id=dict(enumerate(students)),
        observation_subjects=answers.student.tolist(),
        observation_items=answers.question.tolist(),
        observations=answers.is_correct.astype(float).tolist(),
        training_example=[True] * len(answers.student),
    )
    config = IrtConfig(model_type="2pl", priors=priors, seed=0)
    trainer = IrtModelTrainer(data_path=None, config=config, dataset=dataset, verbose=False)
    trainer.train()
    fitted = trainer.irt_model.export()
    ability = np.array(fitted["ability"])
    difficulty = np.array(fitted["diff"])
    discrimination = np.array(fitted["disc"])
    return predict_two_parameters(answers, ability, difficulty, discrimination)


def predict_two_parameters(
    answers: Answers, ability: np.ndarray, difficulty: np.ndarray, discrimination: np.ndarray
) -> np.ndarray:
    """Return P(right) of the pairs to predict by the two-parameter model."""
    question = answers.test_question
    distance = ability[answers.test_student] - difficulty[question]
    logit = discrimination[question] * distance
    return 1 / (1 + np.exp(-logit))


# ---- Cognitive diagnosis -----------------------------------------------------------------------


def batches(answers: Answers, size: int, *, with_subjects: bool) -> Any:
    """Return PyTorch's loader of the training answers, as EduCDM's examples make it."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    columns = [torch.as_tensor(answers.student), torch.as_tensor(answers.question)]
    if with_subjects:
        columns.append(torch.as_tensor(answers.has_subject[answers.question]))
    columns.append(torch.as_tensor(answers.is_correct, dtype=torch.float32))
    torch.manual_seed(0)
    return DataLoader(TensorDataset(*columns), batch_size=size, shuffle=True)


def predict_pairs(network: Any, answers: Answers, *, with_subjects: bool) -> np.ndarray:
    """Return the probabilities that a fitted network of EduCDM gives the pairs to predict."""
    import torch

    network.eval()
    parts = []
    with torch.no_grad():
        # Predict a hundredth of the pairs at a time, which saves memory.
        for rows in np.array_split(np.arange(len(answers.test_student)), 100):
            student = torch.as_tensor(answers.test_student[rows])
            question = torch.as_tensor(answers.test_question[rows])
            subjects = [torch.as_tensor(answers.has_subject[question])] if with_subjects else []
            parts.append(network(student, question, *subjects).numpy())
    return np.concatenate(parts)


def fit_irt(answers: Answers, epochs: int) -> np.ndarray:
    """Return the probabilities of EduCDM's three-parameter model, by gradient descent."""
    from EduCDM import GDIRT

    model = GDIRT(answers.n_students, answers.n_questions)
    model.train(batches(answers, size=256, with_subjects=False), epoch=epochs)
    return predict_pairs(model.irt_net, answers, with_subjects=False)


def fit_mirt(answers: Answers, epochs: int) -> np.ndarray:
    """Return the probabilities of EduCDM's multidimensional item response model."""
    from EduCDM import MIRT

    model = MIRT(answers.n_students, answers.n_questions, latent_dim=16)
    model.train(batches(answers, size=256, with_subjects=False), epoch=epochs)
    return predict_pairs(model.irt_net, answers, with_subjects=False)


def fit_ncdm(answers: Answers, epochs: int) -> np.ndarray:
    """Return the probabilities of the neural cognitive diagnosis model of EduCDM."""
    from EduCDM import NCDM

    model = NCDM(answers.has_subject.shape[1], answers.n_questions, answers.n_students)
    model.train(batches(answers, size=32, with_subjects=True), epoch=epochs)
    return predict_pairs(model.ncdm_net, answers, with_subjects=True)


def fit_kancd(answers: Answers, epochs: int) -> np.ndarray:
    """Return the probabilities of EduCDM's KaNCD, a neural model in which subjects are related."""
    from EduCDM import KaNCD

    model = KaNCD(
        exer_n=answers.n_questions,
        student_n=answers.n_students,
        knowledge_n=answers.has_subject.shape[1],
        # Generalised matrix factorisation, with vectors of 20 numbers for students, questions and
        # subjects.
        mf_type="gmf",
        dim=20,
    )
    training_batches = batches(answers, size=32, with_subjects=True)
    # `train` also evaluates the model on batches after each epoch. The evaluation is not used, so
    # give it a single batch of the training answers.
    one_batch = [next(iter(training_batches))]
    model.train(training_batches, one_batch, epoch_n=epochs)
    return predict_pairs(model.net, answers, with_subjects=True)


# ---- The program -------------------------------------------------------------------------------

MODELS: dict[str, Callable[..., np.ndarray]] = {
    "cmfrec": fit_cmfrec,
    "Surprise_SVD": fit_surprise,
    "LightFM": fit_lightfm,
    "girth": fit_girth,
    "py-irt": fit_py_irt,
    "EduCDM_IRT": fit_irt,
    "EduCDM_MIRT": fit_mirt,
    "EduCDM_NCDM": fit_ncdm,
    "EduCDM_KaNCD": fit_kancd,
}


def main() -> None:
    """Fit the model that the arguments name; write its probabilities, print the time."""
    name, arrays_path, settings, output = sys.argv[1:]
    answers = Answers(**{key: value[()] for key, value in np.load(arrays_path).items()})
    started = time.process_time()
    p_right = MODELS[name](answers, **json.loads(settings))
    seconds = time.process_time() - started
    np.save(output, p_right)
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
