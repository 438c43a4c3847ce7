"""Remove heads for good: a smaller model that computes what the whole one computes without them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from functools import partial
from itertools import takewhile
from typing import Any, Self

import pandas as pd
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from headcount import plugins
from headcount.errors import UnsupportedModel, UsageError
from headcount.models import (
    Site,
    Subject,
    apart,
    check_not_open,
    core_of,
    eval_mode,
    output_of,
    quiet,
    quiet_arguments,
    small_inputs,
    switched,
)
from headcount.pruning.cut import cut_heads, keeps
from headcount.records import (
    Head,
    check_head_set,
    check_heads,
    check_once,
    check_stack,
    heads_named,
    old_keywords,
    parse_heads,
)
from headcount.tasks import Task
from headcount.wiring import valve

# --- The heads that a call means, however it names them -----------------------------------------

#: Names, one head, layers with their heads, or rows of a table.
Heads = str | Head | Iterable[str | Head] | Mapping[Any, Any] | pd.DataFrame | pd.Series


def named_heads(heads: Heads, known: Sequence[Head]) -> list[Head]:
    """Read heads as they are given: they need not exist, and may be named twice.

    >>> known = [Head("enc", layer, index) for layer in (0, 1) for index in (0, 1)]
    >>> [str(head) for head in named_heads({0: [1], 1: [0, 1]}, known)]
    ['enc.0.1', 'enc.1.0', 'enc.1.1']
    >>> named_heads("enc.1", known) == named_heads({"enc": {1: [0, 1]}}, known)
    True
    """
    if isinstance(heads, str):
        return [head for word in check_head_set(heads) for head in heads_named(word, known)]
    if isinstance(heads, Head):
        return [heads]
    if isinstance(heads, Mapping):
        return _of_mapping(heads, known)
    if isinstance(heads, pd.Series):  # of true and false, the heads where it is true
        if heads.dtype != bool:
            raise UsageError(
                f"The column '{heads.name}' holds {heads.dtype} numbers, not a choice of heads; "
                "compare it with something (column < 0.1), or take the index of "
                "some rows."
            )
        return parse_heads(list(heads.index[heads]))
    if isinstance(heads, pd.DataFrame):
        return parse_heads(list(heads.index))
    if not isinstance(heads, Iterable):
        raise UsageError(
            f"{heads!r} names no heads; give names (['enc.0.1']), layers with their heads "
            "({0: [1, 2]}), or rows of a table's frame."
        )
    return parse_heads(heads)


def _of_mapping(heads: Mapping[Any, Any], known: Sequence[Head]) -> list[Head]:
    """Layers with their heads, those by stack, or scales by head as a valve takes them."""
    if any("." in str(key) or isinstance(key, tuple) for key in heads):
        for name, scale in heads.items():
            if not isinstance(scale, int | float) or scale != 0:
                raise UsageError(
                    f"{name} has the scale {scale!r}; a head is removed where its scale is 0, and "
                    "any other is for hc.valve."
                )
        return parse_heads(heads)
    stacks = list(dict.fromkeys(head.stack for head in known))
    by_stack = heads
    if all(str(key).isdigit() for key in heads):
        if len(stacks) > 1:
            raise UsageError(
                f"The model has the stacks {', '.join(stacks)}; say which is meant, e.g. "
                f"{{'{stacks[0]}': {{0: [1]}}}}."
            )
        by_stack = {stacks[0]: heads}
    return [head for stack, layers in by_stack.items() for head in _of_layers(stack, layers)]


def _of_layers(stack: str, layers: Any) -> list[Head]:
    check_stack(stack)
    if not isinstance(layers, Mapping) or not all(
        isinstance(heads, Iterable) and not isinstance(heads, str) for heads in layers.values()
    ):
        raise UsageError(f"{layers!r} is no mapping of layers to heads; write it as {{0: [1, 2]}}.")
    return parse_heads([f"{stack}.{layer}.{index}" for layer in layers for index in layers[layer]])


# --- Removed equals switched off ----------------------------------------------------------------


def check_removed(subject: Subject, small: Subject, going: Sequence[Head]) -> None:
    """Raise unless the cut model gives what the whole one gives with these heads switched off.

    What is left of every weight is the same, bit for bit. Both are run as they attend by themselves
    and by the plain formula of attention. In half precision what comes out at the end is as far
    apart as two ways to attend leave the whole model itself, and three times that is allowed; so
    each attention that was cut is held against the whole one in float32 too, on one input.
    """
    inputs = small_inputs(subject) | quiet_arguments(core_of(subject.model))
    _check_kept(subject, small)
    interface = subject.anatomy.sites[0].route == "interface"
    off = dict.fromkeys(going, 0.0)
    outputs = []
    for eager in [False, True] if interface else [False]:
        with _attention(subject, eager), valve(subject, off):
            outputs.append(_run(subject, inputs))
    # How far apart the two may be, of the largest number that comes out.
    room, half = 1e-5, subject.dtype not in (torch.float32, torch.float64)
    if half:
        noise = apart(outputs[0], outputs[-1]) if interface else 0.0
        room = 3 * max(noise, torch.finfo(subject.dtype).eps)
    for eager, switched_off in zip([False, True], outputs, strict=False):
        try:
            with _attention(small, eager):
                removed = _run(small, inputs)
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UnsupportedModel(
                f"{type(small.inner).__name__} (model type '{small.inner.config.model_type}') does "
                f"not run once heads are cut out ({reason}), so none can be removed. Switch them "
                "off with hc.valve instead."
            ) from error
        _refuse_apart(subject, "their outputs", apart(switched_off, removed), room)
    if half:
        _check_attentions(subject, small, going, inputs)


def _refuse_apart(subject: Subject, what: str, apart: float, room: float) -> None:
    if not apart <= room:
        raise UnsupportedModel(
            f"{subject.name} without the heads is not {subject.name} with the heads switched off: "
            f"{what} are {apart:.1e} apart, where {room:.0e} is allowed. Switch the heads off with "
            "hc.valve instead."
        )


def _check_kept(subject: Subject, small: Subject) -> None:
    """Raise unless every weight that was not cut, and what is left of one that was, is the same."""
    whole, left = subject.model.state_dict(), small.model.state_dict()
    for name, ours in left.items():
        theirs = whole.get(name)
        if not isinstance(ours, Tensor) or not isinstance(theirs, Tensor):
            continue  # a bias that a layer shared is its own now; quantised layers keep no tensors
        same = torch.equal(ours, theirs) if ours.shape == theirs.shape else _part_of(ours, theirs)
        if not same and ours.any():  # a layer without heads keeps one of zeros
            raise UnsupportedModel(
                f"{name} of {subject.name} changed where no head was removed from it, so none can "
                "be removed. Switch the heads off with hc.valve instead."
            )


def _part_of(ours: Tensor, theirs: Tensor) -> bool:
    """Whether a weight is some rows, or columns, of another, in their order, bit for bit."""
    axes = [axis for axis, size in enumerate(ours.shape) if size != theirs.shape[axis]]
    if len(axes) != 1:
        return False
    mine, whole = (_row_hashes(part.movedim(axes[0], 0)) for part in (ours, theirs))
    rest = iter(whole)
    return all(row in rest for row in mine)


def _row_hashes(weight: Tensor) -> list[int]:
    rows = weight.reshape(len(weight), -1).contiguous().cpu().view(torch.uint8).numpy()
    return [hash(row.tobytes()) for row in rows]


def _check_attentions(
    subject: Subject, small: Subject, going: Sequence[Head], inputs: dict[str, Any]
) -> None:
    """Raise unless each attention that was cut gives in float32 what the whole one gives."""
    gone = set(going)
    paths = {
        _with_output(subject, site) for site in subject.anatomy.sites if gone & set(site.names)
    }
    if any(weight.is_meta for weight in subject.model.parameters()):
        return  # weights that are fetched for each forward cannot be widened beforehand
    with valve(subject, dict.fromkeys(going, 0.0)), _InFloat32(subject.model, paths) as whole:
        _run(subject, inputs)
    with _InFloat32(small.model, paths, whole.read) as cut_ones:
        _run(small, inputs)
    for path, given in whole.gave.items():
        for theirs, ours in zip(given, cut_ones.gave[path], strict=True):
            _refuse_apart(subject, f"in float32 the outputs of {path}", apart(theirs, ours), 1e-5)


def _with_output(subject: Subject, site: Site) -> str:
    """The module that has a site and its output projection."""
    names = site.module.split("."), output_of(subject.model, site).name.split(".")
    return ".".join(
        one for one, _ in takewhile(lambda two: two[0] == two[1], zip(*names, strict=False))
    )


class _InFloat32:
    """Within the block some modules compute in float32, on given hidden states where there are any.

    `read` has what went in and `gave` what came out, call by call.
    """

    def __init__(
        self, model: nn.Module, paths: Iterable[str], given: Mapping[str, list[Any]] | None = None
    ) -> None:
        self.read: dict[str, list[Any]] = {path: [] for path in paths}
        self.gave: dict[str, list[Tensor]] = {path: [] for path in self.read}
        self._given = given
        self._modules = {path: model.get_submodule(path) for path in self.read}
        self._dtype = next(model.parameters()).dtype

    def __enter__(self) -> Self:
        self._kept: list[tuple[Tensor, Tensor]] = []
        self._hooks = []
        for path, module in self._modules.items():
            for part in (*module.parameters(), *module.buffers()):
                if part.is_floating_point() and part.dtype != torch.float32:
                    self._kept.append((part, part.data))
                    part.data = part.data.float()
            before, after = partial(self._before, path), partial(self._after, path)
            self._hooks.append(
                module.register_forward_pre_hook(before, with_kwargs=True, prepend=True)
            )
            self._hooks.append(module.register_forward_hook(after))
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()
        for part, data in self._kept:
            part.data = data

    def _before(self, path: str, _: nn.Module, args: Any, kwargs: Any) -> Any:
        taken = tree_map(self._wide, (args, kwargs))
        number = len(self.read[path])
        self.read[path].append(taken)
        if self._given is None:
            return taken
        return tree_map(_hidden, taken, self._given[path][number])

    def _after(self, path: str, _: nn.Module, args: Any, output: Any) -> Any:
        first = output[0] if isinstance(output, tuple) else output
        self.gave[path].append(first.detach())
        return tree_map(self._narrow, output)

    def _wide(self, part: Any) -> Any:
        return part.float() if isinstance(part, Tensor) and part.dtype == self._dtype else part

    def _narrow(self, part: Any) -> Any:
        known = isinstance(part, Tensor) and part.dtype == torch.float32
        return part.to(self._dtype) if known else part


def _hidden(ours: Any, theirs: Any) -> Any:
    """The other's hidden states `[batch, token, width]`; the rest, biases by head too, is ours."""
    states = isinstance(ours, Tensor) and ours.is_floating_point() and ours.dim() == 3
    return theirs if states and ours.shape == theirs.shape else ours


