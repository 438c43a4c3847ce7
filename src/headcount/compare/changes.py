"""What changed between two models: a row a head, a row a layer, and the roles won and lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headcount.heads import Head
from headcount.run import Run
from headcount.table import HeadTable

__all__ = ["Changes"]


@dataclass
class Changes:
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
        """Write a run directory of the first model with `changes.parquet` beside its table."""
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
        from headcount.exact_json import to_strict

        told = {
            "before": self.before,
            "after": self.after,
            "heads": self.heads.reset_index().to_dict("records"),
            "layers": self.layers.to_dict("records"),
            "roles": None if self.roles is None else self.roles.to_dict("records"),
            "notes": self.notes,
            "provenance": self.provenance,
        }
        found: dict[str, Any] = to_strict(told)
        return found
