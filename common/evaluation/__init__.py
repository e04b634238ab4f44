"""How a submission becomes a score: match → score → explain → publish.

- match: read a submission and the true answers, check both, bring them together
  (`pairs.match`, `ranking.match`; in task 4 the entry asks its questions and predicts)
- score: compute the metric, a `common.metrics.Score` (`pairs.score`, `ranking.score`)
- explain: add what the page shows beside the score (`pairs.explain`, `ranking.explain`)
- publish: write the files, record the score, print it (`score_files.publish`)

Hosting, cross-validation and the tools take the same steps, and leave out those they do not need.
"""
