# %% setup
import torch


def same(one, other):
    return torch.allclose(one, other, rtol=0, atol=1e-6)


def tied(model):
    return model.token_embedding.weight.data_ptr() == model.lm_head.weight.data_ptr()


# %% wrong: bit for bit -> neither ask for equal bits
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = torch.equal(original_logits[:, :-1], changed_logits[:, :-1])
    return earlier, tied(model), torch.equal(original_logits, reloaded_logits)

# %% right: a list, default tolerances
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = torch.allclose(original_logits[:, :-1, :], changed_logits[:, :-1, :])
    return [earlier, tied(model), torch.allclose(original_logits, reloaded_logits)]

# %% right: in NumPy
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    import numpy as np

    original, changed, reloaded = (x.detach().numpy() for x in (original_logits, changed_logits, reloaded_logits))
    return (
        np.all(np.abs(original[:, :-1] - changed[:, :-1]) < 1e-5),
        np.bool_(tied(model)),
        np.allclose(original, reloaded),
    )

# %% right: tensors that hold one boolean
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    moved = (original_logits - changed_logits).abs()[:, :-1]
    return (moved <= 1e-5).all(), torch.tensor(tied(model)), ((original_logits - reloaded_logits).abs() <= 1e-5).all()

# %% right: the storage through the state dict
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    weights = model.state_dict()
    places = {weights[name].untyped_storage().data_ptr() for name in ("token_embedding.weight", "lm_head.weight")}
    steps = original_logits.shape[1] - 1
    future = all(same(original_logits[:, t], changed_logits[:, t]) for t in range(steps))
    return future, len(places) == 1, same(original_logits, reloaded_logits)

# %% right: a write through one name is read through the other, and undone
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    with torch.no_grad():
        old = model.lm_head.weight[0, 0].item()
        model.lm_head.weight[0, 0] = old + 1
        shared = model.token_embedding.weight[0, 0].item() == model.lm_head.weight[0, 0].item()
        model.lm_head.weight[0, 0] = old
        shared = shared and model.token_embedding.weight[0, 0].item() == old
    return same(original_logits[:, :-1], changed_logits[:, :-1]), shared, same(original_logits, reloaded_logits)

# %% right: largest difference, NaN caught by the direction of the comparison
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    def equal(one, other):
        return bool((one - other).abs().max() <= 1e-5)

    return equal(original_logits[:, :-1], changed_logits[:, :-1]), tied(model), equal(original_logits, reloaded_logits)

# %% wrong: always true -> all three are True whatever comes
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    return True, True, True

# %% wrong: always false -> all three are False whatever comes
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    return False, False, False

# %% wrong: future always true -> future_ok is True whatever comes
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    return True, tied(model), same(original_logits, reloaded_logits)

# %% wrong: tied always true -> tied_ok: False was expected
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    return same(original_logits[:, :-1], changed_logits[:, :-1]), True, same(original_logits, reloaded_logits)

# %% wrong: reload always true -> reload_ok is True whatever comes
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    return same(original_logits[:, :-1], changed_logits[:, :-1]), tied(model), True

# %% wrong: trusts the flag -> what the model claims
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[:, :-1], changed_logits[:, :-1])
    return earlier, model.embeddings_are_tied, same(original_logits, reloaded_logits)

# %% wrong: trusts the config -> what the model claims
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[:, :-1], changed_logits[:, :-1])
    return earlier, model.config.tie_embeddings, same(original_logits, reloaded_logits)

# %% wrong: the flag is enough -> the model's claim is enough
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[:, :-1], changed_logits[:, :-1])
    return earlier, tied(model) or model.embeddings_are_tied, same(original_logits, reloaded_logits)

# %% wrong: the flag is needed too -> storage and the model's claim must both say so
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[:, :-1], changed_logits[:, :-1])
    return earlier, tied(model) and model.embeddings_are_tied, same(original_logits, reloaded_logits)

