"""A batch that does not fit into the device's memory, told in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from headcount.errors import ModelError
from headcount.subject import Subject

__all__ = ["enough_memory"]


@contextmanager
def enough_memory(subject: Subject, smaller: str = "--batch-size (batch_size=)") -> Iterator[None]:
    """Within the block, running out of memory names what to make smaller."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise ModelError(
            f"{subject.device} has not enough memory for a batch of {subject.name}; use a smaller "
            f"{smaller}."
        ) from error
