"""Student responses sample model: a linear support vector machine on words and similarity.

Run:     python related_challenges/student_response/local_data_split.py
         python related_challenges/student_response/sample_model_word_svm.py
         python related_challenges/student_response/local_evaluation.py
         (--test_dir DIR predicts the test sets in DIR instead of folds)
Writes:  data/test_output/submission.csv
Scores:  accuracy 0.718, macro F1 0.647 on the BEETLE training answers, 5-way, 10 folds

The features are words, pairs of words, pieces of words (which forgive misspellings), words together
with the question they answer, and the eight measures of similarity of the decision tree. What a
word says about an answer depends on the question: with unseen questions (`--by_question`) it gets
0.626 and 0.546, and the tree 0.528 and 0.435.
"""

from typing import Any

import numpy as np
import similarity
import train_and_test
from scipy.sparse import csr_array, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from tqdm import tqdm

from common import challenge, cli, folds


def main() -> None:
    """Load, model, predict, write."""
    p = challenge.model_parser(__doc__, __file__)
    train_and_test.add_flags(p, __file__)
    options = p.parse_args()
    answers, splits = train_and_test.read(options)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`. Out: `prediction`, a label's number for each, learnt from others only.
    similarities = similarity.describe(answers)
    in_question = [
        " ".join(f"{number}_{word}" for word in similarity.words(text))
        for number, text in zip(answers.question, answers.texts, strict=True)
    ]
    prediction = np.empty(len(answers), int)
    for train, test in tqdm(splits, "folds", disable=None):
        features = csr_array(
            hstack(
                [
                    weigh_terms(answers.texts, train, ngram_range=(1, 2)),
                    weigh_terms(answers.texts, train, analyzer="char_wb", ngram_range=(2, 5)),
                    weigh_terms(in_question, train, token_pattern=r"\S+"),
                    # Divided by 4, so that each weighs about as much as a text's vector.
                    csr_array(
                        StandardScaler().fit(similarities[train]).transform(similarities) / 4
                    ),
                ]
            )
        )
        model = LinearSVC(C=0.3, random_state=0).fit(features[train], answers.label[train])
        prediction[test] = model.predict(features[test])
    # ---- End of the model. --------------------------------------------------------------------

    train_and_test.write(options, answers, prediction)


def weigh_terms(texts: list[str], train: folds.BoolArray, **terms: Any) -> csr_array:
    """Weigh the terms of all texts by TF-IDF, fitted to the training texts alone.

    Parameters
    ----------
    texts
        Shape (texts,).
    train
        Which texts to learn from.
    terms
        What counts as a term, as scikit-learn's `TfidfVectorizer` names it.
    """
    vectorizer = TfidfVectorizer(sublinear_tf=True, **terms)
    vectorizer.fit([text for text, is_train in zip(texts, train, strict=True) if is_train])
    return csr_array(vectorizer.transform(texts))


if __name__ == "__main__":
    cli.run(main)
