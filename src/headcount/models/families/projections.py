"""Where an attention module keeps its queries, keys, values and output: one row a way of writing.

Rows are tried in order, by the names of the modules; what a row promises is checked against the
sizes, and every removal against the shut valve, so that a row may serve many families.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COUNTS", "FOREIGN", "GIVEN", "PER_HEAD", "PLAIN", "ROWS", "Row", "Trait"]


@dataclass(frozen=True)
class Row:
    """One way of writing an attention.

    `parts` are projections by path and what they give: `q`, `k` and `v` one after the other;
    with `by_group` those of the query heads that share keys stand together, then these keys, then
    these values. `output` is the path of the output projection, `also` more projections that
    there may be. A path that begins with `..` starts at the parent of the attention module. With
    `asks_config` the forward reads head counts from the module's config.
    """

    parts: tuple[tuple[str, str], ...]
    output: str
    by_group: bool = False
    asks_config: bool = False
    also: tuple[tuple[str, str], ...] = ()


def _apart(query: str, key: str, value: str, output: str) -> Row:
    return Row(((query, "q"), (key, "k"), (value, "v")), output)


ROWS: tuple[Row, ...] = (
    _apart("query", "key", "value", "..output.dense"),  # BERT, RoBERTa, Electra
    _apart("self.query", "self.key", "self.value", "output.dense"),  # RoFormer, Luke, RemBERT
    _apart("query", "key", "value", "dense"),  # ALBERT
    _apart("q_proj", "k_proj", "v_proj", "o_proj"),  # Llama and kin, ViT
    _apart("q_proj", "k_proj", "v_proj", "dense"),  # Phi
    _apart("q_proj", "k_proj", "v_proj", "out_proj"),  # BART, Marian, M2M100, OPT, Whisper, GPT-J
    _apart("q", "k", "v", "o"),  # T5, MPNet
    _apart("q_lin", "k_lin", "v_lin", "out_lin"),  # DistilBERT, XLM
    _apart("Wq", "Wk", "Wv", "dense"),  # CTRL
    Row((("q_attn", "q"), ("c_attn", "kv")), "c_proj"),  # GPT-2 where it looks at an encoder
    Row((("c_attn", "qkv"),), "c_proj"),  # GPT-2
    Row((("query_key_value", "qkv"),), "dense", by_group=True),  # GPT-NeoX, BLOOM, Falcon
    Row((("qkv_proj", "qkv"),), "o_proj", asks_config=True),  # Phi-3
    Row((("Wqkv", "qkv"),), "Wo"),  # ModernBERT
    Row((("Wqkv", "qkv"),), "out_proj"),  # MPT
    Row(  # DeBERTa
        (("self.in_proj", "qkv"),),
        "output.dense",
        by_group=True,
        also=(("self.pos_proj", "k"), ("self.pos_q_proj", "q")),
    ),
    Row(  # DeBERTa 2 and 3
        (("self.query_proj", "q"), ("self.key_proj", "k"), ("self.value_proj", "v")),
        "output.dense",
        also=(("self.pos_key_proj", "k"), ("self.pos_query_proj", "q")),
    ),
)


@dataclass(frozen=True)
class Trait:
    """Something that an attention keeps for each head: its path, the axis of heads, whose heads."""

    path: str
    axis: int
    of: str = "q"


#: Weights beside the projections that have entries for each head, as many for one as for another.
#: Norms over one head's dimensions,
#: which all heads share, have none and stay as they are.
PER_HEAD: tuple[Trait, ...] = (
    Trait("sinks", 0),  # gpt-oss
    Trait("relative_attention_bias.weight", 1),  # T5
    Trait("q_norm.weight", 0, "q"),  # Cohere, where it is [head, dim]
    Trait("k_norm.weight", 0, "k"),
    Trait("self.q_bias", 0),  # DeBERTa
    Trait("self.v_bias", 0),
    Trait("relative_position_bias_table", 1),  # Swin
)

#: A bias with an entry a head that is computed outside of the layers and handed to each of them:
#: the name that the attention's forward has for it.
GIVEN: dict[str, str] = {"bloom": "alibi", "mpnet": "position_bias", "mpt": "position_bias"}

#: Classes of projections that are plain matrices under another name.
PLAIN = ("FalconLinear",)

#: Numbers that attention modules keep of their heads, and what each counts.
COUNTS: dict[str, str] = {
    "num_attention_heads": "q",
    "num_heads": "q",
    "n_heads": "q",
    "n_head": "q",
    "num_key_value_heads": "k",
    "num_kv_heads": "k",
    "num_key_value_groups": "group",
    "all_head_size": "width",
    "embed_dim": "width",  # MVP, XGLM; where it means the model's width, nothing reads it again
    "inner_dim": "width",
    "split_size": "width",
}

#: Families whose modules bear known names and mean something else by them.
FOREIGN: dict[str, str] = {
    "codegen": "keeps its projections in blocks made for four devices",
    "xlnet": "keeps its heads in tensors of their own order, with biases for each",
    "fsmt": "folds all heads into the width of the model at every call",
    "ibert": "quantises its projections with ranges kept for all heads at once",
}
