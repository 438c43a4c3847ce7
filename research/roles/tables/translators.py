"""Voita's Table 1 for two translators on two domains, and which roles recur."""

from __future__ import annotations

from ..reading import best, layer_of, role_heads, verdicts
from .markdown import NONE, Survey, Surveys, named, percent, short, table

__all__ = ["recurring", "relations_that_recur", "voita"]

#: Voita et al. 2019, Table 1: best head and baseline, WMT and OpenSubtitles, English to Russian.
VOITA = {
    ("nsubj", "head->dep"): ("verb to subject", "45 / 35", "77 / 45"),
    ("nsubj", "dep->head"): ("subject to verb", "52 / 35", "70 / 45"),
    ("obj", "head->dep"): ("verb to object", "78 / 41", "61 / 46"),
    ("obj", "dep->head"): ("object to verb", "73 / 41", "84 / 46"),
    ("amod", "head->dep"): ("noun to adjective", "74 / 72", "81 / 80"),
    ("amod", "dep->head"): ("adjective to noun", "82 / 72", "81 / 80"),
    ("advmod", "head->dep"): ("verb to adverb", "48 / 46", "38 / 33"),
    ("advmod", "dep->head"): ("adverb to verb", "52 / 46", "42 / 33"),
}
#: Roles that are compared; shares of attention (features) fall as sentences grow.
ROLES = ("positional", "syntactic", "rare", "sink", "alignment", "source-end")
TRANSLATED = {
    "de-tatoeba": "en-de, tatoeba", "de-lohelp": "en-de, lohelp",
    "ru-tatoeba": "en-ru, tatoeba", "ru-lohelp": "en-ru, lohelp",
}  # fmt: skip


def voita(surveys: Surveys) -> str:
    """Voita's Table 1: best head / baseline / twin, on held-out sentences."""
    models = named(surveys, TRANSLATED)
    rows = []
    for (relation, direction), (words, wmt, subtitles) in VOITA.items():
        cells = [short(best(one, relation, direction)) for one in models.values()]
        rows.append([relation, words, wmt, subtitles, *cells])
    return table(["relation", "direction", "WMT", "OpenSubtitles", *models], rows)


def recurring(surveys: Surveys) -> str:
    """How many heads of each stack have a role, and in which layers, by model and domain."""
    models = named(surveys, TRANSLATED)
    kinds = [
        (stack, role)
        for stack in ("enc", "dec", "cross")
        for role in ROLES
        if any(role in role_heads(one, stack) for one in models.values())
    ]
    rows = []
    for stack, role in kinds:
        heads = [role_heads(one, stack).get(role, []) for one in models.values()]
        rows.append([f"{stack}: {role}", *map(_count, heads)])
    return table(["role", *models], rows)


def _count(heads: list[str]) -> str:
    layers = sorted({layer_of(head) for head in heads})
    return f"{len(heads)} (layers {', '.join(map(str, layers))})" if heads else "0"


def relations_that_recur(surveys: Surveys) -> str:
    """Relations followed by some encoder head, in any direction: in which models and domains."""
    models = named(surveys, TRANSLATED)
    followed = [_followed(one) for one in models.values()]
    names = sorted(
        set().union(*followed), key=lambda name: (-sum(name in one for one in followed), name)
    )
    rows = [[name, *(one.get(name, NONE) for one in followed)] for name in names]
    return table(["relation", *models], rows)


def _followed(survey: Survey) -> dict[str, str]:
    """Relation to its clearest head with its figures."""
    found: dict[str, str] = {}
    for row in verdicts(survey, "syntactic"):
        relation = row["label"].rpartition(" ")[0]
        figures = f"`{row['head']}` {percent(row['value'])} / {percent(row['baseline'])}"
        found.setdefault(relation, figures)
    return found
