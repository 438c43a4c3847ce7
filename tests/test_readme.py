"""The README is short, and its command lines run as they stand."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf8")
LINES = re.findall(r"^\| [^|]+ \| `(headcount [^`]+)` \|$", README, re.MULTILINE)

#: Fewer examples for the clock; what a line says is not changed. A server does not end by itself.
QUICK = {
    "report": "--limit 4",
    "survey": "--limit 6",
    "score": "--limit 3",
    "bench": "--batches 1 --lengths 8 --pairs 6",
    "compare": "--limit 4",
    "prune": "--limit 60",
    "show": "",
    "serve": "--help",
}


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= 800


def test_the_lines_of_the_readme_run_one_after_another(tmp_path: Path) -> None:
    assert [shlex.split(line)[1] for line in LINES] == [
        *("report", "survey", "score", "prune", "bench", "compare", "show", "serve"),
    ]
    start = [sys.executable, "-c", "from headcount.cli.main import run; run()"]
    for line in LINES:
        words = shlex.split(f"{line} {QUICK[shlex.split(line)[1]]}")[1:]
        done = subprocess.run(
            [*start, *words], cwd=tmp_path, capture_output=True, text=True, env={**os.environ}
        )
        assert done.returncode == 0, f"{line}\n{done.stderr[-2000:]}"
    assert (tmp_path / "report.html").is_file()
    assert (tmp_path / "small" / "model" / "README.md").is_file()


def test_the_page_of_roles_follows_the_rules() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "roles_page.py"), "--check"])
    assert done.returncode == 0, "run: python scripts/roles_page.py"
