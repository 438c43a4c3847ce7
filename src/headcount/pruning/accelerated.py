"""Where training runs: one process on the model's own device, or the processes of a launcher."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from headcount.errors import UsageError
from headcount.subject import Subject

__all__ = ["accelerated"]

_PLAIN = ("NO", "MULTI_CPU", "MULTI_GPU", "MULTI_XPU", "MULTI_NPU", "MULTI_MLU")


@contextmanager
def accelerated(subject: Subject, given: Any = None, precision: str = "no") -> Iterator[Any]:
    """An Accelerator for training this subject; one of the caller's own is used as it is.

    Alone, the model stays on its device. Under `accelerate launch` or `torchrun` every process
    has its own device, and gradients are averaged.
    """
    from accelerate import Accelerator, DistributedDataParallelKwargs

    if given is not None:
        yield _checked(given)
        return
    with _unremembered():
        made = Accelerator(
            cpu=_on_cpu(subject),
            mixed_precision=precision,
            device_placement=False,
            # A part without labels, such as a pooler, has no gradient: nobody waits for it.
            kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
        )
        try:
            yield _checked(made)
        finally:
            made.free_memory()


@contextmanager
def _unremembered() -> Iterator[None]:
    """Within the block accelerate knows of no earlier Accelerator, afterwards of no later one.

    It keeps the device and precision of the first for the whole process, and a Trainer may have
    made it, or may come next. The connection between launched processes stays.
    """
    from accelerate import PartialState
    from accelerate.state import AcceleratorState

    kinds = [AcceleratorState] if _launched() else [AcceleratorState, PartialState]
    before = [(kind._shared_state, dict(kind._shared_state)) for kind in kinds]
    try:
        for state, _ in before:
            state.clear()
        yield
    finally:
        for state, values in before:
            state.clear()
            state.update(values)


def _launched() -> bool:
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def _on_cpu(subject: Subject) -> bool:
    return subject.device.type == "cpu" and not (_launched() and torch.cuda.is_available())


def _checked(accelerator: Any) -> Any:
    kind = str(accelerator.distributed_type.value)
    if kind not in _PLAIN:
        raise UsageError(
            f"Training here runs in one process or several that each hold the whole model, not "
            f"under {kind}; launch it with `accelerate launch --multi_gpu`."
        )
    return accelerator
