"""The chaos script in its short setting: one kill of each kind that the seed draws first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="chaos needs a Ray cluster: pip install 'headcount[ray]'")


@pytest.mark.skipif("HEADCOUNT_LONG" not in os.environ, reason="minutes: set HEADCOUNT_LONG=1")
def test_a_few_kills_change_nothing(tmp_path: Path) -> None:
    out = tmp_path / "chaos.json"
    line = [sys.executable, str(Path(__file__).parent), "--each", "1", "--only", "score"]
    done = subprocess.run([*line, "--json", str(out)], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = json.loads(out.read_text())["rows"]
    assert [row["killed"] for row in rows] == ["worker", "node", "driver"]
    assert all(row["held"] == row["tried"] == 1 for row in rows)
