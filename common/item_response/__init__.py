"""Multidimensional item response theory with the context of an answer.

    model = fit(student, question, is_correct)          learn from answers
    predict(model, student, question)                   P(right) for any pairs, unknown ones too

and for the options chosen `fit_options` and `predict_options`. Ids are whole numbers of any size.
Read `model` for the mathematics, `context` for that of contexts, `fitting` for the start and the
loop; `similarity` finds contexts where none are known, `prediction` also tells what predictions
consist of; `blocks` makes it fast.
"""

from common.item_response.fitting import DEFAULT_DIMENSIONS, fit
from common.item_response.options import fit_options, predict_options
from common.item_response.prediction import predict

__all__ = ["DEFAULT_DIMENSIONS", "fit", "fit_options", "predict", "predict_options"]