def _attention(subject: Subject, eager: bool) -> AbstractContextManager[None]:
    return switched(core_of(subject.model), lambda _: "eager") if eager else nullcontext()


def _run(subject: Subject, inputs: dict[str, Any]) -> Tensor:
    core = core_of(subject.model)
    with quiet(), eval_mode(core), torch.no_grad():
        output: Tensor = core(**inputs)[0]
    return output.double()


# --- Remove heads for good ----------------------------------------------------------------------


@old_keywords()
def prune(subject: Subject, heads: Heads, *, refit: Task | None = None) -> Subject:
    """A copy of the subject without these heads; the subject itself is not changed.

    With `refit` what is left makes up for the heads that go, as well as it can on the examples of
    that task (`hc.Refit`); judge the result on other examples.

    `heads` are names (`"enc.0.1,enc.3"`, or a list), layers with their heads (`{0: [1, 2]}`, for
    an encoder-decoder `{"enc": {0: [1]}}`), or rows of a table's frame.
    Rows of the query, key and value projections and columns of the output projection are cut.
    A layer that loses all heads keeps its residual and its bias. The heads that are left keep
    their names. Before it is returned, the copy is compared with the subject with these heads
    switched off.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> small = prune(Subject(BertModel(config), name="mine"), "enc.0.1,enc.0.2")
    >>> small, [str(head) for head in small.heads]
    (Subject(mine without 2 heads: BertModel, 1 layers x 2 heads enc, float32 on cpu),
     ['enc.0.0', 'enc.0.3'])
    """
    _check_subject(subject)
    if refit is not None:
        fitted: Subject = plugins.get("names", "Refit")(subject, refit).prune(heads)
        return fitted
    going = read_heads(heads, subject.heads)
    kept = keeps(subject.anatomy, going)
    model = deepcopy(subject.model)
    cut_heads(model, kept, subject.anatomy.sites)
    note = f"{len(going)} of {len(subject.heads)} heads of {subject.name} were removed."
    small = Subject(
        model,
        subject.tokenizer,
        name=f"{subject.name} without {len(going)} head{'' if len(going) == 1 else 's'}",
        source=subject.source,
        revision=subject.revision,
        notes=[*subject.notes, note],
        stored=subject.stored,
    )
    check_removed(subject, small, going)
    return small


