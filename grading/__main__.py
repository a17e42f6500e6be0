"""`python -m grading`. A worker process imports this module too, so the commands stand elsewhere."""


def main() -> None:
    """Run the command line."""
    from grading.cli import app
    from grading.lean import leave_out

    leave_out()
    app(prog_name="python -m grading")


if __name__ == "__main__":
    main()
