"""Raw text through a parser: words, tags and trees for any text, each word in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from headcount.errors import UsageError
from headcount.text.sentence import Item, Sentence
from headcount.text.spacy_pipeline import installed_pipelines, load_pipeline
from headcount.text.udpipe import load_udpipe

__all__ = ["Parser", "load_parser", "parsed", "parser_name"]

#: A text's words and trees. Where a text has several sentences it has as many roots.
Parser = Callable[[str], Sentence]


def load_parser(name: str | Path | Parser) -> Parser:
    """A parser by name: the file of a UDPipe model, or an installed spaCy pipeline.

    Anything that makes a `Sentence` of a text is a parser too.
    """
    if not isinstance(name, str | Path):
        return name
    if Path(name).suffix == ".udpipe" or Path(name).is_file():
        return load_udpipe(Path(name))
    found = load_pipeline(str(name))
    if found is None:
        raise UsageError(
            f"There is no parser '{name}'; give the file of a UDPipe model (FILE.udpipe: published "
            "for many languages by LINDAT, or trained with ufal.udpipe) or an installed spaCy "
            f"pipeline ({_installed()})."
        )
    return found


def parsed(item: Item, parser: Parser | None, target_parser: Parser | None = None) -> Item:
    """The item with the words that parsers find; of a pair, each side with its own.

    >>> from headcount.text.splitting import split_words
    >>> item = parsed(Sentence("Rain fell."), lambda text: Sentence(text, split_words(text)))
    >>> [word.form for word in item.words]
    ['Rain', 'fell', '.']
    """
    if isinstance(item, Sentence):
        return item if parser is None else _read(item.text, item, parser)
    given = zip((item.source, item.target), item.annotated, (parser, target_parser), strict=True)
    first, second = (_side(text, known, each) for text, known, each in given)
    return replace(item, annotated=(first, second))


def parser_name(parser: str | Path | Parser) -> str:
    """What a parser is called where results are told."""
    if isinstance(parser, str | Path):
        return Path(parser).name
    return str(getattr(parser, "name", "a parser"))


def _side(text: str, known: Sentence | None, parser: Parser | None) -> Sentence | None:
    return known if parser is None else _read(text, known or Sentence(text), parser)


def _read(text: str, known: Sentence, parser: Parser) -> Sentence:
    found = parser(text)
    return replace(known, words=found.words or None, multiwords=found.multiwords)


def _installed() -> str:
    found = installed_pipelines()
    if found is None:
        return "spaCy is not installed: pip install 'headcount[parsers]'"
    return (
        f"installed: {', '.join(found)}" if found else "none is installed: python -m spacy download"
    )
