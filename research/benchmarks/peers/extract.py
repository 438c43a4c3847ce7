"""One peer at work, in its own environment: the mean entropy of every head of a model.

Called by `research.benchmarks.peers`; prints one JSON line. All read the same token ids and the
same folder, and all but headcount get whole maps, which are then reduced to one number a head.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

#: Token ids and which of them are no padding, each `[row, token]`.
Batches = list[tuple[Tensor, Tensor]]
Work = Callable[[Batches], Tensor]


def peak_mib() -> int:
    """As `research.benchmarks.interleave.peak_mib`, which a peer's environment does not have."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) // 1024


def entropies(maps: Tensor, real: Tensor) -> Tensor:
    """Of one layer `[batch, head, query, key]`, the mean over real queries, summed over rows."""
    found = torch.special.entr(maps.float()).sum(-1) * real[:, None]
    return (found.sum(2) / real.sum(1, keepdim=True)).sum(0)


def over_batches(each: Callable[[Tensor, Tensor], Tensor]) -> Work:
    """A work that adds up the sums of all batches, and divides by the rows."""

    def work(batches: Batches) -> Tensor:
        total = sum(each(ids, real) for ids, real in batches)
        return total / sum(len(real) for _, real in batches)

    return work


def rows_of(ids: Tensor, real: Tensor) -> list[Tensor]:
    """Every row without its padding."""
    return [row[: int(own.sum())][None] for row, own in zip(ids, real, strict=True)]


def _model(folder: str, attention: str) -> Any:
    """The model without the layer that predicts tokens."""
    from transformers import AutoModel

    return AutoModel.from_pretrained(folder, attn_implementation=attention).eval()


def _options(model: Any) -> dict[str, bool]:
    """A decoder keeps no cache; an encoder knows no such option."""
    return {"use_cache": False} if model.config.model_type != "bert" else {}


def plain(folder: str) -> Work:
    """The forward alone, as the model comes (sdpa)."""
    model = _model(folder, "sdpa")

    def work(batches: Batches) -> Tensor:
        return torch.stack(
            [
                model(ids, attention_mask=real, **_options(model)).last_hidden_state.mean()
                for ids, real in batches
            ]
        )

    return work


def transformers(folder: str) -> Work:
    """`output_attentions=True` with eager attention, reduced by torch."""
    model = _model(folder, "eager")

    @over_batches
    def work(ids: Tensor, real: Tensor) -> Tensor:
        how = {"output_attentions": True, "attention_mask": real} | _options(model)
        return torch.stack([entropies(maps, real) for maps in model(ids, **how).attentions])

    return work


def transformers_numpy(folder: str) -> Work:
    """The same, reduced by NumPy as most scripts do it."""
    import numpy as np

    model = _model(folder, "eager")

    @over_batches
    def work(ids: Tensor, real: Tensor) -> Tensor:
        how = {"output_attentions": True, "attention_mask": real} | _options(model)
        maps = np.stack([one.numpy() for one in model(ids, **how).attentions])
        entropy = -(maps * np.log(maps + 1e-30)).sum(-1)
        rows = (entropy * real.numpy()[None, :, None]).sum(3) / real.numpy().sum(1)[None, :, None]
        return torch.from_numpy(rows.sum(1))

    return work


def bertviz(folder: str) -> Work:
    """What its views read: the same attentions, text by text, through `format_attention`."""
    from bertviz.util import format_attention

    model = _model(folder, "eager")

    @over_batches
    def work(ids: Tensor, real: Tensor) -> Tensor:
        found = []
        for row in rows_of(ids, real):
            maps = format_attention(
                model(row, output_attentions=True, **_options(model)).attentions
            )
            ones = torch.ones_like(row)
            found.append(torch.stack([entropies(one[None], ones) for one in maps]))
        return torch.stack(found).sum(0)

    return work


def transformer_lens(folder: str) -> Work:
    """`run_with_cache` with the attention patterns alone."""
    from transformer_lens.model_bridge import TransformerBridge

    model = TransformerBridge.boot_transformers(folder, device="cpu")

    @over_batches
    def work(ids: Tensor, real: Tensor) -> Tensor:
        named = {"names_filter": lambda name: name.endswith("hook_pattern"), "return_type": None}
        padded = {} if bool(real.all()) else {"attention_mask": real}
        _, cache = model.run_with_cache(ids, **named, **padded)
        return torch.stack([entropies(maps, real) for maps in cache.values()])

    return work


