"""Exhibits: a few sentences with every head's map of them, kept in a run for people to look at.

On disk ``exhibits/index.json`` (texts) and ``exhibits/<id>.npz`` (maps, float16, by "enc.0").
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount.errors import RunError, UsageError
from headcount.records import (
    STACKS,
    InnerPath,
    Run,
    json_decode,
    json_encode,
    npz_bytes,
    read_npz,
    reason,
)

#: The texts of the queries and of the keys, by stack, where there are two.
SIDES = {"enc": ("src", "src"), "dec": ("tgt", "tgt"), "cross": ("tgt", "src")}

Floats = NDArray[np.float32]
_INDEX, _SCHEMA = "index.json", 1
_ID = re.compile(r"[a-z0-9][a-z0-9-]*")


@dataclass(frozen=True)
class Text:
    """The tokens of one text, which of them the tokenizer added, and their words.

    >>> Text(["[CLS]", "un", "##do"], [True, False, False], [-1, 0, 0], ["undo"]).words
    [-1, 0, 0]
    """

    tokens: list[str]
    special: list[bool]
    #: The number of each token's word, -1 for none; None where words are not known.
    words: list[int] | None = None
    word_texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse lists that do not belong together."""
        for what, marks in (("special", self.special), ("words", self.words)):
            if marks is not None and len(marks) != len(self.tokens):
                raise UsageError(
                    f"'{what}' has {len(marks)} places, and there are {len(self.tokens)} tokens; "
                    "give one a token."
                )
        if max(self.words or [-1]) >= len(self.word_texts):
            raise UsageError(f"A token is of word {max(self.words or [])}, which has no text.")


