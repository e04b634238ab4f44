"""Task 4: the class to fill in. Copy this file into a new folder and complete the copy.

Check:   python task_4/numpy/local_evaluation.py --submission YOUR_FOLDER
Upload:  python task_4/package.py YOUR_FOLDER

How it runs. Some answers of each student are the targets, which must be predicted. The evaluator
plays a game for each of several choices of targets (target masks). Each game runs in a new process,
in a folder that holds the content of the uploaded zip. The evaluator makes one `Submission` and
plays ten rounds; in each round every student is asked one question. So each round calls
`select_questions`, reveals the answers, and calls `update_model`. After the last round, `predict`
is called once. To plot the accuracy by the number of questions, the evaluator then repeats the game
with a new `Submission` and the questions already chosen: it calls `predict` before the first round,
and `update_model` and `predict` in every round.

Allowed libraries. NumPy, pandas, scikit-learn and torch. The kit's `common` is not there.

Allowed files. All files beside this one, such as model.py. Names of weight files must begin with
model_task_4_. The challenge puts its own files into the same folder: train_task_3_4.csv,
subject_metadata.csv, question_metadata_task_3_4.csv, student_metadata_task_3_4.csv and
answer_metadata_task_3_4.csv.

The arrays. All have the shape (students, questions) and the type int64. Row i is the same student
in all calls. Column j is QuestionId j. The official data have 948 columns. In general, the number
of columns is one more than the largest QuestionId in the metadata, the training file and the
students' answers. You may change the arrays: they are copies.

masked_data
    The chosen option, 1 to 4, of a revealed answer, else -1. It is -1 everywhere if the file of the
    students' answers has no options.
masked_binary_data
    1 for a right and 0 for a wrong revealed answer, else -1.
can_query
    1 for a question that may be asked: the student has answered it, it is not a target, and it has
    not been asked yet. Else 0.

The targets are never revealed, and your class is not told which answers they are.
"""

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


class Submission:
    """Your model: it chooses questions for all students and predicts their answers."""

    def __init__(self) -> None:
        """Load the weights, for example from the file model_task_4_weights.npy in this folder."""
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
            The column of the question chosen for each student. `can_query` must be 1 there.
        """
        raise NotImplementedError

    # The evaluators that the organisers published call this method `select_feature`.
    select_feature = select_questions

    def update_model(
        self, masked_data: IntArray, masked_binary_data: IntArray, can_query: IntArray
    ) -> None:
        """Learn from the answers to the questions just chosen. This method may be left out.

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
            1 for right, 0 for wrong; a probability such as 0.7 is an error. Fill in all elements:
            only the targets count, but your class is not told which answers they are.
        """
        raise NotImplementedError

    # The method `predict_probabilities` is optional. Only `local_evaluation.py` calls it, after
    # `predict`, if it is run with --probabilities FILE. The challenge never calls it, and no score
    # depends on it.
    #
    # def predict_probabilities(self, masked_data, masked_binary_data):
    #     """Return P(right), from 0 to 1, as an array of shape (students, questions)."""
