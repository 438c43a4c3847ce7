"""Ctrl-C at any line of a context leaves the model and the process as they were.

The lines that run are counted once; then the block is entered again for each of them, and
KeyboardInterrupt is raised just before that line. To add a context, add an entry to `CONTEXTS`.
"""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from huggingface_hub.utils import are_progress_bars_disabled
from model_state import assert_same, state_of
from tiny import INTERFACE, OUTSIDE, tiny_inputs
from transformers.utils import logging as voice

import headcount
from headcount.models import dummy_forward, guards, switch
from headcount.models.guards import eval_mode, frozen, no_logs, quiet
from headcount.models.subject import Subject
from headcount.rooms.exports.llama_cpp import reading_gguf
from headcount.rooms.outside.outside import OUTSIDE as FAMILIES
from headcount.rooms.outside.outside import entering
from headcount.rooms.relevance import propagate
from headcount.rooms.relevance.propagate import traced, words_read
from headcount.rooms.relevance.rules import rule_named
from headcount.rooms.resting.noop import weights_gradient
from headcount.rooms.shortcut.shortcut import Course, EncoderOnce, Shortcut, _Watch, course_of
from headcount.text.batch import ready_batch
from headcount.wiring import seam
from headcount.wiring.seam import listening
from headcount.wiring.taps import tap
from headcount.wiring.valves import ablated, backflow, valve

SOURCE = str(Path(headcount.__file__).parent)

Open = Callable[[Subject], AbstractContextManager[Any]]


def entering_projections(subject: Subject) -> AbstractContextManager[None]:
    """The hook of families outside the attention interface."""
    family = FAMILIES[subject.model.config.model_type]
    attentions = [subject.model.get_submodule(site.module) for site in subject.anatomy.sites]
    return entering(attentions, family, lambda _, heads: heads)


def opened_valve(subject: Subject) -> AbstractContextManager[Any]:
    return valve(subject, {subject.heads[0]: 0.5})


def checkpointed() -> Any:
    model = INTERFACE["llama"]()
    model.gradient_checkpointing_enable()
    return model


@cache
def course(subject: Subject) -> Course:
    """Found before, too."""
    return course_of(subject, ready_batch(tiny_inputs(subject.model), subject.anatomy.stacks))


def opened_shortcut(subject: Subject) -> AbstractContextManager[Any]:
    return Shortcut(subject, course(subject)).opened()


#: Name: the tiny model, and how the context is opened on it.
CONTEXTS: dict[str, tuple[Callable[[], Any], Open]] = {
    "eval_mode": (INTERFACE["bert"], lambda subject: eval_mode(subject.model)),
    "frozen": (INTERFACE["bert"], lambda subject: frozen(subject.model)),
    "no_logs": (INTERFACE["bert"], lambda subject: no_logs("transformers")),
    "quiet": (INTERFACE["bert"], lambda subject: quiet()),
    "reading_gguf": (INTERFACE["bert"], lambda subject: reading_gguf()),
    "switched": (INTERFACE["t5"], lambda subject: switch.switched(subject.model, lambda _: "x")),
    "locked": (INTERFACE["bert"], lambda subject: dummy_forward.locked(subject.model)),
    "capture_hooks_off": (
        INTERFACE["bert"],
        lambda subject: dummy_forward.capture_hooks_off(subject.model),
    ),
    "entering, by a hook": (OUTSIDE["gptj"], entering_projections),
    "entering, by a method": (OUTSIDE["xlnet"], entering_projections),
}

FAMILY = INTERFACE | OUTSIDE | {"checkpointed": checkpointed}
#: The contexts of wiring and of relevance, each opened on models of several families.
ATTACHING: dict[str, tuple[Open, list[str]]] = {
    "tap": (tap, ["bert", "albert", "t5", "gptj"]),
    "valve": (opened_valve, ["bert", "albert", "gptj", "checkpointed"]),
    "ablated": (lambda subject: ablated(subject, subject.heads[:1]), ["gpt2", "albert", "gptj"]),
    "listening": (lambda subject: listening(subject, lambda *_: None), ["marian", "albert"]),
    "backflow": (lambda subject: backflow(subject, lambda *_: None), ["albert", "llama", "gptj"]),
    "weights_gradient": (weights_gradient, ["albert", "gpt2"]),
    "watched forward": (lambda subject: _Watch(subject).hung(), ["albert", "gpt2", "marian"]),
    "shortcut": (opened_shortcut, ["bert", "marian", "gptj"]),
    "encoder once": (lambda subject: EncoderOnce(subject).opened(), ["marian"]),
    "traced": (lambda subject: traced(subject, rule_named("z+ extended")), ["albert", "llama"]),
    "words_read": (words_read, ["gpt2"]),
}
CONTEXTS |= {
    f"{name} on {family}": (FAMILY[family], open_context)
    for name, (open_context, families) in ATTACHING.items()
    for family in families
}


def free_for_others(lock: Any) -> bool:
    """Whether another thread can take a lock."""
    taken: list[bool] = []

    def take() -> None:
        taken.append(lock.acquire(blocking=False))
        if taken[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return taken[0]


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
        "parts": {module: list(parts) for module, parts in seam._PARTS.items()},
        "traced": dict(propagate._OPEN),
        "lock": free_for_others(guards._GLOBAL_STATE),
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
    with open_context(subject):  # what is cached on the way is cached now
        pass
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
