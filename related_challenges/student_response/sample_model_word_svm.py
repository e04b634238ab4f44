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
    answers, splits = responses.read(options)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `label` of those to learn from. Out: `prediction`, a label's number for each.
    similarities = similarity.describe(answers)
    in_question = [
        " ".join(f"{number}_{word}" for word in similarity.words(text))
        for number, text in zip(answers["question"], answers["text"], strict=True)
    ]
    prediction = np.empty(len(answers), int)
    for train, test, label in tqdm(splits, "folds", disable=None):
        pieces = {"analyzer": "char_wb", "ngram_range": (2, 5)}
        terms = [
            similarity.weigh_terms(answers["text"], train, ngram_range=(1, 2)),
            similarity.weigh_terms(answers["text"], train, **pieces),
            similarity.weigh_terms(in_question, train, token_pattern=r"\S+"),
        ]
        # Divided by 4, so that each weighs about as much as a text's vector.
        scaled = StandardScaler().fit(similarities[train]).transform(similarities) / 4
        features = csr_array(hstack([*terms, csr_array(scaled)]))
        model = LinearSVC(C=0.3, random_state=0).fit(features[train], label[train])
        prediction[test] = model.predict(features[test])
    # ---- End of the model. --------------------------------------------------------------------

    responses.write(options, answers, prediction)


if __name__ == "__main__":
    cli.run(main)
