"""What is known about the pairs scored, in a file: the training answers need not be read again.

The organiser's machine reads training answers and metadata once, when it makes the bundle
(`common.evaluation.pair_facts`); the scoring program finds what it needs of them in one .npz.
"""

import json
from dataclasses import asdict
from pathlib import Path

from common.evaluation.pair_facts import LeftOut, PairFacts

import numpy as np
import pandas as pd


def write_facts(path: Path, facts: PairFacts) -> None:
    """Write what is known as arrays, each by its name, such as ``pairs.majority``."""
    left_out = [asdict(part) for part in facts.left_out]
    arrays = {"left_out": np.array(json.dumps(left_out))}
    for name, values in facts.pairs.items():
        is_grouped = isinstance(values.dtype, pd.CategoricalDtype)
        arrays[f"pairs.{name}"] = (values.cat.codes if is_grouped else values).to_numpy()
        if is_grouped:
            arrays[f"groups.{name}"] = values.cat.categories.to_numpy(dtype=str)
    for name, values in () if facts.subjects is None else facts.subjects.items():
        # Text is of no fixed size in a DataFrame.
        dtype = str if name in ("Name", "Parent") else None
        arrays[f"subjects.{name}"] = values.to_numpy(dtype=dtype)
    np.savez_compressed(path, allow_pickle=False, **arrays)


def read_facts(path: Path) -> PairFacts:
    """Read what `write_facts` wrote."""
    tables: dict[str, dict[str, np.ndarray]] = {"pairs": {}, "subjects": {}, "groups": {}}
    with np.load(path, allow_pickle=False) as file:
        left_out = [LeftOut(**part) for part in json.loads(str(file["left_out"]))]
        for name in file.files[1:]:
            table, column = name.split(".")
            tables[table][column] = file[name]
    pairs = pd.DataFrame(tables["pairs"])
    for name, groups in tables["groups"].items():
        pairs[name] = pd.Categorical.from_codes(pairs[name].to_numpy(), pd.Index(groups))
    subjects = pd.DataFrame(tables["subjects"]) if tables["subjects"] else None
    return PairFacts(pairs, subjects, left_out)
