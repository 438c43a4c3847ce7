"""Why a model cannot be loaded, in one sentence each: files, names of weights, sizes, memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from headcount.errors import HeadcountError, ModelError
from headcount.models.anatomy import KEY
from headcount.models.finding import FoundModel
from headcount.models.guards import out_of_memory

# --- Whether a model got all its weights --------------------------------------------------------

#: Parts that a task puts on a model; one that is not in the checkpoint starts at random.
HEADS = ("lm_head", "cls", "classifier", "score", "qa_outputs", "proj_out", "final_logits_bias")

#: Tables that old checkpoints stored and that models now compute.
LEFTOVERS = ("position_ids", "inv_freq", "masked_bias", "attn.bias", "num_batches_tracked")

_PICKLES = (".bin", ".pt", ".pth", ".ckpt")
_OTHERS = (".h5", ".msgpack", ".onnx", ".gguf")


def check_files(names: Iterable[str], label: str, allow_bin: bool) -> None:
    """Raise unless the weights are in safetensors, or in pickles that were allowed."""
    files = sorted(names)
    weights = [file for file in files if file.endswith((".safetensors", *_PICKLES, *_OTHERS))]
    pickles = [file for file in weights if file.endswith(".bin")]
    if any(file.endswith(".safetensors") for file in weights) or (pickles and allow_bin):
        return
    if pickles:
        raise ModelError(
            f"The weights of '{label}' are only in {pickles[0]}, a pickle, which can run code; "
            "pass --load allow-bin (allow_bin=True) to read it with weights_only."
        )
    only = f" (only {', '.join(weights[:3])})" if weights else ""
    raise ModelError(
        f"The model '{label}' has a config.json but no *.safetensors file{only}; "
        "save it with save_pretrained and pass that folder."
    )


def check_weight_names(model: Any, info: dict[str, Any], label: str) -> list[str]:
    """Notes on task heads that were missing or left over; raises for anything inside the model."""
    # A model computes its sinusoidal positions itself.
    tables = [name for name, module in model.named_modules() if "Sinus" in type(module).__name__]
    missing = sorted(set(info["missing_keys"]) - {f"{name}.weight" for name in tables})
    extra = sorted(info["unexpected_keys"])
    lost = [name for name in missing if not _is_head(model, name)]
    if lost:
        raise ModelError(
            f"The checkpoint of '{label}' has no {_some(lost)}, which {type(model).__name__} "
            "needs; its config.json and weights do not belong together."
        )
    unread = [name for name in extra if _in_stack(model, name)]
    if unread:
        raise ModelError(
            f"The checkpoint of '{label}' holds {_some(unread)}, which {type(model).__name__} does "
            "not use; its config.json and weights do not belong together."
        )
    notes = []
    if missing:
        notes.append(f"not in the checkpoint, so random until trained: {_some(missing)}")
    if extra:
        notes.append(f"in the checkpoint, but not used by this class: {_some(extra)}")
    return notes


#: What safetensors call numbers that a plain weight can be.
_FLOATING = ("F", "BF")


def check_weight_numbers(model: Any, folder: Path, label: str) -> None:
    """Refuse weights that are whole or complex numbers: without their scale they mean nothing."""
    prefix, floating = f"{model.base_model_prefix}.", {name for name, _ in model.named_parameters()}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - it is no mapping
                kind = tensors.get_slice(name).get_dtype()
                known = {name, prefix + name, name.removeprefix(prefix)} & floating
                if known and not kind.startswith(_FLOATING):
                    raise ModelError(
                        f"The weight {name} of '{label}' is stored as {kind}, which is no floating "
                        "number, and its config names no quantisation that gives the scale; save "
                        "the model in float32, bfloat16 or float16."
                    )


def _is_head(model: Any, name: str) -> bool:
    """Whether a weight belongs to a task head or pooler rather than to the model itself."""
    prefix = f"{model.base_model_prefix}."
    nested = model.base_model is not model
    if nested and not name.startswith(prefix):
        return True
    return name.removeprefix(prefix).split(".")[0] in (*HEADS, "pooler")


def _in_stack(model: Any, name: str) -> bool:
    """Whether a weight belongs to a numbered layer of a stack that the model has."""
    numbered = re.match(r"(.*?)\.\d+\.", name)
    if numbered is None or name.endswith(LEFTOVERS):
        return False
    stack = numbered[1]
    prefix = f"{model.base_model_prefix}."
    known = {known_name for known_name, _ in model.named_modules()}
    return bool({stack, prefix + stack, stack.removeprefix(prefix)} & known)


def _some(names: list[str], few: int = 3) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(names[:few])
    return shown if len(names) <= few else f"{shown} and {len(names) - few} more"


def wrong_sizes(folder: Path, model_class: Any, config: Any) -> str:
    """Names and sizes of weights that do not fit the config, in words."""
    with torch.device("meta"):
        model = model_class._from_config(config)
    expected = {name: tuple(weight.shape) for name, weight in model.state_dict().items()}
    prefix = f"{model.base_model_prefix}."
    odd = []
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - it is no mapping
                size = tuple(tensors.get_slice(name).get_shape())
                odd += [
                    f"{name} is {size} where the config asks for {expected[match]}"
                    for match in {name, prefix + name, name.removeprefix(prefix)}
                    if expected.get(match, size) != size
                ]
    return _some(odd, 1) or "sizes differ"


# --- One sentence for each way that loading a model can fail ------------------------------------


@contextmanager
def as_model_error(
    found: FoundModel, model_class: Any = None, config: Any = None
) -> Iterator[None]:
    """Turn what transformers raises within the block into a `ModelError` of one sentence."""
    try:
        yield
    except HeadcountError:
        raise
    except SafetensorError as error:
        raise ModelError(_broken(found, error)) from None
    except ImportError as error:
        raise ModelError(
            f"Loading '{found.name}' needs something that is not installed: {first_line(error)}"
        ) from None
    except (RuntimeError, MemoryError) as error:
        if out_of_memory(error):
            raise ModelError(
                f"The model '{found.name}' does not fit into the memory of the device; "
                "try --load dtype=bfloat16 or --device cpu."
            ) from None
        if "mismatch" not in str(error) or found.kind != "folder":
            raise ModelError(_plain(found, error)) from error
        raise ModelError(_misfit(found, model_class, config)) from None
    except Exception as error:
        raise ModelError(_plain(found, error)) from error


def first_line(error: BaseException | str) -> str:
    """The first line of a message that may have many, ended by a full stop."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    line = lines[0] if lines else type(error).__name__
    return line if line.endswith(".") else f"{line}."


