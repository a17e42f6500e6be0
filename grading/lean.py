"""nbgrader's gradebook and formats without its commands and pages, which take longer to import than all the rest."""

import sys
from types import ModuleType

UNUSED = {  # modules that nbgrader imports for others' sake, with the names that it takes from them
    "nbgrader.server_extensions.assignment_list": ("load_jupyter_server_extension",),
    "nbgrader.server_extensions.course_list": ("load_jupyter_server_extension",),
    "nbgrader.server_extensions.formgrader": ("load_jupyter_server_extension",),
    "nbgrader.server_extensions.validate_assignment": ("load_jupyter_server_extension",),
    "nbgrader.auth.jupyterhub": ("JupyterHubAuthPlugin",),
    "setuptools.archive_util": ("unpack_archive", "unpack_tarfile", "unpack_zipfile"),
}
COMMANDS = ("nbgrader.apps", "nbgrader.converters")  # cannot be imported then, so nothing is graded but by us


def leave_out() -> None:
    """For a process that is ours alone: from here on `import nbgrader` brings the gradebook, and no more."""
    for name, wanted in UNUSED.items():
        module = sys.modules[name] = ModuleType(name, "Left out.")
        vars(module).update(dict.fromkeys(wanted))
    sys.modules.update(dict.fromkeys(COMMANDS))


def left_out() -> bool:
    """Whether this process has nbgrader without its commands."""
    return sys.modules.get(COMMANDS[0], ...) is None
