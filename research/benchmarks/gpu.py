"""The speed promises on a GPU: a BERT-base shape of random weights, everything in one run.

`python -m research.benchmarks.gpu` writes `results/gpu.json`, part by part; it needs CUDA. Words
are drawn and cut with MiniLM's tokenizer, which is BERT's; `--tokenizer` names a folder with a copy
of it.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification, BertModel

from headcount import tasks
from headcount.importance.sweeps.interventions import single_heads
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.records import provenance
from headcount.tasks.task import Task
from research.benchmarks import ablation, gradient, pruned, relevance, survey
from research.benchmarks.flops import floor, forward_cost
from research.benchmarks.interleave import interleaved, ratio, waited

RESULTS = Path(__file__).parent / "results"
ROUNDS = 15


def told(ways: dict[str, Callable[[], object]], of: str, to: str, what: str) -> dict[str, Any]:
    seconds = interleaved({name: waited(work) for name, work in ways.items()}, ROUNDS)
    return {
        "what": what,
        "milliseconds": {name: round(1e3 * min(times), 3) for name, times in seconds.items()},
        "ratio": ratio(seconds, of, to),
    }


#: Batches of a survey; recording a pass is paid once, so that few batches cost more each.
BATCHES = (16, 64, 256)


def surveyed() -> dict[str, Any]:
    """The survey of all columns against the plain forward, 16 x 512 in bfloat16."""
    torch.manual_seed(0)
    subject = Subject(BertModel(BertConfig()).eval().to("cuda", torch.bfloat16), None, name="base")
    found = {}
    for count in BATCHES:
        batches = survey.drawn_batches(subject, count, 16, 512)
        ways = {
            "plain": lambda batches=batches: survey.plain(subject, batches),
            "survey": lambda batches=batches: survey.surveyed(subject, batches),
        }
        found[count] = told(ways, "survey", "plain", f"{count} batches of 16x512, bfloat16")
        found[count]["paths"] = dict(survey.surveyed(subject, batches))
    return found[64] | {"aim": 1.4, "other numbers of batches": [found[16], found[256]]}


#: A folder with BERT's tokenizer; None: that of MiniLM.
TOKENIZER: str | None = None


def classifier(dtype: torch.dtype) -> tuple[Subject, Task]:
    tokenizer: Any = (
        load("minilm", device="cpu").tokenizer
        if TOKENIZER is None
        else AutoTokenizer.from_pretrained(TOKENIZER)
    )
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig()).eval().to("cuda", dtype)
    task = tasks.classification(
        [(text, n % 2) for n, text in enumerate(ablation.words(64, 126))], metric="loss"
    )
    return Subject(model, tokenizer, name="BERT-base shape"), task


def ablated() -> dict[str, Any]:
    """Every head alone, 64 texts of 128 tokens, float32: the sweep against the loop."""
    subject, task = classifier(torch.float32)
    heads = single_heads(subject.anatomy)
    ways = {
        "naive": lambda: ablation.naive(subject, task, heads, 64),
        "sweep": lambda: ablation.swept(subject, task, heads, 64),
    }
    seconds = interleaved({name: waited(work) for name, work in ways.items()}, 4, warm_up=1)
    batch = next(iter(task.batches(subject, 64))).to("cuda")
    sites = Counter(subject.anatomy.site(*one.heads[0][:2]) for one in heads)
    least = floor(*forward_cost(subject, batch), sites)
    found = ratio(seconds, "sweep", "naive")
    return {
        "what": "144 heads, 64 texts of 128 tokens, float32",
        "seconds": {name: round(min(times), 3) for name, times in seconds.items()},
        "ratio": found,
        "floor": round(least, 4),
        "over_floor": round(found["median"] / least, 3),
        "aim": 1.08,
    }


def propagated() -> dict[str, Any]:
    """Relevance of all heads against a forward and backward, 64 texts of 128 tokens, float32."""
    subject, task = classifier(torch.float32)
    subject.model.requires_grad_(False)
    (batch,) = (batch.to("cuda") for batch in task.batches(subject, 64))
    ways = {
        "plain": relevance.plain(
            subject, lambda: subject.model(**batch.inputs).logits.amax(dim=-1)
        ),
        "relevance": relevance.relevant(subject, task, batch, "none"),
    }
    return told(ways, "relevance", "plain", "64 texts of 128 tokens, float32") | {"aim": 2.5}


def sloped() -> list[dict[str, Any]]:
    """Gradient importance against a forward and backward, 16 x 512."""
    cases = (gradient.bert_base(kind, "cuda") for kind in (torch.bfloat16, torch.float32))
    return [gradient.measured(case, ROUNDS) for case in cases]


def main(arguments: list[str] | None = None) -> None:
    global TOKENIZER
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer")
    parser.add_argument("--parts", help="measure some anew: survey,gradient,ablation")
    given = parser.parse_args(arguments)
    TOKENIZER = given.tokenizer
    parts: dict[str, Callable[[], Any]] = {
        "survey": surveyed,
        "gradient": sloped,
        "ablation": ablated,
        "relevance": propagated,
        "pruned": pruned.on_gpu,
    }
    path = RESULTS / "gpu.json"
    result: dict[str, Any] = json.loads(path.read_text()) if given.parts and path.exists() else {}
    result["machine"] = torch.cuda.get_device_name()
    about = result["provenance"] = provenance.collect() | {
        "command": "python -m research.benchmarks.gpu"
    }
    RESULTS.mkdir(exist_ok=True)
    for name in given.parts.split(",") if given.parts else parts:
        found = parts[name]()
        for row in found if isinstance(found, list) else [found]:
            row["time"] = about["time"]
        result[name] = found
        print(name, json.dumps(found, indent=1), flush=True)
        path.write_text(json.dumps(result, indent=2) + "\n")
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
