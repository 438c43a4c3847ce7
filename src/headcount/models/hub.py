"""Ask the model hub about a name once, quickly, before anything is downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headcount.errors import ModelError, UsageError
from headcount.models.find import Found, closest

__all__ = ["Answer", "ask", "nowhere", "options_for"]

_PATIENCE = 10.0  # seconds; without a network the library itself would retry for half a minute


@dataclass(frozen=True)
class Answer:
    """What the hub says; without it only what was downloaded before can be loaded."""

    #: The commit, when the hub was reached.
    revision: str | None
    #: The names of the files at the top of the repository; ``None`` when nobody could be asked.
    files: frozenset[str] | None

    @property
    def offline(self) -> bool:
        """Whether the hub was out of reach."""
        return self.files is None


def ask(name: str, revision: str | None) -> Answer:
    """Look a name up on the hub; raises when the hub says that there is no such model."""
    from huggingface_hub import HfApi, errors

    try:
        info = HfApi().model_info(name, revision=revision, timeout=_PATIENCE)
    except errors.RevisionNotFoundError:
        raise UsageError(f"The model '{name}' has no revision '{revision}' on the hub.") from None
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        raise ModelError(nowhere(name, "the hub has none of that name that you may read")) from None
    except Exception:  # no route, no name service, a proxy's page, the library told to be offline
        return Answer(None, None)
    names = (file.rfilename for file in info.siblings or ())
    return Answer(info.sha, frozenset(file for file in names if "/" not in file))


def nowhere(name: str, hub_says: str) -> str:
    """One sentence for a name that is nothing we know."""
    return (
        f"There is no model '{name}': no folder, installed package or bundled model is called "
        f"that, and {hub_says}.{closest(name)}"
    )


def options_for(
    found: Found, trusted: bool, revision: str | None = None
) -> tuple[dict[str, Any], frozenset[str] | None]:
    """What every ``from_pretrained`` is told, and the files there are (``None``: nobody knows)."""
    options: dict[str, Any] = {"trust_remote_code": trusted}
    if found.gguf:
        options["gguf_file"] = found.gguf
    if found.kind != "hub":
        return options, frozenset(child.name for child in found.folder.iterdir())
    answer = ask(found.location, revision)
    options["revision"] = answer.revision or revision
    options["local_files_only"] = answer.offline
    return options, answer.files
