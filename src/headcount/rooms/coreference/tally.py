"""How often each head points from a mention to its antecedent.

Clark et al., BlackBoxNLP 2019, section 4.3 and Table 2: the share of coreferent mentions whose head
word attends most to the head word of one of the mention's antecedents, for all mentions and for
pronouns, proper and nominal mentions. There is no author code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from headcount import stats
from headcount.errors import check_convention
from headcount.models import Site
from headcount.records import Column
from headcount.rooms.words import (
    ALL,
    SPLITS,
    BatchCells,
    HitsTally,
    HitsTest,
    RelationCounts,
    SiteHits,
    Unit,
    compact_words,
    correct_tests,
    counts_of,
    figure_frame,
    figures_by_split,
    hits_by_cell,
    in_selection,
    number_cells,
    resample_units,
)
from headcount.surveys import BatchCache, Reading, TallyPlan
from headcount.text import Rows, Sentence, Span, Word, Words
from headcount.wiring import Sighting

# --- Number -------------------------------------------------------------------------------------
# For the third sieve of the rule system that Clark et al., BlackBoxNLP 2019, section 4.3, compare
# with (after Lee et al. 2011). What is not known agrees with everything.


class Concord(NamedTuple):
    """Number (s, p), gender (f, m, n) and person (1, 2, 3); None where not known."""

    number: str | None = None
    gender: str | None = None
    person: str | None = None


def _forms(words: str, *features: str | None) -> dict[str, Concord]:
    return dict.fromkeys(words.split(), Concord(*features))


#: English pronouns; the list also tells pronouns where words have no tags.
PRONOUNS: dict[str, Concord] = {
    **_forms("i me my mine myself", "s", None, "1"),
    **_forms("we us our ours ourselves", "p", None, "1"),
    **_forms("you your yours", None, None, "2"),
    **_forms("yourself", "s", None, "2"),
    **_forms("yourselves", "p", None, "2"),
    **_forms("he him his himself", "s", "m", "3"),
    **_forms("she her hers herself", "s", "f", "3"),
    **_forms("it its itself", "s", "n", "3"),
    **_forms("they them their theirs themselves", "p", None, "3"),
    **_forms("themself", "s", None, "3"),
    **_forms("this that", "s", "n", "3"),
    **_forms("these those", "p", None, "3"),
    **_forms("one oneself", "s", None, "3"),
    **_forms("who whom whose which", None, None, "3"),
}

_FEMALE = frozenset(
    _forms(
        "woman women girl girls lady ladies mother mothers mom mum sister sisters daughter "
        "daughters wife wives aunt aunts grandmother queen queens princess actress waitress niece "
        "nieces bride widow mrs mrs. ms ms. miss madam"
    )
)
_MALE = frozenset(
    _forms(
        "man men boy boys gentleman gentlemen father fathers dad brother brothers son sons husband "
        "husbands uncle uncles grandfather king kings prince actor waiter nephew nephews groom "
        "widower mr mr. sir"
    )
)


def agree(one: Concord, other: Concord) -> bool:
    """Whether nothing that is known of both differs.

    >>> agree(PRONOUNS["she"], Concord("s", None, "3")), agree(PRONOUNS["she"], PRONOUNS["they"])
    (True, False)
    """
    pairs = zip(one, other, strict=True)
    return all(mine == theirs or None in (mine, theirs) for mine, theirs in pairs)


def concord_of(phrase: Sequence[Word], head: Word, kind: str) -> Concord:
    """What a phrase agrees in, given its head word.

    >>> concord_of([Word("Mrs."), Word("Hill")], Word("Hill"), "proper")
    Concord(number='s', gender='f', person='3')
    """
    if kind == "pronoun":
        return PRONOUNS.get(head.form.lower(), Concord())
    forms = {word.form.lower() for word in phrase}
    gender = "f" if forms & _FEMALE else "m" if forms & _MALE else None
    return Concord(_number(phrase, head), gender, "3")


def _number(phrase: Sequence[Word], head: Word) -> str | None:
    """Two joined by *and* are many; else the treebank's number, the tag, or the last letter."""
    if any(word.form.lower() == "and" for word in phrase):
        return "p"
    told = head.feats.get("Number")
    if told is not None:
        return {"Sing": "s", "Plur": "p"}.get(told)
    if head.xpos is not None:
        return {"NN": "s", "NNP": "s", "NNS": "p", "NNPS": "p"}.get(head.xpos)
    form = head.form.lower()
    return "p" if form.endswith("s") and not form.endswith(("ss", "us", "is")) else "s"


