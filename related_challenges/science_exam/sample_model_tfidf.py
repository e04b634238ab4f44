"""Science exam baseline: the option whose TF-IDF vector is nearest to the question's first.

Run:     python related_challenges/science_exam/sample_model_tfidf.py
         python related_challenges/science_exam/local_evaluation.py
Writes:  data/test_output/submission.csv
Scores:  0.30 on the 200 public questions, worse than chance (0.3667); tests/benchmarks says why
"""

from common import challenge, cli

import exam
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer


def main() -> None:
    """Load, model, predict, write."""
    p = challenge.model_parser(__doc__, __file__)
    cli.add_file(p, "--test_data", exam.TEST)
    options = p.parse_args()
    questions = exam.read_questions(options.input_dir / options.test_data, answers=False)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `questions`. Out: `scores`, shape (questions, 5); the highest is guessed first.
    texts = exam.texts_of(questions)
    vectorizer = TfidfVectorizer().fit([*questions["prompt"], *texts])
    prompt_vectors = vectorizer.transform(np.repeat(questions["prompt"], len(exam.LABELS)))
    # The vectors have length 1, so that their product is the cosine.
    cosine = prompt_vectors.multiply(vectorizer.transform(texts)).sum(axis=1)
    scores = np.asarray(cosine).reshape(len(questions), len(exam.LABELS))
    # ---- End of the model. --------------------------------------------------------------------

    exam.write_predictions(options.output_dir / options.output_file, questions, scores)


if __name__ == "__main__":
    cli.run(main)
