"""The course's figures: one small helper per plot, each shown with alt text and a digest of its data.

PNG bytes differ between matplotlib versions, so a stored picture cannot be compared with a fresh one. Every
figure therefore carries a digest of what it draws (data, titles, labels, scales, not pixels) under a MIME
type of its own; `pytest --nbval` compares that digest, and a wrong curve or title fails like a wrong number.
"""

import base64
import hashlib
import io
import math

import matplotlib.pyplot as plt
import numpy as np
from IPython import get_ipython
from IPython.display import display
from matplotlib.category import StrCategoryFormatter
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.ticker import FixedFormatter, FuncFormatter

DIGEST_MIME = "application/vnd.prooflm.figure+json"
SIGNIFICANT_DIGITS = 3
STORED_VALUES = 64  # longer arrays are kept as their shape, first values and a hash
ROUNDING = 1e-12  # smaller values are rounding errors of values near one
OFFSET = 0.0137  # moves the borders of rounding away from round numbers, which a last bit would tip over


def show_figure(figure: Figure, alt: str, noise: float = 0.0) -> None:
    """Display a figure as PNG with its alt text and digest, and close it.

    alt: one or two sentences that say what the figure shows; they stand in the image's metadata, in the PNG's
        description and as the output's plain text.
    noise: in the data's own units, what counts as no difference (default: three significant digits of the
        largest value of each array). Give it where the last digits depend on the machine: rounding errors,
        float32 training curves.
    Raises ValueError for empty alt text and for a negative noise.
    """
    if not alt.strip():
        raise ValueError("alt: say in one sentence what the figure shows; got empty text")
    if noise < 0:
        raise ValueError(f"noise: expected a number >= 0, got {noise}")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight", metadata={"Description": alt})
    digest = figure_digest(figure, noise)
    plt.close(figure)
    if get_ipython() is None:
        print(alt)
        return
    png = base64.b64encode(buffer.getvalue()).decode("ascii")
    data = {"image/png": png, "text/plain": alt, DIGEST_MIME: digest}
    display(data, metadata={"image/png": {"alt": alt}}, raw=True)


def heat_map(
    values: np.ndarray,
    title: str,
    xlabel: str,
    ylabel: str,
    alt: str,
    *,
    annotate: str | None = None,
    limits: tuple[float, float] | None = None,
    noise: float = 0.0,
) -> None:
    """Show a matrix (rows, columns) as colours, row 0 on top, with a colour bar.

    annotate: format of the number written into each cell, such as ".2f"; None writes none.
    limits: values at the two ends of the colour scale; None takes the smallest and the largest.
    """
    values = np.asarray(values)
    if values.ndim != 2:
        raise ValueError(f"values: expected a matrix (rows, columns), got shape {values.shape}")
    low, high = limits or (None, None)
    figure, axes = plt.subplots(figsize=(1.8 + 0.45 * values.shape[1], 1.2 + 0.45 * values.shape[0]))
    image = axes.imshow(values, cmap="cividis", vmin=low, vmax=high)
    if annotate is not None:
        middle = sum(image.get_clim()) / 2
        for (row, column), value in np.ndenumerate(values):
            style = {
                "ha": "center",
                "va": "center",
                "fontsize": 8,
                "color": "black" if value > middle else "white",
            }
            axes.text(column, row, format(value, annotate), **style)
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    axes.set_xticks(range(values.shape[1]))
    axes.set_yticks(range(values.shape[0]))
    figure.colorbar(image, ax=axes)
    show_figure(figure, alt, noise)


def figure_digest(figure: Figure, noise: float = 0.0) -> dict:
    """What a figure says, as plain data that is equal on every machine and for every matplotlib version."""
    return _stated(
        {"title": figure.get_suptitle(), "axes": [_axes_digest(axes, noise) for axes in figure.axes]}
    )


def _stated(digest: dict) -> dict:
    return {name: value for name, value in digest.items() if value not in ("", [], None)}


