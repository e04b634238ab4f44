"""A made-up tree of school subjects for the simulation, shaped like the official one.

Names and ids are invented. As in the official file, a first root holds nearly everything, levels
run from 0 to 3, ids have gaps, and a child's id may be smaller than its parent's.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from simulation import Array

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


@dataclass(frozen=True)
class Subjects:
    """A tree of subjects, by internal numbers from 0; topics are those of level 2, in order."""

    table: pd.DataFrame  # SubjectId, Name, ParentId, Level, parent (-1 for a root)
    area_of_topic: Array  # int (n_topics,)
    leaves: list[list[int]]  # for each topic its parts (level 3)

    def path_to(self, leaves: tuple[int, ...]) -> list[int]:
        """Return the sorted ids of some subjects and of all their ancestors."""
        ids, parents = self.table["SubjectId"].to_list(), self.table["parent"].to_list()
        found = set()
        for number in leaves:
            while number >= 0:
                found.add(ids[number])
                number = parents[number]
        return sorted(found)


def make_subjects() -> Subjects:
    """Make the tree; it is always the same."""
    # Name, parent, level.
    nodes = [(root, -1, 0) for root in ROOTS]
    area_of_topic: list[int] = []
    leaves: list[list[int]] = []

    def add(name: str, parent: int) -> int:
        nodes.append((name, parent, nodes[parent][2] + 1))
        return len(nodes) - 1

    for number, (area, topics) in enumerate(AREAS.items()):
        area_node = add(area, 1 if area == "Science" else 0)
        for topic in topics:
            topic_node = add(topic, area_node)
            n_parts = len(PARTS) - (len(leaves) >= N_FIVE_PARTS)
            area_of_topic.append(number)
            leaves.append([add(f"{topic}: {part}", topic_node) for part in PARTS[:n_parts]])
    table = pd.DataFrame(nodes, columns=["Name", "parent", "Level"])
    ids = np.random.default_rng(0).choice(np.arange(4, HIGHEST_ID + 1), len(nodes), replace=False)
    ids[0] = 3
    table["SubjectId"] = ids
    table["ParentId"] = table["parent"].map(table["SubjectId"]).astype("Int32")
    return Subjects(table, np.array(area_of_topic), leaves)


def draw_subject_lists(
    rng: np.random.Generator, subjects: Subjects, n_questions: int, n_topics: int
) -> tuple[Leaves, Array]:
    """Draw the subjects of each question: mostly one leaf, of large topics more often.

    They come from so many topics, the more popular ones first. Returns for each question its leaves
    (one, or rarely two), and its topic; int32 (n_questions,).
    """
    topics = rng.permutation(len(subjects.leaves))[:n_topics]
    weight = rng.lognormal(0, 1, n_topics)
    topic = np.sort(rng.choice(topics, n_questions, p=weight / weight.sum()))
    lists: Leaves = []
    for own in topic:
        leaves = subjects.leaves[own]
        first = leaves[int(len(leaves) * rng.random() ** 2)]
        if rng.random() < 0.06:
            other = subjects.leaves[topics[int(n_topics * rng.random())]]
            lists.append((first, other[0]))
        else:
            lists.append((first,))
    return lists, topic.astype(np.int32)
