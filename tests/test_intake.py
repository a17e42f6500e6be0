"""What arrives in a student's folder: read with caps, rebuilt from source, doubts told in one line each."""

import io
import json
import lzma
import os
import tarfile
import zipfile
from copy import deepcopy

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from grading.intake import Caps, read_folder, take_in

SOLUTION = "def answer():\n    return 42  # the instructor's own"


def graded(cell, grade_id, **marks):
    cell.metadata.nbgrader = {"grade_id": grade_id, "schema_version": 3, "solution": False, **marks}
    return cell


@pytest.fixture
def source():
    cells = [
        new_markdown_cell("Read this.", id="intro"),
        new_code_cell("import math", id="imports"),
        graded(new_code_cell(SOLUTION, id="one"), "one-code", solution=True),
        graded(new_code_cell("check(answer)", id="one-t"), "one-tests", grade=True, points=2),
        graded(new_markdown_cell("instructor's prose", id="two"), "two-prose", solution=True, grade=True),
        graded(new_code_cell("def second(): return 1", id="three"), "three-code", solution=True),
    ]
    return new_notebook(cells=cells)


@pytest.fixture
def submission(source):
    notebook = deepcopy(source)
    notebook.cells[2].source = "def answer():\n    return helper()"
    notebook.cells[4].source = "my prose"
    notebook.cells[5].source = "def second(): return 2"
    return notebook


def rebuilt(notebook, source, name="p4.ipynb"):
    data = notebook if isinstance(notebook, bytes) else nbformat.writes(notebook).encode()
    return take_in({name: data}, source, "p4", "ada")


def texts(intake):
    return {
        cell.metadata.nbgrader.grade_id: cell.source
        for cell in intake.notebook.cells
        if "nbgrader" in cell.metadata
    }


def test_answers_are_taken_over_and_nothing_is_noted(source, submission):
    intake = rebuilt(submission, source)
    assert texts(intake)["one-code"] == "def answer():\n    return helper()"
    assert texts(intake)["two-prose"] == "my prose"
    assert not intake.notes


def surgeries():
    def edited(cells):
        cells[3].source = "pass"

    def deleted(cells):
        del cells[3]

    def moved(cells):
        cells.insert(0, cells.pop(3))

    def retyped(cells):
        cells[3] = graded(new_markdown_cell("check(answer)"), "one-tests", grade=True, points=2)

    def tagged(cells):
        cells[3].metadata.tags = ["skip-execution"]

    def pasted(cells):
        cells.append(graded(new_code_cell("pass"), "one-tests", grade=True, points=1000))

    def schema(cells):
        cells[3].metadata.nbgrader.schema_version = 99

    def points(cells):
        cells[3].metadata.nbgrader.points = 1000

    return [edited, deleted, moved, retyped, tagged, pasted, schema, points]


@pytest.mark.parametrize("surgery", surgeries(), ids=lambda f: f.__name__)
def test_test_cells_come_from_source_alone(source, submission, surgery):
    surgery(submission.cells)
    intake = rebuilt(submission, source)
    mine = [c for c in intake.notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == "one-tests"]
    assert mine == [source.cells[3]]
    assert texts(intake)["one-code"] == submission.cells[[c.id for c in submission.cells].index("one")].source


def test_an_answer_cell_turned_to_markdown_is_still_the_answer(source, submission):
    submission.cells[2] = graded(new_markdown_cell("def answer(): return 1"), "one-code", solution=True)
    assert texts(rebuilt(submission, source))["one-code"] == "def answer(): return 1"


def test_own_cells_stay_at_their_place_and_edits_of_plain_cells_count_as_own(source, submission):
    submission.cells[1].source = "import math, cmath"
    submission.cells.insert(2, new_code_cell("def helper(): return 42"))
    intake = rebuilt(submission, source)
    order = [cell.source for cell in intake.notebook.cells[1:5]]
    assert order == [
        "import math",
        "import math, cmath",
        "def helper(): return 42",
        "def answer():\n    return helper()",
    ]
    assert [c.metadata.get("prooflm") for c in intake.notebook.cells[1:5]] == [
        None,
        {"extra": True},
        {"extra": True},
        None,
    ]