def nnsight(folder: str) -> Work:
    """Saves what each attention module returns, with eager attention."""
    import nnsight as library

    inner = _model(folder, "eager")
    model, options = library.NNsight(inner), _options(inner)
    encoder = hasattr(model, "encoder")
    modules = [
        layer.attention.self if encoder else layer.self_attn
        for layer in (model.encoder.layer if encoder else model.layers)
    ]

    @over_batches
    def work(ids: Tensor, real: Tensor) -> Tensor:
        with model.trace(ids, attention_mask=real, output_attentions=True, **options):
            found = library.save([])
            for module in modules:
                found.append(module.output[1])
        return torch.stack([entropies(maps, real) for maps in found])

    return work


def inseq(folder: str) -> Work:
    """The attention method for one token to come, text by text: the last row of every map."""
    import inseq as library

    model = library.load_model(folder, "attention", device="cpu")

    def work(batches: Batches) -> Tensor:
        found = []
        whole = [row[0] for batch in batches for row in rows_of(*batch)]
        for text in model.tokenizer.batch_decode(whole):
            told = model.attribute(text, generation_args={"max_new_tokens": 1}, show_progress=False)
            maps = told.sequence_attributions[0].target_attributions
            found.append(torch.special.entr(maps.float().nan_to_num()).sum(0)[-1])
        return torch.stack(found).mean(0)

    return work


def headcount(folder: str) -> Work:
    """The survey of all default columns, of which entropy is one."""
    from functools import reduce
    from operator import or_

    from headcount.models.loading import load
    from headcount.surveys.surveying import chosen_tallies
    from headcount.surveys.tally import readings_of, receivers, tabulate
    from headcount.text.batch import ready_batch
    from headcount.wiring import Needs, tap

    subject = load(folder, device="cpu")

    def work(batches: Batches) -> Tensor:
        tallies = chosen_tallies(None, "headcount")
        needs, shown = reduce(or_, (one.needs for one in tallies), Needs()), receivers(tallies)
        with tap(subject, needs) as watch:
            for ids, real in batches:
                inputs = {"input_ids": ids, "attention_mask": real}
                watch(ready_batch(inputs, subject.anatomy.stacks), **shown)
        columns = [column for tally in tallies for column in tally.columns]
        table = tabulate(subject.anatomy, readings_of(tallies), columns)
        layers = len({site.layer for site in subject.anatomy.sites})
        return torch.tensor(table.frame["entropy"].to_numpy()).view(layers, -1)

    return work


PEERS: dict[str, Callable[[str], Work]] = {
    one.__name__: one
    for one in (
        plain, headcount, transformers, transformers_numpy, bertviz, transformer_lens, nnsight,
        inseq,
    )
}  # fmt: skip


#: Rows of a batch; longer ones come first.
BATCH = 16


def padded(rows: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Rows side by side, and which of their tokens are real."""
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    return ids, (torch.arange(longest) < lengths[:, None]).long()


def timed(work: Work, beside: Work, ids: Batches, rounds: int) -> dict[str, Any]:
    """Seconds of a peer and of the plain forward in turns, and the ratios of the rounds.

    CPU time is taken beside the time that passes: other programs disturb it less.
    """
    passed: dict[str, list[float]] = {"plain": [], "peer": []}
    used: dict[str, list[float]] = {"plain": [], "peer": []}
    for number in range(rounds + 1):
        ways = [("plain", beside), ("peer", work)]
        for name, way in ways if number % 2 else ways[::-1]:
            start, cpu = time.perf_counter(), time.process_time()
            way(ids)
            # The first round warms up.
            passed[name] += [time.perf_counter() - start] if number else []
            used[name] += [time.process_time() - cpu] if number else []
    return {
        "seconds": round(statistics.median(passed["peer"]), 4),
        "plain": round(statistics.median(passed["plain"]), 4),
        "ratio": _ratio(passed),
        "cpu_ratio": _ratio(used),
        "rounds": rounds,
    }


def _ratio(seconds: dict[str, list[float]]) -> dict[str, float]:
    """The median of the rounds' ratios with the middle half of them."""
    ratios = [b / a for a, b in zip(seconds["plain"], seconds["peer"], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return {"median": round(middle, 3), "low": round(low, 3), "high": round(high, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=[*PEERS])
    parser.add_argument("folder")
    parser.add_argument("ids", type=Path, help="JSON: rows of token ids")
    parser.add_argument("--rounds", type=int, default=0, help="none: peak memory of one call")
    given = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    rows = sorted(json.loads(given.ids.read_text()), key=len, reverse=True)
    ids = [padded(rows[start : start + BATCH]) for start in range(0, len(rows), BATCH)]
    with torch.no_grad():
        work = PEERS[given.peer](given.folder)
        if given.rounds:
            found = timed(work, plain(given.folder), ids, given.rounds)
        else:
            numbers = work(ids)
            found = {"peak_mib": peak_mib(), "numbers": numbers.flatten().tolist()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
