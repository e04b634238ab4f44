"""Student responses sample model: a linear support vector machine on words and similarity.

Run:     python related_challenges/student_response/local_data_split.py
         python related_challenges/student_response/sample_model_word_svm.py --local
         python related_challenges/student_response/local_evaluation.py
With --test_dir DIR it predicts the test sets in DIR instead of the folds.
Writes:  data/test_output/submission.csv
Scores:  accuracy 0.720, macro F1 0.647 on the BEETLE training answers, 5 labels, 10 folds

The features are words, pairs of words, pieces of words (which forgive misspellings), words marked
with their question, and the eight measures of sample_model_lexical_similarity.py. How a word
counts depends on the question, so the model does worse on unseen questions (`--by_question`):
accuracy and macro F1 are 0.625 and 0.545. Those of sample_model_lexical_similarity.py are 0.507 and
0.419.
"""

import argparse

from common import cli

import numpy as np
import responses
import similarity
from scipy.sparse import csr_array, hstack
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from tqdm import tqdm


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return responses.model_parser(__doc__)


def main() -> None:
    """Read the answers, fit the models, predict and write the submission."""
    options = build_parser().parse_args()
    # Each fit learns from some of the answers and predicts others; `fits` says which.
    answers, fits = responses.read_fits(options)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, and three arrays for each fit in `fits`. `train` and `test` are masks of the
    # answers to learn from and of the answers to predict. `label` holds the label number of each
    # answer, which is known only where `train` is true.
    # Out: `prediction`, the label number of every answer to predict, shape (answers,).
    similarities = similarity.describe(answers)
    words_with_question = similarity.words_with_question(answers, similarity.words)
    texts = answers["text"].tolist()
    prediction = np.empty(len(answers), int)
    for train, test, label in tqdm(fits, "folds", disable=None):
        terms = [
            similarity.tfidf_matrix(texts, train, ngram_range=(1, 2)),
            similarity.tfidf_matrix(texts, train, analyzer="char_wb", ngram_range=(2, 5)),
            similarity.tfidf_matrix(words_with_question, train, token_pattern=r"\S+"),
        ]
        # The SVM learns more from features that vary more. So make the eight measures vary about as
        # much as the words: with standard deviations of 1/4, they are a vector of length √8 / 4 ≈
        # 0.7, and a TF-IDF vector has the length 1.
        scaled = StandardScaler().fit(similarities[train]).transform(similarities) / 4
        features = csr_array(hstack([*terms, csr_array(scaled)]))
        model = LinearSVC(C=0.3, random_state=0).fit(features[train], label[train])
        prediction[test] = model.predict(features[test])
    # ---- End of the model. --------------------------------------------------------------------

    responses.write(options, answers, prediction)


if __name__ == "__main__":
    cli.run(main)
