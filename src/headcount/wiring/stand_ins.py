"""What runs in the place of a model's forwards while a short cut is taken."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from headcount.models.site import Site
from headcount.wiring.ablate import zero
from headcount.wiring.course import Course, NoShortcut, Passage
from headcount.wiring.recorded_run import RecordedRun
from headcount.wiring.takeover import Forward, Take

__all__ = ["Aim", "StandIns"]


@dataclass
class Aim:
    """Where a run begins anew, and which heads are ablated."""

    passage: Passage
    #: True for every head that is ablated, `[ablation, head]`.
    chosen: Tensor
    #: What the projection is to give, once its attention was passed over.
    waiting: Tensor | None = None

    @property
    def copies(self) -> int:
        """How many ablations share the forward."""
        return len(self.chosen)


class StandIns:
    """Forwards of blocks, attentions, projections and the encoder that know the whole run.

    Neither recording nor with an aim they do what the model's own forwards do.
    """

    def __init__(self, course: Course, spans: Mapping[Site, slice]) -> None:
        self.course = course
        self.kept = RecordedRun(zero)
        self.aim: Aim | None = None
        self.is_recording = False
        self._spans = spans
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
    def recording(self) -> Iterator[None]:
        """Within the block runs are kept."""
        self._calls.clear()
        self.is_recording = True
        try:
            yield
        finally:
            self.is_recording, self._here = False, None

    @contextmanager
    def aiming(self, aim: Aim) -> Iterator[None]:
        """Within the block runs begin at the aim."""
        self._calls.clear()
        self.aim = aim
        try:
            yield
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

    def _crossing(self, module: nn.Module, states: Tensor) -> Tensor:
        """A projection of the encoder's output: the very same output is projected once."""
        copies = 1 if self.aim is None else self.aim.copies
        if self.kept.encoder is None or states is not self.kept.encoded(copies)[0]:
            return self._own[module](states)
        return self.kept.crossed(module, copies, lambda: self._own[module](states))

    def _block(self, block: nn.Module, *args: Any, **kwargs: Any) -> Any:
        step = self._turn(block, self._steps)
        if self.aim is not None and step < self.aim.passage.step:
            self._pass_by(step)
            last = step == self.aim.passage.step - 1
            return self.kept.block(step, self.aim.copies if last else 1)
        output = self._own[block](*args, **kwargs)
        if self.is_recording:
            self.kept.keep_block(step, output)
        return output

    def _attention(self, attention: nn.Module, *args: Any, **kwargs: Any) -> Any:
        site = self._turn(attention, self._sites)
        passage = self.course.passages[site]
        if self.aim is not None and passage.step == self.aim.passage.step:
            if site == self.aim.passage.site and passage.skippable:
                return self._without_running(passage, self.aim)
            if self.course.order[site] < self.course.order[self.aim.passage.site]:
                return self.kept.attention(site, self.aim.copies)
        self._here = site
        output = self._own[attention](*args, **kwargs)
        if self.is_recording:
            self.kept.keep_attention(site, output)
        return output

    def _without_running(self, passage: Passage, aim: Aim) -> Any:
        """What an attention gives when some of its heads are ablated."""
        assert passage.projection is not None  # or it could not be passed over
        chosen = aim.chosen[:, self._spans[passage.site]]
        made = self.kept.projected_without(passage, chosen, self._own[passage.projection])
        output = self.kept.attention(passage.site, aim.copies)
        if not passage.inside:
            aim.waiting = made
            return output
        return made if isinstance(output, Tensor) else (made, *output[1:])

    def _projection(self, projection: nn.Module, heads: Tensor) -> Tensor:
        if self.aim is not None and self.aim.waiting is not None:
            made, self.aim.waiting = self.aim.waiting, None
            return made
        output: Tensor = self._own[projection](heads)
        if self.is_recording and self._here is not None:
            self.kept.keep_projection(self._here, output)
        return output

    # --- which call is which --------------------------------------------------------------------

    def _turn(self, module: nn.Module, turns: Mapping[nn.Module, list[Any]]) -> Any:
        """What this call of a module is, when it is called several times in a forward."""
        count = self._calls[module]
        self._calls[module] += 1
        if count >= len(turns[module]):
            raise NoShortcut(f"{type(module).__name__} was called once more than it was watched")
        return turns[module][count]

    def _pass_by(self, step: int) -> None:
        """Count the attention calls of a block that does not run."""
        for passage in self.course.passages.values():
            if passage.step == step:
                self._calls[passage.attention] += 1
