"""A made-up run with everything that a figure can be drawn from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_runs import THREE, heads_of, made_run, made_table

from headcount.records.run import Run
from headcount.records.table import HeadTable

SHARES = ("previous", "self", "separator", "first", "punctuation", "relevance")
FEATURES = ("noun", "verb", "pronoun", "subject", "object", "negation", "separator", "first")
PATTERNS = ("vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous")


def full_table() -> HeadTable:
    """Every column of the figures; `to_noun` of enc.0.0 and patterns of cross are not known."""
    rng = np.random.default_rng(5)
    heads = heads_of(THREE)
    values = {name: rng.uniform(0, 1, len(heads)) for name in SHARES}
    values |= {f"to_{name}": rng.uniform(0, 1, len(heads)) for name in FEATURES}
    values["to_noun"][0] = np.nan
    values |= {"entropy_first": rng.uniform(0, 3, len(heads)), "subject_to_verb": values["self"]}
    values["entropy_uniform"] = np.full(len(heads), 3.5)
    shares = rng.dirichlet(np.ones(5), len(heads))
    shares[[head.stack == "cross" for head in heads]] = np.nan
    values |= {f"pattern_{name}": shares[:, place] for place, name in enumerate(PATTERNS)}
    origins = {"ablation": {"settings": {"metric": "loss", "baseline": 1.25}}}
    base = made_table(THREE)
    told = HeadTable(
        base.frame,
        base.columns,
        low=base.low,
        high=base.high,
        notes=base.notes,
        provenance=base.provenance,
        origins=origins,
    )
    return told.join(HeadTable.of(heads, values))


def made_changes() -> pd.DataFrame:
    frame = pd.DataFrame([tuple(head) for head in heads_of(THREE)])
    frame.columns = pd.Index(["stack", "layer", "head"])
    return frame.assign(cosine=np.linspace(0.4, 1, len(frame)), entropy=np.linspace(-1, 2, 36))


def made_features() -> pd.DataFrame:
    rows = [
        (*head, feature, "all", "first", 0.1 * place + 0.01 * head.index)
        for head in heads_of(THREE)
        if head.stack == "enc"
        for place, feature in enumerate(FEATURES[:-1])
    ]
    names = ["stack", "layer", "head", "feature", "split", "origin", "value"]
    return pd.DataFrame(rows, columns=names)


def made_coreference() -> pd.DataFrame:
    rows = [
        (*head, kind, "all", 40, (head.index + 4 * head.layer) / 20, 0.0, 0.9, against, rule)
        for head in heads_of(THREE)
        if head.stack == "enc"
        for kind in ("all", "pronoun")
        for against, rule in (("nearest", 0.3), ("rules", 0.7))
    ]
    names = [
        "stack",
        "layer",
        "head",
        "kind",
        "split",
        "n",
        "accuracy",
        "low",
        "high",
        "against",
        "baseline",
    ]
    return pd.DataFrame(rows, columns=names)


def made_noop() -> pd.DataFrame:
    rows = [
        ("enc", layer, target, 0.001 * (layer + k), 0.0, 0.01)
        for k, target in enumerate(("separator", "other"))
        for layer in range(3)
    ]
    return pd.DataFrame(rows, columns=["stack", "layer", "target", "gradient", "low", "high"])


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has gone through every stage."""
    path = made_run(tmp_path_factory.mktemp("plot") / "run", THREE)
    with Run.open(path) as run:
        run.write_table(full_table())
        run.write_frame("changes", made_changes())
        run.write_frame("features", made_features())
        run.write_frame("coreference", made_coreference())
        run.write_frame("noop_layers", made_noop())
    return path


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a table of one column and nothing else."""
    path = tmp_path_factory.mktemp("plot") / "bare"
    heads = heads_of(THREE)
    HeadTable.of(heads, {"confidence": np.linspace(0, 1, len(heads))}).save(path)
    return path
