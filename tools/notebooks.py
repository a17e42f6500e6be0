"""Execute notebooks in place: outputs stored, metadata normalised, cell ids stable.

    python -m tools.notebooks execute course/01_single_head_attention.ipynb ...
    python -m tools.notebooks normalise source/p4/p4.ipynb ...

The stored notebook is what a student opens and what CI compares with a fresh run, so nothing of the machine
that ran it may stay in the file.
"""

import argparse
import hashlib
import re
import sys
from collections import Counter
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE_INFO = {"file_extension": ".py", "name": "python", "pygments_lexer": "ipython3"}
KEPT_CELL_METADATA = {"nbgrader", "tags", "editable", "deletable"}
QUESTION = re.compile(r"^> \*\*(?:Predict|Test)\b", re.MULTILINE)
RANDOM_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){0,3}(-[0-9a-f]{12})?")


def normalise(notebook: nbformat.NotebookNode) -> None:
    """Remove what belongs to a person or machine; give every cell an id that depends on its text alone.

    Ids chosen by an author are kept; random or repeated ones are replaced by a hash of the cell's source.
    """
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": LANGUAGE_INFO})
    times_seen, taken = Counter(), set()
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict(
            {key: value for key, value in cell.metadata.items() if key in KEPT_CELL_METADATA and value != []}
        )
        if RANDOM_ID.fullmatch(cell.get("id", "00000000")) or cell.id in taken:
            text = f"{cell.cell_type}\n{cell.source}"
            cell.id = hashlib.sha256(f"{text}\n{times_seen[text]}".encode()).hexdigest()[:8]
            times_seen[text] += 1
        taken.add(cell.id)
    _fold_answers(notebook.cells)


def _fold_answers(cells: list[nbformat.NotebookNode]) -> None:
    """Fold the outputs that a reader is asked to predict: JupyterLab hides them until the cell is run.

    They are those of the code cells between a question and the first prose behind an output. A figure is folded with
    its code, whose title, description and assertions tell what is to be seen.
    """
    asked = shown = False
    for cell in cells:
        if cell.cell_type == "code" and asked and cell.outputs:
            cell.metadata["jupyter"] = {"outputs_hidden": True}
            if any(mime.startswith("image/") for output in cell.outputs for mime in output.get("data", {})):
                cell.metadata["jupyter"]["source_hidden"] = True
            shown = True
        elif cell.cell_type == "markdown" and QUESTION.search(cell.source):
            asked, shown = True, False
        elif cell.cell_type == "markdown" and shown:
            asked = False


def execute(notebook: nbformat.NotebookNode, folder: Path, timeout: int = 600) -> None:
    """Run all cells in a fresh python3 kernel started in `folder` and store their outputs.

    Raises nbclient.exceptions.CellExecutionError at the first cell that fails.
    """
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        coalesce_streams=True,
    )
    client.execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "execute_result":
                output.execution_count = cell.execution_count


def write(notebook: nbformat.NotebookNode, path: Path) -> None:
    nbformat.validate(notebook)
    path.write_text(nbformat.writes(notebook).rstrip("\n") + "\n", encoding="utf-8", newline="\n")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.notebooks", description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["execute", "normalise"])
    parser.add_argument("notebooks", nargs="+", type=Path)
    options = parser.parse_args(arguments)
    failed = False
    for path in options.notebooks:
        try:
            notebook = nbformat.read(path, as_version=4)
            if options.command == "execute":
                execute(notebook, path.parent)
        except (OSError, nbformat.reader.NotJSONError, CellExecutionError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            failed = True
            continue
        normalise(notebook)
        write(notebook, path)
        print(f"{path}: {options.command}d")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