def test_the_instructors_solution_never_stands_in(source):
    for notebook in (new_notebook(), new_notebook(cells=[new_code_cell("x = 1")])):
        intake = rebuilt(notebook, source)
        assert SOLUTION not in nbformat.writes(intake.notebook) and "instructor" not in nbformat.writes(
            intake.notebook
        )
    missing = take_in({}, source, "p4", "ada")
    assert texts(missing)["one-code"] == "" and "p4.ipynb: the notebook is missing" in str(missing.notes[0])


def test_another_sets_notebook_is_told_once_and_counts_as_empty(source):
    other = new_notebook(cells=[graded(new_code_cell("x = 1"), f"other-{n}", solution=True) for n in range(6)])
    for name in ("p4.ipynb", "p5.ipynb"):
        intake = take_in({name: nbformat.writes(other).encode()}, source, "p4", "ada")
        assert intake.is_empty and texts(intake)["one-code"] == ""
        (note,) = intake.notes
        assert str(note).endswith("no cell of p4 in it; it counts as empty; ask for p4.ipynb") and note.file == name


def test_rival_answers_are_told_and_not_graded(source, submission):
    submission.cells.insert(3, graded(new_code_cell("def answer(): return 0"), "one-code", solution=True))
    intake = rebuilt(submission, source)
    assert texts(intake)["one-code"] == "" and texts(intake)["three-code"] == "def second(): return 2"
    assert "ada: p4.ipynb, cell one-code: 2 answer cells with this id and different text" in str(
        intake.notes[0]
    )


def test_a_split_answer_is_put_together_and_told(source, submission):
    submission.cells[2].source = "def answer():"
    submission.cells.insert(3, graded(new_code_cell("    return 7"), "one-code", solution=True))
    intake = rebuilt(submission, source)
    assert texts(intake)["one-code"] == "def answer():\n    return 7" and "spread over 2 cells" in str(
        intake.notes[0]
    )


def test_stripped_metadata_is_told_and_cell_ids_serve(source, submission):
    for cell in submission.cells:
        cell.metadata = {}
    intake = rebuilt(submission, source)
    assert texts(intake)["one-code"] == "def answer():\n    return helper()"
    assert "all nbgrader metadata is gone" in str(intake.notes[0])


ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_every_encoding_that_editors_write_is_read(source, submission, encoding, ends):
    submission.cells[2].source = "def answer():\n    return 'é'"
    text = nbformat.writes(submission).replace("\n", ends).replace("\\n", json.dumps(ends)[1:-1])
    intake = rebuilt(text.encode(encoding), source)
    assert texts(intake)["one-code"] == "def answer():\n    return 'é'" and not intake.notes


def test_old_notebook_formats_are_upgraded(source, submission):
    for version in (3, 4):
        old = nbformat.convert(deepcopy(submission), version)
        assert texts(rebuilt(json.dumps(old).encode(), source))["one-code"].startswith("def answer()")


BROKEN = {
    b"": "the file is empty",
    b"\x00\x00\x00": "the file is empty",
    b'{"cells": [': "cut off",
    b'{"cells": [\n{"source": "def f(': "the file is cut off at line 2",
    b"[1]": "not a notebook",
    b"{}": "no list of cells",
    b'{"cells": 3}': "no list of cells",
    b"<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> b\n": "merge-conflict markers from line 1",
    b"PK\x03\x04": "not JSON",
    b"\xff\xff\xff\xff": "encoding",
    b"[" * 100_000: "JSON",
    b'{"worksheets": 3}': "cannot be upgraded",
}


@pytest.mark.parametrize("data", BROKEN, ids=BROKEN.values())
def test_a_broken_file_is_one_line_with_remedy(source, data):
    intake = rebuilt(data, source)
    assert (
        len(intake.notes) == 1 and BROKEN[data] in str(intake.notes[0]) and "\n" not in str(intake.notes[0])
    )
    assert set(texts(intake).values()) >= {"", "check(answer)"}


@pytest.mark.parametrize(
    "cells", [[None, 3, "x"], [{"cell_type": 3, "source": 4, "metadata": []}], [{"source": [1, None]}]]
)
def test_odd_cells_hurt_nobody(source, cells):
    assert texts(rebuilt(json.dumps({"cells": cells}).encode(), source))["one-code"] == ""


