"""Make a graded notebook harmless to whoever opens it: plain text and checked pictures, nothing that runs."""

import base64
import io
import re
import warnings

from nbformat import NotebookNode, from_dict
from PIL import Image

MAX_TEXT = 20_000  # characters of one output
MAX_OUTPUTS = 50  # of one cell
MAX_IMAGE_BYTES = 2 * 2**20
MAX_IMAGE_PIXELS = 16_000_000
MAX_NOTEBOOK_PIXELS = 80_000_000  # of all pictures: each is decoded and written anew, which takes time
IMAGES = {"image/png": "PNG", "image/jpeg": "JPEG"}
CONTROL = re.compile(r"[^\x20-\x7e\n\t\u00a0-\ud7ff\ue000-\uffff\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]")


QUOTED = re.compile(r"(?P<fence>~{3,})text\n(?P<text>.*)\n(?P=fence)", re.DOTALL)  # what quote_prose writes


class Room:
    """How many pixels of pictures a notebook may still show."""

    def __init__(self) -> None:
        self.pixels = MAX_NOTEBOOK_PIXELS

    def take(self, pixels: int) -> bool:
        """Whether there is room for that many, which it then takes."""
        fits = pixels <= min(self.pixels, MAX_IMAGE_PIXELS)
        self.pixels -= pixels if fits else 0
        return fits


def make_inert(notebook: NotebookNode) -> NotebookNode:
    """The same notebook, changed in place: outputs reduced to text and pictures, answers in prose quoted."""
    room = Room()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = inert_outputs(cell.outputs, room)
        elif cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = quote_prose(cell.source)
            cell.pop("attachments", None)
    return notebook


def quote_prose(text: str) -> str:
    """Markdown that shows `text` as typed; a fence longer than any in it keeps it from ending early."""
    if not text.strip():
        return ""
    if (quoted := QUOTED.fullmatch(text)) and quoted["fence"] not in quoted["text"]:
        return text
    longest = max((len(run) for run in re.findall(r"~+", text)), default=0)
    fence = "~" * max(3, longest + 1)
    return f"{fence}text\n{_plain(text)}\n{fence}"


def inert_outputs(outputs: list[NotebookNode], room: Room | None = None) -> list[NotebookNode]:
    """Text and validated PNG or JPEG of the first MAX_OUTPUTS outputs; a line says what was left out.

    `room` is what all cells of a notebook share.
    """
    room = room or Room()
    kept = [inert for output in outputs[:MAX_OUTPUTS] if (inert := _inert_output(output, room))]
    if len(outputs) > MAX_OUTPUTS:
        text = f"[{len(outputs) - MAX_OUTPUTS} more outputs were left out]\n"
        kept.append(new("stream", name="stderr", text=text))
    return kept


def new(kind: str, **fields: object) -> NotebookNode:
    """An output of that kind. nbformat's own way also checks it against the format's schema, which takes longer."""
    return from_dict({"output_type": kind, **fields})


def _inert_output(output: NotebookNode, room: Room) -> NotebookNode | None:
    if output.output_type == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return new("stream", name=name, text=_plain(output.get("text", "")))
    if output.output_type == "error":
        trace = [_plain(line) for line in output.get("traceback", [])][-60:]
        ename, evalue = _plain(output.get("ename", ""))[:200], _plain(output.get("evalue", ""))
        return new("error", ename=ename, evalue=evalue, traceback=trace)
    if output.output_type not in ("display_data", "execute_result"):
        return None
    data = {"text/plain": _plain(output.data["text/plain"])} if "text/plain" in output.data else {}
    for mime, form in IMAGES.items():
        if picture := _picture(output.data.get(mime), form, room):
            data[mime] = picture
    return new("display_data", data=data, metadata={}) if data else None


def _plain(text: object) -> str:
    text = "".join(map(str, text)) if isinstance(text, list) else str(text)
    clean = CONTROL.sub("", re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text[: 2 * MAX_TEXT]))
    return clean if len(clean) <= MAX_TEXT else f"{clean[:MAX_TEXT]}\n[the rest was left out]\n"


def _picture(content: object, form: str, room: Room) -> str:
    """The picture decoded and written anew, so that nothing rides along; empty when it is not one."""
    if not isinstance(content, str) or len(content) > MAX_IMAGE_BYTES * 4 // 3:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(base64.b64decode(content)), formats=[form])
            if not room.take(image.width * image.height):
                return ""
            plain = image.convert("RGB" if form == "JPEG" else "RGBA")
    except Exception:  # a decoder fails in many ways on a hostile file; each means that it is no picture
        return ""
    buffer = io.BytesIO()
    Image.frombytes(plain.mode, plain.size, plain.tobytes()).save(buffer, form)
    return base64.b64encode(buffer.getvalue()).decode("ascii")
