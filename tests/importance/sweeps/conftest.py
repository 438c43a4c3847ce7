"""Fixtures of sweeps: every kind of task with its model."""

from __future__ import annotations

from typing import Any

import pytest
from small_tasks import KINDS

from headcount.models.subject import Subject


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def subject_and_task(kind: str) -> tuple[Subject, Any]:
    return KINDS[kind]()


@pytest.fixture
def classifying() -> tuple[Subject, Any]:
    return KINDS["classification"]()
