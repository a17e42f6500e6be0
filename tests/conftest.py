"""Settings that every test shares."""

import sys

import matplotlib
from hypothesis import settings

# Grading's walls are made of Linux: elsewhere nothing can be graded, so these have nothing to test.
NEED_LINUX = ["sandbox", "attacks", "test_grading_p4.py"]
collect_ignore = [] if sys.platform == "linux" else NEED_LINUX


def pytest_report_header():
    return f"not on {sys.platform}: {', '.join(collect_ignore)}" if collect_ignore else None


matplotlib.use("agg")  # no window opens where there is a display

# Cases are drawn anew in each run but printed when one fails; slow shared machines are no failure.
settings.register_profile("prooflm", deadline=None, print_blob=True)
settings.load_profile("prooflm")
