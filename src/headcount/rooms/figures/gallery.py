"""The figures of four papers: a table or a frame in, a figure out.

Each is one of four kinds: grids of cells, lines, bars, or points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
import pandas as pd

from headcount.errors import RunError, UsageError, install_hint
from headcount.records import Head, HeadTable, Run, parse_head, parse_heads
from headcount.reports import HELD_OUT, first_known, held_out, metric_title
from headcount.rooms.agreement import Kind, rank_agreement, survival
from headcount.rooms.exhibits import Exhibit, read_exhibits
from headcount.rooms.figures import figure as draw
from headcount.rooms.figures.figure import Framed, Frames, Given, How, Many, Style, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

    from headcount.pruning import Plan


#: What fits one column of a paper unless the page is asked for.
COLUMN: How = {"width": "column"}


# --- Grids: layers by heads, or anything else in cells ------------------------------------------

Scale = tuple[float, float, str]
DIVERGING = "RdBu"
SEQUENTIAL = "YlGnBu"


def scale_of(grids: Iterable[np.ndarray], *, diverging: bool = False) -> Scale:
    """The smallest and the largest colour, and the colours, of grids that share a scale.

    It begins at 0 unless values part there.

    >>> scale_of([np.array([[0.2, np.nan], [0.5, 0.1]])])[:2]
    (0.0, 0.5)
    """
    known = np.concatenate([[0.0], *(grid[np.isfinite(grid)] for grid in grids)])
    low, high = float(known.min()), float(known.max())
    if diverging:
        reach = max(-low, high) or 1.0
        return -reach, reach, DIVERGING
    return low, high if high > low else low + 1.0, SEQUENTIAL


def draw_cells(
    panel: Axes,
    grid: np.ndarray,
    scale: Scale,
    *,
    texts: np.ndarray | None = None,
    x: Sequence[str] | None = None,
    y: Sequence[str] | None = None,
) -> QuadMesh:
    """Draw a grid, its first row on top; what is not known is hatched.

    `texts` stand in the cells, `x` and `y` name columns and rows; else they are counted.
    """
    from matplotlib.patches import Rectangle

    low, high, colours = scale
    style: Style = {"edgecolors": "white", "linewidth": 0.5, "rasterized": False}
    mesh = panel.pcolormesh(np.ma.masked_invalid(grid), cmap=colours, vmin=low, vmax=high, **style)
    for row, column in np.argwhere(~np.isfinite(grid)):
        cell = Rectangle((column, row), 1, 1, hatch="////", fill=False, linewidth=0, gid="missing")
        panel.add_patch(cell)
    for (row, column), text in np.ndenumerate(texts if texts is not None else np.empty((0, 0))):
        dark = abs(grid[row, column]) > 0.6 * high
        where: Style = {"ha": "center", "va": "center", "fontsize": 6.5}
        panel.text(column + 0.5, row + 0.5, text, color="white" if dark else draw.INK, **where)
    panel.invert_yaxis()
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    for axis, names, size in ((panel.xaxis, x, grid.shape[1]), (panel.yaxis, y, grid.shape[0])):
        places = np.arange(0, size, max(1, -(-size // 12)) if names is None else 1)
        labels = [str(place) for place in places] if names is None else names
        axis.set_ticks(places + 0.5, list(labels))
    return mesh


def colour_bar(figure: Figure, mesh: QuadMesh, where: Any, label: str) -> None:
    """A thin bar that says what colours mean, with points where some values lie beyond it."""
    values: np.ndarray = np.ma.compressed(np.ma.asarray(mesh.get_array()))
    beyond = bool((np.clip(values, *mesh.get_clim()) != values).any())
    style: Style = {"shrink": 0.9, "aspect": 25, "pad": 0.01, "extend": "both" if beyond else None}
    bar = figure.colorbar(mesh, ax=where, **style)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=6, length=2)
    bar.set_label(label, fontsize=7, color=draw.INK)


#: What is drawn, by title, and of each the grids of its sources or stacks, by name.
Grids = Mapping[str, Mapping[str, np.ndarray]]


def _grids(
    rows: Grids,
    scale: Callable[[str], Scale],
    label: Callable[[str], str] = lambda title: title,
    *,
    several: bool = True,
    mark: Callable[[Axes, str], None] = lambda panel, name: None,
    **how: Unpack[How],
) -> Figure:
    """A row of grids a thing, one a source; they share a colour bar, unless not `several`."""
    most = max(map(len, rows.values()))
    both = most > 1 and len(rows) > 1  # else the panels of the one row are wrapped
    shape: Style = {"columns": most if both else None, "height": 1.8}
    with sheet(most * len(rows), **how, **shape) as (figure, panels):
        places = iter(panels)
        for title, grids in rows.items():
            chosen = list(islice(places, len(grids)))
            for panel, (name, grid) in zip(chosen, grids.items(), strict=True):
                mesh = draw_cells(panel, grid, scale(title if several else name))
                panel.set_title(", ".join(filter(None, (title if both else "", name))) or title)
                mark(panel, name)
                if not several:
                    colour_bar(figure, mesh, panel, label(name))
            if several:
                colour_bar(figure, mesh, chosen, label(title))
        draw.label_outer(panels, "head", "layer")
        draw.key_below(figure, 6)  # of the marks, where there are some
        return figure


def head_grids(
    given: Given,
    columns: Sequence[str] = ("relevance", "confidence"),
    *,
    roles: bool = True,
    **how: Unpack[How],
) -> Figure:
    """One row of grids a column, one grid a stack; all stacks share the column's colours.

    Voita et al. 2019, figures 1 and 2. The first three roles of a head are marked.

    >>> from headcount import Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0), Head("enc", 0, 1)], {"confidence": [0.2, 0.9]})
    >>> len(head_grids(table, ["confidence"]).axes)
    2
    """
    table = draw.table_of(given)
    draw.need_columns(table, columns)
    held = draw.roles_of(given) if roles else {}
    about = {table.column(name).title: table.column(name) for name in columns}
    grids: dict[str, dict[str, np.ndarray]] = {}
    for title, column in about.items():
        table.numbers(column.name)  # a column of words is refused here
        values = table.frame[column.name]
        grids[title] = {stack: draw.grid_of(values, stack) for stack in table.stacks}

    def mark(panel: Axes, stack: str) -> None:
        for (of, layer, head), names in held.items():
            for place, role in enumerate(names[:3] if of == stack else ()):
                x = head + 0.5 + 0.3 * (place - (len(names[:3]) - 1) / 2)
                style: Style = {"linestyle": "none", "markersize": 6, "markeredgewidth": 0.25}
                style |= {"color": draw.role_colour(role), "marker": draw.role_marker(role)}
                panel.plot(x, layer + 0.5, label=role, gid=f"role {role}", **style)

    return _grids(
        grids,
        lambda title: scale_of(grids[title].values(), diverging=about[title].diverging),
        lambda title: about[title].unit or "",
        mark=mark,
        **how,
    )


_LINKS = ("subject_to_verb", "verb_to_subject", "noun_to_pronoun", "pronoun_to_noun")
_INDEX = ["stack", "layer", "head"]


def changes(
    given: Frames, column: str = "cosine", *, stack: str = "enc", **how: Unpack[How]
) -> Figure:
    """How alike a head's maps are before and after training on a task, a grid a task.

    Kovaleva et al. 2019, figure 4. Any other column of `changes.parquet` can be drawn.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"stack": "enc", "layer": [0, 0], "head": [0, 1], "cosine": [1, 0.5]})
    >>> changes(frame).axes[0].collections[0].get_array().tolist()
    [[1.0, 0.5]]
    """
    frames = draw.frames_of(given, "changes", [*_INDEX, column], "changes", known=column)
    values = {name: frame.set_index(_INDEX)[column] for name, frame in frames.items()}
    grids = {name: draw.grid_of(one, stack) for name, one in values.items()}
    scale = scale_of(grids.values(), diverging=column not in ("cosine", "js"))
    if column == "cosine":  # which ends at 1
        low = min(float(np.nanmin(grid)) for grid in grids.values())
        scale = (low if low < 1 else 0.0, 1.0, SEQUENTIAL)
    return _grids({column: grids}, lambda title: scale, **how)


def attention_to(
    given: Many,
    features: Sequence[str] = ("separator", "first"),
    *,
    stack: str = "enc",
    **how: Unpack[How],
) -> Figure:
    """How much attention a kind of token gets from each head, a row a kind, a grid a task.

    Kovaleva et al. 2019, figure 5 ([SEP] and [CLS]); also noun, verb, pronoun, subject, object
    and negation.

    >>> from headcount import Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0)], {"to_noun": [0.3]})
    >>> attention_to(table, ["noun"]).axes[0].collections[0].get_array().tolist()
    [[0.3]]
    """
    return _columns(given, {f"to {name}": f"to_{name}" for name in features}, stack, how)


def token_to_token(
    given: Many, links: Sequence[str] = _LINKS, *, stack: str = "enc", **how: Unpack[How]
) -> Figure:
    """Attention along links such as subject to verb, a row a link, a grid a task.

    Kovaleva et al. 2019, section 4.3, token to token.

    >>> from headcount import Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0)], {"subject_to_verb": [0.1]})
    >>> token_to_token(table, ["subject_to_verb"]).axes[0].get_title(loc="left")
    'subject to verb'
    """
    return _columns(given, {name.replace("_", " "): name for name in links}, stack, how)


def _columns(given: Many, columns: Mapping[str, str], stack: str, how: How) -> Figure:
    tables = draw.tables_of(given, columns.values())
    grids = {
        title: {name: draw.grid_of(table.frame[column], stack) for name, table in tables.items()}
        for title, column in columns.items()
    }
    return _grids(grids, lambda title: scale_of(grids[title].values()), **how)


def disabling(
    given: Many,
    column: str = "ablation",
    *,
    layers: str | None = "ablation_layer",
    stack: str = "enc",
    **how: Unpack[How],
) -> Figure:
    """What the task gains when a head is disabled, a grid a task; at the right, whole layers.

    Kovaleva et al. 2019, figures 8 and 9; with ``--scoring mode=uniform`` as the paper does.
    Blue is a gain and red a loss. Layers are drawn where the table has the column `layers`, in
    the colours of the heads.

    >>> from headcount import Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0), Head("enc", 0, 1)], {"ablation": [0.5, -0.25]})
    >>> disabling(table).axes[0].collections[0].get_array().tolist()
    [[-0.5, 0.25]]
    """
    tables = draw.tables_of(given, [column])
    gains = {n: -draw.grid_of(table.frame[column], stack) for n, table in tables.items()}
    whole = {
        name: -draw.grid_of(table.frame[layers], stack)
        for name, table in tables.items()
        if layers in table.frame
    }
    grids = {  # the value of a layer stands at each of its heads
        name: np.column_stack([grid, *([np.nanmax(whole[name], 1)] if name in whole else [])])
        for name, grid in gains.items()
    }

    def mark(panel: Axes, name: str) -> None:
        if name in whole:
            heads = gains[name].shape[1]
            panel.axvline(heads, color="white", linewidth=4)
            panel.set_xticks([*panel.get_xticks(), heads + 0.5])
            panel.set_xticklabels([*panel.get_xticklabels()[:-2], "", "all"])

    units = {name: table.column(column).unit or "score" for name, table in tables.items()}
    return _grids(
        {stack: grids},
        lambda name: scale_of([gains[name]], diverging=True),
        lambda name: f"{units[name]} {'saved' if units[name] == 'loss' else 'gained'}",
        several=False,
        mark=mark,
        **how,
    )


_FEATURES = ("noun", "verb", "pronoun", "subject", "object", "negation", "separator", "first")


def first_row(
    given: Frames, *, stack: str = "enc", layer: int | None = None, **how: Unpack[How]
) -> Figure:
    """Attention of [CLS] in the last layer to kinds of tokens, mean over heads, a row a task.

    Kovaleva et al. 2019, figure 7. Each kind counts texts that have such a token.

    >>> frame = pd.DataFrame({"stack": "enc", "layer": 0, "head": [0, 1], "feature": "noun",
    ...                       "split": "all", "origin": "first", "value": [0.25, 0.75]})
    >>> float(first_row(frame).axes[0].collections[0].get_array()[0, 0])
    0.5
    """
    columns = ("stack", "layer", "feature", "split", "origin", "value")
    frames = draw.frames_of(given, "features", columns, "features", known="value")
    rows: list[pd.Series] = []
    for frame in frames.values():
        own = frame[(frame["stack"] == stack) & (frame["origin"] == "first")]
        if not len(own):
            raise UsageError(f"The run has no row of the first token for the stack '{stack}'.")
        own = own[
            own["split"] == ("all" if (own["split"] == "all").any() else own["split"].iloc[0])
        ]
        own = own[own["layer"] == (own["layer"].max() if layer is None else layer)]
        rows.append(own.groupby("feature")["value"].mean().reindex(_FEATURES))
    grid = np.array(rows, dtype=float)
    texts = np.vectorize(lambda value: "–" if np.isnan(value) else f"{value:.2f}")(grid)
    with sheet(height=0.6 + 0.3 * len(grid), **how) as (figure, (panel,)):
        mesh = draw_cells(panel, grid, scale_of([grid]), texts=texts, x=_FEATURES, y=list(frames))
        colour_bar(figure, mesh, panel, "attention")
        return figure


def layers_left(
    given: Framed, *, order: str | None = None, pool: int = 1, **how: Unpack[How]
) -> Figure:
    """How many heads of each layer are left, as the model gets smaller; the number in each cell.

    Voita et al. 2019, figure 10, where layers are pooled in pairs (`pool=2`).

    >>> frame = pd.DataFrame({"set": "2", "stack": "dec", "layer": [0, 1], "heads": [2, 0],
    ...                       "share": [1.0, 0.0]})
    >>> [text.get_text() for text in layers_left(frame).axes[0].texts]
    ['2', '0']
    """
    if not isinstance(given, pd.DataFrame):
        given = survival.left_by_layer(_sets(given, order), draw.table_of(given).heads, pool)
    draw.need_rows(given, ("set", "stack", "layer", "heads", "share"), "layers that are left")
    sets, stacks = (list(dict.fromkeys(given[name])) for name in ("set", "stack"))
    shape: Style = {"columns": len(stacks), "height": 0.5 + 0.22 * len(sets)}
    shown = {stack: given[given["stack"] == stack] for stack in stacks}
    words = "layer" if pool == 1 else f"layers, {pool} together"
    with draw.panelled(shown, words, "heads left", **how, **shape) as (figure, pairs):
        for panel, own in pairs:
            wide = own.pivot(index="set", columns="layer", values=["heads", "share"]).reindex(sets)
            counts, shares = wide["heads"].astype(int), wide["share"].to_numpy(float)
            scale, layers = (0.0, 1.4, SEQUENTIAL), [str(layer) for layer in counts.columns]
            names = [str(one) for one in sets]
            draw_cells(panel, shares, scale, texts=counts.to_numpy(), x=layers, y=names)
        return figure


# --- Lines, with their bands of 95% -------------------------------------------------------------


def _line(panel: Axes, rows: pd.DataFrame, x: str, name: str = "", **style: Any) -> None:
    """One line of `rows`: x against `value`, between `low` and `high`."""
    rows = rows.sort_values(x)
    columns = (rows[column].to_numpy(float) for column in (x, "value", "low", "high"))
    places, values, low, high = columns
    label = name or "_"  # without a name it is not in the key
    panel.plot(places, values, **{"label": label, "gid": name, **style})
    panel.fill_between(places, low, high, color=style["color"], alpha=0.15, linewidth=0)


def _level(panel: Axes, value: float, **style: Any) -> None:
    """A dotted line across the panel."""
    dotted: Style = {"color": draw.INK, "linewidth": draw.HAIRLINE, "linestyle": ":"}
    panel.axhline(value, **dotted, **style)


_NEEDED = ("order", "scope", "step", "heads_left", "metric", "value", "low", "high")


def curve_of(given: Framed, metric: str | None = None) -> pd.DataFrame:
    """The rows of a curve on held-out examples, of one metric: the first that is not the loss."""
    frame = draw.frame_of(given, "curve")
    draw.need_rows(frame, _NEEDED, "a pruning curve", known="value")
    frame = first_known(frame, "part", HELD_OUT)
    if metric is None:
        metric = next((name for name in frame["metric"] if name != "loss"), "loss")
    frame = _only(frame, "metric", metric)
    healed = frame["healed"].astype(bool) if "healed" in frame else False
    return frame.assign(healed=healed, heads_left=frame["heads_left"].astype(float))


def _only(rows: pd.DataFrame, column: str, name: str) -> pd.DataFrame:
    there = list(dict.fromkeys(rows[column]))
    if name not in there:
        raise UsageError(f"The curve has no {column} '{name}'; it has {', '.join(there)}.")
    return rows[rows[column] == name]


def _metric_label(rows: pd.DataFrame) -> str:
    """The metric of a curve, for an axis."""
    worse = "more" in rows and (rows["more"] == "worse").any()
    return metric_title(str(rows["metric"].iloc[0]), lower_is_better=bool(worse))


def _whole(panel: Axes, rows: pd.DataFrame) -> None:
    """A dotted line where the whole model is."""
    for value in rows.loc[rows["step"] == 0, "value"].iloc[:1]:
        _level(panel, float(value), gid="whole")


def draw_plan(plan: Plan, path: Path) -> list[str]:
    """The curve of a pruning as a picture, or a note that says why there is none."""
    if not draw.can_draw():
        return [f"No {path.name} was drawn: that takes matplotlib; {install_hint('plot')}."]
    rows, first = plan.curve, plan.curve.iloc[0]
    single = rows["scope"] != "all"  # a stack by itself is a line of its own
    names = rows["order"].where(~single, rows["order"] + ", " + rows["scope"] + " only")
    title = f"{first['metric']} over {first['n']:,} examples ({first['part']}), 95% intervals"
    left = int(first["heads_left"]) - len(plan.going) if plan.going else None
    curves = {title: rows.assign(order=names, scope="all")}
    pruning_curves(curves, str(first["metric"]), chosen=left, path=path)
    return []


def pruning_curves(
    given: Frames,
    metric: str | None = None,
    *,
    chosen: int | None = None,
    log: bool = False,
    unit: str = "heads",
    **how: Unpack[How],
) -> Figure:
    """Quality over heads left, a line an order with its 95% band, one panel a run.

    Michel et al. 2019, figure 3. `chosen` heads left are marked; `log` suits a perplexity; `unit`
    is the word for what is counted, where that is groups.

    >>> frame = pd.DataFrame({"order": "gradient", "scope": "all", "step": [0, 1],
    ...     "heads_left": [8, 4], "metric": "bleu", "value": [30.0, 28], "low": [29.0, 27],
    ...     "high": [31.0, 29]})
    >>> pruning_curves(frame).axes[0].lines[0].get_xydata().tolist()
    [[4.0, 28.0], [8.0, 30.0]]
    """
    curves = {name: curve_of(one, metric) for name, one in draw.by_name(given).items()}
    orders = dict.fromkeys(str(order) for rows in curves.values() for order in rows["order"])
    named = [order for order in orders if not order.startswith("random")]
    looks = {name: draw.SERIES[place % len(draw.SERIES)] for place, name in enumerate(named)}
    shape: Style = {"most": 2, "height": 2.5}
    with draw.panelled(curves, f"{unit} left", "", **how, **shape) as (figure, pairs):
        for panel, rows in pairs:
            rows = rows[rows["scope"] == "all"] if (rows["scope"] == "all").any() else rows
            for (order, healed), own in rows.groupby(["order", "healed"], sort=False):
                colour, marker = looks.get(str(order), (draw.GREY, ""))
                style: Style = {"color": colour, "marker": marker, "gid": f"order {order}"}
                if healed:
                    style |= {"linestyle": "--", "marker": "*", "gid": f"healed {order}"}
                if order not in looks:  # all chance looks the same
                    style |= {"linewidth": 0.7}
                if healed or order not in looks:  # without a band
                    own = own.assign(low=np.nan, high=np.nan)
                label = f"{order if order in looks else 'random'}{', healed' if healed else ''}"
                _line(panel, own.drop_duplicates("heads_left"), "heads_left", label, **style)
            _whole(panel, rows)
            panel.invert_xaxis()
            panel.set_yscale("log" if log else "linear")
            if chosen is not None:  # a line at the heads that stay
                panel.axvline(chosen, color=draw.INK, linewidth=draw.HAIRLINE, gid="chosen")
                panel.annotate(
                    f" {chosen} left", (chosen, 0.03), xycoords=("data", "axes fraction")
                )
    for panel, rows in zip(figure.axes, curves.values(), strict=False):
        panel.set_ylabel(_metric_label(rows))
    return figure


def pruning_by_stack(
    given: Framed, order: str | None = None, metric: str | None = None, **how: Unpack[How]
) -> Figure:
    """Quality over the share of heads removed, each stack pruned by itself.

    Michel et al. 2019, figure 4. `headcount prune --ranking by-stack` measures it.

    >>> frame = pd.DataFrame({"order": "gradient", "scope": ["enc", "enc"], "step": [0, 1],
    ...     "heads_left": [8, 4], "metric": "bleu", "value": [30.0, 28], "low": [29.0, 27],
    ...     "high": [31.0, 29]})
    >>> pruning_by_stack(frame).axes[0].lines[0].get_xydata().tolist()
    [[0.0, 30.0], [50.0, 28.0]]
    """
    rows = curve_of(given, metric)
    rows = rows[rows["scope"] != "all"]
    if not len(rows):
        raise UsageError(
            "The curve has no stack by itself; "
            "`headcount prune MODEL --task TASK --ranking by-stack -o DIR` measures it."
        )
    rows = _only(rows, "order", order or str(rows["order"].iloc[0]))
    with sheet(height=2.3, **COLUMN | how) as (figure, (panel,)):
        for scope, own in rows.groupby("scope", sort=False):
            colour, marker = draw.STACK_COLOURS[str(scope)]
            share = own.assign(gone=100 * (1 - own["heads_left"] / own["heads_left"].max()))
            _line(panel, share, "gone", str(scope), color=colour, marker=marker)
        _whole(panel, rows)
        panel.set(xlabel="heads removed, percent of the stack", ylabel=_metric_label(rows))
        panel.legend()
        return figure


def gated_quality(
    given: Frames,
    order: str = "gates",
    metric: str | None = None,
    *,
    unit: str = "heads",
    **how: Unpack[How],
) -> Figure:
    """Quality over heads left where gates learned which heads go; few heads have much room.

    Voita et al. 2019, figure 7. A line a source; where some points were healed, those that were
    not are dotted.

    >>> frame = pd.DataFrame({"order": "gates", "scope": "all", "step": [0, 1],
    ...     "heads_left": [8, 2], "metric": "bleu", "value": [30.0, 29], "low": [29.0, 28],
    ...     "high": [31.0, 30]})
    >>> gated_quality(frame).axes[0].get_xscale()
    'log'
    """
    curves = {
        n: _only(curve_of(one, metric), "order", order) for n, one in draw.by_name(given).items()
    }
    with sheet(height=2.3, **COLUMN | how) as (figure, (panel,)):
        for (name, rows), (colour, marker) in zip(curves.items(), draw.SERIES, strict=False):
            style: Style = {"color": colour, "marker": marker}
            some = bool(rows["healed"].any())
            bare = ~rows["healed"] & (rows["step"] > 0) & some
            label = ", ".join(filter(None, (name, "healed" if some else "")))
            _line(panel, rows[~bare], "heads_left", label, **style)
            if bare.any():
                dotted: Style = {"linestyle": ":", "fillstyle": "none"}
                label = ", ".join(filter(None, (name, "not healed")))
                _line(panel, rows[bare], "heads_left", label, **style, **dotted)
            if len(curves) == 1:
                _whole(panel, rows)
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_formatter("{x:.0f}")
        panel.set(xlabel=f"{unit} left", ylabel=_metric_label(rows))
        draw.key_below(figure)
        return figure


def stacks_left(given: Framed, *, order: str | None = None, **how: Unpack[How]) -> Figure:
    """The share of each stack's heads that is left, as the model gets smaller.

    Voita et al. 2019, figure 9. Takes a run with a curve, or what `left_by_stack` counts.

    >>> frame = pd.DataFrame({"set": ["3", "2"], "stack": "enc", "heads": [3, 2], "share": [1, .5]})
    >>> stacks_left(frame).axes[0].lines[0].get_ydata().tolist()
    [100.0, 50.0]
    """
    if not isinstance(given, pd.DataFrame):
        given = survival.left_by_stack(_sets(given, order), draw.table_of(given).heads)
    draw.need_rows(given, ("set", "stack", "share"), "stacks that are left")
    sets = list(dict.fromkeys(given["set"]))
    with sheet(height=2.3, **COLUMN | how) as (figure, (panel,)):
        for stack, rows in given.groupby("stack", sort=False):
            colour, marker = draw.STACK_COLOURS[str(stack)]
            shares = 100 * rows.set_index("set")["share"].reindex(sets).to_numpy(float)
            panel.plot(range(len(sets)), shares, color=colour, marker=marker, label=str(stack))
        panel.set_xticks(range(len(sets)), [str(name) for name in sets])
        panel.set(xlabel="heads left in the model", ylabel="percent of the stack left")
        panel.set_ylim(0, 103)
        draw.key_below(figure)
        return figure


def _sets(given: Given, order: str | None) -> dict[object, list[Head]]:
    """The heads that are left at each step of a curve, by their number."""
    rows = curve_of(given)
    if "removed" not in rows:
        raise RunError("The curve does not say which heads went; give head sets instead.")
    rows = rows[rows["scope"] == "all"]
    rows = _only(rows, "order", order or str(rows["order"].iloc[0]))
    left = draw.table_of(given).heads
    sets: dict[object, list[Head]] = {}
    for gone in rows.sort_values("step")["removed"]:
        removed = set(parse_heads(str(gone)))
        left = [head for head in left if head not in removed]
        sets[str(len(left))] = left
    return sets


def order_over_training(
    settling: pd.DataFrame | Mapping[str, pd.DataFrame], **how: Unpack[How]
) -> Figure:
    """How soon the order of heads is the one that training ends with; a panel a training.

    After Michel et al. 2019, section 6; `research.importance.over_training` makes the frame.

    >>> frame = pd.DataFrame({"step": [10, 100], "stack": "all", "value": [0.4, 1.0],
    ...                       "low": [0.2, 1.0], "high": [0.6, 1.0]})
    >>> order_over_training(frame).axes[0].lines[0].get_ydata().tolist()
    [0.4, 1.0]
    """
    columns = ("step", "stack", "value", "low", "high")
    frames = draw.frames_of(settling, "settling", columns, "settling", known="value")
    shape: Any = {"height": 2.3, "sharey": True, **COLUMN, **how}
    words = "training step", "rank agreement with the end"
    with draw.panelled(frames, *words, **shape) as (figure, pairs):
        for panel, frame in pairs:
            for stack, rows in frame.groupby("stack", sort=False):
                colour, marker = draw.STACK_COLOURS[str(stack)]
                _line(panel, rows, "step", str(stack), color=colour, marker=marker)
            panel.axhline(0, color=draw.INK, linewidth=draw.HAIRLINE)
            panel.set_xscale("log")
        return figure


def pruning_over_training(
    given: Mapping[Any, Framed],
    order: str | None = None,
    metric: str | None = None,
    **how: Unpack[How],
) -> Figure:
    """What pruning leaves of the score, in percent of the unpruned model of the same epoch.

    Michel et al. 2019, figure 5. Keys are epochs or steps, values their runs or curves.

    >>> frame = pd.DataFrame({"order": "gradient", "scope": "all", "step": [0, 1],
    ...     "heads_left": [8, 4], "metric": "bleu", "value": [30.0, 15], "low": [29.0, 14],
    ...     "high": [31.0, 16]})
    >>> pruning_over_training({1: frame, 2: frame}).axes[0].lines[1].get_xydata().tolist()
    [[0.0, 100.0], [50.0, 50.0]]
    """
    if not isinstance(given, Mapping) or not given:
        raise UsageError("Give a mapping of epochs to curves or runs, one entry a checkpoint.")
    curves = {str(epoch): curve_of(one, metric) for epoch, one in given.items()}
    with sheet(height=2.4, **COLUMN | how) as (figure, (panel,)):
        from matplotlib import colormaps

        shades = colormaps["viridis"](np.linspace(0, 0.9, len(curves)))
        for shade, (epoch, rows) in zip(shades, curves.items(), strict=True):
            own = _only(rows[rows["scope"] == "all"], "order", order or str(rows["order"].iloc[0]))
            own = own.sort_values("step").drop_duplicates("heads_left")
            left, value = own["heads_left"].to_numpy(), own["value"].to_numpy(float)
            style: Style = {"color": shade, "marker": "o"}
            label = f"after {epoch} ({value[0]:.3g} unpruned)"
            panel.plot(100 * (1 - left / left[0]), 100 * value / value[0], label=label, **style)
        panel.set_xlabel("heads removed, percent")
        panel.set_ylabel(f"percent of the unpruned {rows['metric'].iloc[0]}")
        draw.key_below(figure)
        return figure


_SIZE = ("gradient", "low", "high")
_SHARE = ("share", "share_low", "share_high")
_TARGETS = ("separator", "punctuation", "other", "first")


def noop_gradients(given: Frames, *, relative: bool = False, **how: Unpack[How]) -> Figure:
    """Mean size of the loss's gradient with respect to attention, by layer and kind of token.

    Clark et al. 2019, figure 3. Bands are 95% intervals over texts. `relative` draws it as a
    share of the gradient for all other tokens, which can be compared between layers and models.

    >>> frame = pd.DataFrame({"stack": ["enc"] * 2, "layer": [0, 1], "target": ["separator"] * 2,
    ...                       "gradient": [2e-3, 1e-3], "low": [1e-3, 0.0], "high": [3e-3, 2e-3]})
    >>> noop_gradients(frame).axes[0].lines[0].get_ydata().tolist()
    [0.002, 0.001]
    """
    columns = _SHARE if relative else _SIZE
    needed = ("stack", "layer", "target", *columns)
    shown = draw.by_stack(
        draw.frames_of(given, "noop_layers", needed, "gradients", known=columns[0])
    )
    words = "|dL/dα|, share of others'" if relative else "mean |dL/dα|"
    with draw.panelled(shown, "layer", words, height=2.3, **how) as (figure, pairs):
        for panel, own in pairs:
            if relative:
                _level(panel, 1, label="other token", gid="other")
                own = own[own["target"] != "other"]
            own = own.assign(
                **dict(zip(("value", "low", "high"), own[[*columns]].T.to_numpy(), strict=True))
            )
            for target, (colour, marker) in zip(_TARGETS, draw.SERIES, strict=False):
                rows = own[own["target"] == target]
                if len(rows):
                    name = f"{target} token" if target in ("first", "other") else target
                    _line(panel, rows, "layer", name, color=colour, marker=marker, gid=target)
            draw.layer_axis(panel, int(own["layer"].max()) + 1)
            panel.set_ylim(bottom=0)
        return figure


_POSITIONS = {"previous": "previous token", "next": "next token", "self": "the token itself"}
_TYPES = {"separator": "separator", "first": "first token", "punctuation": "punctuation"}
_SEPARATORS = {"separator": "from all tokens", "separator_to_separator": "from separators"}
_ENTROPIES = {"entropy": "all queries", "entropy_first": "the first token's query"}


def positions(given: Many, **how: Unpack[How]) -> Figure:
    """Attention to the token before, the token after and the token itself, by layer.

    Clark et al. 2019, section 3.1.

    >>> from headcount import Head, HeadTable
    >>> shares = {"previous": [0.1], "next": [0.2], "self": [0.7]}
    >>> positions(HeadTable.of([Head("enc", 0, 0)], shares)).axes[0].get_ylabel()
    'mean attention'
    """
    return _by_layer(given, _POSITIONS, "mean attention", how)


def token_types(given: Many, **how: Unpack[How]) -> Figure:
    """Attention to separators, to the first token ([CLS]) and to punctuation, by layer.

    Clark et al. 2019, figure 2, above.

    >>> from headcount import Head, HeadTable
    >>> shares = {"separator": [0.6], "first": [0.1], "punctuation": [0.1]}
    >>> len(token_types(HeadTable.of([Head("enc", 0, 0)], shares)).axes[0].lines)
    3
    """
    return _by_layer(given, _TYPES, "mean attention", how)


def to_separators(given: Many, **how: Unpack[How]) -> Figure:
    """Attention to separators from all tokens and from separators themselves, by layer.

    Clark et al. 2019, figure 2, below.

    >>> from headcount import Head, HeadTable
    >>> shares = {"separator": [0.6], "separator_to_separator": [0.9]}
    >>> figure = to_separators(HeadTable.of([Head("enc", 0, 0)], shares))
    >>> figure.axes[0].lines[1].get_ydata().tolist()
    [0.9]
    """
    return _by_layer(given, _SEPARATORS, "mean attention to separators", how)


def entropies(given: Many, **how: Unpack[How]) -> Figure:
    """Entropy of attention, of all queries and of the first token's; dotted is uniform attention.

    Clark et al. 2019, figure 4.

    >>> from headcount import Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0)], {"entropy": [1.5], "entropy_first": [2.5]})
    >>> entropies(table).axes[0].get_ylabel()
    'entropy, nats'
    """
    return _by_layer(given, _ENTROPIES, "entropy, nats", how)


def _by_layer(given: Many, columns: Mapping[str, str], label: str, how: How) -> Figure:
    """A point a head and a line through the means of layers, a panel a stack of each source."""
    tables = draw.tables_of(given, columns)
    stacks = {name: draw.measured_stacks(table, columns) for name, table in tables.items()}
    shown = {
        draw.titled(name, stack, own): tables[name].frame.loc[stack]
        for name, own in stacks.items()
        for stack in own
    }
    wide = max(map(len, stacks.values()))  # of several stacks, each source has its row
    shape: Style = {"columns": wide if wide > 1 else None, "height": 2.1, "sharey": True}
    with draw.panelled(shown, "layer", label, **how, **shape) as (figure, pairs):
        for panel, frame in pairs:
            for place, (column, words) in enumerate(columns.items()):
                known = frame[column].dropna()
                colour, marker = draw.SERIES[place]
                layers = known.index.get_level_values("layer").to_numpy(float)
                shift = 0.14 * (place - (len(columns) - 1) / 2)
                style: Style = {"s": 9, "alpha": 0.5, "linewidths": 0, "gid": f"heads {column}"}
                panel.scatter(layers + shift, known, color=colour, marker=marker, **style)
                means = known.groupby(level="layer").mean()
                if len(means):
                    panel.plot(means, color=colour, label=words, gid=f"means {column}")
            if "entropy" in columns and "entropy_uniform" in frame:
                uniform = float(frame["entropy_uniform"].mean())
                _level(panel, uniform, label="uniform attention", gid="uniform")
            draw.layer_axis(panel, int(frame.index.get_level_values("layer").max()) + 1)
        return figure


# --- Bars ---------------------------------------------------------------------------------------

_KEYS = ("stack", "layer", "head", "split", "accuracy", "low", "high", "baseline")
_TWIN = "best head of a random twin"


def dependencies(
    given: Frames, relations: Sequence[str] | None = None, *, most: int = 16, **how: Unpack[How]
) -> Figure:
    """The best head of each relation and the best fixed offset, on held-out sentences.

    Clark et al. 2019, table 1. Heads were chosen on the other half where the run has halves; the
    `most` relations with most words are drawn unless they are named.

    >>> frame = pd.DataFrame({"stack": ["enc"] * 2, "layer": [0, 1], "head": [0, 0],
    ...     "relation": ["obj"] * 2, "direction": ["dep->head"] * 2, "split": ["all"] * 2,
    ...     "n": [50, 50], "accuracy": [0.4, 0.8], "low": [0.3, 0.7], "high": [0.5, 0.9],
    ...     "baseline": [0.5, 0.5]})
    >>> [float(bar.get_height()) for bar in dependencies(frame).axes[0].patches]
    [0.8, 0.5]
    """
    columns = (*_KEYS, "relation", "direction", "n")
    frames = draw.frames_of(given, "relations", columns, "relations", known="accuracy")
    best = {name: _best(frame, ["stack", "relation"]) for name, frame in frames.items()}
    shown = {t: own.set_index("relation") for t, own in draw.by_stack(best).items()}
    known = sorted({str(name) for own in shown.values() for name in own.index})
    for name in relations or ():
        if name not in known:
            there = ", ".join(known)
            raise UsageError(f"There is no relation '{name}' to draw; there are {there}.")
    shape: Style = {"columns": 1, "height": 2.1}
    with draw.panelled(shown, "", "accuracy", **how, **shape) as (figure, pairs):
        for panel, own in pairs:
            rows = own.reindex(list(relations or own.nlargest(most, "n").index))
            _best_bars(panel, rows, {"baseline": "best fixed offset", "control": _TWIN})
        return figure


def coreference(given: Frames, **how: Unpack[How]) -> Figure:
    """How often the best head points to an antecedent, by kind of mention, next to the rules.

    Clark et al. 2019, table 2. Kinds stand in the order of the frame.

    >>> frame = pd.DataFrame({"stack": ["enc"], "layer": [0], "head": [3], "kind": ["all"],
    ...     "split": ["all"], "n": [50], "accuracy": [0.6], "low": [0.5], "high": [0.7],
    ...     "baseline": [0.3], "against": ["nearest"]})
    >>> [float(bar.get_height()) for bar in coreference(frame).axes[0].patches]
    [0.6, 0.3]
    """
    columns = (*_KEYS, "kind", "against", "n")
    frames = draw.frames_of(given, "coreference", columns, "coreference", known="accuracy")
    kinds = dict.fromkeys(kind for frame in frames.values() for kind in frame["kind"])
    best = {name: _best(frame, ["stack", "kind", "against"]) for name, frame in frames.items()}
    shown = draw.by_stack(best)
    shape: Style = {"most": 2, "height": 2.4, "key": 5}
    with draw.panelled(shown, "", "accuracy", **how, **shape) as (figure, pairs):
        for panel, own in pairs:
            wide = own.pivot(index="kind", columns="against", values="baseline")
            first = own.drop_duplicates("kind").set_index("kind").drop(columns="baseline")
            rows = first.join(wide).reindex([kind for kind in kinds if kind in wide.index])
            _best_bars(panel, rows, {rule: rule for rule in dict.fromkeys(own["against"])})
        return figure


def _best(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """One row for each question: its best head, chosen on the other half where there is one."""
    held = held_out(frame)
    if "selected" in held and held["selected"].any():
        held = held[held["selected"]]
    gain = held["accuracy"] - (held["baseline"].fillna(0) if "direction" in held else 0)
    ranked = held.assign(gain=gain).sort_values("gain", ascending=False, kind="stable")
    return ranked.groupby(keys, sort=False).head(1)


def _best_bars(panel: Axes, rows: pd.DataFrame, others: dict[str, str]) -> None:
    """The head's bar with its interval and its name, and a bar for each rule that is there."""
    there = {n: label for n, label in others.items() if n in rows and rows[n].notna().any()}
    shown = {"accuracy": "best head", **there}
    colours = (draw.SERIES[0][0], draw.GREY, draw.SERIES[1][0], draw.SERIES[2][0])
    wide = 0.84 / len(shown)
    places = np.arange(len(rows)) - 0.42 + wide / 2
    for number, (name, label) in enumerate(shown.items()):
        style: Style = {"color": colours[number % 4], "label": label}
        panel.bar(places + number * wide, rows[name].to_numpy(float), wide * 0.94, **style)
    ends = rows[["low", "high"]].sub(rows["accuracy"], axis=0).abs().to_numpy(float).T
    bars: Style = {"fmt": "none", "ecolor": draw.INK, "elinewidth": draw.HAIRLINE}
    panel.errorbar(places, rows["accuracy"].to_numpy(float), ends, **bars)
    for x, (layer, head) in zip(places, rows[["layer", "head"]].to_numpy(float), strict=True):
        if np.isfinite(head):  # as on the page: 5.3 is head 3 of layer 5
            where: Style = {"ha": "center", "va": "bottom", "rotation": 90, "fontsize": 5.5}
            panel.text(x, 0.02, f"{layer:.0f}.{head:.0f}", color="white", **where)
    panel.set_xticks(range(len(rows)), [str(name) for name in rows.index])
    panel.tick_params(axis="x", length=0, rotation=45 if len(rows) > 12 else 0)
    panel.set_ylim(0, 1)


