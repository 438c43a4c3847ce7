"""Lesions: what each head is worth to each word that a model says.

Michel et al., NeurIPS 2019, section 3.2, switch heads off one at a time and read one score for a
whole test set. Here the same is read word by word, on one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from headcount.errors import HeadcountError, ModelError, UsageError
from headcount.importance import Intervention, check_mode
from headcount.models import Subject
from headcount.records import Head
from headcount.reports import (
    Source,
    StageMaker,
    StoryContext,
    StoryStage,
    figures,
    less_likely,
    row_head,
)
from headcount.rooms.exhibits import visible_token
from headcount.rooms.lesions.by_word import WordLosses, word_losses
from headcount.stats import Floats
from headcount.tasks import own_output
from headcount.text import Item, Pair, Sentence, texts_of


@dataclass(frozen=True, repr=False, eq=False)
class Lesions:
    """How much less likely each output word becomes without each head, in nats.

    >>> lesions = Lesions("Hi all.", None, (Head("enc", 0, 0),), ("Hi", "all"),
    ...                   np.array([0.5, 2.0]), np.array([[0.1, 1.2]]))
    >>> lesions
    Lesions(1 head x 2 words; without enc.0.0 'all' is 3.3 times less likely)
    >>> lesions.frame.loc["enc.0.0", "all"].item()
    1.2
    """

    source: str
    #: The translation, where there is one.
    target: str | None
    heads: tuple[Head, ...]
    words: tuple[str, ...]
    #: What each word costs the whole model, in nats.
    whole: Floats
    #: ``[head, word]``: added to that without the head; below 0 where the word becomes likelier.
    added: Floats
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        counts = f"{len(self.heads)} head{'s' * (len(self.heads) != 1)} x {len(self.words)} words"
        head, word, added = next(iter(self.strongest(1)))
        return f"Lesions({counts}; without {head} '{word}' is {less_likely(added)})"

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each head and a column for each word; repeated words are there twice."""
        return pd.DataFrame(self.added, index=list(map(str, self.heads)), columns=list(self.words))

    def strongest(self, count: int = 10) -> list[tuple[Head, str, float]]:
        """The heads and words that need each other most, the most first."""
        order = np.argsort(-self.added, axis=None, kind="stable")[:count]
        places = zip(*np.unravel_index(order, self.added.shape), strict=True)
        return [(self.heads[h], self.words[w], float(self.added[h, w])) for h, w in places]

    def to_dict(self) -> dict[str, Any]:
        """Everything, for machines and for the page."""
        return {
            "source": self.source,
            "target": self.target,
            "heads": [str(head) for head in self.heads],
            "words": list(self.words),
            "whole": np.round(self.whole, 5).tolist(),
            "added": np.round(self.added, 5).tolist(),
            "notes": list(self.notes),
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """A line for each word: how likely it is, and the heads without which it is less so."""
        table = Table(box=None, pad_edge=False)
        for name, side in (("word", "left"), ("likelihood", "right"), ("without", "left")):
            table.add_column(name, justify=side, header_style="dim")  # type: ignore[arg-type]
        for place, word in enumerate(self.words):
            named = Text("  ").join(self._heads_of(place))
            table.add_row(Text(visible_token(word)), f"{np.exp(-self.whole[place]):.2f}", named)
        yield table
        yield Text("Without a head its word is so much less likely.", style="dim")
        yield from (Text(note, style="dim") for note in self.notes)

    def _heads_of(self, place: int, most: int = 3) -> Iterator[Text]:
        for head in np.argsort(-self.added[:, place], kind="stable")[:most]:
            added = float(self.added[head, place])
            if added > 0.05:
                times = less_likely(added).removesuffix(" less likely")
                yield Text.assemble(str(self.heads[head]), (f" {times}", "dim"))


def lesions(
    subject: Subject,
    sentence: str,
    target: str | None = None,
    *,
    heads: Sequence[str | Head] | None = None,
    mode: str = "zero",
    batch_size: int = 32,
) -> Lesions:
    """How much less likely each output word becomes without each head.

    A translator predicts its own translation, or `target`; a decoder the sentence itself, each word
    from those before it; a masked model each word from all others. Heads are switched off one at a
    time (`mode` as in `hc.score(by="ablation")`), many in one forward.

    >>> import headcount as hc
    >>> found = lesions(hc.load("translator", device="cpu"), "The dog sleeps.", "Der Hund schläft.")
    >>> found.words, len(found.heads)
    (('Der', 'Hund', 'schläft', '.', '(end)'), 144)
    """
    if not sentence.strip() or (target is not None and not target.strip()):
        raise UsageError("The sentence is empty; give one with a word in it.")
    chosen = [Intervention([head], check_mode(mode)) for head in heads or subject.heads]
    item: Item = Sentence(sentence)
    if subject.kind == "enc-dec":
        item = Pair(sentence, target or _translation(subject, sentence))
    elif target is not None:
        raise UsageError(f"{subject.name} translates nothing; leave target (--target) out.")
    found: WordLosses = word_losses(subject, [item], chosen, batch_size=batch_size)
    if not found.words:
        raise UsageError(f"The sentence {sentence!r} has no word that {subject.name} predicts.")
    return Lesions(
        sentence,
        item.target if isinstance(item, Pair) else None,
        tuple(one.heads[0] for one in chosen),
        tuple(place.text for place in found.words),
        found.whole,
        found.added,
        found.notes,
    )


def _translation(subject: Subject, sentence: str) -> str:
    said = list(own_output(subject, [sentence]))
    if not said:
        raise ModelError(f"{subject.name} has no translation of {sentence!r}; give one (target=).")
    return str(said[0].target)


# --- Among the stages of a story, and on the page ------------------------------------------------

#: As many sentences, of so many words.
COUNT, _SHORT, _LONG = 3, 8, 14


def lesion_frame(found: Sequence[Lesions]) -> pd.DataFrame:
    """A row for each sentence, head and word: `lesions.parquet`, which the page draws."""
    return pd.DataFrame(
        {
            "sentence": number,
            "source": one.source,
            "target": one.target or "",
            **head._asdict(),
            "place": place,
            "word": word,
            "whole": one.whole[place],
            "added": one.added[row, place],
        }
        for number, one in enumerate(found)
        for row, head in enumerate(one.heads)
        for place, word in enumerate(one.words)
    ).rename(columns={"index": "head"})


def _sentences(context: StoryContext) -> Iterator[str]:
    """The first sentences of a length that a picture holds; else the first there are."""
    texts = [texts_of(item)[0] for item in context.texts]
    fitting = [text for text in texts if _SHORT <= len(text.split()) <= _LONG]
    yield from (fitting or texts)[:COUNT]


def lesions_stage(context: StoryContext) -> StoryStage:
    """How much less likely each output word of a few sentences becomes without each head."""

    def work() -> list[str]:
        try:
            found = [lesions(context.subject, text) for text in _sentences(context)]
        except HeadcountError as error:  # a model without words to predict, or without words at all
            return [str(error)]
        if found:
            context.run.write_frame("lesions", lesion_frame(found))
        return []

    settings = {**context.about_texts, "count": COUNT}
    title = "Which word needs which head"
    return StoryStage("lesions", title, settings, work, keeps_text=True)


STAGE = StageMaker(lesions_stage, after="exhibits")


def lesion_part(source: Source) -> list[dict[str, Any]]:
    """By sentence how much less likely each word becomes without each head: `hc.lesions`."""
    frame = source.frame("lesions")
    if frame is None or not source.exhibits:  # a page without texts has no words either
        return []
    parts = []
    for _, rows in frame.groupby("sentence", sort=True):
        first = rows.iloc[0]
        heads = list(dict.fromkeys(map(row_head, rows.to_dict("records"))))
        count = len(rows) // len(heads)
        known = [(place, source.places.get(head)) for place, head in enumerate(heads)]
        added = rows["added"].to_numpy(float).reshape(len(heads), count)
        parts.append(
            {
                "source": str(first["source"]),
                "target": str(first["target"]) or None,
                "words": [str(word) for word in rows["word"][:count]],
                "heads": [place for _, place in known if place is not None],
                "added": [figures(added[row], 3) for row, place in known if place is not None],
            }
        )
    return parts
