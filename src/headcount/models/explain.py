"""One sentence for each way that loading a model can fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from safetensors import SafetensorError

from headcount.errors import HeadcountError, ModelError
from headcount.models.find import Found
from headcount.models.weights import broken_file, wrong_sizes

__all__ = ["explained", "first_line"]


@contextmanager
def explained(found: Found, model_class: Any = None, config: Any = None) -> Iterator[None]:
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
    except torch.OutOfMemoryError:
        raise ModelError(
            f"The model '{found.name}' does not fit into the memory of the device; "
            "try --dtype bfloat16 or --device cpu."
        ) from None
    except RuntimeError as error:
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


def _plain(found: Found, error: BaseException) -> str:
    """A failure that has no sentence of its own."""
    return f"The model '{found.name}' could not be loaded: {first_line(error)}"


def _broken(found: Found, error: BaseException) -> str:
    """A safetensors file that is cut off or overwritten."""
    file = broken_file(found.folder) if found.kind == "folder" else None
    return (
        f"The file {file or 'of weights'} of '{found.name}' is broken or cut off "
        f"({str(error).rstrip('.')}); copy or download it again."
    )


def _misfit(found: Found, model_class: Any, config: Any) -> str:
    """Weights of other sizes than the config says."""
    sizes = wrong_sizes(found.folder, model_class, config)
    said = f"The weights of '{found.name}' do not fit its config.json: {sizes}"
    if getattr(config, "pruned_heads", None):
        return f"{said}; the config lists pruned_heads, which only transformers 4 can build."
    if getattr(config, "auto_map", None):
        return f"{said}; the folder brings its own code: pass --trust-remote-code after reading it."
    return f"{said}; they do not belong together."
