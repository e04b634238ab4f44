"""The game of task 4: ten questions for each student, played by an entry in its own process."""
