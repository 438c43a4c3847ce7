"""Bring what the tests of the report need: browsers, and axe-core; `make test` runs this.

python scripts/browser.py

Debian's chromium and firefox-esr are installed with apt-get where that is allowed; axe-core comes
from the npm registry into the cache folder. What cannot be had is told in a line, and its tests
are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from headcount.models.finding import cache_dir

AXE = "4.14.0"
#: Names under which systems know the browser.
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """The program, where there is one; ``HEADCOUNT_CHROMIUM`` names another."""
    named = os.environ.get("HEADCOUNT_CHROMIUM")
    found = [named, *map(shutil.which, CHROMIUMS)] if named else map(shutil.which, CHROMIUMS)
    return next((program for program in found if program), None)


def axe() -> Path:
    """Where axe-core lies once it was fetched."""
    return cache_dir() / "browser" / f"axe-{AXE}.min.js"


def firefox() -> str | None:
    """The other program; ``HEADCOUNT_FIREFOX`` names another."""
    named = os.environ.get("HEADCOUNT_FIREFOX")
    return named or shutil.which("firefox-esr") or shutil.which("firefox")


def install(package: str, there: Callable[[], str | None]) -> str:
    """Install a Debian package unless its program is there; what to tell where that fails."""
    if there():
        return ""
    how = f"install it (Debian: apt-get install {package}), or its tests are skipped"
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return f"There is no {package}; {how}."
    command = ["apt-get", "install", "-y", "--no-install-recommends", package, "fonts-dejavu"]
    if not _ran(command):
        _ran(["apt-get", "update"])
        _ran(command)
    return "" if there() else f"{package} could not be installed; {how}."


def _ran(command: list[str]) -> bool:
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, capture_output=True, env=quiet).returncode == 0


def fetch_axe() -> str:
    if axe().exists():
        return ""
    how = "its test is skipped"
    if not shutil.which("npm"):
        return f"npm is not here, so axe-core cannot be fetched; {how}."
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--json", f"axe-core@{AXE}"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
        if done.returncode:
            return f"axe-core {AXE} could not be fetched from the npm registry; {how}."
        packed = Path(folder, json.loads(done.stdout)[0]["filename"])
        _keep(packed, axe())
    return ""


def _keep(packed: Path, place: Path) -> None:
    with tarfile.open(packed) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_suffix(".tmp")
        draft.write_bytes(script.read())
        draft.replace(place)


if __name__ == "__main__":
    for told in (install("chromium", chromium), install("firefox-esr", firefox), fetch_axe()):
        if told:
            print(told)
