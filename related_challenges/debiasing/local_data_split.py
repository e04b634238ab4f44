"""Debiasing: mask the latest click of every test user, so that there are answers to score with.

Run:     python related_challenges/debiasing/local_data_split.py
Reads:   data/train_data/underexpose_train_click-T.csv and underexpose_test_click-T.csv
Writes to data/test_input, for every phase T:
         underexpose_test_click-T.csv              the test users' clicks except the latest
         underexpose_test_qtime-T.csv              user_id and time of the latest click
         underexpose_test_qtime_with_answer-T.csv  user_id, item_id and time of the latest click
and for all phases together:
         debias_track_answer.csv                   phase_id, user_id, item_id, item_degree
         split_debiasing.json                      how the answers were made

The degree of an item is the number of its clicks in the files of all phases up to the answer's
phase, without the masked clicks.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from common import cli, layout, writing
from common.errors import InputError
from related_challenges import challenge

import clicks
import pandas as pd


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return challenge.parser(
        __doc__, __file__, input_dir=challenge.TRAIN_FOLDER, output_dir=challenge.TEST_INPUT_FOLDER
    )


def main() -> None:
    """Mask the latest click of every test user, and write the files of the split."""
    options = build_parser().parse_args()
    source = options.input_dir
    target = options.output_dir
    if target.resolve() == source.resolve():
        raise InputError(f"{target}: holds the files to be split, expected another --output_dir")
    phases = clicks.find_phases(source)
    tables = mask_clicks(source, phases)
    path = target / clicks.ANSWERS
    # The answers of this split are taken from the published test clicks. So a model must not read
    # the files of the test clicks: the record names them, and the evaluation refuses a submission
    # whose model has read such a file. Every model may read the files of the training clicks, so
    # the record does not name them.
    writing.write_files(
        {target / name: table for name, table in tables.items()},
        header=False,
        record=target / layout.RECORD_OF_FILE[clicks.ANSWERS],
        made_from=[source / clicks.TEST_CLICKS.format(phase) for phase in phases],
    )
    print(f"written: {cli.show(path)} and the test files of {len(phases)} phases beside it")


def mask_clicks(source: Path, phases: Sequence[int]) -> dict[str, pd.DataFrame]:
    """Mask the latest click of every test user; return the tables of the split by file name.

    For each phase, the tables are the test clicks without the masked ones, the times of the masked
    clicks, and the masked clicks. One more table holds the answers: the masked clicks of all
    phases, with the degrees of their items (see below).
    """
    # For each phase: its number, the known clicks and the masked clicks.
    known_and_masked = []
    tables = {}
    for phase in phases:
        train = clicks.read_clicks(source / clicks.TRAIN_CLICKS.format(phase))
        test = clicks.read_clicks(source / clicks.TEST_CLICKS.format(phase))
        masked, rest = clicks.split_latest(test)
        known_clicks = pd.concat([train, rest])
        known_and_masked.append((phase, known_clicks, masked))
        tables[clicks.TEST_CLICKS.format(phase)] = rest
        tables[clicks.QUERY_TIMES.format(phase)] = masked[["user_id", "time"]]
        tables[clicks.TRUE_CLICKS.format(phase)] = masked
    # The degree of an item is the number of known clicks on it in this phase and all earlier
    # phases. The challenge's second score counts only users whose item is rare, so the answers hold
    # the degree of each item.
    tables[clicks.ANSWERS] = clicks.add_degrees(known_and_masked)
    return tables


if __name__ == "__main__":
    cli.run(main)
