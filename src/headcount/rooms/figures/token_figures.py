"""What heads look at: lines between tokens, kinds of tokens by layer, patterns of maps.

Clark et al. 2019, figures 1, 2, 4 and 5; Kovaleva et al. 2019, figures 2 and 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from headcount.errors import RunError, UsageError
from headcount.records import Exhibit, Head, HeadTable, Run, parse_heads, read_exhibits
from headcount.rooms.figures import figure as draw
from headcount.rooms.figures.figure import Frames, Many, Style, Width
from headcount.rooms.figures.grids import colour_bar, draw_by_layer, draw_cells, scale_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- What heads look at in one text -------------------------------------------------------------


def attention_lines(
    given: Exhibit | Run | str | Path,
    heads: str | Iterable[str | Head],
    exhibit: int = 0,
    *,
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """Queries at the left, keys at the right, a panel a head.

    Clark et al. 2019, figures 1 and 5. A line is as dark as the weight; special tokens are grey.
    `exhibit` is the number of a text of the run, from 0.

    >>> from headcount.records.exhibits import Text
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
    with draw.paper():
        figure, drawn = draw.wrapped(len(chosen), most=4, width=width, height=0.3 + 0.14 * tall)
        for panel, head, weights in zip(drawn, chosen, maps, strict=True):
            _lines(panel, weights)
            for x, side in zip((0, 1), shown.sides[head.stack], strict=True):
                _tokens(panel, x, shown, side)
            panel.set_title(str(head))
            panel.set(xlim=(-0.9, 1.9), ylim=(tall - 0.5, -0.5))
            panel.set_axis_off()
        return draw.finish(figure, path)


def _exhibit(given: Run | str | Path, number: int) -> Exhibit:
    """A text of the run with its maps."""
    found = read_exhibits(given)
    if not found:
        where = given.path if isinstance(given, Run) else given
        raise RunError(f"{where} has no exhibits; `headcount report MODEL --run RUN` makes them.")
    if not 0 <= number < len(found):
        raise UsageError(f"There is no exhibit {number}; the run has {len(found)}, from 0.")
    return found[number]


def _map(exhibit: Exhibit, head: Head, known: list[Head]) -> np.ndarray:
    """The weights `[query, key]` of a head; maps of heads that were removed are not kept."""
    there = exhibit.maps.get((head.stack, head.layer), np.empty((0, 0, 0)))
    own = [one.index for one in known if one[:2] == head[:2]]
    order = own if len(own) == len(there) else list(range(len(there)))
    if head.index not in order:
        raise UsageError(f"Exhibit {exhibit.id} has no map of {head}; name a head of its model.")
    weights: np.ndarray = np.asarray(there[order.index(head.index)], dtype=float)
    return weights


def _lines(panel: Axes, weights: np.ndarray) -> None:
    """A line for each pair of tokens; what nobody would see is left out."""
    for (query, key), weight in np.ndenumerate(weights):
        if weight >= 0.01:
            style: Style = {"color": draw.SERIES[0][0], "alpha": min(1.0, float(weight))}
            panel.plot([0.02, 0.98], [query, key], linewidth=1, **style)


def _tokens(panel: Axes, x: int, exhibit: Exhibit, side: str) -> None:
    """The tokens of one text, one below the other."""
    text = exhibit.texts[side]
    for place, (token, special) in enumerate(zip(text.tokens, text.special, strict=True)):
        style: Style = {"ha": "left" if x else "right", "va": "center", "fontsize": 6.5}
        style |= {"parse_math": False} | ({"color": draw.GREY} if special else {})
        panel.text(x, place, token, **style)


# --- Where heads look, layer by layer: positions, token types, entropy --------------------------
# Clark et al. 2019, figures 2 and 4.

_POSITIONS = {"previous": "previous token", "next": "next token", "self": "the token itself"}
_TYPES = {"separator": "separator", "first": "first token", "punctuation": "punctuation"}
_SEPARATORS = {"separator": "from all tokens", "separator_to_separator": "from separators"}
_ENTROPIES = {"entropy": "all queries", "entropy_first": "the first token's query"}


def positions(given: Many, *, width: Width = "page", path: str | Path | None = None) -> Figure:
    """Attention to the token before, the token after and the token itself, by layer.

    Clark et al. 2019, section 3.1.

    >>> from headcount import Head, HeadTable
    >>> shares = {"previous": [0.1], "next": [0.2], "self": [0.7]}
    >>> positions(HeadTable.of([Head("enc", 0, 0)], shares)).axes[0].get_ylabel()
    'mean attention'
    """
    return _drawn(given, _POSITIONS, "mean attention", width, path)