@dataclass(frozen=True)
class Exhibit:
    """One sentence, or a pair, and the map ``[head, query, key]`` of each layer of each stack."""

    id: str
    title: str
    #: "src", and "tgt" where there is a second.
    texts: dict[str, Text]
    #: The texts of the queries and of the keys, by stack.
    sides: dict[str, tuple[str, str]]
    maps: dict[tuple[str, int], Floats]
    #: Whether the text is the user's own, rather than from the bundled sample.
    own_text: bool = False
    #: Known arcs between words: the text, the relation, the dependent and its head, by number.
    arcs: list[tuple[str, str, int, int]] = field(default_factory=list)
    #: Known translations: the place of a token of "tgt", and of one of "src".
    links: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse a name that is no file name, and maps that do not fit the texts."""
        if not _ID.fullmatch(self.id):
            raise UsageError(
                f"'{self.id}' cannot name an exhibit; use small letters, digits and -."
            )
        for (stack, layer), maps in self.maps.items():
            queries, keys = self.sides[stack]
            shape = len(self.texts[queries].tokens), len(self.texts[keys].tokens)
            if maps.shape[-2:] != shape:
                raise UsageError(
                    f"The map of {stack}.{layer} in exhibit {self.id} is {maps.shape[-2:]}; its "
                    f"texts have {shape} tokens."
                )

        for text, relation, word, head in self.arcs:
            if not 0 <= min(word, head) <= max(word, head) < len(self.texts[text].word_texts):
                raise UsageError(f"An arc '{relation}' of exhibit {self.id} is between no words.")

    def described(self, text: Callable[[Text], dict[str, Any]]) -> dict[str, Any]:
        """All but its maps, each text as it is to be described."""
        return {
            "id": self.id,
            "title": self.title,
            "own_text": self.own_text,
            "texts": {name: text(one) for name, one in self.texts.items()},
            "sides": {stack: list(sides) for stack, sides in self.sides.items()},
            "arcs": self.arcs,
            "links": self.links,
        }

    @property
    def bytes(self) -> int:
        """What its maps take on the disk, before packing."""
        return sum(2 * maps.size for maps in self.maps.values())


def write_exhibits(run: Run, exhibits: Sequence[Exhibit]) -> None:
    """Put exhibits into a run, in place of those that were there."""
    ids = [one.id for one in exhibits]
    for name in ids:
        if ids.count(name) > 1:
            raise UsageError(f"Two exhibits are named '{name}'; give each a name of its own.")
    folder = run.folder("exhibits", [_INDEX, *(f"{one.id}.npz" for one in exhibits)])
    for one in exhibits:
        places = sorted(one.maps, key=lambda place: (STACKS.index(place[0]), place[1]))
        maps = {f"{stack}.{layer}": one.maps[stack, layer] for stack, layer in places}
        halves = {key: values.astype("float16") for key, values in maps.items()}
        (folder / f"{one.id}.npz").write(npz_bytes(halves))
    index = {"schema": _SCHEMA, "exhibits": [one.described(vars) for one in exhibits]}
    (folder / _INDEX).write(json_encode(index, indent=1).encode() + b"\n")
    run.keep_only("exhibits", [_INDEX, *(f"{name}.npz" for name in ids)])


def read_exhibits(run: Run | str | Path) -> list[Exhibit]:
    """The exhibits of a run, in order; none where none were made."""
    folder = InnerPath.of(run.path if isinstance(run, Run) else run) / "exhibits"
    try:
        index = json_decode((folder / _INDEX).read())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"{folder / _INDEX} cannot be read: {reason(error)}.") from error
    except (ValueError, RecursionError) as error:
        raise RunError(_damaged(folder / _INDEX, error)) from error
    schema = index.get("schema", 0) if isinstance(index, dict) else None
    if not isinstance(schema, int):
        raise RunError(_damaged(folder / _INDEX, ValueError(f"its schema is {schema!r}")))
    if schema > _SCHEMA:
        raise RunError(
            f"{folder} was written by a newer headcount (schema {schema}, this one reads "
            f"{_SCHEMA}); update headcount, or leave exhibits out (--page no-exhibits)."
        )
    left = _MOST
    try:
        exhibits = []
        for entry in index["exhibits"]:
            exhibits.append(_read(folder, entry, left))
            left -= sum(one.nbytes // 2 for one in exhibits[-1].maps.values())  # halves on disk
        return exhibits
    except (LookupError, TypeError, ValueError, AttributeError, OSError, UsageError) as error:
        raise RunError(_damaged(folder, error)) from error


#: Bytes of the maps of all exhibits of a run on disk; a page draws a sixteenth of it.
_MOST = 1 << 28


def _read(folder: InnerPath, entry: dict[str, Any], most: int) -> Exhibit:
    if not _ID.fullmatch(str(entry["id"])):
        raise ValueError(f"'{entry['id']}' names no exhibit")
    maps: dict[tuple[str, int], Floats] = {}
    for key, kept in read_npz(folder / f"{entry['id']}.npz", most).items():
        stack, _, layer = key.partition(".")
        maps[stack, int(layer)] = kept.astype("float32")
    return Exhibit(
        id=entry["id"],
        title=str(entry["title"]),
        texts={name: Text(**text) for name, text in entry["texts"].items()},
        sides={stack: (sides[0], sides[1]) for stack, sides in entry["sides"].items()},
        maps=maps,
        own_text=bool(entry["own_text"]),
        arcs=[(str(a), str(b), int(c), int(d)) for a, b, c, d in entry.get("arcs", ())],
        links=[(int(target), int(source)) for target, source in entry.get("links", ())],
    )


def _damaged(path: InnerPath, error: Exception) -> str:
    return f"{path} is cut off or damaged ({error}); make the exhibits again."


# --- How a token is shown to people -------------------------------------------------------------

_NAMED = {" ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥", "": "∅"}
#: A space as SentencePiece writes it, and bytes that it has no piece for.
_PIECE_SPACE, _BYTE = "\u2581", re.compile(r"<0x([0-9A-F]{2})>")


def token_texts(tokens: Sequence[str]) -> list[str]:
    """Tokens as text: what byte-level and SentencePiece tokenizers write for letters and spaces.

    The space before a word goes, as long as something follows it. A character that several tokens
    share stands in each of them with its part. Tokens of other tokenizers stay as they are.

    >>> token_texts(["\u2581Mary", "s", "\u2581"]), token_texts(["\u0120Mary", "s", "\u010a"])
    (['Mary', 's', ' '], ['Mary', 's', '\\n'])
    >>> token_texts(["un", "##do", "\u0120x"])  # a letter of Maltese, in no text of bytes
    ['un', '##do', 'x']
    >>> token_texts(["\u2581", "<0xF0>", "<0x9F>", "<0x99>", "<0x82>"])
    [' ', '\U0001f642 1/4', '\U0001f642 2/4', '\U0001f642 3/4', '\U0001f642 4/4']
    """
    if any(token.startswith(_PIECE_SPACE) for token in tokens):
        spaced = [token.replace(_PIECE_SPACE, " ") for token in tokens]
        bytes_of = [_spelt(token) for token in spaced]
    elif any(token.startswith(("\u0120", "\u010a")) for token in tokens):
        alphabet = _byte_alphabet()
        if not all(sign in alphabet for token in tokens for sign in token):
            return list(tokens)
        bytes_of = [bytes(alphabet[sign] for sign in token) for token in tokens]
    else:
        return list(tokens)
    found = _shared_characters(bytes_of)
    if found is None:
        return list(tokens)
    return [text[1:] if text[:1] == " " and text.strip() else text for text in found]


def _spelt(token: str) -> bytes:
    byte = _BYTE.fullmatch(token)
    return bytes([int(byte[1], 16)]) if byte else token.encode("utf-8", "surrogatepass")


@cache
def _byte_alphabet() -> dict[str, int]:
    """The letter that byte-level tokenizers write for each byte (Radford et al. 2019)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + k): b for k, b in enumerate(others)}


def _shared_characters(parts: Sequence[bytes]) -> list[str] | None:
    """Each part as text, with a share where a character goes on in the next; None if it is none."""
    try:
        text = b"".join(parts).decode("utf-8")
    except UnicodeDecodeError:
        return None
    ends = list(accumulate(map(len, parts)))
    starts, found, at = [0, *ends[:-1]], [""] * len(parts), 0
    for character in text:
        size = len(character.encode("utf-8"))
        own = [k for k in range(bisect_right(ends, at), len(parts)) if starts[k] < at + size]
        own = [k for k in own if parts[k]]
        for turn, k in enumerate(own, 1):
            found[k] += character if len(own) == 1 else f"{character} {turn}/{len(own)}"
        at += size
    return found


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
