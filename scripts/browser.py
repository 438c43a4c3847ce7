"""Bring what the tests of the report need: a Chromium, and axe-core; `make test` runs this.

python scripts/browser.py

Debian's chromium is installed with apt-get where that is allowed; axe-core comes from the npm
registry into the cache folder. What cannot be had is told in a line, and its tests are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from headcount.models.cache import cache_dir

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


def install_chromium() -> str:
    if chromium():
        return ""
    how = "install Chromium (Debian: apt-get install chromium), or set HEADCOUNT_CHROMIUM"
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return f"No Chromium is here, so the page is not tested in a browser; {how}."
    quiet = {"capture_output": True, "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
    command = ["apt-get", "install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu"]
    if subprocess.run(command, **quiet).returncode:
        subprocess.run(["apt-get", "update"], **quiet)
        subprocess.run(command, **quiet)
    return "" if chromium() else f"Chromium could not be installed; {how}."


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
    for told in (install_chromium(), fetch_axe()):
        if told:
            print(told)
