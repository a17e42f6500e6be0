# %% setup
import math

import numpy as np

# %% right: numpy and a clip
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = np.clip((step - warmup) / max(steps - 1 - warmup, 1), 0, 1)
    return peak * (final_share + (1 - final_share) * 0.5 * (1 + np.cos(np.pi * progress)))

# %% right: the cosine squared of half the angle
def learning_rate(step, steps, warmup, peak, final_share):
    if min(step, warmup) < 0 or steps <= 0:
        raise ValueError(step)
    low = peak * final_share
    if warmup and step < warmup:
        return (1 + step) * peak / warmup
    left = steps - warmup - 1
    at = min(step - warmup, left) / left if left > 0 else float(step > warmup)
    return low + (peak - low) * math.cos(math.pi * at / 2) ** 2

# %% right: three branches
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0:
        raise ValueError("step must not be negative")
    if steps < 1:
        raise ValueError("steps must be positive")
    if warmup < 0:
        raise ValueError("warmup must not be negative")
    if step < warmup:
        return np.float64(peak) * ((step + 1) / warmup)
    if step == warmup:
        return peak
    if step >= steps - 1:
        return peak * final_share
    progress = (step - warmup) / (steps - 1 - warmup)
    return peak * final_share + 0.5 * peak * (1 - final_share) * (1 + math.cos(progress * math.pi))

# %% right: a whole table and one entry of it
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("no")
    up = [peak * (i + 1) / warmup for i in range(warmup)]
    n = max(steps - warmup, 1)
    x = np.linspace(0, np.pi, n) if n > 1 else np.zeros(1)
    down = peak * (final_share + (1 - final_share) * (1 + np.cos(x)) / 2)
    return [*up, *down][min(step, len(up) + n - 1)]

# %% right: np.interp for the line
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError((step, steps, warmup))
    if step < warmup:
        return float(np.interp(step + 1, [0, warmup], [0, peak]))
    turn = math.pi * min(1, (step - warmup) / max(1, steps - 1 - warmup))
    return peak * (1 - (1 - final_share) * (1 - math.cos(turn)) / 2)

# %% wrong: warm-up from zero -> step 0 has rate 0
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * step / warmup
    progress = min(1, (step - warmup) / max(1, steps - 1 - warmup))
    return peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * progress)) / 2)

# %% wrong: warm-up a step too long -> line is a step too long
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    progress = min(1, (step - warmup) / max(1, steps - 1 - warmup))
    return peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * progress)) / 2)

# %% wrong: straight descent -> straight line
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1, (step - warmup) / max(1, steps - 1 - warmup))
    return peak * (final_share + (1 - final_share) * (1 - progress))

# %% wrong: quarter of a period -> quarter of a period
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1, (step - warmup) / max(1, steps - 1 - warmup))
    return peak * (final_share + (1 - final_share) * math.cos(math.pi / 2 * progress))

# %% wrong: cosine not halved
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1, (step - warmup) / max(1, steps - 1 - warmup))
    return peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * progress)))

# %% wrong: progress from step 0 -> counted from step 0
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1, step / max(1, steps - 1))
    return peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * progress)) / 2)

# %% wrong: last step not reached -> number steps - 1
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1, (step - warmup) / max(1, steps - warmup))
    return peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * progress)) / 2)

# %% wrong: down to zero -> falls to 0
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1, (step - warmup) / max(1, steps - 1 - warmup))
    return peak * (1 + math.cos(math.pi * progress)) / 2

# %% wrong: final share as a rate -> taken as a rate
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1, (step - warmup) / max(1, steps - 1 - warmup))
    return final_share + (peak - final_share) * (1 + math.cos(math.pi * progress)) / 2

# %% wrong: cut off at the final share -> cut off at final_share
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1, (step - warmup) / max(1, steps - 1 - warmup))
    return peak * max(final_share, (1 + math.cos(math.pi * progress)) / 2)

