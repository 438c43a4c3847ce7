"""Grids of layers by heads, points by layer, and heads on a plane.

Voita et al. 2019, figures 1 and 2; Kovaleva et al. 2019, figures 4 and 5; Clark et al. 2019,
figure 6: multidimensional scaling of Jensen-Shannon divergences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from headcount.errors import UsageError
from headcount.records import Column, Head, HeadTable, parse_head
from headcount.rooms.figures import figure as draw
from headcount.rooms.figures.figure import Frames, Given, Many, Style, Width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure


# --- One stack as a grid of layers by heads -----------------------------------------------------

Scale = tuple[float, float, str]


def scale_of(
    grids: list[np.ndarray], *, diverging: bool = False, top: float | None = None
) -> Scale:
    """The smallest and the largest colour, and the colours, of grids that share a scale.

    It begins at 0 unless values part there, or unless `top` says where it ends.

    >>> scale_of([np.array([[0.2, np.nan], [0.5, 0.1]])])[:2]
    (0.0, 0.5)
    """
    known = np.concatenate([grid[np.isfinite(grid)] for grid in grids])
    if not len(known):
        return 0.0, 1.0, draw.SEQUENTIAL
    low, high = float(known.min()), float(known.max())
    if diverging:
        reach = max(abs(low), abs(high)) or 1.0
        return -reach, reach, draw.DIVERGING
    if top is not None:
        return (low if low < top else top - 1.0), top, draw.SEQUENTIAL
    low = min(0.0, low)
    return low, high if high > low else low + 1.0, draw.SEQUENTIAL


def draw_cells(panel: Axes, grid: np.ndarray, scale: Scale, *, ticks: bool = True) -> QuadMesh:
    """Draw a grid; the first layer is on top."""
    from matplotlib.patches import Rectangle

    low, high, colours = scale
    style: Style = {"edgecolors": "white", "linewidth": 0.5, "rasterized": False}
    mesh = panel.pcolormesh(np.ma.masked_invalid(grid), cmap=colours, vmin=low, vmax=high, **style)
    for row, column in np.argwhere(~np.isfinite(grid)):
        cell = Rectangle((column, row), 1, 1, hatch="////", fill=False, linewidth=0, gid="missing")
        panel.add_patch(cell)
    panel.invert_yaxis()
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    if ticks:
        for axis, size in ((panel.xaxis, grid.shape[1]), (panel.yaxis, grid.shape[0])):
            places = np.arange(0, size, max(1, -(-size // 12)))
            axis.set_ticks(places + 0.5, [str(place) for place in places])
    return mesh


def mark_roles(panel: Axes, roles: Mapping[tuple[str, int, int], list[str]], stack: str) -> None:
    """Mark up to three roles in the cells of their heads."""
    for (of, layer, head), held in roles.items():
        shown = held[:3] if of == stack else []
        for place, role in enumerate(shown):
            x = head + 0.5 + 0.3 * (place - (len(shown) - 1) / 2)
            panel.plot(x, layer + 0.5, gid=f"role {role}", **_mark(role))


def role_key(figure: Figure, roles: list[str]) -> None:
    """The legend of roles below a figure."""
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], label=role, **_mark(role)) for role in roles]
    if marks:
        figure.legend(handles=marks, loc="outside lower center", ncols=min(len(marks), 6))


def _mark(role: str) -> dict[str, Any]:
    style: Style = {
        "marker": draw.role_marker(role),
        "color": draw.role_colour(role),
        "markeredgecolor": "white",
    }
    return {**style, "linestyle": "none", "markersize": 6, "markeredgewidth": 0.25}


def colour_bar(figure: Figure, mesh: QuadMesh, where: Any, label: str) -> None:
    """A thin bar that says what colours mean, with points where some values lie beyond it."""
    values: np.ndarray = np.ma.compressed(np.ma.asarray(mesh.get_array()))
    beyond = bool((np.clip(values, *mesh.get_clim()) != values).any())
    style: Style = {"shrink": 0.9, "aspect": 25, "pad": 0.01, "extend": "both" if beyond else None}
    bar = figure.colorbar(mesh, ax=where, **style)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=6, length=2)
    bar.set_label(label, fontsize=7, color=draw.INK)


# --- Columns of the head table as grids of layers by heads --------------------------------------
# Voita et al. 2019, figures 1 and 2: relevance, confidence, and what the heads do.


def head_grids(
    given: Given,
    columns: Sequence[str] = ("relevance", "confidence"),
    *,
    roles: bool = True,
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """One row of grids a column, one grid a stack; all stacks share the column's colours.

    Voita et al. 2019, figures 1 and 2.

    >>> from headcount import Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0), Head("enc", 0, 1)], {"confidence": [0.2, 0.9]})
    >>> len(head_grids(table, ["confidence"]).axes)
    2
    """
    table = draw.table_of(given)
    draw.need_columns(table, columns)
    held = draw.roles_of(given) if roles else {}
    stacks = table.stacks
    with draw.paper():
        figure, axes = draw.panels(len(columns), len(stacks), width=width, height=1.8)
        for row, name in zip(axes, columns, strict=True):
            about = table.column(name)
            table.numbers(name)  # a column of words is refused here
            grids = {stack: draw.grid_of(table.frame[name], stack) for stack in stacks}
            scale = scale_of(list(grids.values()), diverging=about.diverging)
            for panel, (stack, grid) in zip(row, grids.items(), strict=True):
                mesh = draw_cells(panel, grid, scale)
                mark_roles(panel, held, stack)
                panel.set_title(f"{about.title}, {stack}")
            colour_bar(figure, mesh, list(row), _label(about))
            row[0].set_ylabel("layer")
        for panel in axes[-1]:
            panel.set_xlabel("head")
        role_key(figure, sorted({role for found in held.values() for role in found}))
        return draw.finish(figure, path)


def _label(about: Column) -> str:
    """What a darker colour means."""
    return about.unit or ("" if about.more == "more" else f"{about.more} →")


# --- Grids of layers by heads side by side, one a task ------------------------------------------
# Kovaleva et al. 2019, figures 4 and 5, and section 4.3.

_LINKS = ("subject_to_verb", "verb_to_subject", "noun_to_pronoun", "pronoun_to_noun")
_INDEX = ["stack", "layer", "head"]


def changes(
    given: Frames,
    column: str = "cosine",
    *,
    stack: str = "enc",
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """How alike a head's maps are before and after training on a task, a grid a task.

    Kovaleva et al. 2019, figure 4. Any other column of `changes.parquet` can be drawn.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"stack": "enc", "layer": [0, 0], "head": [0, 1], "cosine": [1, 0.5]})
    >>> changes(frame).axes[0].collections[0].get_array().tolist()
    [[1.0, 0.5]]
    """
    frames = draw.frames_of(given, "changes", [*_INDEX, column], "changes", known=column)
    grids = {
        name: draw.stack_grid(frame.set_index(_INDEX)[column], stack)
        for name, frame in frames.items()
    }
    with draw.paper():
        diverging = column not in ("cosine", "js")
        return draw.finish(_row({column: grids}, width, diverging), path)


def attention_to(
    given: Many,
    features: Sequence[str] = ("separator", "first"),
    *,
    stack: str = "enc",
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """How much attention a kind of token gets from each head, a row a kind, a grid a task.

    Kovaleva et al. 2019, figure 5 ([SEP] and [CLS]); also noun, verb, pronoun, subject, object
    and negation.

    >>> from headcount import Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0)], {"to_noun": [0.3]})
    >>> attention_to(table, ["noun"]).axes[0].collections[0].get_array().tolist()
    [[0.3]]
    """
    columns = {f"to {name}": f"to_{name}" for name in features}
    return _columns(given, columns, stack, width, path)


def token_to_token(
    given: Many,
    links: Sequence[str] = _LINKS,
    *,
    stack: str = "enc",
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """Attention along links such as subject to verb, a row a link, a grid a task.

    Kovaleva et al. 2019, section 4.3, token to token.

    >>> from headcount import Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0)], {"subject_to_verb": [0.1]})
    >>> token_to_token(table, ["subject_to_verb"]).axes[0].get_title(loc="left")
    'subject to verb'
    """
    return _columns(given, {name.replace("_", " "): name for name in links}, stack, width, path)


def _columns(
    given: Many,
    columns: Mapping[str, str],
    stack: str,
    width: Width,
    path: str | Path | None,
) -> Figure:
    tables = draw.tables_of(given, columns.values())
    rows = {
        title: {name: draw.stack_grid(table.frame[column], stack) for name, table in tables.items()}
        for title, column in columns.items()
    }
    with draw.paper():
        return draw.finish(_row(rows, width, diverging=False), path)


def _row(rows: Mapping[str, Mapping[str, np.ndarray]], width: Width, diverging: bool) -> Figure:
    """A row of grids for each thing drawn, a grid for each source; a row shares its colours."""
    most = max(map(len, rows.values()))
    if most == 1 and len(rows) > 1:  # one source: the things stand side by side, two in a row
        figure, drawn = draw.wrapped(len(rows), most=2, width=width, height=1.8)
        for panel, (title, grids) in zip(drawn, rows.items(), strict=True):
            (grid,) = grids.values()
            colour_bar(figure, draw_cells(panel, grid, scale_of([grid])), panel, "")
            panel.set_title(title)
    elif len(rows) == 1:  # one thing of several sources, in rows of three where they are many
        ((title, grids),) = rows.items()
        figure, drawn = draw.wrapped(len(grids), width=width, height=1.8)
        _same_colours(figure, drawn, title, grids, diverging)
        for panel, name in zip(drawn, grids, strict=True):
            panel.set_title(name or title)  # the bar says what is drawn
    else:
        figure, axes = draw.panels(len(rows), most, width=width, height=1.8)
        for line, (title, grids) in zip(axes, rows.items(), strict=True):
            _same_colours(figure, list(line), title, grids, diverging)
        drawn = list(axes.flat)
    draw.label_outer(drawn, "head", "layer")
    return figure


def _same_colours(
    figure: Figure,
    chosen: list[Axes],
    title: str,
    grids: Mapping[str, np.ndarray],
    diverging: bool,
) -> None:
    top = 1.0 if title == "cosine" else None
    scale = scale_of(list(grids.values()), diverging=diverging, top=top)
    for panel, (name, grid) in zip(chosen, grids.items(), strict=True):
        mesh = draw_cells(panel, grid, scale)
        panel.set_title(f"{name}, {title}" if name else title)
    colour_bar(figure, mesh, chosen, title)


# --- A point a head and a line through the means of layers --------------------------------------


def draw_by_layer(panel: Axes, table: HeadTable, stack: str, columns: Mapping[str, str]) -> None:
    """Draw columns (name to label) of one stack; a head without a value has no point."""
    for place, (name, label) in enumerate(columns.items()):
        grid = draw.grid_of(table.frame[name], stack)
        if not np.isfinite(grid).any():
            continue
        colour, marker = draw.SERIES[place]
        layers = np.arange(len(grid))
        shift = 0.14 * (place - (len(columns) - 1) / 2)
        x, y = np.repeat(layers + shift, grid.shape[1]), grid.ravel()
        known = np.isfinite(y)
        style: Style = {"s": 9, "alpha": 0.5, "linewidths": 0, "gid": f"heads {name}"}
        panel.scatter(x[known], y[known], color=colour, marker=marker, **style)
        there = np.isfinite(grid).any(axis=1)
        means = [np.nanmean(row) for row in grid[there]]
        panel.plot(layers[there], means, color=colour, label=label, gid=f"means {name}")
    draw.layer_axis(panel, int(table.frame.loc[stack].index.get_level_values("layer").max()) + 1)


# --- Heads on a plane, near where they attend alike, coloured by layer and by role --------------

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
    pairs = draw.pairs_of(given)
    draw.need_arrays(pairs)
    heads = [parse_head(str(name)) for name in pairs["heads"]]
    if roles is not None:
        draw.need_rows(roles, ("stack", "layer", "head", "role"), "roles")
        held: Roles = draw.roles_in(roles)
    else:
        held = {} if isinstance(given, Mapping) else draw.roles_of(given)
    stacks = list(dict.fromkeys(head.stack for head in heads))
    shown = ["layer", "role"] if by == "both" else [by]
    with draw.paper():
        figure, axes = draw.panels(len(stacks), len(shown), width=width, height=2.6)
        for row, stack in zip(axes, stacks, strict=True):
            own = [place for place, head in enumerate(heads) if head.stack == stack]
            for panel, what in zip(row, shown, strict=True):
                points = np.asarray(pairs["mds"], dtype=float)[own]
                chosen = [heads[place] for place in own]
                if what == "layer":
                    _by_layer(panel, points, chosen)
                else:
                    _by_role(panel, points, chosen, held)
                _distance_bar(panel, points)
                panel.set_title(f"{stack}, by {what}")
                panel.set_aspect("equal", adjustable="datalim")
                panel.margins(0.08)
                panel.set(xticks=[], yticks=[])
                panel.spines[:].set_visible(False)
        return draw.finish(figure, path)


def _distance_bar(panel: Axes, points: np.ndarray) -> None:
    """A length to read distances by: the plane is in the divergence's own unit."""
    span = float(np.ptp(points, axis=0).max()) if len(points) > 1 else 0.0
    lengths = [unit for unit in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01) if unit < span / 3]
    if not lengths:
        return
    right, low = points[:, 0].max(), points[:, 1].min() - 0.06 * span
    line: Style = {"color": draw.INK, "linewidth": 0.8, "gid": "scale"}
    panel.plot([right - lengths[0], right], [low, low], **line)
    below = low - 0.02 * span
    style: Style = {"fontsize": 6, "ha": "center", "va": "top"}
    panel.text(right - lengths[0] / 2, below, f"{lengths[0]} nats", **style)


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
    panel.scatter(without[:, 0], without[:, 1], color=draw.GREY, marker=".", **style)
    for role in sorted(set(first) - {""}):
        about: Style = {
            "color": draw.role_colour(role),
            "marker": draw.role_marker(role),
            "label": role,
        }
        own = points[first == role]
        panel.scatter(own[:, 0], own[:, 1], s=32, linewidths=0, gid=f"role {role}", **about)
        _name_cluster(panel, own, role)
    panel.legend(loc="center left", bbox_to_anchor=(1, 0.5))


#: A role of so many heads has its name where they lie.
_CLUSTER = 4


def _name_cluster(panel: Axes, points: np.ndarray, role: str) -> None:
    """The role's name in the middle of its heads, on a ground that keeps it readable."""
    if len(points) < _CLUSTER:
        return
    x, y = np.median(points, axis=0)
    ground: Style = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.8}
    label: Style = {"fontsize": 7, "ha": "center", "va": "center", "color": draw.role_colour(role)}
    panel.text(x, y, f"{role}, {len(points)}", bbox=ground, gid=f"name {role}", **label)
