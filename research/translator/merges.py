"""Byte-pair merges that are sometimes skipped, so that a word is cut in ever new ways.

BPE-dropout (Provilkov et al. 2020, section 3), a skipped merge being lost as in SentencePiece,
whose own sampling cannot be seeded (0.2.2).
"""

from __future__ import annotations

import heapq
import random

import sentencepiece as spm

__all__ = ["Cutter"]

_CUTS = 8  # of a word, after which one of them is taken again


class Cutter:
    """Cuts texts into SentencePiece ids, each merge skipped with a probability.

    >>> import io
    >>> file, texts = io.BytesIO(), iter(["low lower lowest"] * 9)
    >>> spm.SentencePieceTrainer.train(sentence_iterator=texts, model_writer=file,
    ...     model_type="bpe", vocab_size=13, minloglevel=2, bos_id=-1, eos_id=-1)
    >>> pieces = spm.SentencePieceProcessor(model_proto=file.getvalue())
    >>> Cutter(pieces, skip=0.0, seed=1)("lower low") == pieces.encode("lower low")
    True
    """

    def __init__(self, pieces: spm.SentencePieceProcessor, skip: float, seed: int) -> None:
        names = [pieces.id_to_piece(index) for index in range(pieces.vocab_size())]
        self.ids = {name: index for index, name in enumerate(names)}
        self.unknown = pieces.unk_id()
        self.ranks = {name: -pieces.get_score(index) for name, index in self.ids.items()}
        self.skip, self.dice = skip, random.Random(seed)
        self.cuts: dict[str, list[list[int]]] = {}

    def __call__(self, text: str) -> list[int]:
        """The ids of a text, without `</s>`."""
        return [index for word in text.split(" ") if word for index in self._cut(word)]

    def _cut(self, word: str) -> list[int]:
        known = self.cuts.setdefault(word, [])
        if len(known) == _CUTS:
            return known[int(self.dice.random() * _CUTS)]
        known.append(self._number(self._merge(list("▁" + word))))
        return known[-1]

    def _number(self, symbols: list[str]) -> list[int]:
        """Ids of symbols; like SentencePiece, unknown ones in a row are one."""
        ids = [self.ids.get(symbol, self.unknown) for symbol in symbols]
        unknown = self.unknown
        return [
            i for i, before in zip(ids, [-1, *ids], strict=False) if i != unknown or before != i
        ]

    def _merge(self, symbols: list[str]) -> list[str]:
        """Merge neighbours, best rank first and leftmost among equals, until none is left."""
        after = [*range(1, len(symbols)), -1]
        before = [*range(-1, len(symbols) - 1)]
        queue: list[tuple[float, int, int, str]] = []

        def offer(left: int, right: int) -> None:
            if left >= 0 and right >= 0:
                joined = symbols[left] + symbols[right]
                if joined in self.ranks:
                    heapq.heappush(queue, (self.ranks[joined], left, right, joined))

        for right in range(1, len(symbols)):
            offer(right - 1, right)
        while queue:
            _, left, right, joined = heapq.heappop(queue)
            stale = not symbols[right] or symbols[left] + symbols[right] != joined
            if stale or not symbols[left] or (self.skip and self.dice.random() < self.skip):
                continue
            symbols[left], symbols[right] = joined, ""
            after[left] = after[right]
            if after[right] >= 0:
                before[after[right]] = left
            offer(before[left], left)
            offer(left, after[left])
        return [symbol for symbol in symbols if symbol]
