"""What is known about the pairs scored, in a file: the training answers need not be read again.

The organiser's machine reads training answers and metadata once, when it makes the bundle
(`common.scores.pair_facts`); the scoring program finds what it needs of them in one .npz.
"""

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from common.metadata import QuestionSubjects, StudentMetadata, SubjectTree
from common.scores.pair_facts import LeftOut, PairFacts, Subjects, Training

import numpy as np

_PARTS = {
    "training": Training,
    "subjects": Subjects,
    "subjects.tree": SubjectTree,
    "subjects.of_question": QuestionSubjects,
    "students": StudentMetadata,
}


def write_facts(path: Path, facts: PairFacts) -> None:
    """Write what is known as arrays, each by its name, such as ``training.majority``."""
    arrays: dict[str, Any] = {}

    def collect(name: str, value: Any) -> None:
        if is_dataclass(value):
            for part in fields(value):
                collect(f"{name}.{part.name}", getattr(value, part.name))
        elif value is not None:
            arrays[name] = np.asarray(value)

    for part in fields(facts):
        if part.name != "left_out":
            collect(part.name, getattr(facts, part.name))
    left_out = [vars(item) for item in facts.left_out]
    np.savez_compressed(path, left_out=np.array(json.dumps(left_out)), **arrays)


def read_facts(path: Path) -> PairFacts:
    """Read what `write_facts` wrote."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}

    def build(name: str, kind: Any) -> Any:
        if not any(key.startswith(f"{name}.") for key in arrays):
            return None
        values: dict[str, Any] = {}
        for part in fields(kind):
            key = f"{name}.{part.name}"
            values[part.name] = build(key, _PARTS[key]) if key in _PARTS else arrays.get(key)
        if kind is SubjectTree:
            values["names"] = values["names"].tolist()
        return kind(**values)

    left_out = [LeftOut(**item) for item in json.loads(str(arrays["left_out"]))]
    return PairFacts(
        student_ids=arrays["student_ids"],
        question_ids=arrays["question_ids"],
        student=arrays["student"],
        question=arrays["question"],
        training=build("training", Training),
        quiz=arrays.get("quiz"),
        subjects=build("subjects", Subjects),
        students=build("students", StudentMetadata),
        left_out=left_out,
    )
