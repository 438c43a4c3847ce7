"""Two forms that any program can load: ONNX, and the old size with zeros where heads were."""

from __future__ import annotations

import inspect
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headcount.errors import ModelError, UsageError
from headcount.models.anatomy import KEY, heads_left, sites_of
from headcount.models.dummy_forward import core_of, probe_inputs
from headcount.models.guards import eval_mode, no_logs, quiet
from headcount.models.projections import HeadWeight, head_weights
from headcount.models.site import Site
from headcount.models.subject import Subject
from headcount.models.switch import switched

# --- Write a model as ONNX ----------------------------------------------------------------------
# The one format in which layers with different numbers of heads load everywhere.

ONNX = "model.onnx"

#: How far apart the file and the model may be, of the largest number that comes out.
ROOM = 1e-4


class _First(nn.Module):
    """A model that gives its first output only, and keeps no cache."""

    def __init__(self, model: Any, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names
        has_cache = "use_cache" in inspect.signature(model.forward).parameters
        self.more = {"use_cache": False} if has_cache else {}

    def forward(self, *inputs: Tensor) -> Tensor:
        """The first output."""
        named = dict(zip(self.names, inputs, strict=True))
        output: Tensor = self.model(**named, **self.more)[0]
        return output


def write_onnx(subject: Subject, folder: Path) -> float:
    """Write `model.onnx`, and say how far from the model it is on an input of another shape.

    Inputs are those that the tokenizer gives, outputs and free axes are called as transformers and
    optimum call them. Attention is written as plain products: of the ways that torch can write it
    (eager, scaled_dot_product_attention, the operator Attention of opset 23) onnxruntime's CPU
    kernels run this one fastest.
    """
    runtime = _imported()
    inputs = _inputs(subject, batch=2, longer=0)
    wrapped = _First(subject.inner, list(inputs)).eval()
    file = folder / ONNX
    with quiet(), eval_mode(subject.model), torch.no_grad():
        output = subject.inner(**inputs, **wrapped.more)
    silent = no_logs("torch.onnx")  # it logs about packages that are not needed
    with quiet(), silent, eval_mode(subject.model), switched(subject.model, lambda _: "eager"):
        torch.onnx.export(
            wrapped,
            tuple(inputs.values()),
            file,
            input_names=list(inputs),
            output_names=[next(iter(output.keys()), "output")],
            dynamic_shapes=(tuple(_open_axes(value) for value in inputs.values()),),
            dynamo=True,
            verbose=False,
        )
    _name_axes(file)
    return _compared(runtime, subject, wrapped, file)


def _imported() -> Any:
    try:
        import onnxruntime
        import onnxscript  # noqa: F401 - torch.onnx writes with it
    except ImportError as error:
        raise ModelError(
            f"Writing ONNX needs the package {error.name}, which is not installed; "
            "run `pip install headcount[onnx]`."
        ) from None
    return onnxruntime


def _inputs(subject: Subject, batch: int, longer: int) -> dict[str, Tensor]:
    """Small inputs of a batch; texts may be longer than the smallest, with one row padded."""
    found: dict[str, Tensor] = {}
    for name, value in probe_inputs(core_of(subject.model)).items():
        if value.is_floating_point():
            dice = torch.Generator().manual_seed(batch)
            found[name] = torch.randn(batch, *value.shape[1:], generator=dice).to(value)
        else:
            found[name] = torch.cat([value, value[:, :1].repeat(1, longer)], 1).repeat(batch, 1)
    if "input_ids" in found:
        mask = torch.ones_like(found["input_ids"])
        mask[-1, -1] = 0
        ids = found.pop("input_ids")
        kinds = {"token_type_ids": _pair_of(ids)} if _takes_pairs(subject) else {}
        found = {"input_ids": ids, "attention_mask": mask, **kinds, **found}
    return found


def _takes_pairs(subject: Subject) -> bool:
    """Whether the model tells a first text from a second, and its tokenizer, if any, says which."""
    name = "token_type_ids"
    if name not in inspect.signature(subject.inner.forward).parameters:
        return False
    if subject.tokenizer is not None:
        return name in subject.tokenizer.model_input_names
    return getattr(subject.inner.config, "type_vocab_size", 0) > 1


def _pair_of(ids: Tensor) -> Tensor:
    """Types of tokens, the second half of them of a second text."""
    kinds = torch.zeros_like(ids)
    kinds[:, ids.shape[1] // 2 :] = 1
    return kinds


def _open_axes(value: Tensor) -> dict[int, Any]:
    """The axes whose size is not fixed: the batch, and the length of a text."""
    free = {0: torch.export.Dim.DYNAMIC}
    return free if value.is_floating_point() else free | {1: torch.export.Dim.DYNAMIC}


def _name_axes(file: Path) -> None:
    """Call the free axes of a file what optimum calls them, in all of its graph."""
    import onnx

    made = onnx.load(str(file), load_external_data=False)
    names: dict[str, str] = {}
    for one in made.graph.input:
        length = "decoder_sequence_length" if "decoder" in one.name else "sequence_length"
        for name, axis in zip(("batch_size", length), one.type.tensor_type.shape.dim, strict=False):
            if axis.dim_param:
                names[axis.dim_param] = name
    for one in (*made.graph.input, *made.graph.output, *made.graph.value_info):
        for axis in one.type.tensor_type.shape.dim:
            if axis.dim_param in names:
                axis.dim_param = names[axis.dim_param]
    onnx.save(made, str(file))


def _compared(runtime: Any, subject: Subject, wrapped: _First, file: Path) -> float:
    inputs = _inputs(subject, batch=3, longer=4)
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    given = {name: value.cpu().numpy() for name, value in inputs.items()}
    got = torch.from_numpy(session.run(None, given)[0]).double()
    with quiet(), eval_mode(subject.model), torch.no_grad():
        wanted = wrapped(*inputs.values()).cpu().double()
    apart = float((got - wanted).abs().max() / wanted.abs().max().clamp_min(1e-30))
    if not apart <= ROOM:
        raise ModelError(
            f"onnxruntime gives other outputs than {subject.name} ({apart:.1e} apart, where "
            f"{ROOM:.0e} is allowed), so no ONNX file was written."
        )
    return apart


# --- Save a cut model at its old size, with zeros where heads were ------------------------------

_TABLE = "relative_attention_bias.weight"


def filled_with_zeros(model: Any) -> Any:
    """The whole model that gives what the cut one gives: removed heads are there, and give 0."""
    left = heads_left(model.config)
    if left is None:
        raise UsageError("No head was removed from this model, so there is nothing to fill.")
    whole = _built_whole(model)
    cut, full = dict(model.named_parameters()), dict(whole.named_parameters())
    with torch.no_grad():
        for name, value in full.items():
            if name in cut and cut[name].shape == value.shape:
                value.copy_(cut[name])
        for name, buffer in whole.named_buffers():
            buffer.copy_(model.get_buffer(name))
        for site in sites_of(whole):
            for place in head_weights(whole, site):
                _fill(cut, full, place, _kept(site, place, left))
        _fill_tables(model, full, sites_of(whole), left)
    return whole.eval()


def _built_whole(model: Any) -> Any:
    config = deepcopy(model.config)
    delattr(config, KEY)
    with torch.random.fork_rng(devices=[]):
        return type(model)(config).to(device=model.device, dtype=model.dtype)


def _kept(site: Site, place: HeadWeight, left: dict[str, list[int]]) -> Tensor:
    """Which entries of a whole weight the cut one still has."""
    numbers = left[f"{site.stack}.{site.layer}"]
    queries = torch.zeros(site.heads, dtype=torch.bool)
    queries[numbers] = True
    return place.kept(queries, queries.view(site.kv_heads, -1).any(1))


def _fill(cut: dict[str, Tensor], full: dict[str, Tensor], place: HeadWeight, kept: Tensor) -> None:
    """Zeros, and what was kept in its old place; a dead head has nothing to give."""
    if place.name.endswith(_TABLE):
        return  # see below
    value = full[place.name].zero_()
    if len(kept):
        value.index_copy_(place.axis, kept.to(value.device), cut[place.name])


def _fill_tables(
    model: nn.Module, full: dict[str, Tensor], sites: list[Site], left: dict[str, list[int]]
) -> None:
    """T5: the one table of a stack gets each head's column from a layer that still has it."""
    cut = dict(model.named_parameters())
    for name in [name for name in full if name.endswith(_TABLE)]:
        stack = next(site.stack for site in sites if name.startswith(f"{site.module}."))
        full[name].zero_()
        seen: dict[int, Tensor] = {}
        for site in (site for site in sites if site.stack == stack):
            table = cut.get(f"{site.module}.{_TABLE}")
            numbers = left[f"{site.stack}.{site.layer}"]
            for place, number in enumerate(numbers if table is not None else ()):
                column = table[:, place]  # type: ignore[index]
                if number in seen and not torch.equal(seen[number], column):
                    raise UsageError(
                        f"The layers of '{stack}' were trained apart since heads were removed, and "
                        "a whole model has one position bias for all; save it without export."
                    )
                seen[number] = column
                full[name][:, number] = column