@pytest.mark.parametrize(
    "name", ["p4 (1).ipynb", "p4-Copy1.ipynb", "P4.ipynb", "sub/p4.ipynb", "homework.ipynb"]
)
def test_the_only_candidate_is_mapped_and_told(source, submission, name):
    intake = rebuilt(submission, source, name)
    assert texts(intake)["two-prose"] == "my prose" and "graded as the only candidate" in str(intake.notes[0])


def test_two_candidates_are_not_guessed_between(source, submission):
    data = nbformat.writes(submission).encode()
    intake = take_in({"p4 (1).ipynb": data, "p4 (2).ipynb": data}, source, "p4", "ada")
    assert texts(intake)["two-prose"] == "" and "2 notebooks could be meant" in str(intake.notes[0])


@pytest.mark.parametrize("name", ["numpy.py", "torch/__init__.py", "json.py", "proof_lm.py", "random.pyc"])
def test_files_that_shadow_a_library_are_left_out(source, submission, name):
    files = {
        "p4.ipynb": nbformat.writes(submission).encode(),
        name: b"",
        "helper.py": b"x = 1",
        "numpy.csv": b"",
    }
    intake = take_in(files, source, "p4", "ada")
    assert set(intake.files) == {"helper.py", "numpy.csv"} and "shadows the library" in str(intake.notes[0])


def test_only_regular_files_are_read_and_no_link_is_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("gradebook")
    folder = tmp_path / "p4"
    (folder / "data").mkdir(parents=True)
    (folder / "p4.ipynb").write_text("{}")
    (folder / "data" / "x.csv").write_text("1")
    (folder / "link.csv").symlink_to(secret)
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    files, notes = read_folder(folder, "ada")
    assert files == {"p4.ipynb": b"{}", "data/x.csv": b"1"}
    assert [note.file for note in notes] == ["link.csv", "pipe", "up"]
    (tmp_path / "linked").symlink_to(folder)
    assert read_folder(tmp_path / "linked", "ada")[0] == {}


def test_caps_hold_and_the_rest_is_read(tmp_path):
    for name in "abc":
        (tmp_path / name).write_bytes(b"x" * 10)
    (tmp_path / "0big").write_bytes(b"x" * 100)
    files, notes = read_folder(tmp_path, "ada", Caps(file_bytes=20, total_bytes=25, files=5))
    assert set(files) == {"a", "b"} and [note.file for note in notes] == ["0big", "c"]
    files, notes = read_folder(tmp_path, "ada", Caps(files=1))
    assert len(files) == 1 and len(notes) == 1


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def test_archives_are_unpacked_without_leaving_the_folder(tmp_path):
    members = {"p4/p4.ipynb": b"{}", "../evil": b"", "/etc/evil": b"", "a/../../evil": b"", "ok.csv": b"1"}
    (tmp_path / "p4.zip").write_bytes(zipped(members))
    files, notes = read_folder(tmp_path, "ada")
    assert files == {"p4.ipynb": b"{}", "ok.csv": b"1"} and len(notes) == 3


