"""An entry as entrants of 2020 wrote them: `select_feature`, a list, loops, no type hints."""

import numpy as np
from model import MyModel


class Submission:
    def __init__(self):
        self.model = MyModel()

    def select_feature(self, masked_data, masked_binary_data, can_query):
        ability = self.model.ability(masked_data, masked_binary_data)
        selections = []
        for i in range(masked_data.shape[0]):
            candidates = np.where(can_query[i, :] == 1)[0]
            distance = np.abs(self.model.difficulty[candidates] - ability[i])
            selections.append(candidates[np.argmin(distance)])
        return selections

    def update_model(self, masked_data, masked_binary_data, can_query):
        pass

    def predict(self, masked_data, masked_binary_data):
        ability = self.model.ability(masked_data, masked_binary_data)
        return (ability[:, None] + 1 - self.model.difficulty[None, :] > 1).astype(float)