# --- The mentions of a text ---------------------------------------------------------------------
# Clark et al., BlackBoxNLP 2019, section 4.3, score head words of mentions and tell pronoun, proper
# and nominal mentions apart, but not how they found either; the rules here are ours.

KINDS = ("pronoun", "proper", "nominal")

_FOLLOWING = """
    of in on at by for from with without to into onto about as than between among against during
    before after under over near through across behind who whom whose which that where when and or
    but if because , ; : ( – — -
"""
#: Where a noun phrase without a tree ends: what follows belongs to what the noun is said with.
_ENDS = frozenset(_FOLLOWING.split())
_POSSESSIVES = frozenset({"'s", "’s", "'", "’"})


@dataclass(frozen=True)
class Mention:
    """Words that name an entity; `head` is the place of its head word, counted from 0."""

    span: Span
    head: int
    #: Which cluster it belongs to.
    entity: int
    kind: str
    #: All its words, and its head word, in small letters.
    text: str
    word: str
    concord: Concord

    def overlaps(self, other: Mention) -> bool:
        """Whether the two share a word, as *his* and *his mother* do."""
        return self.span.first <= other.span.last and other.span.first <= self.span.last


def mentions_of(sentence: Sentence) -> list[Mention]:
    """The mentions of a text in the order of their head words; spans that point outside are none.

    >>> words = (Word("Ann"), Word("lost"), Word("her"), Word("key"))
    >>> text = Sentence("Ann lost her key", words, clusters=((Span(0, 0), Span(2, 2)),))
    >>> [(mention.word, mention.kind, mention.entity) for mention in mentions_of(text)]
    [('ann', 'proper', 0), ('her', 'pronoun', 0)]
    """
    words = sentence.words or ()
    found = [
        _mention(words, span, entity)
        for entity, spans in enumerate(sentence.clusters)
        for span in dict.fromkeys(spans)
        if 0 <= span.first <= span.last < len(words)
    ]
    return sorted(found, key=lambda mention: (mention.head, mention.span, mention.entity))


def head_word(words: Sequence[Word], span: Span) -> int:
    """The place of a span's head word.

    With a tree: the first word whose own head lies outside the span, punctuation aside. Without
    one: the last word before a preposition, a conjunction, a relative pronoun, a comma or a dash
    (*the mayor of York* has *mayor*), a possessive 's at the end left out.

    >>> words = [Word(form) for form in "the old mayor of York 's".split()]
    >>> head_word(words, Span(0, 5)), head_word(words, Span(4, 5))
    (2, 4)
    """
    inside = range(span.first, span.last + 1)
    if all(words[place].head is not None for place in inside):
        tops = [place for place in inside if not _within(words[place], span)]
        plain = [place for place in tops if words[place].upos != "PUNCT"]
        if tops:
            return (plain or tops)[0]
    last = span.last
    while last > span.first and words[last].form in _POSSESSIVES:
        last -= 1
    ends = [
        place for place in range(span.first + 1, last + 1) if words[place].form.lower() in _ENDS
    ]
    return ends[0] - 1 if ends else last


def _within(word: Word, span: Span) -> bool:
    assert word.head is not None
    return span.first <= word.head - 1 <= span.last


def _mention(words: Sequence[Word], span: Span, entity: int) -> Mention:
    head = head_word(words, span)
    kind = _kind(words, head)
    return Mention(
        span=span,
        head=head,
        entity=entity,
        kind=kind,
        text=" ".join(word.form.lower() for word in words[span.first : span.last + 1]),
        word=words[head].form.lower(),
        concord=concord_of(words[span.first : span.last + 1], words[head], kind),
    )