def _stacked(panel: Axes, shares: pd.DataFrame, colours: Mapping[str, str]) -> None:
    """A bar a row, made of the columns that have a colour; one that is not known is hatched."""
    below = np.zeros(len(shares))
    for name, colour in colours.items():
        if name in shares:
            style: Style = {"color": colour, "bottom": below.copy(), "gid": name}
            values = shares[name].to_numpy(float)
            panel.bar(range(len(shares)), values, 0.86, label=name.replace("_", " + "), **style)
            below += np.nan_to_num(values)
    missing = np.flatnonzero(shares.isna().all(axis=1))
    if len(missing):
        gone: Style = {"fill": False, "hatch": "////", "linewidth": 0, "gid": "missing"}
        panel.bar(missing, np.ones(len(missing)), 0.86, **gone)


_REST = "#c9ccd2"
_COLOURS = {
    "vertical": draw.SERIES[0][0],
    "diagonal": draw.SERIES[4][0],
    "vertical_diagonal": draw.SERIES[3][0],
    "block": draw.SERIES[2][0],
    "heterogeneous": _REST,
}
_COLUMNS = {f"pattern_{name}": name for name in _COLOURS}


def patterns(given: Frames, *, by: str = "layer", **how: Unpack[How]) -> Figure:
    """Shares of the five patterns: a bar a layer and a panel a source, or one bar a source.

    Kovaleva et al. 2019, figure 2, which has one bar a task (``by="task"``). A frame with stack,
    layer and the columns pattern_... is taken as shares of layers.

    >>> from headcount import Head, HeadTable
    >>> shares = {f"pattern_{name}": [float(name == "block")] for name in _COLOURS}
    >>> figure = patterns(HeadTable.of([Head("enc", 0, 0)], shares))
    >>> sum(float(bar.get_height()) for bar in figure.axes[0].patches)
    1.0
    """
    if by not in ("layer", "task"):
        raise UsageError(f"by is '{by}'; bars are by 'layer' or by 'task'.")
    shown: dict[str, pd.DataFrame] = {}
    for name, one in draw.by_name(given).items():
        if isinstance(one, pd.DataFrame):
            draw.need_rows(one, ("stack", "layer", *_COLUMNS), "shares of patterns")
            frame, stacks = one, list(dict.fromkeys(one["stack"]))
        else:
            table = draw.tables_of(one, _COLUMNS)[""]
            frame, stacks = table.frame, draw.measured_stacks(table, _COLUMNS)
        shares = frame.groupby(["stack", "layer"])[[*_COLUMNS]].mean().rename(columns=_COLUMNS)
        for stack in stacks:
            own = shares.loc[stack]
            title = draw.titled(name, stack, stacks)
            shown[title] = own.reindex(range(int(own.index.max()) + 1))
    names = list(shown)
    if by == "task":
        shown = {"": pd.DataFrame({name: own.mean() for name, own in shown.items()}).T}
    shape: Style = {"most": 4, "height": 2.3 if by == "task" else 1.8, "sharey": True, "key": 5}
    words = "layer" if by == "layer" else ""
    with draw.panelled(shown, words, "share of maps", **how, **shape) as (figure, pairs):
        for panel, own in pairs:
            panel.set_ylim(0, 1)
            _stacked(panel, own, _COLOURS)
            if by == "task":
                panel.set_xticks(range(len(names)), names)
            else:
                draw.layer_axis(panel, len(own))
        return figure