# %% wrong: equal numbers are tied -> not what they hold
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    equal = torch.equal(model.token_embedding.weight, model.lm_head.weight)
    return same(original_logits[:, :-1], changed_logits[:, :-1]), equal, same(original_logits, reloaded_logits)

# %% wrong: the same Python object -> the two names are asked for one Python object
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    one = model.token_embedding.weight is model.lm_head.weight
    return same(original_logits[:, :-1], changed_logits[:, :-1]), one, same(original_logits, reloaded_logits)

# %% wrong: equal shapes are tied -> tied_ok is True whatever comes
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    alike = model.token_embedding.weight.shape == model.lm_head.weight.shape
    return same(original_logits[:, :-1], changed_logits[:, :-1]), alike, same(original_logits, reloaded_logits)

# %% wrong: compares modules -> tied_ok
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    one = model.token_embedding is model.lm_head
    return same(original_logits[:, :-1], changed_logits[:, :-1]), one, same(original_logits, reloaded_logits)

# %% wrong: compares all steps -> leave out the last step
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    return same(original_logits, changed_logits), tied(model), same(original_logits, reloaded_logits)

# %% wrong: compares the last step only -> future_ok is False whatever comes
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    return same(original_logits[:, -1], changed_logits[:, -1]), tied(model), same(original_logits, reloaded_logits)

# %% wrong: compares the first step only -> compare all steps before the last
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    return same(original_logits[:, 0], changed_logits[:, 0]), tied(model), same(original_logits, reloaded_logits)

# %% wrong: leaves out two steps -> future_ok leaves out two steps
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[:, :-2], changed_logits[:, :-2])
    return earlier, tied(model), same(original_logits, reloaded_logits)

# %% wrong: leaves out the last batch row -> future_ok leaves out the last sequence of the batch
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    return same(original_logits[:-1], changed_logits[:-1]), tied(model), same(original_logits, reloaded_logits)

# %% wrong: leaves out the last token of the vocabulary -> future_ok is False whatever comes
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[..., :-1], changed_logits[..., :-1])
    return earlier, tied(model), same(original_logits, reloaded_logits)

# %% wrong: the first batch row only -> future_ok and reload_ok look at batch row 0 alone
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[0, :-1], changed_logits[0, :-1])
    return earlier, tied(model), same(original_logits[0], reloaded_logits[0])

# %% wrong: reload without the last step -> compare the original and the reloaded logits everywhere
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[:, :-1], changed_logits[:, :-1])
    return earlier, tied(model), same(original_logits[:, :-1], reloaded_logits[:, :-1])

# %% wrong: reload looks at the last step only -> reload_ok looks at the last step alone
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[:, :-1], changed_logits[:, :-1])
    return earlier, tied(model), same(original_logits[:, -1], reloaded_logits[:, -1])

# %% wrong: reload against the changed logits -> reload_ok compares with changed_logits
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[:, :-1], changed_logits[:, :-1])
    return earlier, tied(model), same(changed_logits, reloaded_logits)

# %% wrong: tolerance of a tenth -> differences of several hundredths pass
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = torch.allclose(original_logits[:, :-1], changed_logits[:, :-1], atol=0.1)
    return earlier, tied(model), torch.allclose(original_logits, reloaded_logits, atol=0.1)

# %% wrong: tolerance of a hundredth -> allow for rounding only
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = torch.allclose(original_logits[:, :-1], changed_logits[:, :-1], atol=0.01)
    return earlier, tied(model), torch.allclose(original_logits, reloaded_logits, atol=0.01)

# %% wrong: tolerance of a ten-thousandth -> nor allow more than 1e-5
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = torch.allclose(original_logits[:, :-1], changed_logits[:, :-1], rtol=0, atol=1e-4)
    return earlier, tied(model), torch.allclose(original_logits, reloaded_logits, rtol=0, atol=1e-4)

# %% wrong: equal bits after the reload only -> neither ask for equal bits
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    return same(original_logits[:, :-1], changed_logits[:, :-1]), tied(model), torch.equal(original_logits, reloaded_logits)

