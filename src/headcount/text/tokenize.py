"""Texts written as rows of token ids, by any tokenizer, left as it was found."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from headcount import plugins
from headcount.errors import ModelError, UsageError
from headcount.text import spans

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase


# --- How many tokens a model takes --------------------------------------------------------------

#: Families that number positions from their padding id on, so the first ones are never used,
#: and that read the numbers off the padding themselves.
COUNTS_FROM_PADDING = frozenset(
    {
        "camembert",
        "data2vec-text",
        "esm",
        "ibert",
        "layoutlmv3",
        "lilt",
        "longformer",
        "luke",
        "markuplm",
        "mpnet",
        "roberta",
        "roberta-prelayernorm",
        "xlm-roberta",
        "xlm-roberta-xl",
        "xmod",
    }
)
#: Families that see distances only: any length will do, whatever an old config says.
_RELATIVE = frozenset(
    {
        "bloom",
        "funnel",
        "longt5",
        "mpt",
        "mt5",
        "pop2piano",
        "switch_transformers",
        "t5",
        "udop",
        "umt5",
        "xlnet",
    }
)
_NAMES = {
    "source": ("max_source_positions", "max_encoder_position_embeddings"),
    "target": ("max_target_positions", "max_decoder_position_embeddings"),
}
_COMMON = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len")
# Tokenizers say 10**30 when they do not know.
_SENTINEL = 10**9


def position_limit(
    config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase | None = None, side: str = "source"
) -> int | None:
    """The longest input of a side, special tokens included; None where there is no limit.

    The config decides; only where it says nothing does the tokenizer's own maximum count.

    >>> from transformers import BertConfig, RobertaConfig, T5Config
    >>> position_limit(BertConfig()), position_limit(T5Config())
    (512, None)
    >>> position_limit(RobertaConfig(max_position_embeddings=514, pad_token_id=1))
    512
    """
    config = _of_side(config, side)
    no_absolute = getattr(config, "position_biased_input", True) is False
    if config.model_type in _RELATIVE or no_absolute or getattr(config, "alibi", False):
        return None
    padding = getattr(config, "pad_token_id", None)
    first = 0
    if config.model_type in COUNTS_FROM_PADDING and padding is not None:
        first = int(padding) + 1
    for name in (*_NAMES[side], *_COMMON):
        found = getattr(config, name, None)
        if isinstance(found, int) and found > 0:
            return found - first
    known = getattr(tokenizer, "model_max_length", None)
    return int(known) if known is not None and known < _SENTINEL else None


def _of_side(config: PretrainedConfig, side: str) -> PretrainedConfig:
    """The config that knows: composite models keep one a side, or one for text."""
    part = getattr(config, "encoder" if side == "source" else "decoder", None)
    if hasattr(part, "model_type"):
        return part
    inner = getattr(config, "text_config", None)
    return inner if hasattr(inner, "model_type") else config


# --- What one model takes in, read off the model in hand ----------------------------------------

#: Labels ``[batch, token]``, padded on the right with -100, become the decoder's input.
Shift = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Intake:
    """What a model's forward takes. The default takes everything and has no limit."""

    #: Names of forward's arguments; None where they are not known.
    takes: frozenset[str] | None = None
    #: How labels become decoder input; None unless the model is an encoder-decoder.
    shift: Shift | None = None
    source_limit: int | None = None
    target_limit: int | None = None
    #: The model's padding id, for tokenizers that have none.
    pad_id: int | None = None
    #: Whether positions must be passed when padding stands on the left.
    needs_positions: bool = False

    def accepts(self, name: str) -> bool:
        """Whether forward can be given an argument of this name."""
        return self.takes is None or name in self.takes


def intake_of(model: Any, tokenizer: PreTrainedTokenizerBase | None = None) -> Intake:
    """Read what a model takes: its arguments, its limits, its way of starting a decoder."""
    bare = _unwrapped(model)
    config = bare.config
    takes = frozenset(inspect.signature(bare.forward).parameters)
    if getattr(config, "type_vocab_size", 2) < 2:
        takes -= {"token_type_ids"}
    return Intake(
        takes=takes,
        shift=shift_of(model),
        source_limit=position_limit(config, tokenizer, "source"),
        target_limit=position_limit(config, tokenizer, "target"),
        pad_id=getattr(config, "pad_token_id", None),
        needs_positions="position_ids" in takes and config.model_type not in COUNTS_FROM_PADDING,
    )


