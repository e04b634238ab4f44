"""What the four tasks share: paths, columns, reading, writing, metrics, submissions, scores."""

from common import requirements as requirements
