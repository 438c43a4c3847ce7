"""`python -m research.surface --data DIR`: measure, draw, write research/results/surface.json."""

from __future__ import annotations

import argparse
import json
import os
import tomllib
from pathlib import Path
from typing import Any

from research import RESULTS, pages_of
from research.surface.draw import DRAWN, draw
from research.surface.findings import AVERAGED, filled, findings, intervals
from research.surface.measure import blocks, surveys
from research.tables import kept

HERE = Path(__file__).parent
COMMAND = "python -m research.surface"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--pairs", type=int, help="use fewer pairs, for a trial")
    parser.add_argument("--intervals", action="store_true", help="these alone, the rest is known")
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the corpora are: --data DIR, or set HEADCOUNT_DATA")
    config = tomllib.loads((HERE / "config.toml").read_text())
    config["pairs"] = given.pairs or config["pairs"]
    columns = [*AVERAGED, "separator_to_separator", "entropy_first"]
    spread: dict[str, Any] = {"pairs": config["pairs"], "blocks": config["blocks"]}
    spread |= {
        name: intervals(blocks(config, Path(given.data), name, columns))
        for name in config["models"]
    }
    if given.intervals:
        known = json.loads((given.out / "surface.json").read_text())
        tell(known | {"intervals": spread}, given.out)
        return
    found = surveys(config, Path(given.data))
    told = {
        name: {
            convention: {
                "findings": findings(table),
                "heads": kept(table, DRAWN),
                "provenance": table.provenance | {"command": COMMAND},  # no paths of a machine
            }
            for convention, table in tables.items()
        }
        for name, tables in found.items()
    }
    tell({"config": config, "command": COMMAND, "models": told, "intervals": spread}, given.out)
    draw(given.out, pages_of(given.out))


def tell(result: dict[str, Any], out: Path) -> None:
    """Write the numbers, and the table of the page where it is there."""
    (out / "surface.json").write_text(json.dumps(result, indent=1) + "\n")
    page = pages_of(out) / "surface.md"
    if page.exists():
        page.write_text(filled(page.read_text(encoding="utf8"), result), encoding="utf8")


if __name__ == "__main__":
    main()
