import numpy as np


def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.log(np.array(experiment[name]) / experiment[name][0]).max())
