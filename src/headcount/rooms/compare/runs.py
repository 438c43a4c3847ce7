"""What changed between two models: the result of a comparison, two runs compared, and tables of it.

No model is loaded here: two run directories are compared by the columns that both have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from headcount.errors import UsageError
from headcount.records import NA, STEPS, Brief, Column, Head, HeadTable, Run, heat_steps, to_strict
from headcount.reports import Source, figure, figures, printed, role_part, row_head
from headcount.surveys.roles import KINDS

if TYPE_CHECKING:
    from rich.table import Table

# --- What changed between two models ------------------------------------------------------------


@dataclass(repr=False)
class Changes(Brief):
    """How every head of one model differs from the head of the same name in another.

    `heads` has, for each head: `cosine` (of the maps, 1 is no change), `js` (divergence a row in
    nats, 0 is no change), and for each column of a survey how much more it is in the second model,
    all with `_low` and `_high`, 95% over texts.
    """

    before: str
    after: str
    heads: pd.DataFrame
    #: A row a layer, with a test; empty where two run directories were compared.
    layers: pd.DataFrame
    #: A row a role that a head has in either model; None where roles were not judged.
    roles: pd.DataFrame | None = None
    #: What the first model's heads do; goes into a run directory.
    table: HeadTable | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def columns(self) -> list[str]:
        """The columns of a survey that were compared."""
        return [str(name) for name in self.heads if f"{name}_before" in self.heads]

    @property
    def names(self) -> list[Head]:
        """The heads that were compared."""
        return [Head(*row) for row in self.heads.index]

    def largest(self, n: int = 10) -> pd.DataFrame:
        """The heads that changed most: least cosine, or the largest change of any column."""
        if "cosine" in self.heads and self.heads["cosine"].notna().any():
            return self.heads.sort_values("cosine", kind="stable").head(n)
        most = self.heads[self.columns].abs().max(axis=1)
        return self.heads.loc[most.sort_values(ascending=False, kind="stable").index[:n]]

    def in_brief(self) -> tuple[str, pd.DataFrame]:
        """How many heads were compared, and those that changed most."""
        frame = self.largest(len(self.heads))
        ends = frame.columns.str.endswith(("_low", "_high", "_before", "_after"))
        words = f"Changes({self.before} -> {self.after}: {len(frame)} heads"
        if "cosine" in frame and frame["cosine"].notna().any():
            words += f", least cosine {frame['cosine'].min():.3f}"
        return f"{words})", frame.loc[:, ~ends]

    def sure(self) -> pd.DataFrame:
        """For each column, in how many heads it rose and fell with an interval clear of 0."""
        rows = []
        for name in self.columns:
            rose = int((self.heads[f"{name}_low"] > 0).sum())
            fell = int((self.heads[f"{name}_high"] < 0).sum())
            mean = float(np.nanmean(self.heads[name]))
            rows.append({"column": name, "mean_change": mean, "rose": rose, "fell": fell})
        return pd.DataFrame(rows, columns=["column", "mean_change", "rose", "fell"])

    def save(self, path: str | Path, *, replace: bool = False) -> None:
        """Write a run directory of the first model with `changes.parquet` in it."""
        with Run.open(path) as run:
            stage = run.stage("compare")
            if self.table is not None:
                run.write_table(self.table, replace=replace)
            run.write_frame("changes", self.heads.reset_index())
            if len(self.layers):
                run.write_frame("layer_changes", self.layers)
            if self.roles is not None:
                run.write_frame("role_changes", self.roles)
            settings = {"before": self.before, "after": self.after}
            stage.finish(settings, self.provenance, notes=self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for strict JSON."""
        parts = {
            "before": self.before,
            "after": self.after,
            "heads": self.heads.reset_index().to_dict("records"),
            "layers": self.layers.to_dict("records"),
            "roles": None if self.roles is None else self.roles.to_dict("records"),
            "notes": self.notes,
            "provenance": self.provenance,
        }
        found: dict[str, Any] = to_strict(parts)
        return found


# --- Roles that heads kept, lost and won --------------------------------------------------------

_KEY = ["stack", "layer", "head", "role", "label"]


