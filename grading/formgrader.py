"""nbgrader's formgrader, with pages on which nbgrader's own scripts run and nothing else does.

Each page has a content security policy of its own: a script runs only with a number that was drawn for this one
answer, and only the scripts of nbgrader's templates get it. What students wrote is cleaned before and after it is
rendered, so the policy is the second wall. No page loads anything from another server, MathJax neither.
"""

import html
import os
import re
import secrets
from typing import Any

from bs4 import BeautifulSoup, Tag
from nbconvert.exporters import HTMLExporter
from nbgrader.server_extensions.formgrader import apihandlers, formgrader, handlers
from tornado import web

from grading.feedback import add_style, make_still
from grading.inert import make_inert

POLICY = (
    "default-src 'none'; {scripts} connect-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
# nbgrader's page waits for MathJax to say that it has finished
NO_MATHJAX = "var MathJax = {Hub: {Startup: {signal: {Interest: function (tell) { tell('End'); }}}}};"
NAME = re.compile(r"[^\"'<>\\&\x00-\x1f]*")


class InertFormgrade(HTMLExporter):
    """nbgrader's page of one submission, from an inert copy of the notebook and with escaped names."""

    def from_notebook_node(self, nb: Any, resources: dict | None = None, **kwargs: Any) -> tuple[str, dict]:
        """HTML and resources of a graded notebook."""
        named = {key: html.escape(value) if isinstance(value, str) else value for key, value in resources.items()}
        return super().from_notebook_node(make_inert(nb), named, **kwargs)


class Still:
    """A page of the formgrader: nbgrader's scripts run, all others do not."""

    _nonce = ""

    @property
    def nonce(self) -> str:
        self._nonce = self._nonce or secrets.token_urlsafe(18)
        return self._nonce

    @property
    def content_security_policy(self) -> str:
        return POLICY.format(scripts=f"script-src 'nonce-{self.nonce}';")

    def prepare(self) -> Any:
        """Names come from the address, and nbgrader writes them into its scripts as they are."""
        parts = [*self.path_args, *self.path_kwargs.values()]
        if not all(NAME.fullmatch(part) for part in parts if part):
            raise web.HTTPError(404)
        folder = self.get_query_argument("path", "")  # whose nbgrader_config.py would be run, a student's too
        if folder and os.path.realpath(folder) != os.path.realpath(self.coursedir.root):
            raise web.HTTPError(403, "the formgrader shows the course that it was started for")
        return super().prepare()

    def render(self, name: str, **values: Any) -> str:
        return guarded(super().render(name, **values), self.nonce, self.base_url)

    @property
    def exporter(self) -> "Still":
        return self

    def from_filename(self, filename: str, resources: dict) -> tuple[str, dict]:
        """What nbgrader asks its exporter for, guarded."""
        page, resources = super().exporter.from_filename(filename, resources=resources)
        return guarded(page, self.nonce, self.base_url), resources


class StillData(Still):
    """An answer of the formgrader that is no page."""

    content_security_policy = POLICY.format(scripts="sandbox;")


def guarded(page: str, nonce: str, base_url: str) -> str:
    """The page with `nonce` on the scripts of nbgrader's templates, without any other and without handlers."""
    tree = BeautifulSoup(page, "html.parser")
    for cells in tree.select("#notebook-container"):
        make_still(cells)
        add_style(tree)
    ours = f"{base_url}/formgrader/static/"
    for script in tree.find_all("script"):
        if script.get("src", ours).startswith(ours) and script.get("type", "text/javascript") == "text/javascript":
            script["nonce"] = nonce
        else:
            script.decompose()
    calls = "".join(_call(element, number) for number, element in enumerate(tree.select("[onclick]")))
    for source, place in ((NO_MATHJAX, tree.head), (calls, tree.body)):
        script = tree.new_tag("script", attrs={"nonce": nonce})
        script.string = source
        if place:
            place.append(script)
    return str(tree)


def _call(element: Tag, number: int) -> str:
    """The element's handler as a script, since a policy with a nonce forbids handlers in attributes."""
    element["data-call"] = number
    return f"document.querySelector('[data-call=\"{number}\"]').onclick = function () {{ {element.attrs.pop('onclick')} }};\n"


def install() -> None:
    """Make the formgrader serve such pages; has to come before its handlers are registered."""
    formgrader.HTMLExporter = InertFormgrade
    for module, kind in ((handlers, Still), (apihandlers, StillData)):
        module.default_handlers[:] = [(path, _still(handler, kind), *rest) for path, handler, *rest in module.default_handlers]


def _still(handler: type, kind: type) -> type:
    if handler is web.StaticFileHandler or issubclass(handler, Still):
        return handler
    kind = StillData if issubclass(handler, web.StaticFileHandler) else kind  # a submission's files
    return type(handler.__name__, (kind, handler), {})
