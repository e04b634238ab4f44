"""The record of all scores, the pages that show them, and their charts."""
