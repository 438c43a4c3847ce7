"""The translator: a MarianMTModel, and its forward pass over rows that hold many pairs."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import GenerationConfig, MarianConfig, MarianMTModel

from .config import Model
from .corpus import Batch
from .pieces import EOS

__all__ = ["build_model", "logits_of", "trained_parameters"]


def build_model(shape: Model, vocabulary: int, seed: int) -> MarianMTModel:
    """A fresh model; `</s>` is 0, `<pad>` the last id and the decoder's start, as in opus-mt."""
    torch.manual_seed(seed)
    model = MarianMTModel(_marian_config(shape, vocabulary))
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and parameter.dim() == 2:
            _draw(name, parameter)
    model.generation_config = _generation_config(shape, vocabulary)
    return model


def _marian_config(shape: Model, vocabulary: int) -> MarianConfig:
    return MarianConfig(
        vocab_size=vocabulary,
        d_model=shape.width,
        encoder_layers=shape.layers,
        decoder_layers=shape.layers,
        encoder_attention_heads=shape.heads,
        decoder_attention_heads=shape.heads,
        encoder_ffn_dim=shape.inner,
        decoder_ffn_dim=shape.inner,
        dropout=shape.dropout,
        attention_dropout=shape.attention_dropout,
        activation_dropout=shape.activation_dropout,
        activation_function="relu",
        max_position_embeddings=shape.positions,
        scale_embedding=True,
        pad_token_id=vocabulary - 1,
        decoder_start_token_id=vocabulary - 1,
        eos_token_id=EOS,
        forced_eos_token_id=EOS,
        attn_implementation="sdpa",
    )


def _generation_config(shape: Model, vocabulary: int) -> GenerationConfig:
    return GenerationConfig(
        num_beams=4,
        max_length=min(128, shape.positions),
        bad_words_ids=[[vocabulary - 1]],
        pad_token_id=vocabulary - 1,
        decoder_start_token_id=vocabulary - 1,
        eos_token_id=EOS,
        forced_eos_token_id=EOS,
    )


def _draw(name: str, parameter: nn.Parameter) -> None:
    """Vaswani et al.'s start: Glorot for the projections, variance 1/d for the embedding."""
    if "shared" in name:
        nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
    else:
        nn.init.xavier_uniform_(parameter)


def trained_parameters(model: MarianMTModel) -> list[nn.Parameter]:
    """Every parameter that learns, tied ones once; the sinusoids stand still."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def logits_of(model: MarianMTModel, batch: Batch) -> Tensor:
    """Logits `[row, position, token]`; what Marian computes for each pair alone in a batch.

    The model's own layers are called one by one, because its forward takes a padding vector
    and here each slot of a row may attend to itself alone.
    """
    inner, dtype = model.model, model.model.shared.weight.dtype
    same = batch.slot[:, :, None] == batch.slot[:, None, :]
    past = torch.ones(same.shape[1:], dtype=torch.bool, device=same.device).tril()
    to_source, to_target = (
        _closed(same & batch.real[:, None, :], dtype),
        _closed(same & past, dtype),
    )
    states = _embed(inner.encoder, inner.shared, batch.source, batch.place)
    for layer in inner.encoder.layers:
        states = layer(states, to_source)
    told = _embed(inner.decoder, inner.shared, batch.target, batch.place)
    for layer in inner.decoder.layers:
        told = layer(told, to_target, states, encoder_attention_mask=to_source, use_cache=False)
    return functional.linear(told, inner.shared.weight)


def _embed(stack: Any, shared: nn.Embedding, ids: Tensor, place: Tensor) -> Tensor:
    scaled = shared(ids) * math.sqrt(shared.embedding_dim)
    embedded = scaled + functional.embedding(place, stack.embed_positions.weight)
    return functional.dropout(embedded, p=stack.dropout, training=stack.training)


def _closed(open_: Tensor, dtype: torch.dtype) -> Tensor:
    """An additive attention mask `[row, 1, query, key]`; a finite floor keeps empty rows finite."""
    floor = torch.finfo(dtype).min
    return torch.zeros_like(open_, dtype=dtype).masked_fill(~open_, floor)[:, None]