_STACKS = {"enc": "encoder", "dec": "decoder", "cross": "cross"}


def functions_left(
    given: Framed,
    stack: str = "enc",
    *,
    functions: Sequence[str] = survival.FUNCTIONS,
    order: str | None = None,
    **how: Unpack[How],
) -> Figure:
    """How many of the heads left have each function, a bar for each number of heads left.

    Voita et al. 2019, figure 8. From a run: its curve and the roles of the whole model; from a
    frame: what `headcount.rooms.agreement.survival.survivors` counts, with roles of each pruned
    model. A head with several functions counts in each.

    >>> frame = pd.DataFrame({"set": ["2", "2"], "stack": "enc", "function": ["rare", "other"],
    ...                       "heads": [1, 1], "left": 2})
    >>> [float(bar.get_height()) for bar in functions_left(frame).axes[0].patches]
    [1.0, 1.0]
    """
    if not isinstance(given, pd.DataFrame):
        given = survival.survivors(_sets(given, order), draw.frame_of(given, "roles"), functions)
    draw.need_rows(given, ("set", "stack", "function", "heads"), "heads that are left")
    own = given[given["stack"] == stack]
    if not len(own):
        raise UsageError(f"No head of the stack '{stack}' is left in any set; name another.")
    wide = own.pivot(index="set", columns="function", values="heads")
    wide = wide.reindex(index=list(dict.fromkeys(own["set"]))).fillna(0)
    names = dict.fromkeys(n for n in (*functions, *wide.columns) if n != "other")
    colours = {name: draw.role_colour(name) for name in names} | {"none of these": _REST}
    left = own.drop_duplicates("set")["left" if "left" in own else "set"]
    with sheet(height=2.3, **how) as (figure, (panel,)):
        _stacked(panel, wide.rename(columns={"other": "none of these"}), colours)
        containers: Any = panel.containers
        for bars in containers:
            panel.bar_label(bars, fmt="{:.0f}", label_type="center", fontsize=6)
        for text in panel.texts:
            text.set_visible(text.get_text() != "0")
        panel.set_xticks(range(len(wide)), [str(heads) for heads in left])
        panel.set_xlabel(f"{_STACKS.get(stack, stack)} heads left")
        panel.set_ylabel("heads with the function\n(several count in each)")
        draw.key_below(figure, 6)
        return figure