def _kind(words: Sequence[Word], head: int) -> str:
    """By the head word's tag; without one by a list of pronouns and by capital letters."""
    word = words[head]
    if word.upos is None and word.xpos is None:
        # A capital letter makes a name, unless it may be there because a sentence starts.
        form = words[head].form
        if form.lower() in PRONOUNS:
            return "pronoun"
        if not form[:1].isupper():
            return "nominal"
        starts = head == 0 or words[head - 1].form in {".", "!", "?", '"', "“"}
        elsewhere = starts and any(word.form == form.lower() for word in words)
        return "nominal" if elsewhere else "proper"
    if word.upos == "PRON" or (word.xpos or "").startswith(("PRP", "WP")):
        return "pronoun"
    return "proper" if word.upos == "PROPN" or (word.xpos or "").startswith("NNP") else "nominal"


# --- Antecedents without a model ----------------------------------------------------------------
# Clark et al., BlackBoxNLP 2019, section 4.3 and Table 2, measure heads against these; the sieves
# are a small version of Lee et al. 2011.

Pick = Callable[[Mention, Sequence[Mention]], Mention | None]


def before(mention: Mention, mentions: Sequence[Mention]) -> list[Mention]:
    """The mentions whose head words stand before this one's, the nearest first.

    A mention inside it or around it is no candidate: *his* is not *his mother*.
    """
    earlier = [
        other for other in mentions if other.head < mention.head and not other.overlaps(mention)
    ]
    return sorted(earlier, key=lambda other: (-other.head, other.span, other.entity))


def coreferent(sentence: Sentence) -> list[tuple[str, int, int]]:
    """Each mention with each of its antecedents: its kind, and the places of both head words.

    >>> words = (Word("Ann"), Word("lost"), Word("her"), Word("key"))
    >>> coreferent(Sentence("Ann lost her key", words, clusters=((Span(0, 0), Span(2, 2)),)))
    [('pronoun', 2, 0)]
    """
    seen = mentions_of(sentence)
    return [
        (mention.kind, mention.head, other.head)
        for mention in seen
        for other in before(mention, seen)
        if other.entity == mention.entity
    ]


def nearest(mention: Mention, candidates: Sequence[Mention]) -> Mention | None:
    """The nearest mention, whatever it is."""
    return candidates[0] if candidates else None


def head_match(mention: Mention, candidates: Sequence[Mention]) -> Mention | None:
    """The nearest mention with the same head word; none where there is none."""
    return next((other for other in candidates if other.word == mention.word), None)


def rules(mention: Mention, candidates: Sequence[Mention]) -> Mention | None:
    """The nearest mention that the earliest sieve lets through.

    Sieves: the same words; the same head word; number, gender and person agree; any mention.
    """
    sieves: tuple[Callable[[Mention], bool], ...] = (
        lambda other: other.text == mention.text,
        lambda other: other.word == mention.word,
        lambda other: agree(other.concord, mention.concord),
        lambda other: True,
    )
    return next((other for sieve in sieves for other in candidates if sieve(other)), None)


#: By name, the simplest first.
BASELINES: dict[str, Pick] = {"nearest": nearest, "head match": head_match, "rules": rules}


# --- The choices of a batch ---------------------------------------------------------------------
# As for relations, heads are chosen on one half of the texts (`select`) and judged on the other
# (`report`); the naive figure over both stands next to them (`all`).

#: The one direction there is; the counts of relations have several.
DIRECTION = "chosen"

_CROSS = "queries and keys are different texts"


class Choice(NamedTuple):
    """One word that chooses; places are words of its row, those that are not there left out."""

    row: int
    kind: str
    query: int
    right: list[int]
    #: What else is needed to tell: the candidates, or the wrong words.
    others: list[int]
    #: Whether each baseline is right.
    baselines: list[bool]


