"""Task 4: the class to fill in. Copy this file into a folder of its own and complete it.

Check:   python task_4/numpy/local_evaluation.py --submission YOUR_FOLDER
Upload:  python task_4/package.py YOUR_FOLDER

How it runs. The evaluator starts a fresh process for every target mask, in a folder that holds what
the zip holds. It makes one `Submission` and plays ten rounds with all students at once: in each it
calls `select_questions`, reveals the answers, and calls `update_model`. After the last round it
calls `predict` once. (To draw the accuracy after every question, it replays the questions with
another `Submission`, and calls `predict` before the first round and after every round.)

What may be used. Numpy, pandas, scikit-learn and torch; all files that lie beside this one, such as
model.py and the weights, which are named model_task_4_*; and the files of the challenge, which lie
there too: train_task_3_4.csv, question_metadata_task_3_4.csv, student_metadata_task_3_4.csv,
answer_metadata_task_3_4.csv and subject_metadata.csv. Not the kit's `common`.

The arrays. All have the shape (students, questions), type int64. Row i is the same student in all
calls. Column j is QuestionId j: 948 columns officially, else as many as the largest QuestionId of
the metadata, the training file and the students' answers, plus one. They are copies: changing them
changes nothing elsewhere.

masked_data
    The option chosen, 1 to 4, where it has been revealed, else -1. (If the file with the students
    does not hold the options, -1 throughout.)
masked_binary_data
    1 right, 0 wrong, where it has been revealed, else -1.
can_query
    1 where the student has answered the question, it is not a target, and it has not been asked
    yet, else 0.

The answers to be predicted, the targets, are never revealed; which they are is not shown either.
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
            What has been revealed so far; see the top of this file.
        can_query
            Which questions may be asked.

        Returns
        -------
        list or array of int, length (students,)
            For every student a column where `can_query` is 1 in the student's row.
        """
        raise NotImplementedError

    # Its name in the published evaluators.
    select_feature = select_questions

    def update_model(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray
    ) -> None:
        """Take in the answers to the questions just chosen, if the model wants to.

        Parameters
        ----------
        masked_data, masked_binary_data
            What has been revealed so far, now with the new answers.
        can_query
            Which questions may still be asked.
        """

    def predict(self, masked_data: IntArray, masked_binary_data: IntArray) -> IntArray:
        """Predict right or wrong for every student and question.

        Parameters
        ----------
        masked_data, masked_binary_data
            What has been revealed.

        Returns
        -------
        array of any number type, shape (students, questions)
            1 right, 0 wrong. Only the values at the targets count, but which these are is not
            shown, so fill in all. A probability such as 0.7 is an error.
        """
        raise NotImplementedError

    # Optional: only `local_evaluation.py --probabilities FILE` calls it, after `predict`. An entry
    # without it is complete; the challenge never calls it, and the score does not depend on it.
    #
    # def predict_probabilities(self, masked_data, masked_binary_data):
    #     """Return P(right) for every student and question, from 0 to 1, in their shape."""
