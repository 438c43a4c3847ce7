"""Heads on a plane, coloured by layer and by role; and heat maps of cosines."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import headcount as hc
from experiments.together.families import first_roles
from headcount.compare.changes import Changes
from headcount.head_families import Families

INK = "#333333"
ROLE_COLOURS = (
    "#12419b", "#a0572a", "#03875a", "#8a2be2", "#c4203e", "#0090a8", "#b38600", "#556b2f",
    "#d0609a", "#5a5a5a",
)  # fmt: skip


def draw_families(found: dict[str, tuple[Families, hc.HeadTable]], path: Path) -> None:
    """A row for each stack of each model: by layer on the left, by role on the right."""
    rows = [(name, stack) for name, (one, _) in found.items() for stack in one.stacks]
    figure, axes = plt.subplots(len(rows), 2, figsize=(9, 3.6 * len(rows)), squeeze=False)
    for (name, stack), (left, right) in zip(rows, axes, strict=True):
        families, table = found[name]
        _by_layer(left, families, stack)
        _by_role(right, families, stack, first_roles(table))
        left.set_title(f"{name} {stack}: by layer", fontsize=9, loc="left", color=INK)
        right.set_title(f"{name} {stack}: by role", fontsize=9, loc="left", color=INK)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _places(found: Families, stack: str) -> tuple[list[hc.Head], np.ndarray]:
    rows = [row for row, head in enumerate(found.heads) if head.stack == stack]
    return [found.heads[row] for row in rows], found.mds[rows]


def _by_layer(panel: Axes, found: Families, stack: str) -> None:
    heads, places = _places(found, stack)
    layers = np.array([head.layer for head in heads])
    shown = panel.scatter(*places.T, c=layers, cmap="viridis", s=26, linewidths=0)
    plt.colorbar(shown, ax=panel, shrink=0.8, ticks=sorted(set(layers.tolist())))
    _plain(panel)


def _by_role(panel: Axes, found: Families, stack: str, roles: dict[str, str]) -> None:
    heads, places = _places(found, stack)
    held = [roles.get(str(head), "") for head in heads]
    names = sorted({role for role in held if role})
    panel.scatter(*places.T, c="#cccccc", s=14, linewidths=0, label="no role")
    for number, name in enumerate(names):
        chosen = np.array([role == name for role in held])
        colour = ROLE_COLOURS[number % len(ROLE_COLOURS)]
        panel.scatter(*places[chosen].T, color=colour, s=26, linewidths=0, label=name)
    panel.legend(fontsize=6, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    _plain(panel)


def _plain(panel: Axes) -> None:
    panel.set_aspect("equal", adjustable="datalim")
    panel.tick_params(labelsize=6)
    panel.spines[["top", "right"]].set_visible(False)


def draw_changes(found: dict[str, Changes], path: Path) -> None:
    """A heat map for each fine-tuned model, layer by head, all on one scale."""
    hc.plot.changes({name: one.heads.reset_index() for name, one in found.items()}, path=path)
