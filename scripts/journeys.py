"""How many modules of headcount a command walks through: those whose code runs, not those loaded.

    python scripts/journeys.py [--source FOLDER] [-o FILE]

Runs four commands on the bundled translator, each in a Python of its own under `sys.setprofile`,
and prints one line of JSON: the modules of each journey, the seconds of ``import headcount`` and
of ``headcount --help``. With --source, another checkout's `src` is walked, to compare.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAIRS = "translation:{sample}/sample.en-de.tsv,metric=loss"

JOURNEYS = {
    "survey": ["survey", "translator", "--pairs", "{sample}/sample.en-de.tsv", "--limit", "4"],
    "score": ["score", "translator", "--task", PAIRS, "--by", "ablation", "--limit", "2"],
    "prune": ["prune", "translator", "--task", PAIRS, "--keep", "140", "--limit", "8"],
    "report": ["report", "--limit", "5"],
}
#: Where each command writes.
OUTPUT = {"survey": ["-o"], "score": ["-o"], "prune": ["-o"], "report": ["--run"]}

_WALK = """
import os, sys
root = os.path.join({source!r}, "headcount") + os.sep
walked = set()
def profile(frame, event, _):
    file = frame.f_code.co_filename
    if event == "call" and file.startswith(root) and frame.f_code.co_name != "<module>":
        walked.add(file)
sys.argv = ["headcount", *{arguments!r}]
from headcount.cli.main import run
import threading
threading.setprofile(profile); sys.setprofile(profile)
try:
    run()
except SystemExit as end:
    assert not end.code, end.code
finally:
    sys.setprofile(None)
    print("modules", sum(not file.endswith("__init__.py") for file in walked))
"""


def journey(name: str, source: Path) -> int:
    """The number of modules whose functions one command runs."""
    sample = source / "headcount" / "bundle" / "sample"
    arguments = [word.format(sample=sample) for word in JOURNEYS[name]]
    with tempfile.TemporaryDirectory() as folder:
        arguments += [*OUTPUT[name], f"{folder}/out"]
        code = _WALK.format(source=str(source), arguments=arguments)
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            cwd=folder,
            env=_env(source),
        )
    if done.returncode:
        raise SystemExit(f"headcount {' '.join(arguments)} failed: {done.stderr[-500:]}")
    return int(done.stdout.split()[-1])


def seconds(code: str, source: Path) -> float:
    """The least time of five runs of a Python that does nothing else."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, env=_env(source)
        )
        times.append(time.perf_counter() - start)
    return round(min(times), 3)


def _env(source: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}


def main() -> None:
    """Print the figures, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, default=ROOT / "src")
    parser.add_argument("-o", "--out", type=Path)
    given = parser.parse_args()
    source = given.source.resolve()
    helped = (
        "import sys; sys.argv = ['headcount', '--help']; from headcount.cli.main import run; run()"
    )
    found = {
        "modules": {name: journey(name, source) for name in JOURNEYS},
        "import_seconds": seconds("import headcount", source),
        "help_seconds": seconds(helped, source),
    }
    print(json.dumps(found))
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
