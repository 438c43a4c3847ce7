"""What a model costs: parameters, operations of a forward, bytes of its cache, time by part.

Two operations a multiplication, matrix products only; norms, softmax and activations do not
count. They are counted where they happen, from the shapes that each matrix sees in one forward.
"""

from __future__ import annotations

import inspect
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from headcount.errors import HeadcountError, UsageError
from headcount.models import (
    Site,
    Subject,
    core_of,
    eval_mode,
    layout_of,
    probe_inputs,
    quiet,
    sites_of,
)

# --- The parts of a forward ---------------------------------------------------------------------

Part = Literal["projections", "maps", "feed-forward", "ends"]
PARTS: tuple[Part, ...] = ("projections", "maps", "feed-forward", "ends")

#: Modules that multiply matrices.
MATRICES = (nn.Linear, Conv1D, nn.Conv1d, nn.Conv2d)


@dataclass(frozen=True)
class Parts:
    """Which module belongs to which part of a model.

    `attention` has the module of every site, those included whose last head is dead; `inner` the
    projections that such a module calls itself, `keys` and `output` those by whose rows the size
    of a map shows.
    """

    matrices: dict[nn.Module, Part]
    attention: dict[nn.Module, Site]
    inner: frozenset[nn.Module]
    keys: dict[nn.Module, nn.Module]
    output: dict[nn.Module, nn.Module]


def matrix_parts(subject: Subject) -> Parts:
    """Sort the matrices of a model: by what its attention is made of, and where its layers are.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> list(matrix_parts(Subject(BertModel(config))).matrices.values())
    ['projections', 'projections', 'projections', 'projections', 'feed-forward', 'feed-forward',
     'ends']
    """
    model, sites = subject.model, sites_of(subject.model)
    projections: dict[nn.Module, nn.Module] = {}
    keys: dict[nn.Module, nn.Module] = {}
    output: dict[nn.Module, nn.Module] = {}
    attention = {model.get_submodule(site.module): site for site in sites}
    for module, site in attention.items():
        own = dict(_projections(model, site))
        projections |= dict.fromkeys(own.values(), module)
        keys |= {own[name]: module for name in own if name == "keys"}
        output |= {own[name]: module for name in own if name == "output"}
    blocks = tuple({_block(site.module) for site in sites})
    matrices: dict[nn.Module, Part] = {}
    for name, module in model.named_modules():
        if isinstance(module, MATRICES):
            outside: Part = "feed-forward" if name.startswith(blocks) else "ends"
            matrices[module] = "projections" if module in projections else outside
    inner = frozenset(one for one, owner in projections.items() if one in set(owner.modules()))
    return Parts(matrices, attention, inner, keys, output)


def _projections(model: nn.Module, site: Site) -> Iterator[tuple[str, nn.Module]]:
    """The projections of a site; one of them gives the keys, one takes the heads' outputs."""
    try:
        row = layout_of(model, site)
    except HeadcountError:  # heads that cannot be removed still cost something
        for name, module in model.get_submodule(site.module).named_modules():
            if isinstance(module, MATRICES):
                yield name, module
        return
    for number, (path, letters) in enumerate(row.parts):
        yield "keys" if "k" in letters else f"part {number}", _at(model, site, path)
    yield "output", _at(model, site, row.output)


def _at(model: nn.Module, site: Site, path: str) -> nn.Module:
    if path.startswith(".."):
        return model.get_submodule(f"{site.module.rpartition('.')[0]}.{path[2:]}")
    return model.get_submodule(f"{site.module}.{path}")


def _block(path: str) -> str:
    """The layer that a module is in: its name up to the first number."""
    found = re.match(r"(?:.*?\.)?\d+(?=\.)", path)
    return f"{found.group()}." if found else path


# --- What a model costs whatever the machine ----------------------------------------------------


