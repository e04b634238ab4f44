"""A table of what is known about each answer before it is given, a column for each feature.

    pairs = read_pairs(answers, template, metadata)
    groups = available_groups(pairs, answers)
    *parts, template_part = tables(pairs, answers, groups, seed)

`pairs` says who was asked what, and when, without outcomes. Each of the parts holds some training
answers with their features; the last part is the template. The groups of features are functions in
`groups.py`. `Known` holds the outcomes that they may use.

No feature may contain the outcome of its own row. A success rate that counts the answer itself, for
instance, would leak its outcome. Therefore a part of the training answers is held out, and its
features are computed from a `Known` without that part. A part is at most 20 % of the training
answers (see `parts.py`), so that its features are computed from nearly as many answers as those of
the template. With larger parts, the training features would rest on fewer answers than those of the
template, and a model would trust the template's features too little.
"""

from common.answer_features.groups import GROUPS, available_groups
from common.answer_features.known import Known
from common.answer_features.pairs import Pairs, read_pairs
from common.answer_features.parts import table, tables

__all__ = ["GROUPS", "Known", "Pairs", "available_groups", "read_pairs", "table", "tables"]
