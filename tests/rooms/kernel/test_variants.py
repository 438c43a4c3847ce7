"""How many kernels a survey must make: counted for an H100 without one, by Triton's own cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="Triton is for Linux on x86-64")

#: Launches of batches as surveys have them, up to the compiler; says how many kernels were asked
#: for, and with a folder as argument compiles them there for sm_90.
LAUNCHES = """
import json, sys, time
from types import SimpleNamespace
import torch, triton
from triton.backends.compiler import GPUTarget
from headcount.rooms.kernel import kernel
from headcount.text.batch import bare_side
from headcount.wiring.rows import Scores
from headcount.wiring.sighting import Asked, Needs

triton.runtime.driver.set_active(SimpleNamespace(
    get_current_target=lambda: GPUTarget("cuda", 90, 32),
    get_current_device=lambda: 0, get_current_stream=lambda device: 0))
run = kernel._row_statistics.run
made = []
if len(sys.argv) < 2:
    def asked_for(key, *rest):
        made.append(key)
        kernel._row_statistics.device_caches[0][0][key] = object()
    kernel._row_statistics._do_compile = asked_for
kernel._row_statistics.run = lambda *args, warmup, **how: run(*args, warmup=True, **how)
needs = Needs(entropy=True, tops=frozenset({frozenset(), frozenset({"separator"})}),
    masses=frozenset({"first", "separator"}), offsets=frozenset({-1, 0, 1}))
begun = time.perf_counter()
for heads, dim, causal in ((12, 64, False), (32, 128, True)):
    for texts, tokens, layers in ((1, 1, 1), (1, 7, 1), (3, 16, 2), (16, 21, 12), (682, 24, 3)):
        for padded in (False, True):
            real = torch.ones(texts, tokens, dtype=torch.bool)
            side = bare_side(real.long(), real)
            query = torch.zeros(texts, layers * heads, tokens, dim, dtype=torch.bfloat16)
            mask = real[:, None, None].expand(-1, -1, tokens, -1).contiguous() if padded else None
            scores = Scores(query, query, 0.1, mask, causal and not padded)
            kernel.launched(scores, Asked.of(needs, side, side))
print(json.dumps({"kernels": len(kernel._row_statistics.device_caches[0][0]),
    "seconds": time.perf_counter() - begun}))
"""


def kernels_made(*more: str, **environment: str) -> int:
    """How many kernels two models ask for, on ten batches each."""
    kept = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", LAUNCHES, *more],
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return int(json.loads(done.stdout)["kernels"])


def test_a_model_needs_two_kernels_whatever_its_texts() -> None:
    assert kernels_made() <= 4
