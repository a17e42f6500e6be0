import numpy as np


def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.array(experiment[name]) - 1).max())
