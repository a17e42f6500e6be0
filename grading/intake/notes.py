"""What an instructor should know of a submission: one line each, with student, file, cell and remedy."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """One thing that intake could not decide, left out or mapped."""

    student: str
    file: str
    problem: str
    remedy: str
    cell: str = ""  # grade_id, where one cell is concerned

    def __str__(self) -> str:
        return f"{self.student}: {self.to_student()}; {self.remedy}"

    def to_student(self) -> str:
        """The same without what the instructor is to do."""
        place = printable(self.file) + (f", cell {printable(self.cell)}" if self.cell else "")
        return f"{place}: {printable(self.problem)}"


def printable(text: str, limit: int = 160) -> str:
    """Text of a stranger on one line, without control characters, cut at `limit` characters."""
    clean = "".join(ch if ch.isprintable() else "?" for ch in text.encode("utf-8", "replace").decode())
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"
