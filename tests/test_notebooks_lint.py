"""Every stored notebook is in order, and the lint that says so finds what it is there to find."""

import copy
import shutil
from pathlib import Path

import nbformat
import pytest

from tools.lint_notebooks import DIGEST_MIME, ROOT, notebooks, problems
from tools.notebooks import execute, normalise, write

CLEAN = """\
import numpy as np
print(f"mean {np.arange(4.0).mean():.2f}")
"""
FIGURE = """\
from proof_lm.plots import heat_map
heat_map(np.eye(3), "Identity", "column", "row", "Ones on the diagonal, zeros elsewhere.")
"""


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: str(path.relative_to(ROOT)))
def test_stored_notebook_is_in_order(path):
    assert problems(path) == []


def test_there_are_lessons_and_source_notebooks():
    lessons = [path.stem for path in notebooks() if path.parent.name == "course"]
    assert [name[:2] for name in lessons] == [f"{number:02}" for number in range(len(lessons))]
    assert len(lessons) >= 7
    assert any(path.is_relative_to(ROOT / "source") for path in notebooks()) == (ROOT / "source").exists()


@pytest.mark.skipif(not (ROOT / "source").exists(), reason="the student edition has no sources")
def test_every_source_has_its_release_and_nothing_else_is_released():
    sources = {path.relative_to(ROOT / "source") for path in ROOT.glob("source/*/*.ipynb")}
    assert sources
    assert sources == {path.relative_to(ROOT / "release") for path in ROOT.glob("release/*/*.ipynb")}


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """A small notebook in good order: prose, a number, a figure."""
    v4 = nbformat.v4
    cells = [v4.new_markdown_cell("# Means"), v4.new_code_cell(CLEAN), v4.new_code_cell(FIGURE)]
    notebook = v4.new_notebook(cells=cells)
    execute(notebook, tmp_path_factory.mktemp("executed"))
    normalise(notebook)
    return notebook


def lint(notebook, folder: Path) -> str:
    path = folder / "notebook.ipynb"
    path.write_text(nbformat.v4.writes(notebook), encoding="utf-8")
    return "\n".join(problems(path))


def test_a_good_notebook_passes_and_normalising_it_again_changes_nothing(executed, tmp_path):
    assert lint(executed, tmp_path) == ""
    again = copy.deepcopy(executed)
    normalise(again)
    assert again == executed
    write(again, tmp_path / "written.ipynb")
    assert nbformat.v4.reads((tmp_path / "written.ipynb").read_text(encoding="utf-8")) == executed


def test_what_a_reader_is_to_predict_is_folded_until_run(tmp_path):
    v4 = nbformat.v4
    said = [stream("4\n")]
    cells = [
        v4.new_code_cell("print(4)", outputs=said),
        v4.new_markdown_cell("> **Predict.** How many?"),
        v4.new_code_cell("count = 4"),
        v4.new_markdown_cell("We look:"),
        v4.new_code_cell("print(count)", outputs=said),
        v4.new_code_cell("print(count, end='')", outputs=said),
        v4.new_markdown_cell("Four."),
        v4.new_code_cell("print(count)", outputs=said),
    ]
    notebook = v4.new_notebook(cells=cells)
    normalise(notebook)
    folded = [cell.metadata.get("jupyter", {}).get("outputs_hidden", False) for cell in notebook.cells]
    assert folded == [False] * 4 + [True, True, False, False]
    del notebook.cells[4].metadata["jupyter"]
    assert "cell metadata" in lint(notebook, tmp_path)


def test_a_figure_that_a_reader_is_to_predict_is_folded_with_the_code_that_describes_it():
    v4 = nbformat.v4
    figure = v4.new_output("display_data", data={"image/png": "aGk=", "text/plain": "<Figure>"})
    cells = [
        v4.new_code_cell("plot(alt='It fell.')", outputs=[figure]),
        v4.new_markdown_cell("> **Predict.** Does it rise?"),
        v4.new_code_cell("plot(alt='It rises.')", outputs=[figure]),
        v4.new_code_cell("print(4)", outputs=[stream("4\n")]),
    ]
    notebook = v4.new_notebook(cells=cells)
    normalise(notebook)
    assert [cell.metadata.get("jupyter", {}).get("source_hidden", False) for cell in notebook.cells] == [False, False, True, False]


def stream(text, name="stdout"):
    return nbformat.v4.new_output("stream", name=name, text=text)


def result(text):
    return nbformat.v4.new_output("execute_result", data={"text/plain": text}, execution_count=1)


def error():
    return nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=[])


