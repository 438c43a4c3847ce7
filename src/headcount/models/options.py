"""How a model is loaded, as a value; nothing heavy is imported, since the command line reads it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from headcount.records import option

_load = partial(option, panel="Loading the model", key_of="load")


@dataclass(frozen=True)
class LoadOptions:
    """What `load` takes besides the name of the model.

    >>> LoadOptions(device="cpu").dtype
    'auto'
    """

    device: str = option(
        "auto", "NAME", "auto, cpu, cuda, cuda:1, mps ...", panel="Loading the model"
    )
    dtype: str = _load("auto", "NAME", "auto (float32 on a CPU), float32, bfloat16, float16.")
    revision: str | None = _load(None, "NAME", "Branch, tag or commit on the hub.")
    allow_bin: bool = _load(False, None, "Also load pickled .bin weights.")
    trust_remote_code: bool = _load(False, None, "Run code that comes with the model.")
    tokenizer: str | None = _load(
        None, "NAME", "Folder or hub id of the tokenizer, where the model has none."
    )
    #: E.g. ``AutoModelForMaskedLM``, in place of the checkpoint's own class; no option of a verb.
    auto_class: str | None = None
    #: Whether the hub is not asked, so that only what is on this machine is read.
    offline: bool = False
