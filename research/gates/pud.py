"""`python -m research.gates.pud --data DIR --out FILE`: PUD's English and German as pairs.

The 1,000 sentences of the parallel treebanks, translated by professionals, none of them from
Tatoeba: a test that no setting of ours was chosen on. (Every Tatoeba pair at hand is in train, dev
or test, so a third draw of Tatoeba cannot be had.)
"""

from __future__ import annotations

import argparse
import lzma
import os
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.gates.pud", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    sides = [
        _texts(Path(given.data) / "treebanks" / f"{one}_pud-ud-test.conllu.xz")
        for one in ("en", "de")
    ]
    lines = [f"{sides[0][name]}\t{sides[1][name]}\n" for name in sides[0]]
    given.out.write_text("".join(lines), encoding="utf8")


def _texts(path: Path) -> dict[str, str]:
    """Sentence id to text."""
    found, name = {}, ""
    with lzma.open(path, "rt", encoding="utf8") as file:
        for line in file:
            key, _, value = line.rstrip("\n").partition(" = ")
            if key == "# sent_id":
                name = value
            elif key == "# text":
                found[name] = " ".join(value.split())
    return found


if __name__ == "__main__":
    main()
