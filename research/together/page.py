"""Fill the table of families in docs/results/together.md; its words are written by hand."""

from __future__ import annotations

from typing import Any

from research.pages import with_tables

__all__ = ["filled"]

HEAD = ["stack", "heads", "layer", "shuffled", "p", "role", "nearest", "clusters", "stress"]


def filled(page: str, told: dict[str, Any]) -> str:
    """The page with the table of families made again."""
    return with_tables(page, {"families": _families(told["models"])}.__getitem__)


def _families(models: dict[str, Any]) -> str:
    rows = [HEAD, ["---"] * len(HEAD)]
    for name, model in models.items():
        for stack, one in model["stacks"].items():
            layer = one["silhouette_layer"]
            near, chance = one["nearest_in_same_layer"], one["nearest_in_same_layer_by_chance"]
            rows.append([
                f"{name} {stack}", str(one["heads"]), f"{layer['value']:+.3f}",
                _between(layer["shuffled"]), f"{layer['p']:.2g}", _role(one["silhouette_role"]),
                f"{near:.0%} ({chance:.0%})", str(one["clusters"]), f"{one['stress']:.2f}",
            ])  # fmt: skip
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _role(found: dict[str, Any] | None) -> str:
    if found is None:
        return "—"
    shuffled = _between(found["shuffled"])
    return f"{found['value']:+.3f} ({found['heads']} heads), {shuffled}, p {found['p']:.2g}"


def _between(ends: list[float]) -> str:
    low, high = ends
    return f"{low:+.3f} to {high:+.3f}"
