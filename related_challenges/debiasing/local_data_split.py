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
import numpy as np


def main() -> None:
    """Split the files that the flags name."""
    options = challenge.split_parser(__doc__, __file__).parse_args()
    if options.output_dir.resolve() == options.input_dir.resolve():
        raise InputError(f"{options.output_dir}: holds the files to be split")
    degree = np.zeros(0, np.int64)
    parts = []
    for phase in clicks.find_phases(options.input_dir):
        train = clicks.read_clicks(options.input_dir / clicks.train_clicks_name(phase))
        test = clicks.read_clicks(options.input_dir / clicks.test_clicks_name(phase))
        # Of several clicks at the same moment the last in the file counts as the latest.
        order = np.lexsort((test.time, test.user))
        is_latest = np.append(np.diff(test.user[order]) != 0, True)
        answer, rest = test.take(order[is_latest]), test.take(np.sort(order[~is_latest]))
        clicks.write_clicks(options.output_dir / clicks.test_clicks_name(phase), rest)
        clicks.write_query_times(
            options.output_dir / clicks.query_times_name(phase), answer.user, answer.time
        )
        items = np.concatenate([train.item, rest.item])
        n_items = max(len(degree), items.max() + 1, answer.item.max() + 1)
        degree = np.bincount(items, minlength=n_items) + np.pad(degree, (0, n_items - len(degree)))
        parts.append(
            clicks.TargetClicks(
                phase=np.full(len(answer), phase, np.int32),
                user=answer.user,
                item=answer.item,
                degree=degree[answer.item].astype(np.int32),
            )
        )
    path = options.output_dir / clicks.ANSWERS
    clicks.write_answers(
        path,
        clicks.TargetClicks(
            phase=np.concatenate([part.phase for part in parts]),
            user=np.concatenate([part.user for part in parts]),
            item=np.concatenate([part.item for part in parts]),
            degree=np.concatenate([part.degree for part in parts]),
        ),
    )
    print(f"written: {cli.show(path)} and the test files of {len(parts)} phases beside it")


if __name__ == "__main__":
    cli.run(main)
