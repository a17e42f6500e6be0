import numpy as np


def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in range(hidden.shape[-2]):
        changed = hidden.copy()
        changed[..., j, :] = rng.normal(size=changed[..., j, :].shape)
        if not np.allclose(attention(changed), before):
            return False
    return True
