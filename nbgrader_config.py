"""nbgrader's configuration: where things lie, and that submissions are graded behind walls."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from grading.lean import left_out  # noqa: E402

if not left_out():
    from grading import nbgrader_classes

    nbgrader_classes.install()
    if "nbgrader.server_extensions.formgrader" in sys.modules:  # the Jupyter server reads this too
        from grading import formgrader

        formgrader.install()

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "prooflm"
c.CourseDirectory.root = str(ROOT)
c.Exchange.root = str(ROOT / ".exchange")  # a course of one's own needs no shared folder
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError"}
c.ClearSolutions.text_stub = "*Your answer here.*"
c.ClearMarkScheme.enforce_metadata = False  # rubrics stand in locked questions, where graders read them
c.GenerateFeedback.exporter_class = "grading.feedback.InertFeedback"
c.GenerateFeedback.preprocessors = [
    "grading.feedback.GetGradesAndUnread",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
c.CourseDirectory.solution_directory = "solutions"
c.GenerateSolution.preprocessors = [  # as released, but solved and run
    "nbgrader.preprocessors.LockCells",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbgrader.preprocessors.ClearMarkScheme",
    "grading.solutions.ClearSolutionMarks",
    "nbgrader.preprocessors.Execute",
]
