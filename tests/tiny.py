"""Small random models, one row a family: 2 layers, 4 heads, hidden 32, seeded, in eval mode.

Weights are drawn wide (see ``stir``): a fresh model's attention is nearly uniform, and a law that
holds on uniform attention proves little.

>>> model = TINY["bert"]()
>>> model(**tiny_inputs(model)).last_hidden_state.shape
torch.Size([2, 7, 32])
>>> TINY["bert"](model_class="BertForSequenceClassification", num_labels=3).config.num_labels
3
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import transformers
from torch import Tensor
from transformers import PreTrainedModel

Settings = dict[str, object]
Builder = Callable[..., PreTrainedModel]

VOCAB = 96
FIRST_WORD = 5  # ids below are special: 0 pad, 1 begin, 2 end, 3 and 4 spare
HIDDEN = 32

SPECIALS: Settings = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SIZES: Settings = {"hidden_size": HIDDEN, "num_hidden_layers": 2, "num_attention_heads": 4}
WIDE: Settings = SIZES | {"intermediate_size": 64}
ENCODER: Settings = WIDE | SPECIALS | {"vocab_size": VOCAB, "max_position_embeddings": 64}
GROUPED: Settings = ENCODER | {"num_key_value_heads": 2, "head_dim": 8}
SLIDING: Settings = {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}
GPT: Settings = SPECIALS | {"vocab_size": VOCAB, "n_embd": HIDDEN, "n_layer": 2, "n_head": 4}
PAIR: Settings = {
    **{"d_model": HIDDEN, "encoder_layers": 2, "decoder_layers": 3},
    **{"encoder_attention_heads": 4, "decoder_attention_heads": 4},
    **{"encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "decoder_start_token_id": 2},
    **SPECIALS,
    "vocab_size": VOCAB,
}
CROSSLINGUAL: Settings = SPECIALS | {
    "vocab_size": VOCAB,
    "emb_dim": HIDDEN,
    "n_layers": 2,
    "n_heads": 4,
}
TRANSLATOR: Settings = PAIR | {"max_position_embeddings": 64}
VISION: Settings = WIDE | {"image_size": 16, "patch_size": 8}


def stir(model: PreTrainedModel, seed: int) -> PreTrainedModel:
    """Redraw every trained weight: matrices of scale 0.2, vectors moved by 0.1 from their start."""
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in filter(lambda w: w.requires_grad, model.parameters()):
            drawn = torch.randn(weight.shape, generator=noise)
            weight.copy_(0.2 * drawn if weight.ndim > 1 else weight + 0.1 * drawn)
    return model.eval()


def build(
    *, model_class: str, config_class: str, seed: int = 0, **settings: object
) -> PreTrainedModel:
    """A random model of the class, the same for the same seed; the global random state is kept."""
    config = getattr(transformers, config_class)(**settings)
    with torch.random.fork_rng(devices=[]):
        return stir(getattr(transformers, model_class)(config), seed)


def row(model_class: str, config_class: str, settings: Settings, **more: object) -> Builder:
    """A builder; what it is called with goes over its settings."""
    return partial(
        build, model_class=model_class, config_class=config_class, **{**settings, **more}
    )


ENCODERS: dict[str, Builder] = {
    "bert": row("BertModel", "BertConfig", ENCODER),
    "roberta": row("RobertaModel", "RobertaConfig", ENCODER),
    "distilbert": row(
        *("DistilBertModel", "DistilBertConfig", {"vocab_size": VOCAB, "pad_token_id": 0}),
        **{"dim": HIDDEN, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    ),
    "electra": row("ElectraModel", "ElectraConfig", ENCODER, embedding_size=16),
    "albert": row("AlbertModel", "AlbertConfig", ENCODER, embedding_size=16, num_hidden_layers=3),
    "modernbert": row(
        *("ModernBertModel", "ModernBertConfig", ENCODER | SLIDING),
        **{"local_attention": 4, "cls_token_id": 1, "sep_token_id": 2},
    ),
    "vit": row("ViTModel", "ViTConfig", VISION),
}
DECODERS: dict[str, Builder] = {
    "gpt2": row("GPT2LMHeadModel", "GPT2Config", GPT),
    "gpt_neox": row("GPTNeoXForCausalLM", "GPTNeoXConfig", ENCODER),
    "opt": row("OPTForCausalLM", "OPTConfig", ENCODER, ffn_dim=64, word_embed_proj_dim=HIDDEN),
    "llama": row("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "mistral": row("MistralForCausalLM", "MistralConfig", GROUPED),
    "qwen3": row("Qwen3ForCausalLM", "Qwen3Config", GROUPED),
    "gemma2": row(  # its scores are capped, here so low that it shows
        *("Gemma2ForCausalLM", "Gemma2Config", GROUPED | SLIDING),
        **{"query_pre_attn_scalar": 8, "attn_logit_softcapping": 0.02},
    ),
    "gemma3": row("Gemma3ForCausalLM", "Gemma3TextConfig", GROUPED | SLIDING),
    "gpt_oss": row(
        *("GptOssForCausalLM", "GptOssConfig", GROUPED | SLIDING),
        **{"num_local_experts": 2, "num_experts_per_tok": 1},
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    ),
}
PAIRS: dict[str, Builder] = {
    "t5": row(
        *("T5ForConditionalGeneration", "T5Config", SPECIALS | {"vocab_size": VOCAB}),
        **{"d_model": HIDDEN, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 3},
        **{"num_heads": 4, "decoder_start_token_id": 0},
    ),
    "bart": row("BartForConditionalGeneration", "BartConfig", TRANSLATOR),
    "mbart": row("MBartForConditionalGeneration", "MBartConfig", TRANSLATOR),
    "marian": row("MarianMTModel", "MarianConfig", TRANSLATOR),
    "m2m100": row("M2M100ForConditionalGeneration", "M2M100Config", TRANSLATOR),
    "whisper": row(
        *("WhisperForConditionalGeneration", "WhisperConfig", PAIR),
        **{"num_mel_bins": 8, "max_source_positions": 10, "max_target_positions": 64},
    ),
}
OUTSIDE: dict[str, Builder] = {  # families that do not speak the attention interface
    "deberta": row(
        *("DebertaModel", "DebertaConfig", ENCODER),
        **{"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    ),
    "deberta_v2": row(
        *("DebertaV2Model", "DebertaV2Config", ENCODER),
        **{"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    ),
    "mpnet": row("MPNetModel", "MPNetConfig", ENCODER),
    "xlnet": row(
        *("XLNetModel", "XLNetConfig", SPECIALS | {"vocab_size": VOCAB}),
        **{"d_model": HIDDEN, "n_layer": 2, "n_head": 4, "d_inner": 64},
    ),
    "gptj": row("GPTJForCausalLM", "GPTJConfig", GPT, rotary_dim=4, n_positions=64),
    "gpt_neo": row(
        *("GPTNeoForCausalLM", "GPTNeoConfig", SPECIALS | {"vocab_size": VOCAB, "window_size": 4}),
        **{"hidden_size": HIDDEN, "num_layers": 2, "num_heads": 4, "max_position_embeddings": 64},
        **{"attention_types": [[["global", "local"], 1]]},
    ),
    "bloom": row(
        *("BloomForCausalLM", "BloomConfig", SPECIALS | {"vocab_size": VOCAB}),
        **{"hidden_size": HIDDEN, "n_layer": 2, "n_head": 4},
    ),
    "falcon": row("FalconForCausalLM", "FalconConfig", SPECIALS | SIZES | {"vocab_size": VOCAB}),
    "big_bird": row("BigBirdModel", "BigBirdConfig", ENCODER, attention_type="original_full"),
    "ibert": row("IBertModel", "IBertConfig", ENCODER),
    "luke": row(
        *("LukeModel", "LukeConfig", ENCODER), **{"entity_vocab_size": 8, "entity_emb_size": 16}
    ),
    "megatron_bert": row("MegatronBertModel", "MegatronBertConfig", ENCODER),
    "rembert": row("RemBertModel", "RemBertConfig", ENCODER, input_embedding_size=16),
    "roformer": row("RoFormerModel", "RoFormerConfig", ENCODER),
    "xlm": row("XLMModel", "XLMConfig", CROSSLINGUAL),
    "flaubert": row("FlaubertModel", "FlaubertConfig", CROSSLINGUAL),
    "codegen": row("CodeGenForCausalLM", "CodeGenConfig", GPT, rotary_dim=4, n_positions=64),
    "openai_gpt": row("OpenAIGPTLMHeadModel", "OpenAIGPTConfig", GPT, n_positions=64),
    "gpt_neox_japanese": row(
        *("GPTNeoXJapaneseForCausalLM", "GPTNeoXJapaneseConfig", SPECIALS | SIZES),
        **{"vocab_size": VOCAB, "max_position_embeddings": 64, "intermediate_multiple_size": 2},
    ),
    "mpt": row(
        *("MptForCausalLM", "MptConfig", SPECIALS | {"vocab_size": VOCAB, "max_seq_len": 64}),
        **{"d_model": HIDDEN, "n_layers": 2, "n_heads": 4, "expansion_ratio": 2},
    ),
    "xglm": row(
        *("XGLMForCausalLM", "XGLMConfig", SPECIALS | {"vocab_size": VOCAB, "ffn_dim": 64}),
        **{"d_model": HIDDEN, "num_layers": 2, "attention_heads": 4},
        max_position_embeddings=64,
    ),
    "fsmt": row(
        *("FSMTForConditionalGeneration", "FSMTConfig", TRANSLATOR),
        **{"langs": ["en", "de"], "src_vocab_size": VOCAB, "tgt_vocab_size": VOCAB},
    ),
    "mvp": row("MvpForConditionalGeneration", "MvpConfig", TRANSLATOR),
}
REFUSED: dict[str, Builder] = {  # two towers; no attention at all
    "clip": row(
        *("CLIPModel", "CLIPConfig", {"projection_dim": 16}),
        **{"text_config": ENCODER, "vision_config": VISION},
    ),
    "mamba": row(
        *("MambaForCausalLM", "MambaConfig", SPECIALS | {"vocab_size": VOCAB}),
        **{"hidden_size": HIDDEN, "num_hidden_layers": 2, "state_size": 4},
    ),
}

INTERFACE: dict[str, Builder] = ENCODERS | DECODERS | PAIRS
TINY: dict[str, Builder] = INTERFACE | OUTSIDE | REFUSED


def draw_ids(batch: int, length: int, pad: int, noise: torch.Generator) -> tuple[Tensor, Tensor]:
    """Random words and their attention mask ``[batch, token]``; the last row ends in pads."""
    ids = torch.randint(FIRST_WORD, VOCAB, (batch, length), generator=noise)
    real = torch.ones_like(ids)
    if pad:
        ids[-1, -pad:], real[-1, -pad:] = 0, 0
    return ids, real


def tiny_inputs(
    model: PreTrainedModel, batch: int = 2, length: int = 7, pad: int = 0, seed: int = 0
) -> dict[str, Tensor]:
    """What the model's forward takes, at random; the decoder side is two tokens shorter."""
    noise = torch.Generator().manual_seed(seed)
    ids, real = draw_ids(batch, length, pad, noise)
    text = {"input_ids": ids, "attention_mask": real}
    target = {"decoder_input_ids": draw_ids(batch, max(length - 2, 1), 0, noise)[0]}
    image = {"pixel_values": torch.randn(batch, 3, 16, 16, generator=noise)}
    sound = {"input_features": torch.randn(batch, 8, 20, generator=noise)}
    kind = model.config.model_type
    special = {"vit": image, "clip": text | image, "whisper": sound | target}
    return special.get(kind, text | target if model.config.is_encoder_decoder else text)
