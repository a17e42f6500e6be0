"""Feedback pages that cannot run anything: no script, no outside request, no hidden test."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from bs4 import BeautifulSoup, Tag
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbgrader.preprocessors import ClearHiddenTests, ClearMarkScheme, GetGrades
from nbgrader.utils import is_locked

from grading.inert import make_inert

POLICY = "default-src 'none'; script-src 'none'; img-src data:; style-src 'unsafe-inline'; font-src data:"
# nothing runs out of the page, words stay whole (nbgrader's style breaks them anywhere), columns stay apart
STYLE = "pre { white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere } th, td { padding: 0.2em 0.6em }"
RUNS = ["script", "iframe", "object", "embed", "form", "link", "base", "meta[http-equiv]"]
SCORE = re.compile(r"Score: [\d.]+ / [\d.]+")


class GetGradesAndUnread(GetGrades):
    """nbgrader's preprocessor, which also lists the answers in words that a person has not read yet."""

    def _get_score(self, cell: NotebookNode, resources: dict) -> None:
        super()._get_score(cell, resources)
        marks = cell.metadata.nbgrader
        grade = self.gradebook.find_grade(marks["grade_id"], self.notebook_id, self.assignment_id, self.student_id)
        if grade.needs_manual_grade and cell.source.strip():
            resources["nbgrader"].setdefault("unread", {})[marks["grade_id"]] = marks["points"]


class InertFeedback(HTMLExporter):
    """nbgrader's feedback page without hidden regions, under a policy that forbids scripts and requests."""

    def from_notebook_node(self, nb: Any, resources: dict | None = None, **kwargs: Any) -> tuple[str, dict]:
        """HTML and resources of a graded notebook. Raises what nbconvert raises for a malformed one."""
        locked = [cell for cell in nb.cells if is_locked(cell)]  # rubrics stand in locked questions
        for strip in (ClearHiddenTests(), ClearMarkScheme(enforce_metadata=False)):
            strip.preprocess(NotebookNode(cells=locked, metadata={}), {})
        html, resources = super().from_notebook_node(make_inert(nb), resources, **kwargs)
        return inert_page(html, resources.get("nbgrader", {}).get("unread", {})), resources


def inert_page(html: str, unread: Mapping[str, float] = MappingProxyType({})) -> str:
    """The page without anything that runs or loads, and with a content security policy as its first rule.

    `unread` holds the most points of each answer that waits for a person, by grade_id: the page shows no score there.
    """
    page = BeautifulSoup(html, "html.parser")
    make_still(page)
    _tell_unread(page, unread)
    if page.head is None:
        page.insert(0, page.new_tag("head"))
    add_style(page)
    page.head.insert(0, page.new_tag("meta", attrs={"http-equiv": "Content-Security-Policy", "content": POLICY}))
    return str(page)


def _tell_unread(page: Tag, unread: Mapping[str, float]) -> None:
    """Replace the 0 that nbgrader shows for answers that nobody has read, and say how much is still to come."""
    for grade_id, most in unread.items():
        for anchor in page.find_all("a", attrs={"href": f"#{grade_id}"}) + page.find_all("a", attrs={"name": grade_id}):
            if score := anchor.find_next(string=SCORE):
                score.replace_with(SCORE.sub(f"not read yet, {most:g} points at most", score))
    if unread and (title := page.find("h4")):
        note = page.new_tag("small", attrs={"class": "unread"})
        note.string = f" {sum(unread.values()):g} of the points to be had are for answers that nobody has read yet"
        title.append(note)


def add_style(page: BeautifulSoup) -> None:
    """Let a page that has a head show a notebook's text and tables as they should be read, in place."""
    style = page.new_tag("style")
    style.string = STYLE
    page.head.append(style)


def make_still(page: Tag) -> None:
    """Take out what runs or loads, in place."""
    for element in page.select(", ".join(RUNS)):
        element.decompose()
    for element in page.find_all(True):
        for name in [name for name in element.attrs if name.lower().startswith("on")]:
            del element[name]
        for name in ("href", "src", "action", "formaction", "xlink:href"):
            if not str(element.get(name, "#")).strip().lower().startswith(("#", "data:image/png;", "data:image/jpeg;")):
                del element[name]
