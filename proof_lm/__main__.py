"""`python -m proof_lm`. The commands stand in proof_lm.cli, which takes seconds to import."""

import signal
import sys


def command() -> int:
    """Run the command line; until there is something to save, Ctrl-C just ends it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from proof_lm.cli import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    return main()


if __name__ == "__main__":
    sys.exit(command())
