"""Read notebook bytes in any encoding and version an editor wrote, down to the little that grading uses."""

import json
import re
from dataclasses import dataclass

import nbformat

MAX_PARTS = 500_000  # lists and dictionaries of a file: small ones take far more memory than text
MAX_CELLS = 10_000
CONFLICT = re.compile(r"^(<{7}|>{7}|={7})( |$)", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """All that is taken over of a student's cell."""

    source: str
    is_code: bool
    grade_id: str = ""  # from the cell's nbgrader metadata, empty without
    id: str = ""  # the notebook format's own cell id


def parse_notebook(data: bytes) -> list[Cell]:
    """The cells of a notebook file. Raises ValueError saying in a clause why it cannot be read."""
    if not data.strip(b"\x00\xef\xbb\xbf \r\n\t"):
        raise ValueError("the file is empty")
    try:
        text = data.decode(json.detect_encoding(data))
    except UnicodeDecodeError:
        raise ValueError("the text is in no encoding that notebooks use (UTF-8, UTF-16, UTF-32)") from None
    if text.count("{") + text.count("[") > MAX_PARTS:
        raise ValueError(f"the file has more than {MAX_PARTS} parts, as no notebook has")
    try:
        content = json.loads(text.removeprefix("\ufeff"))
    except (json.JSONDecodeError, RecursionError, ValueError) as error:
        raise ValueError(_why_not_json(text, error)) from None
    return [_cell(cell) for cell in _raw_cells(content)]


def _why_not_json(text: str, error: Exception) -> str:
    if conflict := CONFLICT.search(text):
        return f"merge-conflict markers from line {text.count(chr(10), 0, conflict.start()) + 1} on"
    line = getattr(error, "lineno", None)
    if line and (error.pos >= len(text.rstrip()) - 1 or error.msg.startswith("Unterminated string")):
        return f"the file is cut off at line {line}"
    return f"the file is not JSON at line {line}" if line else "the file is not JSON that can be read"


def _raw_cells(content: object) -> list:
    if not isinstance(content, dict):
        raise ValueError("the file is JSON but not a notebook")
    if "worksheets" in content:  # formats 2 and 3
        try:
            content = nbformat.convert(nbformat.from_dict(content), 4)
        except Exception as error:  # nbformat's converters fail in many ways on odd input
            raise ValueError(
                f"an old notebook format that cannot be upgraded ({type(error).__name__})"
            ) from None
    cells = content.get("cells")
    if not isinstance(cells, list):
        raise ValueError("the file is JSON but has no list of cells")
    if len(cells) > MAX_CELLS:
        raise ValueError(f"the file has {len(cells)} cells, which no notebook has")
    return [cell for cell in cells if isinstance(cell, dict)]


def _cell(cell: dict) -> Cell:
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    metadata = cell.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = marks.get("grade_id") if isinstance(marks, dict) else None
    return Cell(
        source=_sound(source).replace("\r\n", "\n").replace("\r", "\n") if isinstance(source, str) else "",
        is_code=cell.get("cell_type") == "code",
        grade_id=grade_id if isinstance(grade_id, str) else "",
        id=cell["id"] if isinstance(cell.get("id"), str) else "",
    )


def _sound(text: str) -> str:
    """The text with halves of characters joined or, where they are alone, replaced: they can be in no file."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
