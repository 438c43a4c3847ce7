"""Survey and score again and again in one process, and say what grew.

python tests/soak [--rounds 300] [--minutes 0] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from soak.rounds import soak


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=0, help="go on for so long, at least")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found = soak(asked.rounds, minutes=asked.minutes)
    print(json.dumps(found, indent=1))
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")
    counted = {key: value for key, value in found["growth"].items() if key != "megabytes"}
    sys.exit(1 if any(counted.values()) or found["different_results"] else 0)


if __name__ == "__main__":
    main()
