"""What people use instead, on the same inputs: time and memory beside a plain forward.

`python -m research.benchmarks.peers` writes `results/peers.json`, input by input; `--only` and
`--inputs` measure some anew. Each peer is installed, pinned, into an environment of its own under
`.peers/`, on top of the packages of this one; one that does not install or run is left out with its
reason. All give the mean entropy of every head, which must agree; headcount gives all its default
columns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import numpy as np

from headcount.bundle import sample
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.records import provenance
from research import ROOT

RESULTS, PLACE = ROOT / "research" / "benchmarks" / "results", ROOT / ".peers"

#: What is installed for each, as it was when the figures were taken.
PINS: dict[str, list[str]] = {
    "plain": [],
    "headcount": [],
    "transformers": [],
    "transformers_numpy": [],
    "bertviz": ["bertviz==1.4.1"],
    "transformer_lens": ["transformer-lens==4.3.0"],
    "nnsight": ["nnsight==0.8.1"],
    "inseq": ["inseq==0.7.1"],
}
#: Texts and tokens of each, by model.
INPUTS = {
    "minilm 16x128": ("minilm", 16, 128),
    "smollm2 1x1024": ("smollm2", 1, 1024),
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
            raise RuntimeError(f"does not install: {last_line(done.stderr)}")
        (folder / "ready").touch()
    return str(python)


def last_line(text: str) -> str:
    """What a program said last, which is its error.

    >>> last_line("Traceback ...\\nTypeError: no\\n\\n")
    'TypeError: no'
    """
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "no message"


def measured(peer: str, model: Path, ids: Path, rounds: int) -> dict[str, Any]:
    """One peer: memory in a process of its own, time in another; or why it was not measured."""
    try:
        python = environment(peer)
    except RuntimeError as error:
        return {"skipped": str(error)}
    command = [python, str(Path(__file__).parent / "extract.py"), peer, str(model), str(ids)]
    found: dict[str, Any] = {"load": round(os.getloadavg()[0], 2)} if rounds else {}
    # The plain forward is timed beside every peer.
    timings = [["--rounds", str(rounds)]] if rounds and peer != "plain" else []
    for more in ([], *timings):
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
        if done.returncode:
            return {"skipped": f"does not run: {last_line(done.stderr)}"}
        found |= json.loads(done.stdout.splitlines()[-1])
    return found


def rows_of(subject: Subject, texts: int, tokens: int) -> list[list[int]]:
    """Full rows of the bundled sample, over and over, with the marks that an encoder wants."""
    tokenizer = subject.tokenizer
    assert tokenizer is not None
    known = tokenizer(" ".join(pair[0] for pair in sample.pairs()), add_special_tokens=False)
    ends = [tokenizer.cls_token_id], [tokenizer.sep_token_id]
    first, final = ends if None not in (*ends[0], *ends[1]) else ([], [])
    inner = tokens - len(first) - len(final)
    ids = known["input_ids"] * (1 + texts * inner // len(known["input_ids"]))
    return [first + ids[start : start + inner] + final for start in range(0, texts * inner, inner)]


def compared(peer: str, row: dict[str, Any], ours: list[float]) -> dict[str, Any]:
    """The row with how far its numbers are from headcount's in place of them."""
    theirs = row.pop("numbers", [])
    # inseq reads the last row alone, and a plain forward has no numbers of heads.
    if peer not in ("plain", "headcount", "inseq") and theirs:
        row["largest_difference"] = float(np.abs(np.subtract(theirs, ours)).max())
    return row


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="none: memory alone")
    parser.add_argument("--only", nargs="+", choices=list(PINS), default=list(PINS))
    parser.add_argument("--inputs", nargs="+", choices=list(INPUTS), default=list(INPUTS))
    given = parser.parse_args(arguments)
    path, about = RESULTS / "peers.json", provenance.collect()
    kept = json.loads(path.read_text())["inputs"] if path.exists() else {}
    for name in given.inputs:
        model, texts, tokens = INPUTS[name]
        folder, ids = PLACE / model, PLACE / f"{name.replace(' ', '-')}.json"
        subject = load(model, device="cpu", dtype="float32")
        if not (folder / "config.json").exists():
            subject.model.save_pretrained(folder)
            subject.tokenizer.save_pretrained(folder)
        ids.write_text(json.dumps(rows_of(subject, texts, tokens)))
        del subject
        rounds = given.rounds if tokens < 1024 else -(-given.rounds // 2)
        rows, ours = kept.setdefault(name, {}), list[float]()
        for peer in dict.fromkeys(["headcount", *given.only]):
            row = measured(peer, folder, ids, rounds)
            ours = row["numbers"] if peer == "headcount" else ours
            row = compared(peer, row, ours) | {"time": about["time"]}
            # Memory alone leaves the times of an earlier run, which say their own load.
            rows[peer] = row if rounds else rows.get(peer, {}) | row
            print(name, peer, json.dumps(rows[peer]), flush=True)
            result = {
                "what": "float32, 2 CPU threads; peers reduce whole maps to one number a head, "
                "headcount to all its default columns; ratio to the plain sdpa forward in turns",
                "pins": PINS,
                "inputs": kept,
                "provenance": about | {"command": "python -m research.benchmarks.peers"},
            }
            path.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
