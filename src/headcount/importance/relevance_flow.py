"""How much relevance was kept on the way: gathered over predictions, told layer by layer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import torch

from headcount.heads import STACKS
from headcount.importance.by_batch import Arrays
from headcount.importance.predictions import Start
from headcount.lrp.conservation import Flow

__all__ = ["FlowSums", "flow_arrays"]


def flow_arrays(flow: Flow, start: Start) -> Arrays:
    """Of all predictions of a batch, cut by cut: what came through, what biases kept, what is lost.

    `flow` is `[cut, 3]`: two sums, and the largest loss of one prediction as a share of the |R|
    that was sent; `places` is `[cut, 2]`, stack and layer; `sent` is the total of all starts.
    """
    counted = start.counted.double()
    mass = start.starts.flatten(2).abs().sum(dim=2).double()
    through, biases, sent = flow.through.double(), flow.biases.double(), flow.sent.double()
    lost = (through + biases - sent[..., None]).abs() / mass.where(mass > 0, 1.0)[..., None]
    summed = [(part * counted[..., None]).sum(dim=(0, 1)) for part in (through, biases)]
    rows = torch.stack([*summed, (lost * counted[..., None]).amax(dim=(0, 1))], dim=-1)
    places = [(STACKS.index(stack), layer) for stack, layer in flow.places]
    return {
        "flow": rows.cpu().numpy(),
        "places": np.array(places),
        "sent": (sent * counted).sum().cpu().numpy(),
    }


@dataclass
class FlowSums:
    """The flow of all batches so far."""

    sums: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    sent: float = 0.0

    def add(self, found: Arrays) -> None:
        """Take in one batch."""
        self.sent += float(found["sent"])
        for (stack, layer), row in zip(found["places"].tolist(), found["flow"], strict=True):
            place = (STACKS[stack], layer)
            old = self.sums.get(place, np.zeros(3))
            self.sums[place] = np.array([*(old + row)[:2], max(old[2], row[2])])

    def frame(self) -> pd.DataFrame:
        """A row a layer: what of the relevance sent reaches it, stays in biases, or is lost."""
        rows = [
            (*place, row[0] / self.sent, row[1] / self.sent, row[2])
            for place, row in self.sums.items()
        ]
        return pd.DataFrame(rows, columns=["stack", "layer", "through", "biases", "worst_loss"])

    def in_words(self, promise: str) -> str:
        """One sentence on what was kept."""
        frame = self.frame()
        lowest = frame.iloc[0]
        kept = f"a prediction loses at most {frame['worst_loss'].max():.1e} of it at any layer"
        there = f"{lowest.through:.0%} reaches {lowest.stack}.{int(lowest.layer)}"
        biases = f" and {lowest.biases:.0%} stays in biases" if abs(lowest.biases) >= 0.005 else ""
        return f"Relevance ({promise}): {kept}; {there}{biases}."
