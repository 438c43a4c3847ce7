"""A corpus: sentences or pairs from a list, a file or standard input, counted and hashed."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from headcount.errors import InputError, UsageError
from headcount.text.conllu import read_conllu
from headcount.text.lines import TextFile, format_of, text_file
from headcount.text.sentence import Item, Pair, Sentence, sentences_of, texts_of
from headcount.text.tsv import read_pairs

__all__ = ["Corpus", "read_corpus"]

#: One pass over a corpus; what it leaves out goes into the counter, by reason.
Reader = Callable[[Counter[str]], Iterator[Item]]


class Corpus:
    """Sentences, or pairs, that can be gone through again and again.

    A file is read once to count and check it and again at every pass, so a corpus of any size
    takes no memory. `skipped` says what was left out and why; nothing is left out silently.
    `paired` corpora hold pairs, `annotated` ones words.

    >>> corpus = read_corpus(["Rain fell.", " ", "It stopped."])
    >>> len(corpus), dict(corpus.skipped), [item.text for item in corpus.limit(1)]
    (2, {'blank lines': 1}, ['Rain fell.'])
    """

    def __init__(self, reader: Reader, name: str) -> None:
        self.name = name
        self._reader = reader
        self.skipped: Counter[str] = Counter()
        self._count, self.hash, self.paired, self.annotated = self._scan()

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Item]:
        seen = 0
        for item in self._reader(Counter()):
            seen += 1
            yield item
        if seen != self._count:
            raise InputError(
                f"{self.name} had {self._count} sentences and now has {seen}: it changed while it "
                "was being read; run again."
            )

    def __repr__(self) -> str:
        kind = "pairs" if self.paired else "sentences"
        return f"Corpus({self.name!r}, {len(self):,} {kind})"

    def limit(self, count: int, seed: int | None = None) -> Corpus:
        """The first `count` of it, or with a seed a random sample, in the corpus' order."""
        _check_limit(count)
        if seed is None:
            return Corpus(_first(self._reader, count), self.name)
        if count >= len(self):
            return self
        chosen = frozenset(random.Random(seed).sample(range(len(self)), count))
        return Corpus(_picked(self._reader, chosen), self.name)

    def _scan(self) -> tuple[int, str, bool, bool]:
        """Count, hash and kinds, in one pass that also finds every fault of the corpus."""
        count, digest, kinds, annotated = 0, hashlib.sha256(), set(), False
        for item in self._reader(self.skipped):
            count += 1
            kinds.add(type(item))
            annotated = annotated or any(sentences_of(item))
            for text in texts_of(item):
                raw = text.encode("utf-8", "surrogatepass")
                # The length in front keeps ["ab"] and ["a", "b"] apart.
                digest.update(b"%d:" % len(raw) + raw)
        self.skipped = +self.skipped
        if not count:
            raise InputError(f"{self.name} is empty: it has no sentence{_why(self.skipped)}.")
        if len(kinds) > 1:
            raise InputError(f"{self.name} mixes sentences and pairs; give one kind.")
        return count, digest.hexdigest(), kinds == {Pair}, annotated


def read_corpus(
    source: Corpus | str | Path | Iterable[Any],
    *,
    format: str | None = None,
    columns: tuple[int, int] = (0, 1),
    limit: int | None = None,
    seed: int | None = None,
) -> Corpus:
    """Read a corpus from texts in hand, a path, or ``-`` for standard input.

    Texts in hand are strings, pairs of strings, `Sentence`s or `Pair`s. A path ends in .txt (a
    sentence a line), .tsv (source, tab, target; `columns` picks others) or .conllu, maybe packed
    with .gz, .xz or .bz2; `format` overrules the suffix. `limit` keeps the first so many
    sentences, with a seed a random sample.

    >>> read_corpus([("Rain.", "Regen.")])
    Corpus('texts in hand', 1 pairs)
    """
    if limit is not None:
        _check_limit(limit)
    if isinstance(source, Corpus):
        return source if limit is None else source.limit(limit, seed)
    reader, name = _reader_of(source, format, columns)
    if limit is None:
        return Corpus(reader, name)
    if seed is None:
        return Corpus(_first(reader, limit), name)
    return Corpus(reader, name).limit(limit, seed)


def _reader_of(
    source: str | Path | Iterable[Any], format: str | None, columns: tuple[int, int]
) -> tuple[Reader, str]:
    if isinstance(source, str | Path):
        # The file first: a missing file with an odd suffix is above all missing.
        file = text_file(source)
        return _file_reader(file, format_of(source, format), columns), file.name
    if isinstance(source, bytes | dict) or not isinstance(source, Iterable):
        raise InputError(
            f"A {type(source).__name__} is not a corpus; pass a list of texts, a list of pairs, "
            "or the path of a .txt, .tsv or .conllu file."
        )
    items = list(source)
    return lambda skipped: _in_hand(items, skipped), "texts in hand"


def _file_reader(file: TextFile, format: str, columns: tuple[int, int]) -> Reader:
    if format == "tsv":
        return lambda skipped: read_pairs(file, skipped, columns)
    if format == "conllu":
        return _kept(lambda skipped: read_conllu(file, skipped))
    return lambda skipped: _plain(file, skipped)


def _plain(file: TextFile, skipped: Counter[str]) -> Iterator[Sentence]:
    for number, line in file.lines():
        if line.strip():
            yield Sentence(line, line=number)
        else:
            skipped["blank lines"] += 1


def _in_hand(items: list[Any], skipped: Counter[str]) -> Iterator[Item]:
    for number, item in enumerate(items, start=1):
        found = _item(item, number)
        if all(text.strip() for text in texts_of(found)):
            yield found
        elif isinstance(found, Pair):
            side = "target" if found.source.strip() else "source"
            raise InputError(f"Pair {number} of the texts in hand has no {side}.")
        else:
            skipped["blank lines"] += 1


def _item(item: Any, number: int) -> Item:
    if isinstance(item, Sentence | Pair):
        return item
    if isinstance(item, str):
        return Sentence(item, line=number)
    if isinstance(item, tuple | list) and all(isinstance(part, str) for part in item):
        if len(item) == 2:
            return Pair(item[0], item[1], line=number)
        raise InputError(
            f"Item {number} of the texts in hand has {len(item)} parts; a pair has two."
        )
    raise InputError(
        f"Item {number} of the texts in hand is a {type(item).__name__}; a corpus holds strings, "
        "pairs of strings, or Sentences."
    )


def _kept(reader: Reader) -> Reader:
    """Read once, then from memory: treebanks are small and slow to read."""
    memory: list[Item] = []
    left_out: Counter[str] = Counter()

    def again(skipped: Counter[str]) -> Iterator[Item]:
        if not memory:
            left_out.clear()
            # Filled in one go, so that a pass broken off never leaves half a treebank behind.
            memory.extend(list(reader(left_out)))
        skipped.update(left_out)
        yield from memory

    return again


def _first(reader: Reader, count: int) -> Reader:
    return lambda skipped: islice(reader(skipped), count)


def _picked(reader: Reader, chosen: frozenset[int]) -> Reader:
    return lambda skipped: (item for number, item in enumerate(reader(skipped)) if number in chosen)


def _check_limit(count: int) -> None:
    if count < 1:
        raise UsageError(f"The limit is {count}; it must be 1 or more.")


def _why(skipped: Counter[str]) -> str:
    reasons = ", ".join(f"{count} {reason}" for reason, count in skipped.items())
    return f" ({reasons} skipped)" if reasons else ""
