"""A corpus: sentences or pairs from a list, a file or standard input, counted and hashed."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from headcount.errors import InputError, UsageError
from headcount.text.in_hand import read_in_hand
from headcount.text.lines import format_of, text_file
from headcount.text.parser import Parser, load_parser, parsed, parser_name
from headcount.text.readers import How, Reader, kept, reader_for
from headcount.text.sentence import Item, Pair, sentences_of, texts_of
from headcount.text.tsv import Columns

__all__ = ["Corpus", "read_corpus"]


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
    columns: Columns = (0, 1),
    header: bool | None = None,
    passage: int | None = None,
    translation: str | None = None,
    trees: str | Path | Corpus | None = None,
    parser: str | Path | Parser | None = None,
    target_parser: str | Path | Parser | None = None,
    strict: bool = False,
    limit: int | None = None,
    seed: int | None = None,
) -> Corpus:
    """Read a corpus from texts in hand, a path, or ``-`` for standard input.

    Texts in hand are strings, `Sentence`s, pairs of them, or `Pair`s. A path's suffix says what
    it is, maybe packed with .gz, .xz or .bz2; `format` overrules it:

    - .txt: a sentence a line; .tsv, .csv: pairs, of which `columns` are source and target, by
      number or name (`header`: the first line names them, as it does in a .csv);
    - .conllu, .conll: a treebank; with `translation`, the name of a comment, pairs; with
      `passage`, a number of words, passages with the coreference of ``Entity=``;
    - .jsonl: coreference (``sents``, ``clusters``), cut into passages, to which `trees` gives
      the treebank of the same documents; or predicates (``tokens``, ``preds``);
    - a .tsv with GAP's header: ambiguous pronouns.

    `parser` (a .udpipe file or a spaCy pipeline) finds words and trees in plain text, of a pair
    the source's; `target_parser` finds the target's. A faulty sentence is skipped and counted, or
    refused if `strict`. `limit` keeps the first so many items, with a seed a random sample.

    >>> read_corpus([("Rain.", "Regen.")])
    Corpus('texts in hand', 1 pairs)
    """
    if limit is not None:
        _check_limit(limit)
    if not isinstance(source, Corpus):
        known = None if trees is None else read_corpus(trees)
        how = How(columns, header, passage, translation, known, strict)  # type: ignore[arg-type]
        reader, name = _reader_of(source, format, how)
        # Without a parser, so that no more is parsed than is kept.
        source = Corpus(
            reader if limit is None or seed is not None else _first(reader, limit), name
        )
    found = source if limit is None else source.limit(limit, seed)
    if parser is None and target_parser is None:
        return found
    return _parsed(found, parser, target_parser)


def _parsed(
    corpus: Corpus,
    parser: str | Path | Parser | None,
    target_parser: str | Path | Parser | None,
) -> Corpus:
    first = None if parser is None else load_parser(parser)
    second = None if target_parser is None else load_parser(target_parser)
    reader = kept(lambda skipped: (parsed(item, first, second) for item in corpus))
    names = [parser_name(each) for each in (parser, target_parser) if each is not None]
    found = Corpus(reader, f"{corpus.name} (parsed by {' and '.join(names)})")
    found.skipped = corpus.skipped + found.skipped
    return found


def _reader_of(
    source: str | Path | Iterable[Any], format: str | None, how: How
) -> tuple[Reader, str]:
    if isinstance(source, str | Path):
        # The file first: a missing file with an odd suffix is above all missing.
        file = text_file(source)
        return reader_for(file, format_of(source, format), how), file.name
    if isinstance(source, bytes | dict) or not isinstance(source, Iterable):
        raise InputError(
            f"A {type(source).__name__} is not a corpus; pass a list of texts, a list of pairs, "
            "or the path of a .txt, .tsv or .conllu file."
        )
    items = list(source)
    return lambda skipped: read_in_hand(items, skipped), "texts in hand"


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
