"""The closed list of roles; whatever else a role of your own finds is `other`, told by its label.

A picture or a page needs one colour and one sign for each of these, and for no more.
"""

from __future__ import annotations

from dataclasses import dataclass

from headcount.errors import UsageError

__all__ = ["KINDS", "Kind", "kind_of"]


@dataclass(frozen=True)
class Kind:
    """A role's name with what such a head does, in a few words."""

    name: str
    meaning: str
    paper: str = ""


#: Every role of the toolkit, in the order in which people read them.
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("positional", "points to one offset", "Voita et al. 2019, section 5.1"),
        Kind("syntactic", "points along a dependency", "Voita et al. 2019, section 5.2"),
        Kind("rare", "points to the rarest token", "Voita et al. 2019, section 5.3"),
        Kind("coreference", "points to an antecedent", "Clark et al. 2019, section 4.3"),
        Kind("argument", "links predicate and argument", "Kovaleva et al. 2019, section 4.2"),
        Kind("feature", "looks at one kind of word", "Kovaleva et al. 2019, section 4.4"),
        Kind("separator", "rests on separators", "Clark et al. 2019, section 3.2"),
        Kind("punctuation", "looks at punctuation", "Clark et al. 2019, section 3.2"),
        Kind("broad", "spreads over the whole text", "Clark et al. 2019, section 3.3"),
        Kind("sink", "rests on the first token", "Xiao et al. 2024"),
        Kind("previous", "looks at the token before", "Elhage et al. 2021"),
        Kind("duplicate", "looks at the same token earlier", "Wang et al. 2023"),
        Kind("induction", "looks at what followed last time", "Olsson et al. 2022"),
        Kind("retrieval", "copies from far back", "Wu et al. 2024"),
        Kind("alignment", "points to the word's translation", "Garg et al. 2019"),
        Kind("source-end", "rests on the end of the source", "Voita et al. 2019"),
        Kind("other", "told by its label"),
    )
}


def kind_of(role: str) -> Kind:
    """The kind of a role by its name.

    >>> kind_of("rare").meaning
    'points to the rarest token'
    """
    if role not in KINDS:
        raise UsageError(
            f"There is no role '{role}'; there are {', '.join(KINDS)}. A role of your own is "
            "'other' with a label."
        )
    return KINDS[role]
