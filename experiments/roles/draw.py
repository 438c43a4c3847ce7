"""Two pictures of the page: dependencies against offset and twin, and roles layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from .reading import annotated, best, layer_of, role_heads

__all__ = ["draw_dependencies", "draw_roles"]

INK, FIRST, SECOND, THIRD = "#333333", "#12419b", "#a0572a", "#03875a"
BARS = {"accuracy": FIRST, "baseline": SECOND, "control": THIRD}
WORDS = {"accuracy": "best head", "baseline": "best offset", "control": "random twin's best head"}
RELATIONS = ("det", "aux", "amod", "obj", "case", "nsubj", "advmod", "mark", "conj", "all")
#: Survey, stack and title of each grid, after those of the encoders.
GRIDS = {
    ("de-lohelp", "enc"): "en-de encoder, lohelp",
    ("ru-lohelp", "enc"): "en-ru encoder, lohelp",
    ("de-lohelp", "cross"): "en-de cross, lohelp",
    ("smollm2", "dec"): "SmolLM2",
}

Surveys = dict[str, dict[str, Any]]


def draw_dependencies(surveys: Surveys, path: Path) -> None:
    """One panel a model: three bars a relation, on held-out sentences."""
    there = annotated(surveys)
    if not there:
        return
    figure, axes = plt.subplots(len(there), 1, figsize=(8, 2.6 * len(there)), squeeze=False)
    for panel, (title, survey) in zip(axes[:, 0], there.items(), strict=True):
        _bars(panel, survey)
        _plain(panel, title)
        panel.set_ylim(0, 1)
    axes[0, 0].legend(fontsize=7, frameon=False, ncols=3)
    _save(figure, path)


def _bars(panel: Axes, survey: dict[str, Any]) -> None:
    rows = [(name, row) for name in RELATIONS if (row := best(survey, name))]
    places = np.arange(len(rows))
    for shift, (column, colour) in enumerate(BARS.items()):
        values = [row.get(column) or np.nan for _, row in rows]
        panel.bar(places + 0.27 * (shift - 1), values, 0.25, color=colour, label=WORDS[column])
    ends = np.array(
        [[row["accuracy"] - row["low"], row["high"] - row["accuracy"]] for _, row in rows]
    )
    tops = [row["accuracy"] for _, row in rows]
    panel.errorbar(places - 0.27, tops, ends.T, fmt="none", ecolor=INK, linewidth=0.8)
    panel.set_xticks(places, [name for name, _ in rows])


def draw_roles(surveys: Surveys, path: Path) -> None:
    """One panel a stack: how many heads of each layer have a role."""
    there = [(survey, "enc", title) for title, survey in annotated(surveys).items()]
    there += [(surveys[key[0]], key[1], title) for key, title in GRIDS.items() if key[0] in surveys]
    if not there:
        return
    columns = min(3, len(there))
    lines = -(-len(there) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(11, 2.9 * lines), squeeze=False)
    for panel in axes.flat[len(there) :]:
        panel.set_axis_off()
    for panel, (survey, stack, title) in zip(axes.flat, there, strict=False):
        _grid(panel, survey, stack)
        _plain(panel, title)
    _save(figure, path)


def _grid(panel: Axes, survey: dict[str, Any], stack: str) -> None:
    """Rows are roles, columns layers; the number of heads is written into each cell."""
    heads = role_heads(survey, stack)
    layers = 1 + max(layer_of(head) for head in survey["index"] if head.startswith(stack + "."))
    width = sum(head.startswith(stack + ".") for head in survey["index"]) / layers
    counts = np.zeros((len(heads), layers), dtype=int)
    for line, found in enumerate(heads.values()):
        for head in found:
            counts[line, layer_of(head)] += 1
    panel.imshow(counts / width, cmap="Blues", vmin=0, vmax=1.2, aspect="auto")
    for (line, layer), count in np.ndenumerate(counts):
        if count:
            ink = "white" if count > 0.6 * width else INK
            panel.text(layer, line, str(count), ha="center", va="center", fontsize=6, color=ink)
    panel.set_yticks(range(len(heads)), list(heads))
    panel.set_xticks(range(0, layers, 1 if layers <= 12 else 5))
    panel.set_xlabel("layer", fontsize=8)


def _plain(panel: Axes, title: str) -> None:
    panel.set_title(title, fontsize=9, loc="left", color=INK)
    panel.tick_params(labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)


def _save(figure: plt.Figure, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
