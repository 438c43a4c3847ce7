"""Contribution reaches blocks that no rule of relevance covers."""

from __future__ import annotations

import numpy as np
import pytest

import headcount as hc
from headcount import tasks
from headcount.models.subject import Subject
from research.families.__main__ import (
    CAUSAL,
    FAMILIES,
    TEXTS,
    family_row,
    small_model,
    small_tokenizer,
)

#: Mixtures of experts, learned sinks, latent attention, state-space layers, none of the interface.
REACHED = [
    *("mixtral", "qwen3_moe", "granitemoe", "glm4_moe", "gpt_oss", "deepseek_v3", "llama4_text"),
    *("falcon_h1", "qwen3_next", "jamba", "lfm2", "cohere", "gptj", "bloom", "falcon"),
]


@pytest.mark.parametrize("family", REACHED)
def test_every_block_has_contributions(family: str) -> None:
    subject = Subject(small_model(family), small_tokenizer(), name=family)
    table = hc.score(subject, tasks.lm(TEXTS), by="contribution", compare=False)
    values = table.frame["contribution"]
    sums = values.groupby(level=["stack", "layer"]).sum()
    np.testing.assert_allclose(sums, 1.0, atol=1e-9)
    assert (values > 0).all()


@pytest.mark.parametrize("latent", [16, None], ids=["queries by latent", "queries as they are"])
@pytest.mark.parametrize("family", ["deepseek_v3", "deepseek_v2"])
def test_latent_attention_is_pruned_by_whole_heads(
    family: str, latent: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = {"num_key_value_heads": 4, "q_lora_rank": latent}
    monkeypatch.setitem(FAMILIES, family, (CAUSAL, how))
    row = family_row(family, seconds=100)
    assert [row[name] for name in ("prune", "save", "reload")] == ["yes", "yes", "yes"]
