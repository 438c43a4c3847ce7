"""How often a head points to the rarest token of a sentence.

Voita et al., ACL 2019, section 5.3: among sentences whose least frequent token is not one of the
500 most frequent, the share of cases in which the largest weight is on it, and on one of the two
least frequent. The end of sentence is left out. There is no author code.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount import stats
from headcount.errors import InputError, UsageError, install_hint
from headcount.models import Site, Subject
from headcount.records import Column
from headcount.rooms.rarity.rare import OWN_TEXT
from headcount.surveys import (
    BatchCache,
    Reading,
    SumsTally,
    TallyPlan,
    add_micro,
    batches_of,
    micro_sums,
    over_rows,
    read_micro,
)
from headcount.text import SIDES, Batch, Ready, Side, text_file
from headcount.wiring import Needs, Sighting

# --- How frequent a token or a word is ----------------------------------------------------------

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

    A file counts words, or with `tokens:` before its name tokens as the tokenizer writes them.
    None, or the word `corpus`, means those that the model was trained on where they lie next to it,
    else those of the corpus itself, which are counted when it is read.
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
    if name == "tokens":
        return Frequencies.from_counts(_read(language), name=language, by="token", common=common)
    return Frequencies.from_counts(_read(source), name=str(source), common=common)


#: A file next to a model: for each side a count for every id of its vocabulary.
TOKEN_COUNTS = "token_counts.json"


def training_frequencies(tokenizer: Any, common: int = COMMON) -> dict[str, Frequencies]:
    """How often each token occurs in what a model was trained on; empty where nobody says.

    The bundled translator has such counts, and so may any folder: `token_counts.json`.
    """
    path = Path(getattr(tokenizer, "name_or_path", "") or ".") / TOKEN_COUNTS
    if not path.is_file():
        return {}
    try:
        sides = json.loads(path.read_text(encoding="utf8"))
        tokens = {number: token for token, number in tokenizer.get_vocab().items()}
        counts = {
            side: {tokens[number]: count for number, count in enumerate(found) if number in tokens}
            for side, found in sides.items()
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise InputError(
            f"{path} holds no counts of tokens; it is written as "
            '{"source": [count of each id, ...]}; mend it or take it away.'
        ) from error
    return {
        side: Frequencies.from_counts(found, name="its training text", by="token", common=common)
        for side, found in counts.items()
    }


def corpus_frequencies(batches: Iterable[Batch], common: int = COMMON) -> dict[str, Frequencies]:
    """How often each token occurs in a corpus, for each of its sides; special tokens left out."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for batch in batches:
        for name, side in batch.sides.items():
            for tokens, real, special in zip(side.tokens, side.real, side.special, strict=True):
                marks = special[real].tolist()
                counts[name].update(t for t, mark in zip(tokens, marks, strict=True) if not mark)
    return {
        name: Frequencies.from_counts(found, name=OWN_TEXT, by="token", common=common)
        for name, found in counts.items()
        if found
    }


