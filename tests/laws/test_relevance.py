"""Laws of relevance: it is kept, nothing stays attached, plumbing never shows in the numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from model_state import assert_same, state_of
from surgery import answer
from tiny import TINY, tiny_inputs
from tiny_subjects import classifier, encoder, filler, translator, writer
from torch import Tensor

from headcount import tasks
from headcount.models.projections import is_rms_norm
from headcount.models.subject import Subject
from headcount.rooms.relevance.contribution import straightened
from headcount.rooms.relevance.propagate import Flow, Relevance, traced
from headcount.rooms.relevance.rules import RULES, rule_named
from headcount.rooms.relevance.score import contribution, explaining, relevance
from headcount.tasks.task import Task
from headcount.wiring import valve

FAMILIES = [
    *("bert", "distilbert", "albert", "modernbert", "vit"),
    *("gpt2", "gpt_neox", "opt", "llama", "qwen3", "gemma3"),
    *("t5", "bart", "marian", "whisper"),
]

TEXTS = ["the cat sat on the mat .", "rain fell .", "a dog saw the old cat and ran home ."]
PAIRS = list(zip(TEXTS, reversed(TEXTS), strict=True))


def relevance_of(subject: Subject, rule: str | None, rows: int = 2, starts: int = 3) -> Relevance:
    """From a few outputs of the third token back to the heads."""
    model = subject.model
    inputs = tiny_inputs(model, batch=rows, pad=2)
    quiet = {} if subject.kind == "enc" else {"use_cache": False}
    named = None if rule is None else rule_named(f"{rule} extended")
    with straightened(subject) if named is None else traced(subject, named) as tracing:
        whole, ledger = tracing.forward(lambda: answer(model(**inputs, **quiet)), rows)
        output = whole[:, 2]
        each = torch.zeros(starts, *output.shape)
        for number in range(starts):
            each[number, :, number + 5] = 1.0
        return tracing.back(output, each, ledger)


def kept(flow: Flow) -> Tensor:
    return flow.through / flow.sent[..., None]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_cut_keeps_what_was_sent(family: str, rule: str) -> None:
    subject = Subject(TINY[family]())
    found = relevance_of(subject, rule)
    assert len(found.flow.places) == len([s for s in subject.anatomy.sites if s.stack != "cross"])
    assert bool((found.heads != 0).any(dim=(0, 1)).all())
    np.testing.assert_allclose(kept(found.flow), 1.0, atol=1e-3)


def test_a_broken_rule_cannot_hide(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = RULES["z+"].product
    monkeypatch.setattr(RULES["z+"], "product", lambda *args: [2 * part for part in honest(*args)])
    flow = relevance_of(Subject(TINY["llama"]()), "z+").flow
    assert float((kept(flow) - 1).abs().min()) > 1e-2


@pytest.mark.parametrize("rule", RULES)
def test_many_starts_are_as_good_as_one_by_one(rule: str) -> None:
    subject = Subject(TINY["marian"]())
    together = relevance_of(subject, rule, starts=3)
    alone = relevance_of(subject, rule, starts=1)
    torch.testing.assert_close(together.heads[:1], alone.heads, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("ending", [None, ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("family", ["bert", "albert", "gpt2", "llama", "t5", "marian"])
def test_nothing_stays_attached(family: str, ending: type[BaseException] | None) -> None:
    model = TINY[family]()
    subject = Subject(model)
    assert subject.heads
    model.get_input_embeddings().weight.requires_grad_(False)  # some weights ask, some do not
    inputs = tiny_inputs(model)
    before, plain = state_of(subject), answer(model(**inputs))

    def broken(*_: Any) -> Any:
        raise ending() if ending else AssertionError

    try:
        with straightened(subject) as tracing:
            tracing.forward(lambda: model(**inputs), 2)
            if ending:  # in mid-forward, inside a module that a rule has met
                norms = [m for m in model.modules() if is_rms_norm(m)]
                inner = norms[0] if norms else model.get_submodule(subject.anatomy.sites[0].module)
                handle = inner.register_forward_pre_hook(broken)
                try:
                    tracing.forward(lambda: model(**inputs), 2)
                finally:
                    handle.remove()
    except (ValueError, KeyboardInterrupt):
        pass
    assert_same(before, state_of(subject))
    assert torch.equal(answer(model(**inputs)), plain)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("family", ["bert", "llama", "t5", "marian"])
def test_tracing_changes_no_output(family: str, rule: str) -> None:
    model = TINY[family]()
    subject, inputs = Subject(model), tiny_inputs(model, pad=2)
    with traced(subject, rule_named(f"{rule} extended")) as tracing:
        output, _ = tracing.forward(lambda: answer(model(**inputs)), 2)
    torch.testing.assert_close(output.detach(), answer(model(**inputs)), rtol=1e-5, atol=1e-5)


def test_a_shut_head_carries_nothing() -> None:
    subject = Subject(TINY["llama"]())
    with valve(subject, {"dec.1.2": 0.0}):
        found = relevance_of(subject, None)
    place = [str(head) for head in subject.heads].index("dec.1.2")
    assert not found.heads[..., place].any()
    assert bool(found.heads[..., place + 1].all())


def subjects_and_tasks() -> dict[str, tuple[Subject, Task]]:
    return {
        "translation": (translator(), tasks.translation(PAIRS, metric="loss")),
        "lm": (writer("llama"), tasks.lm(TEXTS)),
        "mlm": (filler(), tasks.mlm(TEXTS)),
        "classification": (classifier(), tasks.classification([(t, 0) for t in TEXTS])),
        "similarity": (encoder(), tasks.similarity([(a, b, 0.5) for a, b in PAIRS])),
    }


@pytest.mark.parametrize("rule", [None, "z+ extended"])
@pytest.mark.parametrize("kind", subjects_and_tasks())
def test_batches_and_padding_never_show(kind: str, rule: str | None) -> None:
    subject, task = subjects_and_tasks()[kind]
    subject.model.double()  # z+ divides by sums near zero, which makes much of a last digit
    score = contribution if rule is None else partial(relevance, rule=rule)
    alone, together = (score(subject, task, batch_size=size) for size in (1, 3))
    for ours, theirs in zip(alone.parts(), together.parts(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("per", ["step", "sentence"])
@pytest.mark.parametrize("kind", subjects_and_tasks())
def test_shares_of_a_layer_sum_to_one(kind: str, per: str) -> None:
    subject, task = subjects_and_tasks()[kind]
    frame = contribution(subject, task, per=per).frame
    sums = frame["contribution"].groupby(level=["stack", "layer"]).sum()
    np.testing.assert_allclose(sums, 1.0, atol=1e-9)


def test_one_backward_a_step_is_one_backward_a_row_of_prefixes() -> None:
    """Steps share a forward; a prefix in a forward of its own gives its last step the same."""
    subject = writer("llama")
    task = tasks.lm(TEXTS[:1])
    (batch,) = task.batches(subject)
    with straightened(subject) as tracing:
        with explaining(subject, task) as explain:
            start = explain(tracing, batch)
        shared = tracing.back(start.output, start.starts, start.ledger).heads
        for step in range(2, shared.shape[0]):
            ids = batch.inputs["input_ids"][:, : step + 1]
            whole, ledger = tracing.forward(
                lambda ids=ids: subject.model(input_ids=ids, use_cache=False).logits, 1
            )
            one = torch.zeros(1, *whole.shape)
            one[0, 0, -1, int(whole[0, -1].argmax())] = 1.0
            own = tracing.back(whole, one, ledger).heads
            torch.testing.assert_close(shared[step], own[0], rtol=1e-3, atol=1e-4)