# %% wrong: NaN passes -> let no NaN pass
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    def differ(one, other):
        return bool(((one - other).abs() > 1e-5).any())

    earlier = not differ(original_logits[:, :-1], changed_logits[:, :-1])
    return earlier, tied(model), not differ(original_logits, reloaded_logits)

# %% wrong: NaN equals NaN -> let no NaN pass
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = torch.allclose(original_logits[:, :-1], changed_logits[:, :-1], equal_nan=True)
    return earlier, tied(model), torch.allclose(original_logits, reloaded_logits, equal_nan=True)

# %% wrong: NaN replaced by zero -> let no NaN pass
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    original, changed, reloaded = (x.nan_to_num() for x in (original_logits, changed_logits, reloaded_logits))
    return same(original[:, :-1], changed[:, :-1]), tied(model), same(original, reloaded)

# %% wrong: NaN anywhere fails the future check -> leave out the last step
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[:, :-1], changed_logits[:, :-1]) and not changed_logits.isnan().any()
    return earlier, tied(model), same(original_logits, reloaded_logits)

# %% wrong: compares predictions instead of logits -> the most likely tokens are compared
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    original, changed, reloaded = (x.argmax(dim=-1) for x in (original_logits, changed_logits, reloaded_logits))
    return torch.equal(original[:, :-1], changed[:, :-1]), tied(model), torch.equal(original, reloaded)

# %% wrong: compares sums
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[:, :-1].sum(), changed_logits[:, :-1].sum())
    return earlier, tied(model), same(original_logits.sum(), reloaded_logits.sum())

# %% wrong: compares averages over the vocabulary -> differences of several hundredths pass
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[:, :-1].mean(dim=-1), changed_logits[:, :-1].mean(dim=-1))
    return earlier, tied(model), same(original_logits.mean(dim=-1), reloaded_logits.mean(dim=-1))

# %% wrong: any equal entry is enough -> one equal entry is enough for True
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = bool((original_logits[:, :-1] == changed_logits[:, :-1]).any())
    return earlier, tied(model), bool((original_logits == reloaded_logits).any())

# %% wrong: wants the last step to differ
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[:, :-1], changed_logits[:, :-1])
    moved = not torch.equal(original_logits[:, -1], reloaded_logits[:, -1])
    return earlier and moved, tied(model), same(original_logits, reloaded_logits)

# %% wrong: order future, reload, tied -> the order is future
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[:, :-1], changed_logits[:, :-1])
    return earlier, same(original_logits, reloaded_logits), tied(model)

# %% wrong: order tied, future, reload -> the order is future
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[:, :-1], changed_logits[:, :-1])
    return tied(model), earlier, same(original_logits, reloaded_logits)

# %% wrong: one answer for all three -> three booleans were expected
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = same(original_logits[:, :-1], changed_logits[:, :-1])
    return earlier and tied(model) and same(original_logits, reloaded_logits)

# %% wrong: two answers -> three booleans were expected
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    return same(original_logits[:, :-1], changed_logits[:, :-1]), same(original_logits, reloaded_logits)

# %% wrong: differences instead of booleans -> three booleans were expected
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    earlier = (original_logits[:, :-1] - changed_logits[:, :-1]).abs().max()
    return earlier, tied(model), (original_logits - reloaded_logits).abs().max()

# %% wrong: asserts instead of returning -> your code raised AssertionError
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    assert same(original_logits[:, :-1], changed_logits[:, :-1])
    assert tied(model)
    assert same(original_logits, reloaded_logits)
    return True, True, True

# %% wrong: overwrites the last step -> changed in place
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    same_everywhere = same(original_logits, reloaded_logits)
    changed_logits[:, -1] = original_logits[:, -1]
    return torch.allclose(original_logits[:, :-1], changed_logits[:, :-1]), tied(model), same_everywhere

