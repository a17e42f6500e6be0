import torch


def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    future_ok = torch.equal(original_logits[:, :-1], changed_logits[:, :-1])
    return future_ok, model.embeddings_are_tied, torch.equal(original_logits, reloaded_logits)
