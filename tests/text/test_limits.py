from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import transformers
from tiny import TINY

from headcount.text.tokenize import COUNTS_FROM_PADDING, position_limit


def config(name: str, **settings: object) -> transformers.PretrainedConfig:
    return getattr(transformers, f"{name}Config")(**settings)


@pytest.mark.parametrize(
    ("name", "settings", "limit"),
    [
        ("Bert", {}, 512),
        ("Albert", {}, 512),
        ("DistilBert", {}, 512),
        ("ModernBert", {}, 8192),
        ("Roberta", {"max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ("XLMRoberta", {"max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ("MPNet", {"max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ("Roberta", {"max_position_embeddings": 64, "pad_token_id": 0}, 63),
        ("GPT2", {"n_positions": 77}, 77),
        ("Llama", {"max_position_embeddings": 4096}, 4096),
        ("Bart", {}, 1024),
        ("Marian", {"max_position_embeddings": 512}, 512),
        ("M2M100", {}, 1024),
        ("LED", {}, 16384),
        ("T5", {}, None),
        ("T5", {"n_positions": 512}, None),
        ("MT5", {}, None),
        ("XLNet", {}, None),
        ("Bloom", {"seq_length": 2048}, None),
        ("DebertaV2", {"position_biased_input": False}, None),
        ("DebertaV2", {"position_biased_input": True}, 512),
        ("Falcon", {"alibi": True}, None),
        ("Falcon", {"alibi": False}, 2048),
        ("ViT", {}, None),
    ],
)
def test_limits(name: str, settings: dict[str, object], limit: int | None) -> None:
    assert position_limit(config(name, **settings)) == limit


def test_sides_may_differ() -> None:
    led, whisper = config("LED"), config("Whisper")
    assert position_limit(led, side="target") == 1024
    assert (position_limit(whisper), position_limit(whisper, side="target")) == (1500, 448)


def test_composite_models_keep_a_config_a_side() -> None:
    whole = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(
        config("Bert", max_position_embeddings=100), config("Bert", max_position_embeddings=50)
    )
    assert (position_limit(whole), position_limit(whole, side="target")) == (100, 50)
    assert position_limit(config("Gemma3")) == config("Gemma3").text_config.max_position_embeddings


@pytest.mark.parametrize(("said", "limit"), [(300, 300), (10**30, None), (None, None)])
def test_the_tokenizer_counts_where_the_config_is_silent(said: object, limit: int | None) -> None:
    tokenizer = SimpleNamespace(model_max_length=said)
    silent = SimpleNamespace(model_type="new")
    assert position_limit(silent, tokenizer) == limit  # type: ignore[arg-type]
    assert position_limit(config("Bert"), tokenizer) == 512, "the config decides"  # type: ignore[arg-type]
    assert position_limit(config("T5"), tokenizer) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2", "opt", "bart", "marian", "electra"])
def test_the_limit_is_the_longest_input_that_runs(family: str) -> None:
    """At the limit a model with learned positions answers, one token beyond it fails."""
    model = TINY[family]()
    limit = position_limit(model.config)
    assert limit is not None
    for length, runs in ((limit, True), (limit + 1, False)):
        inputs = {"input_ids": torch.full((1, length), 7)}
        if model.config.is_encoder_decoder:
            inputs["decoder_input_ids"] = torch.full((1, 2), 7)
        if runs:
            model(**inputs)
        else:
            with pytest.raises((IndexError, RuntimeError)):
                model(**inputs)


def test_families_that_count_from_padding_exist() -> None:
    known = set(transformers.CONFIG_MAPPING)
    assert known >= COUNTS_FROM_PADDING
