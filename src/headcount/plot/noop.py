"""How much the loss would notice a change of attention to each kind of token, by layer.

Clark et al. 2019, figure 3: the gradient with respect to attention to [SEP].
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from headcount.plot.layout import key_below, label_outer, layer_axis, wrapped
from headcount.plot.needs import need_rows
from headcount.plot.reading import Frames, frame_of, frames_by_name, titled
from headcount.plot.style import HAIRLINE, INK, SERIES, Style, Width, finish, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["noop_gradients"]

_SIZE = ("gradient", "low", "high")
_SHARE = ("share", "share_low", "share_high")
_TARGETS = ("separator", "punctuation", "other", "first")


def noop_gradients(
    given: Frames,
    *,
    relative: bool = False,
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """Mean size of the loss's gradient with respect to attention, by layer and kind of token.

    Clark et al. 2019, figure 3. Bands are 95% intervals over texts. `relative` draws it as a
    share of the gradient for all other tokens, which can be compared between layers and models.

    >>> frame = pd.DataFrame({"stack": ["enc"] * 2, "layer": [0, 1], "target": ["separator"] * 2,
    ...                       "gradient": [2e-3, 1e-3], "low": [1e-3, 0.0], "high": [3e-3, 2e-3]})
    >>> noop_gradients(frame).axes[0].lines[0].get_ydata().tolist()
    [0.002, 0.001]
    """
    drawn_from = _SHARE if relative else _SIZE
    shown: dict[str, pd.DataFrame] = {}
    for name, one in frames_by_name(given).items():
        frame = frame_of(one, "noop_layers")
        need_rows(
            frame, ("stack", "layer", "target", *drawn_from), "gradients", known=drawn_from[0]
        )
        there = [stack for stack in ("enc", "dec", "cross") if (frame["stack"] == stack).any()]
        shown |= {titled(name, s, there): frame[frame["stack"] == s] for s in there}
    with paper():
        figure, drawn = wrapped(len(shown), width=width, height=2.3)
        for panel, (title, own) in zip(drawn, shown.items(), strict=True):
            if relative:
                own = own[own["target"] != "other"]
                line: Style = {"color": INK, "linewidth": HAIRLINE, "linestyle": ":"}
                panel.axhline(1, label="other token", gid="other", **line)
            _lines(panel, own, drawn_from)
            panel.set_title(title)
            layer_axis(panel, int(own["layer"].max()) + 1)
            panel.set_ylim(bottom=0)
            if not relative:
                panel.ticklabel_format(axis="y", style="sci", scilimits=(-2, 3), useMathText=True)
        label_outer(drawn, "layer", "|dL/dα|, share of others'" if relative else "mean |dL/dα|")
        key_below(figure, *drawn)
        return finish(figure, path)


def _lines(panel: Axes, own: pd.DataFrame, columns: tuple[str, str, str]) -> None:
    for target, (colour, marker) in zip(_TARGETS, SERIES, strict=False):
        rows = own[own["target"] == target].sort_values("layer")
        if len(rows):
            label = f"{target} token" if target in ("first", "other") else target
            style: Style = {"color": colour, "marker": marker, "label": label, "gid": target}
            middle, low, high = (rows[name].to_numpy(float) for name in columns)
            panel.plot(rows["layer"].to_numpy(), middle, **style)
            panel.fill_between(rows["layer"], low, high, color=colour, alpha=0.15, linewidth=0)
