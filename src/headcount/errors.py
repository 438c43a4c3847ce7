"""The error tree: every mistake a user can make, and the exit code it ends with.

::

    HeadcountError            exit 1   anything that went wrong for a reason we can name
    ├── UsageError            exit 2   the call itself is wrong: an option, a name, a value
    │   └── UnknownHead       exit 2   a head that the model does not have
    ├── InputError            exit 1   a file or text that cannot be read as what it should be
    ├── ModelError            exit 1   a model that cannot be loaded or used
    │   └── UnsupportedModel  exit 1   a model whose heads cannot be reached soundly
    ├── RunError              exit 1   a run directory, its schema or its journal
    └── StatsError            exit 1   a statistical test that the data do not allow

A message is one sentence or two: the thing, the value, what is allowed, the next step. It is one
line of bounded length in which control characters are spelled out, whatever a file or a library
put into it: it can be printed to any terminal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar
from unicodedata import category

# --- The error tree -----------------------------------------------------------------------------

#: Characters of a message; of a longer one the middle goes.
_LONGEST = 1_200


def printable(text: str, keep: str = "") -> str:
    """Text from outside for any terminal: control and direction characters spelled out.

    Joiners, which letters and emoji need, and blanks of any width stay as they are.

    >>> printable("run\\x1b[2J\\u202e.txt"), printable("two\\nlines", keep="\\n")
    ('run\\\\x1b[2J\\\\u202e.txt', 'two\\nlines')
    """
    if text.isprintable():
        return text
    return "".join(
        sign
        if sign.isprintable() or sign in keep + "\u200c\u200d" or category(sign) == "Zs"
        else sign.encode("unicode_escape").decode()
        for sign in text
    )


def _one_line(message: str) -> str:
    """The message without line ends and control characters, and not too long.

    >>> _one_line("a.tsv has the label 'x\\x1b[31m\\ty';\\ngive a number.")
    "a.tsv has the label 'x\\\\x1b[31m\\\\ty'; give a number."
    """
    shown = printable(" ".join(line.strip() for line in message.splitlines()))
    if len(shown) > _LONGEST:
        shown = f"{shown[: _LONGEST * 2 // 3]} [...] {shown[-_LONGEST // 3 :]}"
    return shown


class HeadcountError(Exception):
    """An error with a known reason; the command line prints it and exits 1."""

    exit_code = 1

    def __init__(self, message: object = "") -> None:
        super().__init__(_one_line(str(message)))


class UsageError(HeadcountError):
    """The call itself is wrong: an option, a name or a value that is not allowed."""

    exit_code = 2


class UnknownHead(UsageError):
    """A head that the model does not have."""


class InputError(HeadcountError):
    """A file or text that cannot be read as what it should be."""


class ModelError(HeadcountError):
    """A model that cannot be loaded or used."""


class UnsupportedModel(ModelError):
    """A model whose attention heads cannot be reached soundly."""


class RunError(HeadcountError):
    """A run directory, its schema or its journal that cannot be used."""


class StatsError(HeadcountError):
    """A statistical test that the data do not allow."""


# --- Conventions --------------------------------------------------------------------------------

#: How a method is read: our way, as the paper says, as the authors' program computes it.
CONVENTIONS = ("headcount", "paper", "code")


def check_convention(convention: str, without_program: str = "") -> None:
    """Refuse a convention that does not exist, or `code` where the authors published no program.

    `without_program` names what has no program, with its verb.

    >>> check_convention("coda")
    Traceback (most recent call last):
    headcount.errors.UsageError: There is no convention 'coda'; choose headcount, paper or code.
    """
    if convention not in CONVENTIONS:
        raise UsageError(f"There is no convention '{convention}'; choose headcount, paper or code.")
    if without_program and convention == "code":
        raise UsageError(
            f"{without_program} not exist under the convention 'code': the authors published no "
            "program for it; use the convention headcount or paper."
        )


# --- Faults of single sentences -----------------------------------------------------------------

Block = TypeVar("Block")
Found = TypeVar("Found")

#: What can be skipped, as the reasons write it, to be put in the singular.
_THINGS = re.compile(
    r"\b(line|row|column|node|comment|sentence|word|mention|bracket|argument|predicate)s\b"
)


class Fault(InputError):
    """One sentence that cannot be used; `reason` names its kind, in the plural."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


def sound(
    blocks: Iterable[Block],
    read: Callable[[Block], Found | None],
    skipped: Counter[str],
    strict: bool = False,
) -> Iterator[Found]:
    """What can be read of each block; a faulty one is counted, or with `strict` refused.

    Where nothing can be read at all the first fault is raised: the file is not what it should be.

    >>> def read(text):
    ...     if not text.isdigit():
    ...         raise Fault(f"'{text}' is no number.", "odd lines")
    ...     return int(text)
    >>> skipped = Counter()
    >>> list(sound(["1", "x", "2"], read, skipped)), dict(skipped)
    ([1, 2], {'odd lines': 1})
    """
    first, some = None, False
    for block in blocks:
        try:
            found = read(block)
        except Fault as fault:
            if strict:
                raise
            first = first or fault
            skipped[fault.reason] += 1
            continue
        if found is not None:
            some = True
            yield found
    if first is not None and not some:
        raise first


def skipped_in_words(skipped: Mapping[str, int]) -> list[str]:
    """What was left out, a sentence each.

    >>> skipped_in_words({"blank lines": 2, "sentences with a cycle": 1})
    ['2 blank lines skipped.', '1 sentence with a cycle skipped.']
    """
    one = {what: _THINGS.sub(r"\1", what, count=1) for what in skipped}
    return [f"{n} {one[what] if n == 1 else what} skipped." for what, n in skipped.items()]


def install_hint(extra: str) -> str:
    """How an extra is installed, from a registry and from a clone.

    >>> install_hint("plot")
    "`pip install 'headcount[plot]'` (in a clone: `pip install '.[plot]'`)"
    """
    return f"`pip install 'headcount[{extra}]'` (in a clone: `pip install '.[{extra}]'`)"