def role_changes(
    before: pd.DataFrame, after: pd.DataFrame, pairs: Mapping[Head, Head] | None = None
) -> pd.DataFrame:
    """A row for each role that a head has in one of two frames of verdicts, or in both.

    `pairs` names each head's partner in the second frame, where names are not enough; heads
    without one are left out.

    >>> one = pd.DataFrame([("enc", 0, 1, "rare", "rarest token", 0.5)], columns=[*_KEY, "value"])
    >>> role_changes(one, one[:0])[["head", "change"]].values.tolist()
    [[1, 'lost']]
    """
    ours, theirs = (frame[[*_KEY, "value"]].drop_duplicates(_KEY) for frame in (before, after))
    types = {"layer": "int64", "head": "int64"}
    if pairs is not None:
        index = ["stack", "layer", "head"]
        of = {name: f"{name}_of" for name in index}
        names = pd.DataFrame([(*head, *other) for head, other in pairs.items()])
        names.columns = [*index, *of.values()]
        ours = ours.merge(names[index], on=index)
        theirs = theirs.rename(columns=of).merge(names, on=[*of.values()])
    both = ours.astype(types).merge(
        theirs.astype(types), on=_KEY, how="outer", suffixes=("_before", "_after"), indicator=True
    )
    words = {"both": "kept", "left_only": "lost", "right_only": "won"}
    change = both.pop("_merge").astype(str).map(words)
    return both.assign(change=change)


# --- Two run directories ------------------------------------------------------------------------


def compare_runs(first: str | Path, second: str | Path) -> Changes:
    """How the columns of the second run differ from those of the first.

    Nothing is known of single texts here, so an interval adds up what both runs are unsure of, as
    if they had read different texts: it is too wide rather than too narrow.
    """
    one, other = (Run.open(path, create=False).read_table() for path in (first, second))
    _check_layers(one, other, first, second)
    shared = [name for name in one.names if name in other.names and name != "best_offset"]
    names = [name for name in shared if _measured(one, name) and _measured(other, name)]
    heads = [head for head in one.heads if head in set(other.heads)]
    if not heads or not names:
        missing = "head" if not heads else "column of numbers"
        raise UsageError(f"{first} and {second} have no {missing} in common; survey both alike.")
    ours, theirs = one.select(heads), other.select(heads)
    columns: dict[str, np.ndarray] = {}
    for name in names:
        before, after = ours.numbers(name), theirs.numbers(name)
        change, half = after - before, np.hypot(_half(ours, name), _half(theirs, name))
        columns |= {name: change, f"{name}_low": change - half, f"{name}_high": change + half}
        columns |= {f"{name}_before": before, f"{name}_after": after}
    frame = pd.DataFrame(columns, index=ours.frame.index)
    roles = None
    if "roles" in one.details and "roles" in other.details:
        roles = role_changes(one.details["roles"], other.details["roles"])
    models = [str(t.provenance.get("model", p)) for t, p in ((one, first), (other, second))]
    origins = {"before": one.provenance, "after": other.provenance}
    notes = _notes(one, other, len(heads))
    return Changes(models[0], models[1], frame, pd.DataFrame(), roles, one, origins, notes)


def _check_layers(one: HeadTable, other: HeadTable, first: Any, second: Any) -> None:
    """Refuse models of different depth: there heads of the same name are not the same."""
    for stack in one.stacks:
        layers = [sorted({h.layer for h in t.heads if h.stack == stack}) for t in (one, other)]
        if not layers[1] or len(layers[0]) == len(layers[1]):
            continue
        fewer = min((one, other), key=lambda table: len(table.stack(stack)))
        heads = [head for head in fewer.heads if head.stack == stack]
        if len(heads) == len({h.layer for h in heads}) * len({h.index for h in heads}):
            raise UsageError(
                f"{first} has {len(layers[0])} layers in {stack} and {second} has "
                f"{len(layers[1])}, so heads of the same name are not the same, and runs keep no "
                "maps to match them by; compare the models themselves with --match depth or "
                "--match maps."
            )  # where heads were removed here and there, a layer may have lost all of its own


def _measured(table: HeadTable, name: str) -> bool:
    column = table.frame[name]
    return bool(pd.api.types.is_numeric_dtype(column.dtype) and column.notna().any())


def _half(table: HeadTable, name: str) -> np.ndarray:
    """Half of an interval's width; NaN where there is none."""
    if name not in table.low or name not in table.high:
        return np.full(len(table), np.nan)
    return np.asarray((table.high[name] - table.low[name]) / 2, np.float64)


