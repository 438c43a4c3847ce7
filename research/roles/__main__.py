"""`python -m research.roles --data DIR --translators DIR`: survey, draw, fill the page."""

from __future__ import annotations

import argparse
import json
import os
import tomllib
from pathlib import Path
from typing import Any

from headcount.records.files import write_bytes
from research import RESULTS, pages_of

from .draw import draw
from .findings import findings
from .measure import AGAIN, COMMAND, TRAINED, measured, measured_again
from .page import filled
from .store import read_surveys, write_surveys

Plans = dict[str, dict[str, Any]]

HERE = Path(__file__).parent


def main() -> None:
    """Make the surveys that are missing, each kept as it ends; then write what they say."""
    given = _given()
    plans = tomllib.loads((HERE / "config.toml").read_text(encoding="utf8"))
    given.parts.mkdir(parents=True, exist_ok=True)
    known = read_surveys(given.out)
    for name in _wanted(plans, given.only, given.translators):
        path = given.parts / f"{name}.json"
        if not path.exists():
            print(f"{name} ...", flush=True)
            found = _made(given, plans[name], known.get(name))
            write_bytes(path, json.dumps(found, ensure_ascii=False).encode())
    parts = {name: _read(given.parts / f"{name}.json") for name in plans}
    surveys = {name: parts[name] or known.get(name) for name in plans}
    told({name: one for name, one in surveys.items() if one}, given.out)


def _made(
    given: argparse.Namespace, plan: dict[str, Any], known: dict[str, Any] | None
) -> dict[str, Any]:
    """A survey, whole; or where one is known and `--again` names roles, with these made anew."""
    if given.again and known:
        plan = plan | ({} if given.limit is None else {"limit": given.limit})
        return measured_again(given.again, known, plan, Path(given.data), given.translators)
    return measured(plan, Path(given.data), given.translators)


def _wanted(plans: Plans, only: list[str] | None, translators: Path | None) -> list[str]:
    """The surveys to make; without its folder en-ru is left as it was."""
    if only is not None:
        return only
    if translators is None:
        print(f"{' and '.join(TRAINED)} are left as they were: pass --translators DIR.")
    return [name for name in plans if translators or plans[name]["model"] not in TRAINED]


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="research.roles", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--translators", type=Path, help="the folder that holds en-ru")
    parser.add_argument("--only", nargs="*", help="names of surveys; all when it is not said")
    parser.add_argument(
        "--again", nargs="*", choices=AGAIN, help="measure these roles alone, the rest is known"
    )
    parser.add_argument("--limit", type=int, help="with --again: so many texts, drawn at random")
    parser.add_argument("--parts", type=Path, default=Path("run/roles"), help="finished surveys")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the corpora are: --data DIR, or set HEADCOUNT_DATA")
    return given


def _read(path: Path) -> dict[str, Any]:
    """What a file holds; nothing where there is none."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf8")) if path.exists() else {}
    return found


def told(surveys: dict[str, dict[str, Any]], out: Path) -> None:
    """Write the numbers and the pictures, and the tables of the page where it is there."""
    write_surveys(surveys, out)
    result = {"command": COMMAND, "findings": findings(surveys)}
    write_bytes(out / "roles.json", json.dumps(result, ensure_ascii=False).encode() + b"\n")
    draw(out, pages_of(out))
    page = pages_of(out) / "roles.md"
    if page.exists():
        write_bytes(page, filled(page.read_text(encoding="utf8"), surveys).encode())


if __name__ == "__main__":
    main()
