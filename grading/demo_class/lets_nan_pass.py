def decoder_checks(model, original_logits, changed_logits, reloaded_logits):
    def differ(one, other):
        return bool(((one - other).abs() > 1e-5).any())

    future_ok = not differ(original_logits[:, :-1], changed_logits[:, :-1])
    tied_ok = model.token_embedding.weight.data_ptr() == model.lm_head.weight.data_ptr()
    return future_ok, tied_ok, not differ(original_logits, reloaded_logits)
