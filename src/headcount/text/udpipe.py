"""A UDPipe 1 model as a parser (Straka and Straková 2017)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from headcount.errors import InputError, UsageError
from headcount.text.placing import divided
from headcount.text.sentence import Multiword, Sentence, Word

__all__ = ["UDPipe", "load_udpipe"]


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
        for found in self._sentences(text):
            multiwords += [
                Multiword(each.idFirst + len(words), each.idLast + len(words), each.form)
                for each in found.multiwordTokens
            ]
            words += _words(found, len(words))
        return Sentence(text, tuple(words), tuple(multiwords))

    def _sentences(self, text: str) -> Iterator[Any]:
        error = self._library.ProcessingError()
        self._tokenizer.resetDocument("")  # or places would count on from the text before
        self._tokenizer.setText(text)
        found = self._library.Sentence()
        while self._tokenizer.nextSentence(found, error):
            default = self._model.DEFAULT
            if not self._model.tag(found, default, error):
                break
            if not self._model.parse(found, default, error):
                break
            yield found
            found = self._library.Sentence()
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
            f"{path.name} needs ufal.udpipe, which is not installed; "
            "pip install 'headcount[parsers]'."
        ) from error
    model = udpipe.Model.load(str(path))
    if model is None:
        raise InputError(f"{path} is not a model of UDPipe 1, which is what ufal.udpipe reads.")
    return UDPipe(model, udpipe, path.name)


def _words(found: Any, before: int) -> list[Word]:
    """The words of a sentence; `before` words of the same text came before it."""
    own = list(found.words)[1:]  # the first is the root above the sentence
    places = dict(chain.from_iterable(_places(each, own) for each in found.multiwordTokens))
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
