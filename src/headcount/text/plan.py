"""How a corpus is to be encoded: every choice made and checked before the first token."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from headcount.errors import InputError, UsageError
from headcount.heads import STACKS
from headcount.text.chat import must_have_template
from headcount.text.corpus import Corpus
from headcount.text.fit import Fit
from headcount.text.intake import Intake
from headcount.text.places import gives_places, must_give_places

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = [
    "Kind",
    "Long",
    "Plan",
    "check_chat",
    "check_corpus",
    "finds_words",
    "fit_for",
    "kind_of",
]

Kind = Literal["encoder", "decoder", "encoder-decoder"]
Long = Literal["window", "truncate", "error"]


@dataclass(frozen=True)
class Plan:
    """How a corpus is encoded."""

    kind: Kind
    #: Whether the decoder of an encoder-decoder is fed the targets.
    decoded: bool
    intake: Intake
    fit: Fit
    batch_size: int = 16
    chat: bool = False
    markup: bool = False
    padding_side: str = "right"
    sort: bool = True
    #: Whether the corpus' words are found among the tokens.
    words: bool = False

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise UsageError(f"The batch size is {self.batch_size}; it must be 1 or more.")
        if self.padding_side not in ("right", "left"):
            raise UsageError(f"The padding side is '{self.padding_side}'; choose right or left.")

    @property
    def side(self) -> str:
        """Which side an input row is."""
        return "target" if self.kind == "decoder" else "source"


def kind_of(stacks: Collection[str], intake: Intake) -> Kind:
    """What sort of model has these stacks and takes this in.

    >>> kind_of({"dec"}, Intake())
    'decoder'
    """
    unknown = sorted(set(stacks) - set(STACKS))
    if unknown or not stacks:
        raise UsageError(
            f"{unknown or 'No stack'} cannot be encoded for; stacks are {', '.join(STACKS)}."
        )
    if intake.shift is not None:
        return "encoder-decoder"
    if "enc" in stacks and len(set(stacks)) > 1:
        raise UsageError(
            "An encoder-decoder's inputs depend on how its decoder starts; "
            "pass intake=intake_of(model)."
        )
    return "encoder" if "enc" in stacks else "decoder"


def check_corpus(corpus: Corpus, kind: Kind, decoded: bool) -> None:
    """Refuse a corpus that this kind of model cannot take."""
    if decoded and not corpus.paired:
        raise InputError(
            f"{corpus.name} has no targets, which a decoder's heads need; give pairs (--pairs, a "
            ".tsv with source and target), or look at the encoder alone (--stacks enc)."
        )
    if kind == "decoder" and corpus.paired:
        raise InputError(
            f"{corpus.name} holds pairs, which a decoder-only model cannot take; give one text a "
            "line (.txt)."
        )


def check_chat(corpus: Corpus, tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse to make chat turns of pairs, or without a template."""
    if corpus.paired:
        raise UsageError(
            f"{corpus.name} holds pairs, and a chat turn is one text; leave out chat=True (--chat)."
        )
    must_have_template(tokenizer)


def finds_words(corpus: Corpus, tokenizer: PreTrainedTokenizerBase, wanted: bool | None) -> bool:
    """Whether words will be found: as wanted, else wherever corpus and tokenizer allow it."""
    if wanted and not corpus.annotated:
        raise InputError(
            f"{corpus.name} has no words, only text; give a treebank (.conllu), or parse it "
            "(--parser)."
        )
    if wanted:
        must_give_places(tokenizer)
    return corpus.annotated and wanted is not False and gives_places(tokenizer)


def fit_for(kind: Kind, intake: Intake, max_length: int | None, long: Long, paired: bool) -> Fit:
    """What fits the model: no longer than it takes, nor than was asked for."""
    if long not in ("window", "truncate", "error"):
        raise UsageError(f"long is '{long}'; choose window, truncate or error.")
    limit = intake.target_limit if kind == "decoder" else intake.source_limit
    most = max_length if limit is None else limit
    if max_length is not None and most is not None and not 1 <= max_length <= most:
        raise UsageError(
            f"The maximum length is {max_length}; this model takes 1 to {most} tokens."
        )
    return Fit(_least(max_length, limit), _least(max_length, intake.target_limit), long, paired)


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
