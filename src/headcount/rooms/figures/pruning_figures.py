"""Quality over the heads that are left, and what those heads do.

Michel et al. 2019, figures 3 and 4: orders, and each stack by itself. Voita et al. 2019, figures 7
to 10: learned gates, functions, stacks and layers that are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from headcount.errors import RunError, UsageError, install_hint
from headcount.pruning import FUNCTIONS, left_by_layer, left_by_stack, survivors
from headcount.records import Head, parse_heads
from headcount.reports import HELD_OUT, first_known, metric_title
from headcount.rooms.figures import figure as draw
from headcount.rooms.figures.figure import Frames, Given, Style, Width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headcount.pruning import Plan


# --- The lines of a pruning curve ---------------------------------------------------------------

_NEEDED = ("order", "scope", "step", "heads_left", "metric", "value", "low", "high")


def curve_of(given: Given | pd.DataFrame, metric: str | None = None) -> pd.DataFrame:
    """The rows of a curve on held-out examples, of one metric: the first where none is named."""
    frame = draw.frame_of(given, "curve")
    draw.need_rows(frame, _NEEDED, "a pruning curve", known="value")
    frame = first_known(frame, "part", HELD_OUT)
    if metric is None:  # the first that is not the loss
        metric = next((name for name in frame["metric"] if name != "loss"), "loss")
    return _only(frame, "metric", metric)


def of_order(rows: pd.DataFrame, order: str) -> pd.DataFrame:
    """The rows of one order."""
    return _only(rows, "order", order)


def _only(rows: pd.DataFrame, column: str, name: str) -> pd.DataFrame:
    there = list(dict.fromkeys(rows[column]))
    if name not in there:
        raise UsageError(f"The curve has no {column} '{name}'; it has {', '.join(there)}.")
    return rows[rows[column] == name]


def _metric_label(rows: pd.DataFrame) -> str:
    """The metric of a curve, for an axis."""
    worse = "more" in rows and (rows["more"] == "worse").any()
    return metric_title(str(rows["metric"].iloc[0]), lower_is_better=bool(worse))


def looks_of(orders: Iterable[str]) -> dict[str, tuple[str, str]]:
    """A colour and a marker for each order, the same in all panels; all chance looks the same."""
    named = [name for name in dict.fromkeys(orders) if not name.startswith("random")]
    return {name: draw.SERIES[place % len(draw.SERIES)] for place, name in enumerate(named)}


def draw_orders(panel: Axes, rows: pd.DataFrame, looks: Mapping[str, tuple[str, str]]) -> None:
    """A line with its interval for each order; orders by chance are thin, under one name."""
    healed = is_healed(rows)
    named = False
    for order, own in rows[~healed].groupby("order", sort=False):
        if str(order) in looks:
            draw_line(panel, own, str(order), *looks[str(order)])
        else:
            draw_line(panel, own, "" if named else "random", draw.GREY, "", chance=True)
            named = True
    for order, own in rows[healed].groupby("order", sort=False):
        style: Style = {"linestyle": "--", "marker": "*", "markersize": 5, "gid": f"healed {order}"}
        ordered = own.sort_values("heads_left")
        style |= {"color": looks.get(str(order), (draw.GREY, ""))[0], "label": f"{order}, healed"}
        panel.plot(ordered["heads_left"].to_numpy(), ordered["value"].to_numpy(float), **style)


def draw_line(
    panel: Axes, rows: pd.DataFrame, label: str, colour: str, marker: str, *, chance: bool = False
) -> None:
    """One order: its values against the heads left, with a band of 95%."""
    own = rows.sort_values("step").drop_duplicates("heads_left")
    x, y = own["heads_left"].to_numpy(), own["value"].to_numpy(float)
    name = str(own["order"].iloc[0])
    style: Style = {"color": colour, "marker": marker or None, "gid": f"order {name}"}
    panel.plot(x, y, linewidth=0.7 if chance else 1.2, label=label or f"_{name}", **style)
    if not chance:
        bounds = own["low"].to_numpy(float), own["high"].to_numpy(float)
        panel.fill_between(x, *bounds, color=colour, alpha=0.15, linewidth=0)


def draw_whole(panel: Axes, rows: pd.DataFrame) -> None:
    """A dotted line where the whole model is."""
    whole = rows[rows["step"] == 0]
    if len(whole):
        style: Style = {
            "color": draw.INK,
            "linewidth": draw.HAIRLINE,
            "linestyle": ":",
            "gid": "whole",
        }
        panel.axhline(float(whole["value"].iloc[0]), **style)


def percent_left(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Percent of heads removed, and what is left of the whole model's score in percent."""
    own = rows.sort_values("step").drop_duplicates("heads_left")
    left, value = own["heads_left"].to_numpy(float), own["value"].to_numpy(float)
    return 100 * (1 - left / left[0]), 100 * value / value[0]


