"""Attention weighted by norms (Kobayashi et al. 2020), against loops over every weight."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_subjects as made
import torch
from small_tasks import TEXTS
from subjects import subject_of

import headcount as hc
from headcount.bundle import sample
from headcount.errors import UsageError
from headcount.models import Subject
from headcount.rooms.resting.norms import NormTrial
from headcount.surveys.passes import run_trials

#: Where values come from and where heads' outputs go, by family.
PATHS = {
    "bert": ("attention.self.value", "attention.output.dense"),
    "llama": ("self_attn.v_proj", "self_attn.o_proj"),
}


def by_hand(subject: Subject, family: str, text: str) -> tuple[np.ndarray, np.ndarray]:
    """The share of the first token in what each head moves, and in its attention, `[head]`."""
    model = subject.model
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    values, hooks = {}, []
    layers = [m for m in model.modules() if type(m).__name__ in ("BertLayer", "LlamaDecoderLayer")]
    for number, layer in enumerate(layers):
        source = layer.get_submodule(PATHS[family][0])
        hooks.append(
            source.register_forward_hook(lambda m, a, out, n=number: values.__setitem__(n, out[0]))
        )
    inputs = subject.tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        maps = model.eval()(**inputs, output_attentions=True).attentions
    for hook in hooks:
        hook.remove()
    model.set_attn_implementation(before)
    moved, looked = [], []
    for number, (layer, site) in enumerate(zip(layers, subject.anatomy.sites, strict=True)):
        weight = layer.get_submodule(PATHS[family][1]).weight
        value = values[number].unflatten(-1, (site.kv_heads, -1))
        for head in range(site.heads):
            columns = weight.detach()[:, head * site.head_dim : (head + 1) * site.head_dim]
            shares = []
            for row in maps[number][0, head]:
                sizes = [
                    float(
                        (a * columns @ value[k, head * site.kv_heads // site.heads]).detach().norm()
                    )
                    for k, a in enumerate(row)
                ]
                shares.append(sizes[0] / sum(sizes))
            moved.append(np.mean(shares))
            looked.append(float(maps[number][0, head, :, 0].mean()))
    return np.array(moved), np.array(looked)


@pytest.mark.parametrize("family", PATHS)
def test_shares_are_those_of_loops_over_every_weight(family: str) -> None:
    subject = made.encoder() if family == "bert" else made.writer("llama")
    table = run_trials(subject, trials=[NormTrial([TEXTS[0]])])
    moved, looked = by_hand(subject, family, TEXTS[0])
    np.testing.assert_allclose(table.frame["moved_first"], moved, rtol=1e-4)
    tested = table.details["trials"].query("column == 'moved_first'")
    np.testing.assert_allclose(tested["baseline"], looked, rtol=1e-4)


def test_batches_do_not_show() -> None:
    subject = made.encoder()
    tables = [run_trials(subject, trials=[NormTrial(TEXTS, batch_size=n)]) for n in (1, 4)]
    first, second = (table.frame["moved_separator"] for table in tables)
    np.testing.assert_allclose(first, second, rtol=1e-4)


def test_it_is_a_function_of_the_facade() -> None:
    table = hc.norms(made.encoder(), TEXTS)
    assert table.frame["moved_first"].between(0, 1).all()


def test_a_family_whose_values_are_out_of_reach_is_refused() -> None:
    with pytest.raises(UsageError, match="Norms cannot be measured on tiny xlnet: its values"):
        hc.norms(made.writer("xlnet"), TEXTS)


def test_a_survey_says_whether_verdicts_of_places_survive_the_norm() -> None:
    subject = hc.load("translator", device="cpu")
    pairs = sample.pairs()[:40]
    table = hc.survey(subject, pairs, roles=hc.RoleOptions(roles=True, nulls=False))
    judged = hc.norms(subject, pairs, table=table)
    assert {"confidence", "moved_first", "moved_separator"} <= set(judged.names)
    roles = judged.details["roles"]
    assert len(roles) == len(table.details["roles"])
    places = roles[roles["role"].isin(["sink", "separator", "source-end"])]
    assert len(places)
    assert places["moved"].notna().all()
    assert (places["survives"] == (places["moved_low"] >= 0.3)).all()
    others = roles[~roles["role"].isin(["sink", "separator", "source-end"])]
    assert others["survives"].isna().all()
    again = hc.norms(subject, pairs, table=judged)
    assert [*again.details["roles"]] == [*roles]
    bare = hc.survey(subject, pairs[:4], columns=["confidence"])
    with pytest.raises(UsageError, match="No head was judged"):
        hc.norms(subject, pairs, table=bare)


def test_what_a_learned_sink_takes_is_a_column() -> None:
    subject = subject_of("gpt_oss", "gpt2")
    table = hc.norms(subject, TEXTS)
    with torch.no_grad():
        for layer in subject.model.model.layers:
            layer.self_attn.sinks.fill_(-1e4)
    none = hc.norms(subject, TEXTS)
    assert (table.frame["learned_sink"] > 0.01).all()
    assert (none.frame["learned_sink"] < 1e-6).all()
    assert "learned_sink" not in hc.norms(made.writer("llama"), TEXTS).names
