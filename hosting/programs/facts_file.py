"""Store facts about the pairs that are scored, so that the training answers need not be read again.

When the organiser makes a bundle, `common.evaluation.pair_facts` reads the training answers and the
metadata. The scoring program reads the facts it needs from one .npz file instead.
"""

import json
from dataclasses import asdict
from pathlib import Path

from common.evaluation.pair_facts import LeftOut, PairFacts

import numpy as np
import pandas as pd

# Columns of the subjects that hold text. Other columns hold numbers.
_TEXT_COLUMNS = ("Name", "Parent")


def write_facts(path: Path, facts: PairFacts) -> None:
    """Write facts as an .npz file, which holds no Python objects.

    A column is an array named by its table, such as ``pairs.majority``. For a categorical column,
    ``pairs.…`` holds the codes and ``groups.…`` the categories. ``left_out`` is a text in JSON.
    """
    left_out = [asdict(part) for part in facts.left_out]
    arrays = {"left_out": np.array(json.dumps(left_out))}
    for name, column in facts.pairs.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            arrays[f"pairs.{name}"] = column.cat.codes.to_numpy()
            arrays[f"groups.{name}"] = column.cat.categories.to_numpy(dtype=str)
        else:
            arrays[f"pairs.{name}"] = column.to_numpy()
    if facts.subjects is not None:
        for name, column in facts.subjects.items():
            # A DataFrame holds text as Python objects: convert it to an array of characters.
            dtype = str if name in _TEXT_COLUMNS else None
            arrays[f"subjects.{name}"] = column.to_numpy(dtype=dtype)
    np.savez_compressed(path, allow_pickle=False, **arrays)


def read_facts(path: Path) -> PairFacts:
    """Read the facts that `write_facts` wrote."""
    tables: dict[str, dict[str, np.ndarray]] = {"pairs": {}, "subjects": {}, "groups": {}}
    with np.load(path, allow_pickle=False) as file:
        left_out = [LeftOut(**part) for part in json.loads(str(file["left_out"]))]
        for name in file.files:
            if name != "left_out":
                table, column = name.split(".")
                tables[table][column] = file[name]
    pairs = pd.DataFrame(tables["pairs"])
    for name, categories in tables["groups"].items():
        pairs[name] = pd.Categorical.from_codes(pairs[name].to_numpy(), pd.Index(categories))
    subjects = pd.DataFrame(tables["subjects"]) if tables["subjects"] else None
    return PairFacts(pairs, subjects, left_out)
