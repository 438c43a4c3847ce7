"""Chat templates, run within bounds of memory and time, and texts that models go on with."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jinja2.exceptions import TemplateError

from headcount.errors import InputError
from headcount.models import Subject, eval_mode
from headcount.tasks import LanguageModelling, Task
from headcount.text import Place

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

#: What a template may take for all texts of a call: seconds of a core, with some more for every
#: text, bytes of memory, and characters around a text.
_SECONDS, _MORE, _MEMORY, _AROUND = 10, 0.01, 1 << 30, 100_000


def chat_turns(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], **how: Any) -> list[str]:
    """Each text as one user turn, as the model's template writes it, without an answer's start.

    A template is a program of whoever made the model: it runs in a process of its own, where
    memory and time are bounded. Where the system has no such (Windows), its output alone is.
    """
    if not hasattr(os, "fork"):
        return [_one_turn(tokenizer, text, how) for text in texts]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(json.dumps(_rendered_bounded(tokenizer, texts, how)).encode())
        finally:
            os._exit(0)
    try:
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            found = json.loads(pipe.read() or b"null")
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        os.waitpid(child, 0)
    if isinstance(found, list):
        return found
    raise InputError(found or f"The chat template takes more than {_SECONDS} seconds or 1 GB.")


def _rendered_bounded(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], how: dict[str, Any]
) -> list[str] | str:
    """The rendered texts, or what is wrong with the template, within bounds of memory and time."""
    import resource

    def bound(what: int, most: int) -> None:
        _, hard = resource.getrlimit(what)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(OSError, ValueError):  # a system that does not bound this
            resource.setrlimit(what, (allowed, hard))

    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    bound(resource.RLIMIT_CPU, math.ceil(_SECONDS + _MORE * len(texts)))
    bound(resource.RLIMIT_CORE, 0)
    with contextlib.suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        bound(resource.RLIMIT_AS, pages * resource.getpagesize() + _MEMORY)
    try:
        return [_one_turn(tokenizer, text, how) for text in texts]
    except InputError as error:
        return str(error)


def _one_turn(tokenizer: PreTrainedTokenizerBase, text: str, how: dict[str, Any]) -> str:
    turn = [{"role": "user", "content": text}]
    usual = {"tokenize": False, "add_generation_prompt": False}
    try:
        found = str(tokenizer.apply_chat_template(turn, **usual | how))
    except TemplateError as error:
        raise InputError(f"The chat template refuses a single user turn: {error}") from error
    except Exception as error:  # whatever a program of somebody else may raise
        why = f"{type(error).__name__}: {error}".strip().rstrip(":")
        raise InputError(f"The chat template breaks on a single user turn: {why}") from error
    if len(found) > _AROUND + 10 * len(text):
        raise InputError(
            f"The chat template writes {len(found):,} characters for a turn of {len(text):,}; "
            f"headcount takes {_AROUND:,} and ten times the text."
        )
    return found


def continued(subject: Subject, prompt: str, *, tokens: int = 24, chat: bool = False) -> str:
    """What a model says after a prompt, greedily; in chat, its answer to it."""
    tokenizer: Any = subject.tokenizer
    if chat:
        turns = chat_turns(tokenizer, [prompt], add_generation_prompt=True)
        given = tokenizer(turns, add_special_tokens=False, return_tensors="pt")
    else:
        given = tokenizer(prompt, return_tensors="pt")
    inputs = {name: given[name].to(subject.device) for name in ("input_ids", "attention_mask")}
    with eval_mode(subject.model), torch.no_grad():
        said = subject.model.generate(
            **inputs, max_new_tokens=tokens, do_sample=False, pad_token_id=tokenizer.eos_token_id
        )
    return str(tokenizer.decode(said[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True))


#: Prompts that are continued before and after, words of each, and new tokens.
_PROMPTS, _WORDS, _TOKENS = 3, 8, 24


def continuations(subject: Subject, small: Subject, task: Task) -> tuple[tuple[str, str, str], ...]:
    """A few texts of an lm task begun and continued, greedily, by the whole model and the other."""
    if not isinstance(task, LanguageModelling) or subject.tokenizer is None:
        return ()
    if not subject.inner.can_generate():
        return ()
    found = []
    for example in task.examples[:_PROMPTS]:
        prompt = " ".join(example.text.split()[:_WORDS])
        both = (continued(one, prompt, tokens=_TOKENS, chat=task.chat) for one in (subject, small))
        found.append((prompt, *both))
    return tuple(found)  # type: ignore[arg-type]


_STAND_IN = "\ue000headcount\ue001"


@dataclass(frozen=True)
class Frame:
    """What a chat template writes before and after the user's text."""

    before: str
    after: str

    def content(self, rendered: str) -> tuple[int, int]:
        """The place of the user's text in a rendered turn; empty if it is not there.

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


def framed_turns(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]
) -> tuple[Frame, list[str]]:
    """Each text as one user turn, and what the template writes around it."""
    first, *rendered = chat_turns(tokenizer, [_STAND_IN, *texts])
    before, _, after = first.partition(_STAND_IN)
    return Frame(before, after), rendered
