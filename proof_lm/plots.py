"""The course's figures: one small helper per plot, each shown with alt text and a digest of its data.

PNG bytes differ between matplotlib versions, so a stored picture cannot be compared with a fresh one. Every
figure therefore carries a digest of what it draws (data, titles, labels, scales, not pixels) under a MIME
type of its own; `pytest --nbval` compares that digest, and a wrong curve or title fails like a wrong number.
"""

import base64
import hashlib
import io
import itertools
import math
from collections.abc import Mapping, Sequence

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
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> None:
    """Show a matrix (rows, columns) as colours, row 0 on top, with a colour bar.

    rows, columns: names beside the rows and under the columns; None numbers them from 0.
    annotate: format of the number written into each cell, such as ".2f"; None writes none.
    limits: values at the two ends of the colour scale; None takes the smallest and the largest.
    """
    style = {"annotate": annotate, "limits": limits, "noise": noise, "rows": rows, "columns": columns}
    heat_maps({title: values}, xlabel, ylabel, alt, **style)


def heat_maps(
    panels: Mapping[str, np.ndarray],
    xlabel: str,
    ylabel: str,
    alt: str,
    *,
    annotate: str | None = None,
    limits: tuple[float, float] | None = None,
    noise: float = 0.0,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> None:
    """Show matrices of one shape side by side, each under its title, on one colour scale; else as `heat_map`."""
    matrices = [np.asarray(values, dtype=float) for values in panels.values()]
    height, width = matrices[0].shape if matrices[0].ndim == 2 else (0, 0)
    for title, values in zip(panels, matrices, strict=True):
        if values.ndim != 2 or values.shape != (height, width):
            raise ValueError(f"values: expected a matrix (rows, columns) under {title!r}, got shape {values.shape}")
    low, high = limits or (min(map(np.min, matrices)), max(map(np.max, matrices)))
    names = 0.08 * max(map(len, rows or [""]))  # room for the longest name beside the rows
    cell = max(0.45, 0.08 * max(map(len, columns or [""])))  # and under the columns, which stand side by side
    size = ((0.6 + cell * width) * len(matrices) + 1.2 + names, 1.2 + cell * height)
    figure, (row,) = plt.subplots(1, len(matrices), figsize=size, squeeze=False, layout="constrained")
    for axes, title, values in zip(row, panels, matrices, strict=True):
        image = axes.imshow(values, cmap="cividis", vmin=low, vmax=high)
        for (y, x), value in np.ndenumerate(values if annotate else np.empty((0, 0))):
            color = "black" if value > (low + high) / 2 else "white"
            axes.text(x, y, format(value, annotate), ha="center", va="center", fontsize=8, color=color)
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel if axes is row[0] else "")
        axes.set_xticks(range(width), columns)
        axes.set_yticks(range(height), rows)
    figure.colorbar(image, ax=list(row))
    show_figure(figure, alt, noise)


def token_grid(
    rows: Sequence[Sequence[str]], shades: np.ndarray, title: str, xlabel: str, ylabel: str, alt: str
) -> None:
    """Show rows of short words in a grid, row 0 on top; shades (rows, columns) from 0 (white) to 1 (dark grey)."""
    height, width = shades.shape
    figure, axes = plt.subplots(figsize=(0.6 + 0.42 * width, 1.0 + 0.42 * height), layout="constrained")
    axes.imshow(0.55 * np.asarray(shades, dtype=float), cmap="Greys", vmin=0, vmax=1)
    for y, row in enumerate(rows):
        for x, word in enumerate(row):
            axes.text(x, y, word, ha="center", va="center", fontsize=8, color="black")
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel, xticks=range(width), yticks=range(height))
    show_figure(figure, alt)


