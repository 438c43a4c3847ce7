"""The whole distribution of a head's mass by offset; opt-in, since it needs the maps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from headcount.columns import Column
from headcount.tallies.offsets import REACH
from headcount.tallies.tally import Reading, SumsTally
from headcount.wiring.needs import Needs
from headcount.wiring.sighting import Sighting

__all__ = ["OffsetMass"]


@dataclass
class OffsetMass(SumsTally):
    """Mean mass at every offset, over all real tokens; a detail table, not a column."""

    needs = Needs(maps=True)
    columns: tuple[Column, ...] = ()

    def update(self, sighting: Sighting) -> None:
        """Add the diagonals of one batch."""
        if sighting.site.stack == "cross":
            return
        assert sighting.maps is not None
        rows = sighting.queries.real
        maps = (sighting.maps * rows[:, None, :, None]).sum(0).double()
        queries, keys = maps.shape[-2:]
        offsets = (
            torch.arange(keys, device=maps.device)
            - torch.arange(queries, device=maps.device)[:, None]
        )
        bins = (offsets.clamp(-REACH, REACH) + REACH).flatten().expand(sighting.site.heads, -1)
        mass = torch.zeros(
            sighting.site.heads, 2 * REACH + 1, dtype=torch.float64, device=maps.device
        )
        mass.scatter_add_(1, bins, maps.flatten(1))
        self.sums.add(sighting.site, {"mass": mass, "tokens": rows.sum()})

    def compute(self) -> list[Reading]:
        """No column: see `details`."""
        return []

    def details(self) -> dict[str, pd.DataFrame]:
        """`offset_mass`: one row a head and offset, with the mean mass there."""
        frames = []
        for site in self.sums:
            mass = self.sums.of(site, "mass") / self.sums.of(site, "tokens")
            heads, places = mass.nonzero(as_tuple=True)
            frames.append(
                pd.DataFrame(
                    {
                        "stack": site.stack,
                        "layer": site.layer,
                        "head": np.array(site.indices)[heads.numpy()],
                        "offset": places.numpy() - REACH,
                        "mass": mass[heads, places].numpy(),
                    }
                )
            )
        return {"offset_mass": pd.concat(frames, ignore_index=True)} if frames else {}
