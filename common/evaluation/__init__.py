"""What an evaluation needs: scoring, what explains a score, the score files, the record."""
