"""What is known about an answer before it is given, as a table of features: one row, one answer.

    pairs = read_pairs(answers, template, metadata)     whom was asked what, and when; no outcomes
    *parts, asked = tables(pairs, answers, groups, seed)

Each of the parts holds training answers and their features (`table`), made from all outcomes but
those of the part. The last one is the template, made from all outcomes; of millions of answers,
from all but those of the part as well, so that nothing is made twice.

A feature belongs to a group, and a group is a function of the pairs, of the known outcomes and of
the rows asked for; `GROUPS` names them all, and what each needs to be known.

What an answer's own outcome could leak into is the trap here: a student's success rate that counts
the answer itself, or the prediction of a model that has learned from it, tells the outcome of a
training answer but not that of an answer to be predicted. So no function is ever given the outcomes
of the rows it is asked for: for training answers, those outcomes are held out of `Known`. A share
of 10 or 20 % at a time, since features of rows for which much less is known would be another
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
