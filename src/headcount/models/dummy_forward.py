"""Small inputs that make any model run once, its own attention maps, and a lock for one thread."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headcount.errors import UnsupportedModel, UsageError
from headcount.models.guards import on_exit
from headcount.models.modeling_headcount import bare

# --- Small inputs that make any model run once --------------------------------------------------

#: Source and target lengths differ, so that a cross-attention site shows by its shape.
SOURCE_LENGTH, TARGET_LENGTH = 5, 4


def core_of(model: nn.Module) -> PreTrainedModel:
    """The bare model inside task heads and adapters: where all attention happens."""
    unwrap: Any = getattr(model, "get_base_model", None)
    inner = unwrap() if unwrap is not None else model
    core = bare(inner) if hasattr(inner, "base_model") else inner
    return core if isinstance(core, PreTrainedModel) else inner


def probe_inputs(core: PreTrainedModel) -> dict[str, Tensor]:
    """Inputs for one tiny forward of a text, image or audio model."""
    names = set(inspect.signature(core.forward).parameters)
    inputs = _main_input(core, names)
    if "decoder_input_ids" in names and getattr(core.config, "is_encoder_decoder", False):
        inputs["decoder_input_ids"] = _ids(core, TARGET_LENGTH)
    return {name: value.to(core.device) for name, value in inputs.items()}


def quiet_arguments(model: nn.Module) -> dict[str, Any]:
    """Arguments that spare a forward what nobody reads: the cache, and most of the logits."""
    names = set(inspect.signature(model.forward).parameters)
    wanted = {"use_cache": False, "logits_to_keep": 1}
    return {name: value for name, value in wanted.items() if name in names}


@contextmanager
def finding_heads(core: PreTrainedModel) -> Iterator[None]:
    """Within the block, a forward that fails says that the heads could not be found."""
    try:
        yield
    except UnsupportedModel:
        raise
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else "no message"
        raise UnsupportedModel(
            f"{type(core).__name__} could not be run on a small input to find its heads "
            f"({type(error).__name__}: {reason}); "
            "pass the part of the model that takes only token ids or pixels."
        ) from error


def _main_input(core: PreTrainedModel, names: set[str]) -> dict[str, Tensor]:
    main = core.main_input_name
    if main == "pixel_values" and "input_ids" not in names:
        config: Any = core.config
        size = config.image_size
        height, width = (size, size) if isinstance(size, int) else tuple(size)
        return {
            main: torch.zeros(
                1, getattr(config, "num_channels", 3), height, width, dtype=core.dtype
            )
        }
    if main == "input_features":
        return {main: _features(core)}
    if main == "input_values" and "input_ids" not in names:
        return {main: torch.zeros(1, 16000, dtype=core.dtype)}
    return {"input_ids": _ids(core, SOURCE_LENGTH)}


def _ids(core: PreTrainedModel, length: int) -> Tensor:
    """Ordinary token ids: within the vocabulary, none of them padding."""
    config = core.config.get_text_config()
    size = int(getattr(config, "vocab_size", 0) or 32)
    pad = getattr(config, "pad_token_id", None)
    usable = [i for i in range(min(size, 64)) if i != pad][-length:]
    return torch.tensor([(usable * length)[:length]])


def _features(core: PreTrainedModel) -> Tensor:
    """Log-mel frames: the encoder's convolution halves their number (Whisper)."""
    config: Any = core.config
    frames = 2 * getattr(config, "max_source_positions", 64)
    return torch.zeros(1, getattr(config, "num_mel_bins", 80), frames, dtype=core.dtype)


# --- The hooks by which transformers takes outputs ----------------------------------------------

_INSTALLED = "_output_capturing_hooks_installed"


@contextmanager
def capture_hooks_off(model: nn.Module) -> Iterator[None]:
    """Without the hooks by which transformers takes outputs; those of before are back afterwards.

    It hangs them on a model that is asked for maps or hidden states, for good, and hangs new ones
    where there are none. They cannot be sent to another process.
    """
    taken = {module: _capture_hooks(module) for module in model.modules()}
    marked = [module for module in taken if _INSTALLED in vars(module)]

    def strip() -> None:
        for module in taken:
            for number in _capture_hooks(module):
                del module._forward_hooks[number]
            vars(module).pop(_INSTALLED, None)

    def restore() -> None:
        strip()
        for module, hooks in taken.items():
            room: Any = module._forward_hooks  # an OrderedDict
            for number, hook in reversed(hooks.items()):
                room[number] = hook
                room.move_to_end(number, last=False)
        for module in marked:
            setattr(module, _INSTALLED, True)

    with on_exit(restore):
        strip()
        yield


def _capture_hooks(module: nn.Module) -> dict[int, Any]:
    home = "transformers.utils.output_capturing"
    hooks = module._forward_hooks.items()
    return {number: hook for number, hook in hooks if getattr(hook, "__module__", "") == home}


# --- One thread at a time -----------------------------------------------------------------------


def own_thread() -> Callable[[], bool]:
    """A test of whether a forward belongs to the thread that asks for it now, or to another.

    autograd recomputes checkpointed layers in threads of its own: these are the asker's, too.

    >>> ours = own_thread()
    >>> ours()
    True
    """
    owner = threading.get_ident()

    def ours() -> bool:
        me = threading.get_ident()
        return me == owner or (torch._C._current_graph_task_id() != -1 and not _is_python(me))

    return ours


def _is_python(ident: int) -> bool:
    """Whether a thread was started by Python, as those of autograd are not."""
    known = [thread for thread in threading.enumerate() if thread.ident == ident]
    return any(not isinstance(thread, threading._DummyThread) for thread in known)


#: The model (by id) and the thread of each block that is open.
_HOLDERS: dict[object, tuple[int, int]] = {}


@contextmanager
def locked(model: nn.Module) -> Iterator[None]:
    """Keep other threads from opening a tap or valve on this model, for this block.

    Their forwards would be counted in here, and their exit would take the seam away.
    """
    core, me, block = core_of(model), threading.get_ident(), object()
    with on_exit(lambda: _HOLDERS.pop(block, None)):
        # Entered first, looked round second: of two threads at once both may be refused, never
        # both let in.
        _HOLDERS[block] = id(core), me
        if any(held == id(core) and thread != me for held, thread in list(_HOLDERS.values())):
            raise UsageError(
                f"{type(core).__name__} is being read or scaled in another thread; wait until that "
                "has ended, or give each thread a copy of the model."
            )
        yield


def check_not_open(model: nn.Module, verb: str) -> None:
    """Refuse to do something with a model whose heads are being read or scaled, in any thread."""
    core = core_of(model)
    if any(held == id(core) for held, _ in list(_HOLDERS.values())):
        raise UsageError(
            f"A valve, tap or ablation is open on this {type(core).__name__}, and it would be "
            f"{verb} with it; do that after the `with` block has ended."
        )
