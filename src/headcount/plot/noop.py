"""How much the loss would notice a change of attention to each kind of token, by layer.

Clark et al. 2019, figure 3: the gradient with respect to attention to [SEP].
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from headcount.plot.reading import Given, frame_of, need_rows
from headcount.plot.style import SERIES, Style, Width, finish, key_below, layer_axis, panels, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["noop_gradients"]

_TARGETS = ("separator", "punctuation", "other", "first")


def noop_gradients(
    given: Given | pd.DataFrame, *, width: Width = "page", path: str | Path | None = None
) -> Figure:
    """Mean size of the loss's gradient with respect to attention, by layer and kind of token.

    Clark et al. 2019, figure 3. Bands are 95% intervals over texts.

    >>> frame = pd.DataFrame({"stack": ["enc"] * 2, "layer": [0, 1], "target": ["separator"] * 2,
    ...                       "gradient": [2e-3, 1e-3], "low": [1e-3, 0.0], "high": [3e-3, 2e-3]})
    >>> noop_gradients(frame).axes[0].lines[0].get_ydata().tolist()
    [0.002, 0.001]
    """
    frame = frame_of(given, "noop_layers")
    need_rows(frame, ("stack", "layer", "target", "gradient", "low", "high"), "gradients")
    stacks = [stack for stack in ("enc", "dec", "cross") if (frame["stack"] == stack).any()]
    with paper():
        figure, axes = panels(1, len(stacks), width=width, height=2.3)
        for panel, stack in zip(axes[0], stacks, strict=True):
            own = frame[frame["stack"] == stack]
            _lines(panel, own)
            panel.set_title(stack)
            layer_axis(panel, int(own["layer"].max()) + 1)
            panel.set_ylim(bottom=0)
            panel.ticklabel_format(axis="y", style="sci", scilimits=(-2, 3), useMathText=True)
        axes[0, 0].set_ylabel("mean |dL/dα|")
        key_below(figure, *axes[0])
        return finish(figure, path)


def _lines(panel: Axes, own: pd.DataFrame) -> None:
    for target, (colour, marker) in zip(_TARGETS, SERIES, strict=False):
        rows = own[own["target"] == target].sort_values("layer")
        if len(rows):
            label = f"{target} token" if target in ("first", "other") else target
            style: Style = {"color": colour, "marker": marker, "label": label, "gid": target}
            panel.plot(rows["layer"].to_numpy(), rows["gradient"].to_numpy(), **style)
            bounds = rows["low"].to_numpy(), rows["high"].to_numpy()
            panel.fill_between(rows["layer"], *bounds, color=colour, alpha=0.15, linewidth=0)
