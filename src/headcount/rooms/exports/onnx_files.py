"""ONNX graphs with the names and the files that optimum gives them, and a cache where text grows.

A decoder is one graph that takes the keys and values so far and gives them with the new ones. An
encoder-decoder is three: what is read, the first word, and every word after it. Other models are
one graph without a cache.
"""

from __future__ import annotations

import importlib
import inspect
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache, DynamicLayer, EncoderDecoderCache
from transformers.utils import ModelOutput

from headcount.errors import ModelError
from headcount.importance import Intervention, Sweep, sweep_task
from headcount.models import (
    Saved,
    Subject,
    core_of,
    eval_mode,
    no_logs,
    on_exit,
    probe_inputs,
    quiet,
    switched,
)
from headcount.pruning import Plan, loss_bounds, point_of, read_tolerance

#: What optimum calls the files: one graph, or those of an encoder-decoder.
ONNX, ENCODER = "model.onnx", "encoder_model.onnx"
FIRST_STEP, NEXT_STEP = "decoder_model.onnx", "decoder_with_past_model.onnx"

#: How far apart the file and the model may be, of the largest number that comes out.
ROOM = 1e-4

Named = dict[str, Tensor]


@dataclass(frozen=True)
class Sizes:
    """The sizes of an example: texts, their tokens, and those that were read before."""

    batch: int = 2
    length: int = 5
    past: int = 4


@dataclass(frozen=True)
class Graph:
    """One file: how an example of its inputs is made, what is run, and what its axes are called."""

    file: str
    example: Callable[[Sizes], Named]
    run: Callable[[Any, Named], tuple[Tensor, ...]]
    outputs: tuple[str, ...]
    #: By the beginning of a name: what axis 1 is called, or 2 of keys and values.
    lengths: Mapping[str, str]

    def axes_of(self, name: str, dims: int) -> dict[int, str]:
        """The axes of an input or output that are free, and what they are called."""
        starts = [start for start in self.lengths if name.startswith(start)]
        length = self.lengths[max(starts, key=len)] if starts else ""
        return {0: "batch_size"} | ({2 if dims == 4 else 1: length} if length else {})


class _Flat(nn.Module):
    """A model whose inputs and outputs are plain tensors."""

    def __init__(self, model: Any, names: Sequence[str], graph: Graph) -> None:
        super().__init__()
        self.model, self.names, self.graph = model, names, graph

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """What the graph gives."""
        return self.graph.run(self.model, dict(zip(self.names, inputs, strict=True)))


# --- Which graphs a model is ---------------------------------------------------------------------


def graphs_of(subject: Subject) -> list[Graph]:
    """The files of a model, each with what it takes and gives."""
    model: Any = subject.inner
    if not model.can_generate() or (known := _cache_sizes(subject)) is None:
        return [_plain(subject)]
    if model.config.is_encoder_decoder:
        return _three(subject, *known)
    return [_growing(subject, *known)]


def _plain(subject: Subject) -> Graph:
    model = subject.inner
    takes = inspect.signature(model.forward).parameters
    more = {"use_cache": False} if "use_cache" in takes else {}
    with quiet(), eval_mode(subject.model), torch.no_grad():
        name = next(iter(model(**_inputs(subject, Sizes()), **more).keys()), "output")
    lengths = {"": "sequence_length", "decoder": "decoder_sequence_length"}
    if "input_ids" not in _inputs(subject, Sizes()):
        lengths = {"decoder": "decoder_sequence_length"}
    return Graph(
        ONNX,
        lambda sizes: _inputs(subject, sizes),
        lambda model, given: (model(**given, **more)[0],),
        (name,),
        lengths,
    )


def _growing(subject: Subject, sizes: list[tuple[int, int, int]], _: Any) -> Graph:
    """A decoder with its keys and values so far."""
    takes = inspect.signature(subject.inner.forward).parameters
    known = _key_names(len(sizes))

    def example(at: Sizes) -> Named:
        ids = _inputs(subject, at)["input_ids"]
        mask = torch.ones(at.batch, at.past + at.length, dtype=torch.long)
        mask[-1, 0] = 0
        given = {"input_ids": ids, "attention_mask": mask.to(ids.device)}
        if "position_ids" in takes:
            given["position_ids"] = (given["attention_mask"].cumsum(1) - 1).clamp_min(0)[
                :, at.past :
            ]
        return given | _drawn(subject, known, sizes, at.batch, at.past)

    def run(model: Any, given: Named) -> tuple[Tensor, ...]:
        past = [given.pop(name) for name in known]
        cache = _cache(past)
        output = model(**given, past_key_values=cache, use_cache=True)
        return (output.logits, *_flat(output.past_key_values))

    outputs = ("logits", *(f"present.{name.partition('.')[2]}" for name in known))
    both = "past_sequence_length + sequence_length"
    lengths = {"": "sequence_length", "past": "past_sequence_length", "present": both}
    return Graph(ONNX, example, run, outputs, lengths | {"attention_mask": both})


