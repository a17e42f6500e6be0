"""Refuse notebooks whose stored form would puzzle a student or fail against itself.

    python -m tools.lint_notebooks [notebook ...]      (default: every lesson and every source notebook)

Each finding is one line: notebook, cell, what is wrong, what to do.
"""

import argparse
import copy
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import nbformat

from tools.notebooks import normalise

ROOT = Path(__file__).resolve().parents[1]
DIGEST_MIME = "application/vnd.prooflm.figure+json"
OUTPUT_LIMIT = 1_000_000  # bytes of JSON per output

NOISY_TEXT = {
    "a bare NumPy scalar": r"\bnp\.(?:float|int|uint|complex|bool|str|True_|False_)\w*",
    "a memory address": r"\b0x[0-9a-fA-F]{6,}\b",
    "a signed zero": r"(?<![\w.)\]])-0(?:\.0*)?(?![\w.])",
    "a warning": r"\b\w*Warning\b",
    "a progress bar": r"\d+%\|",
    "a personal path": r"/(?:home|Users|root|tmp)/",
    "a nameless temporary path": r"\bipykernel_\d+",
}
BARE_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?j?|True|False|nan|[-+]?inf")
UNCHECKED_TAGS = {"nbval-skip", "nbval-ignore-output", "skip-execution", "raises-exception"}
UNCHECKED_COMMENT = re.compile(r"^\s*#\s*(?:NBVAL_|PYTEST_VALIDATE_)", re.MULTILINE)
MARKDOWN_IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\(|<img\b(?P<tag>[^>]*)>")
MARKDOWN_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


def notebooks(root: Path = ROOT) -> list[Path]:
    """Every lesson and every source notebook, in reading order."""
    return sorted(root.glob("course/*.ipynb")) + sorted(root.glob("source/*/*.ipynb"))


def problems(path: Path) -> list[str]:
    """What is wrong with the notebook at `path`; empty when nothing is."""
    try:
        notebook = nbformat.v4.reads(path.read_text(encoding="utf-8"))
        fault = next(nbformat.validator.iter_validate(notebook), None)
    except (OSError, ValueError, AttributeError) as error:
        fault = error
    if fault is not None:
        return [f"not a valid notebook: {str(fault).splitlines()[0]}"]
    found = list(_whole(notebook))
    for number, cell in enumerate(notebook.cells):
        check = _code if cell.cell_type == "code" else _prose
        found += [f"cell {number} ({cell.get('id', 'no id')}): {text}" for text in check(cell, path)]
    return found


def _whole(notebook: nbformat.NotebookNode) -> Iterator[str]:
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if [cell.execution_count for cell in code] != list(range(1, len(code) + 1)):
        yield "execution counts are not 1, 2, 3 …: run python -m tools.notebooks execute on it"
    if not any(cell.outputs for cell in code):
        yield "no cell has an output: run python -m tools.notebooks execute on it"
    ids = Counter(cell.get("id") for cell in notebook.cells)
    if None in ids or (notebook.nbformat, notebook.nbformat_minor) != (4, 5):
        yield "cells without ids (nbformat 4.5 has them): run python -m tools.notebooks normalise on it"
    yield from (f"cell id {name} is used {times} times" for name, times in ids.items() if name and times > 1)
    tidy = copy.deepcopy(notebook)
    normalise(tidy)
    if tidy.metadata != notebook.metadata:
        yield "kernel or metadata of a person or machine: run python -m tools.notebooks normalise on it"
    if [cell.metadata for cell in tidy.cells] != [cell.metadata for cell in notebook.cells]:
        yield "cell metadata other than nbgrader, tags, folded answers: run python -m tools.notebooks normalise on it"


def _code(cell: nbformat.NotebookNode, path: Path) -> Iterator[str]:
    if not cell.source.strip():
        yield "empty code cell"
    if UNCHECKED_TAGS & set(cell.metadata.get("tags", [])) or UNCHECKED_COMMENT.search(cell.source):
        yield "is marked to be skipped, and nothing is skipped here"
    for output in cell.outputs:
        yield from _output(output, is_test=cell.metadata.get("nbgrader", {}).get("grade", False))


def _output(output: nbformat.NotebookNode, is_test: bool) -> Iterator[str]:
    if output.output_type == "error":
        yield f"stored error {output.ename}"
        return
    if output.get("name") == "stderr":
        yield f"writes to stderr: {output.text.strip().splitlines()[0][:80]}"
    if (size := len(json.dumps(output))) > OUTPUT_LIMIT:
        yield f"output of {size:,} bytes; at most {OUTPUT_LIMIT:,}"
    data = output.get("data", {})
    text = output.get("text", data.get("text/plain", ""))
    for what, pattern in NOISY_TEXT.items():
        if match := re.search(pattern, text):
            yield f"output holds {what} ({match[0]}): print it formatted"
    is_result = output.output_type == "execute_result" and not is_test  # a test cell ends in its points
    if is_result and BARE_NUMBER.fullmatch(text.strip()):
        yield f"bare scalar {text.strip()} as output: print it with a name and a format"
    for mime in data:
        if mime.startswith("image/"):
            if not output.metadata.get(mime, {}).get("alt", "").strip():
                yield "figure without alt text: show it with proof_lm.plots.show_figure(figure, alt)"
            if DIGEST_MIME not in data:
                yield "figure without digest: show it with proof_lm.plots.show_figure(figure, alt)"


def _prose(cell: nbformat.NotebookNode, path: Path) -> Iterator[str]:
    for image in MARKDOWN_IMAGE.finditer(cell.source):
        if not (image["alt"] or re.search(r"""\balt=["'][^"']+""", image["tag"] or "")):
            yield f"image without alt text: {image[0][:60]}"
    for target in (match["target"] for match in MARKDOWN_LINK.finditer(cell.source)):
        if ":" in target or target.startswith("#"):  # web addresses, attachments, places in this notebook
            continue
        if not (path.parent / unquote(target.partition("#")[0])).exists():
            yield f"link to {target}, which does not exist"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m tools.lint_notebooks", description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path)
    paths = parser.parse_args(arguments).notebooks or notebooks()
    if not paths:
        print(f"no notebooks found in {ROOT}/course and {ROOT}/source", file=sys.stderr)
        return 1
    found = [f"{path}: {text}" for path in paths for text in problems(path)]
    print("\n".join(found) if found else f"{len(paths)} notebooks are in order")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
