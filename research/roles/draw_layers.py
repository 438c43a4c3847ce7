"""How many heads of each layer have a role: a grid a stack, roles by layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from headcount.rooms.figures.figure import INK, Style, layer_axis, role_colour, sheet
from headcount.rooms.figures.gallery import SEQUENTIAL

from .reading import annotated, layer_of, role_heads

__all__ = ["draw_layers"]

#: Survey, stack and title of each grid, after those of the encoders.
GRIDS = {
    ("de-lohelp", "enc"): "en-de encoder",
    ("ru-lohelp", "enc"): "en-ru encoder",
    ("de-lohelp", "cross"): "en-de cross",
    ("smollm2", "dec"): "SmolLM2",
}


def draw_layers(surveys: dict[str, dict[str, Any]], out: Path) -> None:
    """Encoders and cross attention side by side; a deep decoder needs the whole width."""
    there = [(survey, "enc", title) for title, survey in annotated(surveys).items()]
    there += [(surveys[name], stack, t) for (name, stack), t in GRIDS.items() if name in surveys]
    _figure([one for one in there if one[1] != "dec"], 2, out / "roles-layers.svg")
    _figure([one for one in there if one[1] == "dec"], 1, out / "roles-layers-decoder.svg")


def _figure(grids: list[tuple[dict[str, Any], str, str]], most: int, path: Path) -> None:
    """One panel a stack; the number of heads is written into each cell."""
    if not grids:
        return
    sizes = [len(role_heads(survey, stack)) for survey, stack, _ in grids]
    lines = [max(sizes[k : k + most]) for k in range(0, len(sizes), most)]
    with sheet(len(grids), most=most, height=1.7, path=path) as (figure, drawn):
        spec = drawn[0].get_gridspec()
        assert spec is not None
        spec.set_height_ratios([0.21 * rows + 0.5 for rows in lines])
        figure.set_figheight(sum(0.21 * rows + 0.5 for rows in lines) + 0.2)
        for k, (panel, (survey, stack, title)) in enumerate(zip(drawn, grids, strict=True)):
            width = _grid(panel, survey, stack, lines[k // most])
            panel.set_title(f"{title} ({width} heads a layer)")
        note = "In a cell: how many heads of the layer have the role; darker is a larger share."
        figure.supxlabel(note, fontsize=7, x=0.01, ha="left", color=INK)


def _grid(panel: Axes, survey: dict[str, Any], stack: str, rows: int) -> int:
    """Rows are roles in their colours, columns layers; darker is a larger share of the layer.

    Rows are as high in every panel. Returns how many heads a layer has.
    """
    heads = role_heads(survey, stack)
    own = [head for head in survey["index"] if head.startswith(stack + ".")]
    layers = 1 + max(map(layer_of, own))
    counts = np.zeros((len(heads), layers), dtype=int)
    for line, found in enumerate(heads.values()):
        for head in found:
            counts[line, layer_of(head)] += 1
    share = counts * layers / len(own)
    panel.imshow(share, cmap=SEQUENTIAL, vmin=0, vmax=1.4, aspect="auto")
    for (line, layer), count in np.ndenumerate(counts):
        if count:
            style: Style = {"ha": "center", "va": "center", "fontsize": 6.5}
            panel.text(
                layer,
                line,
                str(count),
                color="white" if share[line, layer] > 0.75 else INK,
                **style,
            )
    panel.set_ylim(rows - 0.5, -0.5)
    panel.set_yticks(range(len(heads)), list(heads))
    for label, role in zip(panel.get_yticklabels(), heads, strict=True):
        label.set_color(role_colour(role))
    layer_axis(panel, layers)
    panel.set_xlabel("layer")
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    return len(own) // layers
