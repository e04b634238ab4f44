"""Task 3: split the students at random into two halves, for two rankings of the same questions.

How well the rankings of a model by two halves agree is all that can be said of it without experts:
chance alone cannot make them alike.

Run:     python task_3/local_data_split.py
Reads:   data/train_data/train_task_3_4.csv
Writes:  data/test_input/train_task_3.csv   answers of one half of the students: --local ranks by it
         data/test_input/valid_task_3.csv   answers of the other half: --local=second ranks by it
"""

from common import cli, layout, splits

if __name__ == "__main__":
    cli.run(lambda: splits.run(__doc__, layout.TRAIN_TASK_3_4, splits.halve_students))
