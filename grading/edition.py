"""The edition of proof_lm that a submission sees while it is graded: probes, and nothing that holds an answer."""

import compileall
import py_compile
import shutil
import tempfile
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from threading import Lock

import proof_lm

PACKAGE = Path(proof_lm.__file__).parent
WITHHELD_MODULE = """raise ImportError(
    "proof_lm.{name} is not available while this problem set is graded; write what you need in the notebook"
)
"""
CHECKS = '''"""Checks say nothing while a submission is graded: the grader asks its own questions."""


def check(*arguments, **keywords):
    """Does nothing here."""


hint = progress = solution = verify = show = check
'''
TOP = '''"""ProofLM while a submission is graded."""

from importlib import import_module


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    for module in {open!r}:
        found = import_module(f"proof_lm.{{module}}")
        if hasattr(found, name):
            return getattr(found, name)
    raise ImportError(
        f"proof_lm.{{name}} is not available while this problem set is graded; write what you need in the notebook"
    )
'''
EXPORTING = ("attention", "block", "gradients", "depth")  # the modules whose names proof_lm itself exports
ALWAYS_OPEN = frozenset({"__init__", "__main__", "probes", "checks", "plots"})


_lock = Lock()  # a cache alone lets threads that ask at once each make one, and each then gets a warm process


def edition(withheld: tuple[str, ...]) -> Path:
    """A folder named proof_lm with this edition, made once a process and removed at its end.

    `withheld` names modules or subpackages; those that import them cannot be imported either. Raises ValueError
    for a name that proof_lm does not have.
    """
    with _lock:
        return _make(withheld)


@cache
def _make(withheld: tuple[str, ...]) -> Path:
    for name in withheld:
        if not ((PACKAGE / f"{name}.py").exists() or (PACKAGE / name).is_dir()) or name in ALWAYS_OPEN:
            raise ValueError(f"withheld: proof_lm has no module {name} that could be withheld")
    holder = Path(tempfile.mkdtemp(prefix="proof-lm-edition-"))
    Finalize(None, shutil.rmtree, (holder, True), exitpriority=0)  # a forked worker ends without its atexit functions
    package = holder / "proof_lm"
    shutil.copytree(PACKAGE, package, ignore=lambda folder, names: _left_out(Path(folder), names, withheld))
    for name in withheld:
        (package / f"{name}.py").write_text(WITHHELD_MODULE.format(name=name), encoding="utf-8")
    (package / "checks.py").write_text(CHECKS, encoding="utf-8")
    still_open = tuple(name for name in EXPORTING if name not in withheld)
    (package / "__init__.py").write_text(TOP.format(open=still_open), encoding="utf-8")
    compileall.compile_dir(package, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    for path in [holder, *holder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)  # a sandboxed kernel has another user id
    return package


def _left_out(folder: Path, names: list[str], withheld: tuple[str, ...]) -> set[str]:
    left_out = {"__pycache__"}
    if folder == PACKAGE:
        left_out |= {"checks", *withheld, *(f"{name}.py" for name in withheld)}
    return left_out.intersection(names)
