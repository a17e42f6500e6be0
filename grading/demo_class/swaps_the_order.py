import torch


def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    future_ok = torch.equal(original_logits[:, :-1], changed_logits[:, :-1])
    tied_ok = model.token_embedding.weight.data_ptr() == model.lm_head.weight.data_ptr()
    return future_ok, torch.equal(original_logits, reloaded_logits), tied_ok
