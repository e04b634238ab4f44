"""A made-up tree of school subjects for the simulation, shaped like the official one.

Names and ids are invented. As in the official file, a first root holds nearly everything, levels
run from 0 to 3, ids have gaps, and a child's id may be smaller than its parent's.
"""

from common.arrays import Array

import numpy as np
import pandas as pd
from simulation import Rng

# For each question, the rows of its lowest subjects in the table of subjects.
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
# A topic is divided into the first four or all five of these.
PARTS = (
    "first steps", "practice", "in context", "reasoning, explaining and proving", "mixed problems",
)  # fmt: skip
# This many topics have five parts, the others four.
N_FIVE_PARTS = 32
HIGHEST_ID = 1988


def make_subjects() -> pd.DataFrame:
    """Make the tree: SubjectId, Name, ParentId, Level and parent (its row, -1 for a root)."""
    nodes = [{"Name": root, "parent": -1, "Level": 0} for root in ROOTS]
    n_topics = 0
    for area, topics in AREAS.items():
        root = "Other subjects" if area == "Science" else "Maths"
        area_row = len(nodes)
        nodes.append({"Name": area, "parent": ROOTS.index(root), "Level": 1})
        for topic in topics:
            topic_row = len(nodes)
            nodes.append({"Name": topic, "parent": area_row, "Level": 2})
            n_parts = 5 if n_topics < N_FIVE_PARTS else 4
            for part in PARTS[:n_parts]:
                nodes.append({"Name": f"{topic}: {part}", "parent": topic_row, "Level": 3})
            n_topics += 1
    table = pd.DataFrame(nodes)
    ids = np.random.default_rng(0).choice(np.arange(4, HIGHEST_ID + 1), len(nodes), replace=False)
    # The official file has id 3 for the first root.
    ids[0] = 3
    table["SubjectId"] = ids
    table["ParentId"] = table["parent"].map(table["SubjectId"]).astype("Int32")
    return table


def list_paths(subjects: pd.DataFrame, leaves: Leaves) -> list[str]:
    """Return for each question the sorted ids of its subjects and their ancestors, as text."""
    # The ids on the way from the root to each subject. Parents come before their children.
    paths: dict[int, set[int]] = {-1: set()}
    subject_ids = subjects["SubjectId"].tolist()
    for row, (subject_id, parent) in enumerate(zip(subject_ids, subjects["parent"], strict=True)):
        paths[row] = {subject_id} | paths[parent]
    lists = []
    for question_leaves in leaves:
        ids: set[int] = set()
        for leaf in question_leaves:
            ids |= paths[leaf]
        lists.append(str(sorted(ids)))
    return lists


def draw_subject_lists(
    rng: Rng, subjects: pd.DataFrame, n_questions: int, n_topics: int
) -> tuple[Leaves, Array]:
    """Draw the leaves and the topic of each question.

    Most questions have one leaf, some have a second one in any topic. The questions belong to
    `n_topics` of the topics. The topics returned are increasing, int32 (n_questions,).
    """
    leaves_of_topic = [*subjects[subjects["Level"] == 3].groupby("parent").groups.values()]
    used_topics = rng.permutation(len(leaves_of_topic))[:n_topics]
    weight = rng.lognormal(0, 1, n_topics)
    topic = np.sort(rng.choice(used_topics, n_questions, p=weight / weight.sum()))
    leaves: Leaves = []
    for question_topic in topic:
        candidates = leaves_of_topic[question_topic]
        # The square makes the first parts of a topic more frequent.
        question_leaves: tuple[int, ...] = (candidates[int(len(candidates) * rng.random() ** 2)],)
        if rng.random() < 0.06:
            other_topic = used_topics[int(n_topics * rng.random())]
            question_leaves += (leaves_of_topic[other_topic][0],)
        leaves.append(question_leaves)
    return leaves, topic.astype(np.int32)
