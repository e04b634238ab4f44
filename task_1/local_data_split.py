"""Tasks 1 and 2: split the training answers at random into 80 % to learn from and 20 % to predict.

Run:     python task_1/local_data_split.py
Reads:   data/train_data/train_task_1_2.csv
Writes:  data/test_input/train_task_1_2.csv            answers to learn from
         data/test_input/valid_task_1_2.csv            answers to score with
         data/test_input/test_submission_task_1_2.csv  template: the pairs to predict
"""

from common import cli, layout, splits

if __name__ == "__main__":
    cli.run(lambda: splits.run(__doc__, layout.TRAIN_TASK_1_2, splits.split_answers))
