"""A probe told to people: how good it is, what it relies on, what it parses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headcount.cli.output import output

if TYPE_CHECKING:
    import pandas as pd

    from headcount.probes.parse import Parse
    from headcount.probes.trained import Probe

__all__ = ["print_arc", "print_parse", "print_probe", "probe_json"]

#: What each kind is, in words.
MEANINGS = {
    "right-branching": "every word hangs from the next",
    "random-init": "attention of a random twin, and words",
    "distances": "distances and words, no attention",
    "attention": "attention of all heads",
    "words": "attention of all heads, and words",
}
#: So many heads of an arc are shown.
_SHOWN = 10


def print_probe(probe: Probe) -> None:
    """UAS of every kind, then the heads that the probe relies on."""
    from headcount.cli.ranking import print_ranking
    from headcount.probes.summary import summary

    rows = []
    found: Any = summary(probe.hits)
    for row in found.itertuples():
        seeds = f"{row.seed_low:.3f} to {row.seed_high:.3f}" if row.seeds > 1 else ""
        known = row.low == row.low  # one sentence has no interval
        uas, ends = f"{row.uas:.3f}", f"[{row.low:.3f}, {row.high:.3f}]" if known else ""
        rows.append([row.probe, MEANINGS[row.probe], uas, ends, seeds])
    _print(["probe", "what it sees", "UAS", "95%", "over seeds"], rows)
    about = probe.provenance
    test = about["test"]
    output().print(
        f"Trained on {_sentences(about['settings']['train'])} of {about['corpus']}, tested on "
        f"{test['sentences']:,} ({test['corpus']}); punctuation left out.",
        style="dim",
    )
    if probe.table is not None:
        print_ranking(probe.table, "probe_weight")


def _sentences(count: int) -> str:
    """So many, in words."""
    return "1 sentence" if count == 1 else f"{count:,} sentences"


def print_parse(parse: Parse) -> None:
    """A row a word."""
    frame: Any = parse.frame
    rows = [
        [str(row.word), row.form, f"{row.head} {row.head_form}", f"{row.chance:.2f}"]
        for row in frame.itertuples()
    ]
    _print(["", "word", "head", "chance"], rows)


def print_arc(parse: Parse, arc: pd.DataFrame, dependent: str, head: str) -> None:
    """The heads that spoke loudest for an arc, or against it."""
    margin = arc["margin"].sum()
    output().print(
        f"{dependent} → {head}: all heads together put it {margin:+.2f} above the mean candidate."
    )
    shown: Any = arc.head(_SHOWN)
    rows = [[row.head, f"{row.margin:+.3f}"] for row in shown.itertuples()]
    _print(["head", "margin"], rows)


def probe_json(
    probe: Probe, trained: bool, parse: Parse | None, arc: pd.DataFrame | None
) -> dict[str, Any]:
    """All of it for machines."""
    from headcount.exact_json import to_strict
    from headcount.probes.summary import summary

    told: dict[str, Any] = {"kind": probe.kind, "model": probe.subject.name}
    if trained:
        told["results"] = to_strict(probe.results.to_dict("records"))
        told["summary"] = to_strict(summary(probe.hits).to_dict("records"))
        told["table"] = None if probe.table is None else probe.table.to_dict()
        told["provenance"] = to_strict(probe.provenance)
    if parse is not None:
        told["parse"] = to_strict(parse.frame.to_dict("records"))
    if arc is not None:
        told["explained"] = to_strict(arc.to_dict("records"))
    return told


def _print(headings: list[str], rows: list[list[str]]) -> None:
    from rich.table import Table

    drawn = Table(box=None)
    for heading in headings:
        drawn.add_column(heading)
    for row in rows:
        drawn.add_row(*row)
    output().print(drawn)
