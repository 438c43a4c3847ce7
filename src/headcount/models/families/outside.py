"""Families that do not speak the attention interface: where their heads lie, one row each.

A row names two things: the class of the module around one attention, and the path inside it
of the output projection, whose input holds the heads side by side. All else (heads, head
size, stack, causality) is learnt by running the model once on a few tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["OUTSIDE", "REFUSED", "Family"]


@dataclass(frozen=True)
class Family:
    """Where one family keeps its heads.

    `attention` is the class of the attention module, `projection` the path inside it of the
    output projection (or the name of the method that does the projection, with `method`).
    `kv_heads` names the attribute of the attention that counts key heads, where these are
    fewer, and `window` its buffer `[1, 1, query, key]` of the keys that a query may see, where
    that differs by layer. With `time_first` the input of the projection is
    `[query, batch, width]`. `needs` is a setting and the value it must have for the heads to
    be reached soundly.
    """

    attention: str
    projection: str
    kv_heads: str = ""
    window: str = ""
    time_first: bool = False
    method: bool = False
    needs: tuple[str, Any] | None = None


#: By `config.model_type`.
OUTSIDE: dict[str, Family] = {
    "big_bird": Family(
        "BigBirdAttention", "output.dense", needs=("attention_type", "original_full")
    ),
    # With slow_but_exact the projection's weight is applied in slices, past the module.
    "bloom": Family("BloomAttention", "dense", needs=("slow_but_exact", False)),
    "codegen": Family("CodeGenAttention", "out_proj"),
    # A talking head's map is a mixture of all heads' maps, and its rows do not sum to 1.
    "deberta": Family("DebertaAttention", "output.dense", needs=("talking_head", False)),
    "deberta-v2": Family("DebertaV2Attention", "output.dense"),
    # With alibi the eager path, the only one that gives maps, adds the bias twice.
    "falcon": Family("FalconAttention", "dense", kv_heads="num_kv_heads", needs=("alibi", False)),
    "flaubert": Family("MultiHeadAttention", "out_lin"),
    "fsmt": Family("Attention", "out_proj", time_first=True),
    "gpt_neo": Family("GPTNeoSelfAttention", "out_proj", window="bias"),
    "gpt_neox_japanese": Family("GPTNeoXJapaneseAttention", "dense"),
    "gptj": Family("GPTJAttention", "out_proj"),
    # Quantised activations travel with a scaling factor that a valve cannot change.
    "ibert": Family("IBertAttention", "output.dense", needs=("quant_mode", False)),
    "luke": Family("LukeAttention", "output.dense"),
    "megatron-bert": Family("MegatronBertAttention", "output.dense"),
    "mpnet": Family("MPNetSelfAttention", "o"),
    "mpt": Family("MptAttention", "out_proj"),
    "mvp": Family("MvpAttention", "out_proj", needs=("use_prompt", False)),
    "openai-gpt": Family("Attention", "c_proj"),
    "rembert": Family("RemBertAttention", "output.dense"),
    "roformer": Family("RoFormerAttention", "output.dense"),
    "xglm": Family("XGLMAttention", "out_proj"),
    "xlm": Family("MultiHeadAttention", "out_lin"),
    "xlnet": Family("XLNetRelativeAttention", "post_attention", time_first=True, method=True),
}

# They ask for "eager" or "sdpa" by name before they mask the keys that they did not choose: under
# any other name, such as a tap's, all keys would be attended to, without a word.
_CHOOSES_KEYS = "chooses some keys for each query by a rule that no tap can keep"

#: Families whose attention is not one map `[query, key]` a head, and what it is instead.
REFUSED: dict[str, str] = {
    **dict.fromkeys(("axk2", "deepseek_v32", "glm_moe_dsa", "hy_v4"), _CHOOSES_KEYS),
    **dict.fromkeys(("minimax_m3_vl", "minimax_m3_vl_text"), _CHOOSES_KEYS),
    **dict.fromkeys(("mistral_large4", "mistral_large4_text"), _CHOOSES_KEYS),
    "canine": "attends within blocks of characters, then over a shortened sequence",
    "convbert": "puts convolutions beside its heads, in the same input of the output projection",
    "deepseek_v4": "attends to summaries of many tokens beside the tokens themselves",
    "diffllama": "attends twice in each layer and takes the difference of pairs of heads",
    "funnel": "shortens the sequence between its blocks, so that its maps do not show tokens",
    "led": "attends within a band and to global tokens, and stores its maps by diagonals",
    "lilt": "has a text half and a layout half of each head, and shows the map of one of them",
    "longformer": "attends within a band and to global tokens, and stores its maps by diagonals",
    "mra": "approximates attention at several resolutions and has no maps",
    "nystromformer": "approximates attention through landmarks and has no maps of tokens",
    "perceiver": "attends from latents, which are not tokens",
    "prophetnet": "runs several streams of n-gram attention through each decoder head",
    "reformer": "attends within chunks and buckets of hashes, and has no maps of all tokens",
    "rwkv": "is a recurrence without attention maps",
    "squeezebert": "shows the scores before the softmax in place of its maps",
    "wavlm": "applies the weight of its output projection past the module, out of a valve's reach",
    "yoso": "samples its attention by hashing and has no maps",
}