def shift_of(model: Any) -> Shift | None:
    """How an encoder-decoder turns labels into decoder input; None for other models.

    The family's own function is used, for they differ: Marian and T5 start with the padding
    token, BART with </s>, mBART with the language code that ends its labels.
    """
    bare = _unwrapped(model)
    takes = inspect.signature(bare.forward).parameters
    # One half of an encoder-decoder, in hand alone, has the config of the whole.
    if not getattr(bare.config, "is_encoder_decoder", False) or "decoder_input_ids" not in takes:
        return None
    for name in ("prepare_decoder_input_ids_from_labels", "_shift_right"):
        method: Shift | None = getattr(bare, name, None)
        if method is not None:
            return method
    return _family_shift(bare)


def _family_shift(model: Any) -> Shift:
    """The ``shift_tokens_right`` beside the class: all that M2M100 and bare models have."""
    function = getattr(sys.modules[type(model).__module__], "shift_tokens_right", None)
    config = model.config
    if function is None or config.pad_token_id is None:
        raise ModelError(
            f"{type(model).__name__} does not say how its decoder starts; load the model with its "
            "language-modelling head (AutoModelForSeq2SeqLM), or pass ready inputs."
        )
    extra = [config.pad_token_id, config.decoder_start_token_id]
    count = len(inspect.signature(function).parameters) - 1
    return lambda labels: function(labels, *extra[:count])


def _unwrapped(model: Any) -> Any:
    """The model inside an adapter's wrapper."""
    inner = getattr(model, "get_base_model", None)
    return inner() if inner is not None else model


# --- A sentence as one user turn of an instruct model -------------------------------------------