def is_healed(rows: pd.DataFrame) -> np.ndarray:
    """Which rows are of models that were trained on after their heads went."""
    if "healed" not in rows:
        return np.zeros(len(rows), dtype=bool)
    return rows["healed"].to_numpy(dtype=bool)


# --- Quality over the heads that are left: by order, and by stack -------------------------------
# Michel et al. 2019, figures 3 and 4.


def draw_plan(plan: Plan, path: Path) -> list[str]:
    """The curve of a pruning as a picture, or a note that says why there is none."""
    if not draw.can_draw():
        return [f"No {path.name} was drawn: that takes matplotlib; {install_hint('plot')}."]
    rows, first = plan.curve, plan.curve.iloc[0]
    single = rows["scope"] != "all"  # a stack by itself is a line of its own
    names = rows["order"].where(~single, rows["order"] + ", " + rows["scope"] + " only")
    title = f"{first['metric']} over {first['n']:,} examples ({first['part']}), 95% intervals"
    left = int(first["heads_left"]) - len(plan.going)
    pruning_curves(
        {title: rows.assign(order=names, scope="all")},
        str(first["metric"]),
        chosen=left if plan.going else None,
        path=path,
    )
    return []


def pruning_curves(
    given: Frames,
    metric: str | None = None,
    *,
    chosen: int | None = None,
    log: bool = False,
    unit: str = "heads",
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """Quality over heads left, a line an order with its 95% band, one panel a run.

    Michel et al. 2019, figure 3. `chosen` heads left are marked; `log` suits a perplexity; `unit`
    is the word for what is counted, where that is groups.

    >>> frame = pd.DataFrame({"order": "gradient", "scope": "all", "step": [0, 1],
    ...     "heads_left": [8, 4], "metric": "bleu", "value": [30.0, 28], "low": [29.0, 27],
    ...     "high": [31.0, 29]})
    >>> pruning_curves(frame).axes[0].lines[0].get_xydata().tolist()
    [[8.0, 30.0], [4.0, 28.0]]
    """
    curves = {name: curve_of(one, metric) for name, one in draw.by_name(given).items()}
    looks = looks_of(str(order) for rows in curves.values() for order in rows["order"])
    with draw.paper():
        figure, drawn = draw.wrapped(len(curves), most=2, width=width, height=2.5)
        for panel, (name, rows) in zip(drawn, curves.items(), strict=True):
            whole = rows[rows["scope"] == "all"] if (rows["scope"] == "all").any() else rows
            draw_orders(panel, whole, looks)
            draw_whole(panel, whole)
            panel.invert_xaxis()
            panel.set_title(name)
            if log:
                panel.set_yscale("log")
            if chosen is not None:  # a line at the heads that stay
                style: Style = {"color": draw.INK, "linewidth": draw.HAIRLINE, "gid": "chosen"}
                panel.axvline(chosen, **style)
                where: Style = {"xycoords": ("data", "axes fraction")}
                panel.annotate(f" {chosen} left", (chosen, 0.03), **where)
        draw.label_outer(drawn, f"{unit} left", "")
        words = [_metric_label(rows) for rows in curves.values()]
        for place, panel in enumerate(drawn):
            same = place % 2 and words[place] == words[place - 1]
            panel.set_ylabel("" if same else words[place])
        draw.key_below(figure, *drawn)
        return draw.finish(figure, path)


def pruning_by_stack(
    given: Given | pd.DataFrame,
    order: str | None = None,
    metric: str | None = None,
    *,
    width: Width = "column",
    path: str | Path | None = None,
) -> Figure:
    """Quality over the share of heads removed, each stack pruned by itself.

    Michel et al. 2019, figure 4. `headcount prune --by-stack` measures it.

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
            "`headcount prune MODEL --task TASK --by-stack -o DIR` measures it."
        )
    rows = of_order(rows, order or str(rows["order"].iloc[0]))
    with draw.paper():
        figure, axes = draw.panels(1, 1, width=width, height=2.3)
        for scope, own in rows.groupby("scope", sort=False):
            colour, marker = draw.STACK_COLOURS[str(scope)]
            left = own.sort_values("heads_left", ascending=False)["heads_left"].astype(float)
            share = own.assign(heads_left=100 * (1 - left / left.iloc[0]))
            draw_line(axes[0, 0], share, str(scope), colour, marker)
        draw_whole(axes[0, 0], rows)
        axes[0, 0].set_xlabel("heads removed, percent of the stack")
        axes[0, 0].set_ylabel(_metric_label(rows))
        axes[0, 0].legend()
        return draw.finish(figure, path)


# --- Quality over the heads that learned gates leave --------------------------------------------


def gated_quality(
    given: Frames,
    order: str = "gates",
    metric: str | None = None,
    *,
    unit: str = "heads",
    width: Width = "column",
    path: str | Path | None = None,
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
    sources = {n: of_order(curve_of(one, metric), order) for n, one in draw.by_name(given).items()}
    with draw.paper():
        figure, axes = draw.panels(1, 1, width=width, height=2.3)
        panel = axes[0, 0]
        for (name, rows), (colour, marker) in zip(sources.items(), draw.SERIES, strict=False):
            _draw(panel, rows, name, {"color": colour, "marker": marker})
            if len(sources) == 1:
                draw_whole(panel, rows)
        panel.set_xscale("log", base=2)
        counts = sorted({int(n) for rows in sources.values() for n in rows["heads_left"]})
        ticks = _apart(counts)
        panel.set_xticks(ticks, [str(tick) for tick in ticks], minor=False)
        panel.set_xticks([], minor=True)
        panel.set_xlabel(f"{unit} left")
        panel.set_ylabel(_metric_label(rows))
        draw.key_below(figure, panel)
        return draw.finish(figure, path)


def _draw(panel: Axes, rows: pd.DataFrame, name: str, style: Style) -> None:
    """A source's line with its intervals, and a dotted one for sets as they are before healing."""
    healed = is_healed(rows)
    bare = rows[~healed & (rows["step"] > 0)] if healed.any() else rows[:0]
    own = rows[healed | (rows["step"] == 0)] if healed.any() else rows
    own = own.sort_values("heads_left")
    value, low, high = (own[part].to_numpy(float) for part in ("value", "low", "high"))
    ends = np.clip(np.array([value - low, high - value]), 0, None)
    label = f"{name}, healed".lstrip(", ") if len(bare) else name
    shown: Style = {"capsize": 2, "elinewidth": 0.8, "label": label or "_", "gid": f"gates {name}"}
    panel.errorbar(own["heads_left"].to_numpy(), value, ends, **style, **shown)
    if len(bare):
        bare = bare.sort_values("heads_left")
        x, y = bare["heads_left"].to_numpy(), bare["value"].to_numpy(float)
        label = f"{name}, not healed".lstrip(", ")
        dotted: Style = {"linestyle": ":", "fillstyle": "none", "gid": f"bare {name}"}
        panel.plot(x, y, **style, **dotted, label=label)


def _apart(counts: list[int]) -> list[int]:
    """Of rising numbers those with room between them on a logarithmic axis, the last included."""
    kept: list[int] = []
    for count in reversed(counts):
        if not kept or count * 1.2 <= kept[-1]:
            kept.append(count)
    return kept[::-1]


# --- What the heads that are left do, and which stacks and layers keep theirs -------------------


def functions_left(
    given: Given | pd.DataFrame,
    stack: str = "enc",
    *,
    functions: Sequence[str] = FUNCTIONS,
    order: str | None = None,
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """How many of the heads left have each function, a bar for each number of heads left.

    Voita et al. 2019, figure 8. From a run: its curve and the roles of the whole model; from a
    frame: what `headcount.pruning.curve.survivors` counts, with roles of each pruned model. A head
    with several functions counts in each.

    >>> frame = pd.DataFrame({"set": ["2", "2"], "stack": "enc", "function": ["rare", "other"],
    ...                       "heads": [1, 1], "left": 2})
    >>> [float(bar.get_height()) for bar in functions_left(frame).axes[0].patches]
    [1.0, 1.0]
    """
    if isinstance(given, pd.DataFrame):
        frame = given
    else:
        frame = survivors(_sets(given, order), draw.frame_of(given, "roles"), functions)
    draw.need_rows(frame, ("set", "stack", "function", "heads"), "heads that are left")
    own = frame[frame["stack"] == stack]
    if not len(own):
        raise UsageError(f"No head of the stack '{stack}' is left in any set; name another.")
    wide = own.pivot(index="set", columns="function", values="heads")
    wide = wide.reindex(index=list(dict.fromkeys(own["set"]))).fillna(0)
    names = [name for name in (*functions, *wide.columns) if name in wide and name != "other"]
    with draw.paper():
        figure, axes = draw.panels(1, 1, width=width, height=2.3)
        below = np.zeros(len(wide))
        for name in [*dict.fromkeys(names), *(["other"] if "other" in wide else [])]:
            counts = wide[name].to_numpy(float)
            colour = "#c9ccd2" if name == "other" else draw.role_colour(name)
            label = "none of these" if name == "other" else name
            style: Style = {"bottom": below.copy(), "color": colour, "label": label, "gid": name}
            axes[0, 0].bar(range(len(wide)), counts, 0.8, **style)
            _count_in(axes[0, 0], counts, below, 0.05 * float(wide.sum(axis=1).max()))
            below += counts
        left = [int(own.loc[own["set"] == name, "left"].max()) for name in wide.index]
        marks: Style = {"color": draw.INK, "linewidth": 1.1, "gid": "left"}
        for place, heads in enumerate(left):
            label = "heads left" if not place else ""
            axes[0, 0].plot([place - 0.46, place + 0.46], [heads, heads], label=label, **marks)
        axes[0, 0].set_xticks(range(len(wide)), _ticks(own))
        axes[0, 0].set_xlabel(f"{_STACKS.get(stack, stack)} heads left")
        axes[0, 0].set_ylabel("heads with the function\n(several count in each)")
        draw.key_below(figure, axes[0, 0], columns=6)
        return draw.finish(figure, path)


_STACKS = {"enc": "encoder", "dec": "decoder", "cross": "cross"}


def _count_in(panel: Axes, counts: np.ndarray, below: np.ndarray, room: float) -> None:
    """Write the count into each part of a bar that has room for it."""
    ground: Style = {"facecolor": "white", "alpha": 0.85, "linewidth": 0, "pad": 0.6}
    where: Style = {"ha": "center", "va": "center", "fontsize": 6, "bbox": ground}
    for place, (count, low) in enumerate(zip(counts, below, strict=True)):
        if count > room:
            panel.text(place, low + count / 2, f"{count:.0f}", **where)


def stacks_left(
    given: Given | pd.DataFrame,
    *,
    order: str | None = None,
    width: Width = "column",
    path: str | Path | None = None,
) -> Figure:
    """The share of each stack's heads that is left, as the model gets smaller.

    Voita et al. 2019, figure 9. Takes a run with a curve, or what `left_by_stack` counts.

    >>> frame = pd.DataFrame({"set": ["3", "2"], "stack": "enc", "heads": [3, 2], "share": [1, .5]})
    >>> stacks_left(frame).axes[0].lines[0].get_ydata().tolist()
    [100.0, 50.0]
    """
    if isinstance(given, pd.DataFrame):
        frame = given
    else:
        frame = left_by_stack(_sets(given, order), draw.table_of(given).heads)
    draw.need_rows(frame, ("set", "stack", "share"), "stacks that are left")
    sets = list(dict.fromkeys(frame["set"]))
    with draw.paper():
        figure, axes = draw.panels(1, 1, width=width, height=2.3)
        for stack, rows in frame.groupby("stack", sort=False):
            colour, marker = draw.STACK_COLOURS[str(stack)]
            shares = 100 * rows.set_index("set")["share"].reindex(sets).to_numpy(float)
            style: Style = {"marker": marker, "label": str(stack), "gid": f"stack {stack}"}
            axes[0, 0].plot(range(len(sets)), shares, color=colour, **style)
        axes[0, 0].set_xticks(range(len(sets)), [str(name) for name in sets])
        axes[0, 0].set_xlabel("heads left in the model")
        axes[0, 0].set_ylabel("percent of the stack left")
        axes[0, 0].set_ylim(0, 103)
        draw.key_below(figure, axes[0, 0])
        return draw.finish(figure, path)


def layers_left(
    given: Given | pd.DataFrame,
    *,
    order: str | None = None,
    pool: int = 1,
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """How many heads of each layer are left, as the model gets smaller; the number in each cell.

    Voita et al. 2019, figure 10, where layers are pooled in pairs (`pool=2`).

    >>> frame = pd.DataFrame({"set": "2", "stack": "dec", "layer": [0, 1], "heads": [2, 0],
    ...                       "share": [1.0, 0.0]})
    >>> [text.get_text() for text in layers_left(frame).axes[0].texts]
    ['2', '0']
    """
    if isinstance(given, pd.DataFrame):
        frame = given
    else:
        frame = left_by_layer(_sets(given, order), draw.table_of(given).heads, pool)
    draw.need_rows(frame, ("set", "stack", "layer", "heads", "share"), "layers that are left")
    sets, stacks = (list(dict.fromkeys(frame[name])) for name in ("set", "stack"))
    with draw.paper():
        figure, axes = draw.panels(1, len(stacks), width=width, height=0.5 + 0.22 * len(sets))
        for panel, stack in zip(axes[0], stacks, strict=True):
            own = frame[frame["stack"] == stack]
            counts, shares = (
                own.pivot(index="set", columns="layer", values=name).reindex(sets)
                for name in ("heads", "share")
            )
            panel.imshow(
                shares.to_numpy(float), cmap=draw.SEQUENTIAL, vmin=0, vmax=1.4, aspect="auto"
            )
            for (row, column), count in np.ndenumerate(counts.to_numpy()):
                dark = shares.iat[row, column] > 0.75
                style: Style = {"ha": "center", "va": "center", "fontsize": 6.5}
                panel.text(
                    column, row, str(int(count)), color="white" if dark else draw.INK, **style
                )
            panel.set_xticks(range(counts.shape[1]), [str(layer) for layer in counts.columns])
            panel.set_yticks(range(len(sets)), [str(name) for name in sets])
            panel.set_title(stack)
            panel.set_xlabel("layer" if pool == 1 else f"layers, {pool} together")
            panel.tick_params(length=0)
            panel.spines[:].set_visible(False)
        axes[0, 0].set_ylabel("heads left")
        return draw.finish(figure, path)


def _ticks(rows: pd.DataFrame) -> list[str]:
    """Heads of the stack that are left, or the name of the set where that is not known."""
    one = rows.drop_duplicates("set")
    return [str(tick) for tick in one["left" if "left" in one else "set"]]


def _sets(given: Given, order: str | None) -> dict[object, list[Head]]:
    """The heads that are left at each step of a curve, by their number."""
    rows = curve_of(given)
    if "removed" not in rows:
        raise RunError("The curve does not say which heads went; give head sets instead.")
    rows = rows[rows["scope"] == "all"]
    rows = of_order(rows, order or str(rows["order"].iloc[0]))
    left = draw.table_of(given).heads
    found: dict[object, list[Head]] = {}
    for gone in rows.sort_values("step")["removed"]:
        removed = set(parse_heads(str(gone)))
        left = [head for head in left if head not in removed]
        found[str(len(left))] = left
    return found
