"""A corpus: sentences or pairs from a list, a file or standard input, counted and hashed.

Its file may be plain text, a table, a treebank, coreference, predicates or GAP (see `read_corpus`);
a folder or a pattern stands for many files; a parser may find the words of plain text.
"""

from __future__ import annotations

import glob
import hashlib
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from headcount import plugins
from headcount.bundle import sample
from headcount.errors import Fault, InputError, UsageError
from headcount.text.lines import (
    BINARY,
    FORMATS,
    TextFile,
    format_of,
    inner_suffix,
    is_saved_dataset,
    json_value,
    text_file,
)
from headcount.text.sentence import Form, Item, Pair, Sentence, place_forms, sentences_of, texts_of
from headcount.text.tables import (
    Columns,
    Records,
    cell_records,
    dataset_records,
    object_records,
)

#: Words of a passage, as many as Clark et al. 2019 (section 4.3) cut documents to.
PASSAGE = 128

#: One pass over a corpus; what it leaves out goes into the counter, by reason.
Reader = Callable[[Counter[str]], Iterator[Item]]

#: A text's words and trees. Where a text has several sentences it has as many roots.
Parser = Callable[[str], Sentence]


class Corpus:
    """Sentences, or pairs, that can be gone through again and again.

    A file is read once to count and check it and again at every pass, so a corpus of any size
    takes no memory. `skipped` says what was left out and why; nothing is left out silently.
    `paired` corpora hold pairs, `annotated` ones words. `hash` covers the texts, and where words
    are known their annotation: trees, coreference, predicates, comments.

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

    def numbered(self) -> Iterator[tuple[int, Item]]:
        """Every item with its number from 0 in the whole corpus."""
        return enumerate(self)

    def limit(self, count: int, seed: int | None = None) -> Corpus:
        """The first `count` of it, or with a seed a random sample, in the corpus' order."""
        _check_limit(count)
        if seed is None:
            return Corpus(_first(self._reader, count), self.name)
        if count >= len(self):
            return self
        chosen = frozenset(random.Random(seed).sample(range(len(self)), count))

        def picked(skipped: Counter[str]) -> Iterator[Item]:
            items = enumerate(self._reader(skipped))
            return (item for number, item in items if number in chosen)

        return Corpus(picked, self.name)

    def _scan(self) -> tuple[int, str, bool, bool]:
        """Count, hash and kinds, in one pass that also finds every fault of the corpus."""
        count, digest, kinds, annotated = 0, hashlib.sha256(), set(), False
        for item in self._reader(self.skipped):
            count += 1
            kinds.add(type(item))
            for text in texts_of(item):
                raw = text.encode("utf-8", "surrogatepass")
                # The length in front keeps ["ab"] and ["a", "b"] apart.
                digest.update(b"%d:" % len(raw) + raw)
            for side, sentence in enumerate(sentences_of(item)):
                if sentence is not None:
                    annotated = True
                    digest.update(f"side {side}: {_annotation(sentence)}".encode())
        self.skipped = +self.skipped
        if not count:
            raise InputError(f"{self.name} is empty: it has no sentence{_why(self.skipped)}.")
        if len(kinds) > 1:
            raise InputError(f"{self.name} mixes sentences and pairs; give one kind.")
        return count, digest.hexdigest(), kinds == {Pair}, annotated


class CorpusPart(Corpus):
    """Some items of a corpus, in memory, each with its number in the whole.

    >>> whole = read_corpus(["Rain fell.", "It stopped."])
    >>> part = CorpusPart(whole.name, [(1, Sentence("It stopped."))])
    >>> len(part), list(part.numbered())[0][0]
    (1, 1)
    """

    def __init__(
        self,
        name: str,
        items: Sequence[tuple[int, Item]],
        *,
        paired: bool = False,
        annotated: bool = False,
    ) -> None:
        self.name, self.paired, self.annotated = name, paired, annotated
        self.skipped = Counter()
        self._items, self._count = items, len(items)
        #: The number of the first item.
        self.first = items[0][0] if items else 0
        self._reader = lambda skipped: (item for _, item in items)

    def numbered(self) -> Iterator[tuple[int, Item]]:
        """Every item with its number from 0 in the whole corpus."""
        return iter(self._items)


