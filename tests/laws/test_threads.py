"""What one thread opens is its own: other threads see the model, and the process, as they were."""

from __future__ import annotations

import _thread
import logging
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from gguf_files import write_llama
from huggingface_hub.utils import are_progress_bars_disabled
from model_state import assert_same, state_of
from subjects import save
from surgery import answer
from tiny import INTERFACE, OUTSIDE, tiny_inputs
from transformers.utils import logging as voice

from headcount.models import loading
from headcount.models.guards import global_state, quiet
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.records.run import Run
from headcount.rooms.gates.gates import Gates, gated
from headcount.rooms.relevance.propagate import traced
from headcount.rooms.relevance.rules import rule_named
from headcount.rooms.resting.noop import weights_gradient
from headcount.wiring import ablated
from headcount.wiring.taps import tap
from headcount.wiring.valves import backflow, valve


def in_a_thread(work: Callable[[], Any]) -> Any:
    """What some work gives in another thread; what it raises is raised here."""
    kept: list[Any] = []

    def run() -> None:
        try:
            kept.append((work(), None))
        except BaseException as error:
            kept.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    result, error = kept[0]
    if error is not None:
        raise error
    return result


def side_by_side(*works: Callable[[], Any]) -> None:
    """Do some works at once, each in a thread of its own."""
    start, errors = threading.Barrier(len(works)), []

    def run(work: Callable[[], Any]) -> None:
        start.wait()
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


# --- The model ----------------------------------------------------------------------------------


def with_valve(subject: Subject) -> AbstractContextManager[Any]:
    return valve(subject, torch.full((len(subject.heads),), 0.3))


def with_gates(subject: Subject) -> AbstractContextManager[Any]:
    gates = Gates(subject.heads)
    return gated(subject, gates, lambda: torch.zeros(len(subject.heads)))


OPENED: dict[str, Callable[[Subject], AbstractContextManager[Any]]] = {
    "valve": with_valve,
    "tap": tap,
    "ablated": lambda subject: ablated(subject, subject.heads[:3]),
    "gates": with_gates,
    "backflow": lambda subject: backflow(subject, lambda *_: None),
}
INSIDE = {
    "weights_gradient": weights_gradient,
    "traced": lambda subject: traced(subject, rule_named("z+ extended")),
}
CASES = [(family, name) for family in ("bert", "albert", "gptj", "xlnet") for name in OPENED]
CASES += [(family, name) for family in ("bert", "albert") for name in INSIDE]


@pytest.mark.parametrize(("family", "name"), CASES)
def test_a_forward_in_another_thread_is_a_plain_one(family: str, name: str) -> None:
    subject = Subject((INTERFACE | OUTSIDE)[family]())
    inputs = tiny_inputs(subject.model, pad=2)

    def run() -> torch.Tensor:
        with torch.no_grad():
            return answer(subject.model(**inputs))

    plain, before = run(), state_of(subject)
    with (OPENED | INSIDE)[name](subject):
        # A tap may run the family's own function, which rounds otherwise.
        torch.testing.assert_close(in_a_thread(run), plain, atol=1e-5, rtol=1e-5)
    assert_same(before, state_of(subject))
    assert torch.equal(run(), plain)


def test_a_forward_elsewhere_does_not_disturb_the_block() -> None:
    """ALBERT's one module serves all layers in turn: a stranger's call would move the count."""
    subject = Subject(INTERFACE["albert"]())
    inputs = tiny_inputs(subject.model)
    scales = torch.linspace(0, 1, len(subject.heads))
    with valve(subject, scales):
        alone = answer(subject.model(**inputs))
        layer = subject.model.encoder.albert_layer_groups[0].albert_layers[0]
        between = layer.ffn.register_forward_hook(
            lambda *_: (
                None
                if threading.current_thread() is not threading.main_thread()
                else in_a_thread(lambda: subject.model(**inputs)) and None
            )
        )
        disturbed = answer(subject.model(**inputs))
        between.remove()
    assert torch.equal(disturbed, alone)


