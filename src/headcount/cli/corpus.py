"""The corpus that `--text` or `--pairs` names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headcount.errors import UsageError

if TYPE_CHECKING:
    from headcount.text.corpus import Corpus

__all__ = ["SAMPLE", "named_corpus"]

#: The word that stands for the bundled sentences and pairs.
SAMPLE = "sample"


def named_corpus(
    text: str | None,
    pairs: str | None,
    format: str | None = None,
    limit: int | None = None,
    seed: int | None = None,
) -> Corpus:
    """Read the one corpus that was named: `--pairs` is two columns whatever the file is called.

    They stand between tabs, in a .csv between commas.
    """
    if (text is None) == (pairs is None):
        which = "Both --text and --pairs were" if text is not None else "No --text or --pairs was"
        raise UsageError(
            f"{which} given; name one corpus, e.g. --text sentences.txt or --text sample."
        )
    if SAMPLE in (text, pairs):
        return _sample(pairs is not None, limit, seed)
    from headcount.text.corpus import read_corpus

    if pairs is not None:
        usual = "csv" if ".csv" in Path(pairs).suffixes else "tsv"
        return read_corpus(pairs, format=format or usual, limit=limit, seed=seed)
    return read_corpus(str(text), format=format, limit=limit, seed=seed)


def _sample(paired: bool, limit: int | None, seed: int | None) -> Corpus:
    from headcount.bundle import sample
    from headcount.text.corpus import read_corpus

    file = sample.path("sample.en-de.tsv" if paired else "sample.conllu")
    corpus = read_corpus(file, limit=limit, seed=seed)
    corpus.name = file.name  # where headcount is installed tells nothing
    return corpus
