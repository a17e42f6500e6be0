"""What running a notebook gives, and how long it may take."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Limits:
    """How long student code may run, in seconds."""

    cell: float = 20.0
    probe: float = 20.0
    notebook: float = 180.0


@dataclass
class Execution:
    """What running a notebook gave. Plain data, so that it can be stored and judged again."""

    answers: dict[str, str] = field(default_factory=dict)  # exercise id -> encoded answers of its probe
    failures: dict[str, str] = field(default_factory=dict)  # exercise id -> why there is no answer
    isolation: str = ""  # "warm", "cold" or "none"
    seconds: float = 0.0
    died: bool = False  # a kernel ended, and no limit of ours had ended it
