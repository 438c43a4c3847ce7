"""Relations, coreference, and gradients with respect to attention.

Clark et al. 2019, tables 1 and 2 as bars, and figure 3: the gradient of attention to [SEP].
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from headcount.errors import UsageError
from headcount.reports import held_out
from headcount.rooms.figures import figure as draw
from headcount.rooms.figures.figure import Frames, Style, Width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- How well the best head finds a word's dependency or antecedent -----------------------------
# Clark et al. 2019, tables 1 and 2 as bars.

_KEYS = ("stack", "layer", "head", "split", "accuracy", "low", "high", "baseline")
_TWIN = "best head of a random twin"


def dependencies(
    given: Frames,
    relations: Sequence[str] | None = None,
    *,
    most: int = 16,
    width: Width = "page",
    path: str | Path | None = None,
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
    shown: dict[str, pd.DataFrame] = {}
    columns = (*_KEYS, "relation", "direction", "n")
    frames = draw.frames_of(given, "relations", columns, "relations", known="accuracy")
    for name, frame in frames.items():
        stacks = _by_stack(_best(frame, ["stack", "relation"]))
        for stack, own in stacks.items():
            shown[draw.titled(name, stack, stacks)] = own.set_index("relation")
    known = sorted({str(name) for own in shown.values() for name in own.index})
    for name in relations or ():
        if name not in known:
            there = ", ".join(known)
            raise UsageError(f"There is no relation '{name}' to draw; there are {there}.")
    with draw.paper():
        figure, axes = draw.panels(len(shown), 1, width=width, height=2.1)
        for panel, (title, own) in zip(axes[:, 0], shown.items(), strict=True):
            names = list(relations) if relations else list(own.nlargest(most, "n").index)
            rows = own.reindex(names)
            _bars(panel, rows, {"baseline": "best fixed offset", "control": _TWIN})
            panel.set_title(title)
        draw.key_below(figure, *axes[:, 0])
        return draw.finish(figure, path)


def coreference(given: Frames, *, width: Width = "page", path: str | Path | None = None) -> Figure:
    """How often the best head points to an antecedent, by kind of mention, next to the rules.

    Clark et al. 2019, table 2. Kinds stand in the order of the frame.

    >>> frame = pd.DataFrame({"stack": ["enc"], "layer": [0], "head": [3], "kind": ["all"],
    ...     "split": ["all"], "n": [50], "accuracy": [0.6], "low": [0.5], "high": [0.7],
    ...     "baseline": [0.3], "against": ["nearest"]})
    >>> [float(bar.get_height()) for bar in coreference(frame).axes[0].patches]
    [0.6, 0.3]
    """
    shown: dict[str, pd.DataFrame] = {}
    kinds: dict[str, None] = {}
    columns = (*_KEYS, "kind", "against", "n")
    frames = draw.frames_of(given, "coreference", columns, "coreference", known="accuracy")
    for name, frame in frames.items():
        stacks = _by_stack(_best(frame, ["stack", "kind", "against"]))
        shown |= {draw.titled(name, stack, stacks): own for stack, own in stacks.items()}
        kinds |= dict.fromkeys(frame["kind"])
    rules = {rule: rule for own in shown.values() for rule in own["against"]}
    with draw.paper():
        figure, drawn = draw.wrapped(len(shown), most=2, width=width, height=2.4)
        for panel, (title, own) in zip(drawn, shown.items(), strict=True):
            wide = own.pivot(index="kind", columns="against", values="baseline")
            first = own.drop_duplicates("kind").set_index("kind").drop(columns="baseline")
            _bars(panel, first.join(wide).reindex([k for k in kinds if k in wide.index]), rules)
            panel.set_title(title)
        draw.label_outer(drawn, "", "accuracy")
        draw.key_below(figure, *drawn, columns=5)
        return draw.finish(figure, path)


def _by_stack(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each stack of self-attention that has some."""
    found = {stack: rows[rows["stack"] == stack] for stack in ("enc", "dec")}
    return {stack: own for stack, own in found.items() if len(own)}