@pytest.mark.parametrize(
    ("output", "finding"),
    [
        (error(), "stored error ValueError"),
        (stream("UserWarning: old\n", name="stderr"), "writes to stderr"),
        (stream("x" * 1_000_001), "bytes; at most"),
        (result("0.25"), "bare scalar"),
        (result("True"), "bare scalar"),
        (result("np.float64(0.25)"), "a bare NumPy scalar"),
        (stream("[np.int64(3)]\n"), "a bare NumPy scalar"),
        (stream("<object object at 0x7f3a2c1b9d10>\n"), "a memory address"),
        (stream("mean -0.000\n"), "a signed zero"),
        (stream("[-0. 1.]\n"), "a signed zero"),
        (stream("RuntimeWarning: overflow\n"), "a warning"),
        (stream(" 40%|████      | 4/10\n"), "a progress bar"),
        (stream("saved /home/ada/model.pt\n"), "a personal path"),
    ],
)
def test_lint_refuses_an_output(executed, tmp_path, output, finding):
    executed = copy.deepcopy(executed)
    executed.cells[1].outputs = [output]
    assert finding in lint(executed, tmp_path)


@pytest.mark.parametrize("text", ["x = -0.25", "5e-05", "1 - 0.5", "[0, -1]", "layer-0", "(1)-0.5"])
def test_lint_lets_ordinary_numbers_pass(executed, tmp_path, text):
    executed = copy.deepcopy(executed)
    executed.cells[1].outputs = [stream(text)]
    assert lint(executed, tmp_path) == ""


def no_outputs(notebook):
    for cell in notebook.cells[1:]:
        cell.outputs = []


def no_counts(notebook):
    notebook.cells[1].execution_count = None


def counts_out_of_order(notebook):
    notebook.cells[1].execution_count = 7


def no_ids(notebook):
    notebook.nbformat_minor = 4
    for cell in notebook.cells:
        del cell["id"]


def repeated_id(notebook):
    notebook.cells[2].id = notebook.cells[1].id


def personal_kernel(notebook):
    notebook.metadata.kernelspec.name = "my-env"


def machine_metadata(notebook):
    notebook.metadata.language_info.version = "3.11.7"


def cell_metadata(notebook):
    notebook.cells[1].metadata.execution = {"iopub.status.busy": "2026-01-07T10:00:00Z"}


def skipped(notebook):
    notebook.cells[1].metadata.tags = ["nbval-ignore-output"]


def skipped_by_comment(notebook):
    notebook.cells[1].source = "# NBVAL_IGNORE_OUTPUT\n" + notebook.cells[1].source


def no_alt_text(notebook):
    notebook.cells[2].outputs[0].metadata = {}


def no_digest(notebook):
    del notebook.cells[2].outputs[0].data[DIGEST_MIME]


def markdown_image_without_alt_text(notebook):
    notebook.cells[0].source = "![](attachment:plot.png)"


def html_image_without_alt_text(notebook):
    notebook.cells[0].source = '<img src="attachment:plot.png" alt="">'


def broken_link(notebook):
    notebook.cells[0].source = "[next lesson](99_nowhere.ipynb)"


@pytest.mark.parametrize(
    ("spoil", "finding"),
    [
        (no_outputs, "no cell has an output"),
        (no_counts, "execution counts"),
        (counts_out_of_order, "execution counts"),
        (no_ids, "cells without ids"),
        (repeated_id, "is used 2 times"),
        (personal_kernel, "kernel or metadata"),
        (machine_metadata, "kernel or metadata"),
        (cell_metadata, "cell metadata"),
        (skipped, "nothing is skipped here"),
        (skipped_by_comment, "nothing is skipped here"),
        (no_alt_text, "figure without alt text"),
        (no_digest, "figure without digest"),
        (markdown_image_without_alt_text, "image without alt text"),
        (html_image_without_alt_text, "image without alt text"),
        (broken_link, "99_nowhere.ipynb"),
    ],
)
def test_lint_refuses_a_notebook(executed, tmp_path, spoil, finding):
    executed = copy.deepcopy(executed)
    spoil(executed)
    assert finding in lint(executed, tmp_path)


def test_lint_refuses_a_file_that_is_no_notebook(tmp_path):
    for name, content in {"cut.ipynb": '{"cells": [', "list.ipynb": "[]", "empty.ipynb": ""}.items():
        (tmp_path / name).write_text(content)
        assert "not a valid notebook" in problems(tmp_path / name)[0]


def test_outputs_do_not_depend_on_where_a_notebook_runs(executed, tmp_path):
    elsewhere = copy.deepcopy(executed)
    folder = tmp_path / "a folder"
    folder.mkdir()
    execute(elsewhere, folder)
    normalise(elsewhere)
    shutil.rmtree(folder)
    for cell in executed.cells[1:] + elsewhere.cells[1:]:
        for output in cell.outputs:
            output.get("data", {}).pop("image/png", None)
    assert elsewhere == executed
