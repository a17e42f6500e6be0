"""The course as nbgrader describes and configures it."""

from pathlib import Path

from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config, PyFileConfigLoader

CONFIG = "nbgrader_config.py"


def course(root: Path, assignment: str, students: str = "*") -> CourseDirectory:
    """nbgrader's description of the course in `root`, for one assignment and the students of a pattern.

    What root/nbgrader_config.py says of the CourseDirectory (its db_url) holds here too.
    """
    root = root.resolve()
    directory = CourseDirectory(root=str(root), course_id="prooflm", config=configuration(root))
    directory.root, directory.assignment_id, directory.student_id = str(root), assignment, students
    return directory


def configuration(root: Path) -> Config:
    """What nbgrader_config.py in `root` says; nothing where there is none."""
    if not (root / CONFIG).exists():
        return Config()
    return PyFileConfigLoader(CONFIG, path=str(root)).load_config()