def line_plot(
    x: np.ndarray,
    curves: Mapping[str, np.ndarray],
    title: str,
    xlabel: str,
    ylabel: str,
    alt: str,
    *,
    log: bool = False,
    log_x: bool = False,
    markers: bool = False,
    noise: float = 0.0,
) -> None:
    """Show named curves over the same x, told apart by line style as well as by colour.

    log, log_x: logarithmic y and x axis. markers: a marker at every point, for few points; up to ten are
        named on a logarithmic x axis, which would else name powers of ten alone.
    """
    figure, axes = plt.subplots(figsize=(6, 3.6))
    colors = plt.get_cmap("cividis")([0.0, 0.45, 0.7, 0.9])
    styles = itertools.cycle(zip(("-", "--", "-.", ":"), ("o", "s", "^", "D"), colors, strict=True))
    for (name, y), (line, marker, color) in zip(curves.items(), styles, strict=False):
        axes.plot(x, y, line, marker=marker if markers else None, color=color, label=name)
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    if log:
        axes.set_yscale("log")
    if log_x:
        axes.set_xscale("log")
    if log_x and markers and len(x) <= 10:
        axes.set_xticks(x, [f"{value:g}" for value in x])
        axes.set_xticks([], minor=True)
    if len(curves) > 3:
        _legend_beside(axes)
    elif len(curves) > 1:
        axes.legend()
    axes.grid(alpha=0.3)
    show_figure(figure, alt, noise)


def seed_bands(
    x: np.ndarray,
    runs: Mapping[str, np.ndarray],
    title: str,
    xlabel: str,
    ylabel: str,
    alt: str,
    *,
    log: bool = False,
    noise: float = 0.0,
) -> None:
    """Show runs (seeds, len(x)) of each name: the median as a line, 5th to 95th percentile as a band around it."""
    figure, axes = plt.subplots(figsize=(7, 4.2))
    colors = plt.get_cmap("cividis")(np.linspace(0, 0.9, len(runs)))
    styles = zip(("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1))), "os^Dv", colors, strict=False)
    for (name, values), (line, marker, color) in zip(runs.items(), styles, strict=False):
        low, middle, high = np.percentile(values, [5, 50, 95], axis=0)
        axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
        axes.plot(x, middle, linestyle=line, marker=marker, markersize=4, color=color, label=name)
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel, yscale="log" if log else "linear")
    _legend_beside(axes)
    axes.grid(alpha=0.3)
    show_figure(figure, alt, noise)


def feature_dots(panels: Mapping[str, np.ndarray], alt: str) -> None:
    """Show arrays (T, d) side by side: the d features of each position as dots, their mean and spread beside them."""
    figure, row = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 3.4), squeeze=False)
    for axes, (title, values) in zip(row[0], panels.items(), strict=True):
        time = np.arange(len(values))
        axes.plot(time, values, "o", color="0.55", markersize=4)
        mean, spread = values.mean(axis=-1), values.std(axis=-1)
        axes.errorbar(time + 0.2, mean, spread, fmt="D", color="black", markersize=4, capsize=3, label="mean ± std")
        axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
        axes.set(title=title, xlabel="position t", ylabel="feature value", xticks=time)
    row[0, 0].legend()
    figure.tight_layout()
    show_figure(figure, alt)


def block_graphs(graphs: Mapping[str, Sequence[tuple[Sequence[str], Sequence[str]]]], alt: str) -> None:
    """Draw blocks as graphs side by side, the stream running upwards.

    Each graph lists its sublayers as (boxes on the branch, boxes on the stream after the sum).
    """
    figure, row = plt.subplots(1, len(graphs), figsize=(3.2 * len(graphs), 4.6), squeeze=False)
    for axes, (title, sublayers) in zip(row[0], graphs.items(), strict=True):
        height = 0.0
        for branch, after in sublayers:
            leaves, joins = height + 0.4, height + len(branch) + 1
            axes.plot([0, 1, 1, 0], [leaves, leaves, joins, joins], color="black", linewidth=1.2, zorder=0)
            axes.plot(0.3, joins, "<", color="black")
            boxes = [(1, leaves + 0.6 + index, name) for index, name in enumerate(branch)]
            boxes += [(0, joins, "+")] + [(0, joins + 1 + index, name) for index, name in enumerate(after)]
            for x, y, name in boxes:
                style = {"boxstyle": "circle" if name == "+" else "round", "facecolor": "white"}
                axes.text(x, y, name, ha="center", va="center", bbox=style)
            height = joins + len(after)
        axes.plot([0, 0], [0, height + 0.8], color="0.6", linewidth=4, zorder=-1)
        axes.plot(0, height + 0.8, "^", color="0.6", markersize=10)
        axes.set(title=title, xlim=(-0.7, 1.8), ylim=(-0.3, height + 1))
        axes.axis("off")
    show_figure(figure, alt)


