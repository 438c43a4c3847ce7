"""Row statistics in one kernel on the GPU, beside the model's own attention.

A second pass over the keys, tile by tile: scores never leave the chip. For each row it keeps the
running maximum m, the mass on each class of keys (a product with columns of 0 and 1 on the tensor
cores; a column of ones gives the denominator), the sum of weight times score (for the entropy,
log-sum-exp minus its mean), and the place of the largest score. Scores are scaled in float32, and
the weights at the largest key and at offsets are computed anew from one dot product a row.

The places of the largest weights travel in the low bits of the score, so that one maximum gives
both: scores closer than 2^-17 of their size may be taken for equal.
"""

from __future__ import annotations

import importlib.util
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from subprocess import SubprocessError
from threading import Thread
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from headcount.models import Subject
    from headcount.rooms.kernel.recording import Recordings, Run
    from headcount.wiring import Asked, Scores

#: Sets of keys left out, and columns of classes, that the kernel has room for.
_MOST_TOPS, _MOST_CLASSES, _MOST_OFFSETS, _MOST_DIM = 3, 15, 8, 256

#: Heads times texts of one launch: the second side of a grid has no more.
MOST_TEXTS = 2**16 - 1


@cache
def available(device: torch.device) -> bool:
    """Whether the kernel can run on a device: a GPU, and Triton."""
    return device.type == "cuda" and importlib.util.find_spec("triton") is not None


def prepare(device: torch.device) -> None:
    """Let Triton come up beside other work: its import and its driver take a second or two."""
    if available(device) and "triton" not in sys.modules:
        Thread(target=_come_up, daemon=True).start()


def _come_up() -> None:
    with suppress(
        ImportError, RuntimeError, OSError, SubprocessError
    ):  # who launches the kernel meets the same, and is told
        from triton.runtime import driver

        import_module("headcount.rooms.kernel.kernel")
        driver.active.get_current_target()


def serves(scores: Scores, asked: Asked) -> bool:
    """Whether the kernel gives everything needed; otherwise tiles are used."""
    needs = asked.needs
    return (
        needs.smoothed is None
        and not needs.maps
        and len(asked.allowed) <= _MOST_TOPS
        and len(asked.classes) <= _MOST_CLASSES
        and len(needs.offsets) <= _MOST_OFFSETS
        and scores.query.shape[-1] <= _MOST_DIM
        and scores.query.shape[0] * scores.query.shape[1] <= MOST_TEXTS
        and scores.query.dtype in (torch.float16, torch.bfloat16, torch.float32)
        and (scores.mask is None or scores.mask.dim() == 4)
        and available(scores.query.device)
    )


def recordings(subject: Subject, run: Run) -> Recordings | None:
    """What records the passes of a tap, where there is a GPU."""
    if not available(subject.device):
        return None
    from headcount.rooms.kernel.recording import Recordings

    return Recordings(subject, run)


def row_quantities(scores: Scores, asked: Asked) -> dict[str, Any]:
    """What is asked of the rows, as `rows.tiled` gives it."""
    from headcount.rooms.kernel.kernel import launched

    return launched(scores, asked)