def _wordfreq(language: str, common: int) -> Frequencies:
    try:
        import wordfreq
    except ImportError as error:
        raise UsageError(
            "Word frequencies of wordfreq need the package wordfreq, which is not installed: "
            f"{install_hint('words')}; or use those of the corpus."
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


# --- The rarest tokens of each sentence ---------------------------------------------------------
# A head points to the rarest token when the frequency of the token it points to is at most the
# smallest one in sight: so ties count, and one threshold a query is enough.

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rarest:
    """What counts as a hit, `[batch, place]`: after each key has come into sight.

    A causal query at place i sees the keys up to i; where all keys are in sight, the last
    place holds for every query.
    """

    #: The smallest frequency in sight, and that of the second rarest form.
    one: Floats
    two: Floats
    #: Whether the rarest form in sight is uncommon.
    eligible: NDArray[np.bool_]
    #: The chance that a pick among all keys in sight hits, for each of the two.
    chance_one: Floats
    chance_two: Floats
    #: The chance that a pick among the uncommon tokens in sight hits.
    uncommon_one: Floats
    uncommon_two: Floats


def known_frequencies(
    side: Side, frequencies: Frequencies
) -> tuple[Floats, NDArray[np.int64]] | None:
    """The frequency of each token, infinite where it is none of the text, and a number a form.

    A token has the frequency of its word where words are counted, and punctuation has none; None
    where the words are not known.
    """
    frequency = np.full(side.real.shape, np.inf)
    forms = np.full(side.real.shape, -1)
    numbers: dict[str, int] = {}
    if frequencies.by == "word" and side.words is None:
        return None
    for row in range(len(side)):
        for place, form in _forms(side, row, frequencies.by):
            found = frequencies.of(form)
            if found < frequency[row, place]:  # a token of two words has the rarer one's
                frequency[row, place] = found
                forms[row, place] = numbers.setdefault(form, len(numbers))
    return frequency, forms


def rarest(
    frequency: Floats, forms: NDArray[np.int64], keys: NDArray[np.bool_], border: float
) -> Rarest:
    """Go through the places of all rows side by side and keep the two smallest frequencies.

    >>> found = rarest(np.array([[9.0, 2, 5]]), np.array([[0, 1, 2]]), np.ones((1, 3)) > 0, 4)
    >>> found.one.tolist(), found.two.tolist(), found.eligible.tolist()
    ([[9.0, 2.0, 2.0]], [[9.0, 9.0, 5.0]], [[False, True, True]])
    """
    so_far, new = _Smallest(len(frequency)), np.zeros(forms.shape, dtype=bool)
    for row, own in enumerate(forms):  # where a form stands for the first time in its row
        new[row, np.unique(own, return_index=True)[1]] = True
    told = []
    for place in range(frequency.shape[1]):
        so_far.take(frequency[:, place], new[:, place])
        told.append(so_far.told())
    one, two, hits_one, hits_two = np.stack(told, axis=-1)
    in_sight = np.maximum(keys.cumsum(-1), 1)
    uncommon = (frequency <= border).cumsum(-1)
    return Rarest(
        one=one,
        two=two,
        eligible=one <= border,
        chance_one=hits_one / in_sight,
        chance_two=hits_two / in_sight,
        uncommon_one=hits_one / np.maximum(uncommon, 1),
        # Where the second rarest form is a common one, every uncommon token is a hit.
        uncommon_two=np.minimum(hits_two, uncommon) / np.maximum(uncommon, 1),
    )


class _Smallest:
    """The two smallest frequencies so far, and how many tokens have each, for every row."""

    def __init__(self, rows: int) -> None:
        self.first, self.second = np.full(rows, np.inf), np.full(rows, np.inf)
        self.of_first, self.of_second = np.zeros(rows), np.zeros(rows)
        self.forms = np.zeros(rows)  # how many forms share the smallest frequency

    def take(self, frequency: Floats, new: NDArray[np.bool_]) -> None:
        """One more place of every row; infinite where there is no token of the text."""
        there = np.isfinite(frequency)
        lower = frequency < self.first
        middle = (frequency > self.first) & (frequency < self.second)
        self.second = np.where(lower, self.first, np.where(middle, frequency, self.second))
        self.of_second = np.where(lower, self.of_first, np.where(middle, 0, self.of_second))
        self.first = np.where(lower, frequency, self.first)
        self.of_first, self.forms = (np.where(lower, 0, x) for x in (self.of_first, self.forms))
        self.of_first = self.of_first + (there & (frequency == self.first))
        self.of_second = self.of_second + (there & (frequency == self.second))
        self.forms = self.forms + (there & (frequency == self.first) & new)

    def told(self) -> list[Floats]:
        """The two thresholds, and how many tokens are at most so frequent."""
        further = (self.forms < 2) & np.isfinite(self.second)
        two = np.where(further, self.second, self.first)
        return [self.first, two, self.of_first, self.of_first + further * self.of_second]


def _forms(side: Side, row: int, by: str) -> Iterator[tuple[int, str]]:
    """Places of a row with the form that stands there; special tokens have none."""
    own = (side.real[row] & ~side.special[row]).cpu().numpy()
    if by == "token":
        places = np.flatnonzero(side.real[row].cpu().numpy())
        tokens = zip(places.tolist(), side.tokens[row], strict=True)
        yield from ((place, token) for place, token in tokens if own[place])
        return
    assert side.words is not None
    sentence = side.words.sentences[row]
    words = () if sentence is None else sentence.words or ()
    for number, place in side.words.pieces[row].nonzero().tolist():
        form = words[number].form.lower()
        if any(letter.isalnum() for letter in form):  # lists of words do not count signs
            yield place, form


# --- How often a head points to the rarest token of a sentence ----------------------------------

RARE = Column(
    "rare",
    title="Rarest token",
    meaning="Share of tokens whose largest weight is on the rarest token; only where that is not "
    "one of the most frequent ones.",
    paper="Voita et al. 2019, section 5.3",
    range=(0, 1),
    more="more for rare tokens",
    group="Where it points",
)
RARE_TWO = replace(
    RARE,
    name="rare_two",
    title="Two rarest tokens",
    meaning="Share of tokens whose largest weight is on one of the two rarest tokens.",
)

#: Picks that look at no map: among all tokens in sight, and among the uncommon ones.
PICKS = ("chance", "uncommon")

_LEFT_OUT = frozenset({"separator"})


@dataclass
class Rarity(SumsTally):
    """Share of queries whose largest weight is on a rarest token, with two baselines.

    `frequencies` are one for all sides, or one a side ("source", "target"). A causal query is
    held to the tokens it can see. Chance is a pick among all tokens in
    sight; `uncommon` a pick among the uncommon ones: what a head would reach that only shuns
    frequent tokens.
    """

    frequencies: Frequencies | Mapping[str, Frequencies]
    columns = (RARE, RARE_TWO)
    together = True
    needs = Needs(tops=frozenset({_LEFT_OUT}))
    _rarest: BatchCache[tuple[Tensor, Rarest] | None] = field(
        default_factory=BatchCache, init=False, repr=False, compare=False
    )

    def update(self, sighting: Sighting) -> None:
        """Count the hits of the rows that are held to an uncommon token."""
        side = SIDES[sighting.site.stack][1]
        found = self._rarest.get(sighting.batch, side, lambda: self._looked_up(sighting, side))
        if found is None:
            self.sums.add(sighting.site, {}, shared={"silent": torch.zeros(())})
            return
        frequency, known = found
        pointed = torch.gather(
            frequency[:, None].expand(-1, sighting.site.heads, -1), 2, sighting.tops[_LEFT_OUT][1]
        )
        asking = sighting.queries.real & ~sighting.queries.separator
        rows = sighting.weigh(asking & self._by_query(sighting, known.eligible).bool())
        for name, which in ((RARE.name, "one"), (RARE_TWO.name, "two")):
            limit = self._by_query(sighting, getattr(known, which))
            hits = over_rows((pointed <= limit[:, None]).double(), rows)
            cells = rows.sum(-1).double()
            add_micro(self.sums, sighting.site, name, hits, cells)
            for part in PICKS:
                chances = self._by_query(sighting, getattr(known, f"{part}_{which}"))
                expected, over = (chances * rows).sum(-1), f"{name}_over_{part}"
                add_micro(self.sums, sighting.site, over, hits - expected[:, None], cells)
                self.sums.add(sighting.site, {}, shared={f"{name}_{part}": expected.sum()})

    def compute(self) -> list[Reading]:
        """Two readings a site."""
        return [reading for column in self.columns for reading in self._read(column.name)]

    def details(self) -> dict[str, pd.DataFrame]:
        """`rarity`: for each head and target its share, its interval, two chance picks and p."""
        frames = [
            self._frame(site, column.name)
            for site in self.sums
            for column in self.columns
            if self._known(site)
        ]
        return {"rarity": pd.concat(frames, ignore_index=True)} if frames else {}

    def _looked_up(self, sighting: Sighting, side: str) -> tuple[Tensor, Rarest] | None:
        """What is rarest on the side of the keys; the same for all sites of a batch."""
        keys, known = sighting.keys, self._of_side(side)
        found = known_frequencies(keys, known) if keys.annotated and known else None
        if found is None or known is None:
            return None
        answering = (keys.real & ~keys.separator).cpu().numpy()
        frequency = torch.from_numpy(found[0]).to(keys.real.device)
        return frequency, rarest(*found, answering, known.border)

    def _of_side(self, side: str) -> Frequencies | None:
        if isinstance(self.frequencies, Frequencies):
            return self.frequencies
        return self.frequencies.get(side)

    @staticmethod
    def _by_query(sighting: Sighting, values: np.ndarray) -> Tensor:
        """One value a query, `[batch, query]`: at its own place, or after all keys."""
        found = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64))
        found = found.to(sighting.device)
        if sighting.site.causal:
            return sighting.at_places(found)
        return found[:, -1:].expand(sighting.queries.real.shape)

    def _known(self, site: Site) -> bool:
        return bool(self.sums.has(site, "rare_n") and self.sums.of(site, "rare_n").any())

    def _read(self, name: str) -> list[Reading]:
        silent = [site for site in self.sums if not self._known(site)]
        known = [site for site in self.sums if site not in silent]
        missing = [Reading.missing(name, site, self._why(site)) for site in silent]
        return missing + read_micro(self.sums, name, self._why, known)

    def _why(self, site: Site) -> str:
        known = self._of_side(SIDES[site.stack][1])
        if self.sums.has(site, "rare_n") and known is not None:
            return (
                f"no sentence has a {known.by} that is not among the {known.common} most frequent "
                f"of {known.name}"
            )
        if known is not None and known.by == "word":
            return "frequencies of words need a corpus with words: a treebank, or parsed text"
        return "nothing is known of the tokens of ready inputs"

    def _frame(self, site: Site, name: str) -> pd.DataFrame:
        sums = micro_sums(self.sums, site, name)
        over = [micro_sums(self.sums, site, f"{name}_over_{part}") for part in PICKS]
        share, low, high = stats.ratio_interval(*sums, bounds=(0, 1))
        about = {"stack": site.stack, "layer": site.layer, "head": site.indices}
        figures = {"share": share, "low": low, "high": high}
        for part in PICKS:
            figures[part] = float(self.sums.of(site, f"{name}_{part}")) / np.maximum(sums.n, 1)
        known = self._of_side(SIDES[site.stack][1])
        about["counts"] = "" if known is None else known.name
        figures |= {"p": stats.ratio_test(*over[0]), "p_uncommon": stats.ratio_test(*over[1])}
        return pd.DataFrame({**about, "target": name, "n": sums.n.astype(int), **figures})


def _planned(subject: Subject, corpus: Any, options: Any) -> Rarity | None:
    """By the model's training text where it is known, else by the text itself."""
    if options.convention == "code" or isinstance(corpus, Ready):
        return None  # of rare tokens there is no program of the authors
    known = options.frequencies or training_frequencies(subject.tokenizer)
    return Rarity(known or corpus_frequencies(batches_of(subject, corpus, options.inputs)))


#: It among the tallies of the registry.
PLAN = TallyPlan(_planned, columns=(*Rarity.columns, Column("rarity", meaning="The finer table.")))