def scores_without_one_head(
    given: Many, column: str = "ablation", *, bins: int = 25, **how: Unpack[How]
) -> Figure:
    """How many heads leave which score when only they are ablated; dotted is the whole model.

    Michel et al. 2019, figure 1. A score that takes no more than `bins` steps has a bar a step.

    >>> from headcount import Column, Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0), Head("enc", 0, 1)], {"ablation": [0.5, -0.5]},
    ...     [Column("ablation", unit="bleu")],
    ...     origins={"ablation": {"settings": {"metric": "bleu", "baseline": 30.0}}})
    >>> figure = scores_without_one_head(table, bins=2)
    >>> [float(bar.get_height()) for bar in figure.axes[0].patches]
    [1.0, 1.0]
    """
    tables = draw.tables_of(given, [column])
    with sheet(len(tables), most=4, height=2.1, **how) as (figure, panels):
        for panel, (name, table) in zip(panels, tables.items(), strict=True):
            after, whole, metric = _after(table, column)
            panel.hist(after, bins=_edges(after, bins), color=draw.SERIES[0][0])
            panel.axvline(whole, color=draw.INK, linewidth=0.9, linestyle=":")
            worse = int((after < whole - 1e-9).sum())
            about = f"whole model {whole:.3g}\n{worse} of {len(after)} below"
            where: Style = {"xycoords": "axes fraction", "fontsize": 6, "va": "top"}
            panel.annotate(about, (0.02, 0.98), **where)
            panel.set_ylim(top=1.22 * panel.get_ylim()[1])
            panel.locator_params(axis="x", nbins=3)
            panel.locator_params(axis="y", integer=True)
            panel.set_title(name)
            panel.set_xlabel(f"{metric} without one head")
        panels[0].set_ylabel("number of heads")
        return figure