def must_have_template(tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse a tokenizer that has no chat template."""
    if not getattr(tokenizer, "chat_template", None):
        raise UsageError(
            f"{type(tokenizer).__name__} has no chat template; leave out chat=True (--chat), or "
            "use the instruct version of the model."
        )


# --- Texts written as rows of token ids, by any tokenizer, left as it was found -----------------

_SURROGATE = re.compile("[\ud800-\udfff]")


class RowTokenizer:
    """Writes texts as `TokenRow`s with one tokenizer, and keeps the account.

    With `markup` a special token written in a text, such as ``[MASK]``, is taken as such;
    otherwise it is text like any other. With `places` rows tell where their tokens stand.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        account: spans.EncodeReport,
        *,
        markup: bool = False,
        places: bool = False,
    ) -> None:
        if places:
            spans.must_give_places(tokenizer)
        self._places = places
        self._tokenizer = tokenizer
        self._account = account
        self._markup = markup
        self._specials = spans.special_ids(tokenizer)
        self._spelling: dict[int, list[int]] = {}

    def rows(
        self, texts: Sequence[str], seconds: Sequence[str] | None = None, *, target: bool = False
    ) -> list[spans.TokenRow]:
        """A row a text (or a text and its second text), as the tokenizer wraps it."""
        written = [self._mend(text) for text in texts]
        behind = None if seconds is None else [self._mend(text) for text in seconds]
        if target and getattr(self._tokenizer, "tgt_lang", "none needed") is None:
            # A multilingual tokenizer would silently write the target as the source.
            raise UsageError(
                f"{type(self._tokenizer).__name__} does not know the target language; set "
                "tokenizer.tgt_lang (and src_lang), e.g. tokenizer.tgt_lang = 'de_DE'."
            )
        with spans.untouched(self._tokenizer):
            rows = self._ask(written, behind, target, self._tokenizer.is_fast)
            if self._markup:  # ByT5 adds no end to a text that has one, but counts it
                rows = [replace(r, special=r.special[len(r.special) - len(r.ids) :]) for r in rows]
            else:
                self._reread(rows, written, behind, target)
            if self._places and not self._tokenizer.is_fast:
                both = zip(written, behind, strict=True) if behind else zip(written, strict=True)
                room = plugins.get("parts", "sentencepiece")
                rows = room.sentencepiece_rows(self._tokenizer, rows, [*both], target=target)
        if self._places and self._account.mended:
            rows = spans.still_placed(rows, [*texts, *(seconds or ())], [*written, *(behind or ())])
        return rows if self._markup else [self._plain(row) for row in rows]

    def chat_rows(self, texts: Sequence[str]) -> list[spans.TokenRow]:
        """A row a text, rendered as one user turn of the tokenizer's chat template."""
        framed = plugins.get("parts", "chat turns")
        frame, rendered = framed(self._tokenizer, [*map(self._mend, texts)])
        offsets = {"return_offsets_mapping": True} if self._tokenizer.is_fast else {}
        with spans.untouched(self._tokenizer):
            found = self._tokenizer(
                rendered,
                add_special_tokens=False,
                verbose=False,
                split_special_tokens=False,
                **offsets,
            )
        places = found.get("offset_mapping") or [None] * len(rendered)
        marked = zip(texts, rendered, found["input_ids"], places, strict=True)
        rows = [self._chat_row(frame, *one) for one in marked]
        return rows if self._markup else [self._plain(row) for row in rows]

    def _chat_row(
        self,
        frame: Any,
        text: str,
        rendered: str,
        ids: list[int],
        places: list[tuple[int, int]] | None,
    ) -> spans.TokenRow:
        start, end = frame.content(rendered)
        inside = [start <= place[0] < end for place in places] if places else [False] * len(ids)
        special = [
            int(number in self._specials and not within)
            for number, within in zip(ids, inside, strict=True)
        ]
        own = frame.places(text, rendered, places) if self._places and places else None
        return spans.TokenRow(ids, special, places=own)

    def _ask(
        self, texts: Sequence[str], seconds: Sequence[str] | None, target: bool, split: bool
    ) -> list[spans.TokenRow]:
        offsets = self._places and self._tokenizer.is_fast
        found = self._tokenizer(
            **{"text_target" if target else "text": texts},
            text_pair=seconds,
            return_offsets_mapping=offsets,
            return_special_tokens_mask=True,
            return_attention_mask=False,
            split_special_tokens=split and not self._markup,
            verbose=False,
        )
        types = found.get("token_type_ids") or [None] * len(texts)
        places = [
            spans.fast_places(found, number, len(text) + 1) if offsets else None
            for number, text in enumerate(texts)
        ]
        cells = zip(found["input_ids"], found["special_tokens_mask"], types, places, strict=True)
        return [spans.TokenRow(*each) for each in cells]

    def _reread(
        self,
        rows: list[spans.TokenRow],
        texts: Sequence[str],
        seconds: Sequence[str] | None,
        target: bool,
    ) -> None:
        """Read again, with special tokens split, what a Python tokenizer took for special.

        Not everything at once: some of them (ESM) need the same switch to find any token.
        """
        if self._tokenizer.is_fast:
            return
        usual = self._tokenizer.num_special_tokens_to_add(pair=seconds is not None)
        for place, row in enumerate(rows):
            # Special places were read off the text: too many, or no longer one a token.
            odd = len(row.special) != len(row.ids) or sum(row.special) > usual
            if odd or spans.lookalikes(row, self._specials):
                second = None if seconds is None else seconds[place : place + 1]
                again = self._ask(texts[place : place + 1], second, target, True)
                rows[place] = again[0]

    def _plain(self, row: spans.TokenRow) -> spans.TokenRow:
        """The row with look-alikes of special tokens spelt out."""
        count = spans.lookalikes(row, self._specials)
        if not count:
            return row
        self._account.lookalikes += count
        for number in self._specials.intersection(row.ids) - self._spelling.keys():
            self._spelling[number] = self._letters(number)
        return spans.spelt_out(row, self._spelling)

    def _letters(self, number: int) -> list[int]:
        """The ids of the characters of a special token's name."""
        name = self._tokenizer.convert_ids_to_tokens(number)
        letters = [self._tokenizer.convert_tokens_to_ids(letter) for letter in name]
        unknown = self._tokenizer.unk_token_id
        kept = [unknown if found is None else found for found in letters]
        return [found for found in kept if found is not None]

    def _mend(self, text: str) -> str:
        """The text with halves of surrogate pairs joined, or replaced where alone."""
        if _SURROGATE.search(text) is None:
            return text
        self._account.mended += 1
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
