"""A trained probe: how good it is, which heads it relies on, and a parser of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headcount.errors import UsageError
from headcount.probes.example import Example
from headcount.probes.gather import gather, probed_heads
from headcount.probes.measure import right_branching
from headcount.probes.parse import Parse, explained, parsed
from headcount.probes.plain_words import plain_sentence
from headcount.probes.scorer import Scorer
from headcount.probes.settings import WITH_MAPS, Settings
from headcount.probes.vectors import WordVectors
from headcount.subject import Subject
from headcount.table import HeadTable
from headcount.text import Sentence, read_corpus

__all__ = ["Probe"]


@dataclass(repr=False)
class Probe:
    """What `hc.probe` gives; `hc.Probe.load` brings a saved one back."""

    subject: Subject
    kind: str
    settings: Settings
    #: None for right-branching, which learns nothing.
    scorer: Scorer | None = None
    vectors: WordVectors | None = None
    #: A row a probe and seed: probe, model, uas, low, high, seed, n, ...
    results: pd.DataFrame = field(default_factory=pd.DataFrame)
    #: The column `probe_weight`; None where no attention is looked at.
    table: HeadTable | None = None
    #: Hits and words that count ``[sentence, 2]`` by kind and seed, to compare probes by.
    hits: dict[tuple[str, int], NDArray[np.int64]] = field(default_factory=dict)
    #: Where it comes from.
    provenance: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Probe({self.kind} of {self.subject.name}, UAS {self.uas:.3f})"

    @property
    def uas(self) -> float:
        """The share of words of the test sentences whose head was found, punctuation left out."""
        return float(self.results.loc[self.results["probe"] == self.kind, "uas"].mean())

    def parse(self, text: str | Sentence, tree: bool = True) -> Parse:
        """The heads of a sentence's words: the best tree, or each word's best candidate."""
        example = self._example(text)
        if self.scorer is None:
            heads = right_branching(self.settings.convention)([example])[0]
            return Parse(example.forms, heads.tolist(), np.eye(len(example) + 1)[heads])
        return parsed(self.scorer, example, tree)

    def explain(self, text: str | Sentence, dependent: str, head: str) -> pd.DataFrame:
        """Which attention heads decided an arc; words by form, or by number from 1."""
        if self.kind not in WITH_MAPS or self.scorer is None:
            raise UsageError(
                f"The probe '{self.kind}' looks at no attention, so no head decides its arcs; "
                "train the kind attention or words."
            )
        return explained(
            self.scorer, probed_heads(self.subject), self._example(text), dependent, head
        )

    def save(self, folder: str | Path) -> None:
        """Write probe.safetensors and probe.json; no pickle."""
        from headcount.probes.keep import save_probe

        save_probe(self, Path(folder))

    @staticmethod
    def load(folder: str | Path, subject: Subject | None = None, **how: Any) -> Probe:
        """Read a saved probe; without a subject the model that it was trained on is loaded."""
        from headcount.probes.keep import load

        return load(Path(folder), subject, **how)

    def _example(self, text: str | Sentence) -> Example:
        sentence = plain_sentence(text) if isinstance(text, str) else text
        found = gather(
            self.subject,
            read_corpus([sentence]),
            self.settings,
            vectors=self.vectors,
            maps=self.kind in WITH_MAPS,
            trees=False,
        )
        if self.vectors is not None and self.scorer is not None:
            # Words that are new may have got rows of their own.
            device = next(self.scorer.parameters()).device
            self.scorer.vectors = self.vectors.table().to(device)
        return found.examples[0]