def _three(
    subject: Subject, own: list[tuple[int, int, int]], cross: list[tuple[int, int, int]]
) -> list[Graph]:
    """The encoder; the decoder's first step, which keeps the source; and all others."""
    model: Any = subject.inner
    own_names, cross_names = (_key_names(len(own), f"{name}.") for name in ("decoder", "encoder"))
    source = {name for name in _inputs(subject, Sizes()) if not name.startswith("decoder")}
    reads, masked = "encoder_sequence_length", "attention_mask" in source
    width = 0

    def read(at: Sizes) -> Named:
        return {name: value for name, value in _inputs(subject, at).items() if name in source}

    def encode(model: Any, given: Named) -> tuple[Tensor, ...]:
        return (model.get_encoder()(**given)[0],)

    with quiet(), eval_mode(subject.model), torch.no_grad():
        width = encode(model, read(Sizes()))[0].shape[-1]

    def begun(at: Sizes) -> Named:
        given = read(at)
        ids = _inputs(subject, at)["decoder_input_ids"][:, :1].repeat(1, at.past)
        with torch.no_grad():
            states = encode(model, given)[0]
        mask = {"encoder_attention_mask": given["attention_mask"]} if masked else {}
        return {"input_ids": ids, **mask, "encoder_hidden_states": states}

    def gone_on(at: Sizes) -> Named:
        given = begun(at)
        states = given.pop("encoder_hidden_states")
        given["input_ids"] = given["input_ids"][:, :1]
        there = states.shape[1]
        return {
            **given,
            **_drawn(subject, own_names, own, at.batch, at.past),
            **_drawn(subject, cross_names, cross, at.batch, there),
        }

    def first(model: Any, given: Named) -> tuple[Tensor, ...]:
        states = given["encoder_hidden_states"]
        output = _decoded(model, given, states, None)
        past = output.past_key_values
        return (
            output.logits,
            *_flat(past.self_attention_cache),
            *_flat(past.cross_attention_cache),
        )

    def step(model: Any, given: Named) -> tuple[Tensor, ...]:
        mine, theirs = ([given[name] for name in names] for names in (own_names, cross_names))
        # The source is in the keys and values; only its length is looked at.
        states = theirs[0].new_zeros(theirs[0].shape[0], theirs[0].shape[2], width)
        past = EncoderDecoderCache(_cache(mine), _cache(theirs))
        output = _decoded(model, given, states, past)
        return (output.logits, *_flat(output.past_key_values.self_attention_cache))

    present = tuple(f"present.{name.partition('.')[2]}" for name in (*own_names, *cross_names))
    kept = {f"{what}.{k}.encoder": reads for what in ("present", "past_key_values") for k in
            range(len(own))}  # fmt: skip
    steps = {"logits": "decoder_sequence_length", "input_ids": "decoder_sequence_length"}
    steps |= {"encoder_attention_mask": reads, "encoder_hidden_states": reads, **kept}
    after = "past_decoder_sequence_length + 1"
    return [
        Graph(ENCODER, read, encode, ("last_hidden_state",), {"": reads} if masked else {}),
        Graph(
            FIRST_STEP,
            begun,
            first,
            ("logits", *present),
            steps | {"present": "decoder_sequence_length"},
        ),
        Graph(
            NEXT_STEP,
            gone_on,
            step,
            ("logits", *present[: len(own_names)]),
            {
                **steps,
                "input_ids": "",
                "logits": "",
                "past": "past_decoder_sequence_length",
                "present": after,
            },
        ),
    ]


def _decoded(model: Any, given: Named, states: Tensor, past: Any) -> Any:
    mask = given.get("encoder_attention_mask")
    more = {} if mask is None else {"attention_mask": mask}
    return model(
        encoder_outputs=(states,),
        decoder_input_ids=given["input_ids"],
        past_key_values=past,
        use_cache=True,
        **more,
    )


# --- Keys and values -----------------------------------------------------------------------------


def _key_names(layers: int, part: str = "") -> list[str]:
    return [
        f"past_key_values.{at}.{part}{what}" for at in range(layers) for what in ("key", "value")
    ]


def _cache(past: Sequence[Tensor]) -> DynamicCache:
    return DynamicCache(list(zip(past[::2], past[1::2], strict=True)))