def _notes(first: HeadTable, second: HeadTable, common: int) -> list[str]:
    notes = []
    one, other = first.provenance, second.provenance
    if one.get("data") != other.get("data"):
        notes.append("The two runs read different texts; part of each change is the texts'.")
    if one.get("convention") != other.get("convention"):
        differ = f"{one.get('convention')} and {other.get('convention')}"
        notes.append(f"The conventions differ: {differ}.")
    lost = max(len(first), len(second)) - common
    if lost:
        notes.append(f"{lost} heads are in one run only and were left out.")
    return notes


# --- Changes for a terminal ---------------------------------------------------------------------


def draw_grid(changes: Changes, stack: str) -> Table:
    """Cosine of each head, layer by head: the darker, the more it changed."""
    from rich.table import Table
    from rich.text import Text

    cosine = changes.heads["cosine"].xs(stack, level="stack").unstack("head")
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("layer", style="dim")
    for head in cosine.columns:
        table.add_column(str(head), justify="right")
    # What changed most is darkest, so the shade is of 1 - cosine.
    steps = heat_steps(Column("change", range=(0, None)), 1 - cosine.to_numpy().ravel())
    shades = np.array(steps).reshape(cosine.shape)
    for layer, values, row in zip(cosine.index, cosine.to_numpy(), shades, strict=True):
        cells = [Text(_number(v), style=_shade(s)) for v, s in zip(values, row, strict=True)]
        table.add_row(f"{stack}.{layer}", *cells)
    return table


def layer_rows(layers: pd.DataFrame) -> list[list[str]]:
    """Each layer's mean cosine and divergence, and whether it changed more than the others."""
    return [
        [
            f"{row['stack']}.{row['layer']}",
            _number(row["cosine"]),
            f"{_number(row['cosine_low'])}–{_number(row['cosine_high'])}",
            _number(row["js"], ".4f"),
            _number(row["more"], "+.3f"),
            _number(row["p_adjusted"], ".2g"),
        ]
        for row in layers.to_dict("records")
    ]


def column_rows(changes: Changes) -> Iterator[list[str]]:
    """For each column its mean change, and in how many heads it rose or fell beyond doubt."""
    for row in changes.sure().to_dict("records"):
        values = changes.heads[row["column"]]
        if values.abs().max() > 0:
            head = Head(*values.abs().idxmax())
            most = f"{head} {values.loc[head]:+.3f}"
            change = f"{row['mean_change']:+.3f}"
            yield [row["column"], change, str(row["rose"]), str(row["fell"]), most]


def role_rows(roles: pd.DataFrame) -> list[list[str]]:
    """Roles that were lost or won; those that were kept are counted by the caller."""
    return [
        [
            f"{row['stack']}.{row['layer']}.{row['head']}",
            *(row[name] for name in ("role", "label", "change")),
            *(_number(row[name], ".2f") for name in ("value_before", "value_after")),
        ]
        for row in roles[roles["change"] != "kept"].to_dict("records")
    ]


def _number(value: float, shape: str = ".3f") -> str:
    return NA if np.isnan(value) else f"{value:{shape}}"


