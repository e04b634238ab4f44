"""Student responses sample model: a linear support vector machine on words and similarity.

Run:     python related_challenges/student_response/local_data_split.py
         python related_challenges/student_response/sample_model_word_svm.py
         python related_challenges/student_response/local_evaluation.py
         (--test_dir DIR predicts the test sets in DIR instead of folds)
Writes:  data/test_output/submission.csv
Scores:  accuracy 0.718, macro F1 0.647 on the BEETLE training answers, 5-way, 10 folds

The features are words, pairs of words, pieces of words (which forgive misspellings), words together
with the question they answer, and the eight measures of similarity of the decision tree
(sample_model_lexical_similarity.py). What a word says about an answer depends on the question. On
unseen questions (`--by_question`) accuracy and macro F1 are therefore 0.626 and 0.546; those of the
tree are 0.528 and 0.435.
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
    """Load, model, predict, write."""
    options = build_parser().parse_args()
    answers, splits = responses.read_fits(options)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers` and `splits`: rows to learn from, rows to predict, label numbers of the former.
    # Out: `prediction`, the label number of every answer to predict, shape (answers,).
    similarities = similarity.describe(answers)
    in_question = similarity.words_with_question(answers, similarity.words)
    prediction = np.empty(len(answers), int)
    for train, test, label in tqdm(splits, "folds", disable=None):
        text = answers["text"]
        terms = [
            similarity.tfidf_matrix(text, train, ngram_range=(1, 2)),
            similarity.tfidf_matrix(text, train, analyzer="char_wb", ngram_range=(2, 5)),
            similarity.tfidf_matrix(in_question, train, token_pattern=r"\S+"),
        ]
        # Divided by 4, so that each measure weighs about as much as a text's vector.
        scaled = StandardScaler().fit(similarities[train]).transform(similarities) / 4
        features = csr_array(hstack([*terms, csr_array(scaled)]))
        model = LinearSVC(C=0.3, random_state=0).fit(features[train], label[train])
        prediction[test] = model.predict(features[test])
    # ---- End of the model. --------------------------------------------------------------------

    responses.write(options, answers, prediction)


if __name__ == "__main__":
    cli.run(main)
