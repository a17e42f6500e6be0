"""A function shown in a lesson is the package's: same syntax tree, docstrings and annotations aside."""

import ast
from collections import defaultdict

import nbformat
import pytest

from tools.lint_notebooks import ROOT

LESSONS = sorted((ROOT / "course").glob("*.ipynb"))
MODULES = sorted((ROOT / "proof_lm").glob("*.py")) + sorted((ROOT / "proof_lm" / "training").glob("*.py"))

# What chapters 4 and 5 build in front of the reader.
SHOWN = {
    "row_softmax",
    "causal_mask",
    "single_head_attention",
    "split_heads",
    "merge_heads",
    "multi_head_attention",
    "batched_multi_head_attention",
    "layer_norm",
    "gelu",
    "feed_forward",
    "decoder_block",
    "tiny_transformer_forward",
    "output_projection_loss_and_grad",
    "gradient_norm_by_depth",
    "shifted",
    "parameter_groups",
    "learning_rate",
    "KVCache",
}


class Plain(ast.NodeTransformer):
    """Drop docstrings and annotations; what is left is what runs."""

    def visit_FunctionDef(self, node):
        node.returns = None
        return self.visit_ClassDef(node)

    def visit_ClassDef(self, node):
        self.generic_visit(node)
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return node

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_AnnAssign(self, node):
        name = self.generic_visit(node).target
        return ast.Expr(name) if node.value is None else ast.Assign([name], node.value)


def definitions(source: str) -> list[tuple[str, str]]:
    """(name, plain source) of every function and class at the top level."""
    nodes = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [(node.name, ast.unparse(ast.fix_missing_locations(Plain().visit(node)))) for node in nodes]


def shown_in(lesson) -> list[tuple[str, str]]:
    cells = nbformat.read(lesson, as_version=4).cells
    return [found for cell in cells if cell.cell_type == "code" for found in definitions(cell.source)]


# A name may be used twice (MLP in NumPy and in PyTorch); a lesson shows one of them.
PACKAGE = defaultdict(set)
for module in MODULES:
    for name, body in definitions(module.read_text(encoding="utf-8")):
        if not name.startswith("_"):
            PACKAGE[name].add(body)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_lesson_shows_what_the_package_runs(lesson):
    for name, shown in shown_in(lesson):
        if name in PACKAGE:
            assert shown in PACKAGE[name], f"{name} in {lesson.name} differs from proof_lm's"


def test_every_function_of_the_chapters_is_shown_and_packaged():
    shown = {name for lesson in LESSONS for name, _ in shown_in(lesson)}
    assert SHOWN - shown == set()
    assert SHOWN - PACKAGE.keys() == set()


@pytest.mark.parametrize(
    ("shown", "same"),
    [
        ("def f(x):\n    return x + 1", True),
        ("def f(x: int) -> int:\n    return x + 1", True),
        ('def f(x):\n    "Add one."\n    return x + 1', True),
        ("def f(x):\n    return x + 2", False),
        ("def f(x):\n    return 1 + x", False),
        ("def f(x=0):\n    return x + 1", False),
        ("def f(y):\n    return y + 1", False),
    ],
)
def test_the_comparison_sees_code_and_nothing_else(shown, same):
    packaged = 'def f(x: float) -> float:\n    """One more than x."""\n    return x + 1'
    assert (definitions(shown) == definitions(packaged)) is same
