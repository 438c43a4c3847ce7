"""Laws of ablation: zero is zeroed weights, the short way is the long way, nothing stays behind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
from surgery import answer, zeroed
from tiny import INTERFACE, OUTSIDE, tiny_inputs
from torch import Tensor

from headcount.models.subject import Subject
from headcount.models.switch import attention_configs
from headcount.rooms.shortcut.shortcut import EncoderOnce, Shortcut, course_of
from headcount.rooms.standins.standins import donors_of, means_of, uniform
from headcount.text.batch import Batch, ready_batch
from headcount.wiring import seam
from headcount.wiring.valves import Instead, ablated, valve, zero

#: Families with attention inside their layers in all the ways that there are.
FAMILIES = [
    *("albert", "bart", "bert", "distilbert", "gemma3", "gpt2", "gpt_neox", "gpt_oss", "llama"),
    *("marian", "modernbert", "t5", "vit", "whisper"),
]
AROUND = ["bloom", "deberta_v2", "falcon", "gptj", "mpnet", "mvp"]
ROWS = 3


def batch_of(subject: Subject) -> Batch:
    return ready_batch(tiny_inputs(subject.model, batch=ROWS, pad=2), subject.anatomy.stacks)


def said(subject: Subject, batch: Batch, copies: int = 1) -> Tensor:
    inputs = {name: torch.cat([tensor] * copies) for name, tensor in batch.inputs.items()}
    with torch.no_grad():
        return answer(subject.model(**inputs))


def stand_ins(subject: Subject, batch: Batch) -> dict[str, Instead]:
    """What may stand in the place of heads; every row gets what the next one gave."""
    others = [*range(1, ROWS), 0]
    found: dict[str, Instead] = {"zero": zero, "mean": means_of(subject, [batch])}
    found["resample"] = donors_of(subject, batch, [(batch, others)])
    if all(site.route == "interface" for site in subject.anatomy.sites):
        found["uniform"] = uniform
    return found


@pytest.mark.parametrize("family", [*FAMILIES, *AROUND])
def test_zero_equals_zeroed_weights_and_a_shut_valve(family: str) -> None:
    subject = Subject((INTERFACE | OUTSIDE)[family]())
    batch = batch_of(subject)
    for head in subject.heads[1::5]:
        with ablated(subject, [head]):
            without = said(subject, batch)
        with valve(subject, {head: 0.0}):
            torch.testing.assert_close(said(subject, batch), without, atol=1e-6, rtol=1e-6)
        if family not in ("albert", *AROUND):  # shared weights; projections by other names
            with zeroed(subject, head):
                torch.testing.assert_close(said(subject, batch), without, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("family", [*FAMILIES, *AROUND])
def test_the_short_way_gives_what_the_long_way_gives(family: str) -> None:
    """One head, several, and heads of later layers too; alone and several in a forward."""
    subject = Subject((INTERFACE | OUTSIDE)[family]())
    batch = batch_of(subject)
    course = course_of(subject, batch)
    assert list(course.order) != []
    sites = list(course.passages)
    for name, instead in stand_ins(subject, batch).items():
        short = Shortcut(subject, course)
        with short.opened():
            whole = short.whole(lambda: said(subject, batch), instead)
            assert torch.equal(whole, said(subject, batch))
            for site in sites if name in ("zero", "uniform") else (sites[0], sites[-1]):
                for chosen in chosen_at(subject, course.order, site):
                    copies = len(chosen)
                    found = short.again(lambda n=copies: said(subject, batch, n), site, chosen)
                    for part, one in zip(found.chunk(copies), chosen, strict=True):
                        with ablated(subject, one, instead):
                            alone = said(subject, batch)
                        gap = (part - alone).abs().max()
                        assert gap <= 2e-6 * whole.abs().max(), (name, site)


def chosen_at(subject: Subject, order: dict[Any, int], site: Any) -> list[Tensor]:
    """One head; two heads apart in one forward; two heads of the site and one of a later site."""
    start = subject.anatomy.spans[site].start
    last = max(order, key=order.__getitem__)
    masks = torch.zeros(3, len(subject.heads), dtype=torch.bool)
    masks[0, start] = masks[1, start + 2] = True
    masks[2, start : start + 2] = True
    masks[2, subject.anatomy.spans[last].stop - 1] = True
    return [masks[:1], masks[:2], masks[1:]]


@pytest.mark.parametrize("family", ["bert", "marian"])
def test_the_short_way_skips_what_does_not_change(family: str) -> None:
    subject = Subject(INTERFACE[family]())
    batch = batch_of(subject)
    course = course_of(subject, batch)
    assert all(passage.skippable for passage in course.passages.values())
    ran: list[str] = []
    names = {module: name for name, module in subject.model.named_modules()}
    linear = [module for module in names if isinstance(module, torch.nn.Linear)]
    last = list(course.passages)[-1]
    chosen = torch.zeros(1, len(subject.heads), dtype=torch.bool)
    chosen[0, subject.anatomy.spans[last].start] = True
    short = Shortcut(subject, course)
    with short.opened():
        short.whole(lambda: said(subject, batch), zero)
        # Hooks see modules that are called; a forward that is stood in for has no matrix product.
        counted = [m.register_forward_hook(lambda m, *_: ran.append(names[m])) for m in linear]
        short.again(lambda: said(subject, batch), last, chosen)
        for handle in counted:
            handle.remove()
    layer = ".".join(last.module.split(".")[: 4 if family == "marian" else 3])
    inside = [name for name in ran if any(part in name for part in ("layer.", "layers."))]
    assert inside
    assert all(name.startswith(layer) for name in inside), inside
    assert not [name for name in inside if name.endswith(("query", "key", "q_proj", "k_proj"))]


def test_rows_along_another_axis_are_not_cut_short() -> None:
    """XLNet's hidden states have their batch on the second axis: refused, not mixed up."""
    subject = Subject(OUTSIDE["xlnet"]())
    batch = batch_of(subject)
    course = course_of(subject, batch)
    chosen = torch.zeros(2, len(subject.heads), dtype=torch.bool)
    chosen[:, -1] = True
    short = Shortcut(subject, course)
    with short.opened():
        short.whole(lambda: said(subject, batch), zero)
        with pytest.raises(RuntimeError, match="einsum"):
            short.again(lambda: said(subject, batch, 2), list(course.passages)[-1], chosen)


