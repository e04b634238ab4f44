"""Debiasing: mask the latest click of every test user, so that there are answers to score with.

Run:     python related_challenges/debiasing/local_data_split.py
Reads:   data/train_data/underexpose_train_click-T.csv and underexpose_test_click-T.csv
Writes:  data/test_input/underexpose_test_click-T.csv  the test users' clicks except the latest
         data/test_input/underexpose_test_qtime-T.csv  the test users, with the time of that click
         data/test_input/debias_track_answer.csv       phase_id, user_id, item_id, item_degree

The degree of an item is how often it was clicked in the files of all phases up to that of the
answer; the masked clicks do not count.
"""

from common import challenge, cli
from common.errors import InputError

import clicks
import pandas as pd


def main() -> None:
    """Split the files that the flags name."""
    options = challenge.split_parser(__doc__, __file__).parse_args()
    source, target = options.input_dir, options.output_dir
    if target.resolve() == source.resolve():
        raise InputError(f"{target}: holds the files to be split")
    degree = pd.Series(dtype=int)
    answers = []
    for phase in clicks.find_phases(source):
        train = clicks.read_clicks(source / clicks.train_clicks_name(phase))
        test = clicks.read_clicks(source / clicks.test_clicks_name(phase))
        answer, rest = clicks.split_latest(test)
        clicks.write(target / clicks.test_clicks_name(phase), rest)
        clicks.write(target / clicks.query_times_name(phase), answer[["user_id", "time"]])
        n_clicks = pd.concat([train["item_id"], rest["item_id"]]).value_counts()
        degree = degree.add(n_clicks, fill_value=0)
        answer = answer.assign(phase_id=phase, item_degree=answer["item_id"].map(degree))
        answers.append(answer[["phase_id", "user_id", "item_id", "item_degree"]])
    path = target / clicks.ANSWERS
    clicks.write(path, pd.concat(answers).fillna(0).astype(int))
    print(f"written: {cli.show(path)} and the test files of {len(answers)} phases beside it")


if __name__ == "__main__":
    cli.run(main)
