"""Best heads of dependency relations: Clark's Table 1, three treebanks, four languages."""

from __future__ import annotations

from typing import Any

import headcount as hc

from ..reading import best, verdicts
from .markdown import MODELS, NONE, Survey, Surveys, encoders, percent, short, star, table

__all__ = ["clark", "languages", "minilm", "universal"]

#: Clark et al. 2019, Table 1: accuracy of the best head and of the best offset, BERT-base on WSJ.
CLARK = {
    "all": (34.5, 26.3), "prep": (66.7, 61.8), "pobj": (76.3, 34.6), "det": (94.3, 51.7),
    "nn": (70.4, 70.2), "nsubj": (58.5, 45.5), "amod": (75.6, 68.3), "dobj": (86.8, 40.0),
    "advmod": (48.8, 40.2), "aux": (81.1, 71.5), "poss": (80.5, 47.7), "auxpass": (82.5, 40.5),
    "ccomp": (48.8, 12.4), "mark": (50.7, 14.5), "prt": (99.1, 91.4),
}  # fmt: skip
TREEBANKS = {"ewt": "EWT", "gum": "GUM", "pud-en": "PUD"}
LANGUAGES = ("en", "de", "fr", "ru")
RELATIONS = ("all", "det", "obj", "nsubj", "amod", "case", "advmod", "aux", "mark", "conj")


def clark(surveys: Surveys) -> str:
    """Clark's Table 1: a relation a row, each model's held-out, offset, twin and naive figures."""
    models = encoders(surveys, "stanford")
    head = ["relation", "BERT-base, published"]
    for title in models:
        head += [f"{title}: head", "held out [95%]", "offset", "twin", "naive"]
    rows = []
    for relation, (published, offset) in CLARK.items():
        found = [best(one, relation) for one in models.values()]
        if any(found):
            cells = [cell for row in found for cell in _whole(row)]
            rows.append([relation, f"{published} / {offset}", *cells])
    return table(head, rows)


def _whole(row: dict[str, Any] | None) -> list[str]:
    if row is None:
        return [NONE] * 5
    interval = f"[{percent(row['low'])}, {percent(row['high'])}]"
    return [
        f"`{row['head']}` {row['direction'].replace('<', '&lt;')}",
        f"{percent(row['accuracy'])} {interval}{star(row)}",
        f"{percent(row['baseline'])} ({row['offset']:+.0f})",
        percent(row.get("control")),
        f"{percent(row['naive_accuracy'])} / {percent(row['naive_baseline'])}",
    ]


def universal(surveys: Surveys) -> str:
    """The best held-out head of universal relations on three English treebanks."""
    columns = {
        f"{title}, {bank}": surveys[f"{short}-{corpus}"]
        for short, title in MODELS.items()
        for corpus, bank in TREEBANKS.items()
        if f"{short}-{corpus}" in surveys
    }
    rows = [[name, *(short(best(one, name)) for one in columns.values())] for name in RELATIONS]
    return table(["relation", *columns], rows)


def minilm(surveys: Surveys) -> str:
    """MiniLM's syntactic heads by verdicts on EWT, and which of these hold on GUM too."""
    empty: Survey = {"roles": []}
    found = (surveys.get(name, empty) for name in ("minilm-ewt", "minilm-gum"))
    own, other = ([row for row in verdicts(one, "syntactic") if _clear(row)] for one in found)
    again = {(row["head"], row["label"]) for row in other}
    rows: dict[str, list[str]] = {}
    for row in own:
        holds = "" if (row["head"], row["label"]) in again else ", not on GUM"
        figures = f"{percent(row['value'])} [{percent(row['low'])}, {percent(row['high'])}]"
        baselines = f"offset {percent(row['baseline'])}, twin {percent(row.get('control'))}"
        label = row["label"].replace("<", "&lt;")
        rows.setdefault(row["head"], []).append(f"{label} {figures} ({baselines}{holds})")
    told = [[f"`{head}`", "; ".join(said)] for head, said in rows.items()]
    return table(["head", "relations that it follows, clearest first"], told)


def _clear(row: dict[str, Any]) -> bool:
    """Whether the whole interval is so far above the offset as `hc.roles.Syntactic` asks."""
    return bool(row["low"] - row["baseline"] >= hc.roles.Syntactic().margin - 1e-9)


def languages(surveys: Surveys) -> str:
    """The best held-out head on the same sentences in four languages."""
    columns = {
        f"{title}, {language}": surveys[f"{short}-pud-{language}"]
        for short, title in MODELS.items()
        for language in LANGUAGES
        if f"{short}-pud-{language}" in surveys
    }
    names = ("all", "det", "nsubj", "obj", "amod", "case", "advmod", "nmod")
    rows = [[name, *(short(best(one, name)) for one in columns.values())] for name in names]
    pieces = [_pieces(one) for one in columns.values()]
    counts = [
        str(len({row["head"] for row in verdicts(one, "syntactic")})) for one in columns.values()
    ]
    rows += [["pieces a word", *pieces], ["syntactic heads", *counts]]
    return table(["relation", *columns], rows)


def _pieces(survey: Survey) -> str:
    """Tokens a word, without the two special ones of each sentence."""
    [about] = survey["provenance"]["corpora"].values()
    counts = about["counts"]
    return f"{(counts['tokens']['source'] - 2 * counts['rows']) / counts['words']:.2f}"
