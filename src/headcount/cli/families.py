"""Families of heads on the command line: `survey --families`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headcount.cli.output import output

if TYPE_CHECKING:
    from headcount.head_families import Families
    from headcount.run import Run
    from headcount.subject import Subject
    from headcount.table import HeadTable
    from headcount.tallies.divergence import Divergence

__all__ = ["families_json", "print_families", "watched", "write_families"]


def watched(convention: str) -> list[Divergence]:
    """The tally to take along on a survey."""
    from headcount.tallies.divergence import Divergence

    return [Divergence(convention)]


def write_families(
    run: Run | None,
    subject: Subject,
    tallies: list[Divergence],
    table: HeadTable,
    seed: int | None,
) -> Families | None:
    """What the tally found, also as the run's pairs.npz; None where it was not taken along."""
    if not tallies:
        return None
    from headcount.families import families_of_tally

    about = table.provenance
    found = families_of_tally(subject, tallies[0], seed=seed or 0, about=about)
    if run is not None:
        run.write_arrays("pairs", found.arrays())
        settings = {"convention": about["convention"], **about["settings"]}
        run.stage("families").finish(settings, about)
    return found


def families_json(found: Families | None) -> dict[str, Any]:
    """The figures of each stack, and every head's cluster, place and nearest heads."""
    if found is None:
        return {}
    from headcount.exact_json import to_strict

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


def print_families(found: Families | None) -> None:
    """The pairs most alike, and a sentence for each stack."""
    if found is None:
        return
    from headcount.families_text import draw_nearest, family_sentences

    console = output()
    console.print()
    console.print(draw_nearest(found))
    for line in family_sentences(found):
        console.print(line)
