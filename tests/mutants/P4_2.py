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

# %% wrong: the first name -> the first name is returned
def most_stable_configuration(experiment):
    return next(iter(experiment))

# %% wrong: the last name -> the last name is returned
def most_stable_configuration(experiment):
    return list(experiment)[-1]

# %% wrong: the first in the alphabet -> the names are compared
def most_stable_configuration(experiment):
    return min(experiment)

# %% wrong: the name from the lesson
def most_stable_configuration(experiment):
    return "pre-norm residual"

# %% wrong: forgets the absolute value -> use the size of the logarithm
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: log_ratios(experiment[name]).max())

# %% wrong: absolute value after the maximum -> the logarithm keeps its sign
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: abs(log_ratios(experiment[name]).max()))

# %% wrong: only what vanishes counts -> only what falls counts
def most_stable_configuration(experiment):
    return max(experiment, key=lambda name: log_ratios(experiment[name]).min())

# %% wrong: the least stable -> the largest worst log-ratio is chosen
def most_stable_configuration(experiment):
    return max(experiment, key=lambda name: np.abs(log_ratios(experiment[name])).max())

# %% wrong: the last depth alone -> look at all depths
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: abs(log_ratios(experiment[name])[-1]))

# %% wrong: the second depth alone -> look at all depths
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: abs(log_ratios(experiment[name])[1]))

# %% wrong: leaves out the last depth -> the last depth is left out
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

# %% wrong: the sum of log-ratios, signs cancel -> log-ratios of either sign cancel in the sum
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: abs(log_ratios(experiment[name]).sum()))

# %% wrong: the root of the mean square -> log-ratios are averaged over depths (as squares)
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.sqrt((log_ratios(experiment[name]) ** 2).mean()))

# %% wrong: ratios without the logarithm -> ratios are compared without the logarithm
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.exp(log_ratios(experiment[name])) - 1).max())

# %% wrong: differences from the first norm -> norms are subtracted
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.array(experiment[name]) - experiment[name][0]).max())

# %% wrong: inverse ratios without the logarithm -> inverse ratios are compared without the logarithm
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.exp(-log_ratios(experiment[name])) - 1).max())

# %% wrong: distance from one -> divide every norm by the first norm of the same configuration
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.array(experiment[name]) - 1).max())

# %% wrong: logarithm of the norms -> divide every norm by the first norm of the same configuration
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.log(experiment[name])).max())

# %% wrong: the first norm of the first configuration -> every configuration is compared with the first norm of the first one
def most_stable_configuration(experiment):
    reference = next(iter(experiment.values()))[0]
    return min(experiment, key=lambda name: np.abs(np.log(np.array(experiment[name]) / reference)).max())

# %% wrong: compared with the depth before -> distances are not taken from the configuration's first norm
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.diff(np.log(experiment[name]))).max())

# %% wrong: compared with the last norm -> distances are not taken from the configuration's first norm
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.log(np.array(experiment[name]) / experiment[name][-1])).max())

# %% wrong: compared with the mean norm -> distances are not taken from the configuration's first norm
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.log(experiment[name] / np.mean(experiment[name]))).max())

# %% wrong: the narrowest band -> distances are not taken from the configuration's first norm
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.ptp(np.log(experiment[name])))

# %% wrong: the smallest standard deviation
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.std(experiment[name]))

# %% wrong: the largest final norm -> the largest last norm is chosen
def most_stable_configuration(experiment):
    return max(experiment, key=lambda name: experiment[name][-1])

# %% wrong: the smallest final norm -> the smallest last norm is chosen
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

# %% right: a generator, log10 and a default argument
def most_stable_configuration(experiment, log=np.log10):
    return min((max(abs(log(n) - log(norms[0])) for n in norms), name) for name, norms in experiment.items())[1]

# %% right: worst ratio, larger over smaller
most_stable_configuration = lambda experiment: min(experiment, key=lambda k: max(max(n, experiment[k][0]) / min(n, experiment[k][0]) for n in experiment[k]))

# %% right: float32 and masked arrays
def most_stable_configuration(experiment):
    best = {k: np.ma.masked_invalid(np.abs(np.log(np.array(v, dtype=np.float32) / np.float32(v[0])))).max() for k, v in experiment.items()}
    return sorted(best.items(), key=lambda pair: pair[1])[0][0]

# %% wrong: log1p of ratios
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.log1p(np.array(experiment[name]) / experiment[name][0]) - np.log(2)).max())

# %% wrong: square of the ratio minus one
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: (((np.array(experiment[name]) / experiment[name][0]) - 1) ** 2).max())

# %% wrong: sorts the norms first
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(log_ratios(sorted(experiment[name]))).max())

# %% wrong: upper name in place of its own spelling
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(log_ratios(experiment[name])).max()).lower().capitalize() + " "

# %% wrong: last two depths
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(log_ratios(experiment[name])[-2:]).max())

# %% wrong: truncated logarithms
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.abs(np.trunc(log_ratios(experiment[name]))).max())

# %% wrong: ninetieth percentile
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: np.percentile(np.abs(log_ratios(experiment[name])), 75))

# %% wrong: slope of a fitted line
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: abs(np.polyfit(np.arange(len(experiment[name])), log_ratios(experiment[name]), 1)[0]))

# %% wrong: product of ratios
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: abs(np.log(np.prod(np.array(experiment[name]) / experiment[name][0]))))

# %% wrong: a tuple around the name
def most_stable_configuration(experiment):
    return (min(experiment, key=lambda name: np.abs(log_ratios(experiment[name])).max()),)

# %% wrong: smallest count of depths beyond a factor two
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: int((np.abs(log_ratios(experiment[name])) > np.log(2)).sum()))

# %% wrong: a ratio of logarithms -> logarithms are divided
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: max(abs(math.log(norm) / math.log(experiment[name][0])) for norm in experiment[name]))

# %% wrong: logarithm of the difference
def most_stable_configuration(experiment):
    return min(experiment, key=lambda name: max(abs(math.log(abs(norm - experiment[name][0]) + 1e-12)) for norm in experiment[name][1:]))