# %% wrong: rises again past the end -> rises again
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - 1 - warmup)
    return peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * progress)) / 2)

# %% wrong: zero past the end
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    if step >= steps:
        return 0.0
    progress = (step - warmup) / max(1, steps - 1 - warmup)
    return peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * progress)) / 2)

# %% wrong: division by zero without warm-up
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    ramp = min(1, (step + 1) / warmup)
    progress = max(0, min(1, (step - warmup) / max(1, steps - 1 - warmup)))
    return peak * ramp * (final_share + (1 - final_share) * (1 + math.cos(math.pi * progress)) / 2)

# %% wrong: division by zero where nothing is left
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1, (step - warmup) / (steps - 1 - warmup))
    return peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * progress)) / 2)

# %% wrong: nothing refused
def learning_rate(step, steps, warmup, peak, final_share):
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1, (step - warmup) / max(1, steps - 1 - warmup))
    return peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * progress)) / 2)

# %% wrong: warm-up of the cosine itself
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    progress = min(1, step / max(1, steps - 1))
    rate = peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * progress)) / 2)
    return rate * (step + 1) / warmup if step < warmup else rate

# %% wrong: no warm-up -> starts at the peak
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    progress = min(1, max(0, step - warmup) / max(1, steps - 1 - warmup))
    return peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * progress)) / 2)

# %% wrong: degrees
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1, (step - warmup) / max(1, steps - 1 - warmup))
    return peak * (final_share + (1 - final_share) * (1 + math.cos(180 * progress)) / 2)

# %% wrong: own count of calls
COUNT = [0]

def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    step = COUNT[0]
    COUNT[0] += 1
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1, (step - warmup) / max(1, steps - 1 - warmup))
    return peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * progress)) / 2)

# %% wrong: share of the peak forgotten in the amplitude -> added to the whole cosine
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1, (step - warmup) / max(1, steps - 1 - warmup))
    return peak * (final_share + (1 + math.cos(math.pi * progress)) / 2)

# %% wrong: warm-up to the last step -> rises towards the last step
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / steps
    progress = min(1, (step - warmup) / max(1, steps - 1 - warmup))
    return peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * progress)) / 2)

# %% wrong: a smallest rate
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = np.clip((step - warmup) / max(steps - 1 - warmup, 1), 0, 1)
    return max(1e-3, peak * (final_share + (1 - final_share) * 0.5 * (1 + np.cos(np.pi * progress))))

# %% wrong: rounded
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = np.clip((step - warmup) / max(steps - 1 - warmup, 1), 0, 1)
    return round(peak * (final_share + (1 - final_share) * 0.5 * (1 + np.cos(np.pi * progress))), 6)

# %% wrong: ramp from the final share
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (final_share + (1 - final_share) * (step + 1) / warmup)
    progress = np.clip((step - warmup) / max(steps - 1 - warmup, 1), 0, 1)
    return peak * (final_share + (1 - final_share) * 0.5 * (1 + np.cos(np.pi * progress)))

# %% right: an early return for the end, math.fsum of nothing
def learning_rate(step, steps, warmup, peak, final_share):
    if min(step, steps - 1, warmup) < 0:
        raise ValueError((step, steps, warmup))
    if step < warmup:
        return (1 + step) * peak / warmup
    last = max(steps - 1, warmup + 1)
    angle = math.pi * min(step - warmup, last - warmup) / (last - warmup)
    low = final_share * peak
    return low + (peak - low) * (0.5 + 0.5 * math.cos(angle))

# %% wrong: half of the amplitude
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1.0, (step - warmup) / max(1, steps - 1 - warmup))
    return peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * progress)) / 4)

# %% wrong: integer division of progress
def learning_rate(step, steps, warmup, peak, final_share):
    if step < 0 or steps < 1 or warmup < 0:
        raise ValueError("impossible")
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = min(1, (step - warmup) // max(1, steps - 1 - warmup))
    return peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * progress)) / 2)