def test_links_in_archives_and_bombs_are_left_out(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        plain = tarfile.TarInfo("plain")
        plain.size = 2
        archive.addfile(plain, io.BytesIO(b"ok"))
    (tmp_path / "bomb.zip").write_bytes(zipped({"zeros": bytes(1_000_000)}))
    (tmp_path / "torn.zip").write_bytes(zipped({"x": b"1"})[:-30])
    files, notes = read_folder(tmp_path, "ada", Caps(total_bytes=100_000))
    assert files == {"plain": b"ok"}
    assert [note.file for note in notes] == ["a.tar.gz/link", "zeros", "torn.zip"]


def test_names_of_strangers_cannot_forge_report_lines(tmp_path):
    (tmp_path / "a\nbob: p4.ipynb: fine").write_text("")
    _, (note,) = read_folder(tmp_path, "ada")
    assert "\n" not in str(note)


def test_halves_of_characters_do_not_reach_the_graded_notebook(source, submission):
    submission.cells[2].source = "x = '\ud800', '\ud83d\ude00'"
    data = json.dumps(submission).encode()
    intake = take_in({"p4.ipynb": data}, source, "p4", "ada")
    assert intake.notebook.cells[2].source == "x = '\ufffd', '\U0001f600'"
    nbformat.writes(intake.notebook).encode()


@pytest.mark.parametrize("cell", ["{}", "[]", '{"cell_type":"code"}'])
def test_cells_in_great_number_are_refused_at_once(source, cell):
    data = ('{"cells":[' + f"{cell}," * 900_000 + "{}]}").encode()
    (note,) = take_in({"p4.ipynb": data}, source, "p4", "ada").notes
    assert "parts" in note.problem
    data = ('{"cells":[' + f"{cell}," * 20_000 + "{}]}").encode()
    (note,) = take_in({"p4.ipynb": data}, source, "p4", "ada").notes
    assert "20001 cells" in note.problem


@pytest.mark.parametrize("stem", ["copy-" * 45, "copy" * 60, "p4" + " (1)" * 50, " " * 200, "-_ " * 80, "p4 - Copy (2)"])
def test_no_name_takes_long_to_look_at(source, submission, stem):
    take_in({f"{stem}x.ipynb": json.dumps(submission).encode()}, source, "p4", "ada")


def test_a_name_is_a_file_or_a_folder(tmp_path):
    with zipfile.ZipFile(tmp_path / "w.zip", "w") as archive:
        for name in ("a", "a/b", "c/d/e", "c/d", "c", "x" * 300, "y/" * 1500 + "z", "n" * 255):
            archive.writestr(name, "1")
    files, notes = read_folder(tmp_path, "ada")
    assert sorted(files) == ["a", "c/d/e", "n" * 255]
    assert len(notes) == 5


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.bz2", "tar.xz"])
@pytest.mark.parametrize("place", [3, 40, 100, 400, -30, -5])
def test_a_torn_archive_is_one_note(tmp_path, kind, place):
    content = os.urandom(1000)
    whole = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_LZMA if place % 2 else zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("data.bin", content)
    else:
        with tarfile.open(fileobj=whole, mode=f"w:{kind[4:]}") as archive:
            member = tarfile.TarInfo("data.bin")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    data = bytearray(whole.getvalue())
    data[place] ^= 0xFF
    data[place + 1] ^= 0xFF
    (tmp_path / f"w.{kind}").write_bytes(data)
    (tmp_path / "other.txt").write_text("read")
    files, notes = read_folder(tmp_path, "ada")
    assert files["other.txt"] == b"read" and len(notes) <= 1


def test_a_swelling_archive_is_not_unpacked_to_its_end(tmp_path):
    """One member that says it is large, and is: a thousand times what may be read, in a small file."""
    caps = Caps(file_bytes=1000, total_bytes=100_000)
    member = tarfile.TarInfo("zeros")
    member.size = 200_000_000
    second = tarfile.TarInfo("second")
    packer = lzma.LZMACompressor()
    parts = [packer.compress(member.tobuf())]
    parts += [packer.compress(bytes(1_000_000)) for _ in range(200)]
    parts += [packer.compress(second.tobuf() + bytes(1024)), packer.flush()]
    (tmp_path / "w.tar.xz").write_bytes(b"".join(parts))
    files, notes = read_folder(tmp_path, "ada", caps)
    assert files == {} and any("broken" in note.problem for note in notes)


def test_an_archive_that_lists_a_million_members_is_not_listed(tmp_path):
    with zipfile.ZipFile(tmp_path / "w.zip", "w") as archive:
        for number in range(2100):
            archive.writestr(f"{number}", "")
    files, (note,) = read_folder(tmp_path, "ada")
    assert files == {} and "too many members" in note.problem


def test_answers_moved_to_cells_of_ones_own_are_not_another_set(source, submission):
    answers = {2, 4, 5}
    moved = [new_code_cell(submission.cells[i].source) for i in (2, 5)]
    submission.cells = [cell for i, cell in enumerate(submission.cells) if i not in answers] + moved
    intake = rebuilt(submission, source)
    assert not intake.is_empty and all("another problem set" not in str(note) for note in intake.notes)
    extras = [cell.source for cell in intake.notebook.cells if cell.metadata.get("prooflm")]
    assert extras == [cell.source for cell in moved]
