"""`python -m research.families`: what works for each family of transformers, on tiny random models.

Every family is built from its own config class, made small, and given a small tokenizer. Each
column is tried by itself: a survey of the attention of every head, scores by gradient, ablation
and relevance, a head (or, where a group shares keys, a group) pruned, the model saved and read
again, with the outputs of the model in which that head gives nothing. What a family refuses is
told in headcount's own words; what breaks, by the error. With `--only` other rows are kept.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

import headcount as hc
from headcount.errors import HeadcountError
from headcount.wiring import valve
from research import RESULTS
from research.pages import with_tables

COMMAND = "python -m research.families"
PAGE = Path(__file__).parents[2] / "docs" / "families.md"
COLUMNS = ("survey", "gradient", "ablation", "contribution", "relevance", "prune", "save", "reload")

WORDS = [
    "the",
    "rain",
    "fell",
    "on",
    "old",
    "roof",
    "all",
    "night",
    "and",
    "a",
    "cat",
    "sat",
    "there",
    "while",
    "wind",
    "blew",
    "over",
    "it",
]
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>", "<mask>"]
TEXTS = [" ".join((WORDS[n:] + WORDS[:n])[: 5 + n % 4]) for n in range(8)]
PAIRS = [(text, " ".join(reversed(text.split()))) for text in TEXTS]

#: What a config is told, whatever its family calls it: so far as its class takes the name.
SMALL: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "emb_dim"), 32),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), 2),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "num_decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads"), 2),
    **dict.fromkeys(("head_dim", "d_kv"), 8),
    **dict.fromkeys(("intermediate_size", "d_ff", "hidden_dim", "ffn_dim"), 64),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim", "intermediate_size_mlp"), 64),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 32),
    **dict.fromkeys(("num_experts", "n_routed_experts", "num_local_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk"), 2),
    **dict.fromkeys(("n_group", "topk_group", "first_k_dense_replace", "n_shared_experts"), 1),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank"), 16),
    **dict.fromkeys(("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"), 8),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len"), 64),
    **{"word_embed_proj_dim": 32, "embedding_size": 16, "rotary_dim": 4, "layer_types": None},
    **{"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_d_ssm": 64},
    **{"mamba_n_groups": 1, "mamba_chunk_size": 8, "mamba_expand": 2, "mamba_dt_rank": 4},
    **{"linear_num_key_heads": 2, "linear_num_value_heads": 4},
    **{"linear_key_head_dim": 8, "linear_value_head_dim": 8},
    **{"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2},
    **{"cls_token_id": 1, "sep_token_id": 2, "use_mamba_kernels": False},
    "vocab_size": len(SPECIAL) + len(WORDS),
}
#: The family, the model that is built, and what its config needs besides.
MASKED, CAUSAL, PAIRED = "MaskedLM", "CausalLM", "Seq2SeqLM"
HYBRID = {"num_hidden_layers": 4}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    **dict.fromkeys(("bert", "roberta", "distilbert", "electra", "albert"), (MASKED, {})),
    **dict.fromkeys(("xlm-roberta", "mpnet", "modernbert", "eurobert"), (MASKED, {})),
    "deberta-v2": (MASKED, {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    **dict.fromkeys(("gpt2", "gpt_neox", "gptj", "opt", "bloom", "falcon"), (CAUSAL, {})),
    **dict.fromkeys(("phi", "phi3", "stablelm", "starcoder2", "llama"), (CAUSAL, {})),
    **dict.fromkeys(("mistral", "ministral", "mixtral", "smollm3", "olmo"), (CAUSAL, {})),
    **dict.fromkeys(("olmo2", "olmo3", "olmoe", "qwen2", "qwen2_moe", "qwen3"), (CAUSAL, {})),
    **dict.fromkeys(("qwen3_moe", "gemma", "gemma2", "gemma3_text"), (CAUSAL, {})),
    **dict.fromkeys(("granite", "granitemoe", "cohere", "cohere2", "glm", "glm4"), (CAUSAL, {})),
    **dict.fromkeys(("nemotron", "exaone4", "ernie4_5", "hunyuan_v1_dense"), (CAUSAL, {})),
    **dict.fromkeys(("seed_oss", "llama4_text", "glm4_moe"), (CAUSAL, {})),
    "gpt_oss": (CAUSAL, {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}),
    "deepseek_v3": (CAUSAL, {"num_key_value_heads": 4}),
    "falcon_h1": (CAUSAL, {}),
    "qwen3_next": (CAUSAL, {**HYBRID, "full_attention_interval": 2}),
    "jamba": (CAUSAL, {**HYBRID, "attn_layer_period": 2, "attn_layer_offset": 1}),
    "bamba": (CAUSAL, {**HYBRID, "attn_layer_indices": [1, 3]}),
    "lfm2": (CAUSAL, {**HYBRID, "full_attn_idxs": [1, 3]}),
    "granitemoehybrid": (CAUSAL, {"layer_types": ["mamba", "attention"]}),
    "mamba": (CAUSAL, {}),
    "t5": (PAIRED, {"decoder_start_token_id": 0}),
    **dict.fromkeys(("bart", "mbart", "marian", "m2m_100", "pegasus"), (PAIRED, {})),
}


def small_tokenizer() -> Any:
    """A word a token, with the marks that every kind of model needs."""
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *WORDS])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> $B </s>",
        special_tokens=[("<s>", 1), ("</s>", 2)],
    )
    names = {"pad": 0, "bos": 1, "eos": 2, "unk": 3, "mask": 4, "cls": 1, "sep": 2}
    marks = {f"{name}_token": SPECIAL[number] for name, number in names.items()}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **marks)


def small_model(family: str) -> Any:
    """A tiny model of the family, its matrices drawn so wide that heads differ."""
    kind, more = FAMILIES[family]
    made = transformers.CONFIG_MAPPING[family]
    taken = set(inspect.signature(made).parameters) | set(vars(made()))
    known = {name: value for name, value in SMALL.items() if name in taken and value is not None}
    config = made(**{**known, **more})
    draw = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = getattr(transformers, f"AutoModelFor{kind}").from_config(config)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1 and weight.requires_grad:  # sinusoids stay as they are
                weight.copy_(0.2 * torch.randn(weight.shape, generator=draw))
    return model.eval()


# --- What is tried ------------------------------------------------------------------------------


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Within the block, work that lasts longer is broken off."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def tried(what: Callable[[], Any], seconds: int) -> tuple[Any, str]:
    """What something gives, and how it went: yes, no with the reason, or the error."""
    try:
        with at_most(seconds):
            return what(), "yes"
    except HeadcountError as error:
        return None, f"no: {error}"
    except Exception as error:
        line = (str(error).strip().splitlines() or [""])[0]
        return None, f"breaks: {type(error).__name__}: {line[:160]}"


def family_row(family: str, seconds: int) -> dict[str, Any]:
    """All columns of one family."""
    model, how = tried(lambda: small_model(family), seconds)
    if model is None:
        return {"family": family, "built": how}
    subject = hc.Subject(model, small_tokenizer(), name=family)
    heads, how = tried(lambda: subject.heads, seconds)
    row: dict[str, Any] = {"family": family, "class": type(model).__name__, "built": "yes"}
    if heads is None:
        return row | dict.fromkeys(COLUMNS, how)
    kind = FAMILIES[family][0]
    row |= {"heads": len(heads), "layers": sorted({f"{h.stack}.{h.layer}" for h in heads})}
    texts: Any = PAIRS if kind == PAIRED else TEXTS
    makes: dict[str, Callable[[], hc.tasks.Task]] = {
        MASKED: lambda: hc.tasks.mlm(TEXTS, seed=0),
        CAUSAL: lambda: hc.tasks.lm(TEXTS),
        PAIRED: lambda: hc.tasks.translation(PAIRS, metric="loss"),
    }
    _, row["survey"] = tried(lambda: hc.survey(subject, texts), seconds)
    for by in ("gradient", "ablation", "contribution", "relevance"):
        _, row[by] = tried(lambda by=by: hc.score(subject, makes[kind](), by=by), seconds)
    first = heads[0]
    small, how = tried(lambda: hc.prune(subject, [first]), seconds)
    row["prune"], gone = how, [first]
    together = {  # where keys are shared, or a layer's weights
        "by groups": [head for head in heads if head[:2] == first[:2]][:2],
        "by layers": [head for head in heads if head[::2] == first[::2]],
    }
    for name, group in together.items():
        if small is None:
            small, how = tried(lambda group=group: hc.prune(subject, group), seconds)
            if small is not None:
                row["prune"], gone = name, group
    if small is None:
        return row | dict.fromkeys(("save", "reload"), "–")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "small")
        _, row["save"] = tried(lambda: small.save(place), seconds)
        if row["save"] != "yes":
            return row | {"reload": "–"}
        _, row["reload"] = tried(lambda: check_reloaded(subject, place, gone), seconds)
    return row


def check_reloaded(subject: hc.Subject, place: Path, gone: list[hc.Head]) -> None:
    """The saved model gives what the whole one gives without these heads."""
    back = hc.load(place, device="cpu")
    ids = subject.tokenizer(TEXTS[0], return_tensors="pt")["input_ids"]
    inputs = {"input_ids": ids}
    if FAMILIES[subject.name][0] == PAIRED:
        inputs["decoder_input_ids"] = ids
    with torch.no_grad(), valve(subject, dict.fromkeys(map(str, gone), 0.0)):
        whole = subject.model(**inputs).logits
    with torch.no_grad():
        found = back.model(**inputs).logits
    gap = float((whole - found).abs().max() / whole.abs().max())
    if not gap < 1e-4:
        raise ArithmeticError(f"outputs differ by {gap:.1g} of the largest")


# --- The page -----------------------------------------------------------------------------------


def family_table(rows: list[dict[str, Any]]) -> str:
    """A row a family; reasons are numbered and stand below."""
    reasons: dict[str, int] = {}

    def cell(family: str, how: str) -> str:
        if how in ("yes", "by groups", "by layers", "–"):
            return how
        word, _, why = how.partition(": ")
        why = re.sub(rf"\b{re.escape(family)}\b( \(\w+\))?", "MODEL", why)
        why = re.sub(r" \((MODEL|\w+RMSNorm)\)", "", why)  # the same reason of many families
        return f"{word} [{reasons.setdefault(why, len(reasons) + 1)}]"

    lines = [f"| family | heads | {' | '.join(COLUMNS)} |", f"|---|--:|{'---|' * len(COLUMNS)}"]
    for row in rows:
        if row["built"] != "yes":
            lines.append(f"| {row['family']} | | {cell(row['family'], row['built'])} |" + " |" * 6)
            continue
        cells = [cell(row["family"], row[name]) for name in COLUMNS]
        lines.append(f"| {row['family']} | {row.get('heads', '–')} | {' | '.join(cells)} |")
    notes = [f"{number}. {why}" for why, number in reasons.items()]
    return "\n".join([*lines, "", *notes])


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.families", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(FAMILIES))
    parser.add_argument("--seconds", type=int, default=240, help="for one cell, at most")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    file = given.out / "families.json"
    known = (
        {row["family"]: row for row in json.loads(file.read_text())["rows"]}
        if file.exists()
        else {}
    )
    for family in given.only or FAMILIES:
        known[family] = family_row(family, given.seconds)
        print(known[family], flush=True)
        rows = [known[name] for name in FAMILIES if name in known]
        versions = {"transformers": transformers.__version__, "torch": torch.__version__}
        found = {"command": COMMAND, "versions": versions, "rows": rows}
        file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    if given.out == RESULTS and PAGE.exists():
        PAGE.write_text(with_tables(PAGE.read_text(), lambda name: family_table(rows)))


if __name__ == "__main__":
    main()
