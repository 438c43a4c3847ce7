"""Families among the stages of a story."""

from __future__ import annotations

from typing import Any

import numpy as np

from headcount.cli import output
from headcount.records import parse_head, to_strict
from headcount.reports import (
    Source,
    StageMaker,
    StoryContext,
    StoryStage,
    figure,
    figures,
    forward_steps,
    printed,
)
from headcount.rooms.families.grouping import draw_nearest, families, family_sentences
from headcount.rooms.families.similarity import Families

#: Texts that settle which heads are alike.
_TEXTS = 96


def families_stage(context: StoryContext) -> StoryStage:
    """Divergences between all heads of a stack, a map of them, clusters and nearest heads."""
    texts = context.some_texts(_TEXTS)

    def work() -> list[str]:
        found = families(
            context.subject, texts, batch_size=min(8, context.batch_size), seed=context.seed
        )
        context.run.write_arrays("pairs", found.arrays())
        return []

    settings = {"texts": texts.hash, "seed": context.seed, "convention": "headcount"}
    title = "Which heads are alike"
    return StoryStage(
        "families", title, settings, work, runs=forward_steps(context, 4.0 * len(texts))
    )


STAGE = StageMaker(families_stage, after="exhibits")


# --- On the page ----------------------------------------------------------------------------------


def pair_part(source: Source) -> dict[str, Any] | None:
    """The map of heads, its stress, and for each head its nearest with their distance."""
    pairs = source.pairs
    if "mds" not in pairs or "heads" not in pairs:
        return None
    places = source.places
    rows = {
        places[head]: row
        for row, name in enumerate(pairs["heads"].tolist())
        if (head := parse_head(str(name))) in places
    }
    numbers = {row: place for place, row in rows.items()}
    at = [rows.get(place) for place in range(len(places))]
    known = np.array([np.nan if row is None else pairs["mds"][row, 0] for row in at])
    other = np.array([np.nan if row is None else pairs["mds"][row, 1] for row in at])
    return {
        "x": figures(known, 3),
        "y": figures(other, 3),
        "near": [[] if row is None else _near(pairs, row, numbers) for row in at],
        "notes": {
            stack: _map_note(pairs, row) for row, stack in enumerate(_words(pairs, "stacks"))
        },
    }


def _near(pairs: dict[str, np.ndarray], row: int, numbers: dict[int, int]) -> list[list[Any]]:
    found = []
    for other in pairs["nearest"][row].tolist():
        if other >= 0 and other in numbers:
            found.append([numbers[other], figure(pairs["js"][row, other], 3)])
    return found


def _map_note(pairs: dict[str, np.ndarray], row: int) -> str:
    """What a stack's map is, how far it may be trusted, and whether layers hang together."""
    words = ["Near means alike: Jensen-Shannon distance of maps (Clark et al. 2019, figure 6)."]
    if row < len(pairs.get("tokens", [])):
        words.append(f"Over {int(pairs['tokens'][row]):,} tokens.")
    stress = pairs.get("stress", np.array([]))[row : row + 1]
    for value in stress[np.isfinite(stress)]:
        words.append(f"Stress {value:.2f}: read neighbourhoods, not exact distances.")
    if "silhouette_shuffled" in pairs and np.isfinite(pairs["silhouette"][row]):
        found, (low, high) = pairs["silhouette"][row], pairs["silhouette_shuffled"][row]
        alike = "more alike than chance" if found > high else "no more alike than chance"
        values = f"silhouette {printed(found)}, shuffled {printed(low)} to {printed(high)}"
        words.append(f"Heads of a layer are {alike} ({values}).")
    return " ".join(words)


def _words(pairs: dict[str, np.ndarray], name: str) -> list[str]:
    return [str(word) for word in pairs.get(name, np.array([])).tolist()]


# --- In the terminal: survey --show families ------------------------------------------------------


def families_json(found: Families) -> dict[str, Any]:
    """The figures of each stack, and every head's cluster, place and nearest heads."""
    stacks = {
        stack: {
            "silhouette": float(found.silhouette[number]),
            "silhouette_shuffled": found.silhouette_shuffled[number].tolist(),
            "p": float(found.silhouette_p[number]),
            "stress": float(found.stress[number]),
        }
        for number, stack in enumerate(found.stacks)
    }
    heads = {
        str(head): {
            "cluster": int(found.cluster[place]),
            "place": found.mds[place].tolist(),
            "nearest": {str(other): js for other, js in found.near(head)},
        }
        for place, head in enumerate(found.heads)
    }
    return {"families": to_strict({"stacks": stacks, "heads": heads})}


def print_families(found: Families) -> None:
    """The pairs most alike, and a sentence for each stack."""
    console = output()
    console.print()
    console.print(draw_nearest(found))
    for line in family_sentences(found):
        console.print(line)
