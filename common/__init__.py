"""Code that the four tasks share: paths, columns, files, metrics, submissions and scores."""

from common import requirements as requirements
