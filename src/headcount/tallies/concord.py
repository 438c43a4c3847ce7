"""Number, gender and person of a mention, as far as its words give them away (English).

For the third sieve of the rule system that Clark et al., BlackBoxNLP 2019, section 4.3, compare
with (after Lee et al. 2011). What is not known agrees with everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headcount.text.sentence import Word

__all__ = ["PRONOUNS", "Concord", "agree", "concord_of"]


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
