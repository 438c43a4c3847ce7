"""`python -m research.probes --data DIR`: train, test, write together-probes.json.

With `--undirected KINDS` only these kinds, judged by arcs without direction, so that the structural
probe has something to stand beside; the rest of the JSON stays.
"""

from __future__ import annotations

import argparse
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

import headcount as hc
from headcount.records import provenance
from headcount.records.files import to_strict
from headcount.rooms.probing.probing import probe_summary
from headcount.text import Corpus, read_corpus
from research import RESULTS
from research.probes.order import leads_of_the_structural, steps_of_the_order

HERE = Path(__file__).parent
COMMAND = "python -m research.probes"
#: What reads the model itself; its random twins are read apart.
OWN_KINDS = ("right-branching", "distances", "attention", "words", "structural")
Hits = dict[tuple[str, int], np.ndarray]


def corpora(config: dict[str, Any], data: Path) -> tuple[Corpus, Corpus]:
    """What probes learn from, and what they are tested on."""
    sample = {"seed": config["sample_seed"]}
    train = read_corpus(data / config["train"], limit=config["train_sentences"], **sample)
    test = read_corpus(data / config["test"], limit=config["test_sentences"], **sample)
    train.name, test.name = (Path(config[part]).name for part in ("train", "test"))
    return train, test


def measured(name: str, config: dict[str, Any], data: Path) -> tuple[hc.Probe, Hits]:
    """Every kind of probe, every seed; the probe that comes back is the best, of the first seed."""
    train, test = corpora(config, data)
    how = {"test": test, "words": data / config["words"], "seeds": config["seeds"]}
    subject = hc.load(name, device="cpu")
    best = hc.probe(subject, train, kind="words", baselines=OWN_KINDS, **how)
    print(probe_summary(best.hits).to_string(), flush=True)
    twins = hc.probe(subject, train, kind="random-init", **how)
    return best, {**best.hits, **twins.hits}


def undirected(probe: hc.Probe) -> dict[str, Any]:
    """UUAS of every kind, the structural probe against the others, and which layer it reads."""
    summary = probe_summary(probe.hits, probe.undirected)
    print(summary.to_string(), probe.provenance["remarks"], flush=True)
    return {
        "summary": to_strict(summary.round(4).to_dict("records")),
        "by_seed": _by_seed(probe.undirected),
        "leads": leads_of_the_structural(probe.undirected),
        "remarks": probe.provenance["remarks"],
    }


def _by_seed(hits: Hits) -> dict[str, float]:
    return {
        f"{kind} {seed}": round(float(found[:, 0].sum() / found[:, 1].sum()), 4)
        for (kind, seed), found in hits.items()
    }


def told(probe: hc.Probe, hits: Hits) -> dict[str, Any]:
    assert probe.table is not None
    top = probe.table.top("probe_weight", 8)
    return {
        "summary": to_strict(probe_summary(hits).round(4).to_dict("records")),
        "by_seed": _by_seed(hits),
        "undirected": undirected(probe),
        "order": steps_of_the_order(hits),
        "relied_on": {
            ".".join(map(str, head)): round(float(value), 3) for head, value in top.items()
        },
        "the_cat": probe.explain("The cat sat on the mat.", "the", "cat")
        .head(5)
        .round(3)
        .to_dict("records"),
        "remarks": probe.provenance["remarks"],
        "settings": probe.provenance["settings"],
        "data": {"train": probe.provenance["data"], "test": probe.provenance["test"]["data"]},
        "weights": probe.provenance["weights"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--models", nargs="*", help="some of the models")
    parser.add_argument("--sentences", type=int, help="use fewer sentences, for a trial")
    parser.add_argument("--undirected", nargs="+", metavar="KIND", help="these alone, by UUAS")
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the corpora are: --data DIR, or set HEADCOUNT_DATA")
    config = tomllib.loads((HERE / "config.toml").read_text())
    if given.sentences:
        config |= {"train_sentences": given.sentences, "test_sentences": given.sentences}
    file = given.out / "together-probes.json"
    models: dict[str, Any] = {}
    if given.undirected:
        result = json.loads(file.read_text())
        for name in given.models or config["models"]:
            train, test = corpora(config, Path(given.data))
            probe = hc.probe(
                hc.load(name, device="cpu"), train, test=test, kind=given.undirected[-1],
                baselines=given.undirected, words=Path(given.data) / config["words"],
                seeds=config["seeds"],
            )  # fmt: skip
            result["models"][name]["undirected"] = undirected(probe)
            file.write_text(json.dumps(result, indent=1) + "\n")
        return
    for name in given.models or config["models"]:
        models[name] = told(*measured(name, config, Path(given.data)))
        about = provenance.collect() | {"command": COMMAND}  # no paths of a machine
        result = {"command": COMMAND, "config": config, "models": models, "provenance": about}
        file.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
