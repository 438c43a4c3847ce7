"""A sentence as one user turn of an instruct model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jinja2.exceptions import TemplateError

from headcount.errors import InputError, UsageError
from headcount.text.rows import Place

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Frame", "frame_of", "must_have_template", "render"]

_STAND_IN = "\ue000headcount\ue001"


@dataclass(frozen=True)
class Frame:
    """What a chat template writes before and after the user's text."""

    before: str
    after: str

    def content(self, rendered: str) -> tuple[int, int]:
        """Where the user's text stands in a rendered turn; an empty place if it is not there.

        >>> Frame("<user>", "<end>").content("<user>Hi<end>")
        (6, 8)
        """
        start, end = len(self.before), len(rendered) - len(self.after)
        framed = rendered.startswith(self.before) and rendered.endswith(self.after)
        return (start, end) if framed and start <= end else (0, 0)

    def places(self, text: str, rendered: str, found: Sequence[tuple[int, int]]) -> list[Place]:
        """Places in a rendered turn as places in the user's text; None outside it.

        A template may strip the text; where it did anything else to it, nothing is known.

        >>> Frame("<user>", "<end>").places(" Hi", "<user>Hi<end>", [(0, 6), (6, 8), (8, 13)])
        [None, (1, 3), None]
        """
        start, end = self.content(rendered)
        shift = text.find(rendered[start:end]) - start
        if rendered[start:end] not in (text, text.strip()):
            return [None] * len(found)
        return [
            (first + shift, last + shift) if start <= first and last <= end else None
            for first, last in found
        ]


def must_have_template(tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse a tokenizer that has no chat template."""
    if not getattr(tokenizer, "chat_template", None):
        raise UsageError(
            f"{type(tokenizer).__name__} has no chat template; leave out chat=True (--chat), or "
            "use the instruct version of the model."
        )


def render(tokenizer: PreTrainedTokenizerBase, text: str) -> str:
    """One user turn as the model's template writes it, without the start of an answer."""
    turn = [{"role": "user", "content": text}]
    try:
        return str(tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=False))
    except TemplateError as error:
        raise InputError(f"The chat template refuses a single user turn: {error}") from error


def frame_of(tokenizer: PreTrainedTokenizerBase) -> Frame:
    """The frame of a template, found with a stand-in for the text."""
    before, _, after = render(tokenizer, _STAND_IN).partition(_STAND_IN)
    return Frame(before, after)
