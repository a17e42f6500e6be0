"""Grade a small class of made-up students from hand-in to feedback, in a folder apart from every real grade.

`python -m grading.demo` writes demo/: a student who solved everything, one who handed in the release as it was, one
whose file is cut off, and one for each file of grading/demo_class, whose functions replace the right ones.
"""

import ast
import shutil
import subprocess
import sys
from collections.abc import Container
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from rich.console import Console

ROOT = Path(__file__).parents[1]
ANSWERS = Path(__file__).with_name("demo_class")
SET = "p4"


def build(folder: Path, students: Container[str] | None = None) -> None:
    """Write the demo's course to `folder`, made anew: source, release and what the class handed in.

    `students` picks some of it.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "source" / SET, folder / "source" / SET)
    _run("nbgrader", "generate_assignment", SET, f"--course-dir={folder}", "--log-level=ERROR")
    release = nbformat.read(folder / "release" / SET / f"{SET}.ipynb", as_version=4)
    source = nbformat.read(folder / "source" / SET / f"{SET}.ipynb", as_version=4)
    whole = nbformat.writes(answered(release, source, ""))
    notebooks = {"untouched": nbformat.writes(release), "solves_everything": whole}
    notebooks["file_cut_off"] = whole[: len(whole) // 2]
    for path in sorted(ANSWERS.glob("*.py")):
        notebooks[path.stem] = nbformat.writes(answered(release, source, path.read_text(encoding="utf-8")))
    for student, text in notebooks.items():
        if students is None or student in students:
            handed_in = folder / "submitted" / student / SET / f"{SET}.ipynb"
            handed_in.parent.mkdir(parents=True)
            handed_in.write_text(text, encoding="utf-8")


def answered(release: NotebookNode, source: NotebookNode, answers: str) -> NotebookNode:
    """The released notebook with the solutions of `source`, but for the functions that `answers` defines.

    `answers` is Python text; its imports go with each of its functions.
    """
    mine = functions(answers)
    solutions = {cell.id: cell.source for cell in source.cells}
    notebook = nbformat.from_dict(release)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            lines = solutions[cell.id].splitlines()
            cell.source = "\n".join(line for line in lines if not line.strip().startswith("###"))
            cell.source = next((text for name, text in mine.items() if f"def {name}(" in cell.source), cell.source)
    return notebook


def functions(text: str) -> dict[str, str]:
    """Source of each top-level function of `text` by name, each with all the imports."""
    nodes = ast.parse(text).body
    imports = [ast.get_source_segment(text, n) for n in nodes if isinstance(n, (ast.Import, ast.ImportFrom))]
    return {
        node.name: "\n".join([*imports, "", "", ast.get_source_segment(text, node)]).lstrip()
        for node in nodes
        if isinstance(node, ast.FunctionDef)
    }


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, check=True)


def main(folder: Path = ROOT / "demo") -> None:
    """Build the demo, grade it and write the feedback; prints the table of points and findings."""
    build(folder)
    _run("grading", "grade", SET, "--root", str(folder))
    _run("nbgrader", "generate_feedback", SET, f"--course-dir={folder}", "--force", "--log-level=ERROR")
    Console().print(f"gradebook: {folder / 'gradebook.db'}\nfeedback:  {folder / 'feedback'}", soft_wrap=True)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:  # it has told its own reason
        raise SystemExit(error.returncode) from None