def _edges(after: np.ndarray, bins: int) -> list[float]:
    """Edges of bars: around each step where a score, such as accuracy, moves in a few steps.

    >>> [round(edge, 2) for edge in _edges(np.array([0.5, 0.7, 0.6, 0.5]), 25)]
    [0.45, 0.55, 0.65, 0.75]
    """
    values = np.unique(after.round(6))
    step = np.diff(values).min() if len(values) > 1 else 0.0
    count = round((values[-1] - values[0]) / step) + 1 if step else 0
    if not 0 < count <= bins:
        return [float(edge) for edge in np.histogram_bin_edges(after, bins)]
    return [float(values[0] + step * (place - 0.5)) for place in range(count + 1)]


def _after(table: HeadTable, column: str) -> tuple[np.ndarray, float, str]:
    """The scores without each head, the whole model's score, and the metric."""
    settings = table.origins.get(column, {}).get("settings") or {}
    if "baseline" not in settings:
        raise RunError(
            f"Column '{column}' does not say how the whole model scored; "
            "`headcount score MODEL --task TASK --by ablation -o RUN` keeps it."
        )
    whole = float(settings["baseline"])
    metric = table.column(column).unit or str(settings.get("metric", "score"))
    cost = table.numbers(column)
    cost = cost[np.isfinite(cost)]
    costs_more = metric in ("loss", "perplexity")  # the cost of a head is more of these
    return (whole + cost if costs_more else whole - cost), whole, metric


