"""The course of a forward: which block, attention and projection each site is passed in.

Found by watching one forward, not by knowing families. What cannot be told is left open, and
whoever takes a short cut does without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from headcount.models.rest import at_rest
from headcount.models.site import Site
from headcount.subject import Subject
from headcount.text.batch import Batch
from headcount.wiring.listen import listening
from headcount.wiring.seam import Attended

__all__ = ["Course", "NoShortcut", "Passage", "course_of", "first_tensor"]


class NoShortcut(Exception):
    """Why a model's forward cannot be cut short."""


@dataclass
class Passage:
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

    passages: dict[Site, Passage] = field(default_factory=dict)
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
    with at_rest(subject.model), torch.no_grad(), watch.hooked():
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
        self._heads: tuple[Passage, Tensor] | None = None
        self._projected: dict[Site, Tensor] = {}
        self._encoded: Tensor | None = None
        if "cross" in subject.anatomy.stacks:
            self.course.encoder = subject.inner.get_encoder()

    @contextmanager
    def hooked(self) -> Iterator[None]:
        with ExitStack() as stack:
            for block in set(self._blocks.values()):
                hook = block.register_forward_pre_hook(self._enters)
                stack.callback(hook.remove)
                for module in block.modules():
                    hook = module.register_forward_pre_hook(self._takes, with_kwargs=True)
                    stack.callback(hook.remove)
                    stack.callback(module.register_forward_hook(self._gave).remove)
            if self.course.encoder is not None:
                hook = self.course.encoder.register_forward_hook(self._has_encoded)
                stack.callback(hook.remove)
            stack.enter_context(listening(self.subject, self._hear))
            yield

    def _enters(self, block: nn.Module, _: Any) -> None:
        self.course.steps.append(block)

    def _hear(self, site: Site, attended: Attended) -> None:
        attention = self.subject.model.get_submodule(site.module)
        block, step = self._blocks[site], len(self.course.steps) - 1
        if step < 0 or self.course.steps[step] is not block:
            raise NoShortcut(f"{site.stack}.{site.layer} does not run within its own layer")
        passage = Passage(site, block, step, attention)
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
            passage.skippable |= _same(first_tensor(output), self._projected[passage.site])

    def _has_encoded(self, module: nn.Module, _: Any, output: Any) -> None:
        self._encoded = first_tensor(output.to_tuple() if hasattr(output, "to_tuple") else output)


def _same(one: Tensor | None, other: Tensor) -> bool:
    return one is not None and one.data_ptr() == other.data_ptr() and one.shape == other.shape


def _block_of(model: nn.Module, site: Site) -> nn.Module:
    """The layer that a site lies in: the entry of the outermost list of modules."""
    parts = site.module.split(".")
    for count in range(1, len(parts)):
        if isinstance(model.get_submodule(".".join(parts[:count])), nn.ModuleList):
            return model.get_submodule(".".join(parts[: count + 1]))
    raise NoShortcut(f"{site.module} lies in no list of layers")
