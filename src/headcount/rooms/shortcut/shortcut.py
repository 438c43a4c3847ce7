"""A short cut through a forward: after one whole run, only what an ablation changes runs again.

Heads of a layer change nothing before it: its input, the encoder's output for a decoder's heads,
and within the layer all that lies before the output projection come from the whole run. Several
ablations share a forward, one below the other. Same numbers as a run of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial, update_wrapper
from itertools import chain, islice
from traceback import walk_tb
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map
from transformers.pytorch_utils import Conv1D

from headcount import importance, models, wiring
from headcount.errors import HeadcountError, ModelError
from headcount.importance import Group, Intervention, LongWay, Trial, chosen_by, marked
from headcount.models import Site, Subject, core_of, eval_mode, on_exit, out_of_memory, own_thread
from headcount.stats import Floats
from headcount.tasks import Task
from headcount.text import Batch
from headcount.wiring import Ablation, Attended, Instead, hooked, replaced, zero

# --- The course of a forward --------------------------------------------------------------------
# Found by watching one forward, not by knowing families. What cannot be told is left open, and
# whoever takes a short cut does without it.


class NoShortcut(Exception):
    """Why a model's forward cannot be cut short."""


@dataclass
class SitePass:
    """How a forward passes one site."""

    site: Site
    #: The entry of the model's list of layers that the site lies in, and its n-th call.
    block: nn.Module
    step: int
    attention: nn.Module
    #: The module that takes in the heads and nothing else.
    projection: nn.Module | None = None
    #: Whether what the projection gives is what the attention gives.
    inside: bool = False
    #: Whether the attention can be passed over when what it gives is known.
    skippable: bool = False


@dataclass
class Course:
    """Every passage in the order of a forward, and what the two halves of a translator share."""

    passages: dict[Site, SitePass] = field(default_factory=dict)
    #: Blocks in the order they are called; a block that serves several layers is there as often.
    steps: list[nn.Module] = field(default_factory=list)
    encoder: nn.Module | None = None
    #: Projections of the encoder's output, the same for every change in the decoder.
    crossing: list[nn.Module] = field(default_factory=list)

    @cached_property
    def order(self) -> dict[Site, int]:
        """When a forward comes to each site."""
        return {site: place for place, site in enumerate(self.passages)}


def course_of(subject: Subject, batch: Batch) -> Course:
    """Watch one forward of a batch; raises `NoShortcut` where it cannot be followed."""
    watch = _Watch(subject)
    with eval_mode(subject.model), torch.no_grad(), watch.hung():
        subject.model(**batch.to(subject.device).inputs)
    missing = [site for site in subject.anatomy.sites if site not in watch.course.passages]
    if missing:
        raise NoShortcut(f"{missing[0].stack}.{missing[0].layer} was not passed")
    return watch.course


def first_tensor(output: Any) -> Tensor | None:
    """The output itself, or the first of several."""
    first = output[0] if isinstance(output, tuple | list) and output else output
    return first if isinstance(first, Tensor) else None


