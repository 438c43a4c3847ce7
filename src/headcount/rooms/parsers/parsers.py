"""The words of a plain sentence, for a parser that is given text and no treebank."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from headcount.errors import InputError, UsageError, install_hint
from headcount.text import Item, Multiword, Parser, Sentence, Word, divided

# --- A UDPipe 1 model as a parser (Straka and Straková 2017) ------------------------------------


class UDPipe:
    """Makes sentences of texts: split, tagged and parsed by one model.

    `library` is the module ``ufal.udpipe``, which is there only where it was asked for.
    """

    def __init__(self, model: Any, library: Any, name: str) -> None:
        self.name = name
        self._model = model
        self._library = library
        # "ranges" makes the tokenizer say which characters of the text a token stands for.
        self._tokenizer = model.newTokenizer("ranges")
        if self._tokenizer is None:
            raise InputError(f"{name} has no tokenizer, so it cannot read plain text.")

    def __call__(self, text: str) -> Sentence:
        """The text's words and trees, those of its sentences one after the other."""
        words: list[Word] = []
        multiwords: list[Multiword] = []
        for parsed in self._sentences(text):
            multiwords += [
                Multiword(each.idFirst + len(words), each.idLast + len(words), each.form)
                for each in parsed.multiwordTokens
            ]
            words += _words(parsed, len(words))
        return Sentence(text, tuple(words), tuple(multiwords))

    def _sentences(self, text: str) -> Iterator[Any]:
        error = self._library.ProcessingError()
        self._tokenizer.resetDocument("")  # or places would count on from the text before
        self._tokenizer.setText(text)
        sentence = self._library.Sentence()
        while self._tokenizer.nextSentence(sentence, error):
            default = self._model.DEFAULT
            if not self._model.tag(sentence, default, error):
                break
            if not self._model.parse(sentence, default, error):
                break
            yield sentence
            sentence = self._library.Sentence()
        if error.occurred():
            raise InputError(f"{self.name} cannot parse '{text}': {error.message}.")


def load_udpipe(path: Path) -> UDPipe:
    """The parser of a .udpipe file."""
    if not path.is_file():
        raise InputError(f"There is no file {path}; a .udpipe parser is the file of a model.")
    try:
        from ufal import udpipe
    except ImportError as error:
        raise UsageError(
            f"{path.name} needs ufal.udpipe, which is not installed; {install_hint('parsers')}."
        ) from error
    model = udpipe.Model.load(str(path))
    if model is None:
        raise InputError(f"{path} is not a model of UDPipe 1, which is what ufal.udpipe reads.")
    return UDPipe(model, udpipe, path.name)


def _words(sentence: Any, before: int) -> list[Word]:
    """The words of a sentence; `before` words of the same text came before it."""
    own = list(sentence.words)[1:]  # the first is the root above the sentence
    places = dict(chain.from_iterable(_places(each, own) for each in sentence.multiwordTokens))
    return [_word(each, before, *places.get(each.id, _range(each))) for each in own]


def _places(multiword: Any, own: list[Any]) -> Iterator[tuple[int, tuple[int, int]]]:
    inside = own[multiword.idFirst - 1 : multiword.idLast]
    forms = [each.form for each in inside]
    places = divided(multiword.form, _range(multiword), forms)
    yield from zip((each.id for each in inside), places, strict=True)


def _range(token: Any) -> tuple[int, int]:
    return token.getTokenRangeStart(), token.getTokenRangeEnd()


def _word(each: Any, before: int, start: int, end: int) -> Word:
    return Word(
        form=each.form,
        lemma=each.lemma or None,
        upos=each.upostag or None,
        xpos=each.xpostag or None,
        feats=dict(pair.split("=", 1) for pair in each.feats.split("|") if "=" in pair),
        head=each.head + before if each.head else 0,
        deprel=each.deprel or None,
        start=start,
        end=end,
    )


# --- An installed spaCy pipeline as a parser ----------------------------------------------------