@dataclass(frozen=True)
class ModelCosts:
    """The costs of one model for a number of rows and tokens."""

    parameters: int
    #: Of them, those of the attention's projections.
    attention_parameters: int
    #: Operations of one forward, by part: projections, maps, feed-forward, ends.
    parts: dict[Part, float]
    #: Bytes that a decoder keeps for each token it has read or generated; 0 for an encoder.
    kv_bytes: int
    #: Bytes that the decoder of an encoder-decoder keeps for each source token.
    source_kv_bytes: int
    tokens: int
    batch: int

    @property
    def flops(self) -> float:
        """Operations of one forward."""
        return sum(self.parts.values())

    def to_json(self) -> dict[str, Any]:
        """Everything as plain numbers."""
        return {**vars(self), "parts": dict(self.parts), "flops": self.flops}

    def after(self, whole: ModelCosts) -> list[str]:
        """What the model costs on any machine next to the whole one, a line each."""
        lines = {
            "parameters": (whole.parameters, self.parameters),
            f"operations of a forward ({self.tokens} tokens)": (whole.flops, self.flops),
            "bytes of cache a token": (whole.kv_bytes, self.kv_bytes),
        }
        return [
            f"{what} {was:,.0f} -> {now:,.0f} ({now / was - 1:+.1%})"
            for what, (was, now) in lines.items()
            if was
        ]


def model_costs(subject: Subject, tokens: int = 128, batch: int = 1) -> ModelCosts:
    """Count what a model costs, whole or pruned; one forward of one row is run.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=32, vocab_size=32)
    >>> costs = model_costs(Subject(BertModel(config)), tokens=10)
    >>> costs.attention_parameters, costs.parts["projections"], costs.parts["maps"]
    (1088, 20480.0, 6400.0)
    """
    parts = matrix_parts(subject)
    inputs = trial_inputs(subject, tokens, 1)
    counted: dict[Part, float] = dict.fromkeys(PARTS, 0.0)
    with eval_mode(subject.model), torch.no_grad(), quiet(), _counting(parts, counted):
        subject.model(**inputs)
    cache = {"enc": 0, "dec": 0, "cross": 0}  # bytes of one token's keys and values in all layers
    for site in sites_of(subject.model):
        cache[site.stack] += 2 * site.kv_heads * site.head_dim * subject.dtype.itemsize
    attention = {
        weight
        for module, part in parts.matrices.items()
        if part == "projections"
        for weight in module.parameters(recurse=False)
    }
    return ModelCosts(
        parameters=sum(weight.numel() for weight in subject.model.parameters()),
        attention_parameters=sum(weight.numel() for weight in attention),
        parts={part: batch * amount for part, amount in counted.items()},
        kv_bytes=cache["dec"],
        source_kv_bytes=cache["cross"],
        tokens=tokens,
        batch=batch,
    )


def both_costs(whole: Subject, small: Subject) -> tuple[ModelCosts, ModelCosts]:
    """The costs before and after a pruning, for 128 tokens or as many as the model takes."""
    tokens = min(128, longest_input(whole) or 128)
    return model_costs(whole, tokens), model_costs(small, tokens)


