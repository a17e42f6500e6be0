"""Probes for PyTorch language models: called with ids (B, T) they return logits (B, T, V), or logits and a loss."""

import copy
import io
from typing import Any

import numpy as np


def logits(model: Any, token_ids: np.ndarray) -> Any:
    """Logits in evaluation mode."""
    import torch

    model.eval()
    with torch.no_grad():
        result = model(torch.from_numpy(token_ids))
    return _array(result[0] if isinstance(result, tuple) else result)


def cached_logits(model: Any, token_ids: np.ndarray, chunks: list[int]) -> Any:
    """Logits of ids read in chunks of these lengths, through the cache of `new_cache`, and those read at once."""
    import torch

    model.eval()
    cache, pieces = model.new_cache(len(token_ids)), torch.from_numpy(token_ids).split(chunks, dim=1)
    with torch.inference_mode():
        cached = [model.lm_head(model.forward_hidden(piece, cache)) for piece in pieces]
    return {"cached": _array(torch.cat(cached, dim=1)), "plain": logits(model, token_ids)}


def loss(model: Any, token_ids: np.ndarray, labels: np.ndarray, loss_mask: np.ndarray) -> Any:
    """The masked loss in evaluation mode, and the gradient of each parameter by name (None where none came)."""
    import torch

    model.eval()
    model.zero_grad(set_to_none=True)
    _, value = model(*(torch.from_numpy(array) for array in (token_ids, labels, loss_mask)))
    value.backward()
    gradients = {name: _array(parameter.grad) for name, parameter in model.named_parameters()}
    model.zero_grad(set_to_none=True)
    return {"loss": value.item(), "gradients": gradients}


def addresses(model: Any, embedding: str, head: str, path: str) -> Any:
    """Where the storage of two weights begins, in a copy of the model that went through `path`."""
    import torch

    model = copy.deepcopy(model)
    if path.startswith("load"):
        copies = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        model.load_state_dict(copies, assign=path == "load_state_dict(assign=True)")
    elif path == "an optimiser step":
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        torch.optim.SGD(model.parameters(), lr=0.1).step()
    return [model.get_parameter(name).untyped_storage().data_ptr() for name in (embedding, head)]


def saved_and_loaded(model: Any, token_ids: np.ndarray) -> Any:
    """Logits before, and those of a copy with other weights after it loaded what torch.save wrote of the first."""
    import torch

    file, other = io.BytesIO(), copy.deepcopy(model)
    torch.save(model.state_dict(), file)
    file.seek(0)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1.0)
    other.load_state_dict(torch.load(file, weights_only=True))
    return {"before": logits(model, token_ids), "after": logits(other, token_ids)}


def _array(values: Any) -> Any:
    """A tensor as an array that a verdict without torch can read; anything else as it is."""
    return values.detach().cpu().double().numpy() if hasattr(values, "detach") else values
