"""A made-up tree of school subjects for the simulation, shaped like the official one.

Names and ids are invented. As in the official tree, the first root holds nearly everything, levels
run from 0 to 3, ids have gaps, and a child may have a smaller id than its parent.
"""

from common.arrays import Array

import numpy as np
import pandas as pd
from simulation import Rng

# The leaves (subjects of level 3) of each question, as row numbers in the table of `make_subjects`.
Leaves = list[tuple[int, ...]]

ROOTS = ("Maths", "Other subjects")
# Maps the name of each area (level 1) to the names of its topics (level 2).
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
# The subtopics (level 3) of a topic: either all five, or the first four.
SUBTOPICS = (
    "first steps", "practice", "in context", "reasoning, explaining and proving", "mixed problems",
)  # fmt: skip
# The first N_FIVE_SUBTOPICS topics have five subtopics, the others have four. With this number, the
# tree has 388 subjects, like the official tree.
N_FIVE_SUBTOPICS = 32
# The highest id that a subject may get. There are more possible ids than subjects, so ids have
# gaps.
HIGHEST_ID = 1988
# Share of the questions that are about two subjects of the lowest level (leaves), not one.
SECOND_LEAF_SHARE = 0.06


def make_subjects() -> pd.DataFrame:
    """Return the tree of subjects as a table with a row for each subject.

    SubjectId, Name, ParentId and Level are the official columns. The column parent holds the row
    number of the subject's parent, or -1 for a root.
    """
    nodes = [{"Name": root, "parent": -1, "Level": 0} for root in ROOTS]
    # The number of topics so far.
    n_topics = 0
    for area, topics in AREAS.items():
        # Science belongs to the second root. All other areas belong to the first root, Maths.
        root_row = 1 if area == "Science" else 0
        area_row = len(nodes)
        nodes.append({"Name": area, "parent": root_row, "Level": 1})
        for topic in topics:
            topic_row = len(nodes)
            nodes.append({"Name": topic, "parent": area_row, "Level": 2})
            # Only the first topics have all five subtopics. So the tree gets as many subjects as
            # the official tree.
            n_subtopics = 5 if n_topics < N_FIVE_SUBTOPICS else 4
            for subtopic in SUBTOPICS[:n_subtopics]:
                nodes.append({"Name": f"{topic}: {subtopic}", "parent": topic_row, "Level": 3})
            n_topics += 1
    table = pd.DataFrame(nodes)
    # The first root has the id 3, as in the official file. The other ids are drawn from 4 upwards.
    ids = np.random.default_rng(0).choice(np.arange(4, HIGHEST_ID + 1), len(nodes), replace=False)
    ids[0] = 3
    table["SubjectId"] = ids
    # `map` replaces the row number of each parent by the parent's id. A root has -1 there, which is
    # the number of no row, so it gets an empty ParentId.
    table["ParentId"] = table["parent"].map(table["SubjectId"]).astype("Int32")
    return table


def write_subject_lists(subjects: pd.DataFrame, leaves: Leaves) -> list[str]:
    """Return a text for each question, such as ``[3, 71, 98]``.

    The text lists the ids of the question's leaves and of all their ancestors, sorted.
    """
    # Maps the row number of each subject to the ids of the subject and of its ancestors. The parent
    # of a root is -1, which is the number of no row: the set of ids for -1 is empty.
    ids_with_ancestors: dict[int, set[int]] = {-1: set()}
    subject_ids = subjects["SubjectId"].tolist()
    # Parents come before their children in the table, so the ids of the parent are already known.
    for row, (subject_id, parent) in enumerate(zip(subject_ids, subjects["parent"], strict=True)):
        ids_with_ancestors[row] = {subject_id} | ids_with_ancestors[parent]
    lists = []
    for question_leaves in leaves:
        ids: set[int] = set()
        for leaf in question_leaves:
            ids |= ids_with_ancestors[leaf]
        lists.append(str(sorted(ids)))
    return lists


def draw_subject_lists(
    rng: Rng, subjects: pd.DataFrame, n_questions: int, n_topics: int
) -> tuple[Leaves, Array]:
    """Draw which subjects each question is about.

    Topics are the subjects of level 2 in the tree `subjects`, such as "Powers". The subtopics of a
    topic are leaves of the tree. The questions use only `n_topics` topics, which are drawn at
    random. Each question has a topic and one leaf of this topic. A few questions have a second
    leaf: the first leaf of a topic that is drawn at random from the `n_topics` topics.

    Returns
    -------
    leaves : list of tuples
        The leaves of each question, as row numbers of `subjects`.
    topic : array of int32, shape (n_questions,)
        The topic of each question, in increasing order. Topics are numbered from 0 in the order of
        the table.
    """
    # For each topic, in the order of the table: the row numbers of its leaves. The parent of a leaf
    # is its topic.
    is_leaf = subjects["Level"] == 3
    leaves_by_parent = subjects[is_leaf].groupby("parent").groups
    leaves_of_topic = list(leaves_by_parent.values())
    used_topics = rng.permutation(len(leaves_of_topic))[:n_topics]
    # Topics have random weights, so that some topics have more questions than others.
    weight = rng.lognormal(0, 1, n_topics)
    topic = np.sort(rng.choice(used_topics, n_questions, p=weight / weight.sum()))
    leaves: Leaves = []
    for question_topic in topic:
        candidates = leaves_of_topic[question_topic]
        # The square of a random number from 0 to 1 is more often near 0 than near 1. So a question
        # more often gets one of the first leaves of its topic than one of the last.
        index = int(len(candidates) * rng.random() ** 2)
        question_leaves: tuple[int, ...] = (candidates[index],)
        if rng.random() < SECOND_LEAF_SHARE:
            second_topic = used_topics[int(n_topics * rng.random())]
            first_leaf = leaves_of_topic[second_topic][0]
            question_leaves += (first_leaf,)
        leaves.append(question_leaves)
    return leaves, topic.astype(np.int32)
