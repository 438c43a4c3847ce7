"""What a model's name means: a folder, a GGUF file, a model of ours, a package or a hub id.

>>> find("minilm-for-nobody/at-all").kind
'hub'
"""

from __future__ import annotations

import difflib
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from headcount.errors import ModelError
from headcount.models.cache import PACKAGES, cache_dir, is_model, model_dir, short_name

__all__ = ["Found", "closest", "find", "known_names"]

#: Models that come with headcount, each a folder in ``headcount/bundle``.
BUNDLED = ("translator",)

_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
_PACKAGE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Found:
    """Where a model lies and how it is opened."""

    #: ``folder``, ``gguf``, ``adapter`` or ``hub``.
    kind: str
    #: The folder, or the hub id.
    location: str
    #: What messages and figures call it.
    name: str
    #: What provenance keeps: what the user passed, or the package it came in.
    source: str
    #: The file in the folder, for a GGUF model.
    gguf: str | None = None

    @property
    def folder(self) -> Path:
        """The location as a path."""
        return Path(self.location)


def find(name: str) -> Found:
    """Look a name up; raises `ModelError` with the closest names when nothing can be meant."""
    path = Path(name).expanduser()
    if path.exists() and (is_model(path) or name not in (*BUNDLED, *PACKAGES)):
        return _at_path(path, name=path.resolve().name, source=name)
    for folder, source in _own_places(name):
        if folder is not None and is_model(folder):
            return _at_path(folder, name=name, source=source)
    _refuse_missing(name)
    return Found("hub", name, name=name, source=name)


def _own_places(name: str) -> list[tuple[Path | None, str]]:
    """The folders a bare name may mean, and what provenance says of each."""
    short = name if name in PACKAGES else short_name(name)
    package = PACKAGES.get(short, name) if short else name
    return [
        (_bundled(name), "bundled"),
        (model_dir(short) if short else None, package),
        (_installed(package), package),
    ]


def _bundled(name: str) -> Path | None:
    """The folder of a model that comes with headcount."""
    return Path(__file__).parents[1] / "bundle" / name if name in BUNDLED else None


def _installed(package: str) -> Path | None:
    """The model folder inside an installed package, found without importing the package."""
    if not _PACKAGE.fullmatch(package):
        return None
    try:
        spec = importlib.util.find_spec(package.replace("-", "_"))
    except (ImportError, ValueError):
        return None
    for root in (spec and spec.submodule_search_locations) or []:
        for folder in (Path(root), *sorted(Path(root).glob("*/"))):
            if is_model(folder) and _has_weights(folder):
                return folder
    return None


def _has_weights(folder: Path) -> bool:
    """Whether weights lie beside the config: many packages have some config.json."""
    return any(next(folder.glob(f"*.{end}"), None) for end in ("safetensors", "gguf", "bin"))


def _at_path(path: Path, name: str, source: str) -> Found:
    """How the file or folder at a path is opened."""
    if path.is_file():
        return _gguf(path, name, source)
    if (path / "adapter_config.json").is_file() and not (path / "config.json").is_file():
        return Found("adapter", str(path), name, source)
    files = sorted(path.glob("*.gguf"))
    if files and not any(path.glob("*.safetensors")):
        return _gguf(_only(files, path), name, source)
    if not (path / "config.json").is_file():
        raise ModelError(_no_config(path, source))
    return Found("folder", str(path), name, source)


def _gguf(file: Path, name: str, source: str) -> Found:
    """A GGUF file, known by its first four bytes."""
    with file.open("rb") as stream:
        magic = stream.read(4)
    if magic != b"GGUF":
        raise ModelError(
            f"The file '{source}' is not a GGUF model; pass a .gguf file, or the folder that "
            "holds config.json and the weights."
        )
    return Found("gguf", str(file.parent), name, source, gguf=file.name)


def _only(files: list[Path], folder: Path) -> Path:
    """The one GGUF file of a folder."""
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise ModelError(f"The folder '{folder}' holds {len(files)} GGUF files; name one: {names}.")
    return files[0]


def _no_config(folder: Path, source: str) -> str:
    """Why a folder is no model, and where one may be."""
    inside = sorted(child.name for child in folder.glob("*/") if is_model(child))
    if inside:
        return f"The folder '{source}' has no config.json, but these in it do: {', '.join(inside)}."
    what = "has no config.json" if any(folder.iterdir()) else "is empty"
    return (
        f"The folder '{source}' {what}; pass a folder that save_pretrained wrote "
        "(config.json and *.safetensors), or a .gguf file."
    )


def _refuse_missing(name: str) -> None:
    """Raise for a name that can be nothing at all: known but not there, or a path to nowhere."""
    short = name if name in PACKAGES else short_name(name)
    if short:
        raise ModelError(
            f"The model '{name}' is not in the cache folder {cache_dir()}; fetch it with "
            f"`python -m headcount.models.fetch {short}`."
        )
    if name in BUNDLED:
        raise ModelError(f"The bundled model '{name}' is missing; install headcount again.")
    if not _HUB_ID.fullmatch(name):
        raise ModelError(f"There is no folder or file '{name}'.{closest(name)}")


def known_names() -> list[str]:
    """The names that work without a path."""
    return [*BUNDLED, *PACKAGES]


def closest(name: str) -> str:
    """A sentence with the names most like this one: of known models, and of folders beside it."""
    path = Path(name).expanduser()
    beside = [str(Path(name).parent / child.name) for child in _folders(path.parent)]
    near = difflib.get_close_matches(name, [*known_names(), *beside], n=3, cutoff=0.6)
    return f" Closest: {', '.join(near)}." if near else f" Known names: {', '.join(known_names())}."


def _folders(parent: Path) -> list[Path]:
    """The model folders in a folder that may not exist or be readable."""
    try:
        return [child for child in parent.iterdir() if child.is_dir() and is_model(child)]
    except OSError:
        return []
