"""What the heads that are left do, and which stacks and layers keep theirs.

Voita et al. 2019, figures 8 to 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from headcount.errors import RunError, UsageError
from headcount.heads import Head, parse_heads
from headcount.plot.curve_lines import curve_of
from headcount.plot.layout import key_below, panels
from headcount.plot.needs import need_rows
from headcount.plot.reading import Given, frame_of, table_of
from headcount.plot.style import (
    INK,
    SEQUENTIAL,
    STACK_COLOURS,
    Style,
    Width,
    finish,
    paper,
    role_colour,
)
from headcount.survivors import FUNCTIONS, left_by_layer, left_by_stack, survivors
from headcount.table import HeadTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["functions_left", "layers_left", "stacks_left"]


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
    frame: what `headcount.survivors.survivors` counts, with roles of each pruned model. A head
    with several functions counts in each.

    >>> frame = pd.DataFrame({"set": ["2", "2"], "stack": "enc", "function": ["rare", "other"],
    ...                       "heads": [1, 1], "left": 2})
    >>> [float(bar.get_height()) for bar in functions_left(frame).axes[0].patches]
    [1.0, 1.0]
    """
    if isinstance(given, pd.DataFrame):
        frame = given
    else:
        frame = survivors(_sets(given, order), frame_of(given, "roles"), functions)
    need_rows(frame, ("set", "stack", "function", "heads"), "heads that are left")
    own = frame[frame["stack"] == stack]
    if not len(own):
        raise UsageError(f"No head of the stack '{stack}' is left in any set; name another.")
    wide = own.pivot(index="set", columns="function", values="heads")
    wide = wide.reindex(index=list(dict.fromkeys(own["set"]))).fillna(0)
    names = [name for name in (*functions, *wide.columns) if name in wide and name != "other"]
    with paper():
        figure, axes = panels(1, 1, width=width, height=2.3)
        below = np.zeros(len(wide))
        for name in [*dict.fromkeys(names), *(["other"] if "other" in wide else [])]:
            counts = wide[name].to_numpy(float)
            colour = "#c9ccd2" if name == "other" else role_colour(name)
            label = "none of these" if name == "other" else name
            style: Style = {"bottom": below.copy(), "color": colour, "label": label, "gid": name}
            axes[0, 0].bar(range(len(wide)), counts, 0.8, **style)
            below += counts
        axes[0, 0].set_xticks(range(len(wide)), _ticks(own))
        axes[0, 0].set_xlabel(f"{stack} heads left")
        axes[0, 0].set_ylabel("heads with the function")
        key_below(figure, axes[0, 0], columns=6)
        return finish(figure, path)


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
        frame = left_by_stack(_sets(given, order), _every(given))
    need_rows(frame, ("set", "stack", "share"), "stacks that are left")
    sets = list(dict.fromkeys(frame["set"]))
    with paper():
        figure, axes = panels(1, 1, width=width, height=2.3)
        for stack, rows in frame.groupby("stack", sort=False):
            colour, marker = STACK_COLOURS[str(stack)]
            shares = 100 * rows.set_index("set")["share"].reindex(sets).to_numpy(float)
            style: Style = {"marker": marker, "label": str(stack), "gid": f"stack {stack}"}
            axes[0, 0].plot(range(len(sets)), shares, color=colour, **style)
        axes[0, 0].set_xticks(range(len(sets)), [str(name) for name in sets])
        axes[0, 0].set_xlabel("heads left in the model")
        axes[0, 0].set_ylabel("percent of the stack left")
        axes[0, 0].set_ylim(0, 103)
        key_below(figure, axes[0, 0])
        return finish(figure, path)


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
        frame = left_by_layer(_sets(given, order), _every(given), pool)
    need_rows(frame, ("set", "stack", "layer", "heads", "share"), "layers that are left")
    sets, stacks = (list(dict.fromkeys(frame[name])) for name in ("set", "stack"))
    with paper():
        figure, axes = panels(1, len(stacks), width=width, height=0.5 + 0.22 * len(sets))
        for panel, stack in zip(axes[0], stacks, strict=True):
            own = frame[frame["stack"] == stack]
            counts, shares = (
                own.pivot(index="set", columns="layer", values=name).reindex(sets)
                for name in ("heads", "share")
            )
            panel.imshow(shares.to_numpy(float), cmap=SEQUENTIAL, vmin=0, vmax=1.4, aspect="auto")
            for (row, column), count in np.ndenumerate(counts.to_numpy()):
                dark = shares.iat[row, column] > 0.75
                style: Style = {"ha": "center", "va": "center", "fontsize": 6.5}
                panel.text(column, row, str(int(count)), color="white" if dark else INK, **style)
            panel.set_xticks(range(counts.shape[1]), [str(layer) for layer in counts.columns])
            panel.set_yticks(range(len(sets)), [str(name) for name in sets])
            panel.set_title(stack)
            panel.set_xlabel("layer" if pool == 1 else f"layers, {pool} together")
            panel.tick_params(length=0)
            panel.spines[:].set_visible(False)
        axes[0, 0].set_ylabel("heads left")
        return finish(figure, path)


def _ticks(rows: pd.DataFrame) -> list[str]:
    """Heads of the stack that are left, or the name of the set where that is not told."""
    one = rows.drop_duplicates("set")
    return [str(tick) for tick in one["left" if "left" in one else "set"]]


def _sets(given: Given, order: str | None) -> dict[object, list[Head]]:
    """The heads that are left at each step of a curve, by their number."""
    rows = curve_of(given)
    if "removed" not in rows:
        raise RunError("The curve does not say which heads went; give head sets instead.")
    rows = rows[rows["scope"] == "all"]
    name = order or str(rows["order"].iloc[0])
    left = list(_every(given))
    found: dict[object, list[Head]] = {}
    for gone in rows[rows["order"] == name].sort_values("step")["removed"]:
        removed = set(parse_heads(str(gone)))
        left = [head for head in left if head not in removed]
        found[str(len(left))] = left
    if not found:
        there = ", ".join(dict.fromkeys(rows["order"]))
        raise UsageError(f"The curve has no order '{name}'; it has {there}.")
    return found


def _every(given: Given) -> list[Head]:
    table: HeadTable = table_of(given)
    return table.heads
