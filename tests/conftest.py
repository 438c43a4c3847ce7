"""Fixtures that every room's tests may ask for: real models and corpora, when they are there."""

from __future__ import annotations

import ctypes
import gc
import os
import random
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from browsers import axe_script, chromium  # noqa: F401 - one browser for the report's page and the local one
from command_line import headcount, saved  # noqa: F401 - fixtures of the command line
from hypothesis import settings

from headcount.records import progress

# Commands broken off and many rounds of work take minutes: `make kills` and `make soak` run them,
# or HEADCOUNT_LONG=1 with the others.
collect_ignore = [] if os.environ.get("HEADCOUNT_LONG") else ["kills", "soak"]

# Bars of long work would stand between what tests print.
progress(False)

# Without a GPU kernels are run by Triton's interpreter; it must be told before it is imported.
if not Path("/dev/nvidia0").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")

# The same examples in every run: a change turns a test red, luck does not. Look for more examples
# with HYPOTHESIS_SEARCH=1.
settings.register_profile(
    "same", derandomize=not os.environ.get("HYPOTHESIS_SEARCH"), deadline=None
)
settings.load_profile("same")

if TYPE_CHECKING:
    from headcount.models.subject import Subject


# So are the weights of random models: every fixture and every test draws from a seed of its own.
def seed_by_name(name: str) -> None:
    """Seed all generators by a name: other names draw other weights."""
    seed = zlib.crc32(name.encode())
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef, request: pytest.FixtureRequest) -> None:
    seed_by_name(f"{fixturedef.baseid} {fixturedef.argname} {request.param_index}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    seed_by_name(item.nodeid)


# Models of past tests wait in cycles, and the allocator keeps what they gave back: a worker held
# gigabytes of nothing. Looking is free; clearing takes half a second.
GROWN = 150 * 2**20


class Memory:
    """What the process holds, cleared after a test by which it has grown much."""

    def __init__(self) -> None:
        self.pages = Path("/proc/self/statm")  # Linux alone has it, and its allocator the trimming
        self.trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if self.pages.exists() else None
        self.least = self.held() if self.trim else 0

    def held(self) -> int:
        """Bytes in memory."""
        return int(self.pages.read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    def clear(self) -> None:
        """Give back what nothing holds, where that may be much."""
        if self.trim and self.held() > self.least + GROWN:
            gc.collect()
            self.trim(0)
            self.least = self.held()


MEMORY = Memory()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    MEMORY.clear()


def real(name: str) -> Subject:
    """A real model from the cache, on the CPU; skips the test when it was not fetched."""
    from headcount.models.finding import is_model, model_dir
    from headcount.models.loading import load

    if not is_model(model_dir(name)):
        pytest.skip(f"the model {name} is not in {model_dir(name).parent}; run `make models`")
    return load(name, device="cpu")


@pytest.fixture(scope="session")
def minilm() -> Subject:
    """all-MiniLM-L6-v2: BERT, 6 layers x 12 heads. Shared by all tests: leave it as it is."""
    return real("minilm")


@pytest.fixture(scope="session")
def smollm2() -> Subject:
    """SmolLM2-135M: Llama, 30 layers x 9 query heads on 3 key heads."""
    return real("smollm2")


@pytest.fixture(scope="session")
def e5_small() -> Subject:
    """e5-small: BERT, 12 layers x 12 heads."""
    return real("e5-small")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of corpora that ``HEADCOUNT_DATA`` names; skips the test when it is not set."""
    named = os.environ.get("HEADCOUNT_DATA")
    if not named or not Path(named).is_dir():
        pytest.skip("HEADCOUNT_DATA names no folder; set it to the folder of corpora")
    return Path(named)