@dataclass(frozen=True)
class BatchChoices:
    """The choices of a batch, and the cells they are counted in."""

    row: Tensor
    query: Tensor
    #: Bool ``[choice, word]``.
    right: Tensor
    others: Tensor
    #: The cell (text and kind) of each choice.
    cell: Tensor
    cells: BatchCells

    @classmethod
    def of(
        cls, choices: Sequence[Choice], words: Words, units: Sequence[Unit], baselines: int
    ) -> Self:
        """Lay out choices as tensors on the device of the words."""
        device, width = words.there.device, int(words.there.sum(1).max()) if len(words) else 0
        cells, cell = number_cells([(choice.row, choice.kind) for choice in choices])
        rules = torch.tensor([choice.baselines for choice in choices], dtype=torch.bool)
        right, others = torch.zeros(2, len(choices), width, dtype=torch.bool)
        for number, choice in enumerate(choices):
            right[number, choice.right] = True
            others[number, choice.others] = True
        places = ([choice.row for choice in choices], [choice.query for choice in choices])
        row, query = (torch.tensor(part, dtype=torch.long, device=device) for part in places)
        counted = BatchCells(
            units=tuple(units),
            unit=np.array([row for row, _ in cells], dtype=np.int16),
            labels=tuple(kind for _, kind in cells),
            arcs={DIRECTION: hits_by_cell(cell, torch.ones(len(choices)), len(cells))},
            offsets={
                DIRECTION: hits_by_cell(cell, rules.reshape(len(choices), baselines), len(cells))
            },
        )
        return cls(row, query, right.to(device), others.to(device), cell.to(device), counted)


# --- The shared body of tallies of choices ------------------------------------------------------


@dataclass
class ChoiceTally(HitsTally, ABC):
    """Hits of every head, and of rules that know no model, counted text by text."""

    #: How rows of a word's pieces become one.
    rows: Rows = field(default="mean", kw_only=True)
    #: Kinds of mentions are fewer than arcs.
    test: HitsTest = field(default_factory=lambda: HitsTest(support=30), kw_only=True)
    _choices: BatchCache[BatchChoices] = field(
        default_factory=BatchCache, init=False, repr=False, compare=False
    )

    column: ClassVar[Column]
    kinds: ClassVar[tuple[str, ...]]
    baselines: ClassVar[tuple[str, ...]]
    #: Why there may be no value.
    none: ClassVar[str]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The accuracy over all choices."""
        return (self.column,)

    @property
    def tried(self) -> tuple[int, ...]:
        """The baselines by number."""
        return tuple(range(len(self.baselines)))

    @abstractmethod
    def is_right(self, weights: Tensor, right: Tensor, others: Tensor) -> Tensor:
        """Whether each head is right, bool ``[choice, head]``, given ``[choice, head, word]``."""

    @abstractmethod
    def row_choices(
        self, row: int, sentence: Sentence, there: NDArray[np.bool_], causal: bool
    ) -> Iterator[Choice]:
        """The choices of a row, words counted without those that are not there."""

    def choices(self, words: Words, units: Sequence[Unit], causal: bool) -> BatchChoices:
        """The choices of a batch."""
        there = words.there.cpu().numpy()
        found = [
            choice
            for row, sentence in enumerate(words.sentences)
            if sentence is not None
            for choice in self.row_choices(row, sentence, there[row], causal)
        ]
        return BatchChoices.of(found, words, units, len(self.baselines))

    def update(self, sighting: Sighting) -> None:
        """Count one site's hits on one batch; nothing where there is no choice."""
        site, words = sighting.site, sighting.queries.words
        if words is None or not sighting.readable or site.stack == "cross":
            self._skipped[site] = _CROSS if site.stack == "cross" else self.none
            return
        found = self._choices.get(
            sighting.batch,
            (site.stack, site.causal),
            lambda: self.choices(words, resample_units(words, sighting.batch.index), site.causal),
        )
        if not found.cells.labels:
            self._skipped[site] = self.none
            return
        right = torch.zeros(len(found.row), site.heads, dtype=torch.bool, device=found.row.device)
        for some, maps in self._tiles(sighting, compact_words(words), self.rows):
            asked = ((found.query >= some.start) & (found.query < some.stop)).nonzero()[:, 0]
            weights = maps[found.row[asked], :, found.query[asked] - some.start]
            right[asked] = self.is_right(weights, found.right[asked], found.others[asked])
        hits = hits_by_cell(found.cell, right, len(found.cells.labels))
        self._seen[site].append(SiteHits(found.cells, {DIRECTION: hits}))

    def compute(self) -> list[Reading]:
        """Accuracy over all choices, with an interval over texts."""
        return [self._read(site, seen) for site, seen in self._seen.items()] + [
            Reading.missing(self.column.name, site, why)
            for site, why in self._skipped.items()
            if site not in self._seen
        ]

    def details(self) -> dict[str, pd.DataFrame]:
        """A row for each head, kind of choice, baseline and split, under the column's name."""
        return {self.column.name: self.frame()} if self._seen else {}

    def frame(self) -> pd.DataFrame:
        """A row for each head, kind, baseline and split that has choices."""
        tried = [(place, {"against": name}) for place, name in enumerate(self.baselines)]
        parts = [figure_frame(one.heads, self._blocks(one, tried)) for one in self.counts()]
        frame = pd.concat(parts, ignore_index=True).assign(note="")
        for _, group in frame[frame["p"].notna()].groupby("against", sort=False):
            correct_tests(frame, group.index, self.test.level)
        return frame

    def _blocks(
        self, counts: RelationCounts, tried: Sequence[tuple[int, dict[str, Any]]]
    ) -> Iterator[dict[str, Any]]:
        """One block of rows, a head each, for every kind, baseline and split that has choices."""
        in_select = in_selection(counts.units, self.test.seed)
        for kind in (ALL, *self.kinds):
            found = counts.of(kind, DIRECTION)
            baselines = dict.fromkeys(SPLITS, tried)
            for figures in figures_by_split(found, in_select[found.unit], baselines, self.test):
                yield {"kind": kind, **figures}

    def _read(self, site: Site, seen: list[SiteHits]) -> Reading:
        if site in self._broken:
            return Reading.broken(self.column.name, site)
        found = counts_of({tuple(site.names): seen}, ()).of(ALL, DIRECTION)
        n, x = found.arcs, found.hits
        sums = (x.sum(0), n.sum(), (x**2).sum(0), n @ x, n @ n, len(n))
        return Reading(self.column.name, site, *stats.ratio_interval(*sums, bounds=(0, 1)))


