"""Subject: a model with its tokenizer and name, the thing that every measurement is made on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import pandas as pd
import torch
from torch import Tensor

from headcount.errors import HeadcountError, ModelError, UnsupportedModel, UsageError
from headcount.models.guards import out_of_memory
from headcount.records import Brief, Head, HeadTable, hash_strings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from headcount.models.anatomy import Anatomy
    from headcount.models.saving.save import Saved


@dataclass(eq=False, repr=False)
class Subject(Brief):
    """A model under study; `hc.load` makes one from a name, this class from objects in hand.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> Subject(BertModel(config), name="mine")
    Subject(mine: BertModel, 2 layers x 4 heads enc, float32 on cpu)
    """

    #: A ``PreTrainedModel``, or the peft wrapper around one.
    model: Any
    #: ``None`` where no text is read.
    tokenizer: PreTrainedTokenizerBase | None = None
    #: What the user calls it; the class of the model by default.
    name: str = ""
    #: The folder, file, package or hub id it came from, as the user gave it.
    source: str = "in hand"
    #: The commit on the hub, where there is one.
    revision: str | None = None
    #: What a reader of the figures should know, e.g. a head that was not in the checkpoint.
    notes: list[str] = field(default_factory=list)
    #: The dtype of the weights as they came (a GGUF's are "quantised"); None where nobody knows.
    stored: str | None = None

    def __post_init__(self) -> None:
        # Raise unless it is a transformers model, bare or in a peft wrapper, with all its
        # weights.
        from transformers import PreTrainedModel

        inner = self.model.get_base_model() if _is_wrapped(self.model) else self.model
        if not isinstance(inner, PreTrainedModel):
            hint = "; hc.load takes a name or path" if isinstance(self.model, str) else ""
            raise UsageError(
                f"Subject takes a transformers PreTrainedModel or a PeftModel, "
                f"not {_article(self.model)}{hint}."
            )
        offloaded = next(
            (name for name, weight in inner.named_parameters() if weight.is_meta), None
        )
        if offloaded is not None:
            raise UsageError(
                f"The weight {offloaded} of this {type(inner).__name__} is not in memory (device "
                "'meta'): it is offloaded or was never loaded; load the model whole, on one "
                "device or several."
            )
        # Raise unless it is a tokenizer or nothing.
        from transformers import PreTrainedTokenizerBase

        if self.tokenizer is not None and not isinstance(self.tokenizer, PreTrainedTokenizerBase):
            raise UsageError(
                f"Subject takes a transformers tokenizer or None, not {_article(self.tokenizer)}; "
                "for a processor pass its .tokenizer."
            )
        self.name = self.name or type(self.inner).__name__

    @property
    def inner(self) -> Any:
        """The ``PreTrainedModel`` itself, without the wrapper of an adapter."""
        return self.model.get_base_model() if _is_wrapped(self.model) else self.model

    @cached_property
    def anatomy(self) -> Anatomy:
        """Where the heads are; raises `UnsupportedModel` when they cannot be reached."""
        from headcount.models.anatomy import anatomy_of

        try:
            return anatomy_of(self.model)
        except UnsupportedModel:
            check_finite(self)  # a broken weight is the better reason
            raise

    @property
    def heads(self) -> list[Head]:
        """Every head, in the order enc, dec, cross, then layer, then index."""
        return list(self.anatomy.heads)

    @property
    def kind(self) -> str:
        """``enc``, ``dec`` or ``enc-dec``."""
        return "-".join(stack for stack in self.anatomy.stacks if stack != "cross")

    @property
    def device(self) -> torch.device:
        """Where the first weight lies."""
        return next(self.model.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the first floating weight."""
        return self.inner.dtype

    @cached_property
    def weights_hash(self) -> str:
        """The sha256 of all weights, in the order of their names, with type and shape.

        The same on any device. Kept once computed: a model trained further is a new Subject. Of
        more than 4 GiB it is the sha256 of those of pieces of 64 MiB, which threads make.
        """
        pieces: list[tuple[bytes, Tensor]] = []
        for name, value in sorted(self.model.state_dict().items()):
            for tensor in _tensors_of(value):
                # A tensor's bytes, whatever its type and device.
                plain = tensor.int_repr() if tensor.is_quantized else tensor
                parts = plain.detach().contiguous().reshape(-1).view(torch.uint8).split(_PIECE)
                start = f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode()
                pieces += [(b"" if number else start, part) for number, part in enumerate(parts)]
        digest, read = hashlib.sha256(), _bytes_of
        if sum(part.nbytes for _, part in pieces) > _LARGE:
            read = _sha256_of
        with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as threads:
            for first in range(0, len(pieces), 16):  # at most 1 GiB is copied from a device
                starts, parts = zip(*pieces[first : first + 16], strict=True)
                found = threads.map(read, parts)
                for start, content in zip(starts, found, strict=True):
                    digest.update(start)
                    digest.update(content)
        return digest.hexdigest()

    def describe(self) -> dict[str, Any]:
        """What a run keeps about its model."""
        return {
            "name": self.name,
            "source": self.source,
            "revision": self.revision,
            "class": type(self.inner).__name__,
            "adapter": type(self.model).__name__ if _is_wrapped(self.model) else None,
            "tokenizer": type(self.tokenizer).__name__ if self.tokenizer is not None else None,
            "parameters": sum(weight.numel() for weight in self.model.parameters()),
            "dtype": _plain(self.dtype),
            "device": str(self.device),
            "weights_hash": self.weights_hash,
            "notes": list(self.notes),
        }

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        force: bool = False,
        export: str | None = None,
        dtype: str | None = None,
        about: Sequence[str] = (),
    ) -> Saved:
        """Save the model so that it loads again, also in other programs, and prove that it does.

        What comes back says which way was taken, why, and how the folder is loaded. With
        `export="zeros"` removed heads are zeros in a model of the old size, with `"onnx"` the
        folder holds an ONNX file, with `"gguf"` one for llama.cpp. Weights are saved in the `dtype`
        in which they came, if that loses nothing, or in another that is named. `about` are
        paragraphs for the folder's README.md.
        """
        from headcount.models.saving.save import save

        return save(self, folder, force=force, export=export, dtype=dtype, about=about)

    def in_brief(self) -> tuple[str, pd.DataFrame | None]:
        """The model in a line, and the heads of each layer."""
        where = f"{_plain(self.dtype)} on {self.device}"
        words = f"Subject({self.name}: {type(self.inner).__name__}, {self._shape()}, {where})"
        try:
            rows = {f"{s.stack}.{s.layer}": (s.heads, s.head_dim) for s in self.anatomy.sites}
        except HeadcountError:
            return words, None
        return words, pd.DataFrame.from_dict(rows, orient="index", columns=["heads", "head size"])

    def _shape(self) -> str:
        """Layers and heads of each stack, in words; never raises."""
        try:
            anatomy = self.anatomy
        except HeadcountError:
            return "no heads to reach"
        parts = []
        for stack in anatomy.stacks:
            heads = sorted(site.heads for site in anatomy.sites if site.stack == stack)
            span = "-".join(map(str, dict.fromkeys((heads[0], heads[-1]))))  # "12", or "3-12"
            parts.append(f"{len(heads)} layers x {span} heads {stack}")
        return ", ".join(parts)