def _axes_digest(axes, noise: float) -> dict:
    if axes.get_label() == "<colorbar>":  # drawn by matplotlib from the image, which has its own digest
        return {"colorbar": axes.get_ylabel() or axes.get_xlabel()}
    log_x, log_y = axes.get_xscale() == "log", axes.get_yscale() == "log"

    def points(xy) -> dict:
        x, y = np.asarray(xy, dtype=float).reshape(-1, 2).T
        return {"x": _numbers(x, noise, log_x), "y": _numbers(y, noise, log_y)}

    def collection(item) -> dict:
        values = item.get_array()
        digest = {} if values is None else {"values": _numbers(values, noise)}
        if isinstance(item, PathCollection):  # scatter
            digest |= points(item.get_offsets())
        elif isinstance(item, PolyCollection | LineCollection):  # fill_between, error bars, vlines
            digest |= points(np.concatenate([path.vertices for path in item.get_paths()]))
        return _stated({"label": _label(item), **digest})

    def patch(item) -> dict:  # bars and other shapes
        outline = item.get_patch_transform().transform_path(item.get_path())
        return _stated({"label": _label(item), **points(outline.vertices)})

    legend = axes.get_legend()
    digest = {
        "title": " | ".join(filter(None, (axes.get_title(place) for place in ("left", "center", "right")))),
        "x": _axis_digest(axes.xaxis, axes.get_autoscalex_on(), noise),
        "y": _axis_digest(axes.yaxis, axes.get_autoscaley_on(), noise),
        "lines": [_stated({"label": _label(line), **points(line.get_xydata())}) for line in axes.get_lines()],
        "images": [
            {"values": _numbers(image.get_array(), noise), "range": _numbers(image.get_clim(), noise)}
            for image in axes.get_images()
        ],
        "patches": [patch(item) for item in axes.patches if not isinstance(item, FancyArrowPatch)],
        "collections": [collection(item) for item in axes.collections],
        "texts": [text.get_text() for text in axes.texts],
        "legend": [text.get_text() for text in legend.get_texts()] if legend else [],
    }
    return _stated(digest)


def _axis_digest(axis, automatic_limits: bool, noise: float) -> dict:
    # Automatic limits and ticks follow from the data and matplotlib's taste; chosen ones are content.
    formatter = axis.get_major_formatter()
    chosen_labels = isinstance(formatter, FixedFormatter | FuncFormatter | StrCategoryFormatter)
    digest = {
        "label": axis.get_label_text(),
        "scale": axis.get_scale(),
        "ticks": list(formatter.format_ticks(axis.get_major_locator()())) if chosen_labels else None,
        "limits": None if automatic_limits else _numbers(axis.get_view_interval(), noise),
    }
    return _stated(digest)


def _label(artist) -> str:
    label = str(artist.get_label())
    return "" if label.startswith("_") else label  # names such as _child0 are matplotlib's own


def _numbers(values, noise: float, log: bool = False) -> str:
    """Shape and values, rounded to a grid on which rounding errors do not show; many values end in a hash."""
    values = np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)
    if log:  # on a logarithmic axis small values count as much as large ones
        with np.errstate(divide="ignore"):
            values, noise = np.log10(np.maximum(values, noise)), 0.0
    largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    magnitude = math.floor(math.log10(largest) + OFFSET) if largest > 0 else 0
    step = max(noise, ROUNDING, 10.0 ** (magnitude + 1 - SIGNIFICANT_DIGITS))
    decimals = max(0, 1 - math.floor(math.log10(step)))
    steps = np.floor(values / step + 0.5 + OFFSET)
    rounded = [round(value * step, decimals) + 0.0 for value in steps.ravel().tolist()]
    shape = " × ".join(str(length) for length in values.shape)
    listed = " ".join(f"{value:.12g}" for value in rounded[:STORED_VALUES])
    if len(rounded) <= STORED_VALUES:
        return f"{shape}: {listed}"
    return f"{shape}: {listed} … sha256 {hashlib.sha256(repr(rounded).encode()).hexdigest()}"
