"""How many modules of headcount each of the four walks loads: survey, score, prune, report.

python scripts/walks.py OUT.json
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

WALKS = {
    "survey": "survey translator --text sample --limit 2",
    "score": "score translator --task translation:sample --limit 2 --by gradient",
    "prune": "prune translator --task translation:sample --limit 8 --dry-run --keep 140",
    "report": "report translator --limit 8 -o {0}/page.html --run {0}/run",
}
CODE = """
import sys
from headcount.cli.main import run
try:
    run()
except SystemExit as end:
    code = end.code or 0
names = [n for n, m in sys.modules.items() if n.startswith("headcount.") and
         not str(getattr(m, "__file__", "")).endswith("__init__.py")]
rooms = [n for n in names if n.startswith("headcount.rooms.")]
print("\\n" + repr((code, len(names), len(rooms))), file=sys.stderr)
"""


def main(out: Path) -> None:
    """Run each walk in a process of its own and write what it loaded."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, words in WALKS.items():
            command = [sys.executable, "-c", CODE, *words.format(folder).split()]
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
            last = done.stderr.strip().splitlines()[-1]
            code, modules, rooms = (int(one) for one in last.strip("()").split(","))
            found[name] = {"exit": code, "modules": modules, "of rooms": rooms}
            print(name, found[name], flush=True)
    out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
