# %% setup
import math

import numpy as np


def log_ratios(norms):
    norms = np.asarray(norms, dtype=float)
    return np.log(norms / norms[0])


# %% right: base 2, a sorted list
def most_stable_configuration(experiment):
    return sorted(experiment, key=lambda name: np.abs(np.log2(np.array(experiment[name]) / experiment[name][0])).max())[0]

# %% right: ratios and their inverses, no logarithm
def most_stable_configuration(experiment):
    def worst(norms):
        return max(max(norm / norms[0], norms[0] / norm) for norm in norms)

    return min(experiment, key=lambda name: worst(experiment[name]))

# %% right: a NumPy string
def most_stable_configuration(experiment):
    names = np.array(list(experiment))
    return names[np.argmin([np.abs(log_ratios(experiment[name])).max() for name in names])]

# %% right: a loop with math.log
def most_stable_configuration(experiment):
    best, smallest = "", math.inf
    for name, norms in experiment.items():
        worst = 0.0
        for norm in list(norms)[1:]:
            worst = max(worst, abs(math.log(norm) - math.log(norms[0])))
        if worst < smallest:
            best, smallest = name, worst
    return best

# %% right: the range from the smallest to the largest log-ratio
def most_stable_configuration(experiment):
    def worst(name):
        ratios = log_ratios(experiment[name])
        return max(ratios.max(), -ratios.min())

    return min(experiment, key=worst)

# %% right: squares of logarithms
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: (log_ratios(experiment[name]) ** 2).max())

# %% right: one array for the whole experiment
def most_stable_configuration(experiment):
    table = np.log(np.array(list(experiment.values())))
    return list(experiment)[np.linalg.norm(table - table[:, :1], ord=np.inf, axis=1).argmin()]

# %% wrong: the first name
def most_stable_configuration(experiment):
    return next(iter(experiment))

# %% wrong: the last name
def most_stable_configuration(experiment):
    return list(experiment)[-1]

# %% wrong: the first in the alphabet
def most_stable_configuration(experiment):
    return min(experiment)

# %% wrong: the name from the lesson
def most_stable_configuration(experiment):
    return "pre-norm residual"

# %% wrong: forgets the absolute value -> use the size of the logarithm
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: log_ratios(experiment[name]).max())

# %% wrong: absolute value after the maximum
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: abs(log_ratios(experiment[name]).max()))

# %% wrong: only what vanishes counts
def most_stable_configuration(experiment):
    return max(experiment, key=lambda name: log_ratios(experiment[name]).min())

# %% wrong: the least stable
def most_stable_configuration(experiment):
    return max(experiment, key=lambda name: np.abs(log_ratios(experiment[name])).max())

# %% wrong: the last depth alone -> look at all depths
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: abs(log_ratios(experiment[name])[-1]))

# %% wrong: the second depth alone -> look at all depths
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: abs(log_ratios(experiment[name])[1]))

# %% wrong: leaves out the last depth
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(log_ratios(experiment[name])[:-1]).max())

# %% wrong: the average over depths -> neither at the last alone nor at an average
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(log_ratios(experiment[name])).mean())

# %% wrong: the median over depths
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.median(np.abs(log_ratios(experiment[name]))))

# %% wrong: the smallest log-ratio instead of the largest
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(log_ratios(experiment[name])[1:]).min())

# %% wrong: the sum of log-ratios, signs cancel
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: abs(log_ratios(experiment[name]).sum()))

# %% wrong: the root of the mean square
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.sqrt((log_ratios(experiment[name]) ** 2).mean()))

# %% wrong: ratios without the logarithm
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.exp(log_ratios(experiment[name])) - 1).max())

# %% wrong: differences from the first norm
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.array(experiment[name]) - experiment[name][0]).max())

# %% wrong: inverse ratios without the logarithm
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.exp(-log_ratios(experiment[name])) - 1).max())

# %% wrong: distance from one -> divide every norm by the first norm of the same configuration
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.array(experiment[name]) - 1).max())

# %% wrong: logarithm of the norms -> divide every norm by the first norm of the same configuration
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.log(experiment[name])).max())

# %% wrong: the first norm of the first configuration
def most_stable_configuration(experiment):
    reference = next(iter(experiment.values()))[0]
    return min(experiment, key=lambda name: np.abs(np.log(np.array(experiment[name]) / reference)).max())

# %% wrong: compared with the depth before
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.diff(np.log(experiment[name]))).max())

# %% wrong: compared with the last norm
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.log(np.array(experiment[name]) / experiment[name][-1])).max())

# %% wrong: compared with the mean norm
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.log(experiment[name] / np.mean(experiment[name]))).max())

# %% wrong: the narrowest band
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.ptp(np.log(experiment[name])))

# %% wrong: the smallest standard deviation
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.std(experiment[name]))

# %% wrong: the largest final norm
def most_stable_configuration(experiment):
    return max(experiment, key=lambda name: experiment[name][-1])

# %% wrong: the smallest final norm
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: experiment[name][-1])

# %% wrong: returns the number -> the name of a configuration was expected
def most_stable_configuration(experiment):
    return float(min(np.abs(log_ratios(norms)).max() for norms in experiment.values()))

# %% wrong: returns the index -> the name of a configuration was expected
def most_stable_configuration(experiment):
    return int(np.argmin([np.abs(log_ratios(norms)).max() for norms in experiment.values()]))

# %% wrong: returns name and number -> the name of a configuration was expected
def most_stable_configuration(experiment):
    worst = {name: float(np.abs(log_ratios(norms)).max()) for name, norms in experiment.items()}
    return min(worst.items(), key=lambda item: item[1])

# %% wrong: empties the experiment -> changed in place
def most_stable_configuration(experiment):
    worst = {}
    while experiment:
        name, norms = experiment.popitem()
        worst[name] = np.abs(log_ratios(norms)).max()
    return min(worst, key=worst.get)

# %% wrong: forgets to return -> the name of a configuration was expected
def most_stable_configuration(experiment):
    min(experiment, key=lambda name: np.abs(log_ratios(experiment[name])).max())
