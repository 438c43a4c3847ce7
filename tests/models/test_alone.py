"""One thread at a time hangs things on a model; the same thread as often as it likes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from tiny import TINY

from headcount.errors import UsageError
from headcount.models import dummy_forward as room
from headcount.models.anatomy import anatomy_of
from headcount.models.dummy_forward import alone
from headcount.models.subject import Subject
from headcount.wiring import tap, valve


def raised_in_a_thread(work: Callable[[], Any]) -> list[BaseException]:
    """What another thread's work raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised


@pytest.mark.parametrize("opened", [tap, lambda subject: valve(subject, {})], ids=["tap", "valve"])
def test_another_thread_is_refused_until_the_block_ends(
    opened: Callable[[Subject], AbstractContextManager[Any]],
) -> None:
    subject = Subject(TINY["bert"]())
    assert subject.heads

    def elsewhere() -> None:
        with opened(subject):
            pass

    with opened(subject), opened(subject):
        (error,) = raised_in_a_thread(elsewhere)
        assert isinstance(error, UsageError)
        assert "BertModel is being read or scaled in another thread" in str(error)
        (error,) = raised_in_a_thread(lambda: anatomy_of(subject.model))
        assert isinstance(error, UsageError)
    assert raised_in_a_thread(elsewhere) == []
    assert not room._HOLDERS


def test_other_models_are_free() -> None:
    with alone(TINY["bert"]()):
        assert raised_in_a_thread(lambda: anatomy_of(TINY["bert"]())) == []
