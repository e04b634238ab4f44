"""Store what the page of a score tells about the scored pairs of question and student.

When the organiser makes a bundle, `common.evaluation.pair_facts` reads these facts from the
training answers and the metadata. The scoring program, which has neither, reads them from one .npz
file.
"""

import json
from dataclasses import asdict
from pathlib import Path

from common.evaluation.pair_facts import LeftOut, PairFacts

import numpy as np
import pandas as pd

# Columns with text in the table of subjects (the topics of questions). Other columns hold numbers.
_TEXT_COLUMNS = ("Name", "Parent")


def write_facts(path: Path, facts: PairFacts) -> None:
    """Write facts about pairs of question and student into an .npz file, for the page of a score.

    The file can be read without pickle. Each column of the tables in `facts` becomes an array with
    the name TABLE.COLUMN, such as ``pairs.majority``. For a categorical column, the array
    ``pairs.COLUMN`` holds the codes, and a second array ``groups.COLUMN`` holds the categories. The
    array ``left_out`` is a text in JSON: which parts the page leaves out, each with the reason.
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
            # A column of text holds Python objects, which an .npz file cannot store without pickle.
            # Convert it to an array of characters.
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
                # Other arrays are named TABLE.COLUMN.
                table, column = name.split(".")
                tables[table][column] = file[name]
    pairs = pd.DataFrame(tables["pairs"])
    # For a categorical column, `pairs` still holds the codes. `groups` holds the categories.
    for name, categories in tables["groups"].items():
        pairs[name] = pd.Categorical.from_codes(pairs[name].to_numpy(), pd.Index(categories))
    subjects = pd.DataFrame(tables["subjects"]) if tables["subjects"] else None
    return PairFacts(pairs, subjects, left_out)