HOOKS = [name for name in vars(torch.nn.Module()) if name.endswith("_hooks")]


def state_of(subject: Subject) -> list[Any]:
    model = subject.model
    return [
        [[dict(getattr(module, name)) for name in HOOKS] for module in model.modules()],
        [sorted(vars(module)) for module in model.modules()],
        [config._attn_implementation for config in attention_configs(model)],
        [module.training for module in model.modules()],
    ]


def with_ablation(subject: Subject, batch: Batch) -> AbstractContextManager[Any]:
    return ablated(subject, subject.heads[:2], uniform)


def with_shortcut(subject: Subject, batch: Batch) -> AbstractContextManager[Any]:
    return Shortcut(subject, course_of(subject, batch)).opened()


def with_encoder(subject: Subject, batch: Batch) -> AbstractContextManager[Any]:
    return EncoderOnce(subject).opened()


@pytest.mark.parametrize("ending", [None, ValueError, KeyboardInterrupt])
@pytest.mark.parametrize(
    ("family", "hang"),
    [
        *((family, with_ablation) for family in ("bert", "albert", "t5")),
        *((family, with_shortcut) for family in ("bert", "albert", "t5")),
        ("marian", with_encoder),
    ],
)
def test_nothing_stays_behind(
    family: str,
    hang: Callable[[Subject, Batch], AbstractContextManager[Any]],
    ending: type[BaseException] | None,
) -> None:
    subject = Subject(INTERFACE[family]())
    batch = batch_of(subject)
    assert subject.heads
    plain, before = said(subject, batch), state_of(subject)
    try:
        with hang(subject, batch) as hung:
            if isinstance(hung, Shortcut):
                hung.whole(lambda: said(subject, batch), zero)
            said(subject, batch)
            if ending:
                raise ending
    except (ValueError, KeyboardInterrupt):
        pass
    assert state_of(subject) == before
    assert torch.equal(said(subject, batch), plain)
    assert not seam._PARTS