def read_heads(heads: Heads, known: Sequence[Head]) -> list[Head]:
    """The heads to remove, in the model's order: each exists, each is named once, some stay."""
    named = named_heads(heads, known)
    check_heads(named, known)
    check_once(named)
    if len(named) == len(known):
        raise UsageError(
            f"All {len(known)} heads of the model would go; leave at least one, or measure the "
            "model without attention with hc.valve."
        )
    gone = set(named)
    return [head for head in known if head in gone]


def _check_subject(subject: object) -> None:
    """Refuse what cannot be pruned, and warn of heads that an older tool believes to be gone."""
    if not isinstance(subject, Subject):
        raise UsageError(
            f"prune takes a Subject, not {type(subject).__name__}; write hc.prune(hc.Subject("
            "model, tokenizer), heads), or cut the model itself with hc.prune_heads."
        )
    if subject.model is not subject.inner:
        raise UsageError(
            f"{subject.name} is wrapped in an adapter ({type(subject.model).__name__}), and heads "
            "are removed from plain layers only; merge first: model = model.merge_and_unload()."
        )
    check_not_open(subject.model, "pruned")
    listed = getattr(subject.inner.config, "pruned_heads", None)
    if listed:
        warnings.warn(
            f"The config of {subject.name} lists pruned_heads {listed}, which transformers 5 "
            "ignores: these heads are there and count as any other.",
            stacklevel=3,
        )
