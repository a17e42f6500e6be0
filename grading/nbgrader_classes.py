"""nbgrader's own autograde over our grading: `nbgrader autograde` and the formgrader's button."""

from typing import NoReturn

import nbgrader.apps.api
import nbgrader.apps.autogradeapp
import nbgrader.converters
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException

from grading.grade import prepare
from grading.grader import TROUBLE, Grader, told


class SafeAutograde(Grader, Autograde):
    """Autograde that grades behind walls."""

    def start(self) -> None:
        """Grade and record every submission that the command names. Raises NbGraderException with one line."""
        try:
            with self.recording() as record:
                for task in (tasks := self.tasks()):
                    record(prepare(task))
        except TROUBLE as error:
            self._fail(told(error))
        if not tasks:
            where = f"{self.coursedir.submitted_directory}/{self.coursedir.student_id}/{self.coursedir.assignment_id}"
            self._fail(f"nothing to grade in {where}")

    def _fail(self, message: str) -> NoReturn:
        self.log.error("%s", message)
        raise NbGraderException(message)


def install() -> None:
    """Make nbgrader's command, its Python API and so the formgrader use SafeAutograde."""
    for module in (nbgrader.converters, nbgrader.apps.api, nbgrader.apps.autogradeapp):
        module.Autograde = SafeAutograde
