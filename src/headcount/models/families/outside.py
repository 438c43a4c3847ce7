"""Families that do not speak the attention interface, and how their heads are reached."""

from __future__ import annotations

from torch import nn

from headcount.models.site import Site

__all__ = ["outside_sites"]


def outside_sites(model: nn.Module) -> list[Site]:
    """The sites of a family outside the interface; none for a family inside it."""
    return []
