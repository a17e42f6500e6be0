"""`python -m grading`. A worker process imports this module too, so the commands stand elsewhere."""

import sys


def main() -> None:
    """Run the command line; for `grade`, what workers need is imported beside what the command needs."""
    if sys.argv[1:2] == ["grade"] and not {"--dry-run", "--help"}.intersection(sys.argv):
        from grading.workers import prepare_to_fork

        prepare_to_fork()
    from grading.cli import app

    app(prog_name="python -m grading")


if __name__ == "__main__":
    main()