def _best(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """One row for each question: its best head, chosen on the other half where there is one."""
    held = held_out(frame)
    if "selected" in held and held["selected"].any():
        held = held[held["selected"]]
    gain = held["accuracy"] - (held["baseline"].fillna(0) if "direction" in held else 0)
    ranked = held.assign(gain=gain).sort_values("gain", ascending=False, kind="stable")
    return ranked.groupby(keys, sort=False).head(1)


def _bars(panel: Axes, rows: pd.DataFrame, others: dict[str, str]) -> None:
    """The head's bar with its interval and its name, and a bar for each rule that is there."""
    there = {n: label for n, label in others.items() if n in rows and rows[n].notna().any()}
    places, wide = np.arange(len(rows)), 0.84 / (1 + len(there))
    left = places - 0.42 + wide / 2
    tops = rows["accuracy"].to_numpy(float)
    panel.bar(left, tops, wide * 0.94, color=draw.SERIES[0][0], label="best head", gid="best head")
    ends = np.array([tops - rows["low"].to_numpy(float), rows["high"].to_numpy(float) - tops])
    style: Style = {"fmt": "none", "ecolor": draw.INK, "elinewidth": draw.HAIRLINE}
    panel.errorbar(left, tops, np.clip(ends, 0, None), **style)
    for number, (name, label) in enumerate(there.items(), 1):
        colour = (draw.GREY, draw.SERIES[1][0], draw.SERIES[2][0])[(number - 1) % 3]
        heights = rows[name].to_numpy(float)
        panel.bar(left + number * wide, heights, wide * 0.94, color=colour, label=label, gid=label)
    _name_heads(panel, rows, left)
    panel.set_xticks(places, [str(name) for name in rows.index])
    panel.tick_params(axis="x", length=0, rotation=45 if len(rows) > 12 else 0)
    panel.set_ylim(0, 1)
    panel.set_ylabel("accuracy")


def _name_heads(panel: Axes, rows: pd.DataFrame, left: np.ndarray) -> None:
    """Layer and head in each bar, as on the page: 5.3 is head 3 of layer 5."""
    known = rows[["layer", "head"]].notna().all(axis=1)
    for x, there, layer, head in zip(left, known, rows["layer"], rows["head"], strict=True):
        if there:
            name = f"{int(layer)}.{int(head)}"
            style: Style = {"ha": "center", "va": "bottom", "rotation": 90, "fontsize": 5.5}
            panel.text(x, 0.02, name, color="white", **style)


# --- How much the loss would notice a change of attention to each kind of token -----------------

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
    columns = ("stack", "layer", "target", *drawn_from)
    frames = draw.frames_of(given, "noop_layers", columns, "gradients", known=drawn_from[0])
    for name, frame in frames.items():
        there = [stack for stack in ("enc", "dec", "cross") if (frame["stack"] == stack).any()]
        shown |= {draw.titled(name, s, there): frame[frame["stack"] == s] for s in there}
    with draw.paper():
        figure, drawn = draw.wrapped(len(shown), width=width, height=2.3)
        for panel, (title, own) in zip(drawn, shown.items(), strict=True):
            if relative:
                own = own[own["target"] != "other"]
                line: Style = {"color": draw.INK, "linewidth": draw.HAIRLINE, "linestyle": ":"}
                panel.axhline(1, label="other token", gid="other", **line)
            _lines(panel, own, drawn_from)
            panel.set_title(title)
            draw.layer_axis(panel, int(own["layer"].max()) + 1)
            panel.set_ylim(bottom=0)
            if not relative:
                panel.ticklabel_format(axis="y", style="sci", scilimits=(-2, 3), useMathText=True)
        draw.label_outer(
            drawn, "layer", "|dL/dα|, share of others'" if relative else "mean |dL/dα|"
        )
        draw.key_below(figure, *drawn)
        return draw.finish(figure, path)


def _lines(panel: Axes, own: pd.DataFrame, columns: tuple[str, str, str]) -> None:
    for target, (colour, marker) in zip(_TARGETS, draw.SERIES, strict=False):
        rows = own[own["target"] == target].sort_values("layer")
        if len(rows):
            label = f"{target} token" if target in ("first", "other") else target
            style: Style = {"color": colour, "marker": marker, "label": label, "gid": target}
            middle, low, high = (rows[name].to_numpy(float) for name in columns)
            panel.plot(rows["layer"].to_numpy(), middle, **style)
            panel.fill_between(rows["layer"], low, high, color=colour, alpha=0.15, linewidth=0)