class SpacyPipeline:
    """Makes sentences of texts with a pipeline that spaCy has loaded."""

    def __init__(self, pipeline: Any, name: str = "a spaCy pipeline") -> None:
        self.name = name
        self._pipeline = pipeline

    def __call__(self, text: str) -> Sentence:
        """The text's words and trees; tokens of white space are left out."""
        document = self._pipeline(text)
        if not document.has_annotation("DEP"):
            raise InputError(f"{self.name} finds no dependencies; choose a pipeline with a parser.")
        own = [token for token in document if not token.is_space]
        numbers = {token.i: number for number, token in enumerate(own, start=1)}
        return Sentence(text, tuple(_spacy_pipeline_word(token, numbers) for token in own))


def installed_pipelines() -> list[str] | None:
    """The names of all installed pipelines; None where spaCy itself is not there."""
    try:
        from spacy.util import get_installed_models
    except ImportError:
        return None
    return sorted(get_installed_models())


def _spacy_pipeline_word(token: Any, numbers: dict[int, int]) -> Word:
    is_root = token.head.i == token.i
    return Word(
        form=token.text,
        lemma=token.lemma_ or None,
        upos=token.pos_ or None,
        xpos=token.tag_ or None,
        feats=token.morph.to_dict(),
        head=0 if is_root else numbers[token.head.i],
        deprel="root" if is_root else token.dep_ or None,
        start=token.idx,
        end=token.idx + len(token.text),
    )


# --- Raw text through a parser ------------------------------------------------------------------


def load_parser(name: str | Path | Parser) -> Parser:
    """A parser by name: the file of a UDPipe model, or an installed spaCy pipeline.

    Anything that makes a `Sentence` of a text is a parser too.
    """
    if not isinstance(name, str | Path):
        return name
    if Path(name).suffix == ".udpipe" or Path(name).is_file():
        return load_udpipe(Path(name))
    names = installed_pipelines()
    if str(name) in (names or ()):
        import spacy

        return SpacyPipeline(spacy.load(name), str(name))
    there = "none is installed: python -m spacy download"
    if names is None:
        there = f"spaCy is not installed: {install_hint('parsers')}"
    elif names:
        there = f"installed: {', '.join(names)}"
    raise UsageError(
        f"There is no parser '{name}'; give the file of a UDPipe model (FILE.udpipe: published "
        "for many languages by LINDAT, or trained with ufal.udpipe) or an installed spaCy "
        f"pipeline ({there})."
    )


def parsed(item: Item, parser: Parser | None, target_parser: Parser | None = None) -> Item:
    """The item with the words that parsers find; of a pair, each side with its own.

    >>> from headcount.text.sentence import split_words
    >>> item = parsed(Sentence("Rain fell."), lambda text: Sentence(text, split_words(text)))
    >>> [word.form for word in item.words]
    ['Rain', 'fell', '.']
    """
    if isinstance(item, Sentence):
        return _read(item.text, item, parser) or item
    given = zip((item.source, item.target), item.annotated, (parser, target_parser), strict=True)
    first, second = (_read(*side) for side in given)
    return replace(item, annotated=(first, second))


def parser_name(parser: str | Path | Parser) -> str:
    """What a parser is called in results."""
    if isinstance(parser, str | Path):
        return Path(parser).name
    return str(getattr(parser, "name", "a parser"))


def _read(text: str, known: Sentence | None, parser: Parser | None) -> Sentence | None:
    if parser is None:
        return known
    sentence = parser(text)
    words = sentence.words or None
    return replace(known or Sentence(text), words=words, multiwords=sentence.multiwords)


# --- The words of a plain sentence, for a parser that is given text and no treebank -------------

#: Words, English clitics as treebanks cut them off (do n't, cat 's), and single marks.
_WORD = re.compile(
    r"\w+(?=n['’]t\b)|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|\w+(?:[.,]\d+)+|\w+|[^\w\s]", re.IGNORECASE
)


def plain_sentence(text: str) -> Sentence:
    """A sentence cut into words: at spaces, around marks, before English clitics.

    >>> [word.form for word in plain_sentence("The cat's owner didn't pay 3.50!").words]
    ['The', 'cat', "'s", 'owner', 'did', "n't", 'pay', '3.50', '!']
    """
    words = [Word(m.group(), start=m.start(), end=m.end()) for m in _WORD.finditer(text)]
    if not words:
        raise InputError(f"'{text}' has no word; give a sentence.")
    return Sentence(text, tuple(words))
