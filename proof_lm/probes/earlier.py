"""A candidate beside right versions of functions that earlier exercises asked for.

A function of a student's may call others of theirs by name. To see whether it is right by itself it is run in a copy
of its globals where those names mean right functions; the right ones of exercises already asked are no secret.
"""

import builtins
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any


def defined_by(source: str, names: Sequence[str]) -> dict[str, Callable]:
    """The functions `names` as this source defines them, in a namespace of their own."""
    namespace: dict[str, Any] = {"__name__": "earlier", "__builtins__": builtins}
    exec(compile(source, "<earlier exercises>", "exec"), namespace)
    return {name: namespace[name] for name in names}


def rebound(candidate: Any, right: dict[str, Callable]) -> Any:
    """The candidate (or each of a tuple) calling `right` wherever its globals hold a function of that name.

    Other functions of the same globals are copied, so that they call the right ones too. What is no plain function
    stays as it is.
    """
    home = _home(candidate)
    instead = {id(home[name]): right[name] for name in right if isinstance(home.get(name), FunctionType)}
    namespace: dict[str, Any] = {}

    def moved(value: Any) -> Any:
        if id(value) in instead:  # under another name too
            return instead[id(value)]
        if not isinstance(value, FunctionType) or value.__globals__ is not home:
            return value
        copy = FunctionType(value.__code__, namespace, value.__name__, value.__defaults__, value.__closure__)
        copy.__kwdefaults__ = value.__kwdefaults__
        return copy

    namespace.update({name: moved(value) for name, value in home.items()} | right)
    return tuple(map(moved, candidate)) if isinstance(candidate, tuple) else moved(candidate)


def reached(candidate: Any, names: Sequence[str]) -> list[str]:
    """Which of `names` the candidate's code refers to, itself or through functions that it calls."""
    home = _home(candidate)
    codes = [function.__code__ for function in _functions(candidate)]
    seen: list[Any] = []
    while codes:
        code = codes.pop()
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        called = [home[name] for name in code.co_names if isinstance(home.get(name), FunctionType)]
        new = [function for function in called if function not in seen]
        seen += new
        codes += [function.__code__ for function in new]
    return [name for name in names if any(home.get(name) is function for function in seen)]


def _functions(candidate: Any) -> list[FunctionType]:
    several = candidate if isinstance(candidate, tuple) else (candidate,)
    return [function for function in several if isinstance(function, FunctionType)]


def _home(candidate: Any) -> dict[str, Any]:
    return next((function.__globals__ for function in _functions(candidate)), {})
