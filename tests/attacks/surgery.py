"""Attacks on the notebook's own form and on the files beside it. Each gets the released notebook and a folder.

`notebook` is a dictionary that may be changed; the folder is where the submission lies. A function that returns
True has written the notebook file itself.
"""

import contextlib
import io
import itertools
import json
import lzma
import os
import pickle
import socket
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests.attacks import CANARY

SURGERIES: dict[str, Callable[[dict, Path], bool | None]] = {}


def surgery(name: str) -> Callable:
    def keep(function: Callable) -> Callable:
        SURGERIES[name] = function
        return function

    return keep


def _tests(notebook: dict) -> list[dict]:
    return [cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("grade")]


@surgery("test cells emptied")
def _(notebook, folder):
    for cell in _tests(notebook):
        cell["source"] = "43.0"


@surgery("test cells deleted")
def _(notebook, folder):
    notebook["cells"] = [cell for cell in notebook["cells"] if cell not in _tests(notebook)]


@surgery("test cells tagged to be skipped")
def _(notebook, folder):
    for cell in notebook["cells"]:
        cell["metadata"]["tags"] = ["skip-execution", "raises-exception", "remove_cell", "nbval-skip"]


@surgery("test cells turned to Markdown")
def _(notebook, folder):
    for cell in _tests(notebook):
        cell["cell_type"] = "markdown"


@surgery("test cells turned raw")
def _(notebook, folder):
    for cell in _tests(notebook):
        cell["cell_type"] = "raw"


@surgery("test cells marked as solutions")
def _(notebook, folder):
    for cell in _tests(notebook):
        cell["metadata"]["nbgrader"] |= {"solution": True, "locked": False}
        cell["source"] = "1"


@surgery("points raised")
def _(notebook, folder):
    for cell in _tests(notebook):
        cell["metadata"]["nbgrader"]["points"] = 10_000


@surgery("points and result stored in outputs")
def _(notebook, folder):
    for cell in _tests(notebook):
        cell["outputs"] = [
            {"output_type": "execute_result", "data": {"text/plain": "10.0"}, "metadata": {}, "execution_count": 1}
        ]


@surgery("schema version of the future")
def _(notebook, folder):
    for cell in notebook["cells"]:
        cell["metadata"].get("nbgrader", {})["schema_version"] = 99


@surgery("schema version that is text")
def _(notebook, folder):
    for cell in notebook["cells"]:
        cell["metadata"].get("nbgrader", {})["schema_version"] = "three"


@surgery("another kernel")
def _(notebook, folder):
    notebook["metadata"]["kernelspec"] = {"name": "bash", "display_name": "Bash", "language": "bash"}


@surgery("a kernel with a command")
def _(notebook, folder):
    notebook["metadata"]["kernelspec"] = {"name": "../../evil", "display_name": "x", "argv": ["/bin/sh"]}
    (folder / "kernel.json").write_text('{"argv": ["/bin/sh", "-c", "touch /tmp/owned"]}')


@surgery("copies of test cells pasted")
def _(notebook, folder):
    notebook["cells"] += [dict(cell, source="43.0") for cell in _tests(notebook)]


@surgery("cells in another order")
def _(notebook, folder):
    notebook["cells"].reverse()


@surgery("all cells with one id")
def _(notebook, folder):
    for cell in notebook["cells"]:
        cell["id"] = "same"


@surgery("grade ids swapped")
def _(notebook, folder):
    cells = _tests(notebook)
    for cell, other in itertools.pairwise(cells):
        cell["metadata"]["nbgrader"]["grade_id"] = other["metadata"]["nbgrader"]["grade_id"]


@surgery("metadata of the grader forged")
def _(notebook, folder):
    notebook["metadata"]["prooflm"] = {"execution": "0" * 64}
    for cell in notebook["cells"]:
        cell["metadata"]["prooflm"] = {"extra": True, "points": 43}


@surgery("checksums forged")
def _(notebook, folder):
    for cell in notebook["cells"]:
        cell["metadata"].get("nbgrader", {})["checksum"] = "0" * 32


@surgery("thousands of cells")
def _(notebook, folder):
    notebook["cells"] += [
        {"cell_type": "code", "metadata": {}, "source": "1", "outputs": [], "execution_count": None}
    ] * 5000


@surgery("a cell of megabytes")
def _(notebook, folder):
    notebook["cells"].append(
        {"cell_type": "code", "metadata": {}, "source": "#" * 5_000_000, "outputs": [], "execution_count": None}
    )


