"""Settings that every test shares."""

import os
import sys

import matplotlib
import pytest
from hypothesis import settings

# Grading's walls are made of Linux: elsewhere nothing can be graded, so these have nothing to test.
NEED_LINUX = ["sandbox", "attacks", *(f"test_grading_{about}.py" for about in ("p4", "faults", "cluster", "postgresql"))]
collect_ignore = [] if sys.platform == "linux" else NEED_LINUX


def pytest_report_header():
    return f"not on {sys.platform}: {', '.join(collect_ignore)}" if collect_ignore else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: what is tested behind walls waits for limits more than it computes."""
    return (os.cpu_count() or 1) + 1


matplotlib.use("agg")  # no window opens where there is a display

# Cases are drawn anew in each run and printed when one fails; CI repeats the same ones, so that a commit passes or
# fails for what it changed. Slow shared machines are no failure.
settings.register_profile("prooflm", deadline=None, print_blob=True, derandomize="CI" in os.environ)
settings.load_profile("prooflm")
