"""How a token is shown to people: nothing invisible, nothing that moves the text around."""

from __future__ import annotations

import unicodedata

__all__ = ["visible_token"]

_NAMED = {" ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥", "": "∅"}


def visible_token(token: str) -> str:
    """A token with its white space, control and direction characters made visible.

    >>> visible_token("a b"), visible_token(""), visible_token("x\\u202ey")
    ('a␣b', '∅', 'x⟨202e⟩y')
    """
    if not token:
        return _NAMED[""]
    return "".join(_visible(character) for character in token)


def _visible(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"):
        return f"⟨{ord(character):04x}⟩"
    return character
