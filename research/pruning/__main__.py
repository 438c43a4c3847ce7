"""`python -m research.pruning PART`: how many heads can go, and what it costs.

PART is classifiers or groups (a GPU's work: `--device cuda`), saved (a pruned SmolLM2 that other
programs load), draw (figures from the JSON of the other parts) or page (tables from it).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from research import RESULTS, pages_of
from research.settings import told

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    """Do one part; a mistake is told in a sentence."""
    given = _parser().parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    return told(lambda: PARTS[given.part](given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="research.pruning", description=__doc__)
    add = parser.add_argument
    add("part", choices=PARTS)
    add("--config", type=Path, default=HERE / "config.toml")
    add("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"), help="folder with glue/")
    add("--classifiers", type=Path, help="what research.glue --save wrote")
    add("--only", nargs="+", help="names of classifiers; all when none is named")
    add("--model", help="another folder or name for the language model")
    add("--device", default="auto")
    add("--out", type=Path, default=RESULTS)
    add("--eager", action="store_true", help="do not record steps as CUDA graphs")
    add("--time-limit", type=float, help="seconds after which no further healing is begun")
    return parser


def _classifiers(given: argparse.Namespace) -> None:
    from .classifier import read_case
    from .classifiers import run_case
    from .config import read_config

    config, device, until = read_config(given.config), _device(given), _until(given)
    path = given.out / "pruning-classifiers.json"
    told: dict[str, Any] = _start(path, given, config.told("classifiers", "gates", "heal"))
    for name in given.only or config.classifiers.models:
        case = read_case(name, config, given.classifiers, given.data, device)
        told["cases"][name] = run_case(case, config, not given.eager, until)
        _write(path, told)


def _groups(given: argparse.Namespace) -> None:
    from .config import read_config
    from .groups import run_groups

    config, device, until = read_config(given.config), _device(given), _until(given)
    path = given.out / "pruning-smollm2.json"
    told = _start(path, given, config.told("groups"))
    data = None if given.data is None else Path(given.data)
    found = run_groups(config, given.model, data, device, not given.eager, until)
    _write(path, told | found)


def _saved(given: argparse.Namespace) -> None:
    from .config import read_config
    from .saved import check_saved

    config = read_config(given.config)
    path = given.out / "pruning-saved.json"
    told = _start(path, given, config.told("groups"))
    _write(path, told | check_saved(config, given.model, given.out / "pruning-smollm2.json"))


def _draw(given: argparse.Namespace) -> None:
    from .draw import draw

    draw(given.out, pages_of(given.out))


def _page(given: argparse.Namespace) -> None:
    from .page import tell

    tell(given.out)


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "classifiers": _classifiers,
    "groups": _groups,
    "saved": _saved,
    "draw": _draw,
    "page": _page,
}


def _start(path: Path, given: argparse.Namespace, settings: dict[str, Any]) -> dict[str, Any]:
    """What every JSON begins with; cases that were done before with the same settings stay."""
    from headcount.records.provenance import collect

    about = collect() | {"command": f"python -m research.pruning {given.part}"}
    old = json.loads(path.read_text()) if path.exists() else {}
    cases = old.get("cases", {}) if old.get("config") == json.loads(json.dumps(settings)) else {}
    return {"config": settings, "provenance": about, "device": _device(given), "cases": cases}


def _device(given: argparse.Namespace) -> str:
    import torch

    from headcount.models.loading import pick_device

    # cuDNN's attention plans anew for every shape, and a recording cannot wait for a plan.
    torch.backends.cuda.enable_cudnn_sdp(False)
    return str(pick_device(given.device))


def _until(given: argparse.Namespace) -> float | None:
    return None if given.time_limit is None else time.monotonic() + given.time_limit


def _write(path: Path, told: dict[str, Any]) -> None:
    from headcount.records.files import to_strict, write_bytes

    write_bytes(path, (json.dumps(to_strict(told), indent=1) + "\n").encode())


if __name__ == "__main__":
    sys.exit(main())
