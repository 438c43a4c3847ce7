"""`python -m research.benchmarks`: measure every speed promise; results go to results/.

With a GPU its rows are measured too, and the kernel is held against its definition (without one by
Triton's interpreter, where it is named). `--only NAME ...` measures some; peers are installed into
environments of their own and are left out unless they are named.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import torch

from headcount.errors import HeadcountError
from research.benchmarks import (
    ablation,
    divergence,
    gpu,
    gradient,
    kernel,
    lengths,
    long_text,
    long_words,
    pruned,
    relations,
    relevance,
    report,
    sizes,
    survey,
)
from research.benchmarks.peers.__main__ import main as peers

BENCHMARKS: dict[str, Callable[[], None]] = {
    "survey": survey.main,
    "gradient": gradient.main,
    "relations": relations.main,
    "divergence": divergence.main,
    "ablation": ablation.main,
    "relevance": relevance.main,
    "pruned": lambda: pruned.main([]),
    "report": report.main,
    "lengths": lambda: lengths.main([]),
    "sizes": lambda: sizes.main([]),
    "long_text": lambda: long_text.main([]),
    "long_words": lambda: long_words.main([]),
    "gpu": lambda: gpu.main([]),
    "kernel": lambda: kernel.main([]),
    "peers": lambda: peers([]),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS))
    chosen = parser.parse_args().only
    failed = []
    for name, measure in BENCHMARKS.items():
        wanted = name in chosen if chosen else name != "peers"
        for_gpu = name == "gpu" or (name == "kernel" and not chosen)
        if not wanted or (for_gpu and not torch.cuda.is_available()):
            continue
        print(f"{name} ...", flush=True)
        try:
            measure()
        except (HeadcountError, RuntimeError, OSError) as error:  # the others are still measured
            print(f"{name} failed: {error}", flush=True)
            failed.append(name)
    if failed:
        sys.exit(f"Not measured: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
