"""Look a name up on the model hub, once, quickly, before anything is downloaded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.errors import ModelError, UsageError
from headcount.models.finding import FoundModel, closest

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
