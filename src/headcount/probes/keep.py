"""A probe on the disk: its weights as safetensors, all else as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from headcount.atomic import write_bytes
from headcount.errors import ModelError, RunError
from headcount.exact_json import decode, encode, to_strict
from headcount.models.load import load as load_model
from headcount.models.twin import random_twin
from headcount.probes.build import fresh
from headcount.probes.gather import probed_heads
from headcount.probes.settings import Settings
from headcount.probes.trained import Probe
from headcount.probes.vectors import OWN, FileVectors, OwnVectors, WordVectors
from headcount.subject import Subject

__all__ = ["FILE", "is_probe", "load", "save_probe"]

FILE, WEIGHTS = "probe.json", "probe.safetensors"
SCHEMA = 1
#: Where a run directory keeps its probe.
INSIDE = "probe"


def is_probe(folder: Path) -> bool:
    """Whether a folder holds a probe, by itself or as a run directory."""
    return any((place / FILE).is_file() for place in (folder, folder / INSIDE))


def save_probe(probe: Probe, folder: Path) -> None:
    """Write a probe; vectors from a file go along, so that it can parse without it."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors: dict[str, torch.Tensor] = {}
    if probe.scorer is not None:
        state = probe.scorer.named_parameters()
        tensors = {name: weight.detach().cpu().contiguous() for name, weight in state}
    if isinstance(probe.vectors, FileVectors):
        tensors["vectors"] = torch.from_numpy(np.ascontiguousarray(probe.vectors.values))
    write_bytes(folder / WEIGHTS, save(tensors))
    write_bytes(folder / FILE, (encode(_about(probe)) + "\n").encode())


def _about(probe: Probe) -> dict[str, Any]:
    vectors = probe.vectors
    subject = probe.provenance["subject"]
    return {
        "schema": SCHEMA,
        "kind": probe.kind,
        "settings": probe.settings.to_dict(),
        "model": {name: subject[name] for name in ("source", "revision", "weights_hash")},
        "heads": [str(head) for head in probed_heads(probe.subject)],
        "vectors": None if vectors is None else vectors.name,
        "vocabulary": vectors.words if isinstance(vectors, FileVectors) else [],
        "results": to_strict(probe.results.to_dict("records")),
        "provenance": probe.provenance,
    }


def load(folder: Path, subject: Subject | None = None, **how: Any) -> Probe:
    """Read a probe, and load its model where none is given (`how` goes to `hc.load`)."""
    place = folder if (folder / FILE).is_file() else folder / INSIDE
    about, tensors = _read(place)
    model = about["model"]
    if subject is None:
        subject = load_model(model["source"], revision=model["revision"], **how)
    if subject.weights_hash != model["weights_hash"]:
        raise ModelError(
            f"{folder} was trained on other weights ({model['weights_hash'][:12]}) than "
            f"{subject.name} has ({subject.weights_hash[:12]}); give the model it was trained on."
        )
    seed = about["provenance"]["seed"]
    if about["kind"] == "random-init":
        subject = random_twin(subject, seed=seed, keep_embeddings=True)
    settings = about["settings"]
    settings["dtype"] = getattr(torch, settings["dtype"])
    probe = Probe(subject, about["kind"], Settings(**settings), provenance=about["provenance"])
    probe.vectors = _vectors(about, tensors, subject)
    probe.results = pd.DataFrame(about["results"])
    if about["kind"] != "right-branching":
        table = None if probe.vectors is None else probe.vectors.table()
        heads = len(about["heads"])
        probe.scorer = fresh(probe.kind, heads, table, shifted=probe.settings.shifted)
        probe.scorer.begin({name: value for name, value in tensors.items() if name != "vectors"})
        probe.scorer.requires_grad_(False).to(subject.device)
    return probe


def _read(place: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    try:
        about = decode((place / FILE).read_text(encoding="utf8"))
        tensors = load_file(place / WEIGHTS)
    except (OSError, ValueError, SafetensorError) as error:
        raise RunError(
            f"{place} holds no probe that can be read ({error}); train one: "
            f"headcount probe MODEL --treebank FILE -o {place}."
        ) from error
    if about["schema"] > SCHEMA:
        raise RunError(
            f"{place} was written with schema {about['schema']}; this headcount reads up to "
            f"{SCHEMA}: upgrade headcount."
        )
    return about, tensors


def _vectors(
    about: dict[str, Any], tensors: dict[str, torch.Tensor], subject: Subject
) -> WordVectors | None:
    if about["vectors"] is None:
        return None
    if "vectors" in tensors:
        return FileVectors(about["vocabulary"], tensors["vectors"].numpy(), about["vectors"])
    assert about["vectors"] == OWN
    return OwnVectors(subject)
