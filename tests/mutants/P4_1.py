# %% setup
import numpy as np


def replaced(hidden, j, rng):
    changed = hidden.copy()
    changed[..., j, :] = rng.normal(size=changed[..., j, :].shape)
    return changed


def positions(hidden):
    return range(hidden.shape[-2])


# %% right: bit for bit
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return all(
        np.array_equal(attention(replaced(hidden, j, rng))[..., :j, :], before[..., :j, :]) for j in positions(hidden)
    )

# %% right: largest difference, nan-safe
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    worst = [np.abs(attention(replaced(hidden, j, rng)) - before)[..., :j, :].max(initial=0.0) for j in positions(hidden)]
    return max(worst) < 1e-9

# %% right: the whole future at once, from the end
def future_token_intervention(attention, hidden, rng):
    before, changed = attention(hidden), hidden.copy()
    for j in reversed(positions(hidden)):
        changed[..., j, :] = rng.uniform(-5, 5, size=changed[..., j, :].shape)
        if not np.allclose(attention(changed)[..., :j, :], before[..., :j, :], rtol=0, atol=1e-9):
            return False
    return True

# %% right: counts violations
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden.copy())
    violations = 0
    for j in positions(hidden):
        after = attention(replaced(hidden, j, rng))
        violations += int((np.abs(after[..., :j, :] - before[..., :j, :]) > 1e-9).sum())
    return violations == 0

# %% right: a batch axis for everybody, a NumPy boolean
def future_token_intervention(attention, hidden, rng):
    batch = hidden if hidden.ndim == 3 else hidden[None]
    before = np.reshape(attention(hidden), batch.shape)
    fine = np.True_
    for j in range(1, batch.shape[1]):
        changed = batch.copy()
        changed[:, j] = rng.standard_normal(changed[:, j].shape)
        after = np.reshape(attention(changed.reshape(hidden.shape)), batch.shape)
        fine &= np.allclose(after[:, :j], before[:, :j], rtol=0, atol=1e-9)
    return fine

# %% right: an influence matrix
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    time = hidden.shape[-2]
    moved = np.zeros((time, time))
    for j in range(time):
        difference = np.abs(attention(replaced(hidden, j, rng)) - before).max(axis=-1)
        moved[:, j] = difference.reshape(-1, time).max(axis=0)
    return not np.triu(moved, 1).any()

# %% right: large numbers, one after another, restored by hand
def future_token_intervention(attention, hidden, rng):
    before, work = attention(hidden), hidden.copy()
    for j in positions(hidden):
        kept = work[..., j, :].copy()
        work[..., j, :] = 50 * rng.normal(size=kept.shape)
        after = attention(work)
        work[..., j, :] = kept
        if (after[..., :j, :] != before[..., :j, :]).any():
            return False
    return True

# %% right: every batch row by itself within the full batch
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in positions(hidden):
        for row in range(len(hidden) if hidden.ndim == 3 else 1):
            changed = hidden.copy()
            place = (row, j) if hidden.ndim == 3 else j
            changed[place] = rng.normal(size=hidden.shape[-1])
            if not np.allclose(attention(changed)[..., :j, :], before[..., :j, :], rtol=0, atol=1e-10):
                return 0
    return 1

# %% wrong: always true -> the answer is True whatever attention does
def future_token_intervention(attention, hidden, rng):
    return True

# %% wrong: always false -> the answer is False whatever attention does
def future_token_intervention(attention, hidden, rng):
    return False

# %% wrong: only the last position -> replace every position in turn
def future_token_intervention(attention, hidden, rng):
    after = attention(replaced(hidden, -1, rng))
    return np.allclose(after[..., :-1, :], attention(hidden)[..., :-1, :])

# %% wrong: only the second position -> only position 1 is replaced
def future_token_intervention(attention, hidden, rng):
    after = attention(replaced(hidden, 1, rng))
    return np.allclose(after[..., :1, :], attention(hidden)[..., :1, :])

# %% wrong: one random position
def future_token_intervention(attention, hidden, rng):
    j = int(rng.integers(1, hidden.shape[-2]))
    return np.allclose(attention(replaced(hidden, j, rng))[..., :j, :], attention(hidden)[..., :j, :])

