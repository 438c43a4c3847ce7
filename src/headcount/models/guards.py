"""What a block may change for a while: dropout, gradients of weights, the voice of transformers.

All of it is as before afterwards, also when Ctrl-C comes between a change and the block: what
undoes a change is in place before the change is made (`on_exit`).
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn


@contextmanager
def on_exit(restore: Callable[[], object]) -> Iterator[None]:
    """Call `restore` on any exit, and once more in case Ctrl-C came in the middle of it.

    It must do no harm when nothing was changed yet, nor when it runs a second time.

    >>> with on_exit(lambda: print("restored")):
    ...     print("changed")
    changed
    restored
    restored
    """
    try:
        try:
            yield
        finally:
            restore()
    finally:
        restore()


def out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out: torch says so in one way on a GPU and in another on a CPU.

    >>> out_of_memory(MemoryError()), out_of_memory(RuntimeError("sizes do not match"))
    (True, False)
    """
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Within the block dropout is off; every module's mode is as it was afterwards."""
    training = [module for module in model.modules() if module.training]
    devices = sorted({p.device.index for p in model.parameters() if p.device.type == "cuda"})

    def restore() -> None:
        for module in training:
            module.training = True

    with on_exit(restore), torch.random.fork_rng(devices=devices):
        for module in training:
            module.training = False
        yield


@contextmanager
def frozen(model: nn.Module) -> Iterator[None]:
    """Within the block no weight requires a gradient; each is as it was afterwards.

    >>> layer = nn.Linear(2, 1)
    >>> with frozen(layer):
    ...     layer.weight.requires_grad
    False
    >>> layer.weight.requires_grad
    True
    """
    trainable = [weight for weight in model.parameters() if weight.requires_grad]

    def restore() -> None:
        for weight in trainable:
            weight.requires_grad_(True)

    with on_exit(restore):
        for weight in trainable:
            weight.requires_grad_(False)
        yield


#: Held while a block changes what all threads share: log levels, filters of warnings, functions of
#: other libraries. Two such blocks in turn leave it as it was; side by side they would not.
_GLOBAL_STATE = threading.RLock()


@contextmanager
def global_state() -> Iterator[None]:
    """Within the block no other thread of headcount changes what all threads share."""
    held: list[Callable[[], None]] = []

    def leave() -> None:
        while held:
            held.pop()()  # in one line: nothing comes between

    with on_exit(leave):
        held += [_GLOBAL_STATE.release] if _GLOBAL_STATE.acquire() else []
        yield


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers within the block; download bars stay, a download takes minutes."""
    stack = ExitStack()
    with (
        global_state(),
        on_exit(stack.close),
        _no_bars(),
        no_logs("transformers"),
        no_logs("huggingface_hub"),
    ):
        stack.enter_context(warnings.catch_warnings(action="ignore"))
        yield


@contextmanager
def no_logs(name: str) -> Iterator[None]:
    """Raise a library's log level above everything it says."""
    logger = logging.getLogger(name)
    with global_state():
        level = logger.level
        with on_exit(lambda: logger.setLevel(level)):
            logger.setLevel(logging.CRITICAL + 1)
            yield


@contextmanager
def _no_bars() -> Iterator[None]:
    """Turn off the bars of reading weights."""
    from huggingface_hub import utils as hub
    from transformers.utils import logging as voice

    shown, downloads_shown = voice.is_progress_bar_enabled(), not hub.are_progress_bars_disabled()

    def restore_downloads() -> None:
        if downloads_shown:
            hub.enable_progress_bars()
        else:
            hub.disable_progress_bars()

    def restore() -> None:
        if shown:
            voice.enable_progress_bar()
        restore_downloads()

    with on_exit(restore):
        voice.disable_progress_bar()  # those of downloads, too
        restore_downloads()
        yield
