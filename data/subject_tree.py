"""A made-up tree of school subjects for the simulation, shaped like the official one.

Names and ids are invented. As in the official file, a first root holds nearly everything, levels
run from 0 to 3, ids have gaps, and a child's id may be smaller than its parent's.
"""

from common.arrays import Array

import numpy as np
import pandas as pd
from simulation import Rng

# The lowest subjects that a question belongs to, by internal number.
Leaves = list[tuple[int, ...]]

ROOTS = ("Maths", "Other subjects")
AREAS = {
    "Numbers": (
        "Place value", "Addition and subtraction", "Multiplication and division", "Below zero",
        "Multiples and divisors", "Fractions of a whole", "Decimal places", "Per cent",
        "Sharing in a ratio", "Direct and inverse proportion", "Powers", "Roots",
        "Very large and very small numbers", "Rounding", "Order of operations", "Estimation",
    ),
    "Letters and equations": (
        "Expressions", "Substitution", "Expanding", "Factorising", "Linear equations",
        "Pairs of equations", "Quadratic equations", "Comparing with < and >", "Patterns",
        "Functions", "Straight lines", "Curves", "Formulae", "Fractions with letters",
    ),
    "Shape and measure": (
        "Angles", "Triangles", "Four-sided shapes", "Polygons", "Circles", "Perimeter", "Area",
        "Volume", "Units", "Clock and calendar", "Symmetry", "Moving shapes", "Enlargement",
        "Right-angled triangles", "Sine and cosine", "Maps and bearings",
    ),
    "Data and chance": ("Averages", "Charts", "Probability", "Samples", "Scatter plots"),
    "Towards university": (
        "Limits", "Derivatives", "Integrals", "Series", "Proof", "Logarithms", "Vectors",
        "Matrices", "Complex numbers", "Binomials", "Radians", "Numerical methods",
    ),
    "Forces and motion": ("Motion",),
    "Inference": ("Distributions", "Hypotheses", "Regression", "Random variables"),
    "Science": ("Energy",),
    "Puzzles": (),
}  # fmt: skip
PARTS = (
    "first steps", "practice", "in context", "reasoning, explaining and proving", "mixed problems",
)  # fmt: skip
N_FIVE_PARTS = 32
HIGHEST_ID = 1988


def make_subjects() -> pd.DataFrame:
    """Make the tree: SubjectId, Name, ParentId, Level, parent (internal number, -1 for a root)."""
    nodes = [(root, -1, 0) for root in ROOTS]  # name, parent, level
    n_topics = 0
    for area, topics in AREAS.items():
        nodes.append((area, int(area == "Science"), 1))
        above = len(nodes) - 1
        for topic in topics:
            nodes.append((topic, above, 2))
            own = len(nodes) - 1
            n_parts = len(PARTS) - (n_topics >= N_FIVE_PARTS)
            nodes += [(f"{topic}: {part}", own, 3) for part in PARTS[:n_parts]]
            n_topics += 1
    table = pd.DataFrame(nodes, columns=["Name", "parent", "Level"])
    ids = np.random.default_rng(0).choice(np.arange(4, HIGHEST_ID + 1), len(nodes), replace=False)
    ids[0] = 3
    table["SubjectId"] = ids
    table["ParentId"] = table["parent"].map(table["SubjectId"]).astype("Int32")
    return table


def list_paths(subjects: pd.DataFrame, leaves: Leaves) -> list[str]:
    """Return for each question the sorted ids of its subjects and of all above them, as text."""
    paths: dict[int, set[int]] = {-1: set()}
    for number, (subject, parent) in enumerate(
        zip(subjects["SubjectId"].tolist(), subjects["parent"], strict=True)
    ):
        paths[number] = {subject} | paths[parent]
    return [str(sorted(set().union(*(paths[leaf] for leaf in own)))) for own in leaves]


def draw_subject_lists(
    rng: Rng, subjects: pd.DataFrame, n_questions: int, n_topics: int
) -> tuple[Leaves, Array]:
    """Draw each question's leaves, mostly one, and topic, of `n_topics`; int32 (n_questions,)."""
    leaves_of = [*subjects[subjects["Level"] == 3].groupby("parent").groups.values()]
    topics = rng.permutation(len(leaves_of))[:n_topics]
    weight = rng.lognormal(0, 1, n_topics)
    topic = np.sort(rng.choice(topics, n_questions, p=weight / weight.sum()))
    lists: Leaves = []
    for own in topic:
        leaves = leaves_of[own]
        lists.append((leaves[int(len(leaves) * rng.random() ** 2)],))
        if rng.random() < 0.06:
            lists[-1] += (leaves_of[topics[int(n_topics * rng.random())]][0],)
    return lists, topic.astype(np.int32)
