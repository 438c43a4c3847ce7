"""`headcount bench`: how fast a pruned model is against the whole one, and what was promised."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import headcount as hc
from headcount import pruning
from headcount.cli import Json, argument, echo, loaded, output, print_json, without
from headcount.errors import UsageError
from headcount.models import LoadOptions, find
from headcount.records import option


@dataclass(frozen=True)
class BenchArguments:
    """What is timed, and how often."""

    share: float = option(0.5, None, "Without PRUNED: the share of every layer's heads that goes.")
    batches: str = option("1,4,16,64", None, "Batch sizes.")
    lengths: str = option("32,128", None, "Lengths in tokens.")
    pairs: int = option(15, "N", "Pairs of runs, whole and pruned in turn.", key_of="timing")
    way: str = option(
        "plain",
        "HOW",
        "How both are run: plain, graph (CUDA graphs) or compile.",
        key_of="timing",
    )


def bench_command(
    asked: BenchArguments,
    load: Annotated[LoadOptions, without("revision", "tokenizer")],
    whole: Annotated[
        str | None,
        argument("WHOLE", "A model; without it, the measured speed promises are shown."),
    ] = None,
    pruned: Annotated[
        str | None,
        argument(
            "PRUNED", "The same model with heads removed; without it, --share of its heads go."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Time a pruned model against the whole one: costs, latency, and where the rest went.

    [dim]headcount bench minilm small/model[/dim]
    [dim]headcount bench minilm --share 0.5 --batches 16,64 --lengths 128[/dim]
    [dim]headcount bench[/dim]
    """
    if whole is None:
        # What the benchmarks of the repository found, or where they are to be had.
        rows = read_results()
        if json:
            print_json({"promises": rows})
        elif rows:
            output().print(bench_lines(rows), soft_wrap=True)
        else:
            echo(
                "There are no measured promises here: they lie in research/benchmarks/results of "
                "the repository, where `make bench` measures them. To time a model of yours, run "
                "headcount bench MODEL."
            )
        return
    batches, lengths = numbers(asked.batches, "--batches"), numbers(asked.lengths, "--lengths")
    _check(asked, pruned)
    for name in (whole, pruned) if pruned is not None else (whole,):
        find(name)
    from headcount.rooms.bench.speed import even_heads, latency

    one = loaded(whole, load)
    other = (
        pruning.prune(one, even_heads(one, asked.share)) if pruned is None else loaded(pruned, load)
    )
    if pruned is not None:
        _check_related(one, other)
    how: dict[str, Any] = {"pairs": asked.pairs, "way": asked.way}
    report = latency(one, other, batches=batches, lengths=lengths, **how)
    if json:
        print_json(report.to_json())
    else:
        output().print(str(report), soft_wrap=True)


def _check_related(whole: hc.Subject, pruned: hc.Subject) -> None:
    """Refuse strangers: the second model must be the first without some heads."""
    kinds = [one.inner.config.model_type for one in (whole, pruned)]
    sizes = [getattr(one.inner.config, "hidden_size", None) for one in (whole, pruned)]
    ours, theirs = set(whole.heads), set(pruned.heads)
    related = {*kinds} <= {"llama", "mistral"} or kinds[0] == kinds[1]
    if not related or sizes[0] != sizes[1] or not theirs <= ours:
        raise UsageError(
            f"{pruned.name} ({kinds[1]}, {len(theirs)} heads) is not {whole.name} ({kinds[0]}, "
            f"{len(ours)} heads) without some heads; name the whole model first, then the same "
            "model pruned."
        )
    if theirs == ours:
        raise UsageError(
            f"{pruned.name} has all {len(ours)} heads of {whole.name}: nothing was removed, so "
            "there is nothing to compare; name a pruned model, or none for --share."
        )


def numbers(words: str, option: str) -> list[int]:
    """Whole numbers of 1 or more, with commas between.

    >>> numbers("1,16", "--batches")
    [1, 16]
    """
    found = [word.strip() for word in words.split(",") if word.strip()]
    if not found or not all(word.isdecimal() and int(word) > 0 for word in found):
        raise UsageError(f"{option} is '{words}'; give whole numbers of 1 or more, e.g. 1,16.")
    return [int(word) for word in found]


def _check(asked: BenchArguments, pruned: str | None) -> None:
    """Refuse what cannot be before any model is loaded."""
    from headcount.rooms.bench.speed import check_timing

    check_timing(asked.pairs, asked.way, asked.share)
    if pruned is not None and asked.share != BenchArguments.share:
        raise UsageError("--share is what goes where no PRUNED model is given; leave one out.")


# --- The speed promises as far as they were measured --------------------------------------------

Row = dict[str, Any]


def read_results(folder: Path | None = None) -> list[Row]:
    """Every ratio that has an aim, from the JSON files of the repository that one is in."""
    place = folder or _found()
    if place is None:
        return []
    return [
        row
        for path in sorted(place.glob("*.json"))
        for row in _rows(path.stem, json.loads(path.read_text(encoding="utf8")))
    ]


def bench_lines(rows: list[Row]) -> str:
    """The rows as lines of text."""
    lines = [
        "Ratios of times measured side by side: median of the rounds, and the middle half of them.",
        "An aim is the most it may cost against the plain work; 'at least', how often faster.",
        "",
    ]
    for row in rows:
        span = "" if row["low"] is None else f" [{row['low']:g}, {row['high']:g}]"
        aim = f"aim {'at least ' if row['more'] == 'better' else ''}{row['aim']}"
        aim += ", missed" if _missed(row) else ""
        lines.append(f"{row['work']:28} {row['value']:8g}{span:22} {aim}  {row['what']}")
    return "\n".join(lines)


def _missed(row: Row) -> bool:
    short = row["value"] < row["aim"]
    return short if row["more"] == "better" else row["value"] > row["aim"]


def _found() -> Path | None:
    """The results here, or next to the package where it is run from its repository."""
    for root in (Path.cwd(), Path(__file__).parents[4]):
        if (root / "research" / "benchmarks" / "results").is_dir():
            return root / "research" / "benchmarks" / "results"
    return None


def _rows(name: str, found: Any) -> Iterator[Row]:
    """Walk through whatever a benchmark wrote: a ratio and an aim make a row."""
    if isinstance(found, list):
        for one in found:
            yield from _rows(name, one)
    elif isinstance(found, dict):
        if "ratio" in found and "aim" in found:
            yield from _aimed(name, found)
        for key, value in found.items():
            if isinstance(value, list | dict) and key not in ("ratio", "aim"):
                yield from _rows(f"{name} {key}", value)


def _aimed(name: str, found: Row) -> Iterator[Row]:
    ratio, aim = found["ratio"], found["aim"]
    if isinstance(aim, dict):
        for key in aim:
            yield _row(f"{name}, {key}", found, ratio[key], aim[key])
    else:
        yield _row(name, found, ratio, aim)


def _row(name: str, found: Row, ratio: Row, aim: Any) -> Row:
    return {
        "work": name,
        "what": found.get("what", ""),
        "value": found.get("over_floor", ratio["median"]),
        "low": None if "over_floor" in found else ratio["low"],
        "high": None if "over_floor" in found else ratio["high"],
        "aim": aim,
        "more": found.get("more", ""),
    }
