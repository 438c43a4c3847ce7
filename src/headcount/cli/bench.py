"""`headcount bench`: how fast a pruned model is beside the whole one, and what was promised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headcount.cli import options
from headcount.cli.loading import loaded
from headcount.cli.output import output, print_json
from headcount.errors import UsageError
from headcount.models.find import find

if TYPE_CHECKING:
    from headcount.subject import Subject

__all__ = ["bench"]

SHARE = 0.5


def bench(
    whole: Annotated[
        str | None,
        typer.Argument(
            metavar="WHOLE",
            help="A model; without it, the measured speed promises are shown.",
            show_default=False,
        ),
    ] = None,
    pruned: Annotated[
        str | None,
        typer.Argument(
            metavar="PRUNED",
            help="The same model with heads removed; without it, --share of its heads go.",
            show_default=False,
        ),
    ] = None,
    share: Annotated[
        float, typer.Option(help="Without PRUNED: the share of every layer's heads that goes.")
    ] = SHARE,
    batches: Annotated[str, typer.Option(help="Batch sizes.")] = "1,4,16,64",
    lengths: Annotated[str, typer.Option(help="Lengths in tokens.")] = "32,128",
    pairs: Annotated[int, typer.Option(help="Pairs of runs, whole and pruned in turn.")] = 15,
    way: Annotated[
        str, typer.Option(help="How both are run: plain, graph (CUDA graphs) or compile.")
    ] = "plain",
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    allow_bin: options.AllowBin = False,
    trust_remote_code: options.RemoteCode = False,
    json: options.Json = False,
) -> None:
    """Time a pruned model beside the whole one: costs, latency, and where the rest went.

    [dim]headcount bench minilm small/model[/dim]
    [dim]headcount bench minilm --share 0.5 --batches 16,64 --lengths 128[/dim]
    [dim]headcount bench[/dim]
    """
    if whole is None:
        _promises(json)
        return
    sizes = numbers(batches, "--batches"), numbers(lengths, "--lengths")
    _check(share, pairs, way, pruned)
    for name in (whole, pruned) if pruned is not None else (whole,):
        find(name)
    one = loaded(
        whole,
        device=device,
        dtype=dtype,
        allow_bin=allow_bin,
        trust_remote_code=trust_remote_code,
    )
    other = (
        _cut(one, share)
        if pruned is None
        else loaded(
            pruned,
            device=device,
            dtype=dtype,
            allow_bin=allow_bin,
            trust_remote_code=trust_remote_code,
        )
    )
    _compare(one, other, *sizes, pairs, way, json)


def numbers(words: str, option: str) -> list[int]:
    """Whole numbers of 1 or more, with commas between.

    >>> numbers("1,16", "--batches")
    [1, 16]
    """
    found = [word.strip() for word in words.split(",") if word.strip()]
    if not found or not all(word.isdecimal() and int(word) > 0 for word in found):
        raise UsageError(f"{option} is '{words}'; give whole numbers of 1 or more, e.g. 1,16.")
    return [int(word) for word in found]


def _check(share: float, pairs: int, way: str, pruned: str | None) -> None:
    """Refuse what cannot be before any model is loaded."""
    from headcount.pruning.bench_options import check_pairs, check_share, check_way_name

    check_pairs(pairs)
    check_way_name(way)
    check_share(share)
    if pruned is not None and share != SHARE:
        raise UsageError("--share is what goes where no PRUNED model is given; leave one out.")


def _cut(subject: Subject, share: float) -> Subject:
    from headcount.pruning.even import even_heads
    from headcount.pruning.remove import prune

    return prune(subject, even_heads(subject, share))


def _compare(
    one: Subject,
    other: Subject,
    batches: list[int],
    lengths: list[int],
    pairs: int,
    way: str,
    json: bool,
) -> None:
    from headcount.cli.progress import bar
    from headcount.pruning.latency import latency

    with bar("Timing", "cells") as update:
        report = latency(
            one,
            other,
            batches=batches,
            lengths=lengths,
            pairs=pairs,
            way=way,  # type: ignore[arg-type]
            progress=update,
        )
    if json:
        print_json(report.to_json())
    else:
        output().print(str(report), soft_wrap=True)


def _promises(json: bool) -> None:
    """What the benchmarks of the repository found, or where they are to be had."""
    from headcount.cli.bench_results import read_results, told

    rows = read_results()
    if json:
        print_json({"promises": rows})
    elif rows:
        output().print(told(rows), soft_wrap=True)
    else:
        typer.echo(
            "There are no measured promises here: they lie in benchmarks/results of the "
            "repository, where `make bench` measures them. To time a model of yours, run "
            "headcount bench MODEL."
        )
