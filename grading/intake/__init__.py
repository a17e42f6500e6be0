"""From a stranger's folder to a notebook that can be graded: read with caps, then rebuilt from source.

Nothing here follows a link, runs code or repairs a submission; what cannot be decided becomes a note.
"""

from grading.intake.folder import Caps, read_folder
from grading.intake.notes import Note
from grading.intake.parse import parse_notebook
from grading.intake.rebuild import Intake, take_in

__all__ = ["Caps", "Intake", "Note", "parse_notebook", "read_folder", "take_in"]
