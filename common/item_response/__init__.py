"""Multidimensional item response theory: the best single model for right or wrong answers.

    model = fit(student, question, is_correct)          learn from answers
    predict(model, student, question)                   P(right) for any pairs, unknown ones too
    student_posterior(model, student, question, is_correct)    new students, the same questions

and for the options chosen `fit_options` and `predict_options`. Ids are whole numbers of any size.

Read `model` for the mathematics, `fitting` for the loop and its early stopping, `options` for how
an option becomes several right/wrong items; `start` finds where to begin, `blocks` makes it fast.
"""

from common.item_response.fitting import (
    DEFAULT_DIMENSIONS,
    ItemResponseModel,
    fit,
    predict,
    student_posterior,
)
from common.item_response.options import (
    OptionModel,
    fit_options,
    order_options,
    predict_options,
)

__all__ = [
    "DEFAULT_DIMENSIONS",
    "ItemResponseModel",
    "OptionModel",
    "fit",
    "fit_options",
    "order_options",
    "predict",
    "predict_options",
    "student_posterior",
]