# --- Points: each head between two numbers ------------------------------------------------------


def two_data_sets(
    first: Given,
    second: Given,
    column: str = "ablation",
    *,
    names: tuple[str, str] = ("first data set", "second data set"),
    **how: Unpack[How],
) -> Figure:
    """Each head's score on one data set against its score on another, with their correlation.

    Michel et al. 2019, figure 2.

    >>> from headcount import Head, HeadTable
    >>> heads = [Head("enc", 0, index) for index in range(4)]
    >>> one, two = (HeadTable.of(heads, {"ablation": v}) for v in ([1, 2, 3, 4.0], [2, 1, 3, 4.0]))
    >>> two_data_sets(one, two).axes[0].get_title(loc="left")
    "Pearson's r = 0.80 [...]"
    """
    tables = draw.table_of(first), draw.table_of(second)
    for table in tables:
        draw.need_columns(table, [column])
    if tables[0].heads != tables[1].heads:
        raise UsageError("The two tables have different heads; compare one model on two data sets.")
    x, y = (table.numbers(column) for table in tables)
    with sheet(height=2.8, **COLUMN | how) as (figure, (panel,)):
        _points(panel, tables[0], x, y)
        panel.set_title(f"Pearson's r = {_agreement(x, y, 'pearson')}")
        about = [f"{t.column(column).title}, {n}" for t, n in zip(tables, names, strict=True)]
        panel.set(xlabel=about[0], ylabel=about[1])
        if len(tables[0].stacks) > 1:
            draw.key_below(figure)
        return figure