@contextmanager
def _counting(parts: Parts, counted: dict[Part, float]) -> Iterator[None]:
    """Within the block, every product of one row of a batch is added to its part."""
    keys: dict[nn.Module, int] = {}

    def product(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        counted[parts.matrices[module]] += _operations(module, output)
        rows = output.numel() // output.shape[-1]
        if module in parts.keys:
            keys[parts.keys[module]] = rows
        if module in parts.output:
            # Queries times keys, and the map times the values; a causal map counts whole.
            attention = parts.output[module]
            site = parts.attention[attention]
            width = site.heads * site.head_dim
            counted["maps"] += 4.0 * rows * keys.get(attention, rows) * width

    with ExitStack() as stack:
        for module in parts.matrices:
            stack.callback(module.register_forward_hook(product).remove)
        yield


def _operations(module: nn.Module, output: Tensor) -> float:
    """Two for every weight that an output number is made of."""
    weight: Any = module.weight
    if weight.dim() > 2:  # a convolution: [out, in, ...]
        return 2.0 * output.numel() * weight[0].numel()
    return 2.0 * output.numel() / output.shape[-1] * weight.numel()


# --- Where the time of a forward goes -----------------------------------------------------------
# The rest is what multiplies no matrices: norms, activations, sums, embeddings, Python itself.

#: A moment, and how far two of them are apart in seconds, once the device has finished.
Mark = Any
Apart = Callable[[Mark, Mark], float]


def part_times(
    subjects: Sequence[Subject], inputs: dict[str, Any], rounds: int = 5
) -> list[dict[str, float]]:
    """Seconds of one forward of each model by part, timed in turns with hooks at the parts.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> inputs = {"input_ids": torch.ones(1, 4).long()}
    >>> list(part_times([Subject(BertModel(config))], inputs)[0])
    ['projections', 'maps', 'feed-forward', 'ends', 'rest']
    """
    parts = [matrix_parts(subject) for subject in subjects]
    rows: list[list[dict[str, float]]] = [[] for _ in subjects]
    for number in range(rounds + 1):
        for place, subject in enumerate(subjects):
            found = _one(subject, parts[place], inputs)
            if number:  # the first one warms up
                rows[place].append(found)
    return [
        {part: statistics.median(row[part] for row in each) for part in each[0]} for each in rows
    ]


def _one(subject: Subject, parts: Parts, inputs: dict[str, Any]) -> dict[str, float]:
    """The seconds of a single forward."""
    mark, apart = _clock(subject.device)
    taken: list[tuple[str, Mark, Mark]] = []

    def watch(module: nn.Module, name: str) -> None:
        began: list[Mark] = []
        enter = module.register_forward_pre_hook(lambda *_: began.append(mark()))
        leave = module.register_forward_hook(lambda *_: taken.append((name, began.pop(), mark())))
        stack.callback(enter.remove)
        stack.callback(leave.remove)

    with ExitStack() as stack:
        stack.enter_context(eval_mode(subject.model))
        stack.enter_context(torch.inference_mode())
        for module in parts.attention:
            watch(module, "attention")
        for module, part in parts.matrices.items():
            watch(module, f"inner {part}" if module in parts.inner else part)
        start = mark()
        subject.model(**inputs)
        end = mark()
    if subject.device.type == "cuda":
        torch.cuda.synchronize(subject.device)
    sums: dict[str, float] = defaultdict(float)
    for name, begun, ended in taken:
        sums[name] += apart(begun, ended)
    # An attention's own seconds are those that its projections do not take.
    inner = sums["inner projections"]
    found: dict[str, float] = {part: sums[part] for part in PARTS}
    found["projections"] += inner
    found["maps"] = max(0.0, sums["attention"] - inner)
    found["rest"] = max(0.0, apart(start, end) - sum(found.values()))
    return found


def _clock(device: torch.device) -> tuple[Callable[[], Mark], Apart]:
    if device.type != "cuda":
        return time.perf_counter, lambda start, end: float(end - start)

    def mark() -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    return mark, lambda start, end: float(start.elapsed_time(end)) / 1e3


def trial_inputs(subject: Subject, tokens: int, batch: int) -> dict[str, Any]:
    """Full rows of random tokens, source and target alike; pictures and sound have their own size.

    >>> from headcount.models.loading import load
    >>> inputs = trial_inputs(load("translator", device="cpu"), tokens=7, batch=2)
    >>> {name: tuple(value.shape) for name, value in inputs.items() if name.endswith("ids")}
    {'input_ids': (2, 7), 'decoder_input_ids': (2, 7)}
    """
    if tokens < 1 or batch < 1:
        raise UsageError(f"{batch} rows of {tokens} tokens cannot be run; both are 1 or more.")
    most = longest_input(subject)
    if most is not None and tokens > most:
        raise UsageError(
            f"{subject.name} takes {most} tokens at most, and {tokens} were asked for; give "
            "shorter lengths."
        )
    draw = torch.Generator().manual_seed(0)
    inputs: dict[str, Any] = {}
    for name, value in probe_inputs(core_of(subject.model)).items():
        if name.endswith("ids"):  # drawn from those that the probe found to be ordinary
            places = torch.randint(value.shape[1], (batch, tokens), generator=draw)
            inputs[name] = value[0, places.to(value.device)]
        else:
            inputs[name] = value.expand(batch, *value.shape[1:]).clone()
    if "use_cache" in inspect.signature(subject.model.forward).parameters:
        inputs["use_cache"] = False
    return inputs


def longest_input(subject: Subject) -> int | None:
    """How many tokens the model takes, where its config says so."""
    config = core_of(subject.model).config
    limits = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
    return min((limit for limit in limits if isinstance(limit, int)), default=None)