def _flat(cache: Any) -> Iterator[Tensor]:
    for layer in cache.layers:
        yield layer.keys
        yield layer.values


def _drawn(subject: Subject, names: list[str], sizes: Any, batch: int, length: int) -> Named:
    """Keys and values at random, all of a length; `sizes` are heads and widths of each layer."""
    dice = torch.Generator().manual_seed(length)
    found = {}
    for at, name in enumerate(names):
        heads, *widths = sizes[at // 2]
        value = torch.randn(batch, heads, length, widths[at % 2], generator=dice)
        found[name] = value.to(subject.device, subject.dtype)
    return found


def _cache_sizes(subject: Subject) -> tuple[list[tuple[int, int, int]], Any] | None:
    """Heads and widths of keys and values, layer by layer; None of a model with another cache."""
    model: Any = subject.inner
    if "past_key_values" not in inspect.signature(model.forward).parameters:
        return None
    with quiet(), eval_mode(subject.model), torch.no_grad():
        kept = model(**_inputs(subject, Sizes()), use_cache=True).past_key_values
    if isinstance(kept, EncoderDecoderCache):
        return _sizes_in(kept.self_attention_cache), _sizes_in(kept.cross_attention_cache)
    plain = isinstance(kept, DynamicCache) and not model.config.is_encoder_decoder
    if not plain or not all(isinstance(one, DynamicLayer) for one in kept.layers):
        return None  # states of another kind (Mamba)
    return _sizes_in(kept), None


def _sizes_in(cache: Any) -> list[tuple[int, int, int]]:
    return [(one.keys.shape[1], one.keys.shape[3], one.values.shape[3]) for one in cache.layers]


# --- Inputs --------------------------------------------------------------------------------------


def _inputs(subject: Subject, at: Sizes) -> Named:
    """Small inputs of a batch: what the tokenizer gives, with one row padded."""
    found: Named = {}
    for name, value in probe_inputs(core_of(subject.model)).items():
        if value.is_floating_point():
            dice = torch.Generator().manual_seed(at.batch)
            found[name] = torch.randn(at.batch, *value.shape[1:], generator=dice).to(value)
        else:
            longer = max(0, at.length - value.shape[1])
            found[name] = torch.cat([value, value[:, :1].repeat(1, longer)], 1)[:, : at.length]
            found[name] = found[name].repeat(at.batch, 1)
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


# --- Writing and comparing -----------------------------------------------------------------------


def write_graphs(subject: Subject, folder: Path, runtime: Any) -> tuple[float, list[Path]]:
    """Write every graph, and say how far from the model they are on inputs of another shape.

    Attention is written as plain products: of the ways that torch can write it (eager,
    scaled_dot_product_attention, the operator Attention of opset 23) onnxruntime's CPU kernels run
    this one fastest.
    """
    graphs = {folder / graph.file: graph for graph in graphs_of(subject)}
    return max(_written(subject, one, file, runtime) for file, one in graphs.items()), [*graphs]


def _written(subject: Subject, graph: Graph, file: Path, runtime: Any) -> float:
    example = graph.example(Sizes())
    wrapped = _Flat(subject.inner, list(example), graph).eval()
    free = torch.export.Dim.DYNAMIC
    open_axes = tuple(
        dict.fromkeys(graph.axes_of(name, value.dim()), free) for name, value in example.items()
    )
    silent = no_logs("torch.onnx")  # it logs about packages that are not needed
    with quiet(), silent, eval_mode(subject.model), switched(subject.model, lambda _: "eager"):
        torch.onnx.export(
            wrapped,
            tuple(example.values()),
            file,
            input_names=list(example),
            output_names=list(graph.outputs),
            dynamic_shapes=(open_axes,),
            dynamo=True,
            verbose=False,
        )
    _name_axes(file, graph)
    inputs = graph.example(Sizes(batch=3, length=9, past=6))
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    got = session.run(None, {name: value.cpu().numpy() for name, value in inputs.items()})
    with quiet(), eval_mode(subject.model), torch.no_grad():
        wanted = wrapped(*inputs.values())
    apart = max(_apart(torch.from_numpy(one), two) for one, two in zip(got, wanted, strict=True))
    if not apart <= ROOM:
        raise ModelError(
            f"onnxruntime gives other outputs than {subject.name} ({apart:.1e} apart, where "
            f"{ROOM:.0e} is allowed), so no ONNX file was written."
        )
    return apart


def _apart(one: Tensor, two: Tensor) -> float:
    two = two.cpu().double()
    return float((one.double() - two).abs().max() / two.abs().max().clamp_min(1e-30))


def _name_axes(file: Path, graph: Graph) -> None:
    """Call the free axes of a file what optimum calls them, in all of its graph."""
    import onnx

    made = onnx.load(str(file), load_external_data=False)
    names: dict[str, str] = {}
    for one in (*made.graph.input, *made.graph.output):
        axes = one.type.tensor_type.shape.dim
        for at, name in graph.axes_of(one.name, len(axes)).items():
            if axes[at].dim_param:
                names.setdefault(axes[at].dim_param, name)
                axes[at].dim_param = name
    for one in (*made.graph.input, *made.graph.output, *made.graph.value_info):
        for axis in one.type.tensor_type.shape.dim:
            if axis.dim_param in names:
                axis.dim_param = names[axis.dim_param]
    onnx.save(made, str(file))


# --- Packed as int8, and judged ------------------------------------------------------------------


def pack_graph(file: Path) -> None:
    """Pack the matrices of a file as int8, in its place; onnxruntime rounds what comes in, too."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    packed = file.with_name(f"packed-{file.name}")
    with quiet(), no_logs("root"):
        quantize_dynamic(file, packed, weight_type=QuantType.QInt8, per_channel=True)
    file.with_name(f"{file.name}.data").unlink(missing_ok=True)
    packed.replace(file)


@contextmanager
def answered_by(subject: Subject, folder: Path, runtime: Any) -> Iterator[None]:
    """Within the block, forwards of a model are those of the graphs in a folder."""
    sessions = {
        file.name: runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        for file in folder.glob("*.onnx")
    }

    def run(file: str, given: Mapping[str, Any]) -> tuple[str, Tensor]:
        session = sessions[file]
        named: dict[str, Any] = {}
        for one in session.get_inputs():
            if one.name.startswith("past_key_values"):  # nothing was read before
                shape = [len(next(iter(named.values()))), one.shape[1], 0, one.shape[3]]
                named[one.name] = np.zeros(shape, dtype=np.float32)
            elif one.name == "position_ids" and one.name not in given:
                named[one.name] = (named["attention_mask"].cumsum(1) - 1).clip(0)
            elif one.name == "token_type_ids" and one.name not in given:
                named[one.name] = np.zeros_like(named["input_ids"])
            else:
                named[one.name] = np.asarray(given[one.name])
        return session.get_outputs()[0].name, torch.from_numpy(session.run(None, named)[0])

    @wraps(subject.inner.forward)
    def forward(*args: Any, **given: Any) -> ModelOutput:
        given |= {subject.inner.main_input_name: args[0]} if args else {}
        if ENCODER in sessions:
            mask, ids = given.get("attention_mask"), given.pop("decoder_input_ids")
            states = run(ENCODER, given)[1]
            given = {"input_ids": ids, "encoder_hidden_states": states}
            given |= {"encoder_attention_mask": mask}
        name, value = run(FIRST_STEP if ENCODER in sessions else ONNX, given)
        return ModelOutput({name: value.to(subject.device)})

    model = subject.inner
    with on_exit(lambda: vars(model).pop("forward", None)):
        vars(model)["forward"] = forward
        yield


def judged_int8(subject: Subject, plan: Plan, small: Subject, saved: dict[str, Saved]) -> list[str]:
    """What int8 and the heads that went cost together, by the rule that heads are judged by.

    Where that may be more than is allowed, the folder is not kept.
    """
    runtime, name = importlib.import_module("onnxruntime"), "onnx-int8"
    made, task = saved[name], sweep_task(plan.sweep.task)
    whole = plan.sweep.baseline
    if task is not plan.sweep.task:
        whole = task.evaluate(subject)
    batches = list(task.batches(small, 16))
    with answered_by(small, Path(made.folder), runtime):
        packed = task.evaluate(small, batches=batches)
    gone = Intervention(plan.going, name=name)
    both = Sweep(task, (gone,), whole, (packed,), len(task), fast=False)
    metric, bound = whole.metric.name, float(loss_bounds(both)[0])
    allowed = read_tolerance(None).of(metric, whole.value)
    if plan.goal.max_loss is not None and task is plan.sweep.task:
        allowed = plan.goal.max_loss * point_of(metric)
    said = (
        f"As int8 in onnxruntime the {metric} is {packed.value:.4g} in place of {whole.value:.4g} "
        f"of the whole model; at most {bound:.2g} is lost (95% bound, n = {len(task):,}), and "
        f"{allowed:.2g} is allowed"
    )
    if bound <= allowed:
        return [f"{said}."]
    shutil.rmtree(made.folder)
    del saved[name]
    return [f"{said}: {Path(made.folder).name}/ was not kept."]
