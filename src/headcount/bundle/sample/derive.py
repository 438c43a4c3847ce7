"""The files that follow from ``sample.conllu``: plain lines, pairs, coreference.

They are kept beside it so that anything that takes a path can have one. After a change to
``sample.conllu``, write them anew with ``python -m headcount.bundle.sample.derive``.
"""

from __future__ import annotations

import json

from headcount.bundle.sample.read import Passage, pairs, passages, path, sentences

__all__ = ["derived"]


def derived() -> dict[str, str]:
    """What each of the other files must hold, by name.

    >>> derived()["sample.txt"].count("\\n") == len(sentences())
    True
    """
    return {
        "sample.txt": _lines(sentences()),
        "sample.en-de.tsv": _lines(["\t".join(pair) for pair in pairs()]),
        "coref.jsonl": _lines([_json(passage) for passage in passages()]),
    }


def _lines(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


def _json(passage: Passage) -> str:
    """One document a line: ``doc``, ``sents``, ``clusters`` of ``[first, last]``."""
    record = {"doc": passage.doc, "sents": passage.sents, "clusters": passage.clusters}
    return json.dumps(record, ensure_ascii=False)


if __name__ == "__main__":
    for name, text in derived().items():
        path(name).write_text(text, encoding="utf8", newline="\n")
