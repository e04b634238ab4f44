"""Task 4: split the training students at random, 80 % to learn from and 20 % to be examined.

A fifth of the answers of the students held out become targets, to be predicted; the others may be
asked for.

Run:     python task_4/local_data_split.py
Reads:   data/train_data/train_task_3_4.csv
Writes:  data/test_input/train_task_4.csv   answers of the students to learn from
         data/test_input/valid_task_4.csv   answers of the others, with the column IsTarget
"""

from common import cli, layout, splits

if __name__ == "__main__":
    cli.run(lambda: splits.run(__doc__, layout.TRAIN_TASK_3_4, splits.split_students))
