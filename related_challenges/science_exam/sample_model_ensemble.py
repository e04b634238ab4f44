"""Science exam sample model: other samples' scores and the options' words, blended by a ranker.

Run:     python related_challenges/science_exam/sample_model_ensemble.py
         python related_challenges/science_exam/local_evaluation.py
Writes:  data/test_output/submission.csv
Scores:  0.58 on the 200 public questions, as the longest option first (0.58); of the other samples
         alone (--members length overlap cosine) 0.56

Each member scores the options of a question: by length, by words shared with the question, by
cosine with it, or by its own words, each a feature. A pairwise logistic ranker weighs them, as in
sample_model_ranker.py; its penalty is chosen by cross-validation inside the training questions. No
question is predicted by a model that has seen its answer: each fold is predicted by a model trained
on the others, questions that are not among the training ones by a model trained on all.
"""

from common import challenge, cli, folds

import exam
import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack, vstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from tqdm import tqdm

N_FOLDS, N_INNER_FOLDS = 10, 5
# Of the ranker; the larger, the less it is held back.
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
MEMBERS = ("length", "overlap", "cosine", "words")
# A word counts if so many options hold it.
MIN_OPTIONS = 5


def main() -> None:
    """Load, model, predict, write."""
    p = challenge.model_parser(__doc__, __file__)
    cli.add_file(p, "--train_data", exam.TRAIN)
    cli.add_file(p, "--test_data", exam.TEST)
    p.add_argument("--seed", type=cli.seed, metavar="N", default=0, help="of the folds (default 0)")
    p.add_argument(
        "--members",
        nargs="+",
        choices=MEMBERS,
        default=["length", "words"],
        metavar="NAME",
        help=f"what to blend, of {', '.join(MEMBERS)} (default length words)",
    )
    options = p.parse_args()
    train = exam.read_questions(options.input_dir / options.train_data, answers=True)
    questions = exam.read_questions(options.input_dir / options.test_data, answers=False)
    fold, test_fold = exam.assign_folds(train, questions, N_FOLDS, options.seed)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `train`, `questions` and their folds. Out: `scores`, shape (questions, 5).
    answer = exam.right_options(train)
    scores = np.empty((len(questions), len(exam.LABELS)))
    for number in tqdm(np.unique(test_fold), "folds", disable=None):
        rows = np.flatnonzero(fold != number)
        vectorizer = TfidfVectorizer(min_df=min(MIN_OPTIONS, len(rows)), sublinear_tf=True)
        vectorizer.fit(exam.texts_of(train.iloc[rows]))
        known, features = (describe(one, options.members, vectorizer) for one in (train, questions))
        weights = fit_ranker(known, answer, rows, options.seed)
        scores[test_fold == number] = (features @ weights).reshape(scores.shape)[
            test_fold == number
        ]
    # ---- End of the model. --------------------------------------------------------------------

    exam.write_predictions(options.output_dir / options.output_file, questions, scores)


def describe(questions: pd.DataFrame, members: list[str], vectorizer: TfidfVectorizer) -> csr_array:
    """Describe every option by what the members say of it, shape (5 * questions, features).

    A score is standardised within its question; of words there are TF-IDF weights.
    """
    texts = exam.texts_of(questions)
    prompts = np.repeat(questions["prompt"], len(exam.LABELS))
    blocks = []
    for member in members:
        if member == "words":
            blocks.append(csr_array(vectorizer.transform(texts)))
            continue
        if member == "length":
            score = np.array([len(text) for text in texts], float)
        elif member == "overlap":
            score = exam.shared_words(questions)
        else:
            whole = TfidfVectorizer().fit([*questions["prompt"], *texts])
            product = whole.transform(prompts).multiply(whole.transform(texts))
            score = np.asarray(product.sum(axis=1)).ravel()
        score = score.reshape(len(questions), -1)
        deviation = score.std(axis=1, keepdims=True)
        score = (score - score.mean(axis=1, keepdims=True)) / np.where(deviation, deviation, 1)
        blocks.append(csr_array(score.reshape(-1, 1)))
    return csr_array(hstack(blocks))


def fit_ranker(
    features: csr_array, answer: folds.IntArray, rows: folds.IntArray, seed: int
) -> exam.FloatArray:
    """Fit weights such that the right option of a question scores more than each wrong one.

    Learned from are the rows of questions given; the features are of all options. The penalty is
    chosen by the log loss of pairs, in folds of the seed. The shape is (features,).
    """
    n_options = len(exam.LABELS)
    others = np.array([[o for o in range(n_options) if o != a] for a in range(n_options)])
    right = np.repeat(n_options * rows + answer[rows], n_options - 1)
    wrong = (n_options * rows[:, None] + others[answer[rows]]).ravel()
    difference = features[right] - features[wrong]
    # Each pair in both orders, so that there are two classes to tell apart.
    both = csr_array(vstack([difference, -difference]))
    label = np.repeat([1, 0], len(right))
    question = np.tile(np.repeat(np.arange(len(rows)), n_options - 1), 2)
    inner = folds.assign_folds(question, min(N_INNER_FOLDS, len(rows)), seed)
    model = LogisticRegressionCV(
        Cs=PENALTIES,
        cv=[(np.flatnonzero(a), np.flatnonzero(b)) for a, b in folds.splits(inner)],
        scoring="neg_log_loss",
        fit_intercept=False,
        solver="liblinear",
        # As scikit-learn 1.10 will have them by default.
        l1_ratios=(0,),
        use_legacy_attributes=False,
    ).fit(both, label)
    return np.asarray(model.coef_[0])


if __name__ == "__main__":
    cli.run(main)
