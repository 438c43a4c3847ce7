"""`python -m research.serving --work DIR`: pruned models in other engines, tokens and speeds.

SmolLM2 whole, with as many heads gone from every layer, and with two layers without attention; the
translator without some heads. Each is saved in every way that engines read, and 24 greedy tokens of
three prompts are compared with transformers. Folders that are in DIR already are taken as they are.
vLLM wants an environment of its own: HEADCOUNT_VLLM_PYTHON names its Python.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import headcount as hc
from headcount.errors import HeadcountError
from headcount.models import Saved
from headcount.records import provenance
from headcount.rooms.bench.engines import serving_speed, verified
from headcount.rooms.bench.speed import even_heads
from research import RESULTS

COMMAND = "python -m research.serving --work DIR"
UNEVEN = "dec.0,dec.1.0-2,dec.2.0-5,dec.5,dec.7.0,dec.7.3,dec.7.6"
EXPORTS = {"vllm": None, "llama.cpp": "gguf", "llama.cpp packed": "gguf-q8_0", "onnx": "onnx"}
#: Model, what goes, and the engines it is tried in.
CASES: dict[str, tuple[str, str | None, tuple[str, ...]]] = {
    "smollm2, even": ("smollm2", "even", ("vllm", "llama.cpp", "llama.cpp packed")),
    "smollm2, uneven": ("smollm2", UNEVEN, ("vllm", "llama.cpp", "llama.cpp packed")),
    "translator, uneven": ("translator", "enc.0.1,enc.3.2,dec.1.0-2,cross.5", ("onnx",)),
    "t5-titles, uneven": ("t5-titles", "enc.0.1,dec.1.0-2,cross.2.4", ("onnx",)),
}


def _saved(small: hc.Subject, folder: Path, export: str | None) -> Saved:
    """What was saved, now or by an earlier run."""
    if not folder.exists():
        dtype = {} if export else {"dtype": "float32"}
        return small.save(folder, export=export, **dtype)
    told = json.loads((folder / "headcount.json").read_text(encoding="utf8"))
    return Saved(folder, told["route"], told["why"], "", 0.0)


def tried(work: Path, name: str) -> list[dict[str, Any]]:
    """A row an engine: what it says of the model."""
    model, going, engines = CASES[name]
    whole = hc.load(model, device="cpu")
    heads = even_heads(whole, 0.34) if going == "even" else going
    made = hc.prune(whole, heads)
    word = name.replace(", ", "-")
    plain = _saved(made, work / word, None)
    small = hc.load(plain.folder, device="cpu")  # of safetensors, not of the file it came from
    rows = []
    for engine in engines:
        export = EXPORTS[engine]
        row = {"model": name, "heads": len(small.heads), "of": len(whole.heads), "engine": engine}
        try:
            saved = plain if export is None else _saved(small, work / f"{word}-{export}", export)
            row |= {"route": saved.route, "said": verified(engine.split()[0], small, saved)}
        except HeadcountError as error:
            row["refused"] = str(error)
        print(json.dumps(row), flush=True)
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.serving", description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--cases", nargs="+", default=[*CASES], choices=[*CASES])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--speeds", nargs="*", default=["llama.cpp", "transformers"])
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--out", type=Path, default=RESULTS / "serving.json")
    given = parser.parse_args()
    kept: dict[str, Any] = {"command": COMMAND, "tried": [], "speeds": []}
    if given.out.exists():
        kept |= json.loads(given.out.read_text(encoding="utf8"))
    for name in given.cases:
        others = [row for row in kept["tried"] if row["model"] != name]
        kept["tried"] = [*others, *tried(given.work, name)]
        kept["provenance"] = provenance.collect() | {"command": COMMAND}
        given.out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf8")
    folder = str(given.work)
    files = [f"{folder}/smollm2-{kind}-gguf/model.gguf" for kind in ("even", "uneven")]
    folders = ["smollm2", f"{folder}/smollm2-even", f"{folder}/smollm2-uneven"]
    how = {"batches": given.batches, "tokens": given.tokens}
    for engine, models in (("llama.cpp", ["smollm2", *files]), ("transformers", folders)):
        if engine not in given.speeds:
            continue
        report = vars(serving_speed(engine, models, **how))
        rows = [row | {"model": row["model"].replace(f"{folder}/", "")} for row in report["rows"]]
        others = [one for one in kept["speeds"] if one["engine"] != engine]
        kept["speeds"] = [*others, report | {"rows": rows}]
        print(json.dumps(kept["speeds"][-1]), flush=True)
        given.out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
