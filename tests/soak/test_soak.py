"""Twenty rounds of work leave nothing behind; ``make soak`` runs three hundred."""

from __future__ import annotations

import sys

import pytest
from soak.rounds import soak


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_grows() -> None:
    found = soak(20)
    growth = found["growth"]
    assert growth.pop("megabytes") < 30
    assert growth == dict.fromkeys(growth, 0)
    assert found["different_results"] == 0
