"""`python -m research.translator.counts --data DIR`: how often each piece occurs in training.

Writes `token_counts.json` next to the bundled translator, or into `--folder`: for each side a count
for every id of the vocabulary, over the pairs that it was trained on, cut the one best way.
"""

from __future__ import annotations

import argparse
import json
import os
from importlib.resources import files
from pathlib import Path

import numpy as np

from .config import Data, read_config
from .pairs import read_splits
from .pieces import encode

__all__ = ["write_counts"]

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.translator.counts", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--config", type=Path, default=HERE / "config.en-de.toml")
    bundled = Path(str(files("headcount.bundle"))) / "translator"
    parser.add_argument("--folder", type=Path, default=bundled, help="the trained translator")
    given = parser.parse_args()
    inner = Path(given.data) / "parallel"
    data = inner if inner.is_dir() else Path(given.data)
    write_counts(read_config(given.config).data, data, given.folder)


def write_counts(corpus: Data, data: Path | None, folder: Path) -> None:
    """Count the training text of a translator with its own pieces."""
    pairs = read_splits(corpus, data).train
    size = len(json.loads((folder / "vocab.json").read_text(encoding="utf8")))
    sides = {"source": [p.source for p in pairs], "target": [p.target for p in pairs]}
    told = {
        side: np.bincount(encode(texts, folder, processes=1)[0], minlength=size).tolist()
        for side, texts in sides.items()
    }
    text = json.dumps(told, separators=(",", ":"))
    (folder / "token_counts.json").write_text(text + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