def two_scores(
    given: Many, first: str = "confidence", second: str = "relevance", **how: Unpack[How]
) -> Figure:
    """Each head's second score against its first, with Spearman's correlation by stack; several.

    After Voita et al. 2019, section 4: whether heads that are confident are those that matter.

    >>> from headcount import Head, HeadTable
    >>> heads = [Head("enc", 0, index) for index in range(4)]
    >>> table = HeadTable.of(heads, {"confidence": [1, 2, 3, 4.0], "relevance": [2, 1, 3, 4.0]})
    >>> two_scores(table).axes[0].get_legend_handles_labels()[1]
    ['enc 0.80 [...]']
    """
    tables = draw.tables_of(given, [first, second])
    with sheet(len(tables), most=2, height=2.8, **how) as (figure, panels):
        for panel, (name, table) in zip(panels, tables.items(), strict=True):
            _points(panel, table, table.numbers(first), table.numbers(second), correlated=True)
            panel.set_title(name)
            panel.set(xlabel=table.column(first).title, ylabel=table.column(second).title)
            panel.legend(title="Spearman's correlation", title_fontsize=7, alignment="left")
        return figure


def _points(
    panel: Axes, table: HeadTable, x: np.ndarray, y: np.ndarray, correlated: bool = False
) -> None:
    """The heads of each stack in its colour; its label may say how far the numbers agree."""
    stacks = np.array([head.stack for head in table.heads])
    for stack in table.stacks:
        own = np.isfinite(x) & np.isfinite(y) & (stacks == stack)
        colour, marker = draw.STACK_COLOURS[stack]
        label = f"{stack} {_agreement(x[own], y[own], 'spearman')}" if correlated else stack
        style: Style = {"s": 12, "alpha": 0.7, "linewidths": 0}
        panel.scatter(x[own], y[own], color=colour, marker=marker, label=label, **style)


