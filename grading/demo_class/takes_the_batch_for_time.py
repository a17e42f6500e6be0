import numpy as np


def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in range(len(hidden)):
        changed = hidden.copy()
        changed[j] = rng.normal(size=changed[j].shape)
        if not np.allclose(attention(changed)[:j], before[:j], rtol=0, atol=1e-9):
            return False
    return True