@surgery("keys nested without end")
def _(notebook, folder):
    (folder / "p4_backward.ipynb").write_text('{"cells":' + "[" * 200_000 + "]" * 200_000 + "}")
    return True


@surgery("not a notebook")
def _(notebook, folder):
    (folder / "p4_backward.ipynb").write_bytes(os.urandom(1000))
    return True


@surgery("a link to the gradebook as notebook")
def _(notebook, folder):
    (folder / "p4_backward.ipynb").symlink_to(folder.parents[2] / "gradebook.db")
    return True


@surgery("a link to the source as notebook")
def _(notebook, folder):
    (folder / "p4_backward.ipynb").symlink_to(folder.parents[2] / "source" / "p4_backward" / "p4_backward.ipynb")
    return True


@surgery("links to secrets beside the notebook")
def _(notebook, folder):
    (folder / "data.txt").symlink_to(folder.parents[2] / "gradebook.db")
    (folder / "up").symlink_to(folder.parents[2])
    notebook["cells"].insert(
        0, _code("print(open('data.txt','rb').read()); print(open('up/gradebook.db','rb').read())")
    )


@surgery("a pipe as notebook")
def _(notebook, folder):
    os.mkfifo(folder / "p4_backward.ipynb")
    return True


@surgery("a pipe beside the notebook")
def _(notebook, folder):
    os.mkfifo(folder / "data.csv")


@surgery("modules that shadow libraries")
def _(notebook, folder):
    for name in ("numpy", "torch", "json", "proof_lm", "ast", "base64", "sitecustomize", "usercustomize", "IPython"):
        (folder / f"{name}.py").write_text("from builtins import *\nallclose = lambda *a, **k: True\n")
    (folder / "proof_lm").mkdir()
    (folder / "proof_lm" / "__init__.py").write_text("check = answer_plan = lambda *a: '43.0'")


@surgery("files that Python and Jupyter run by themselves")
def _(notebook, folder):
    for name in ("x.pth", "ipython_config.py", "jupyter_config.py", "nbgrader_config.py", "conftest.py", "pyvenv.cfg"):
        (folder / name).write_text("import os; os.system('touch /tmp/owned')")


@surgery("an archive that leaves its folder")
def _(notebook, folder):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in ("../../../gradebook.db", "/tmp/owned", "..\\..\\owned", "../bob/p4_backward/p4_backward.ipynb"):
            archive.writestr(name, "owned")
    (folder / "p4_backward.zip").write_bytes(buffer.getvalue())


@surgery("an archive that swells")
def _(notebook, folder):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(300_000_000))
    (folder / "data.zip").write_bytes(buffer.getvalue())


@surgery("a pickle that runs")
def _(notebook, folder):
    class Payload:
        def __reduce__(self):
            return os.system, ("touch /tmp/owned",)

    (folder / "answers.pkl").write_bytes(pickle.dumps(Payload()))


@surgery("a time stamp that is none")
def _(notebook, folder):
    (folder / "timestamp.txt").write_text("x" * 10_000)


@surgery("a time stamp behind a link")
def _(notebook, folder):
    (folder / "timestamp.txt").symlink_to(folder.parents[2] / "gradebook.db")


@surgery("names that forge lines")
def _(notebook, folder):
    (folder / f"x\n{CANARY[:3]}: full marks").write_text("")