def checkpointed() -> Subject:
    model = INTERFACE["llama"]().train()
    model.gradient_checkpointing_enable()
    return Subject(model)


def test_backward_in_a_thread_of_autograd_is_the_openers() -> None:
    """On a GPU autograd recomputes checkpointed layers in a thread that Python does not know."""
    subject = checkpointed()
    inputs = tiny_inputs(subject.model)
    scales = torch.linspace(0.2, 1, len(subject.heads))

    def gradient(backward: Callable[[torch.Tensor], None]) -> torch.Tensor:
        given = scales.clone().requires_grad_()
        with valve(subject, given):
            backward(answer(subject.model(**inputs)).square().mean())
        assert given.grad is not None
        return given.grad

    def unknown(loss: torch.Tensor) -> None:
        done = threading.Event()

        def work() -> None:
            try:
                loss.backward()
            finally:
                done.set()

        _thread.start_new_thread(work, ())
        assert done.wait(60)

    torch.testing.assert_close(gradient(unknown), gradient(lambda loss: loss.backward()))


def test_training_with_checkpoints_goes_on_beside_a_valve() -> None:
    subject = checkpointed()
    inputs = tiny_inputs(subject.model)
    weight = subject.model.model.layers[0].self_attn.q_proj.weight

    def gradient() -> torch.Tensor:
        (found,) = torch.autograd.grad(answer(subject.model(**inputs)).square().mean(), weight)
        return found

    plain = gradient()
    with with_valve(subject):
        torch.testing.assert_close(in_a_thread(gradient), plain)


# --- The process --------------------------------------------------------------------------------


def process_state() -> dict[str, Any]:
    return {
        "levels": [logging.getLogger(name).level for name in ("transformers", "huggingface_hub")],
        "bars": (voice.is_progress_bar_enabled(), are_progress_bars_disabled()),
        "filters": list(warnings.filters),
        "streams": (sys.stdout, sys.stderr),
    }


@pytest.mark.parametrize("kind", ["folder", "gguf"])
def test_models_that_load_side_by_side_leave_the_process_as_it_was(
    kind: str, tmp_path: Path
) -> None:
    pytest.importorskip("gguf")
    if kind == "gguf":
        place = tmp_path / "tiny.gguf"
        write_llama(place, INTERFACE["llama"]())
    else:
        place = save(tmp_path / "tiny", "bert", "wordpiece")
    before = process_state()

    def loads() -> None:
        for _ in range(3):
            load(place, device="cpu")

    side_by_side(loads, loads, loads)
    assert process_state() == before


def test_nobody_elses_words_are_swallowed_while_a_gguf_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gguf")
    write_llama(tmp_path / "tiny.gguf", INTERFACE["llama"]())
    heard = sys.stderr
    streams: list[Any] = []
    read_config = loading.read_config

    def heard_read(*given: Any) -> Any:
        streams.append(sys.stderr)
        return read_config(*given)

    with mock.patch.object(loading, "read_config", heard_read):
        load(tmp_path / "tiny.gguf", device="cpu")
    assert streams == [heard]
    assert capsys.readouterr().err == ""  # its bar is off all the same


def test_the_lock_is_taken_again_by_its_own_thread() -> None:
    with global_state(), quiet(), global_state():
        pass
    in_a_thread(lambda: quiet().__enter__())  # free again, or this would wait for ever


# --- A run directory ----------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [1, 2])
def test_notes_of_two_threads_are_all_kept(runs: int, tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as first, Run.open(tmp_path / "run") as second:

        def writes(run: Run, who: str) -> None:
            for number in range(20):
                run.note(f"{who} {number}")

        other = second if runs == 2 else first
        side_by_side(lambda: writes(first, "one"), lambda: writes(other, "two"))
        assert len(first.notes) == len(second.notes) == 40
