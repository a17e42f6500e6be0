"""What a graded notebook shows of a cell's prints does not depend on when the kernel was scheduled."""

from nbformat.v4 import new_code_cell, new_notebook

from grading.execute import execute
from grading.execution import Limits
from grading.sandbox import Policy

CHATTY = """
import sys, time
from IPython.display import display
for turn in range(3):
    print("out", turn, flush=True)
    time.sleep(0.3)  # longer than the kernel gathers what is printed
    print("err", turn, file=sys.stderr, flush=True)
    time.sleep(0.3)
display("a value")
print("last")
"""


def outputs(code: str, **limits) -> list[str]:
    notebook = new_notebook(cells=[new_code_cell(code)])
    execute(notebook, {}, 0, Policy(), limits=Limits(**limits))
    return [output.get("text", output.output_type) for output in notebook.cells[0].outputs]


def test_a_stream_is_one_text_however_it_was_cut():
    assert outputs(CHATTY) == ["out 0\nout 1\nout 2\n", "err 0\nerr 1\nerr 2\n", "display_data", "last\n"]


def test_what_was_printed_before_a_limit_is_one_text_too():
    assert outputs(CHATTY + "while True: pass", cell=4)[:4] == outputs(CHATTY)
