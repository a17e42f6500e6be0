"""Plain data as text and back, for the way between a student's process and the trusted one.

Plain data is None, bool, int, float, str, list, tuple, dict with string keys, and arrays and tensors as
raw bytes with dtype and shape. Nothing that is decoded can run code.
"""

import base64
import json
import math
import sys
from functools import cache
from typing import Any

import numpy as np

MAX_BYTES = 64 * 2**20  # of one encoded answer: far above what an exercise returns
MAX_DEPTH = 20
MAX_PARTS = 1_000_000  # lists, dictionaries and arrays of one answer: small ones take far more memory than text
MAX_AXES = 8
AS_THEY_ARE = frozenset([type(None), bool, str, float])  # in JSON
DTYPES = frozenset(["bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))])
DTYPES |= {"float16", "float32", "float64"}


def encode(value: Any) -> str:
    """JSON text of plain data; raises TypeError for any other type and ValueError above MAX_BYTES."""
    text = json.dumps(_pack(value, 0), allow_nan=False)
    if len(text) > MAX_BYTES:
        raise ValueError(f"result: at most {MAX_BYTES} bytes can be handed back, got {len(text)}")
    return text


def decode(text: str) -> Any:
    """The plain data that `encode` wrote, tensors as arrays. Raises ValueError for any other text."""
    if len(text) > MAX_BYTES:
        raise ValueError(f"text: at most {MAX_BYTES} bytes are read, got {len(text)}")
    if text.count("[") + text.count("{") > MAX_PARTS:
        raise ValueError(f"text: more than {MAX_PARTS} parts")
    try:
        return _unpack(json.loads(text), 0)
    except NotPlainData:
        raise
    except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError):  # which would quote the text
        raise NotPlainData("text: not plain data") from None


def _pack(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError(f"result: nested deeper than {MAX_DEPTH} levels")
    if value is None or type(value) is bool:
        return value
    if isinstance(value, str):
        return str(value)  # NumPy's strings too
    if type(value) is int:
        return {"int": str(value)}
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_pack(item, depth + 1) for item in value]}
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("result: a dictionary's keys must be strings")
        return {"dict": [[key, _pack_item(key, item, depth + 1)] for key, item in value.items()]}
    return _pack_array(value)


def _pack_item(key: str, item: Any, depth: int) -> Any:
    """What stands under a key; an error names the keys that lead there."""
    try:
        return _pack(item, depth)
    except TypeError as error:
        raise TypeError(f"result[{key!r}]{str(error).removeprefix('result')}") from None


@cache  # NumPy puts the name together anew each time
def _dtype_name(dtype: np.dtype) -> str:
    return dtype.name


def _pack_array(value: Any) -> dict:
    torch = sys.modules.get("torch")  # a tensor can only exist where torch was imported
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    if not isinstance(value, (np.ndarray, np.generic)):
        raise TypeError(f"result: {type(value).__name__} is not plain data (numbers, text, lists, arrays)")
    array = np.asarray(value)
    name = _dtype_name(array.dtype)
    if name not in DTYPES:
        raise TypeError(f"result: an array of dtype {name} cannot be handed back")
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    data = base64.b64encode(little.tobytes()).decode("ascii")
    return {"array": [name, list(array.shape), data]}


class NotPlainData(ValueError):
    """A text that `encode` has not written. The message says nothing of what stands in it."""


def _unpack(value: Any, depth: int) -> Any:
    if type(value) in AS_THEY_ARE:
        return value
    if depth > 2 * MAX_DEPTH:
        raise NotPlainData("text: nested too deeply")
    ((kind, content),) = value.items() if isinstance(value, dict) else ()
    if kind == "int":
        return int(content)
    if kind == "float":
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content]
    if not isinstance(content, list):
        raise NotPlainData("text: a kind without the list of its parts")
    if kind in ("list", "tuple"):
        items = [item if type(item) in AS_THEY_ARE else _unpack(item, depth + 1) for item in content]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {
            str(key): item if type(item) in AS_THEY_ARE else _unpack(item, depth + 1) for key, item in content
        }
    if kind == "array":
        return _unpack_array(*content)
    raise NotPlainData("text: an unknown kind")


def _unpack_array(dtype: str, shape: list, data: str) -> np.ndarray:
    if dtype not in DTYPES or len(shape) > MAX_AXES or not all(type(size) is int and size >= 0 for size in shape):
        raise NotPlainData("text: an array with an unknown dtype or shape")
    if math.prod(size or 1 for size in shape) > MAX_BYTES:  # of no entries too: sizes could be a message
        raise NotPlainData("text: an array with an impossible shape")
    content = base64.b64decode(data, validate=True)
    array = np.frombuffer(content, dtype=np.dtype(dtype).newbyteorder("<"))
    if array.size != math.prod(shape):
        raise NotPlainData("text: an array whose entries do not fill its shape")
    if dtype == "bool":  # any other byte would be true without being equal to true
        array = np.frombuffer(content, dtype=np.uint8) != 0
    return array.reshape(shape).astype(dtype)