# %% wrong: every other position -> every other position is left out
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return all(
        np.allclose(attention(replaced(hidden, j, rng))[..., :j, :], before[..., :j, :])
        for j in range(2, hidden.shape[-2], 2)
    )

# %% wrong: leaves out the last position -> the last position is never replaced
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return all(
        np.allclose(attention(replaced(hidden, j, rng))[..., :j, :], before[..., :j, :])
        for j in range(hidden.shape[-2] - 1)
    )

# %% wrong: watches only the row just before -> only the row just before the replaced one is compared
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return all(
        np.allclose(attention(replaced(hidden, j, rng))[..., j - 1, :], before[..., j - 1, :])
        for j in range(1, hidden.shape[-2])
    )

# %% wrong: watches only the first row -> only row 0 is compared
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return all(
        np.allclose(attention(replaced(hidden, j, rng))[..., 0, :], before[..., 0, :])
        for j in range(1, hidden.shape[-2])
    )

# %% wrong: compares all rows -> compare only rows before the replaced one
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return all(np.allclose(attention(replaced(hidden, j, rng)), before) for j in positions(hidden))

# %% wrong: includes the replaced row -> compare only rows before the replaced one
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return all(
        np.allclose(attention(replaced(hidden, j, rng))[..., : j + 1, :], before[..., : j + 1, :])
        for j in positions(hidden)
    )

# %% wrong: compares the rows after -> compare only rows before the replaced one
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return all(
        np.allclose(attention(replaced(hidden, j, rng))[..., j + 1 :, :], before[..., j + 1 :, :])
        for j in positions(hidden)
    )

# %% wrong: rows stay replaced -> start each replacement from the original hidden
def future_token_intervention(attention, hidden, rng):
    before, changed = attention(hidden), hidden.copy()
    for j in positions(hidden):
        changed[..., j, :] = rng.normal(size=changed[..., j, :].shape)
        if not np.allclose(attention(changed)[..., :j, :], before[..., :j, :]):
            return False
    return True

# %% wrong: changes hidden in place -> changed in place
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in reversed(positions(hidden)):
        hidden[..., j, :] = rng.normal(size=hidden[..., j, :].shape)
        if not np.allclose(attention(hidden)[..., :j, :], before[..., :j, :]):
            return False
    return True

# %% wrong: adds a constant -> put fresh random numbers into the row
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in positions(hidden):
        changed = hidden.copy()
        changed[..., j, :] += 100
        if not np.allclose(attention(changed)[..., :j, :], before[..., :j, :]):
            return False
    return True

# %% wrong: doubles the row -> put fresh random numbers into the row
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in positions(hidden):
        changed = hidden.copy()
        changed[..., j, :] *= 2
        if not np.allclose(attention(changed)[..., :j, :], before[..., :j, :]):
            return False
    return True

# %% wrong: sets the row to zero -> put fresh random numbers into the row
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in positions(hidden):
        changed = hidden.copy()
        changed[..., j, :] = 0
        if not np.allclose(attention(changed)[..., :j, :], before[..., :j, :]):
            return False
    return True

# %% right: one random number for the whole row
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in positions(hidden):
        changed = hidden.copy()
        changed[..., j, :] = rng.normal()
        if not np.allclose(attention(changed)[..., :j, :], before[..., :j, :], rtol=0, atol=1e-9):
            return False
    return True

# %% wrong: takes the batch for time -> positions are taken from the first axis
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in range(len(hidden)):
        changed = hidden.copy()
        changed[j] = rng.normal(size=changed[j].shape)
        if not np.allclose(attention(changed)[:j], before[:j]):
            return False
    return True

# %% wrong: features for time -> the answer is False whatever attention does
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in range(hidden.shape[-1]):
        changed = hidden.copy()
        changed[..., j] = rng.normal(size=changed[..., j].shape)
        if not np.allclose(attention(changed)[..., :j], before[..., :j]):
            return False
    return True

# %% wrong: watches the first batch row only -> in every batch row
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in positions(hidden):
        after, old = attention(replaced(hidden, j, rng)), before
        if hidden.ndim == 3:
            after, old = after[0], old[0]
        if not np.allclose(after[:j], old[:j]):
            return False
    return True

# %% wrong: passes on the first batch row alone
def future_token_intervention(attention, hidden, rng):
    first = hidden[:1] if hidden.ndim == 3 else hidden
    before = attention(first)
    return all(np.allclose(attention(replaced(first, j, rng))[..., :j, :], before[..., :j, :]) for j in positions(hidden))

