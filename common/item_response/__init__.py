"""Multidimensional item response theory with the context of an answer.

    model = fit(student, question, is_correct)          learn from answers
    predict(model, student, question)                   P(right) for any pairs, unknown ones too

and for the options chosen `fit_options` and `predict_options`. Ids are whole numbers of any size.
Read `model` for the mathematics, `context` for that of contexts, `fitting` for the start and the
loop; `similarity` finds contexts where none are known; `blocks` makes it fast.
"""

from common.item_response.blocks import ItemResponseModel
from common.item_response.fitting import DEFAULT_DIMENSIONS, fit
from common.item_response.options import OptionModel, fit_options, order_options, predict_options
from common.item_response.prediction import explain, predict
from common.item_response.similarity import cluster_questions

__all__ = [
    "DEFAULT_DIMENSIONS",
    "ItemResponseModel",
    "OptionModel",
    "cluster_questions",
    "explain",
    "fit",
    "fit_options",
    "order_options",
    "predict",
    "predict_options",
]
