"""Debiasing: mask the latest click of every test user, so that there are answers to score with.

Run:     python related_challenges/debiasing/local_data_split.py
Reads:   data/train_data/underexpose_train_click-T.csv and underexpose_test_click-T.csv
Writes to data/test_input, for every phase T, and in the last file for all phases together:
         underexpose_test_click-T.csv              the test users' clicks except the latest
         underexpose_test_qtime-T.csv              the test users, with the time of that click
         underexpose_test_qtime_with_answer-T.csv  the same, with its item: user, item, time
         debias_track_answer.csv                   phase_id, user_id, item_id, item_degree

The degree of an item is the number of its clicks in the files of all phases up to the answer's
phase, without the masked clicks.
"""

import argparse

from common import cli, writing
from common.errors import InputError
from related_challenges import challenge

import clicks
import pandas as pd


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.parser(
        __doc__, __file__, input_dir=challenge.TRAIN, output_dir=challenge.TEST_INPUT
    )


def main() -> None:
    """Split the files that the flags name."""
    options = build_parser().parse_args()
    source = options.input_dir
    target = options.output_dir
    if target.resolve() == source.resolve():
        raise InputError(f"{target}: holds the files to be split")
    parts = []
    tables = {}
    for phase in clicks.find_phases(source):
        train = clicks.read_clicks(source / clicks.TRAIN_CLICKS.format(phase))
        test = clicks.read_clicks(source / clicks.TEST_CLICKS.format(phase))
        answer, rest = clicks.split_latest(test)
        parts.append((phase, pd.concat([train, rest]), answer))
        tables[clicks.TEST_CLICKS.format(phase)] = rest
        tables[clicks.QUERY_TIMES.format(phase)] = answer[["user_id", "time"]]
        tables[clicks.TRUE_CLICKS.format(phase)] = answer
    tables[clicks.ANSWERS] = clicks.count_degrees(parts)
    writing.write_files({target / name: table for name, table in tables.items()}, header=False)
    path = target / clicks.ANSWERS
    print(f"written: {cli.show(path)} and the test files of {len(parts)} phases beside it")


if __name__ == "__main__":
    cli.run(main)
