"""Task 4: the class to fill in. Copy this file into a folder of its own and complete it.

Check:   python task_4/numpy/local_evaluation.py --submission YOUR_FOLDER
Upload:  python task_4/package.py YOUR_FOLDER

How it runs. The evaluator starts a fresh process for every target mask, in a folder that holds the
content of the zip. It makes one `Submission` and plays ten rounds with all students at once. In
each round it calls `select_questions`, reveals the answers, and calls `update_model`. After the
last round it calls `predict` once. To draw the accuracy after every question, the evaluator replays
the questions with another `Submission`, and calls `predict` before the first round and after every
round.

Allowed libraries. NumPy, pandas, scikit-learn and torch, but not the kit's `common`.

Allowed files. All files beside this one, such as model.py and the weights, whose names begin with
model_task_4_. The challenge puts its own files there too: train_task_3_4.csv, subject_metadata.csv,
question_metadata_task_3_4.csv, student_metadata_task_3_4.csv and answer_metadata_task_3_4.csv.

The arrays. All have the shape (students, questions) and the type int64. Row i is the same student
in all calls. Column j is QuestionId j. Officially there are 948 columns; with other data, the
largest QuestionId of the metadata, the training file and the students' answers, plus one. The
arrays are copies: changing them changes nothing elsewhere.

masked_data
    The chosen option, 1 to 4, of a revealed answer, else -1. If the file with the students does not
    hold the options, -1 throughout.
masked_binary_data
    1 for a right and 0 for a wrong revealed answer, else -1.
can_query
    1 for a question that may be asked: the student has answered it, it is not a target, and it has
    not been asked yet. Else 0.

The targets are the answers to be predicted. They are never revealed, and the entry is not told
which answers they are.
"""

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


class Submission:
    """An entry of task 4."""

    def __init__(self) -> None:
        """Load the weights: `Path(__file__).parent / "model_task_4_….npy"`."""
        raise NotImplementedError

    def select_questions(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray
    ) -> list[int] | IntArray:
        """Choose the next question for every student.

        Parameters
        ----------
        masked_data, masked_binary_data
            The answers revealed so far; see the top of this file.
        can_query
            Which questions may be asked.

        Returns
        -------
        list or array of int, length (students,)
            For every student a column where `can_query` is 1 in the student's row.
        """
        raise NotImplementedError

    # The published evaluators call this name.
    select_feature = select_questions

    def update_model(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray
    ) -> None:
        """Learn from the answers to the questions just chosen; optional.

        Parameters
        ----------
        masked_data, masked_binary_data
            The answers revealed so far, including the new ones.
        can_query
            Which questions may still be asked.
        """

    def predict(self, masked_data: IntArray, masked_binary_data: IntArray) -> IntArray:
        """Predict right or wrong for every student and question.

        Parameters
        ----------
        masked_data, masked_binary_data
            The answers revealed so far.

        Returns
        -------
        array of any number type, shape (students, questions)
            1 right, 0 wrong. Fill in all elements: only the targets count, but the entry is not
            told which these are. A probability such as 0.7 is an error.
        """
        raise NotImplementedError

    # Optional: only `local_evaluation.py --probabilities FILE` calls it, after `predict`. An entry
    # without it is complete; the challenge never calls it, and the score does not depend on it.
    #
    # def predict_probabilities(self, masked_data, masked_binary_data):
    #     """Return P(right) for every student and question, from 0 to 1, in their shape."""
