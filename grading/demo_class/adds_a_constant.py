import numpy as np


def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in range(hidden.shape[-2]):
        changed = hidden.copy()
        changed[..., j, :] += 100
        if not np.allclose(attention(changed)[..., :j, :], before[..., :j, :], rtol=0, atol=1e-9):
            return False
    return True