def _agreement(x: np.ndarray, y: np.ndarray, kind: Kind) -> str:
    """A correlation with its interval, in two figures; a dash where heads are too few or alike."""
    known = np.isfinite(x) & np.isfinite(y)
    agreed = rank_agreement(x[known], y[known], kind)
    if np.isnan(agreed.value):
        return "–"
    return f"{agreed.value:.2f} [{agreed.low:.2f}, {agreed.high:.2f}]"


def head_map(
    given: Given | Mapping[str, np.ndarray],
    by: Literal["layer", "role", "both"] = "both",
    *,
    roles: pd.DataFrame | None = None,
    **how: Unpack[How],
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
    heads = [parse_head(str(name)) for name in pairs["heads"]]
    verdicts = given if roles is None and not isinstance(given, Mapping) else roles
    held = {} if verdicts is None else draw.roles_of(verdicts)
    ways = ["layer", "role"] if by == "both" else [by]
    shown = [(s, way) for s in dict.fromkeys(head.stack for head in heads) for way in ways]
    shape: Style = {"columns": len(ways), "height": 2.6}
    with sheet(len(shown), **how, **shape) as (figure, panels):
        for panel, (stack, way) in zip(panels, shown, strict=True):
            points = np.asarray(pairs["mds"], float)[[head.stack == stack for head in heads]]
            own = [head for head in heads if head.stack == stack]
            if way == "layer":
                style: Style = {"cmap": "viridis", "s": 18, "linewidths": 0, "vmin": 0}
                dots = panel.scatter(
                    points[:, 0], points[:, 1], c=[head.layer for head in own], **style
                )
                figure.colorbar(dots, ax=panel, shrink=0.8, aspect=25, pad=0.01, label="layer")
            else:
                _by_role(panel, points, [next(iter(held.get(head, [])), "") for head in own])
            panel.set_title(f"{stack}, by {way}; distances in nats")
            panel.set_aspect("equal", adjustable="datalim")
            panel.margins(0.08)
        return figure


def _by_role(panel: Axes, points: np.ndarray, roles: Sequence[str]) -> None:
    for role in sorted(set(roles) | {""}):
        style: Style = {"color": draw.GREY, "marker": ".", "s": 10, "label": "no role"}
        if role:
            style = {"color": draw.role_colour(role), "marker": draw.role_marker(role), "s": 32}
        own = points[[one == role for one in roles]]
        about: Style = {"linewidths": 0, "gid": f"role {role or 'none'}"}
        panel.scatter(own[:, 0], own[:, 1], **{"label": role, **style, **about})
    panel.legend(loc="center left", bbox_to_anchor=(1, 0.5))


# --- Lines between the tokens of one text -------------------------------------------------------


def attention_lines(
    given: Exhibit | Run | str | Path,
    heads: str | Iterable[str | Head],
    exhibit: int = 0,
    **how: Unpack[How],
) -> Figure:
    """Queries at the left, keys at the right, a panel a head.

    Clark et al. 2019, figures 1 and 5. A line is as dark as the weight; special tokens are grey.
    `exhibit` is the number of a text of the run, from 0.

    >>> from headcount.rooms.exhibits.exhibits import Text
    >>> text = Text(["a", "b"], [False, False])
    >>> maps = {("enc", 0): np.array([[[0.9, 0.1], [0.2, 0.8]]], dtype=np.float32)}
    >>> one = Exhibit("one", "a b", {"src": text}, {"enc": ("src", "src")}, maps)
    >>> [round(line.get_alpha(), 1) for line in attention_lines(one, "enc.0.0").axes[0].lines]
    [0.9, 0.1, 0.2, 0.8]
    """
    chosen = parse_heads(heads)
    if not chosen:
        raise UsageError("No head is named; give some, such as 'enc.2.8,enc.3.1'.")
    shown = given if isinstance(given, Exhibit) else _exhibit(given, exhibit)
    known = [] if isinstance(given, Exhibit) else draw.table_of(given).heads
    maps = [_map(shown, head, known) for head in chosen]
    tall = max(max(weights.shape) for weights in maps)
    shape: Style = {"most": 4, "height": 0.3 + 0.14 * tall}
    with sheet(len(chosen), **how, **shape) as (figure, panels):
        for panel, head, weights in zip(panels, chosen, maps, strict=True):
            for query, key in np.argwhere(weights >= 0.01):  # nobody would see the others
                alpha = min(1.0, float(weights[query, key]))
                style: Style = {"color": draw.SERIES[0][0], "alpha": alpha, "linewidth": 1}
                panel.plot([0.02, 0.98], [query, key], **style)
            for x, side in zip((0, 1), shown.sides[head.stack], strict=True):
                text = shown.texts[side]
                for place, (token, grey) in enumerate(zip(text.tokens, text.special, strict=True)):
                    where: Style = {"ha": "left" if x else "right", "va": "center", "fontsize": 6.5}
                    colour = draw.GREY if grey else draw.INK
                    panel.text(x, place, token, parse_math=False, color=colour, **where)
            panel.set_title(str(head))
            panel.set(xlim=(-0.9, 1.9), ylim=(tall - 0.5, -0.5))
            panel.set_axis_off()
        return figure


def _exhibit(given: Run | str | Path, number: int) -> Exhibit:
    """A text of the run with its maps."""
    texts = read_exhibits(given)
    if not texts:
        where = given.path if isinstance(given, Run) else given
        raise RunError(f"{where} has no exhibits; `headcount report MODEL --run RUN` makes them.")
    if not 0 <= number < len(texts):
        raise UsageError(f"There is no exhibit {number}; the run has {len(texts)}, from 0.")
    return texts[number]


def _map(exhibit: Exhibit, head: Head, known: list[Head]) -> np.ndarray:
    """The weights `[query, key]` of a head; maps of heads that were removed are not kept."""
    there = exhibit.maps.get((head.stack, head.layer), np.empty((0, 0, 0)))
    own = [one.index for one in known if one[:2] == head[:2]]
    order = own if len(own) == len(there) else list(range(len(there)))
    if head.index not in order:
        raise UsageError(f"Exhibit {exhibit.id} has no map of {head}; name a head of its model.")
    return np.asarray(there[order.index(head.index)], dtype=float)


#: `hc.plot` has every function of this module that gives a figure.
__all__ = [
    name
    for name, one in tuple(vars().items())
    if name[0] != "_" and getattr(one, "__annotations__", {}).get("return") == "Figure"
]
