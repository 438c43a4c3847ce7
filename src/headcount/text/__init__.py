"""Text: corpora are read, and strings become batches."""

from headcount.errors import skipped_in_words
from headcount.text.batch import SIDES, Batch, Side, positions, ready_batch
from headcount.text.corpus import Corpus, read_corpus, side_by_side
from headcount.text.encode import Encoded, encode
from headcount.text.sentence import (
    Argument,
    Item,
    Multiword,
    Pair,
    Predicate,
    Sentence,
    Span,
    Word,
    sentences_of,
    texts_of,
)
from headcount.text.spans import EncodeReport
from headcount.text.tokenize import Intake, intake_of, position_limit, shift_of
from headcount.text.words import (
    Words,
    is_punctuation,
    is_stop,
    with_specials,
    word_maps,
    word_maps_with_specials,
)

__all__ = [
    "SIDES",
    "Argument",
    "Batch",
    "Corpus",
    "EncodeReport",
    "Encoded",
    "Intake",
    "Item",
    "Multiword",
    "Pair",
    "Predicate",
    "Sentence",
    "Side",
    "Span",
    "Word",
    "Words",
    "encode",
    "intake_of",
    "is_punctuation",
    "is_stop",
    "position_limit",
    "positions",
    "read_corpus",
    "ready_batch",
    "sentences_of",
    "shift_of",
    "side_by_side",
    "skipped_in_words",
    "texts_of",
    "with_specials",
    "word_maps",
    "word_maps_with_specials",
]
