"""Gradient importance of all heads against one forward+backward with respect to the embeddings.

Both with frozen weights, sdpa, eval mode, the same task's loss and the same batches; tokenising is
outside. `python -m research.benchmarks.gradient` measures MiniLM and the translator on the CPU;
`--device cuda` a BERT-base shape of random weights, in bfloat16 and float32.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headcount import tasks
from headcount.bundle import sample
from headcount.importance.gradient import slopes
from headcount.models.guards import eval_mode, frozen
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.records import provenance
from headcount.tasks.task import Task
from headcount.text.batch import Batch, ready_batch
from research.benchmarks.interleave import interleaved, ratio

RESULTS = Path(__file__).parent / "results"
PLAIN = "forward and backward to the embeddings"
AIMS = {"example": 1.1, "token": 1.2}

Case = tuple[Subject, Task, list[Batch]]


def embeddings_of(model: nn.Module) -> list[nn.Module]:
    """The modules that look tokens up: one, or one a side."""
    sides: Any = [model]
    if model.config.is_encoder_decoder:  # type: ignore[union-attr]
        sides = [model.get_encoder(), model.get_decoder()]  # type: ignore[operator]
    return list({id(e): e for e in (side.get_input_embeddings() for side in sides)}.values())


@contextmanager
def to_embeddings(subject: Subject, task: Task) -> Iterator[Callable[[Batch], None]]:
    """The plain work: the gradient of the summed loss in what the embeddings give."""
    found: list[Tensor] = []

    def ask(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        found.append(output.detach().requires_grad_())
        return found[-1]

    def work(batch: Batch) -> None:
        found.clear()
        loss = task.loss(subject, batch).sum()
        [gradient.sum().item() for gradient in torch.autograd.grad(loss, found)]

    with ExitStack() as stack:
        stack.enter_context(eval_mode(subject.model))
        stack.enter_context(frozen(subject.model))
        for module in embeddings_of(subject.model):
            stack.callback(module.register_forward_hook(ask).remove)
        yield work


def ways(case: Case) -> dict[str, Callable[[], None]]:
    """The three kinds of work over the same batches."""
    subject, task, batches = case

    def plain() -> None:
        with to_embeddings(subject, task) as work:
            for batch in batches:
                work(batch)

    def scored(per: Any) -> Callable[[], None]:
        def work() -> None:
            with slopes(subject, task, per) as measure:
                for batch in batches:
                    measure(batch)

        return work

    return {PLAIN: plain, **{per: scored(per) for per in AIMS}}


def classified(model: Any, name: str, rows: int, length: int, batches: int) -> Case:
    """Random words in full batches for a classifier; what they say costs no time."""
    subject = Subject(model.eval(), None, name=name)
    noise = torch.Generator().manual_seed(0)
    task = tasks.classification([("a", n % 2) for n in range(rows * batches)])
    drawn = []
    for number in range(batches):
        ids = torch.randint(1000, 20000, (rows, length), generator=noise)
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        batch = ready_batch(inputs, subject.anatomy.stacks, number * rows)
        drawn.append(task.dress(batch, subject).to(subject.device))
    return subject, task, drawn


def minilm() -> Case:
    bare = load("minilm", device="cpu", dtype="float32")
    from transformers import BertForSequenceClassification

    model = BertForSequenceClassification(bare.model.config)
    model.bert.load_state_dict(bare.model.state_dict())
    return classified(model, "MiniLM, 2 batches of 16x128", 16, 128, 2)


def translator() -> Case:
    subject = load("translator", device="cpu", dtype="float32")
    subject.name = "translator, 64 pairs of the sample"
    task = tasks.translation(sample.pairs()[:64], metric="loss")
    return subject, task, list(task.batches(subject, batch_size=16))


def bert_base(dtype: torch.dtype, device: str, rows: int = 16, length: int = 512) -> Case:
    """As many batches as take about as long in either number type."""
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig()).to(device=device, dtype=dtype)
    kind, batches = str(dtype).removeprefix("torch."), 4 if dtype == torch.float32 else 16
    name = f"BERT-base shape {kind}, {batches} batches of {rows}x{length}"
    return classified(model, name, rows, length, batches)


def measured(case: Case, rounds: int) -> dict[str, Any]:
    subject = case[0]
    assert subject.inner.config._attn_implementation == "sdpa"
    seconds = interleaved(ways(case), rounds)
    return {
        "what": f"{subject.name}, {subject.dtype} on {subject.device}",
        "seconds": {name: round(statistics.median(times), 4) for name, times in seconds.items()},
        "ratio": {per: ratio(seconds, per, PLAIN) for per in AIMS},
        "aim": AIMS,
        "rounds": rounds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=15)
    given, _ = parser.parse_known_args()
    torch.set_num_threads(2)
    gpu = given.device != "cpu"
    kinds = (torch.bfloat16, torch.float32)
    cases = [bert_base(kind, given.device) for kind in kinds] if gpu else [minilm(), translator()]
    result = {
        "cases": [measured(case, given.rounds) for case in cases],
        "machine": torch.cuda.get_device_name() if gpu else "CPU, 2 threads",
        "provenance": provenance.collect() | {"command": "python -m research.benchmarks.gradient"},
    }
    RESULTS.mkdir(exist_ok=True)
    name = "gradient-gpu.json" if gpu else "gradient.json"
    (RESULTS / name).write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps({k: v for k, v in result.items() if k != "provenance"}, indent=2))


if __name__ == "__main__":
    main()