# %% wrong: averages over the batch
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in positions(hidden):
        moved = (attention(replaced(hidden, j, rng)) - before)[..., :j, :]
        if np.abs(moved.reshape(-1, j, hidden.shape[-1]).mean(axis=0)).max(initial=0) > 0.05:
            return False
    return True

# %% wrong: only the first four positions -> at its full length
def future_token_intervention(attention, hidden, rng):
    hidden = hidden[..., :4, :]
    before = attention(hidden)
    return all(
        np.allclose(attention(replaced(hidden, j, rng))[..., :j, :], before[..., :j, :]) for j in positions(hidden)
    )

# %% wrong: compares with a shorter sequence instead of replacing -> a shorter sequence is compared in place of a replaced row
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return all(
        np.allclose(attention(hidden[..., :j, :]), before[..., :j, :]) for j in range(1, hidden.shape[-2])
    )

# %% wrong: tolerance of a tenth -> differences far smaller than the outputs
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return all(
        np.allclose(attention(replaced(hidden, j, rng))[..., :j, :], before[..., :j, :], atol=0.1)
        for j in positions(hidden)
    )

# %% wrong: tolerance of a thousandth -> unless you pass rtol=0
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return all(
        np.allclose(attention(replaced(hidden, j, rng))[..., :j, :], before[..., :j, :], rtol=0, atol=1e-3)
        for j in positions(hidden)
    )

# %% wrong: tolerance of a millionth -> unless you pass rtol=0
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return all(
        np.allclose(attention(replaced(hidden, j, rng))[..., :j, :], before[..., :j, :], rtol=0, atol=1e-6)
        for j in positions(hidden)
    )

# %% wrong: NumPy's own tolerances -> unless you pass rtol=0
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return all(
        np.allclose(attention(replaced(hidden, j, rng))[..., :j, :], before[..., :j, :])
        for j in positions(hidden)
    )

# %% wrong: compares sums over features and rows
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return all(
        abs(attention(replaced(hidden, j, rng))[..., :j, :].sum() - before[..., :j, :].sum()) < 0.2
        for j in positions(hidden)
    )

# %% wrong: the answer the wrong way round -> the answer is the wrong way round
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return any(
        not np.allclose(attention(replaced(hidden, j, rng))[..., :j, :], before[..., :j, :]) for j in positions(hidden)
    )

# %% wrong: any position is enough -> the answer is True whatever attention does
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return any(
        np.allclose(attention(replaced(hidden, j, rng))[..., :j, :], before[..., :j, :]) for j in positions(hidden)
    )

# %% wrong: returns inside the loop -> the answer is True whatever attention does
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in positions(hidden):
        return np.allclose(attention(replaced(hidden, j, rng))[..., :j, :], before[..., :j, :])

# %% wrong: forgets to call attention again -> the answer is True whatever attention does
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in positions(hidden):
        changed = replaced(hidden, j, rng)
        if not np.allclose(changed[..., :j, :], hidden[..., :j, :]) or before is None:
            return False
    return True

# %% wrong: prints instead of returning -> True or False was expected
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    all(np.allclose(attention(replaced(hidden, j, rng))[..., :j, :], before[..., :j, :]) for j in positions(hidden))

# %% wrong: returns the largest difference -> True or False was expected
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return float(
        max(np.abs((attention(replaced(hidden, j, rng)) - before)[..., :j, :]).max(initial=0) for j in positions(hidden))
    )

# %% wrong: expects an attention that returns weights -> your code raised
def future_token_intervention(attention, hidden, rng):
    before, _ = attention(hidden)
    return all(
        np.allclose(attention(replaced(hidden, j, rng))[0][..., :j, :], before[..., :j, :]) for j in positions(hidden)
    )

# %% right: a class with a call, float32 draws
class Judge:
    def __call__(self, attention, hidden, rng):
        before = attention(hidden)
        for j in range(hidden.shape[-2] - 1, 0, -1):
            changed = np.array(hidden)
            changed[..., j, :] = rng.standard_normal(changed[..., j, :].shape, dtype=np.float32)
            if np.abs(attention(changed) - before)[..., :j, :].max() > 1e-9:
                return np.bool_(False)
        return np.bool_(True)

