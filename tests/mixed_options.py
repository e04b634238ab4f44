"""Simulated answers to a test whose questions have two to eight options."""

import numpy as np
import pandas as pd

# Question q has NUMBERS[q % 7] options.
NUMBERS = (2, 3, 4, 5, 6, 7, 8)


def simulate(n_students: int, n_questions: int, seed: int = 0) -> pd.DataFrame:
    """Simulate a test in which every student answers every question.

    The numbers of options of the questions are 2, 3, …, 8, and again from 2 (NUMBERS). An ability
    decides whether an answer is right; each wrong option is half as popular as the one before.
    QuestionIds and UserIds count from 0. There is no AnswerId.
    """
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, 1.5, n_students)
    number_of_options = np.resize(NUMBERS, n_questions)
    # The right option of each question, from 0.
    key = rng.integers(number_of_options)
    parts = []
    for question in range(n_questions):
        n_options = number_of_options[question]
        p_right = 1 / (1 + np.exp(-ability - rng.normal(0, 1)))
        is_correct = rng.random(n_students) < p_right
        # Rank 0 is the right option, rank 1 the most popular wrong one, and so on.
        share = 0.5 ** np.arange(1, n_options)
        rank = rng.choice(np.arange(1, n_options), n_students, p=share / share.sum())
        rank[is_correct] = 0
        part = pd.DataFrame({"QuestionId": question, "UserId": np.arange(n_students)})
        part["IsCorrect"] = is_correct.astype(np.int8)
        part["CorrectAnswer"] = key[question] + 1
        part["AnswerValue"] = (key[question] + rank) % n_options + 1
        part["NumberOfOptions"] = n_options
        parts.append(part)
    return pd.concat(parts, ignore_index=True)