def token_types(given: Many, *, width: Width = "page", path: str | Path | None = None) -> Figure:
    """Attention to separators, to the first token ([CLS]) and to punctuation, by layer.

    Clark et al. 2019, figure 2, above.

    >>> from headcount import Head, HeadTable
    >>> shares = {"separator": [0.6], "first": [0.1], "punctuation": [0.1]}
    >>> len(token_types(HeadTable.of([Head("enc", 0, 0)], shares)).axes[0].lines)
    3
    """
    return _drawn(given, _TYPES, "mean attention", width, path)


def to_separators(given: Many, *, width: Width = "page", path: str | Path | None = None) -> Figure:
    """Attention to separators from all tokens and from separators themselves, by layer.

    Clark et al. 2019, figure 2, below.

    >>> from headcount import Head, HeadTable
    >>> shares = {"separator": [0.6], "separator_to_separator": [0.9]}
    >>> figure = to_separators(HeadTable.of([Head("enc", 0, 0)], shares))
    >>> figure.axes[0].lines[1].get_ydata().tolist()
    [0.9]
    """
    return _drawn(given, _SEPARATORS, "mean attention to separators", width, path)


def entropies(given: Many, *, width: Width = "page", path: str | Path | None = None) -> Figure:
    """Entropy of attention, of all queries and of the first token's; dotted is uniform attention.

    Clark et al. 2019, figure 4.

    >>> from headcount import Head, HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0)], {"entropy": [1.5], "entropy_first": [2.5]})
    >>> entropies(table).axes[0].get_ylabel()
    'entropy, nats'
    """
    return _drawn(given, _ENTROPIES, "entropy, nats", width, path)


def _drawn(
    given: Many, columns: Mapping[str, str], label: str, width: Width, path: str | Path | None
) -> Figure:
    """A panel for each stack of each source, with the layers below and the same scale in all."""
    tables = draw.tables_of(given, columns)
    stacks = {name: draw.measured_stacks(table, columns) for name, table in tables.items()}
    with draw.paper():
        figure, places = _places(stacks, width)
        for (name, stack), panel in places.items():
            draw_by_layer(panel, tables[name], stack, columns)
            _uniform(panel, tables[name], stack, columns)
            panel.set_title(draw.titled(name, stack, stacks[name]))
        draw.label_outer(list(places.values()), "layer", label)
        draw.key_below(figure, *places.values())
        return draw.finish(figure, path)


def _places(
    stacks: Mapping[str, list[str]], width: Width
) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """Sources of one stack stand side by side; of several stacks, each source has its row."""
    pairs = [(name, stack) for name, own in stacks.items() for stack in own]
    wide = max(map(len, stacks.values()))
    if wide == 1:
        figure, flat = draw.wrapped(len(pairs), width=width, height=2.1, sharey=True)
        return figure, dict(zip(pairs, flat, strict=True))
    figure, axes = draw.panels(len(stacks), wide, width=width, height=2.1, sharey=True)
    places: dict[tuple[str, str], Axes] = {}
    for row, (name, own) in zip(axes, stacks.items(), strict=True):
        places |= {(name, stack): panel for stack, panel in zip(own, row, strict=False)}
        for panel in row[len(own) :]:
            panel.set_axis_off()
    return figure, places


def _uniform(panel: Axes, table: HeadTable, stack: str, columns: Mapping[str, str]) -> None:
    """What uniform attention would have, where the table knows."""
    if "entropy" in columns and "entropy_uniform" in table.frame:
        grid = draw.grid_of(table.frame["entropy_uniform"], stack)
        if not np.isfinite(grid).any():
            return
        value = float(np.nanmean(grid))
        style: Style = {
            "color": draw.INK,
            "linewidth": draw.HAIRLINE,
            "linestyle": ":",
            "gid": "uniform",
        }
        panel.axhline(value, label="uniform attention", **style)


# --- What the first token's row of the last layer attends to ------------------------------------

_FEATURES = ("noun", "verb", "pronoun", "subject", "object", "negation", "separator", "first")


