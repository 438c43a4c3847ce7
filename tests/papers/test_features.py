"""Kovaleva et al. 2019, sections 4.1 and 4.3, again, in loops."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
import scipy.stats
import torch
from trees import batch_of, site

from headcount.rooms.features.tally import FeatureTally
from headcount.rooms.relations.links import ArgumentTally, Links, LinkTally
from headcount.rooms.words.pairs import FEATURES, NEGATIONS
from headcount.text.batch import Side
from headcount.text.sentence import Argument, Predicate, Sentence, Span, Word, spaced
from headcount.text.words import Words
from headcount.wiring.sighting import Sighting

HEADS = 3
TAGS = ["NOUN", "VERB", "PRON", "ADJ", "PROPN"]
RELATIONS = ["nsubj", "obj", "nsubj:pass", "obl:agent", "amod"]
FORMS = ["rain", "not", "never", "sang", "she"]


class Case:
    """A sentence of words of one to three tokens between [CLS] and [SEP], and its maps."""

    def __init__(self, seed: int) -> None:
        noise = np.random.default_rng(seed)
        n = int(noise.integers(2, 9))
        words = [
            Word(
                str(noise.choice(FORMS)),
                upos=str(noise.choice(TAGS)),
                deprel=str(noise.choice(RELATIONS)),
                head=int(noise.integers(0, n + 1)),
            )
            for _ in range(n)
        ]
        last = int(noise.integers(0, n))
        arguments = (Argument("ARG0", Span(last, last)), Argument("ARGM-TMP", Span(0, 0)))
        predicate = Predicate(int(noise.integers(0, n)), None, arguments)
        self.text: Sentence = replace(spaced(words), predicates=(predicate,))
        sizes = noise.integers(1, 4, n)
        starts = 1 + np.cumsum([0, *sizes])
        self.tokens = [list(range(starts[k], starts[k + 1])) for k in range(n)]
        self.size = int(starts[-1]) + 1
        # ids repeat: words spelled alike have pieces alike
        self.ids = [101, *noise.integers(5, 9, self.size - 2).tolist(), 102]
        raw = noise.random((HEADS, self.size, self.size)) ** 4
        self.maps = raw / raw.sum(-1, keepdims=True)

    def sighting(self, index: int, width: int) -> Sighting:
        real = torch.zeros(1, width, dtype=torch.bool)
        real[0, : self.size] = True
        ids = torch.zeros(1, width, dtype=torch.long)
        ids[0, : self.size] = torch.tensor(self.ids)
        pieces = torch.zeros(1, len(self.tokens), width, dtype=torch.bool)
        for word, places in enumerate(self.tokens):
            pieces[0, word, places] = True
        nothing = torch.zeros_like(real)
        special, end = nothing.clone(), nothing.clone()
        special[0, [0, self.size - 1]] = True
        end[0, self.size - 1] = True
        words = Words(pieces, pieces.any(-1), [self.text])
        side = Side(ids, real, special, end, nothing, nothing, [["?"] * self.size], words=words)
        maps = torch.full((1, HEADS, width, width), torch.nan)  # padding holds no number at all
        maps[..., : self.size] = 0
        maps[0, :, : self.size, : self.size] = torch.from_numpy(self.maps).float()
        maps[..., self.size :] = 0
        maps[0, :, self.size :] = torch.nan
        where = site(heads=HEADS)
        return Sighting(where, batch_of(side, [index]), side, side, real.long(), maps=maps)


CASES = [Case(seed) for seed in range(40)]


def feature_places(case: Case, name: str) -> list[int]:
    """The words of a feature, told again."""
    tests = {
        "noun": lambda w: w.upos in ("NOUN", "PROPN"),
        "verb": lambda w: w.upos == "VERB",
        "pronoun": lambda w: w.upos == "PRON",
        "subject": lambda w: w.deprel in ("nsubj", "nsubj:pass", "obl:agent"),
        "object": lambda w: w.deprel == "obj",
        "negation": lambda w: w.form in ("not", "never"),
    }
    return [place for place, word in enumerate(case.text.words or ()) if tests[name](word)]


def slow_feature(
    case: Case, name: str, convention: str, head: int, row: int | None
) -> float | None:
    """Attention that the feature gets, or None where the text does not count."""
    weights = case.maps[head] if row is None else case.maps[head][[row]]
    columns = weights.sum(0) / len(weights)
    if name in ("first", "separator"):
        return float(columns[0 if name == "first" else -1])
    words = feature_places(case, name)
    if convention == "headcount":
        return max((sum(columns[t] for t in case.tokens[w]) for w in words), default=None)
    pieces = [t for w in words for t in case.tokens[w]]
    if convention == "paper":
        return max((columns[t] for t in pieces), default=None)
    alike = {case.ids[t] for t in pieces}
    hits = [columns[t] for t in range(1, case.size - 1) if case.ids[t] in alike]
    if row is not None:
        return max(hits, default=None)
    if name == "negation" and not any(form in case.text.text for form in NEGATIONS):
        return None
    return max(hits, default=0.0)


@pytest.mark.parametrize("convention", ["headcount", "paper", "code"])
@pytest.mark.parametrize("origin", ["all", "first"])
def test_features_are_as_defined(convention: str, origin: str) -> None:
    tally = FeatureTally(convention)
    for index, case in enumerate(CASES):
        tally.update(case.sighting(index, 30))
    frame = tally.details()["features"].query("split == 'all' and origin == @origin")
    row = None if origin == "all" else 0
    for name in [*(feature.name for feature in FEATURES), "first", "separator"]:
        rows = frame[frame["feature"] == name].set_index("head")
        for head in range(HEADS):
            told = [slow_feature(case, name, convention, head, row) for case in CASES]
            there = [value for value in told if value is not None]
            assert rows.loc[head, "n"] == len(there)
            assert rows.loc[head, "value"] == pytest.approx(np.mean(there), abs=1e-6)


def test_places_drawn_at_random_are_all_subsets() -> None:
    tally = FeatureTally("paper", pieces="sum")
    for index, case in enumerate(CASES):
        tally.update(case.sighting(index, 30))
    frame = tally.details()["features"].query("split == 'all' and origin == 'all'")
    for head in range(HEADS):
        drawn = []
        for case in CASES:
            columns = case.maps[head].mean(0)
            words = [sum(columns[t] for t in tokens) for tokens in case.tokens]
            count = len(feature_places(case, "noun"))
            if count:
                drawn.append(np.mean([max(some) for some in combinations(words, count)]))
        found = frame[(frame["feature"] == "noun") & (frame["head"] == head)]
        assert found["baseline"].item() == pytest.approx(np.mean(drawn), abs=1e-6)


def standing(case: Case, word: int) -> tuple[int, int, bool]:
    """Where a word stands, told again."""
    before, after = word, len(case.tokens) - 1 - word
    return (
        sum(before >= edge for edge in (1, 2, 3, 5, 9)),
        sum(after >= edge for edge in (1, 2, 5, 10)),
        len(case.tokens[word]) > 1,
    )


@pytest.mark.parametrize("origin", ["all", "first"])
def test_a_kind_is_compared_with_words_that_stand_alike(origin: str) -> None:
    tally = FeatureTally()
    for index, case in enumerate(CASES):
        tally.update(case.sighting(index, 30))
    frame = tally.details()["features"].query("split == 'all' and origin == @origin")
    for head, name in product(range(HEADS), ("noun", "negation")):
        usual: dict[tuple[int, int, bool], list[float]] = {}
        words: list[list[float]] = []
        for case in CASES:
            columns = case.maps[head].mean(0) if origin == "all" else case.maps[head][0]
            words.append([sum(columns[t] for t in tokens) for tokens in case.tokens])
            for place, weight in enumerate(words[-1]):
                usual.setdefault(standing(case, place), []).append(weight)
        told = [
            (np.mean([weights[w] for w in places]),
             np.mean([np.mean(usual[standing(case, w)]) for w in places]))
            for case, weights in zip(CASES, words, strict=True)
            if (places := feature_places(case, name))
        ]  # fmt: skip
        mine, other = np.array(told).T
        row = frame[(frame["feature"] == name) & (frame["head"] == head)].iloc[0]
        assert row["compared_n"] == len(told)
        assert row["compared"] == pytest.approx(mine.mean(), abs=1e-6)
        assert row["baseline"] == pytest.approx(other.mean(), abs=1e-6)
        half = row["difference_high"] - row["difference"]
        away = mine - other
        width = scipy.stats.t.ppf(0.975, len(away) - 1) * away.std(ddof=1) / len(away) ** 0.5
        assert half == pytest.approx(width, abs=1e-6)


def ends_of(case: Case, link: str) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Sources, targets and pairs that belong together, told again."""
    words = case.text.words or ()
    nouns, pronouns = feature_places(case, "noun"), feature_places(case, "pronoun")
    subjects = [
        (place, word.head - 1)
        for place, word in enumerate(words)
        if word.deprel in ("nsubj", "nsubj:pass") and word.head
        if words[word.head - 1].upos == "VERB"
    ]
    predicate = case.text.predicates[0]
    far = [
        (w, predicate.word)
        for argument in predicate.arguments[:1]
        for w in range(argument.span.first, argument.span.last + 1)
        if abs(w - predicate.word) > 2
    ]
    pairs = {
        "subject->verb": subjects,
        "verb->subject": [(b, a) for a, b in subjects],
        "noun->pronoun": list(product(nouns, pronouns)),
        "pronoun->noun": list(product(pronouns, nouns)),
        "argument->predicate": far,
        "predicate->argument": [(b, a) for a, b in far],
    }[link]
    return [a for a, _ in pairs], [b for _, b in pairs], pairs