@surgery("prose with a script, attachments and links")
def _(notebook, folder):
    notebook["cells"].append(_code("1"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = "<script>alert('owned')</script>![x](attachment:a.svg)[y](javascript:alert('owned'))"
            cell["attachments"] = {"a.svg": {"image/svg+xml": "<svg onload=alert('owned')>"}}


@surgery("stored outputs with scripts")
def _(notebook, folder):
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [
                {
                    "output_type": "display_data",
                    "metadata": {},
                    "data": {"text/html": "<script>alert('owned')</script>"},
                }
            ]


@surgery("halves of characters in the answers")
def _(notebook, folder):
    for cell in notebook["cells"]:
        cell["source"] = "x = '\ud800'"


@surgery("millions of empty cells")
def _(notebook, folder):
    (folder / "p4_backward.ipynb").write_text('{"cells":[' + "{}," * 5_000_000 + "{}]}")
    return True


@surgery("a name that takes for ever to look at")
def _(notebook, folder):
    (folder / ("copy-" * 45 + "x.ipynb")).write_text(json.dumps(notebook))
    (folder / ("-_ copy" * 30 + "y.ipynb")).write_text(json.dumps(notebook))
    return True


@surgery("an archive with a name that is file and folder")
def _(notebook, folder):
    with zipfile.ZipFile(folder / "w.zip", "w") as archive:
        for name in ("a", "a/b", "c/d/e", "c/d", "x" * 300, "y/" * 2000 + "z", "n" * 255, "A", "\u00e9", "e\u0301"):
            archive.writestr(name, "1")


@surgery("an archive that is torn inside")
def _(notebook, folder):
    with zipfile.ZipFile(folder / "w.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data", os.urandom(5000))
    data = bytearray((folder / "w.zip").read_bytes())
    data[60:80] = bytes(20)
    (folder / "w.zip").write_bytes(data)


@surgery("a compressed archive that swells a thousandfold")
def _(notebook, folder):
    member = tarfile.TarInfo("zeros")
    member.size = 2_000_000_000
    packer = lzma.LZMACompressor(preset=0)
    parts = [packer.compress(member.tobuf()), *(packer.compress(bytes(10_000_000)) for _ in range(40)), packer.flush()]
    (folder / "w.tar.xz").write_bytes(b"".join(parts))


@surgery("hard links, sockets and devices beside the notebook")
def _(notebook, folder):
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(folder)  # a socket's name has to be short
        listener.bind("s")
        os.chdir(here)
    (folder / "kept").write_text("1")
    os.link(folder / "kept", folder / "again")
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            os.mknod(folder / "zero", 0o20666, os.makedev(1, 5))


@surgery("names in many alphabets and cases")
def _(notebook, folder):
    for name in ("P4_BACKWARD.ipynb", "p4_backward.IPYNB", "p4_b\u0430ckward.ipynb", "\u202efdp.py", "con.py", "Numpy.py"):
        (folder / name).write_text("{}")


@surgery("thousands of metadata keys and deep metadata")
def _(notebook, folder):
    deep = {}
    for _ in range(90):
        deep = {"x": deep}
    for cell in notebook["cells"]:
        cell["metadata"] |= {f"k{n}": deep for n in range(20)}


@surgery("fields of other types")
def _(notebook, folder):
    odd = [None, 5, [], {}, True, "x", [None], {"grade_id": 5}, 1e999]
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"] = {"nbgrader": odd[number % len(odd)]} if number % 2 else odd[number % len(odd)]
        cell["source"] = odd[(number + 3) % len(odd)]
        cell["id"] = odd[(number + 5) % len(odd)]


@surgery("each key twice")
def _(notebook, folder):
    text = json.dumps(notebook)
    forged = json.dumps(_tests(notebook))
    text = f'{{"cells": {forged}, ' + text[1:-1] + f', "cells": {forged}}}'
    (folder / "p4_backward.ipynb").write_text(text)
    return True


@surgery("null characters and halves of characters in ids and keys")
def _(notebook, folder):
    for cell in notebook["cells"]:
        cell["id"] = "\x00\ud800" + cell.get("id", "")
        cell["metadata"] |= {"\x00": "\udfff", "\ud800": {"\x00": "\x00"}}
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["grade_id"] += "\x00"
        cell["source"] = ["\x00", "x = 1\x00\u2028\u2029\x0c\x0b\x85", "\ufeff", "\udc80"]


@surgery("prose and raw cells with the ids of tests and answers")
def _(notebook, folder):
    marks = [cell["metadata"]["nbgrader"] for cell in notebook["cells"] if "nbgrader" in cell["metadata"]]
    notebook["cells"] += [
        {"cell_type": kind, "metadata": {"nbgrader": mark}, "source": "43.0"}
        for mark in marks
        for kind in ("markdown", "raw", "heading", None)
    ]


@surgery("answers that no parser takes")
def _(notebook, folder):
    texts = ["(" * 5000 + ")" * 5000, "-" * 100_000 + "1", "1" + "+1" * 100_000, "\x00", "a.b" * 50_000]
    answers = [cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("solution")]
    for cell, text, other in zip(answers, itertools.cycle(texts), itertools.cycle([*texts[1:], texts[0]]), strict=False):
        cell["source"] = text
        notebook["cells"].append(dict(cell, source=other))


def _code(source: str) -> dict:
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}


def write(name: str, notebook: dict, folder: Path) -> None:
    """The submission of one attack on the notebook's form or files."""
    if not SURGERIES[name](notebook, folder):
        (folder / "p4_backward.ipynb").write_text(json.dumps(notebook))
