"""Simulated answers to a test whose questions have two to eight options."""

import numpy as np
import pandas as pd

# Question q has NUMBERS[q % 7] options.
NUMBERS = (2, 3, 4, 5, 6, 7, 8)


def simulate(n_students: int, n_questions: int, seed: int = 0) -> pd.DataFrame:
    """Simulate a test in which every student answers every question.

    Question 0 has 2 options, question 1 has 3, …, question 6 has 8, question 7 has 2 again, and so
    on (see NUMBERS). The ability of the student and the easiness of the question decide how
    probable a right answer is. The wrong options of a question have an order; each is chosen half
    as often as the one before it. QuestionIds and UserIds count from 0. There is no AnswerId.
    """
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, 1.5, n_students)
    number_of_options = np.resize(NUMBERS, n_questions)
    # The right option of each question, counted from 0.
    right_options = rng.integers(number_of_options)
    answers_by_question = []
    for question in range(n_questions):
        n_options = number_of_options[question]
        right_option = right_options[question]
        easiness = rng.normal(0, 1)
        p_right = 1 / (1 + np.exp(-ability - easiness))
        is_correct = rng.random(n_students) < p_right
        # The rank of the chosen option. Rank 0 is the right option, rank 1 the most popular wrong
        # option, and so on.
        wrong_ranks = np.arange(1, n_options)
        popularity = 0.5**wrong_ranks
        rank = rng.choice(wrong_ranks, n_students, p=popularity / popularity.sum())
        rank[is_correct] = 0
        # The option of rank 1 is the one after the right option, and so on. After the last option
        # comes option 0.
        chosen_option = (right_option + rank) % n_options
        answers = pd.DataFrame({"QuestionId": question, "UserId": np.arange(n_students)})
        answers["IsCorrect"] = is_correct.astype(np.int8)
        answers["CorrectAnswer"] = right_option + 1
        answers["AnswerValue"] = chosen_option + 1
        answers["NumberOfOptions"] = n_options
        answers_by_question.append(answers)
    return pd.concat(answers_by_question, ignore_index=True)
