"""Run in a separate process: open a saved model in one engine, generate greedily, and time it.

Takes a file that says what to do and writes a file of answers. It needs the engine only, so that it
runs in an environment in which headcount is not installed (vLLM wants another transformers).
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: From prompts, as ids, and a number of new tokens: the ids that are generated.
Generate = Callable[[list[list[int]], int], list[list[int]]]


def _transformers(job: dict[str, Any]) -> tuple[Generate, str]:
    import torch
    import transformers

    from headcount.models import load

    torch.set_num_threads(job["threads"])
    model = load(job["model"], device="cpu").inner

    def generate(prompts: list[list[int]], count: int) -> list[list[int]]:
        ids = torch.tensor(prompts)
        how = {"max_new_tokens": count, "min_new_tokens": count, "do_sample": False, "num_beams": 1}
        given = model.generate(ids, attention_mask=torch.ones_like(ids), **how)
        rows: list[list[int]] = given[:, -count:].tolist()
        return rows

    return generate, transformers.__version__


def _llama_cpp(job: dict[str, Any]) -> tuple[Generate, str]:
    import xllamacpp

    wanted = xllamacpp.CommonParams()
    wanted.model.path = job["model"]
    wanted.n_parallel = job["batch"]
    wanted.n_ctx = job["batch"] * job["length"]
    wanted.kv_unified, wanted.warmup, wanted.verbosity = False, False, -1
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = job["threads"]
    server = xllamacpp.Server(wanted)

    def generate(prompts: list[Any], count: int) -> list[list[int]]:
        how = {"n_predict": count, "temperature": 0, "ignore_eos": True, "n_probs": 1}
        one = prompts[0] if len(prompts) == 1 else prompts
        given = server.handle_completions({"prompt": one, "cache_prompt": False, **how})
        if "choices" not in given:
            raise RuntimeError(str(given.get("error", given)))
        rows = sorted(given["choices"], key=lambda choice: choice["index"])
        found = [(row["logprobs"] or {"content": []})["content"] for row in rows]
        return [[piece["id"] for piece in row] for row in found]

    return generate, f"xllamacpp {xllamacpp.__version__}"


def _vllm(job: dict[str, Any]) -> tuple[Generate, str]:
    os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1"}
    os.environ |= {"VLLM_LOGGING_LEVEL": "ERROR", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    import vllm

    how = {"max_model_len": job["length"], "enforce_eager": True, "max_num_seqs": job["batch"]}
    engine = vllm.LLM(model=job["model"], dtype="float32", seed=0, **how)

    def generate(prompts: list[list[int]], count: int) -> list[list[int]]:
        wanted = vllm.SamplingParams(
            temperature=0, max_tokens=count, min_tokens=count, ignore_eos=True
        )
        texts = [{"prompt_token_ids": prompt} for prompt in prompts]
        given = engine.generate(texts, wanted, use_tqdm=False)
        return [list(one.outputs[0].token_ids) for one in given]

    return generate, vllm.__version__


def _onnx(job: dict[str, Any]) -> tuple[Generate, str]:
    """Graphs called as optimum calls them: one, or encoder, first step and all others."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job["threads"]
    sessions = {
        file.name: onnxruntime.InferenceSession(str(file), options, ["CPUExecutionProvider"])
        for file in Path(job["model"]).glob("*.onnx")
    }
    encoder, after = (sessions.get(f"{n}_model.onnx") for n in ("encoder", "decoder_with_past"))
    begin = sessions.get("decoder_model.onnx") or sessions["model.onnx"]
    cached = any(one.name.startswith("past") for one in (after or begin).get_inputs())

    def run(session: Any, given: dict[str, Any]) -> dict[str, Any]:
        taken = {one.name: given[one.name] for one in session.get_inputs()}
        names = [one.name for one in session.get_outputs()]
        return dict(zip(names, session.run(names, taken), strict=True))

    def generate(prompts: list[list[int]], count: int) -> list[list[int]]:
        ids = np.array(prompts, dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        if encoder is not None:
            given["encoder_hidden_states"] = run(encoder, given)["last_hidden_state"]
            given["encoder_attention_mask"] = given["attention_mask"]
            given["input_ids"] = np.full((len(ids), 1), job["start"], dtype=np.int64)
        for one in begin.get_inputs():
            if one.name.startswith("past"):  # nothing was read before
                shape = (len(ids), one.shape[1], 0, one.shape[3])
                given[one.name] = np.zeros(shape, dtype=np.float32)
        said: list[Any] = []
        for _ in range(count):
            width = given["input_ids"].shape[1]
            given["position_ids"] = (given["attention_mask"].cumsum(1) - 1)[:, -width:]
            answer = run(after if after is not None and said else begin, given)
            logits = answer.pop("logits")[:, -1]
            logits[:, job["never"]] = -np.inf
            said.append(logits.argmax(-1)[:, None])
            given |= {f"past_key_values{name[7:]}": value for name, value in answer.items()}
            read = [] if cached else [given["input_ids"]]  # without a cache all is read again
            given["input_ids"] = np.concatenate([*read, said[-1]], 1)
            ones = np.ones_like(said[-1])
            given["attention_mask"] = np.concatenate([given["attention_mask"], ones], 1)
        rows: list[list[int]] = np.concatenate(said, 1).tolist()
        return rows

    return generate, f"onnxruntime {onnxruntime.__version__}{'' if cached else ', no cache'}"


def _memory() -> int:
    """The most memory that this process took; `ru_maxrss` may be that of the one it came from."""
    status = Path("/proc/self/status")
    if status.is_file():
        lines = status.read_text(encoding="utf8").splitlines()
        (line,) = (line for line in lines if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


ENGINES = {"transformers": _transformers, "llama.cpp": _llama_cpp, "vllm": _vllm, "onnx": _onnx}


def run_engine_job() -> None:
    """Do what the file says; a failure is an answer, too."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf8"))
    answer: dict[str, Any]
    try:
        answer = _measured(job)
    except ImportError as error:
        answer = {"missing": error.name or str(error)}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {str(error).strip()[:500]}"}
    Path(sys.argv[2]).write_text(json.dumps(answer), encoding="utf8")


def _measured(job: dict[str, Any]) -> dict[str, Any]:
    start = time.perf_counter()
    generate, version = ENGINES[job["engine"]](job)
    answer: dict[str, Any] = {"version": version, "opened": time.perf_counter() - start}
    prompts, count = job["prompts"], job["count"]
    if not job["rounds"]:  # what it says to each prompt by itself
        return answer | {"said": [generate([prompt], count)[0] for prompt in prompts]}

    def seconds(tokens: int) -> float:
        begun = time.perf_counter()
        generate(prompts, tokens)
        return time.perf_counter() - begun

    seconds(2)
    first = [seconds(1) for _ in range(job["rounds"])]
    whole = [seconds(count) for _ in range(job["rounds"])]
    return answer | {
        "first": statistics.median(first),
        "seconds": statistics.median(whole),
        "memory": _memory(),
    }


if __name__ == "__main__":
    run_engine_job()
