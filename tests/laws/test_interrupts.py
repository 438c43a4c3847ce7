"""Ctrl-C at any line of a context leaves the model and the process as they were.

The lines that run are counted once; then the block is entered again for each of them, and
KeyboardInterrupt is raised just before that line. To add a context, add an entry to `CONTEXTS`.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from huggingface_hub.utils import are_progress_bars_disabled
from model_state import assert_same, state_of
from tiny import INTERFACE, OUTSIDE
from transformers.utils import logging as voice

import headcount
from headcount.models import dummy_forward, switch
from headcount.models.guards import eval_mode, frozen, no_logs, quiet
from headcount.models.load import reading_gguf
from headcount.models.outside import OUTSIDE as FAMILIES
from headcount.models.outside import entering
from headcount.models.subject import Subject

SOURCE = str(Path(headcount.__file__).parent)

Open = Callable[[Subject], AbstractContextManager[Any]]


def entering_projections(subject: Subject) -> AbstractContextManager[None]:
    """The hook of families outside the attention interface."""
    family = FAMILIES[subject.model.config.model_type]
    attentions = [subject.model.get_submodule(site.module) for site in subject.anatomy.sites]
    return entering(attentions, family, lambda _, heads: heads)


#: Name: the tiny model, and how the context is opened on it.
CONTEXTS: dict[str, tuple[Callable[[], Any], Open]] = {
    "eval_mode": (INTERFACE["bert"], lambda subject: eval_mode(subject.model)),
    "frozen": (INTERFACE["bert"], lambda subject: frozen(subject.model)),
    "no_logs": (INTERFACE["bert"], lambda subject: no_logs("transformers")),
    "quiet": (INTERFACE["bert"], lambda subject: quiet()),
    "reading_gguf": (INTERFACE["bert"], lambda subject: reading_gguf()),
    "switched": (INTERFACE["t5"], lambda subject: switch.switched(subject.model, lambda _: "x")),
    "locked": (INTERFACE["bert"], lambda subject: dummy_forward.locked(subject.model)),
    "hooks_as_before": (
        INTERFACE["bert"],
        lambda subject: dummy_forward._hooks_as_before(subject.model),
    ),
    "entering, by a hook": (OUTSIDE["gptj"], entering_projections),
    "entering, by a method": (OUTSIDE["xlnet"], entering_projections),
}


def process_state() -> dict[str, Any]:
    """What belongs to the process rather than to the model."""
    return {
        "levels": [logging.getLogger(name).level for name in ("transformers", "huggingface_hub")],
        "bars": (voice.is_progress_bar_enabled(), are_progress_bars_disabled()),
        "filters": list(warnings.filters),
        "streams": (sys.stdout, sys.stderr),
        "noise": torch.get_rng_state().tolist(),
        "renamed": dict(switch._RENAMED),
        "holders": dict(dummy_forward._HOLDERS),
    }


class Interrupter:
    """Notes the lines of headcount that run, and raises KeyboardInterrupt before one of them."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.lines: list[str] = []

    def __call__(self, frame: FrameType, event: str, _: Any) -> Interrupter | None:
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        if event == "line":
            self.lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
            if len(self.lines) - 1 == self.at:
                raise KeyboardInterrupt
        return self

    def moments(self) -> list[int]:
        """When to interrupt: before every line; in a loop at its first two turns and its last."""
        turns: dict[str, list[int]] = {}
        for moment, line in enumerate(self.lines):
            turns.setdefault(line, []).append(moment)
        return sorted({at for each in turns.values() for at in (*each[:2], each[-1])})


def run(open_context: Open, subject: Subject, interrupter: Interrupter) -> None:
    """Enter and leave the block; the body runs no line of headcount."""
    before = sys.gettrace()
    sys.settrace(interrupter)
    try:
        with open_context(subject):
            pass
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("name", CONTEXTS)
def test_an_interrupt_at_any_line_is_undone(name: str) -> None:
    make, open_context = CONTEXTS[name]
    model = make().train()
    subject = Subject(model)
    assert subject.heads  # known before: finding them is no part of the context
    counting = Interrupter()
    run(open_context, subject, counting)
    assert len(counting.moments()) > 3
    for moment in counting.moments():
        before, process = state_of(subject), process_state()
        interrupter = Interrupter(moment)
        run(open_context, subject, interrupter)
        where = interrupter.lines[moment]
        assert process_state() == process, where
        assert_same(before, state_of(subject))