def first_row(
    given: Frames,
    *,
    stack: str = "enc",
    layer: int | None = None,
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
    """Attention of [CLS] in the last layer to kinds of tokens, mean over heads, a row a task.

    Kovaleva et al. 2019, figure 7. Each kind counts texts that have such a token.

    >>> frame = pd.DataFrame({"stack": "enc", "layer": 0, "head": [0, 1], "feature": "noun",
    ...                       "split": "all", "origin": "first", "value": [0.25, 0.75]})
    >>> float(first_row(frame).axes[0].collections[0].get_array()[0, 0])
    0.5
    """
    named = draw.by_name(given)
    grid = np.array(
        [_means(draw.frame_of(one, "features"), stack, layer) for one in named.values()]
    )
    with draw.paper():
        figure, axes = draw.panels(1, 1, width=width, height=0.6 + 0.3 * len(grid))
        mesh = draw_cells(axes[0, 0], grid, scale_of([grid]), ticks=False)
        for (row, column), value in np.ndenumerate(grid):
            label = "–" if np.isnan(value) else f"{value:.2f}"
            ink = "white" if value > 0.6 * np.nanmax(grid) else draw.INK
            place = {"ha": "center", "va": "center", "fontsize": 6.5}
            axes[0, 0].text(column + 0.5, row + 0.5, label, color=ink, **place)
        axes[0, 0].set_xticks(np.arange(len(_FEATURES)) + 0.5, _FEATURES)
        axes[0, 0].set_yticks(np.arange(len(grid)) + 0.5, list(named))
        colour_bar(figure, mesh, axes[0, 0], "attention")
        return draw.finish(figure, path)


def _means(frame: pd.DataFrame, stack: str, layer: int | None) -> list[float]:
    """The mean over the heads of one layer, for each kind of token; NaN where there was none."""
    draw.need_rows(
        frame, ("stack", "layer", "feature", "split", "origin", "value"), "features", known="value"
    )
    own = frame[(frame["stack"] == stack) & (frame["origin"] == "first")]
    if not len(own):
        raise UsageError(f"The run has no row of the first token for the stack '{stack}'.")
    split = "all" if (own["split"] == "all").any() else own["split"].iloc[0]
    last = int(own["layer"].max()) if layer is None else layer
    chosen = own[(own["split"] == split) & (own["layer"] == last)]
    means = chosen.groupby("feature")["value"].mean()
    return [float(means.get(name, np.nan)) for name in _FEATURES]


# --- Which patterns maps have, by layer and task ------------------------------------------------

_COLOURS = {
    "vertical": draw.SERIES[0][0],
    "diagonal": draw.SERIES[4][0],
    "vertical_diagonal": draw.SERIES[3][0],
    "block": draw.SERIES[2][0],
    "heterogeneous": "#c9ccd2",
}
_COLUMNS = [f"pattern_{name}" for name in _COLOURS]


def patterns(
    given: Frames,
    *,
    by: str = "layer",
    width: Width = "page",
    path: str | Path | None = None,
) -> Figure:
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
    shown = _shares(given)
    with draw.paper():
        if by == "task":
            figure, drawn = draw.wrapped(1, width=width, height=2.3)
            _stack(drawn[0], np.array([_over_layers(means) for means in shown.values()]).T)
            drawn[0].set_xticks(range(len(shown)), list(shown))
        else:
            figure, drawn = draw.wrapped(len(shown), most=4, width=width, height=1.8, sharey=True)
            for panel, (name, means) in zip(drawn, shown.items(), strict=True):
                _stack(panel, means)
                draw.layer_axis(panel, means.shape[1])
                panel.set_title(name)
        draw.label_outer(drawn, "layer" if by == "layer" else "", "share of maps")
        draw.key_below(figure, drawn[0], columns=5)
        return draw.finish(figure, path)


def _shares(given: Frames) -> dict[str, np.ndarray]:
    """Shares `[pattern, layer]` of each stack of each source, under the name of its panel.

    They are means over the heads of a layer; NaN where none was measured.
    """
    found: dict[str, np.ndarray] = {}
    for name, one in draw.by_name(given).items():
        if isinstance(one, pd.DataFrame):
            draw.need_rows(one, ("stack", "layer", *_COLUMNS), "shares of patterns")
            shares = one.set_index(["stack", "layer"])[_COLUMNS]
            stacks = list(dict.fromkeys(one["stack"]))
        else:
            table = draw.table_of(one)
            draw.need_columns(table, _COLUMNS)
            shares = table.frame[_COLUMNS].groupby(level=["stack", "layer"]).mean()
            stacks = draw.measured_stacks(table, _COLUMNS)
        for stack in stacks:
            own = shares.loc[stack]
            own = own.reindex(range(int(own.index.max()) + 1))
            found[draw.titled(name, stack, stacks)] = own.to_numpy(float).T
    return found


def _over_layers(means: np.ndarray) -> np.ndarray:
    """The mean over the layers that are known; NaN where none is."""
    known = means[:, np.isfinite(means[0])]
    return known.mean(axis=1) if known.size else np.full(len(means), np.nan)


def _stack(panel: Axes, means: np.ndarray) -> None:
    """Bars upon bars; a layer that was not measured is a hatched bar."""
    below = np.zeros(means.shape[1])
    for (name, colour), values in zip(_COLOURS.items(), means, strict=True):
        label = name.replace("_", " + ")
        style: Style = {"color": colour, "label": label, "bottom": below.copy(), "gid": name}
        panel.bar(range(len(values)), values, 0.86, **style)
        below += np.nan_to_num(values)
    missing = np.flatnonzero(np.isnan(means[0]))
    if len(missing):
        gone: Style = {"fill": False, "hatch": "////", "linewidth": 0, "gid": "missing"}
        panel.bar(missing, np.ones(len(missing)), 0.86, **gone)
    panel.set_ylim(0, 1)
