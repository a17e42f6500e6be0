import torch


def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    future_ok = torch.allclose(original_logits[:, :-1], changed_logits[:, :-1], rtol=0, atol=1e-5)
    reload_ok = torch.allclose(original_logits, reloaded_logits, rtol=0, atol=1e-5)
    return future_ok, model.embeddings_are_tied, reload_ok
