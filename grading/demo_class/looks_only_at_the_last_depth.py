import numpy as np


def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: abs(np.log(experiment[name][-1] / experiment[name][0])))
