"""Divergences of all pairs of heads and the roles of heads, in one pass over the same texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import headcount as hc
from headcount.rooms.families.divergence import Divergence
from headcount.rooms.families.grouping import Families, families_of_tally, silhouette_test

__all__ = ["families", "first_roles", "told"]


def families(
    config: dict[str, Any], data: Path, seed: int
) -> dict[str, tuple[Families, hc.HeadTable]]:
    """By model: its families and its table, which has the roles."""
    found = {}
    for name in config["models"] + config["translators"]:
        subject, tally = hc.load(name), Divergence()
        text = (
            {"treebank": str(data / config["treebank"])}
            if name in config["models"]
            else {"corpus": str(data / config["pairs"]), "roles": True}
        )
        table = hc.survey(
            subject,
            **text,
            tallies=[tally],
            limit=config["texts"],
            reading=hc.ReadingOptions(seed=seed),
        )
        found[name] = families_of_tally(subject, tally, seed=seed), table
        print(f"{name}: done", flush=True)
    return found


def first_roles(table: hc.HeadTable) -> dict[str, str]:
    """The first role of each head that has one; verdicts stand role by role, strongest first."""
    held: dict[str, str] = {}
    for row in table.details["roles"].itertuples():
        held.setdefault(f"{row.stack}.{row.layer}.{row.head}", str(row.role))
    return held


def told(found: Families, table: hc.HeadTable) -> dict[str, Any]:
    """What is told of a model: by stack, silhouettes of layers and of roles, and neighbours."""
    roles = first_roles(table)
    counts = table.provenance["counts"]
    return {
        "texts": counts["sentences"],
        "tokens": dict(counts["tokens"]),
        "stacks": {
            stack: _stack(found, number, stack, roles) for number, stack in enumerate(found.stacks)
        },
        "heads": {
            str(head): {
                "place": np.round(found.mds[row], 5).tolist(),
                "cluster": int(found.cluster[row]),
                "role": roles.get(str(head)),
                "nearest": {str(other): round(js, 5) for other, js in found.near(head, 3)},
            }
            for row, head in enumerate(found.heads)
        },
        "provenance": _origin(table.provenance),
    }


def _stack(found: Families, number: int, stack: str, roles: dict[str, str]) -> dict[str, Any]:
    rows = np.array([row for row, head in enumerate(found.heads) if head.stack == stack])
    js = found.js[np.ix_(rows, rows)].astype(np.float64)
    layers = np.array([found.heads[row].layer for row in rows])
    same = (layers[:, None] == layers[None]) & ~np.eye(len(rows), dtype=bool)
    near = found.nearest[rows, 0]
    told = {
        "heads": len(rows),
        "clusters": int(found.cluster[rows].max() + 1),
        "stress": float(found.stress[number]),
        "silhouette_layer": {
            "value": float(found.silhouette[number]),
            "shuffled": found.silhouette_shuffled[number].tolist(),
            "p": float(found.silhouette_p[number]),
        },
        "mean_js_same_layer": float(js[same].mean()),
        "mean_js_other_layers": float(js[layers[:, None] != layers[None]].mean()),
        "nearest_in_same_layer": float(np.mean([found.heads[n].layer for n in near] == layers)),
        "nearest_in_same_layer_by_chance": float(same.sum() / (len(rows) * (len(rows) - 1))),
    }
    return told | {"silhouette_role": _by_role(js, [found.heads[row] for row in rows], roles)}


def _by_role(js: np.ndarray, heads: list[hc.Head], roles: dict[str, str]) -> dict[str, Any] | None:
    """Whether heads of a role lie together, among the heads that have one."""
    kept = [place for place, head in enumerate(heads) if str(head) in roles]
    labels = [roles[str(heads[place])] for place in kept]
    if not 2 <= len(set(labels)) < len(labels):
        return None
    value, low, high, p = silhouette_test(js[np.ix_(kept, kept)], labels)
    return {"value": value, "shuffled": [low, high], "p": p, "heads": len(kept)}


def _origin(about: dict[str, Any]) -> dict[str, Any]:
    """Without the command as typed, which names folders of a machine."""
    return {name: about[name] for name in ("model", "weights", "data", "versions", "time")}
