"""Named sums, kept for every site in float64: the whole state of a tally."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from headcount.models.site import Site

__all__ = ["Sums"]


class Sums:
    """Sums by site and name; adding is all that happens to them, so they always merge.

    >>> from headcount.models.site import Site
    >>> site = Site("enc", 0, heads=2, kv_heads=2, head_dim=4, module="a")
    >>> sums = Sums()
    >>> sums.add(site, {"hits": torch.tensor([1.0, 2.0])})
    >>> sums.add(site, {"hits": torch.tensor([3.0, 4.0])})
    >>> sums.of(site, "hits")
    tensor([4., 6.], dtype=torch.float64)
    """

    def __init__(self) -> None:
        self._sums: dict[Site, dict[str, Tensor]] = {}

    def __iter__(self) -> Iterator[Site]:
        return iter(self._sums)

    def add(self, site: Site, values: Mapping[str, Tensor]) -> None:
        """Add a tensor to each named sum of a site."""
        sums = self._sums.setdefault(site, {})
        for name, value in values.items():
            value = value.detach().to(torch.float64)
            sums[name] = sums[name] + value if name in sums else value

    def of(self, site: Site, name: str) -> Tensor:
        """One sum, on the CPU."""
        return self._sums[site][name].cpu()

    def has(self, site: Site, name: str) -> bool:
        """Whether anything was added under a name."""
        return name in self._sums.get(site, {})

    def merge(self, other: Sums) -> None:
        """Add all sums of another part of the corpus."""
        for site in other:
            device = next((v.device for v in self._sums.get(site, {}).values()), None)
            moved = {n: v if device is None else v.to(device) for n, v in other._sums[site].items()}
            self.add(site, moved)
