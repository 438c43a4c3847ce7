"""What the heads that are left do.

Voita et al. 2019, section 5.4 and fig. 8: every pruned encoder is surveyed anew on the bundled
sample, and its heads are counted by role.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import safetensors.torch
import torch

import headcount as hc
from headcount.bundle import sample
from headcount.bundle.packed import unpack_weights

__all__ = ["pruned", "roles_left"]


def pruned(run: Path, start: str = "translator") -> hc.Subject:
    """The translator of a run: its weights, and only its heads."""
    subject = hc.load(start, device="cpu")
    weights = unpack_weights(safetensors.torch.load_file(run.with_suffix(".safetensors")))
    with torch.no_grad():
        for name, weight in dict(subject.model.named_parameters()).items():
            if name in weights:
                weight.copy_(weights[name])
    kept = set(json.loads(run.with_suffix(".json").read_text())["kept"])
    return hc.prune(subject, [head for head in subject.heads if str(head) not in kept])


def roles_left(subject: hc.Subject) -> dict[str, Any]:
    """The encoder's heads by role; a head may have several, and is then counted for each."""
    table = hc.survey(subject, treebank=sample.path(), reading=hc.ReadingOptions(stacks=["enc"]))
    roles: pd.DataFrame = table.details["roles"]
    rows = [
        (f"{row.stack}.{row.layer}.{row.head}", str(row.role), str(row.label))
        for row in roles.itertuples()
        if row.stack == "enc"
    ]
    named = {head for head, _, _ in rows}
    heads = [str(head) for head in subject.heads if head.stack == "enc"]
    counts = Counter(role for _, role in {(head, role) for head, role, _ in rows})
    return {
        "heads": len(heads),
        "with a role": len(named),
        "counts": dict(sorted(counts.items())),
        "roles": sorted({f"{head} {role}: {label}" for head, role, label in rows}),
    }