class _Watch:
    """Notes where a forward goes."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.course = Course()
        self._blocks = {site: _block_of(subject.model, site) for site in subject.anatomy.sites}
        self._heads: tuple[SitePass, Tensor] | None = None
        self._projected: dict[Site, Tensor] = {}
        self._encoded: Tensor | None = None
        if "cross" in subject.anatomy.stacks:
            self.course.encoder = subject.inner.get_encoder()

    @contextmanager
    def hung(self) -> Iterator[None]:
        """Hang the watch on every module of every layer for this block."""
        blocks = dict.fromkeys(self._blocks.values())
        modules = [module for block in blocks for module in block.modules()]
        encoder = [] if self.course.encoder is None else [self.course.encoder]
        with (
            hooked(blocks, lambda block, _: self.course.steps.append(block)),
            hooked(modules, self._takes, with_kwargs=True),
            hooked(modules, self._gave, after=True),
            hooked(encoder, self._has_encoded, after=True),
            wiring.listening(self.subject, self._hear),
        ):
            yield

    def _hear(self, site: Site, attended: Attended) -> None:
        attention = self.subject.model.get_submodule(site.module)
        block, step = self._blocks[site], len(self.course.steps) - 1
        if step < 0 or self.course.steps[step] is not block:
            raise NoShortcut(f"{site.stack}.{site.layer} does not run within its own layer")
        passage = SitePass(site, block, step, attention)
        self.course.passages[site] = passage
        self._heads = (passage, attended.output) if site.route == "interface" else None

    def _takes(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        taken = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
        if isinstance(module, nn.Linear) and taken and taken[0] is self._encoded:
            self.course.crossing.append(module)
        if self._heads is None or len(taken) != 1 or self._heads[0].projection is not None:
            return
        passage, heads = self._heads
        if taken[0].data_ptr() == heads.data_ptr() and taken[0].numel() == heads.numel():
            passage.projection = module

    def _gave(self, module: nn.Module, _: Any, output: Any) -> None:
        if self._heads is None:
            return
        passage = self._heads[0]
        if module is passage.projection and isinstance(output, Tensor):
            self._projected[passage.site] = output
            passage.skippable = all(part is not module for part in passage.attention.modules())
        elif module is passage.attention and passage.site in self._projected:
            passage.inside = not passage.skippable
            one, other = first_tensor(output), self._projected[passage.site]
            if one is not None and one.data_ptr() == other.data_ptr():
                passage.skippable |= one.shape == other.shape

    def _has_encoded(self, module: nn.Module, _: Any, output: Any) -> None:
        self._encoded = first_tensor(output.to_tuple() if hasattr(output, "to_tuple") else output)


def _block_of(model: nn.Module, site: Site) -> nn.Module:
    """The layer that a site lies in: the entry of the outermost list of modules."""
    parts = site.module.split(".")
    for count in range(1, len(parts)):
        if isinstance(model.get_submodule(".".join(parts[:count])), nn.ModuleList):
            return model.get_submodule(".".join(parts[: count + 1]))
    raise NoShortcut(f"{site.module} lies in no list of layers")


# --- Put another function in the place of a module's forward ------------------------------------

Forward = Callable[..., Any]
#: Makes the new forward from the old one.
Take = Callable[[Forward], Forward]


@contextmanager
def taken_over(forwards: Mapping[nn.Module, Take]) -> Iterator[None]:
    """Within the block each module runs the forward that its `Take` makes from its own.

    >>> layer = nn.Identity()
    >>> with taken_over({layer: lambda own: lambda x: own(x) + 1}):
    ...     layer(1)
    2
    >>> layer(1)
    1
    """
    # Some modules have a forward of their own (an offloading hook); the rest get the class's back.
    before = {module: vars(module).get("forward") for module in forwards}
    ours = own_thread()

    def taken(take: Take, own: Any) -> Any:
        instead = take(own)
        return lambda *args, **kwargs: (instead if ours() else own)(*args, **kwargs)

    def restore() -> None:
        for module, own in before.items():
            vars(module).pop("forward", None)
            if own is not None:
                module.forward = own

    with on_exit(restore):
        for module, take in forwards.items():
            # Wrapped, since transformers reads from a forward's signature what it takes.
            module.forward = update_wrapper(taken(take, module.forward), module.forward)
        yield


# --- What a whole run gave on the way, kept as long as its batch is worked on -------------------


class RecordedRun:
    """Outputs of one run by block, attention and projection; copies of them for several rows."""

    def __init__(self, instead: Instead) -> None:
        self.instead = instead
        self.rows = 0
        self.encoder: Any = None
        #: By the step of a block, or by what at a site: "attention", "projection", "heads".
        self._outputs: dict[Hashable, Any] = {}
        #: What would stand in the place of the heads; nothing for zero.
        self._instead: dict[Site, Tensor] = {}
        self._encoded: dict[int, Any] = {}
        self._crossed: dict[tuple[nn.Module, int], Tensor] = {}
        self._seals: list[tuple[Tensor, int]] = []

    @property
    def intact(self) -> bool:
        """Whether the model has left alone what it gave: some work in place."""
        return all(tensor._version == version for tensor, version in self._seals)

    def keep(self, what: Hashable, output: Any) -> None:
        """Keep what a block, an attention module, an output projection or heads gave."""
        self._outputs[what] = output
        tensors = [part for part in tree_leaves(output) if isinstance(part, Tensor)]
        self._seals += [(tensor, tensor._version) for tensor in tensors]

    def hear(self, site: Site, attended: Attended) -> None:
        """Keep the outputs of a site's heads, and their replacements."""
        self.rows = attended.output.shape[0]
        self.keep(("heads", site), attended.output)
        if self.instead is not zero:
            self._instead[site] = self.instead(site, attended)

    def given(self, what: Hashable, copies: int) -> Any:
        """What was kept, for N copies of the batch."""
        if what not in self._outputs:
            raise NoShortcut("it does not run the same layers every time")
        return copied(self._outputs[what], self.rows, copies)

    def encoded(self, copies: int) -> Any:
        """What the encoder gave; always the same object for as many copies."""
        if copies not in self._encoded:
            self._encoded[copies] = copied(self.encoder, self.rows, copies)
        return self._encoded[copies]

    def crossed(self, module: nn.Module, copies: int, compute: Callable[[], Tensor]) -> Tensor:
        """A projection of the encoder's output, computed once."""
        if (module, copies) not in self._crossed:
            self._crossed[module, copies] = compute()
        return self._crossed[module, copies]

    def projected_without(
        self, passage: SitePass, chosen: Tensor, project: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """What the projection gives when heads are ablated, `[ablation, head]`, one below another.

        One head's share is taken from the sum where the projection is a plain matrix; in all
        other cases the projection runs again.
        """
        site = passage.site
        matrix = _matrix(passage.projection)
        if matrix is not None and bool((chosen.sum(dim=1) == 1).all()):
            return self._less_one(site, chosen.int().argmax(dim=1).tolist(), matrix)
        heads = self.given(("heads", site), len(chosen))
        instead = self._instead.get(site)
        other = heads.new_zeros(()) if instead is None else copied(instead, self.rows, len(chosen))
        rows = chosen.repeat_interleave(self.rows, dim=0)
        return project(replaced(heads, rows, other).flatten(-2))

    def _less_one(self, site: Site, heads: list[int], matrix: Tensor) -> Tensor:
        whole, own = self.given(("projection", site), 1), self.given(("heads", site), 1)
        made = whole.new_empty((len(heads), *whole.shape))
        for place, head in enumerate(heads):
            share = own[:, :, head]
            if site in self._instead:
                other = self._instead[site]
                share = share - (other[..., head, :] if other.dim() > 1 else other)
            columns = slice(head * share.shape[-1], (head + 1) * share.shape[-1])
            torch.addmm(
                whole.flatten(0, -2),
                share.flatten(0, -2),
                matrix[columns],
                alpha=-1,
                out=made[place].flatten(0, -2),
            )
        return made.flatten(0, 1)


def copied(output: Any, rows: int, copies: int) -> Any:
    """An output for as many copies of a batch, one below the other; the same object for one."""
    if copies == 1:
        return output

    def copy(part: Any) -> Any:
        if not isinstance(part, Tensor) or part.dim() < 2 or part.shape[0] != rows:
            return part
        return part.unsqueeze(0).expand(copies, *part.shape).flatten(0, 1)

    return tree_map(copy, output)


def _matrix(projection: nn.Module | None) -> Tensor | None:
    """The weight of a plain matrix, `[in, out]`; nothing for anything else, such as an adapter."""
    if type(projection) is nn.Linear:
        return projection.weight.t()
    if isinstance(projection, Conv1D) and type(projection) is Conv1D:
        weight: Tensor = projection.weight
        return weight
    return None


# --- What runs in the place of a model's forwards while a short cut is taken --------------------


@dataclass
class Aim:
    """Where a run begins anew, and which heads are ablated."""

    passage: SitePass
    #: True for every head that is ablated, `[ablation, head]`.
    chosen: Tensor
    #: What the projection is to give, once its attention was passed over.
    waiting: Tensor | None = None

    @property
    def copies(self) -> int:
        """How many ablations share the forward."""
        return len(self.chosen)


T = TypeVar("T")


class Shortcut:
    """Runs a model whole, then again from one site on; the model is as before when it is closed.

    Blocks, attentions, projections and the encoder run forwards that know the whole run. Neither
    recording nor with an aim, also within `opened()`, they do what the model's own forwards do.
    """

    def __init__(self, subject: Subject, course: Course) -> None:
        self.course = course
        self.kept = RecordedRun(zero)
        self.aim: Aim | None = None
        self.is_recording = False
        self._subject = subject
        self._spans = subject.anatomy.spans
        self._live = _Live(subject, self)
        self._here: Site | None = None
        self._own: dict[nn.Module, Forward] = {}
        self._calls: dict[nn.Module, int] = defaultdict(int)
        self._sites: dict[nn.Module, list[Site]] = defaultdict(list)
        self._steps: dict[nn.Module, list[int]] = defaultdict(list)
        for site, passage in course.passages.items():
            self._sites[passage.attention].append(site)
        for number, block in enumerate(course.steps):
            self._steps[block].append(number)

    @contextmanager
    def opened(self) -> Iterator[Shortcut]:
        """Hang everything on the model for this block."""
        try:
            with wiring.attached(self._subject, self._live), taken_over(self.forwards()):
                yield self
        finally:
            self.kept = RecordedRun(zero)

    def whole(self, run: Callable[[], T], instead: Instead) -> T:
        """Run as the model is, and keep what later runs need."""
        self.kept = RecordedRun(instead)
        self._calls.clear()
        try:
            self.is_recording = True
            return run()
        finally:
            self.is_recording, self._here = False, None

    def again(self, run: Callable[[], T], site: Site, chosen: Tensor) -> T:
        """Run from a site on with heads ablated, true or false `[ablation, head]`.

        The batch must be the whole run's, once for every ablation, one below the other; no head
        of an earlier site may be among the chosen.
        """
        self._live.instead = self.kept.instead
        one = len(chosen) == 1
        self._live.chosen = chosen[0] if one else chosen.repeat_interleave(self.kept.rows, dim=0)
        self._calls.clear()
        try:
            self.aim = Aim(self.course.passages[site], chosen)
            return run()
        finally:
            self.aim, self._here = None, None

    def next(self, module: nn.Module) -> Site:
        """The site of the attention call that is under way."""
        if self._here is None:
            raise NoShortcut(f"{type(module).__name__} attended where it was not watched")
        return self._here

    def forwards(self) -> dict[nn.Module, Take]:
        """What to put in the place of which forward."""
        course = self.course
        takes = {block: self._take(block, self._block) for block in course.steps}
        for passage in course.passages.values():
            takes[passage.attention] = self._take(passage.attention, self._attention)
            if passage.skippable and passage.projection is not None:
                takes[passage.projection] = self._take(passage.projection, self._projection)
        takes |= {module: self._take(module, self._crossing) for module in course.crossing}
        if course.encoder is not None:
            takes[course.encoder] = self._take(course.encoder, self._encoder)
        return takes

    def _take(self, module: nn.Module, stand_in: Callable[..., Any]) -> Take:
        def take(own: Forward) -> Forward:
            self._own[module] = own

            def forward(*args: Any, **kwargs: Any) -> Any:
                if self.is_recording or self.aim is not None:
                    return stand_in(module, *args, **kwargs)
                return own(*args, **kwargs)

            return forward

        return take

    # --- one for each kind of module ------------------------------------------------------------

    def _encoder(self, encoder: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if self.aim is not None and self.aim.passage.site.stack != "enc":
            return self.kept.encoded(self.aim.copies)
        output = self._own[encoder](*args, **kwargs)
        if self.is_recording:
            self.kept.encoder = output
        return output

    def _crossing(self, module: nn.Module, *args: Any, **kwargs: Any) -> Tensor:
        """A projection of the encoder's output: the very same output is projected once."""
        copies = 1 if self.aim is None else self.aim.copies
        compute = partial(self._own[module], *args, **kwargs)
        if self.kept.encoder is None or not args or args[0] is not self.kept.encoded(copies)[0]:
            return compute()
        return self.kept.crossed(module, copies, compute)

    def _block(self, block: nn.Module, *args: Any, **kwargs: Any) -> Any:
        step = self._turn(block, self._steps)
        if self.aim is not None and step < self.aim.passage.step:
            # Count the attention calls of a block that does not run.
            for passage in self.course.passages.values():
                self._calls[passage.attention] += passage.step == step
            last = step == self.aim.passage.step - 1
            return self.kept.given(step, self.aim.copies if last else 1)
        output = self._own[block](*args, **kwargs)
        if self.is_recording:
            self.kept.keep(step, output)
        return output

    def _attention(self, attention: nn.Module, *args: Any, **kwargs: Any) -> Any:
        site = self._turn(attention, self._sites)
        passage = self.course.passages[site]
        if self.aim is not None and passage.step == self.aim.passage.step:
            if site == self.aim.passage.site and passage.skippable:
                return self._without_running(passage, self.aim)
            if self.course.order[site] < self.course.order[self.aim.passage.site]:
                return self.kept.given(("attention", site), self.aim.copies)
        self._here = site
        output = self._own[attention](*args, **kwargs)
        if self.is_recording:
            self.kept.keep(("attention", site), output)
        return output

    def _without_running(self, passage: SitePass, aim: Aim) -> Any:
        """What an attention gives when some of its heads are ablated."""
        assert passage.projection is not None  # or it could not be passed over
        chosen = aim.chosen[:, self._spans[passage.site]]
        made = self.kept.projected_without(passage, chosen, self._own[passage.projection])
        output = self.kept.given(("attention", passage.site), aim.copies)
        if not passage.inside:
            aim.waiting = made
            return output
        return made if isinstance(output, Tensor) else (made, *output[1:])

    def _projection(self, projection: nn.Module, *args: Any, **kwargs: Any) -> Tensor:
        if self.aim is not None and self.aim.waiting is not None:
            made, self.aim.waiting = self.aim.waiting, None
            return made
        output: Tensor = self._own[projection](*args, **kwargs)
        if self.is_recording and self._here is not None:
            self.kept.keep(("projection", self._here), output)
        return output

    # --- which call is which --------------------------------------------------------------------

    def _turn(self, module: nn.Module, turns: Mapping[nn.Module, list[Any]]) -> Any:
        """What this call of a module is, when it is called several times in a forward."""
        count = self._calls[module]
        self._calls[module] += 1
        if count >= len(turns[module]):
            raise NoShortcut(f"{type(module).__name__} was called once more than it was watched")
        return turns[module][count]


class _Live(Ablation):
    """On the seam: keeps what heads give in a whole run, ablates them in a run from a site on."""

    def __init__(self, subject: Subject, shortcut: Shortcut) -> None:
        none = torch.zeros(len(subject.heads), dtype=torch.bool)
        super().__init__(none, zero, shortcut.next, subject.anatomy.spans)
        self._shortcut = shortcut

    def __call__(self, module: nn.Module, attended: Attended) -> Tensor:
        """Hear, ablate, or look away."""
        if self._shortcut.aim is not None:
            return super().__call__(module, attended)
        if self._shortcut.is_recording:
            self._shortcut.kept.hear(self._shortcut.next(module), attended)
        return attended.output


# --- An encoder that runs once ------------------------------------------------------------------


class EncoderOnce:
    """Reads a batch once and hands out what came of it; within `opened()` only."""

    def __init__(self, subject: Subject) -> None:
        self._encoder = subject.inner.get_encoder()
        self._read: Any = None
        self._rows = 0
        self._copies = 0

    @contextmanager
    def opened(self) -> Iterator[EncoderOnce]:
        """Replace the encoder within this block."""
        try:
            with taken_over({self._encoder: self._take}):
                yield self
        finally:
            self._read = None

    def read(self, inputs: Mapping[str, Tensor]) -> None:
        """Run the encoder as `generate` does, and keep what it gives."""
        ids, real = inputs["input_ids"], inputs["attention_mask"]
        self._rows = len(ids)
        self._read = self._encoder(input_ids=ids, attention_mask=real, return_dict=True)

    def reuse(self, run: Callable[[], T], copies: int) -> T:
        """Run on N stacked copies of the batch."""
        try:
            self._copies = copies
            return run()
        finally:
            self._copies = 0

    def _take(self, own: Forward) -> Forward:
        def forward(*args: Any, **kwargs: Any) -> Any:
            if not self._copies:
                return own(*args, **kwargs)
            # A new container each time: beam search multiplies rows within the one it gets.
            return tree_map(lambda part: part, copied(self._read, self._rows, self._copies))

        return forward


# --- The short way is taken only where it gives what the long way gives -------------------------

#: The largest difference, as a share of the largest answer.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 5e-5}
#: In half precision, so many times the difference between two ways to attend that the model has
#: itself, which grows with its depth; at least so much.
NOISE, HALF = 3, 3e-2


def verify(
    subject: Subject,
    task: Task,
    batch: Batch,
    shortcut: Shortcut,
    instead: wiring.Instead,
) -> None:
    """Raise `NoShortcut` unless both ways agree on a batch, at the ends of every stack.

    Two ablations share a forward; what the whole run kept must stay untouched by it.
    """
    whole = shortcut.whole(lambda: task.answer(subject, batch), instead)
    room = TOLERANCE.get(whole.dtype) or max(HALF, NOISE * _noise(subject, task, batch, whole))
    stacks: dict[str, list[Site]] = {}
    for site in shortcut.course.passages:
        stacks.setdefault(site.stack, []).append(site)
    ends = [dict.fromkeys((sites[0], sites[-1])) for sites in stacks.values()]
    for site in chain.from_iterable(ends):
        chosen = torch.zeros(2, len(subject.heads), dtype=torch.bool)
        span = subject.anatomy.spans[site]
        chosen[0, span.start] = chosen[1, span.stop - 1] = True
        both = shortcut.again(
            lambda: task.answer(subject, importance.repeat_batch(batch, 2)), site, chosen
        )
        for place, one in enumerate(chosen):
            with wiring.ablated(subject, one, instead):
                single = task.answer(subject, batch)
            _compare(both.unflatten(0, (2, -1))[place], single, whole, site, room)
    if not shortcut.kept.intact:
        raise NoShortcut("it changes in place what its layers gave")


def _noise(subject: Subject, task: Task, batch: Batch, whole: Tensor) -> float:
    """How far apart the model's answers are where it attends by itself and by the plain formula."""
    if subject.anatomy.sites[0].route != "interface":
        return 0.0
    with models.switched(core_of(subject.model), lambda _: "eager"):
        plain = task.answer(subject, batch)
    return float((plain - whole).abs().max()) / max(1.0, float(whole.abs().max()))


def _compare(short: Tensor, long: Tensor, whole: Tensor, site: Site, room: float) -> None:
    gap = (short - long).abs().max()
    if not gap <= room * max(1.0, float(whole.abs().max())):
        raise NoShortcut(
            f"at {site.stack}.{site.layer} the short way differs from the long one by {gap:.2g}"
        )


# --- The ways -----------------------------------------------------------------------------------


#: Tokens that a forward on a GPU has at least, all ablations together, where memory has the room.
TOKENS = 4096


class ShortWay(LongWay):
    """Only what comes after the first ablated head runs again; see `shortcut`."""

    name = "short"
    keeps = True

    def __init__(self, subject: Subject, task: Task, rows: int, shortcut: Shortcut) -> None:
        super().__init__(subject, task, rows)
        self._shortcut = shortcut

    def groups(self, interventions: Sequence[Intervention], batch: Batch) -> list[Group]:
        """By the first site that they touch."""
        by_site: dict[Site, list[Intervention]] = {}
        order = self._shortcut.course.order
        for one in interventions:
            sites = [self.subject.anatomy.site(head.stack, head.layer) for head in one.heads]
            by_site.setdefault(min(sites, key=order.__getitem__), []).append(one)
        return [
            Group(f"{site.stack}.{site.layer}", tuple(members), site)
            for site, members in by_site.items()
        ]

    def whole(self, batch: Batch, instead: wiring.Instead) -> Floats:
        """One plain evaluation, of which everything is kept that the others need."""
        return self._shortcut.whole(partial(super().whole, batch, instead), instead)

    def prepare(self, batch: Batch, instead: wiring.Instead) -> None:
        """The same for another stand-in."""
        self.whole(batch, instead)

    def opened(self) -> AbstractContextManager[Any]:
        """Within the block the model can be cut short."""
        return self._shortcut.opened()

    def without(self, group: Group, batch: Batch, instead: wiring.Instead) -> Floats:
        """As many forwards from the site on as it takes."""
        assert group.site is not None
        size = self._at_once(batch)
        return np.concatenate(
            [
                self._some(group.members[start : start + size], batch, group.site)
                for start in range(0, len(group.members), size)
            ]
        )

    def _at_once(self, batch: Batch) -> int:
        """How many share a forward: by examples, or on a GPU by tokens, where those allow more."""
        size, device = self._rows // len(batch), self.subject.device
        if device.type == "cuda":
            words = getattr(self.subject.inner.config.get_text_config(), "vocab_size", 1)
            room = torch.cuda.mem_get_info(device)[0] // (16 * words)  # of logits, a few times
            tokens = max(part.numel() for part in batch.inputs.values())
            size = max(size, min(TOKENS, room) // tokens)
        return max(1, size)

    def _some(self, members: tuple[Intervention, ...], batch: Batch, site: Site) -> Floats:
        copies = importance.repeat_batch(batch, len(members))

        def run() -> Floats:
            return marked(self.task, self.subject, copies, len(members), members)

        return self._shortcut.again(run, site, chosen_by(members, self.subject))


class GeneratingWay(LongWay):
    """For models that generate: whole runs, but for the encoder where it is untouched."""

    name = "spoken"  # as journals have it

    def __init__(self, subject: Subject, task: Task, rows: int) -> None:
        super().__init__(subject, task, rows)
        self._encoder = EncoderOnce(subject)

    def groups(self, interventions: Sequence[Intervention], batch: Batch) -> list[Group]:
        """Those that touch the encoder and those that do not, apart."""
        touching = [one for one in interventions if _touches_encoder(one)]
        others = [one for one in interventions if not _touches_encoder(one)]
        return [*super().groups(touching, batch), *super().groups(others, batch)]

    def whole(self, batch: Batch, instead: wiring.Instead) -> Floats:
        """One plain evaluation, after the encoder has run."""
        self.prepare(batch, instead)
        return self._encoder.reuse(partial(super().whole, batch, instead), copies=1)

    def prepare(self, batch: Batch, instead: wiring.Instead) -> None:
        """Run the encoder; its output is the same for every replacement."""
        self._encoder.read(batch.to(self.subject.device).inputs)

    def without(self, group: Group, batch: Batch, instead: wiring.Instead) -> Floats:
        """Whole runs, or runs of the decoder alone."""
        if _touches_encoder(group.members[0]):
            return super().without(group, batch, instead)
        run = partial(super().without, group, batch, instead)
        return self._encoder.reuse(run, copies=len(group.members))

    def opened(self) -> AbstractContextManager[Any]:
        """Within the block the encoder's output is at hand."""
        return self._encoder.opened()


def _touches_encoder(one: Intervention) -> bool:
    return any(head.stack == "enc" for head in one.heads)


# --- Which of them a sweep takes ----------------------------------------------------------------

#: So many trials may break the model before it is not theirs.
_TRIALS = 8


def _one_that_runs(
    subject: Subject, task: Task, trials: Iterable[Trial]
) -> tuple[Batch, wiring.Instead]:
    """A trial without an example that the model breaks on: such are set aside later."""
    broken: Exception | None = None
    for trial, make in islice(trials, _TRIALS):
        try:
            instead = make()
            task.answer(subject, trial)
        except HeadcountError:
            raise
        except Exception as error:
            broken = error
        else:
            return trial, instead
    raise broken or ModelError(f"{task.name} has no batch to try {subject.name} on.")


#: What a family's code may raise when it gets other rows than in a run of its own: torch says
#: RuntimeError of sizes that do not fit, transformers ValueError; code that unpacks, indexes or
#: asserts says the others. HeadcountError is our own word for rows that cannot be told apart.
UNEXPECTED_ROWS = (
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    HeadcountError,
)


def _is_of_the_model(error: Exception) -> bool:
    """Whether a model is to blame, and not a slip in headcount's own lines, or too little memory.

    Sizes that do not fit come from the model also where torch notices it in a line of ours.
    """
    if isinstance(error, RuntimeError | HeadcountError):
        return not out_of_memory(error)
    *_, (frame, _) = walk_tb(error.__traceback__)
    return not frame.f_globals["__name__"].startswith("headcount.")


def short_way(
    subject: Subject, task: Task, trials: Iterable[Trial], rows: int
) -> tuple[LongWay | None, str]:
    """The way, tried on the first trial that runs; or none, and why."""
    if task.generates:
        return GeneratingWay(subject, task, rows), ""
    trial, instead = _one_that_runs(subject, task, trials)
    try:
        shortcut = Shortcut(subject, course_of(subject, trial))
        with shortcut.opened():
            verify(subject, task, trial, shortcut, instead)
        return ShortWay(subject, task, rows, shortcut), ""
    except NoShortcut as error:
        why = str(error)
    except UNEXPECTED_ROWS as error:
        if not _is_of_the_model(error):
            raise
        told = str(error).splitlines()[0] if str(error) else "no message"
        why = f"cut short it breaks ({type(error).__name__}: {told})"
    return None, why