# --- How often each head points from a mention to its antecedent --------------------------------

COREFERENCE = Column(
    "coreference",
    meaning="Share of coreferent mentions whose head word attends most to an antecedent's.",
    paper="Clark et al. 2019, section 4.3",
    range=(0, 1),
    direction="higher",
    group="What it tracks",
)


@dataclass
class CoreferenceTally(ChoiceTally):
    """Hits of every head, and of rules that know no model, on coreferent mentions.

    A word cannot be its own antecedent, special tokens are none, and only words before the mention
    may be chosen; the paper does not say, and `convention="paper"` reads it as every other word.
    Heads and rules see what is in the same row: cut texts to 128 words as the paper
    does, or give the model its full length. Counts are kept text by text.
    """

    convention: str = "headcount"

    column = COREFERENCE
    kinds = KINDS
    baselines = tuple(BASELINES)
    none = "no mention has an antecedent in the same text"

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        check_convention(self.convention, "Coreference does")

    def is_right(self, weights: Tensor, right: Tensor, others: Tensor) -> Tensor:
        """Whether the candidate with the largest weight is an antecedent; `others` are all."""
        picks = weights.masked_fill(~others[:, None], -torch.inf).argmax(-1)
        return right.gather(1, picks)

    def row_choices(
        self, row: int, sentence: Sentence, there: NDArray[np.bool_], causal: bool
    ) -> Iterator[Choice]:
        """Every mention that has an antecedent whose head word is in the same row."""
        everywhere = self.convention == "paper" and not causal
        place = np.cumsum(there) - 1
        seen = [mention for mention in mentions_of(sentence) if there[mention.head]]
        for mention in seen:
            earlier = before(mention, seen)
            right = [other.head for other in earlier if other.entity == mention.entity]
            if right:
                picks = [pick(mention, earlier) for pick in BASELINES.values()]
                hits = [other is not None and other.head in right for other in picks]
                own = int(place[mention.head])
                last = int(there.sum()) if everywhere else own
                others = [word for word in range(last) if word != own]
                yield Choice(row, mention.kind, own, place[right].tolist(), others, hits)