def plane_vectors(vectors: Mapping[str, np.ndarray], title: str, alt: str) -> None:
    """Show named points (2,) of the plane as arrows from the origin, each with its name at its tip."""
    figure, axes = plt.subplots(figsize=(4.8, 4.8))
    longest = max(float(np.linalg.norm(point)) for point in vectors.values())
    for name, (x, y) in vectors.items():
        axes.plot([0, x], [0, y], color="0.3", linewidth=1.5)
        axes.plot([x], [y], "o", color="black", markersize=5)
        axes.text(1.1 * x, 1.1 * y, name, ha="left" if x > 0 else "right", va="center", fontsize=9)
    axes.add_patch(plt.Circle((0, 0), longest, fill=False, linestyle=":", color="0.6"))
    limits = (-1.75 * longest, 1.75 * longest)
    axes.set(title=title, xlabel="feature 0", ylabel="feature 1", xlim=limits, ylim=limits)
    axes.set_aspect("equal")
    show_figure(figure, alt)


def named_bars(values: Mapping[str, float], title: str, xlabel: str, alt: str, *, noise: float = 0.0) -> None:
    """Show named numbers as horizontal bars, the first on top."""
    figure, axes = plt.subplots(figsize=(6, 1 + 0.3 * len(values)))
    axes.barh(list(values), list(values.values()), color=plt.get_cmap("cividis")(0.35))
    axes.invert_yaxis()
    axes.set(title=title, xlabel=xlabel)
    axes.grid(axis="x", alpha=0.3)
    show_figure(figure, alt, noise)


def error_bars(
    means: Mapping[str, float], errors: Mapping[str, float], title: str, xlabel: str, alt: str, *, noise: float = 0.0
) -> None:
    """Show named means as points with a bar of one error to each side, the first on top."""
    figure, axes = plt.subplots(figsize=(6, 1 + 0.35 * len(means)))
    for row, (name, mean) in enumerate(means.items()):
        axes.plot([mean - errors[name], mean + errors[name]], [row, row], "|-", color="black", markersize=10)
        axes.plot([mean], [row], "D", color=plt.get_cmap("cividis")(0.35))
    axes.set(title=title, xlabel=xlabel, ylim=(len(means) - 0.5, -0.5))
    axes.set_yticks(range(len(means)), list(means))
    axes.grid(axis="x", alpha=0.3)
    show_figure(figure, alt, noise)


def named_points(
    points: Mapping[str, tuple[float, float]],
    errors: Mapping[str, float],
    title: str,
    xlabel: str,
    ylabel: str,
    alt: str,
    *,
    noise: float = 0.0,
) -> None:
    """Show named points (x, y), each with its name and a bar of one error in y up and down."""
    figure, axes = plt.subplots(figsize=(6.5, 3.8))
    styles = zip(itertools.cycle("os^Dv"), itertools.cycle((9, -17)), strict=False)  # names above and below in turn
    for (marker, above), (name, (x, y)) in zip(styles, points.items(), strict=False):
        axes.plot([x, x], [y - errors[name], y + errors[name]], "_-", color="0.5", markersize=10)
        axes.plot([x], [y], marker, color=plt.get_cmap("cividis")(0.35), markersize=8)
        tip = y + math.copysign(errors[name], above)
        axes.annotate(name, (x, tip), xytext=(0, above), textcoords="offset points", ha="center")
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    axes.margins(0.2, 0.2)
    axes.grid(alpha=0.3)
    show_figure(figure, alt, noise)


def stacked_bars(bars: Mapping[str, Mapping[str, float]], title: str, ylabel: str, alt: str) -> None:
    """Show, for each named bar, its named parts stacked; every bar has the same parts in the same order."""
    figure, axes = plt.subplots(figsize=(6, 3.8))
    base, parts = np.zeros(len(bars)), list(next(iter(bars.values())))
    colors = plt.get_cmap("cividis")(np.linspace(0, 1, len(parts)))
    styles = zip(colors, itertools.cycle(("", "//", "..")), strict=False)
    for part, (color, hatch) in zip(parts, styles, strict=False):
        heights = np.array([bar[part] for bar in bars.values()])
        axes.bar(list(bars), heights, bottom=base, label=part, color=color, hatch=hatch, edgecolor="white")
        base = base + heights
    axes.set(title=title, ylabel=ylabel)
    _legend_beside(axes)
    show_figure(figure, alt)


def _legend_beside(axes) -> None:
    """For curves, bands or bars that fill the axes."""
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


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
        "ticks": [str(tick) for tick in formatter.format_ticks(axis.get_major_locator()())] if chosen_labels else None,
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
