"""What is known about an answer before it is given, as a table of features: one row, one answer.

    pairs = read_pairs(answers, template, metadata)       whom was asked what, and when; no outcomes
    for held_out in hold_out(len(answers), seed):         few of the training answers at a time
        known = know(pairs, answers, held_out)            all other outcomes, which may be used
        table(pairs, known, rows held out, groups)        the features of the answers held out
    table(pairs, know(pairs, answers), template rows, groups)      of what is to be predicted

A feature belongs to a group, and a group is a function of the pairs, of the known outcomes and of
the rows asked for; `GROUPS` names them all, and what each needs to be known.

What an answer's own outcome could leak into is the trap here: a student's success rate that counts
the answer itself, or the prediction of a model that has learned from it, tells the outcome of a
training answer but not that of an answer to be predicted. So no function is ever given the outcomes
of the rows it is asked for: for training answers, those outcomes are held out of `Known`. A share
of 5 % at a time, since features of rows for which much less is known would be another distribution
than those of the template: a model that learned from them would trust them too little.
"""

from common.answer_features.groups import GROUPS, available_groups, table
from common.answer_features.known import Known, hold_out, know
from common.answer_features.nearest import nearest_answers, similar_questions
from common.answer_features.pairs import Pairs, read_pairs
from common.answer_features.rates import Columns

__all__ = [
    "GROUPS",
    "Columns",
    "Known",
    "Pairs",
    "available_groups",
    "hold_out",
    "know",
    "nearest_answers",
    "read_pairs",
    "similar_questions",
    "table",
]
