"""What is known about an answer before it is given, as a table of features: one row, one answer.

    pairs = read_pairs(answers, template, metadata)     whom was asked what, and when; no outcomes
    *parts, asked = tables(pairs, answers, groups, seed)

Each of the parts holds training answers with features (`GROUPS`) from all outcomes but its own; the
last one is the template. A success rate that counts the answer itself would leak its outcome, so no
function is ever given the outcomes of the rows it is asked for: they are held out of `Known`. A
share of 10 or 20 % at a time, since features of rows for which much less is known would be another
distribution than those of the template: a model that learned from them would trust them too little.
"""

from common.answer_features.groups import GROUPS
from common.answer_features.known import Known
from common.answer_features.nearest import nearest_answers, similar_questions
from common.answer_features.pairs import Pairs, read_pairs
from common.answer_features.tables import available_groups, table, tables

__all__ = [
    "GROUPS",
    "Known",
    "Pairs",
    "available_groups",
    "nearest_answers",
    "read_pairs",
    "similar_questions",
    "table",
    "tables",
]
