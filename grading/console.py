"""Where the command line writes, and how it gives up."""

from typing import NoReturn

import typer
from rich.console import Console

console = Console()
errors = Console(stderr=True)


def stop(message: str) -> NoReturn:
    """End the command with one line and the status of one that could do nothing."""
    errors.print(message, markup=False, soft_wrap=True)
    raise typer.Exit(2)
