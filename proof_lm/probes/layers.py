"""Probes for PyTorch modules that a student builds from sizes, under weights that are known and not the student's.

The verdict draws the same weights again (`known_weight`) from a parameter's place and shape, so that names are
the student's own and what a module says of its weights is never believed.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np

OWNERS = ("MultiheadAttention", "Linear", "Embedding", "LayerNorm")  # whose parameters have a known meaning


def known_weight(seed: int, gain: float, index: int, shape: tuple[int, ...]) -> np.ndarray:
    """What parameter number `index` is filled with: matrices of scale gain / root of the last size, float64."""
    draw = np.random.default_rng([seed, index]).normal(size=tuple(shape))
    return 0.5 + 0.5 * draw if len(shape) < 2 else gain * shape[-1] ** -0.5 * draw


_drawn_once = lru_cache(maxsize=2000)(known_weight)  # many modules are filled alike; a verdict keeps no foreign shapes


def build(candidate: Callable, arguments: list) -> Any:
    """The layout of a new module, or the error that building it raises."""
    return layout(_new(candidate, arguments))


def outputs(candidate: Callable, arguments: list, setting: dict, *inputs: np.ndarray) -> Any:
    """Layout, and what one module gives for each input in turn.

    `setting`: seed and gain of the weights; precision "float32" or "float64"; training; method, the name of
    the module's function to call; silent, whether matrices and all that a residual branch may add at its end are zero.
    """
    import torch

    module = _new(candidate, arguments)
    said = layout(module)
    _fill(module, said, **setting)
    with torch.no_grad():
        found = [_first(_method(module, setting)(_tensor(values, setting))) for values in inputs]
    return {"layout": said, "outputs": [_array(tensor) for tensor in found]}


def gradients(candidate: Callable, arguments: list, setting: dict, values: np.ndarray, upstream: np.ndarray) -> Any:
    """Layout and output, and the gradients of sum(output * upstream) for each parameter and for the input."""
    import torch

    module = _new(candidate, arguments)
    said = layout(module)
    _fill(module, said, **setting)
    given = _tensor(values, setting)
    given.requires_grad_(given.is_floating_point())
    result = _first(_method(module, setting)(given))
    (result * torch.from_numpy(upstream)).sum().backward()
    found = [_array(parameter.grad) for parameter in _parameters(module).values()]
    return {"layout": said, "outputs": [_array(result)], "gradients": found, "input": _array(given.grad)}


def cached(candidate: Callable, arguments: list, setting: dict, values: np.ndarray, chunks: list[int]) -> Any:
    """Layout, output at once and output in chunks through the cache, and every cache as handed out and at the end."""
    import torch

    module = _new(candidate, arguments)
    said = layout(module)
    _fill(module, said, **setting)
    given, cache = _tensor(values, setting), None
    pieces, caches, then = [], [], []
    with torch.no_grad():
        whole = _first(module(given))
        for piece in given.split(chunks, dim=1):
            result, cache = module(piece, cache)
            pieces.append(result)
            caches.append(cache)
            then.append([_array(part).copy() for part in cache])
    now = [[_array(part) for part in cache] for cache in caches]
    return {"layout": said, "whole": _array(whole), "pieces": [_array(p) for p in pieces], "then": then, "now": now}


def layout(module: Any) -> list[dict]:
    """Of every parameter in order: name, shape, kind and path of the module that owns it, and what it starts as.

    That is "ones", "zeros", or "other" with a digest of the numbers.
    """
    from torch import nn

    said = []
    for (path, owner, name), parameter in _parameters(module).items():
        kind = next((kind for kind in OWNERS if isinstance(owner, getattr(nn, kind))), "")
        start = next((word for word, n in (("ones", 1), ("zeros", 0)) if bool((parameter == n).all())), "")
        start = start or f"other {crc32(_array(parameter).tobytes()):x}"
        shape = list(parameter.shape)
        said.append({"path": path, "name": name, "shape": shape, "owner": kind, "start": start})
    return said


def _parameters(module: Any) -> dict:
    """(path, owner, name) -> parameter, each once, in the order of registration."""
    found, seen = {}, set()
    for path, owner in module.named_modules():
        for name, parameter in owner.named_parameters(recurse=False):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                found[path, owner, name] = parameter
    return found


def _new(candidate: Callable, arguments: list) -> Any:
    import torch

    torch.default_generator.manual_seed(0)  # torch.manual_seed spends its time on devices that are not there
    return candidate(*(_block_maker(**a) if isinstance(a, dict) else a for a in arguments))


def _block_maker(width: int) -> Callable[[], Any]:
    """A maker of simple causal blocks: x + tanh(x W) cumulated over time, for models that stack what they are given."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Linear(width, width, bias=False)

        def forward(self, x: Any) -> Any:
            return x + torch.tanh(self.weight(x)).cumsum(dim=1)

    return Block


def _fill(module: Any, said: list[dict], seed: int, gain: float = 1.0, precision: str = "float64",
          training: bool = False, silent: bool = False, method: str = "") -> None:  # fmt: skip
    import torch

    module.to(getattr(torch, precision)).train(training)
    width = min((p["shape"][0] for p in said if p["start"] == "ones"), default=0)  # of a norm's scale
    for index, (parameter, facts) in enumerate(zip(_parameters(module).values(), said, strict=True)):
        values = _drawn_once(seed, gain, index, tuple(facts["shape"]))
        if silent and (values.ndim > 1 or (facts["start"] != "ones" and facts["shape"][0] == width)):
            values = np.zeros_like(values)
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(values))


def _method(module: Any, setting: dict) -> Callable:
    return getattr(module, setting.get("method") or "__call__")


def _tensor(values: np.ndarray, setting: dict) -> Any:
    """Memory is shared where the precision is the array's own, so that a change in place is seen."""
    import torch

    tensor = torch.from_numpy(values)
    precision = getattr(torch, setting.get("precision", "float64"))
    return tensor.to(precision) if tensor.is_floating_point() else tensor


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, (tuple, list)) else result


def _array(tensor: Any) -> Any:
    return None if tensor is None else tensor.detach().cpu().numpy()
