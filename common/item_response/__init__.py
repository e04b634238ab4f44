"""Multidimensional item response theory; answers in one context, such as a quiz, share an effect.

    model = ItemResponse().fit(student, question, is_correct)
    p_right = model.predict_proba(student, question)[:, 1]

`ItemResponseOptions` does the same for the options chosen. README.md in this folder explains the
mathematics, the words of the code, the numerics and the speed. Read the modules in this order:

- `estimator` and `options`: the two estimators; `base` and `checks` hold what they share.
- `model` and `context`: the mathematics of an answer, and that of contexts.
- `fitting`: how a fit goes on; `start` is where it begins, `steps` one step of it.
- `observations`: how answers are sorted; `prediction`: from a posterior to probabilities.
- `habits`: which option students prefer; `similarity`: contexts where none are known.
"""

from common.item_response.base import DEFAULT_DIMENSIONS
from common.item_response.estimator import ItemResponse
from common.item_response.options import ItemResponseOptions

__all__ = ["DEFAULT_DIMENSIONS", "ItemResponse", "ItemResponseOptions"]