def _annotation(sentence: Sentence) -> str:
    """All that is known of a sentence besides its text, for the corpus' hash."""
    words = [
        (w.form, w.lemma, w.upos, w.xpos, sorted(w.feats.items()), w.head, w.deprel, w.start, w.end)
        for w in sentence.words or ()
    ]
    others = (sentence.multiwords, sentence.clusters, sentence.predicates)
    return repr((words, *others, sorted(sentence.comments.items())))


def read_corpus(
    source: Corpus | str | Path | Iterable[Any],
    *,
    format: str | None = None,
    column: str | int | None = None,
    columns: Columns | None = None,
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

    Texts in hand are strings, `Sentence`s, pairs of them, `Pair`s, or a dataset of Hugging Face's
    `datasets`. A path's suffix says what it is, maybe packed with .gz, .xz, .bz2 or .zst; `format`
    overrules it. A folder or a pattern (``data/*.jsonl.gz``) stands for all its files, in the order
    of their names; a folder that `datasets` saved is one table. All but annotated corpora is read
    as a stream.

    - .txt: a sentence a line;
    - .csv, .tsv, .jsonl, .parquet, .arrow: sentences of one `column`, or pairs of two `columns`,
      source and target, by name or number from 0. Where neither is given, the columns that are
      called or look like text are read, and never a column of numbers or labels. `header` says
      whether the first line of cells names them; else that is seen.
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
        how = ReadOptions(column, columns, header, passage, translation, known, strict)
        reader, name = _reader_of(source, format, how)
        # Without a parser, so that no more is parsed than is kept.
        source = Corpus(
            reader if limit is None or seed is not None else _first(reader, limit), name
        )
    corpus = source if limit is None else source.limit(limit, seed)
    given = [each for each in (parser, target_parser) if each is not None]
    if not given:
        return corpus
    parsers = plugins.get("parts", "parsers")
    first, second = (
        None if each is None else parsers.load_parser(each) for each in (parser, target_parser)
    )
    reader = _cached(lambda skipped: (parsers.parsed(item, first, second) for item in corpus))
    called = " and ".join(map(parsers.parser_name, given))
    found = Corpus(reader, f"{corpus.name} (parsed by {called})")
    found.skipped = corpus.skipped + found.skipped
    return found


def read_sample(name: str = "sample.conllu", **how: Any) -> Corpus:
    """A file of the bundled sample, read as `read_corpus` reads any; it is called by its name.

    >>> read_sample("sample.en-de.tsv", limit=20)
    Corpus('sample.en-de.tsv', 20 pairs)
    """
    if name.endswith(".conllu") and "conllu" not in plugins.names_of("formats"):
        name = "sample.en-de.tsv" if how.pop("translation", None) else "sample.txt"
    corpus = read_corpus(sample.path(name), **how)
    corpus.name = name  # where headcount is installed tells nothing
    return corpus


def _reader_of(
    source: str | Path | Iterable[Any], format: str | None, how: ReadOptions
) -> tuple[Reader, str]:
    if isinstance(source, str | Path):
        return _path_reader(source, format, how)
    if hasattr(source, "column_names") and not isinstance(source, Mapping):
        return _table_reader(dataset_records(source), how)
    if isinstance(source, Mapping) and all(hasattr(one, "column_names") for one in source.values()):
        raise InputError(
            f"This dataset has the splits {', '.join(map(str, source))}; pass one of them, e.g. "
            f"dataset['{next(iter(source))}']."
        )
    if isinstance(source, bytes | dict) or not isinstance(source, Iterable):
        raise InputError(
            f"{type(source).__name__} is not a corpus; pass a list of texts, a list of pairs, "
            "or the path of a .txt, .tsv or .conllu file."
        )
    items = list(source)
    return lambda skipped: read_in_hand(items, skipped), "texts in hand"


def _first(reader: Reader, count: int) -> Reader:
    return lambda skipped: islice(reader(skipped), min(count, sys.maxsize))


def _check_limit(count: int) -> None:
    if count < 1:
        raise UsageError(f"The limit is {count}; it must be 1 or more.")


def _why(skipped: Counter[str]) -> str:
    reasons = ", ".join(f"{count} {reason}" for reason, count in skipped.items())
    return f" ({reasons} skipped)" if reasons else ""


# --- Which reader a file needs ------------------------------------------------------------------


@dataclass(frozen=True)
class ReadOptions:
    """How a file is to be read, where its format leaves a choice."""

    #: The text of a table, by number or name.
    column: str | int | None = None
    #: Source and target of a table of pairs, by number or name.
    columns: Columns | None = None
    #: Whether the first line of cells names its columns; None: where it looks like that.
    header: bool | None = None
    #: Words of a passage: documents with coreference instead of sentences.
    passage: int | None = None
    #: The comment of a treebank that holds the translation: pairs instead of sentences.
    translation: str | None = None
    #: The treebank of the documents that a coreference file marks.
    trees: Iterable[Any] | None = None
    #: Whether a faulty sentence is refused instead of skipped.
    strict: bool = False


AS_USUAL = ReadOptions()


@dataclass(frozen=True)
class CorpusFormat:
    """A format of annotated sentences that a room adds; seen by its keys or its header."""

    #: The items of a file; what is left out goes into the counter, by reason.
    read: Callable[[TextFile, Counter[str], ReadOptions], Iterator[Item]]
    #: What every one of its JSON lines has.
    keys: tuple[str, ...] = ()
    #: Cells of the first line, where it is a table with tabs.
    header: tuple[str, ...] = ()
    #: Whether its comments may hold translations (`translation=`).
    translations: bool = False


#: What is read without a room: lines of text, of cells and of JSON.
_LINES = ("txt", "tsv", "csv", "jsonl")


def _path_reader(source: str | Path, format: str | None, how: ReadOptions) -> tuple[Reader, str]:
    """The reader of a file, or of all files that a folder or a pattern stands for."""
    if str(source) == "-":
        return _file_reader(text_file(source), format_of(source, format), how), "standard input"
    paths, path = _files(source), Path(source)
    if not paths:  # the file first: a missing file with an odd suffix is above all missing
        file = text_file(source)
        format = format_of(source, format)
        if format in BINARY:
            return _table_reader(plugins.get("parts", "binary records")(path, format), how)
        return _file_reader(file, format, how), _named(file.name, how)
    readers = [_path_reader(each, format, how)[0] for each in paths]
    name = f"{source} ({len(paths)} files)" if len(paths) > 1 else str(paths[0])
    return lambda skipped: chain.from_iterable(one(skipped) for one in readers), _named(name, how)


def _named(name: str, how: ReadOptions) -> str:
    return name if how.column is None else f"{name}, column {how.column}"


def _files(source: str | Path) -> list[Path]:
    """The files of a folder or a pattern, in order; none where it is a file, or nothing."""
    path = Path(source)
    if path.is_dir():
        if (path / "dataset_dict.json").is_file():
            splits = sorted(one.name for one in path.iterdir() if one.is_dir())
            raise InputError(
                f"{path} is a dataset with the splits {', '.join(splits)}; give one of them, e.g. "
                f"{path / splits[0] if splits else path}."
            )
        found = sorted(path.glob("*.arrow") if is_saved_dataset(path) else path.rglob("*"))
    elif not path.exists() and any(sign in str(source) for sign in "*?["):
        found = [Path(one) for one in sorted(glob.glob(str(source), recursive=True))]  # noqa: PTH207
        if not found:
            raise InputError(f"No file is called {source}; check the pattern, and quote it.")
    else:
        return []
    return [
        one
        for one in found
        if one.is_file() and not one.name.startswith(".") and inner_suffix(one) in FORMATS
    ]


def _table_reader(records: Records, how: ReadOptions) -> tuple[Reader, str]:
    """Sentences or pairs of a table, and what it is called: with the column that is read."""
    if how.columns is not None:
        places = [records.find(column) for column in how.columns]
    else:
        one = None if how.column is None else records.find(how.column)
        places = records.text_places() if one is None else [one]
    name = records.name
    if len(places) == 1 and len(records.columns) > 1:
        name = f"{name}, column {records.columns[places[0]]}"
    return lambda skipped: records.items(places, skipped), name


def _file_reader(file: TextFile, format: str, how: ReadOptions) -> Reader:
    """The reader of a file whose format is known, or shows in its first line."""
    format = _detected(file, format)
    of_room = None if format in _LINES else plugins.get("formats", format)
    if how.translation is not None and not (of_room and of_room.translations):
        raise UsageError(f"{file.name} is {format}; only a treebank's comments hold translations.")
    if of_room is not None:
        return _cached(lambda skipped: of_room.read(file, skipped, how))
    if format == "txt":
        return lambda skipped: (Sentence(text, line=n) for n, text in file.filled(skipped))
    if format in ("tsv", "csv"):
        asked = [how.column] if how.columns is None else [*how.columns]
        by_name = any(isinstance(one, str) and not one.isdecimal() for one in asked)
        header = True if by_name and how.header is None else how.header
        cells = cell_records(file, header=header, commas=format == "csv")
        return _table_reader(cells, how)[0]
    return _table_reader(object_records(file, how.strict), how)[0]


def _cached(reader: Reader) -> Reader:
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


def _detected(file: TextFile, format: str) -> str:
    """The format, seen in the first line where a suffix stands for several."""
    if format not in ("jsonl", "tsv"):
        return format
    first = next((line for _, line in file.filled(Counter())), "")
    known: dict[str, CorpusFormat] = plugins.every("formats")
    if format == "tsv":
        cells = set(first.split("\t"))
        return next(
            (n for n, one in known.items() if one.header and cells >= {*one.header}), format
        )
    try:
        found = json_value(first or "{}", "")
    except Fault:
        found = {}
    keys = list(found) if isinstance(found, dict) else []
    kinds = {name: one.keys for name, one in known.items() if one.keys}
    for kind, needed in kinds.items():
        if set(needed) <= set(keys):
            return kind
    if any(isinstance(value, str) for value in (found.values() if keys else ())):
        return format
    needs = ["text", *(f"{' and '.join(needed)} ({kind})" for kind, needed in kinds.items())]
    raise InputError(
        f"{file.name} has a first line with {', '.join(keys) or 'no keys'}; JSON lines of a corpus "
        f"have {', '.join(needs[:-1])} or {needs[-1]}; name the format with --input "
        "format= (format=)."
    )


# --- Texts in hand ------------------------------------------------------------------------------


def read_in_hand(items: Sequence[Any], skipped: Counter[str]) -> Iterator[Item]:
    """The items as sentences or pairs; blank texts are counted.

    A pair is two strings, two `Sentence`s, or one of each. Words without a place in their text
    are looked up there.

    >>> list(read_in_hand([("Rain.", "Regen.")], Counter()))
    [Pair(source='Rain.', target='Regen.', line=1, annotated=(None, None))]
    """
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
    if isinstance(item, Pair):
        first, second = (each and _placed(each, number) for each in item.annotated)
        return replace(item, annotated=(first, second))
    if isinstance(item, Sentence | str):
        return _sentence(item, number)
    if isinstance(item, tuple | list) and all(isinstance(part, str | Sentence) for part in item):
        if len(item) == 2:
            one, two = (_sentence(part, number) for part in item)
            words = (one if one.words else None, two if two.words else None)
            return Pair(one.text, two.text, number, words)
        raise InputError(
            f"Item {number} of the texts in hand has {len(item)} parts; a pair has two."
        )
    raise InputError(
        f"Item {number} of the texts in hand is a {type(item).__name__}; a corpus holds strings, "
        "pairs of strings, or Sentences."
    )


def _sentence(item: Sentence | str, number: int) -> Sentence:
    return Sentence(item, line=number) if isinstance(item, str) else _placed(item, number)


def _placed(sentence: Sentence, number: int) -> Sentence:
    """The sentence with a place for every word, found in its text where none was given."""
    words = sentence.words or ()
    if all(word.start is not None for word in words):
        return sentence
    lost: Counter[str] = Counter()
    _, places = place_forms([Form(word.form) for word in words], sentence.text, lost)
    if lost:
        raise InputError(
            f"Item {number} of the texts in hand has words that do not make up its text, "
            f"'{sentence.text}'; give each word its start and end."
        )
    found = zip(words, places, strict=True)
    return replace(
        sentence, words=tuple(replace(word, start=start, end=end) for word, (start, end) in found)
    )
