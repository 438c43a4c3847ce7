"""Heads on a plane, near where they attend alike, coloured by layer and by role.

Clark et al. 2019, figure 6: multidimensional scaling of Jensen-Shannon divergences.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from headcount.errors import UsageError
from headcount.heads import Head, parse_head
from headcount.plot.layout import panels
from headcount.plot.needs import need_arrays, need_rows
from headcount.plot.reading import Given, pairs_of, roles_in, roles_of
from headcount.plot.style import GREY, Style, Width, finish, paper, role_colour, role_marker

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["head_map"]

Roles = Mapping[tuple[str, int, int], list[str]]


def head_map(
    given: Given | Mapping[str, np.ndarray],
    by: Literal["layer", "role", "both"] = "both",
    *,
    roles: pd.DataFrame | None = None,
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """One row of panels a stack: heads that attend alike are near each other.

    Clark et al. 2019, figure 6. A head with several roles is drawn with the first. `roles` are
    verdicts (stack, layer, head, role) for pairs that are given without a run.

    >>> pairs = {"heads": np.array(["enc.0.0", "enc.0.1"]), "mds": np.array([[0, 1], [2, 3.0]])}
    >>> head_map(pairs, by="layer").axes[0].collections[0].get_offsets().tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    """
    if by not in ("layer", "role", "both"):
        raise UsageError(f"by is '{by}'; heads are coloured by 'layer', 'role' or 'both'.")
    pairs = pairs_of(given)
    need_arrays(pairs)
    heads = [parse_head(str(name)) for name in pairs["heads"]]
    held = _held(given, roles)
    stacks = list(dict.fromkeys(head.stack for head in heads))
    shown = ["layer", "role"] if by == "both" else [by]
    with paper():
        figure, axes = panels(len(stacks), len(shown), width=width, height=2.6)
        for row, stack in zip(axes, stacks, strict=True):
            own = [place for place, head in enumerate(heads) if head.stack == stack]
            for panel, what in zip(row, shown, strict=True):
                points = np.asarray(pairs["mds"], dtype=float)[own]
                chosen = [heads[place] for place in own]
                if what == "layer":
                    _by_layer(panel, points, chosen)
                else:
                    _by_role(panel, points, chosen, held)
                panel.set_title(f"{stack}, by {what}")
                panel.set_aspect("equal", adjustable="datalim")
                panel.margins(0.08)
                panel.set(xticks=[], yticks=[])
                panel.spines[:].set_visible(False)
        return finish(figure, path)


def _held(given: Given | Mapping[str, np.ndarray], roles: pd.DataFrame | None) -> Roles:
    """The roles of each head: those given, or those of the run."""
    if roles is not None:
        need_rows(roles, ("stack", "layer", "head", "role"), "roles")
        return roles_in(roles)
    return {} if isinstance(given, Mapping) else roles_of(given)


def _by_layer(panel: Axes, points: np.ndarray, heads: list[Head]) -> None:
    layers = [head.layer for head in heads]
    style: Style = {"cmap": "viridis", "s": 18, "linewidths": 0, "gid": "heads"}
    drawn = panel.scatter(
        points[:, 0], points[:, 1], c=layers, vmin=0, vmax=max(1, *layers), **style
    )
    bar = panel.figure.colorbar(drawn, ax=panel, shrink=0.8, aspect=25, pad=0.01)
    bar.outline.set_visible(False)
    step = max(1, -(-max(layers) // 12))
    bar.set_ticks(range(0, max(layers) + 1, step))
    bar.set_label("layer", fontsize=7)


def _by_role(panel: Axes, points: np.ndarray, heads: list[Head], roles: Roles) -> None:
    first = np.array([next(iter(roles.get(head, [])), "") for head in heads])
    without = points[first == ""]
    style: Style = {"s": 10, "linewidths": 0, "label": "no role", "gid": "role none"}
    panel.scatter(without[:, 0], without[:, 1], color=GREY, marker=".", **style)
    for role in sorted(set(first) - {""}):
        about: Style = {"color": role_colour(role), "marker": role_marker(role), "label": role}
        own = points[first == role]
        panel.scatter(own[:, 0], own[:, 1], s=24, linewidths=0, gid=f"role {role}", **about)
    panel.legend(loc="center left", bbox_to_anchor=(1, 0.5))
