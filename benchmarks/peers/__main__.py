"""What people use instead, on the same inputs: time and memory beside a plain forward.

`python -m benchmarks.peers` writes `results/peers.json`. Each peer is installed, pinned, into an
environment of its own under `.peers/`, on top of the packages of this one; one that does not
install or run is left out with its reason. The model is SmolLM2-135M; all give the mean entropy of
every head, which must agree.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import numpy as np

from headcount.models.load import load
from headcount.records import provenance

ROOT = Path(__file__).parents[2]
RESULTS, PLACE = ROOT / "benchmarks" / "results", ROOT / ".peers"

#: What is installed for each, as it was when the figures were taken.
PINS = {
    "headcount": [],
    "transformers": [],
    "bertviz": ["bertviz==1.4.1"],
    "transformer_lens": ["transformer-lens==4.3.0"],
    "nnsight": ["nnsight==0.8.1"],
    "inseq": ["inseq==0.7.1"],
}


def environment(peer: str) -> str:
    """The interpreter of a peer's environment, made where it is not there."""
    if not PINS[peer]:
        return sys.executable
    folder = PLACE / peer
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        site = next(folder.glob("lib/python*/site-packages"))
        (site / "base.pth").write_text(sysconfig.get_path("purelib") + "\n")
        command = [python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt"]
        done = subprocess.run([*command, *PINS[peer]], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"does not install: {_last(done.stderr)}")
        (folder / "ready").touch()
    return str(python)


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "no message"


def measured(peer: str, model: Path, more: list[str]) -> dict[str, Any]:
    """One peer in a process of its own, or why it could not be measured."""
    try:
        python = environment(peer)
    except RuntimeError as error:
        return {"skipped": str(error)}
    script = Path(__file__).parent / "extract.py"
    done = subprocess.run(
        [python, script, peer, model, *more], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return {"skipped": f"does not run: {_last(done.stderr)}"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", default="8")
    parser.add_argument("--tokens", default="128")
    parser.add_argument("--rounds", default="7")
    parser.add_argument("--only", nargs="+", choices=list(PINS), default=list(PINS))
    given = parser.parse_args(arguments)
    model = PLACE / "smollm2"
    if not (model / "config.json").exists():
        subject = load("smollm2", device="cpu", dtype="float32")
        subject.model.save_pretrained(model)
        subject.tokenizer.save_pretrained(model)
    more = ["--texts", given.texts, "--tokens", given.tokens, "--rounds", given.rounds]
    found = {peer: measured(peer, model, more) for peer in ["headcount", *given.only]}
    ours = np.array(found["headcount"].pop("entropy"))
    for peer, row in found.items():
        theirs = np.array(row.pop("entropy", []))
        if len(theirs) == len(ours):
            row["largest_difference"] = float(np.abs(theirs - ours).max())
        print(peer, json.dumps(row), flush=True)
    result = {
        "what": f"SmolLM2-135M, {given.texts} texts of {given.tokens} tokens, 2 CPU threads",
        "pins": PINS,
        "peers": found,
        "provenance": provenance.collect() | {"command": "python -m benchmarks.peers"},
    }
    (RESULTS / "peers.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