def _article(thing: object) -> str:
    """A thing's type, as a message names it."""
    return f"'{thing}'" if isinstance(thing, str) else f"an object of {type(thing).__name__}"


def _is_wrapped(model: object) -> bool:
    """Whether a model is a peft wrapper; peft itself need not be there."""
    return callable(getattr(model, "get_base_model", None))


#: Bytes of weights from which on a hash is made of those of pieces, and of a piece.
_LARGE, _PIECE = 4 << 30, 64 << 20


def _bytes_of(part: Tensor) -> memoryview:
    return part.cpu().numpy().data


def _sha256_of(part: Tensor) -> memoryview:
    return memoryview(hashlib.sha256(_bytes_of(part)).digest())


def _tensors_of(value: Any) -> list[Tensor]:
    """The tensors of one entry of a state dict; a quantised layer packs weight and bias in one."""
    if isinstance(value, Tensor):
        return [value]
    parts = value if isinstance(value, tuple) else ()
    return [tensor for part in parts for tensor in _tensors_of(part)]


def _plain(dtype: torch.dtype) -> str:
    """``float32`` rather than ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


# --- A model for a worker in another process ----------------------------------------------------


def subject_facts(subject: Subject) -> dict[str, Any]:
    """What the provenance of a table says of its model."""
    about, weights = subject.describe(), subject.weights_hash
    named = {"model": subject.name, "revision": subject.revision}
    return named | {"weights": weights, "subject": about}


def bare_table(subject: Subject) -> HeadTable:
    """The heads and whose weights they are, for a run that is to be of the same model."""
    return HeadTable.of(subject.heads, {}, provenance={"weights": subject.weights_hash})


def fingerprint_of(subject: Subject) -> dict[str, Any]:
    """What must be the same of a model for work that was broken off to be gone on with."""
    words = {} if subject.tokenizer is None else subject.tokenizer.get_vocab()
    return {
        "weights": subject.weights_hash,
        "tokenizer": hash_strings(f"{words[token]} {token}" for token in sorted(words)),
        "dtype": _plain(subject.dtype),
        "device": subject.device.type,
    }


# --- Errors of a forward: too little memory, broken weights -------------------------------------


@contextmanager
def enough_memory(subject: Subject, smaller: str = "--batch-size (batch_size=)") -> Iterator[None]:
    """Within the block, running out of memory names what to make smaller."""
    try:
        yield
    except Exception as error:
        if not out_of_memory(error):
            raise
        raise ModelError(
            f"{subject.device} has not enough memory for a batch of {subject.name}; use a smaller "
            f"{smaller}."
        ) from error


def check_finite(subject: Subject) -> None:
    """Raise `ModelError` that names the first weight holding NaN or infinity, if there is one.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> model = BertModel(config)
    >>> _ = model.pooler.dense.bias.data.fill_(float("nan"))
    >>> check_finite(Subject(model, name="mine"))
    Traceback (most recent call last):
    headcount.errors.ModelError: The weight pooler.dense.bias of mine holds 16 values of 16 that ...
    """
    for name, weight in subject.model.state_dict().items():
        if not isinstance(weight, Tensor) or not weight.is_floating_point():
            continue  # quantised layers keep packed weights here, which cannot hold NaN
        broken = int((~torch.isfinite(weight.float())).sum())
        if broken:
            raise ModelError(
                f"The weight {name} of {subject.name} holds {broken} values of {weight.numel()} "
                "that are NaN or infinite; the checkpoint is broken, or its dtype too narrow: "
                "try dtype float32, or fetch it again."
            )


def refuse_nan(subject: Subject, where: str) -> NoReturn:
    """Raise for attention that is not a number, naming the weight to blame where there is one."""
    check_finite(subject)
    raise ModelError(
        f"The attention at {where} of {subject.name} is not a number, although all weights are; "
        f"{_plain(subject.dtype)} may be too narrow: use --load dtype=float32 "
        "(dtype='float32')."
    )


def check_subject(given: Any, call: str) -> None:
    """Refuse what is no Subject, with the call as it should be: ``score(subject, task)``.

    >>> check_subject("minilm", "score(subject, task)")
    Traceback (most recent call last):
    headcount.errors.UsageError: score takes a Subject, not the text 'minilm'; write
    hc.score(hc.load('minilm'), task).
    """
    if isinstance(given, Subject):
        return
    what, made = f"a {type(given).__name__}", "hc.load(name)"
    if isinstance(given, str | os.PathLike):
        what, made = f"the text '{given}'", f"hc.load('{given}')"
    elif isinstance(given, torch.nn.Module):
        made = "hc.Subject(model, tokenizer)"
    verb = call.partition("(")[0]
    right = call.replace("subject", made, 1)
    raise UsageError(f"{verb} takes a Subject, not {what}; write hc.{right}.")
