"""How frequent a token or a word is: counted in the corpus, given by the user, or `wordfreq`'s."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headcount.errors import InputError, UsageError
from headcount.text.batch import Batch
from headcount.text.lines import text_file
from headcount.text.side import Side

__all__ = ["COMMON", "Frequencies", "corpus_frequencies", "frequencies_of"]

#: So many forms are common; Voita et al. 2019, section 5.3.
COMMON = 500


@dataclass(frozen=True)
class Frequencies:
    """A frequency for every form, and the border below which a form is uncommon.

    Of forms as frequent as one another at the border none is common: no order among them would
    mean anything. `by` says whether forms are tokens as the tokenizer writes them, or words.
    """

    name: str
    of: Callable[[str], float]
    #: An uncommon form is at most so frequent.
    border: float
    by: Literal["token", "word"] = "word"
    common: int = COMMON

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, float],
        *,
        name: str = "given counts",
        by: Literal["token", "word"] = "word",
        common: int = COMMON,
    ) -> Frequencies:
        """From a count for each form; a form that is not there has 0, the rarest of all.

        >>> known = Frequencies.from_counts({"the": 90, "cat": 3, "sat": 3}, common=1)
        >>> known.border, known.of("cat"), known.of("zebra")
        (3, 3, 0)
        """
        if not counts:
            raise InputError(f"{name} hold no count; give at least one word with its count.")
        ordered = sorted(counts.values(), reverse=True)
        border = ordered[common] if len(ordered) > common else 0
        own = {form.lower(): count for form, count in counts.items()} if by == "word" else counts
        return cls(name, lambda form: own.get(form, 0), border, by, common)


def frequencies_of(
    source: Frequencies | Mapping[str, float] | str | Path | None, common: int = COMMON
) -> Frequencies | None:
    """Frequencies as they come: made, a mapping, `wordfreq` or `wordfreq:de`, a file of counts.

    None, or the word `corpus`, means those of the corpus itself, which are counted when it is
    read.
    """
    if source is None or source == "corpus":
        return None
    if isinstance(source, Frequencies):
        return source
    if isinstance(source, Mapping):
        return Frequencies.from_counts(source, common=common)
    name, _, language = str(source).partition(":")
    if name == "wordfreq":
        return _wordfreq(language or "en", common)
    return Frequencies.from_counts(_read(source), name=str(source), common=common)


def corpus_frequencies(batches: Iterable[Batch], common: int = COMMON) -> dict[str, Frequencies]:
    """How often each token occurs in a corpus, for each of its sides; special tokens left out."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for batch in batches:
        for name, side in batch.sides.items():
            counts[name].update(_own_tokens(side))
    return {
        name: Frequencies.from_counts(found, name="the corpus", by="token", common=common)
        for name, found in counts.items()
        if found
    }


def _own_tokens(side: Side) -> Iterable[str]:
    for tokens, real, special in zip(side.tokens, side.real, side.special, strict=True):
        marks = special[real].tolist()
        yield from (token for token, mark in zip(tokens, marks, strict=True) if not mark)


def _wordfreq(language: str, common: int) -> Frequencies:
    try:
        import wordfreq
    except ImportError as error:
        raise UsageError(
            "Word frequencies of wordfreq need the package wordfreq, which is not installed: "
            "pip install 'headcount[words]'; or use those of the corpus."
        ) from error
    try:
        border = wordfreq.word_frequency(wordfreq.top_n_list(language, common + 1)[-1], language)
    except LookupError as error:
        known = ", ".join(sorted(wordfreq.available_languages()))
        raise UsageError(f"wordfreq has no language '{language}'; it has {known}.") from error
    return Frequencies(
        f"wordfreq {language}",
        lambda word: wordfreq.word_frequency(word, language),
        border,
        common=common,
    )


def _read(path: str | Path) -> dict[str, float]:
    """A word, a tab or spaces, and its count, on each line."""
    counts: dict[str, float] = {}
    for number, line in text_file(path).lines():
        if not line.strip():
            continue
        word, _, count = line.strip().replace("\t", " ").rpartition(" ")
        try:
            counts[word.strip()] = float(count)
        except ValueError:
            word = ""
        if not word.strip():
            raise InputError(
                f"Line {number} of {path} is '{line.strip()[:40]}'; a file of counts has a word "
                "and its count on each line, with a tab between."
            )
    return counts