future_token_intervention = Judge()

# %% right: concatenation and a lambda
future_token_intervention = lambda attention, hidden, rng: not any(
    (np.abs(attention(np.concatenate([hidden[..., :j, :], rng.normal(size=hidden[..., :1, :].shape), hidden[..., j + 1 :, :]], axis=-2))
            - attention(hidden))[..., :j, :] > 1e-9).any()
    for j in range(1, hidden.shape[-2])
)

# %% right: three tries of each position, a list as argument
def future_token_intervention(attention, hidden, rng):
    before = np.asarray(attention(hidden.tolist()))
    ok = True
    for _ in range(3):
        for j in positions(hidden):
            after = np.asarray(attention(replaced(hidden, j, rng)))
            ok = ok and np.array_equal(after[..., :j, :], before[..., :j, :])
    return ok

# %% wrong: a relative tolerance of a tenth
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return all(np.allclose(attention(replaced(hidden, j, rng))[..., :j, :], before[..., :j, :], rtol=0.5) for j in positions(hidden))

# %% wrong: watches the first feature only
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    return all(np.allclose(attention(replaced(hidden, j, rng))[..., :j, :1].mean(), before[..., :j, :1].mean(), atol=0.05) for j in range(1, hidden.shape[-2]))

# %% wrong: the last batch row only
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    def last(x): return x[-1] if x.ndim == 3 else x
    return all(np.allclose(last(attention(replaced(hidden, j, rng)))[1:j], last(before)[1:j]) for j in positions(hidden))

# %% wrong: swaps neighbouring rows in place of new numbers
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in range(1, hidden.shape[-2] - 1):
        changed = hidden.copy()
        changed[..., [j, j + 1], :] = changed[..., [j + 1, j], :]
        if not np.allclose(attention(changed)[..., :j, :], before[..., :j, :]):
            return False
    return True

# %% wrong: all later rows at once, from position one only
def future_token_intervention(attention, hidden, rng):
    changed = hidden.copy()
    changed[..., 1:, :] = rng.normal(size=changed[..., 1:, :].shape)
    return np.allclose(attention(changed)[..., :1, :], attention(hidden)[..., :1, :])

# %% wrong: looks at gradients of the mean, the first half only
def future_token_intervention(attention, hidden, rng):
    half = hidden.shape[-2] // 2
    changed = hidden.copy()
    changed[..., half:, :] = rng.normal(size=changed[..., half:, :].shape)
    return np.allclose(attention(changed)[..., :half, :], attention(hidden)[..., :half, :])

# %% wrong: any exception is a no, and there is always one
def future_token_intervention(attention, hidden, rng):
    try:
        before = attention(hidden)
        return all(np.allclose(attention(replaced(hidden, j, rng))[:, :j, :], before[:, :j, :]) for j in positions(hidden))
    except Exception:
        return False

# %% wrong: a tiny step
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in positions(hidden):
        changed = hidden.copy()
        changed[..., j, :] += 1e-7 * rng.normal(size=changed[..., j, :].shape)
        if not np.allclose(attention(changed)[..., :j, :], before[..., :j, :]):
            return False
    return True

# %% wrong: one entry of the row
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in positions(hidden):
        changed = hidden.copy()
        changed[0, j] = rng.normal(size=changed[0, j].shape)
        if not np.allclose(attention(changed)[..., :j, :], before[..., :j, :]):
            return False
    return True

# %% wrong: replaces the row by another row of the same input
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in positions(hidden):
        changed = hidden.copy()
        changed[..., j, :] = hidden[..., 0, :]
        if not np.allclose(attention(changed)[..., :j, :], before[..., :j, :]):
            return False
    return True

# %% wrong: negates the row
def future_token_intervention(attention, hidden, rng):
    before = attention(hidden)
    for j in positions(hidden):
        changed = hidden.copy()
        changed[..., j, :] *= -1
        if not np.allclose(attention(changed)[..., :j, :], before[..., :j, :]):
            return False
    return True

# %% wrong: keeps its first verdict for ever
_said = []
def future_token_intervention(attention, hidden, rng):
    if not _said:
        before = attention(hidden)
        _said.append(all(np.allclose(attention(replaced(hidden, j, rng))[..., :j, :], before[..., :j, :]) for j in positions(hidden)))
    return _said[0]