# --- A pronoun and two names --------------------------------------------------------------------
# Webster et al. 2018 (GAP): balanced feminine and masculine pronouns, each with two names of the
# same gender, one of them meant. Whoever reads attention as coreference should see it here.

_GENDERS = {"f": "feminine", "m": "masculine", "n": "neuter"}


def _pronoun_and_names(sentence: Sentence) -> tuple[int, list[Span], int] | None:
    """The pronoun's word, the two names in their order, and which of them is meant."""
    about = sentence.comments
    if not {"pronoun", "A", "B", "A-coref", "B-coref"} <= set(about):
        return None
    meant = [about[f"{name}-coref"].upper() == "TRUE" for name in ("A", "B")]
    starts = {span.first: span for cluster in sentence.clusters for span in cluster}
    places = [int(about[name]) for name in ("A", "B")]
    if sum(meant) != 1 or not all(place in starts for place in places):
        return None
    names = [starts[place] for place in places]
    right = names[meant.index(True)]
    names.sort()
    return int(about["pronoun"]), names, names.index(right)


PRONOUN_CHOICE = replace(
    COREFERENCE,
    name="pronoun_choice",
    title="",
    meaning="Share of pronouns between two names that look more at the one that is meant.",
    paper="Webster et al. 2018",
)


@dataclass
class PronounChoice(ChoiceTally):
    """Choices between two names, by gender of the pronoun, against the nearest and the first name.

    Attention to a name is the sum over its words. Texts where both names are meant, or none, are
    left out. The finer table has `bias`, the accuracy on feminine pronouns over that on masculine
    ones: 1 is fair.
    """

    column = PRONOUN_CHOICE
    kinds = ("feminine", "masculine")
    baselines = ("nearest", "first")
    none = "no text has a pronoun between two names of which one is meant"

    def is_right(self, weights: Tensor, right: Tensor, others: Tensor) -> Tensor:
        """Whether the name that is meant gets more weight than the wrong one, `others`."""
        meant, other = (
            (weights * names[:, None].to(weights.dtype)).sum(-1) for names in (right, others)
        )
        return meant > other

    def row_choices(
        self, row: int, sentence: Sentence, there: NDArray[np.bool_], causal: bool
    ) -> Iterator[Choice]:
        """The pronoun of a text, if it has one: all words are there, one name is meant."""
        found = _pronoun_and_names(sentence)
        if found is None:
            return
        pronoun, names, meant = found
        words = [[*range(name.first, name.last + 1)] for name in names]
        places = [pronoun, *words[0], *words[1]]
        if not all(0 <= word < len(there) and there[word] for word in places):
            return
        if causal and max(places[1:]) > pronoun:
            return
        place = np.cumsum(there) - 1
        right, wrong = (place[words[number]].tolist() for number in (meant, 1 - meant))
        far = [min(abs(pronoun - name.first), abs(pronoun - name.last)) for name in names]
        form = (sentence.words or ())[pronoun].form.lower()
        gender = _GENDERS.get(PRONOUNS.get(form, Concord()).gender or "", "other")
        baselines = [int(far[1] < far[0]) == meant, meant == 0]
        yield Choice(row, gender, int(place[pronoun]), right, wrong, baselines)

    def frame(self) -> pd.DataFrame:
        """The finer table, with the bias of each head on each split."""
        found = super().frame()
        key = ["stack", "layer", "head", "against", "split"]
        parts = {kind: rows.set_index(key)["accuracy"] for kind, rows in found.groupby("kind")}
        missing = pd.Series(dtype=float, index=pd.MultiIndex.from_tuples([], names=key))
        bias = parts.get("feminine", missing) / parts.get("masculine", missing)
        return found.join(bias.rename("bias"), on=key)


#: Both among the tallies of the registry; the authors published no program for them.
COREFERENCE_PLAN = TallyPlan(
    lambda subject, corpus, options: (
        None
        if options.convention == "code"
        else CoreferenceTally(options.convention, rows=options.word_rows or "mean")
    ),
    "coref",
)
PRONOUNS_PLAN = TallyPlan(
    lambda subject, corpus, options: (
        None if options.convention == "code" else PronounChoice(rows=options.word_rows or "mean")
    ),
    "coref",
)