def slow_pairs(case: Case, link: str, convention: str) -> list[tuple[int, int]]:
    """The pairs of places of a link: of words, or of tokens."""
    sources, targets, linked = ends_of(case, link)
    at = [[w] for w in range(len(case.tokens))] if convention == "headcount" else case.tokens
    if convention == "code":
        lists = [sorted({t for w in ws for t in at[w]}) for ws in (sources, targets)]
        found = list(zip(*lists, strict=False))
    elif link in ("argument->predicate", "predicate->argument"):
        found = [(i, j) for a, b in linked for i in at[a] for j in at[b]]
    else:
        found = [(i, j) for a in sources for b in targets for i in at[a] for j in at[b]]
    return [(i, j) for i, j in found if i != j]


def slow_map(case: Case, convention: str, head: int) -> np.ndarray:
    if convention != "headcount":
        return case.maps[head]
    columns = np.stack([case.maps[head][:, t].sum(-1) for t in case.tokens], axis=-1)
    return np.stack([columns[t].mean(0) for t in case.tokens])


@pytest.mark.parametrize("convention", ["headcount", "paper", "code"])
@pytest.mark.parametrize("kind", [Links, ArgumentTally])
def test_links_and_their_moved_pairs_are_as_defined(kind: type[LinkTally], convention: str) -> None:
    tally = kind(convention)
    for index, case in enumerate(CASES):
        tally.update(case.sighting(index, 30))
    frame = tally.details()[tally.detail].query("split == 'all'")
    for link in tally.links:
        for head in range(HEADS):
            values, moved = [], []
            for case in CASES:
                pairs, maps = slow_pairs(case, link, convention), slow_map(case, convention, head)
                if not pairs:
                    continue
                values.append(max(maps[i, j] for i, j in pairs))
                low, high = (0, len(maps)) if convention == "headcount" else (1, case.size - 1)
                steps = [
                    max(maps[i + s, j + s] for i, j in pairs)
                    for s in range(-30, 31)
                    if s and all(low <= p + s < high for pair in pairs for p in pair)
                ]
                moved += [np.mean(steps)] if steps else []
            row = frame[(frame["link"] == link) & (frame["head"] == head)]
            assert row["n"].item() == len(values)
            assert row["value"].item() == pytest.approx(np.mean(values), abs=1e-6)
            assert row["baseline"].item() == pytest.approx(np.mean(moved), abs=1e-6)
