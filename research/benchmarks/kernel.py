"""The Triton kernel against the slow definition in float64, from the same queries and keys.

The definition is written here once more, as short as it can be: scores in float64, a softmax over
the keys that a row sees, sums over its rows. It shares no code with the paths of
`headcount.wiring`. Cases cross causal rows or not, masks of both kinds, padding on both sides,
sliding windows, biases, grouped keys, cross shapes, sizes of heads, sampled rows and dtypes.
`python -m research.benchmarks.kernel` writes `results/kernel-gpu.json` on a GPU; without one, or
with `--device cpu`, Triton's interpreter runs the same kernel and `results/kernel-interpreter.json`
is written, without bfloat16, of which the interpreter makes no products. It exits with 1 where a
difference is beyond what is allowed for its dtype.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from headcount.errors import HeadcountError
from headcount.records import provenance
from headcount.text.batch import Side
from headcount.wiring.rows import Scores
from headcount.wiring.sighting import Asked, Needs, RowSample

RESULTS = Path(__file__).parent / "results"
NEEDS = Needs(
    entropy=True,
    tops=frozenset({frozenset(), frozenset({"separator"}), frozenset({"special", "first"})}),
    masses=frozenset({"first", "separator", "punctuation"}),
    offsets=frozenset({-2, -1, 0, 1}),
)
#: Texts of a case, tokens of padding, how far back a window reaches, and rows of a sample.
TEXTS, PADDING, WINDOW, SAMPLE = 2, 9, 20, 40
#: Queries of a text, and keys where they are another text's: several tiles and a rest.
QUERIES, KEYS = 150, 107

#: The most that a quantity may be off, by dtype. Both sides read the same queries and keys, so half
#: precision loses in masses alone, for which weights are rounded to float16. A place is off by how
#: much less weight it has than the largest: scores closer than 2^-17 of their size count as equal.
_EXACT = {"entropy": 1e-5, "weight": 1e-5, "place": 1e-3, "mass": 5e-6, "offset": 1e-5}
TOLERANCE = {
    "float32": _EXACT,
    "float16": _EXACT | {"mass": 5e-4},
    "bfloat16": _EXACT | {"mass": 5e-4},
}


class Beyond(RuntimeError):
    """The kernel is further from the definition than its dtype allows."""


class Case(NamedTuple):
    """One combination."""

    dtype: str
    #: whole, causal, or cross (queries of one text, keys of another).
    shape: str
    #: Of which kind the mask is: none, bool or added; where padding stands; and a sliding window.
    mask: str = "none"
    padding: str = "none"
    window: bool = False
    bias: bool = False
    sampled: bool = False
    #: Heads of the queries and of the keys, and their size.
    heads: tuple[int, int] = (4, 2)
    dim: int = 64


def cases(device: str) -> Iterator[Case]:
    """Everything that a row may see, at one size of heads; then sizes and groups of heads."""
    dtypes = [one for one in TOLERANCE if device == "cuda" or one != "bfloat16"]
    seen = [("none", "none", False)]
    seen += list(product(("bool", "added"), ("none", "left", "right"), (False, True)))
    for dtype, shape in product(dtypes, ("whole", "causal", "cross")):
        for what, bias, sampled in product(seen, (False, True), (False, True)):
            yield Case(dtype, shape, *what, bias, sampled)
        for heads, dim in product(((4, 4), (4, 2), (6, 1)), (16, 24, 64, 80, 128, 256)):
            yield Case(dtype, shape, heads=heads, dim=dim)


def drawn(case: Case, device: str) -> tuple[Scores, Asked]:
    """Random queries, keys and classes of tokens of a case."""
    noise = torch.Generator().manual_seed(0)
    dtype, cross = getattr(torch, case.dtype), case.shape == "cross"
    keys = KEYS if cross else QUERIES

    def numbers(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=noise).to(dtype)

    key_side = _side(keys, case.padding, noise)
    query_side = _side(QUERIES, "none", noise) if cross else key_side
    query = 2 * numbers(TEXTS, case.heads[0], QUERIES, case.dim)
    key = numbers(TEXTS, case.heads[1], keys, case.dim)
    mask = None
    if case.mask != "none":
        mask = key_side.real[:, None, None, :].expand(-1, 1, QUERIES, -1)
        if case.shape == "causal":
            mask = mask & torch.ones(QUERIES, keys).tril().bool()
        if case.window:
            mask = mask & torch.ones(QUERIES, keys).triu(-WINDOW).bool()
    if mask is not None and case.mask == "added":
        mask = torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, torch.finfo(dtype).min)
    bias = numbers(1, case.heads[0], QUERIES, keys) if case.bias else None
    parts = [None if one is None else one.to(device) for one in (query, key, mask, bias)]
    causal = case.shape == "causal" and mask is None  # a mask says it itself
    scores = Scores(parts[0], parts[1], case.dim**-0.5, parts[2], causal, parts[3])
    sample = RowSample(SAMPLE, 0, ((0, 0), (1, 0))) if case.sampled else None
    return scores, Asked.of(NEEDS, query_side, key_side, sample).to(torch.device(device))


def _side(tokens: int, padding: str, noise: torch.Generator) -> Side:
    real = torch.ones(TEXTS, tokens, dtype=torch.bool)
    if padding != "none":  # of the last text
        real[-1, slice(0, PADDING) if padding == "left" else slice(-PADDING, None)] = False
    ends = (torch.rand(TEXTS, tokens, generator=noise) < 0.15) & real
    marks = (torch.rand(TEXTS, tokens, generator=noise) < 0.3) & real
    return Side(real.long(), real, ends, ends, marks, marks, [[]] * TEXTS)


def defined(scores: Scores, asked: Asked) -> tuple[Tensor, Tensor]:
    """The map `[batch, head, row, key]` in float64, and which rows mean something."""
    groups = scores.query.shape[1] // scores.key.shape[1]
    key = scores.key.double().repeat_interleave(groups, dim=1)
    found = scores.query.double() @ key.transpose(-1, -2) * scores.scaling
    if scores.bias is not None:
        found = found + scores.bias.double()
    seen = torch.ones_like(found, dtype=torch.bool)
    if scores.causal:
        seen = seen.tril()
    if scores.mask is not None and scores.mask.dtype == torch.bool:
        seen = seen & scores.mask
    elif scores.mask is not None:
        found = found + scores.mask.double()
        seen = seen & (scores.mask == 0)
    # A row of padding on the left sees no key: it has no map, and is left out.
    some = seen.any(-1)
    weights = torch.where(seen, found, -torch.inf).softmax(-1).nan_to_num(0)
    if asked.places is not None:
        rows = asked.places[:, None, :].expand(-1, found.shape[1], -1)
        some = some.gather(2, rows)
        weights = weights.gather(2, rows[..., None].expand(*rows.shape, weights.shape[-1]))
    return weights, some & asked.asking.real[:, None]


def differences(case: Case, device: str) -> dict[str, float]:
    """By how much each quantity of the kernel is off, at most."""
    from headcount.rooms.kernel import kernel

    scores, asked = drawn(case, device)
    found = kernel.launched(scores, asked)
    weights, real = defined(scores, asked)
    off: dict[str, list[Tensor]] = {name: [] for name in TOLERANCE[case.dtype]}
    off["entropy"] = [found["entropy"] - torch.special.entr(weights).sum(-1)]
    for name in sorted(NEEDS.masses):
        chosen = asked.classes[name][:, None, None, :].double()
        off["mass"].append(found["masses"][name] - (weights * chosen).sum(-1))
    for left_out, (weight, place) in found["tops"].items():
        kept = asked.keys.real
        for name in left_out:
            kept = kept & ~_of_class(asked.keys, name)
        allowed = weights * kept[:, None, None, :].double()
        largest = allowed.amax(-1)
        off["weight"].append(weight - largest)
        off["place"].append(largest - allowed.gather(-1, place[..., None])[..., 0])
    every = torch.arange(scores.shape[2], device=weights.device).expand(TEXTS, -1)
    places = every if asked.places is None else asked.places
    for offset, weight in found["offsets"].items():
        wanted = (places + offset)[:, None, :, None].expand(-1, weights.shape[1], -1, -1)
        there = (wanted >= 0) & (wanted < weights.shape[-1])
        own = weights.gather(-1, wanted.clamp(0, weights.shape[-1] - 1)) * there
        off["offset"].append(weight - own[..., 0])
    assert bool(real.any())
    # `max` of something that is not a number is not a number, which no tolerance allows.
    return {
        name: max(float(torch.where(real, part.double().abs(), 0).max()) for part in parts)
        for name, parts in off.items()
    }


def _of_class(side: Side, name: str) -> Tensor:
    if name == "first":
        return side.real & (side.real.cumsum(-1) == 1)
    members: Tensor = getattr(side, name)
    return members


def measured(device: str) -> list[tuple[Case, dict[str, float]]]:
    """All cases, in processes, since most of the time is taken by compiling the kernel anew."""
    every, workers = list(cases(device)), min(len(os.sched_getaffinity(0)), 16)
    with ProcessPoolExecutor(workers, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        return list(zip(every, pool.map(partial(differences, device=device), every), strict=True))


def held(found: Iterable[tuple[Case, dict[str, float]]]) -> dict[str, Any]:
    """Cases told by dtype: the largest differences, where they are, and what is allowed."""
    told: dict[str, Any] = {}
    for case, off in found:
        empty = {"cases": 0, "largest": {}, "allowed": TOLERANCE[case.dtype], "where": {}}
        own = told.setdefault(case.dtype, empty | {"beyond": []})
        own["cases"] += 1
        for name, far in off.items():
            if not far <= own["largest"].get(name, -1.0):
                own["largest"][name], own["where"][name] = far, case._asdict()
            if not far <= own["allowed"][name]:
                own["beyond"].append({"what": name, "off": far} | case._asdict())
    return told


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"))
    device = parser.parse_args(arguments).device
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if find_spec("triton") is None:
        raise HeadcountError("Triton is not installed, and there is no kernel without it.")
    if device == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        # Triton must be told before it is imported, and something may have imported it already.
        command = [sys.executable, "-m", "research.benchmarks.kernel", "--device", "cpu"]
        if subprocess.run(command, env=os.environ | {"TRITON_INTERPRET": "1"}).returncode:
            raise Beyond("The kernel in Triton's interpreter is not as defined; see above.")
        return
    import triton

    told = held(measured(device))
    name, command = (
        "gpu" if device == "cuda" else "interpreter",
        "python -m research.benchmarks.kernel",
    )
    about = provenance.collect()
    result = {
        "what": f"the kernel against its definition in float64, {TEXTS} texts of {QUERIES} queries",
        "device": torch.cuda.get_device_name() if device == "cuda" else "Triton's interpreter",
        "dtypes": told,
        "provenance": about
        | {"command": f"{command} --device {device}"}
        | {"versions": about["versions"] | {"triton": triton.__version__}},
    }
    (RESULTS / f"kernel-{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps({dtype: own["largest"] for dtype, own in told.items()}, indent=2))
    beyond = [one for own in told.values() for one in own["beyond"]]
    if beyond:
        raise Beyond(
            f"{len(beyond)} differences of the kernel are beyond what is allowed; the first: "
            f"{json.dumps(beyond[0])}."
        )


if __name__ == "__main__":
    try:
        main()
    except (Beyond, HeadcountError) as error:
        sys.exit(str(error))
