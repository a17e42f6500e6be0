"""Each property of a language model holds for ProofLM in every variant and fails for the mistake it is about."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from proof_lm.checks import PropertyFailed, verify
from proof_lm.checks import model as checks
from proof_lm.model import ProofLM
from tests.test_model import SMALL, build, each_variant

V = SMALL.vocab_size
PROPERTIES = [
    checks.earlier_logits_unchanged(V),
    checks.reload_changes_nothing(V),
    checks.evaluation_repeats(V),
    checks.all_gradients_are_finite(V),
    checks.nothing_kept_teaches_nothing(V),
    checks.padding_changes_nothing(V),
    checks.initial_loss_is_log_of_vocabulary(V),
    checks.cache_changes_nothing(V),
]


@each_variant
@pytest.mark.parametrize("prop", PROPERTIES, ids=lambda prop: prop.name)
def test_holds_for_every_variant(prop, config, capsys):
    verify(prop, build(replace(config, dropout=0.5)))
    assert capsys.readouterr().out.startswith(f"holds: {prop.name}")


def test_tied_embeddings_hold_for_tied_models_alone():
    verify(checks.tied_embeddings_share_storage(), build())
    with pytest.raises(PropertyFailed, match=r"after as built"):
        verify(checks.tied_embeddings_share_storage(), build(replace(SMALL, tie_embeddings=False)))


def fails(prop, model, match):
    with pytest.raises(PropertyFailed, match=match):
        verify(prop, model)


class PlainTie(nn.Module):
    """Tied the usual way: two modules share a parameter until a load by assignment parts them."""

    def __init__(self):
        super().__init__()
        self.token_embedding, self.lm_head = nn.Embedding(V, 8), nn.Linear(8, V, bias=False)
        self.lm_head.weight = self.token_embedding.weight

    def forward(self, token_ids):
        return self.lm_head(self.token_embedding(token_ids))


def test_a_tie_that_assignment_parts_fails_there():
    fails(checks.tied_embeddings_share_storage(), PlainTie(), r"after load_state_dict\(assign=True\)")
    verify(checks.tied_embeddings_share_storage(paths=("as built", "load_state_dict")), PlainTie())


class Wrong(ProofLM):
    """ProofLM with one part of it replaced by a mistake."""

    def __init__(self, mistake):
        torch.manual_seed(0)
        super().__init__(SMALL)
        self.mistake = mistake

    def forward(self, token_ids, labels=None, loss_mask=None):
        logits, _ = super().forward(token_ids)
        if labels is None:
            return logits, None
        each = -logits.log_softmax(-1).gather(-1, labels[..., None]).squeeze(-1)  # (B, T)
        return logits, self.mistake(each, loss_mask)


def test_a_loss_that_divides_by_all_positions_fails_with_padding():
    model = Wrong(lambda each, mask: (each * mask).mean())
    fails(checks.padding_changes_nothing(V), model, "divide by the kept labels alone")
    verify(checks.nothing_kept_teaches_nothing(V), model)


def test_a_loss_that_divides_by_nothing_kept_fails():
    fails(checks.nothing_kept_teaches_nothing(V), Wrong(lambda each, mask: each[mask].mean()), "not zero")


def test_a_loss_that_some_parameters_do_not_reach_fails():
    model = Wrong(lambda each, mask: each.mean())
    model.spare = nn.Parameter(torch.ones(3))
    fails(checks.all_gradients_are_finite(V), model, "spare gets no gradient")
    fails(checks.all_gradients_are_finite(V), Wrong(lambda each, mask: each.mean() * torch.inf), "not finite")
    fails(checks.all_gradients_are_finite(V), Wrong(lambda each, mask: each.mean() * 0), "zero throughout")


def test_a_model_that_starts_sure_of_itself_fails():
    fails(checks.initial_loss_is_log_of_vocabulary(V), build(scale=30.0), "far from ln V")


def test_attention_without_a_mask_fails():
    model = build(scale=4.0)
    for layer in model.blocks:
        layer.attention.attend = nn.functional.scaled_dot_product_attention
    fails(checks.earlier_logits_unchanged(V), model, "changed the logits at position 0")


def test_a_model_that_sees_nothing_new_fails():
    fails(checks.earlier_logits_unchanged(V), lambda_model(lambda ids: torch.ones(*ids.shape, V)), "own position")
    fails(
        checks.earlier_logits_unchanged(V), lambda_model(lambda ids: torch.full((*ids.shape, V), torch.nan)), "finite"
    )


def lambda_model(function):
    model = nn.Module()
    model.forward = function
    return model


class Forgetful(ProofLM):
    """Its state dict leaves out the first block."""

    def state_dict(self, *args, **kwargs):
        state = super().state_dict(*args, **kwargs)
        return {name: tensor for name, tensor in state.items() if not name.startswith("blocks.0.mlp")}

    def load_state_dict(self, state_dict, strict=True, assign=False):
        return super().load_state_dict(state_dict, strict=False, assign=assign)


def test_a_state_that_leaves_something_out_fails_on_reload():
    fails(checks.reload_changes_nothing(V), Forgetful(SMALL), "does not hold all that the logits depend on")


def test_randomness_in_evaluation_fails():
    model = lambda_model(lambda ids: torch.rand(*ids.shape, V))
    fails(checks.evaluation_repeats(V), model, "still drawn at random")


def test_a_cache_that_forgets_positions_fails():
    model = build(scale=6.0)
    turns = model.rotations[:1].expand(SMALL.context_length, -1, -1)
    forward = ProofLM.forward_hidden

    def forgetful(ids, cache=None):
        kept, model.rotations = model.rotations, turns if cache and cache[0].length else model.rotations
        try:
            return forward(model, ids, cache)
        finally:
            model.rotations = kept

    model.forward_hidden = forgetful
    fails(checks.cache_changes_nothing(V), model, "through the cache")