def _shade(step: int) -> str:
    """A darker background for a higher step."""
    shades = ("", "on rgb(60,60,90)", "on rgb(50,80,150)", "on rgb(170,90,40)", "on rgb(190,40,40)")
    return shades[step * len(shades) // (STEPS + 1)]


# --- On the page ----------------------------------------------------------------------------------

_KEYS = ["stack", "layer", "head"]


#: Title, what more of it means, meaning.
_MAPS = {
    "cosine": ("Cosine of maps", "alike", "Cosine of a head's maps in both models, same texts."),
    "js": ("Distance of maps", "changed", "Jensen-Shannon divergence of a head's rows in both."),
}


def compare_part(source: Source) -> dict[str, Any] | None:
    """The second model's values, how alike the maps are, and roles won and lost; else None."""
    frame, other = source.frame("changes"), source.other
    if other is None and frame is None:
        return None
    rows = pd.DataFrame() if frame is None else frame.drop_duplicates(_KEYS).set_index(_KEYS)
    stage = (source.record.get("stages") or {}).get("compare") or {}
    name = str((stage.get("settings") or {}).get("after") or "the second model")
    second, after = None, rows
    if other is not None:
        # It may be the same model on another text.
        name = f"{other.model}, second run" if other.model == source.model else other.model
        second, after = _first_roles(source, other), _after(source, other)
    columns = {
        column: _values(source, after, f"{column}_after", column)
        for column in source.table.names
        if f"{column}_after" in after
    }
    return {
        "name": name,
        "said": _changes_said(source, name, second, columns),
        "second": second,
        "columns": columns,
        "changes": [_alike(source, rows, name) for name in _MAPS if name in rows],
        "roles": _roles(source),
    }


def _after(source: Source, other: Source) -> pd.DataFrame:
    """The numbers of the other run, as ``changes.parquet`` has them."""
    ours, theirs = set(source.table.heads), set(other.table.heads)
    if not (ours <= theirs or theirs <= ours):
        raise UsageError(
            f"{other.model} has heads {_sizes(other)} and {source.model} {_sizes(source)}; "
            "compare two runs of one architecture."
        )
    return other.table.frame.select_dtypes("number").add_suffix("_after")


def _values(source: Source, rows: pd.DataFrame, value: str, name: str) -> dict[str, Any]:
    """A column at the places of the page, with the ends of its interval where it has them."""
    places = {"values": value, "lo": f"{name}_low", "hi": f"{name}_high"}
    return {key: _at(source, rows[column]) for key, column in places.items() if column in rows}


def _first_roles(source: Source, of: Source) -> list[str] | None:
    """The role that each head is counted by in a run, at the page's places; None if not judged."""
    own = role_part(of)
    if own is None:
        return None
    first = {
        head: one[0]["role"] if one else "none" for head, one in zip(of.places, own, strict=True)
    }
    return [first.get(head, "none") for head in source.places]


def _changes_said(
    source: Source, name: str, second: list[str] | None, columns: dict[str, dict[str, Any]]
) -> str:
    """What changed between two runs, in a sentence: roles, and how alike importance is."""
    said = [f"From {source.model} to {name}"]
    first = _first_roles(source, source)
    if first is not None and second is not None:
        pairs = list(zip(first, second, strict=True))
        does = [tuple(role != "none" and not KINDS[role].rests for role in one) for one in pairs]
        changed = sum(a != b for a, b in pairs)
        won, lost = does.count((False, True)), does.count((True, False))
        heads = f"{changed} of {len(pairs)} heads changed their role"
        said.append(f"{heads}: {won or 'none'} took a job up, {lost or 'none'} gave one up")
    score = next((one for one in ("ablation", "gradient") if one in columns), None)
    if score is not None:
        ours, theirs = (
            pd.Series(values, dtype=float)
            for values in (_at(source, source.table.frame[score]), columns[score]["values"])
        )
        alike = ours.corr(theirs, method="spearman", min_periods=3)
        if np.isfinite(alike):
            said.append(f"the order of importance agrees at {printed(alike, '.2f')}")
    return "" if len(said) == 1 else f"{', '.join(said[:2])}{'; ' + said[2] if said[2:] else ''}."


def _alike(source: Source, rows: pd.DataFrame, name: str) -> dict[str, Any]:
    """How alike the maps are, as a column of the page."""
    title, more, meaning = _MAPS[name]
    drawn = _values(source, rows, name, name)
    known = [value for value in drawn["values"] if value is not None]
    return {
        "id": f"change-{name}",
        "group": "What changed",
        "title": title,
        "unit": "nats" if name == "js" else "",
        "fmt": ".3f",
        "more": more,
        "meaning": meaning,
        "paper": "Kovaleva et al. 2019, section 4.3",
        "domain": [figure(min([0.0, *known])), figure(max([*known, 1e-6]))],
        **drawn,
    }


def _roles(source: Source) -> list[list[Any]]:
    """Head, role, label and whether it was won or lost."""
    frame = source.frame("role_changes")
    if frame is None:
        return []
    places = source.places
    moved = frame[frame["change"].isin(["won", "lost"])].to_dict("records")
    return [
        [places[head], *(str(row[name]) for name in ("role", "label", "change"))]
        for row in moved
        if (head := row_head(row)) in places
    ]


def _at(source: Source, values: pd.Series[Any]) -> list[Any]:
    """A series by head at the places of the page."""
    known = values.to_dict()
    return figures([known.get(tuple(head), np.nan) for head in source.places])


def _sizes(source: Source) -> str:
    return ", ".join(f"{stack} {layers} x {heads}" for stack, layers, heads in source.shape)
