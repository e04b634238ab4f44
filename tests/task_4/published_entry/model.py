"""A model as entrants of 2020 wrote them: paths from the working directory, zeros mean unobserved."""

import numpy as np


class MyModel:
    def __init__(self):
        self.difficulty = np.load("./model_task_4_difficulty.npy")

    def ability(self, masked_data, masked_binary_data):
        seen = masked_data != 0
        right = np.sum(masked_binary_data, axis=1)
        return (right + 1) / (np.sum(seen, axis=1) + 2)
