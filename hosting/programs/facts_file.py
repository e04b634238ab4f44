"""What is known about the pairs scored, in a file: the training answers need not be read again.

The organiser's machine reads training answers and metadata once, when it makes the bundle
(`common.evaluation.pair_facts`); the scoring program finds what it needs of them in one .npz.
"""

import json
from pathlib import Path

from common.evaluation.pair_facts import LeftOut, PairFacts

import numpy as np
import pandas as pd


def write_facts(path: Path, facts: PairFacts) -> None:
    """Write what is known as arrays, each by its name, such as ``pairs.majority``."""
    arrays = {"left_out": np.array(json.dumps(facts.left_out))}
    for name, table in (("pairs", facts.pairs), ("subjects", facts.subjects)):
        for column, values in () if table is None else table.items():
            # Text is of no fixed size in a DataFrame.
            dtype = str if column in ("Name", "Parent") else None
            arrays[f"{name}.{column}"] = values.to_numpy(dtype=dtype)
    np.savez_compressed(path, allow_pickle=False, **arrays)


def read_facts(path: Path) -> PairFacts:
    """Read what `write_facts` wrote."""
    tables: dict[str, dict[str, np.ndarray]] = {"pairs": {}, "subjects": {}}
    with np.load(path, allow_pickle=False) as file:
        left_out = [LeftOut(*item) for item in json.loads(str(file["left_out"]))]
        for name in file.files[1:]:
            table, column = name.split(".")
            tables[table][column] = file[name]
    subjects = pd.DataFrame(tables["subjects"]) if tables["subjects"] else None
    return PairFacts(pd.DataFrame(tables["pairs"]), subjects, left_out)
