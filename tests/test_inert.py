"""Whatever a stranger's notebook shows, an opened page runs nothing and loads nothing."""

import base64
import io

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbconvert.exporters import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from grading.feedback import InertFeedback, inert_page
from grading.inert import MAX_OUTPUTS, inert_outputs, make_inert, quote_prose

PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "[a](javascript:alert(1))",
    "![t](http://tracker.example/x.png)",
    "<iframe src=//evil.example>",
    "$\\href{javascript:alert(1)}{x}$",
    "~~~\n<script>alert(1)</script>\n~~~\n<script>alert(2)</script>",
    "```\n</code></pre><script>alert(1)</script>",
    "<style>@import url(http://evil.example)</style>",
    "</div></body><script>alert(1)</script>",
    "<a href='  JaVaScRiPt:alert(1)'>x</a>",
    "<meta http-equiv=refresh content='0;url=http://evil.example'>",
    "\x1b]8;;http://evil.example\x07link\x1b]8;;\x07",
]


def prose(text):
    cell = new_markdown_cell(text)
    cell.metadata.nbgrader = {"grade_id": "p", "solution": True, "grade": True, "points": 1}
    return cell


def runs_something(html):
    page = BeautifulSoup(html, "html.parser")
    live = page.select("script, iframe, object, embed, svg[onload], form, base, meta[http-equiv=refresh]")
    handlers = [e for e in page.find_all(True) for name in e.attrs if name.lower().startswith("on")]
    loads = [
        e
        for e in page.select("[href], [src]")
        if not str(e.get("href", e.get("src"))).startswith(("#", "data:"))
    ]
    return live + handlers + loads


@pytest.mark.parametrize("text", PAYLOADS)
def test_a_payload_in_prose_code_or_output_stays_text_in_the_page(text):
    rich = {
        "text/html": text,
        "text/markdown": text,
        "image/svg+xml": text,
        "text/latex": text,
        "text/plain": text,
    }
    rich |= {
        "application/javascript": "alert(1)",
        "application/vnd.jupyter.widget-view+json": {"model_id": "x"},
    }
    outputs = [new_output("display_data", data=rich), new_output("stream", text=text)]
    outputs += [new_output("error", ename=text, evalue=text, traceback=[text])]
    notebook = new_notebook(cells=[prose(text), new_code_cell(f"# {text}", outputs=outputs)])
    html, _ = InertFeedback(template_name="basic").from_notebook_node(notebook)
    assert runs_something(html) == []
    assert "script-src 'none'" in html


@pytest.mark.parametrize("text", PAYLOADS)
def test_the_graded_notebook_itself_is_inert_in_any_viewer(text):
    notebook = make_inert(new_notebook(cells=[prose(text)]))
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
    page = BeautifulSoup(body, "html.parser")
    assert not page.select("script, img, svg, iframe, style, meta, a[href^=javascript i]")


def test_prose_is_shown_as_it_was_typed():
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(
        make_inert(new_notebook(cells=[prose("a < b & *c*\n\n~~~\n1. d")]))
    )
    assert "a < b & *c*\n\n~~~\n1. d" in BeautifulSoup(body, "html.parser").get_text()
    assert quote_prose("  \n") == ""


@pytest.mark.parametrize("text", [*PAYLOADS, "plain", "~~~text\nx\n~~~", "~~~text\n~~~\n<script>\n~~~"])
def test_quoting_twice_is_quoting_once_and_still_inert(text):
    once = quote_prose(text)
    assert quote_prose(once) == once
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(make_inert(new_notebook(cells=[prose(once)])))
    assert not BeautifulSoup(body, "html.parser").select("script, img, svg, iframe, a")


def picture(form):
    buffer = io.BytesIO()
    Image.new("RGB", (3, 2), "red").save(buffer, form)
    return base64.b64encode(buffer.getvalue()).decode()


def test_real_pictures_stay_and_false_ones_go():
    good = new_output("display_data", data={"image/png": picture("PNG"), "text/plain": "fig"})
    (kept,) = inert_outputs([good])
    assert Image.open(io.BytesIO(base64.b64decode(kept.data["image/png"]))).size == (3, 2)
    false = base64.b64encode(b"<svg onload=alert(1)>").decode()
    for content in (false, picture("GIF"), '" onerror="alert(1)', 7, picture("PNG") + "A" * 9_000_000):
        assert (
            inert_outputs(
                [nbformat.from_dict({"output_type": "display_data", "data": {"image/png": content}})]
            )
            == []
        )


def test_pictures_of_a_notebook_share_their_room():
    """Each is small to send and large to decode."""
    buffer = io.BytesIO()
    Image.new("1", (4000, 4000)).save(buffer, "PNG")
    large = new_output("display_data", data={"image/png": base64.b64encode(buffer.getvalue()).decode()})
    small = new_output("display_data", data={"image/png": picture("PNG")})
    notebook = new_notebook(cells=[new_code_cell(outputs=[large, small] * 4) for _ in range(5)])
    shown = [output for cell in make_inert(notebook).cells for output in cell.outputs]
    assert len(shown) == 5 * 4 + 4  # all small ones and as many large ones as there is room for


def test_a_flood_is_cut_and_says_so():
    many = inert_outputs([new_output("stream", text="x")] * (MAX_OUTPUTS + 5))
    assert len(many) == MAX_OUTPUTS + 1 and "5 more outputs" in many[-1].text
    (long,) = inert_outputs([new_output("stream", text="x" * 10**6)])
    assert len(long.text) < 25_000 and "left out" in long.text


def test_hidden_tests_and_mark_schemes_do_not_reach_the_page():
    hidden = "shown()\n### BEGIN HIDDEN TESTS\nsecret_call()\n### END HIDDEN TESTS"
    notebook = new_notebook(cells=[new_code_cell(hidden)])
    marks = {"grade_id": "t", "grade": True, "solution": False, "points": 1, "schema_version": 3}
    notebook.cells[0].metadata.nbgrader = marks
    html, _ = InertFeedback(template_name="basic").from_notebook_node(notebook)
    text = BeautifulSoup(html, "html.parser").get_text()
    assert "shown" in text and "secret_call" not in text


def test_a_page_without_a_head_gets_the_policy_too():
    assert inert_page("<p>x</p>").startswith('<head><meta content="default-src')


def test_words_of_an_answer_stay_whole():
    assert "word-break: normal" in inert_page("<pre>x</pre>")
