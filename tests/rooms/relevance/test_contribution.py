"""Contribution: gradient times activation of a forward made linear, for blocks of any kind."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny import TINY
from tiny_subjects import classifier, translator, writer
from tiny_tokenizers import ENGLISH, PAIRS

import headcount as hc
from headcount import tasks
from headcount.errors import UsageError
from headcount.models.subject import Subject
from headcount.rooms.relevance.contribution import _Straight, straightened
from headcount.rooms.relevance.score import contribution


@pytest.mark.parametrize("family", ["llama", "gemma3", "qwen3"])
def test_without_biases_every_prediction_is_the_sum_of_its_inputs(family: str) -> None:
    """A forward made linear keeps its value and adds up: nothing is lost, nothing counted twice."""
    model = TINY[family]().double()
    subject = Subject(model)
    ids = torch.randint(5, 20, (1, 6), generator=torch.Generator().manual_seed(0))
    layer, plain = model.get_input_embeddings(), model(input_ids=ids)[0].detach()
    kept = []

    def leaf(_module, _args, output):  # type: ignore[no-untyped-def]
        kept.append(output.detach().requires_grad_())
        return kept[-1]

    handle = layer.register_forward_hook(leaf)
    try:
        with straightened(subject) as tracing:
            output, _ = tracing.forward(lambda: model(input_ids=ids, use_cache=False)[0], 1)
            torch.testing.assert_close(output.detach(), plain)
            logit = output[0, -1, 3]
            (gradient,) = torch.autograd.grad(logit, kept[-1])
    finally:
        handle.remove()
    torch.testing.assert_close((kept[-1] * gradient).sum().detach(), logit.detach())


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (lambda x: torch.softmax(x, -1) * x, None),
        (lambda x: torch.nn.functional.gelu(x), None),
        (lambda x: x.pow(2), None),
        (lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True)), None),
        (lambda x: torch.nn.functional.rms_norm(x, (3,)), None),
        (lambda x: (x @ x.mT).sum(-1), None),
        (lambda x: torch.einsum("bi,bi->b", x, x), None),
        (lambda x: x / x.abs().sum(-1, keepdim=True), None),
    ],
)
def test_a_function_made_linear_is_the_sum_of_its_parts(function, part) -> None:  # type: ignore[no-untyped-def]
    x = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64, requires_grad=True)
    with _Straight():
        made = function(x)
    torch.testing.assert_close(made, function(x.detach()))
    (gradient,) = torch.autograd.grad(made.sum(), x)
    torch.testing.assert_close((x * gradient).sum().detach(), made.sum().detach())


def test_relevance_of_the_old_default_is_contribution_with_a_warning() -> None:
    subject, task = classifier(), tasks.classification([(t, n % 2) for n, t in enumerate(ENGLISH)])
    with pytest.warns(FutureWarning, match="by='contribution'"):
        old = hc.score(subject, task, by="relevance", rule="default")
    assert old.names == ["contribution"]
    assert old.frame.equals(contribution(subject, task).frame)
    assert old.provenance["settings"] == {"per": "step", "predictions": 8, "seed": 0}


def test_a_stored_run_is_read_as_what_it_was(tmp_path: Path) -> None:
    subject, task = classifier(), tasks.classification([(t, n % 2) for n, t in enumerate(ENGLISH)])
    table = hc.score(subject, task, by="relevance")
    table.notes["relevance"] = "a note"
    table.save(tmp_path / "new")
    assert hc.HeadTable.load(tmp_path / "new").names == ["relevance"]
    table.provenance["settings"]["rule"] = "default"
    table.save(tmp_path / "old")
    again = hc.HeadTable.load(tmp_path / "old")
    assert again.names == ["contribution"]
    assert again.notes["contribution"] == "a note"
    assert again.low["contribution"].equals(table.low["relevance"].rename("contribution"))
    assert "Called relevance when it was measured" in again.column("contribution").meaning
    both = table.join(hc.score(subject, task, by="gradient"))
    both.save(tmp_path / "both")
    assert hc.HeadTable.load(tmp_path / "both").names == ["contribution", "gradient"]


def test_contribution_has_no_rule() -> None:
    task = tasks.translation(PAIRS[:2], metric="loss")
    with pytest.raises(UsageError, match=r"rule is .z\+., an option of relevance"):
        hc.score(translator(), task, by="contribution", rule="z+")
    assert hc.score(writer(), tasks.lm(ENGLISH[:2]), by="contribution").names == ["contribution"]
