"""`python -m research.together families|compare --data DIR`: JSON and pictures of the results.

`compare` takes the models that `python -m research.models` trains, by `--models DIR`; what is
known of models that are not there stays.
"""

from __future__ import annotations

import argparse
import json
import os
import tomllib
from pathlib import Path
from typing import Any

from headcount.records.files import to_strict
from research import RESULTS, pages_of
from research.together.draw import draw
from research.together.page import filled

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="research.together", description=__doc__)
    parser.add_argument("which", choices=["families", "compare"])
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--models", type=Path, help="fine-tuned models: folders BASE-TASK-SEED")
    parser.add_argument("--texts", type=int, help="fewer texts, for a trial")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    if given.data is None:
        parser.error("say where the corpora are: --data DIR, or set HEADCOUNT_DATA")
    if given.which == "compare" and given.models is None:
        parser.error("say where the fine-tuned models are: --models DIR")
    config = tomllib.loads((HERE / "config.toml").read_text())
    config[given.which]["texts"] = given.texts or config[given.which]["texts"]
    told = _families(config, given) if given.which == "families" else _compare(config, given)
    command = f"python -m research.together {given.which}"
    result = {"command": command, "config": config[given.which], "seed": config["seed"], **told}
    file = given.out / f"together-{given.which}.json"
    if given.which == "compare" and file.exists():
        result["models"] = json.loads(file.read_text())["models"] | result["models"]
    file.write_text(json.dumps(to_strict(result), indent=1, allow_nan=False) + "\n")
    draw(given.out, pages_of(given.out))
    page = pages_of(given.out) / "together.md"
    if given.which == "families" and page.exists():
        page.write_text(filled(page.read_text(encoding="utf8"), result), encoding="utf8")
    return 0


def _families(config: dict[str, Any], given: argparse.Namespace) -> dict[str, Any]:
    from research.together.families import families, told

    found = families(config["families"], Path(given.data), config["seed"])
    return {"models": {name: told(*one) for name, one in found.items()}}


def _compare(config: dict[str, Any], given: argparse.Namespace) -> dict[str, Any]:
    from research.together.changes import changes, told

    found = changes(config["compare"], Path(given.data), given.models, config["seed"])
    return {"models": {name: told(one) for name, one in found.items()}}


if __name__ == "__main__":
    raise SystemExit(main())