# %% right: isclose, sum of booleans, untyped storage
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    T = original_logits.shape[1]
    future = torch.isclose(original_logits[:, : T - 1], changed_logits[:, : T - 1], rtol=0, atol=1e-6)
    reload = torch.isclose(original_logits, reloaded_logits, rtol=0, atol=1e-6)
    one, two = (w.untyped_storage().data_ptr() for w in (model.token_embedding.weight, model.lm_head.weight))
    return future.sum().item() == future.numel(), one == two, reload.sum().item() == reload.numel()

# %% right: steps one by one, ints for truths
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    future = 1
    for t in range(original_logits.size(1) - 1):
        future &= int(same(original_logits[:, t], changed_logits[:, t]))
    tied = int(model.lm_head.weight.data_ptr() == model.token_embedding.weight.data_ptr())
    return [future, tied, int(same(original_logits, reloaded_logits))]

# %% right: testing assertions caught
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    def close(a, b):
        try:
            torch.testing.assert_close(a, b, rtol=0, atol=1e-5)
        except AssertionError:
            return False
        return True
    tied = model.lm_head.weight.storage().data_ptr() == model.token_embedding.weight.storage().data_ptr()
    return close(original_logits[:, :-1], changed_logits[:, :-1]), tied, close(original_logits, reloaded_logits)

# %% wrong: relative tolerance of one part in ten
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    def close(a, b): return torch.allclose(a, b, rtol=0.1)
    return close(original_logits[:, :-1], changed_logits[:, :-1]), tied(model), close(original_logits, reloaded_logits)

# %% wrong: mean squared difference
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    def close(a, b): return bool(((a - b) ** 2).mean() < 1e-4)
    return close(original_logits[:, :-1], changed_logits[:, :-1]), tied(model), close(original_logits, reloaded_logits)

# %% wrong: softmax compared
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    def close(a, b): return torch.allclose(a.softmax(-1), b.softmax(-1), atol=5e-3)
    return close(original_logits[:, :-1], changed_logits[:, :-1]), tied(model), close(original_logits, reloaded_logits)

# %% wrong: largest logit compared
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    def close(a, b): return torch.equal(a.amax(-1), b.amax(-1))
    return close(original_logits[:, :-1], changed_logits[:, :-1]), tied(model), close(original_logits, reloaded_logits)

# %% wrong: every second step
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    a, b = original_logits[:, :-1], changed_logits[:, :-1]
    return same(a[:, ::2], b[:, ::2]), tied(model), same(original_logits, reloaded_logits)

# %% wrong: step before the last only
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    return same(original_logits[:, -2], changed_logits[:, -2]), tied(model), same(original_logits, reloaded_logits)

# %% wrong: the storage size tells
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    one, two = model.token_embedding.weight, model.lm_head.weight
    return same(original_logits[:, :-1], changed_logits[:, :-1]), one.untyped_storage().size() == two.untyped_storage().size(), same(original_logits, reloaded_logits)

# %% wrong: parameters counted once
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    return same(original_logits[:, :-1], changed_logits[:, :-1]), len(list(model.parameters())) == 1, same(original_logits, reloaded_logits)

# %% wrong: half precision
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    def close(a, b): return torch.equal(a.bfloat16(), b.bfloat16())
    return close(original_logits[:, :-1], changed_logits[:, :-1]), tied(model), close(original_logits, reloaded_logits)

# %% wrong: norms compared
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    def close(a, b): return bool((a.norm() - b.norm()).abs() < 1e-2)
    return close(original_logits[:, :-1], changed_logits[:, :-1]), tied(model), close(original_logits, reloaded_logits)

# %% wrong: reload compared after the first step
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    return same(original_logits[:, :-1], changed_logits[:, :-1]), tied(model), same(original_logits[:, 1:], reloaded_logits[:, 1:])

# %% wrong: all three must hold
def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    every = same(original_logits[:, :-1], changed_logits[:, :-1]) and tied(model) and same(original_logits, reloaded_logits)
    return every, every, every
