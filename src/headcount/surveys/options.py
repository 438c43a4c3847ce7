"""The options of a survey; nothing heavy is imported: the command line reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from headcount.records import WorkOptions, names, option, stack_names

#: The word that stands for what is bundled.
SAMPLE = "sample"


_reading = partial(option, panel="What is read", key_of="reading")
_role = partial(option, panel="What heads do (roles)", key_of="judging")


@dataclass(frozen=True)
class ReadingOptions(WorkOptions):
    """How a model reads texts.

    >>> ReadingOptions(max_length=128).long
    'window'
    """

    stacks: Sequence[str] | None = _reading(
        None, "NAMES", "Stacks to look at: enc, dec, cross; several with |.", reads=stack_names
    )
    max_length: int | None = _reading(
        None, "N", "Longest input in tokens; by default what the model takes.", least=1
    )
    long: Literal["window", "truncate", "error"] = _reading(
        "window",
        "HOW",
        "What to do with longer sentences: window, truncate or error.",
        choices=("window", "truncate", "error"),
        reads=str,
    )
    rows: int | None = _reading(
        None,
        "N",
        "Read so many queries of each longer text, drawn at random, in place of all, e.g. 2048.",
        least=2,
    )
    word_rows: Literal["mean", "first", "max"] | None = _reading(
        None,
        "HOW",
        "How the rows of a word's pieces become one: mean, first or max; by default what "
        "--convention says.",
        choices=("mean", "first", "max"),
        reads=str,
    )
    confidence_without: str | None = _reading(
        None,
        "WHAT",
        "Tokens that confidence leaves out, as query and as key: special ([CLS], [SEP], starts and "
        "ends; the default), separator ([SEP] and ends alone, as --convention paper) or nothing.",
        choices=("special", "separator", "nothing"),
    )
    #: None: where a decoder would have nothing else to read.
    own_output: bool | None = _reading(
        False, None, "Translate first, and survey the model's own translations."
    )
    chat: bool = _reading(False, None, "Put each text into the model's chat template, as a user's.")
    #: False gives both texts of a pair the segment 0, as Clark's extraction did; no flag.
    segments: bool = True


@dataclass(frozen=True)
class RoleOptions:
    """What heads are judged by.

    >>> RoleOptions(control="random-init", twins=3).roles is None
    True
    """

    #: All of them (True), none, a list; None: all where anything was given to judge them by.
    roles: Any = _role(  # noqa: RUF009
        None, None, "Judge heads also without any annotated file.", reads=bool
    )
    control: str | None = option(
        None,
        "KIND",
        "Do the same with a twin of random weights, and put it next to every role: random-init, or "
        "random-but-embeddings.",
        choices=("random-init", "random-but-embeddings"),
        panel="What heads do (roles)",
    )
    #: A number, or their seeds.
    twins: int | Sequence[int] = _role(
        1, "N", "How many twins --control takes the mean of.", least=1, reads=int
    )
    nulls: bool | None = _role(
        None,
        None,
        "Measure every rung of the ladder of nulls, for every head and role, with a random twin "
        "as sharp as the model; else each head climbs as far as it gets.",
    )
    relations: Sequence[str] | None = _role(
        None,
        "NAMES",
        "Relations to test, separated by commas; by default all that occur.",
        reads=names,
    )
    frequencies: Mapping[str, float] | Any = _role(  # noqa: RUF009
        None,
        "WHOSE",
        "How rare a token is: by default as the model's training text says where it is known, else "
        "as the text itself, by which no role is judged; wordfreq or wordfreq:de, a file with a "
        "word, a tab and its count on each line, or tokens:FILE.",
        "--word-frequencies",
        reads=str,
    )
    arguments: Any = _role(  # noqa: RUF009
        None, "FILE", "Predicates and their arguments: .jsonl with tokens and preds.", reads=str
    )
    parser: Any = _role(  # noqa: RUF009
        None,
        "NAME",
        "Make a treebank of the text: a .udpipe file, or an installed spaCy pipeline.",
        reads=str,
    )

    @property
    def seeds(self) -> list[int]:
        """The seeds of the twins."""
        return list(range(self.twins)) if isinstance(self.twins, int) else list(self.twins)
