"""One peer at work, in its own environment: the mean entropy of every head of a decoder.

Called by `benchmarks.peers`; prints one JSON line. All read the same token ids of the same folder,
and all but headcount get whole maps, which are then reduced to one number a head by torch.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Work = Callable[[Tensor], Tensor]


def mean_entropy(maps: Tensor) -> Tensor:
    """Of one layer `[batch, head, query, key]`, one number a head."""
    return torch.special.entr(maps.float()).sum(-1).mean((0, 2))


def _model(folder: str, attention: str) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, attn_implementation=attention).eval()


def plain(folder: str) -> Work:
    """The forward alone, as the model comes (sdpa)."""
    model = _model(folder, "sdpa").model
    return lambda ids: model(ids, use_cache=False).last_hidden_state


def transformers(folder: str) -> Work:
    """`output_attentions=True` with eager attention."""
    model = _model(folder, "eager").model

    def work(ids: Tensor) -> Tensor:
        found = model(ids, use_cache=False, output_attentions=True).attentions
        return torch.stack([mean_entropy(maps) for maps in found])

    return work


def bertviz(folder: str) -> Work:
    """What its views read: the same attentions, text by text, through `format_attention`."""
    from bertviz.util import format_attention

    model = _model(folder, "eager").model

    def work(ids: Tensor) -> Tensor:
        found = []
        for row in ids:
            maps = model(row[None], use_cache=False, output_attentions=True).attentions
            found.append(torch.stack([mean_entropy(one[None]) for one in format_attention(maps)]))
        return torch.stack(found).mean(0)

    return work


def transformer_lens(folder: str) -> Work:
    """`run_with_cache` with the attention patterns alone."""
    from transformer_lens.model_bridge import TransformerBridge

    model = TransformerBridge.boot_transformers(folder, device="cpu")

    def work(ids: Tensor) -> Tensor:
        _, cache = model.run_with_cache(
            ids, names_filter=lambda name: name.endswith("hook_pattern"), return_type=None
        )
        return torch.stack([mean_entropy(maps) for maps in cache.values()])

    return work


def nnsight(folder: str) -> Work:
    """Saves what each attention module returns, with eager attention."""
    from nnsight import NNsight

    inner = _model(folder, "eager").model
    model = NNsight(inner)

    def work(ids: Tensor) -> Tensor:
        with model.trace(ids, use_cache=False, output_attentions=True):
            found = [layer.self_attn.output[1].save() for layer in model.layers]
        return torch.stack([mean_entropy(maps) for maps in found])

    return work


def inseq(folder: str) -> Work:
    """The attention method on one step of generation, text by text, for the last token's row."""
    import inseq as library

    model = library.load_model(folder, "attention", device="cpu")

    def work(ids: Tensor) -> Tensor:
        found = []
        for text in model.tokenizer.batch_decode(ids):
            told = model.attribute(text, generation_args={"max_new_tokens": 1}, show_progress=False)
            maps = told.sequence_attributions[0].target_attributions
            found.append(torch.special.entr(maps.float().nan_to_num()).sum(0)[-1])
        return torch.stack(found).mean(0)

    return work


def headcount(folder: str) -> Work:
    """The survey of all default columns, of which entropy is one."""
    from functools import reduce
    from operator import or_

    from headcount.models.load import load
    from headcount.survey.survey import chosen_tallies
    from headcount.survey.tally import receivers, tabulate
    from headcount.text.batch import ready_batch
    from headcount.wiring import Needs, tap

    subject = load(folder, device="cpu")

    def work(ids: Tensor) -> Tensor:
        tallies = chosen_tallies(None, "headcount")
        needs, shown = reduce(or_, (one.needs for one in tallies), Needs()), receivers(tallies)
        with tap(subject, needs) as watch:
            watch(ready_batch({"input_ids": ids}, subject.anatomy.stacks), **shown)
        columns = [column for tally in tallies for column in tally.columns]
        table = tabulate(subject.anatomy, tallies, columns)
        layers = len({site.layer for site in subject.anatomy.sites})
        return torch.tensor(table.frame["entropy"].to_numpy()).view(layers, -1)

    return work


PEERS = {
    one.__name__: one
    for one in (transformers, bertviz, transformer_lens, nnsight, inseq, headcount)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=[*PEERS, "plain"])
    parser.add_argument("folder")
    parser.add_argument("--texts", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    torch.set_num_threads(2)
    ids = torch.randint(
        1000, 40_000, (given.texts, given.tokens), generator=torch.Generator().manual_seed(0)
    )
    with torch.no_grad():
        beside = plain(given.folder)
        beside(ids)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        work = beside if given.peer == "plain" else PEERS[given.peer](given.folder)
        found, seconds = work(ids), {"plain": list[float](), "peer": list[float]()}
        for number in range(given.rounds):
            ways = [("plain", beside), ("peer", work)]
            for name, way in ways if number % 2 else ways[::-1]:
                start = time.perf_counter()
                way(ids)
                seconds[name].append(time.perf_counter() - start)
    ratios = [b / a for a, b in zip(seconds["plain"], seconds["peer"], strict=True)]
    print(
        json.dumps(
            {
                "seconds": round(statistics.median(seconds["peer"]), 4),
                "plain": round(statistics.median(seconds["plain"]), 4),
                "ratio": round(statistics.median(ratios), 3),
                "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                "plain_peak_mib": before // 1024,
                "entropy": [] if given.peer == "plain" else found.flatten().tolist(),
            }
        )
    )


if __name__ == "__main__":
    main()
