"""A short cut through a forward: after one whole run, only what an ablation changes runs again.

Heads of a layer change nothing before it: its input, the encoder's output for a decoder's heads,
and within the layer all that lies before the output projection come from the whole run. Several
ablations share a forward, one below the other. Same numbers as a run of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn

from headcount.models.site import Site
from headcount.subject import Subject
from headcount.wiring.ablate import Ablation, Instead, hung, zero
from headcount.wiring.course import Course
from headcount.wiring.recorded_run import RecordedRun
from headcount.wiring.seam import Attended
from headcount.wiring.stand_ins import Aim, StandIns
from headcount.wiring.takeover import taken_over

__all__ = ["Shortcut"]

T = TypeVar("T")


class Shortcut:
    """Runs a model whole, then again from one site on; the model is as before when it is closed.

    Other forwards of the model, also within `opened()`, run as they always do.
    """

    def __init__(self, subject: Subject, course: Course) -> None:
        self._subject = subject
        self._stand_ins = StandIns(course, subject.anatomy.spans)
        self._live = _Live(subject, self._stand_ins)

    @contextmanager
    def opened(self) -> Iterator[Shortcut]:
        """Hang everything on the model for this block."""
        try:
            with hung(self._subject, self._live), taken_over(self._stand_ins.forwards()):
                yield self
        finally:
            self._stand_ins.kept = RecordedRun(zero)

    def whole(self, run: Callable[[], T], instead: Instead) -> T:
        """Run as the model is, and keep what later runs need."""
        self._stand_ins.kept = RecordedRun(instead)
        with self._stand_ins.recording():
            return run()

    @property
    def intact(self) -> bool:
        """Whether the model has left alone what the whole run kept."""
        return self._stand_ins.kept.intact

    def again(self, run: Callable[[], T], site: Site, chosen: Tensor) -> T:
        """Run from a site on with heads ablated, true or false `[ablation, head]`.

        The batch must be the whole run's, once for every ablation, one below the other; no head
        of an earlier site may be among the chosen.
        """
        kept = self._stand_ins.kept
        self._live.instead = kept.instead
        one = len(chosen) == 1
        self._live.chosen = chosen[0] if one else chosen.repeat_interleave(kept.rows, dim=0)
        with self._stand_ins.aiming(Aim(self._stand_ins.course.passages[site], chosen)):
            return run()


class _Live(Ablation):
    """On the seam: keeps what heads give in a whole run, ablates them in a run from a site on."""

    def __init__(self, subject: Subject, stand_ins: StandIns) -> None:
        none = torch.zeros(len(subject.heads), dtype=torch.bool)
        super().__init__(subject, none, zero, stand_ins)
        self._stand_ins = stand_ins

    def __call__(self, module: nn.Module, attended: Attended) -> Tensor:
        """Hear, ablate, or look away."""
        if self._stand_ins.aim is not None:
            return super().__call__(module, attended)
        if self._stand_ins.is_recording:
            self._stand_ins.kept.hear(self._stand_ins.next(module), attended)
        return attended.output
