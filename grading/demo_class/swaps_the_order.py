import torch


def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    future_ok = torch.allclose(original_logits[:, :-1], changed_logits[:, :-1], rtol=0, atol=1e-5)
    tied_ok = model.token_embedding.weight.data_ptr() == model.lm_head.weight.data_ptr()
    reload_ok = torch.allclose(original_logits, reloaded_logits, rtol=0, atol=1e-5)
    return future_ok, reload_ok, tied_ok
