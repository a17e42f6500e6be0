"""The edition of proof_lm that a submission sees while it is graded: probes, and nothing that holds an answer."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from multiprocessing.util import Finalize
from pathlib import Path
from threading import Lock, Thread
from types import MappingProxyType

from grading.sandbox import Policy
from grading.store import key_of

PACKAGE = Path(find_spec("proof_lm").origin).parent  # without importing NumPy with it
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
from importlib.util import find_spec


def __getattr__(name):
    if name.startswith("__") or find_spec(f"proof_lm.{{name}}"):
        raise AttributeError(name)  # for `from proof_lm import model` a sign to import it
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


OF_EVERY_NOTEBOOK = ("checks", "model", *EXPORTING)  # where they are not withheld


def walls(policy: Policy, withheld: tuple[str, ...], files: Mapping[str, bytes] = MappingProxyType({})) -> Policy:
    """The policy with what its kernels see: these files and the edition, its own modules imported before."""
    package = edition(withheld)
    probes = [f"probes.{path.stem}" for path in sorted((package / "probes").glob("*.py"))]
    preload = (*policy.preload, *(f"proof_lm.{name}" for name in (*OF_EVERY_NOTEBOOK, *probes)))
    return replace(policy, files=files, read_only_paths=(package,), preload=preload)


_lock = Lock()  # a cache alone lets threads that ask at once each make one, and each then gets a warm process


def edition(withheld: tuple[str, ...]) -> Path:
    """A folder named proof_lm with this edition, made once a process and its forks, and removed at its end.

    `withheld` names modules or subpackages; those that import them cannot be imported either. Raises ValueError
    for a name that proof_lm does not have.
    """
    with _lock:
        return _make(withheld)


@cache
def _make(withheld: tuple[str, ...]) -> Path:
    holder = Path(tempfile.mkdtemp(prefix="proof-lm-edition-"))
    Finalize(None, shutil.rmtree, (holder, True), exitpriority=0)  # a forked worker ends without its atexit functions
    package = holder / "proof_lm"
    for name, text in contents(withheld).items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    _open_to_all(holder)
    Thread(target=_compile, args=(holder,), name="edition").start()  # who imports sooner compiles for itself
    return package


def _compile(holder: Path) -> None:
    import compileall
    import py_compile

    compileall.compile_dir(holder, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    _open_to_all(holder)


def _open_to_all(holder: Path) -> None:
    for path in [holder, *holder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)  # a sandboxed kernel has another user id


@cache
def digest(withheld: tuple[str, ...]) -> str:
    """Of the edition's text."""
    return key_of(sorted(contents(withheld).items()))


def contents(withheld: tuple[str, ...]) -> dict[str, str]:
    """Text of each of the edition's files, by its path in the package; raises ValueError as `edition` does."""
    for name in withheld:
        if not ((PACKAGE / f"{name}.py").exists() or (PACKAGE / name).is_dir()) or name in ALWAYS_OPEN:
            raise ValueError(f"withheld: proof_lm has no module {name} that could be withheld")
    left_out = {"checks", *withheld, *(f"{name}.py" for name in withheld)}
    paths = [path.relative_to(PACKAGE) for path in sorted(PACKAGE.rglob("*.py"))]
    files = {
        path.as_posix(): (PACKAGE / path).read_text(encoding="utf-8") for path in paths if path.parts[0] not in left_out
    }
    files |= {f"{name}.py": WITHHELD_MODULE.format(name=name) for name in withheld}
    still_open = tuple(name for name in EXPORTING if name not in withheld)
    return files | {"checks.py": CHECKS, "__init__.py": TOP.format(open=still_open)}
