"""Settings that every test shares."""

import matplotlib
from hypothesis import settings

matplotlib.use("agg")  # no window opens where there is a display

# Cases are drawn anew in each run but printed when one fails; slow shared machines are no failure.
settings.register_profile("prooflm", deadline=None, print_blob=True)
settings.load_profile("prooflm")
