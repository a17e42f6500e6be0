import numpy as np


def future_token_intervention(attention, hidden, rng):
    changed = hidden.copy()
    changed[..., -1, :] = rng.normal(size=changed[..., -1, :].shape)
    return np.allclose(attention(changed)[..., :-1, :], attention(hidden)[..., :-1, :], rtol=0, atol=1e-9)