def _plain(found: FoundModel, error: BaseException) -> str:
    """A failure that has no sentence of its own."""
    return f"The model '{found.name}' could not be loaded: {first_line(error)}"


def _broken(found: FoundModel, error: BaseException) -> str:
    """A safetensors file that is cut off or overwritten, by name where its header shows it."""
    broken = "of weights"
    for file in sorted(found.folder.glob("*.safetensors")) if found.kind == "folder" else ():
        try:
            with safe_open(file, framework="pt"):
                pass
        except (SafetensorError, OSError):
            broken = file.name
            break
    return (
        f"The file {broken} of '{found.name}' is broken or cut off "
        f"({str(error).rstrip('.')}); copy or download it again."
    )


def _misfit(found: FoundModel, model_class: Any, config: Any) -> str:
    """Weights of other sizes than the config says."""
    sizes = wrong_sizes(found.folder, model_class, config)
    why = f"The weights of '{found.name}' do not fit its config.json: {sizes}"
    if getattr(config, "pruned_heads", None):
        return f"{why}; the config lists pruned_heads, which only transformers 4 can build."
    if getattr(config, KEY, None):
        return (
            f"{why}; the sizes that headcount wrote into that config are not those of the weights, "
            "so the folder was changed or damaged: prune the model again."
        )
    if getattr(config, "auto_map", None):
        what = "the folder has its own code: read it, then pass --load trust-remote-code"
        return f"{why}; {what}."
    return f"{why}; they do not belong together."
