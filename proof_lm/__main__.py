"""`python -m proof_lm`. The commands stand in proof_lm.cli, which takes seconds to import."""

import os
import signal
import sys


def command() -> int:
    """Run the command line; until there is something to save, Ctrl-C just ends it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from proof_lm.cli import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        status = main()
        print(end="", flush=True)
    except OSError as error:  # the reader of a pipe went away, a disk is full
        print(f"python -m proof_lm: output: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left would be tried again at exit
        return 1
    return status


if __name__ == "__main__":
    sys.exit(command())
