"""`headcount bench`: how fast a pruned model is against the whole one, and what was promised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import headcount as hc
from headcount import pruning
from headcount.cli import Json, argument, loaded, output, print_json, without
from headcount.errors import UsageError
from headcount.models import LoadOptions, find
from headcount.records import option


@dataclass(frozen=True)
class BenchArguments:
    """What is timed, and how often."""

    share: float = option(0.5, None, "Without PRUNED: the share of every layer's heads to cut.")
    batches: str = option("1,4,16,64", None, "Batch sizes, with | between.", key_of="timing")
    lengths: str = option("32,128", None, "Lengths in tokens, with | between.", key_of="timing")
    pairs: int = option(15, "N", "Pairs of runs, whole and pruned in turn.", key_of="timing")
    way: str = option(
        "plain", "HOW", "How both are run: plain, graph (CUDA graphs) or compile.", key_of="timing"
    )
    engine: str | None = option(
        None,
        "NAME",
        "Generate in an engine: tokens a second, first token, memory, size on disk.",
        choices=("transformers", "llama.cpp", "vllm", "onnx"),
    )
    tokens: int = option(32, "N", "New tokens of each text.", least=1, key_of="timing")


def bench_command(
    asked: BenchArguments,
    load: Annotated[LoadOptions, without("revision", "tokenizer")],
    whole: Annotated[str | None, argument("WHOLE", "A model.")] = None,
    pruned: Annotated[
        str | None,
        argument(
            "PRUNED", "The same model with heads removed; without it, --share of its heads go."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Time a pruned model against the whole one, operation by operation.

    [dim]headcount bench minilm small/model[/dim]
    [dim]headcount bench minilm --share 0.5 --timing 'batches=16|64,lengths=128'[/dim]
    [dim]headcount bench smollm2 small/gguf/model.gguf --engine llama.cpp[/dim]
    """
    if whole is None:
        raise UsageError(
            "No model was given to time; name one: headcount bench MODEL, or headcount bench WHOLE "
            "PRUNED."
        )
    how: dict[str, Any]
    batches, lengths = (
        numbers(asked.batches, "--timing batches"),
        numbers(asked.lengths, "--timing lengths"),
    )
    _check(asked, pruned)
    if asked.engine is not None:
        from headcount.rooms.bench.engines import serving_speed

        models = [name for name in (whole, pruned) if name is not None]
        how = {"batches": batches, "length": lengths[0], "tokens": asked.tokens}
        served = serving_speed(asked.engine, models, **how)
        print_json(vars(served)) if json else output().print(str(served), soft_wrap=True)
        return
    for name in (whole, pruned) if pruned is not None else (whole,):
        find(name)
    from headcount.rooms.bench.speed import even_heads, latency

    one = loaded(whole, load)
    other = (
        pruning.prune(one, even_heads(one, asked.share)) if pruned is None else loaded(pruned, load)
    )
    if pruned is not None:
        _check_related(one, other)
    how = {"pairs": asked.pairs, "way": asked.way}
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
    """Whole numbers of 1 or more, with | between, or commas.

    >>> numbers("1|16", "--timing batches")
    [1, 16]
    """
    found = [word.strip() for word in words.replace("|", ",").split(",") if word.strip()]
    if not found or not all(word.isdecimal() and int(word) > 0 for word in found):
        raise UsageError(f"{option} is '{words}'; give whole numbers of 1 or more, e.g. 1|16.")
    return [int(word) for word in found]


def _check(asked: BenchArguments, pruned: str | None) -> None:
    """Refuse what cannot be before any model is loaded."""
    from headcount.rooms.bench.speed import check_timing

    check_timing(asked.pairs, asked.way, asked.share)
    if pruned is not None and asked.share != BenchArguments.share:
        raise UsageError("--share replaces the PRUNED model; give one of the two.")
