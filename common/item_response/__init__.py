"""Multidimensional item response theory; answers in one context, such as a quiz, share an effect.

    model = ItemResponse().fit(student, question, is_correct)
    p_right = model.predict_proba(student, question)[:, 1]

`ItemResponseOptions` does the same for the options chosen. MODEL.md in this folder explains the
mathematics, the words of the code, the numerics and the speed. Read the modules in this order:

- `estimator` and `options`: the two estimators; `base` and `checks` hold what they share.
- `model` and `context`: the mathematics of answers, and of contexts.
- `choice`: settings that held-out answers choose.
- `fitting`: the course of a fit; `start` has its beginning, `steps` a single step.
- `observations`: how answers are sorted; `prediction`: from a posterior to probabilities.
- `further_answers`: new students, and answers that come after a fit; `saved`: files of a fit.
- `mastery`: what students are expected to know of each subject; `unknown_contexts`: a fit without
  its contexts, or with subjects in their place.
- `question_statistics`: parameters and fit of questions; `left_out`, `dependence`, `differential`
  and `significance` are its parts.
- `table`: the estimator for a DataFrame with ids of any type.
- `habits`: which option students prefer; `similarity`: contexts where none are known.
"""

from common.item_response.choice import DEFAULT_DIMENSIONS, DEFAULT_GUESSING
from common.item_response.estimator import ItemResponse
from common.item_response.further_answers import Abilities
from common.item_response.options import ItemResponseOptions
from common.item_response.table import FittedTable

__all__ = [
    "DEFAULT_DIMENSIONS",
    "DEFAULT_GUESSING",
    "Abilities",
    "FittedTable",
    "ItemResponse",
    "ItemResponseOptions",
]
