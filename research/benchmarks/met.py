"""Speed as users meet it: a process a case, empty caches, default options, texts of mixed lengths.

`python -m research.benchmarks.met` measures every case of this machine (`--device cuda` or `cpu`)
and writes `results/met-<device>.json`; `--case NAME ...` measures some. Models are shapes with
random weights, except on a CPU, where MiniLM and the bundled translator stand; texts are words of
the bundled sample, as many as sentences and paragraphs have.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headcount.records import provenance

RESULTS = Path(__file__).parent / "results"

# --- Texts and models ---------------------------------------------------------------------------


def mixed(count: int, words: float, spread: float, most: int, seed: int = 0) -> list[str]:
    """Texts of drawn words, of as many as a lognormal draw says: mixed, as real ones are."""
    from headcount.bundle import sample

    known = " ".join(sample.sentences()).split()
    draw = random.Random(seed)
    lengths = [int(words * draw.lognormvariate(0, spread)) for _ in range(count)]
    return [" ".join(draw.choices(known, k=max(2, min(most, length)))) for length in lengths]


def sentences(count: int) -> list[str]:
    """As long as those of a treebank of the web: 12 words in the middle, at most 80."""
    return mixed(count, 12, 0.8, 80)


def paragraphs(count: int) -> list[str]:
    """90 words in the middle, at most 300."""
    return mixed(count, 90, 0.6, 300)


def made_tokenizer(eos: bool) -> Any:
    """A tokenizer trained on the bundled sample: no file of a model is needed."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    from headcount.bundle import sample

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.train_from_iterator(
        sample.sentences(), trainers.WordPieceTrainer(vocab_size=2000, special_tokens=special)
    )
    ends = "[CLS] $A [SEP]" if eos else "[CLS] $A"
    made.post_processor = processors.TemplateProcessing(
        single=ends, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        **({} if eos else {"bos_token": "[CLS]", "eos_token": "[SEP]"}),
    )  # fmt: skip


LLAMAS = {
    "1b": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16},
    "8b": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32},
}


def subject_of(shape: str, device: str) -> Any:
    """A BERT-base, 1B or 8B shape with random weights in bfloat16; on a CPU MiniLM, SmolLM2."""
    import headcount as hc

    if device == "cpu":
        return hc.load({"base": "minilm", "1b": "smollm2"}.get(shape, shape), device="cpu")
    from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        if shape == "base":
            model: Any = BertModel(BertConfig())
        else:
            config = LlamaConfig(
                vocab_size=128256, num_attention_heads=32, num_key_value_heads=8,
                max_position_embeddings=131072, **LLAMAS[shape],
            )  # fmt: skip
            model = LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    return hc.Subject(model.eval(), made_tokenizer(shape == "base"), name=f"{shape} shape")


# --- What is timed ------------------------------------------------------------------------------


def seconds(work: Callable[[], object]) -> float:
    """How long something takes, the GPU waited for; on a CPU the time of its threads."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        begun = time.perf_counter()
        work()
        torch.cuda.synchronize()
        return time.perf_counter() - begun
    begun = time.process_time()
    work()
    return time.process_time() - begun


def profiled(work: Callable[[], object]) -> None:
    """Where the time of one call goes, by Python's own profiler, on the standard error."""
    profile = cProfile.Profile()
    profile.runcall(work)
    told = pstats.Stats(profile, stream=sys.stderr)
    for order in ("tottime", "cumtime"):
        told.sort_stats(order).print_stats(70)


def sums_by_hand(maps: Tensor, real: Tensor, ids: Tensor) -> Tensor:
    """Seven sums that a careful user would write, `[sum, head]`: the same columns as a survey's."""
    rows = real[:, None].float()
    maps = maps.float()
    place = torch.arange(maps.shape[-1], device=maps.device)
    separator = (ids == ids[:, :1]) | (ids == 3) | (ids == 102)
    diagonals = [
        torch.nn.functional.pad(maps.diagonal(offset, 2, 3), (max(0, -offset), max(0, offset)))
        for offset in (-1, 0, 1)
    ]
    found = [
        -(maps * maps.clamp_min(1e-30).log()).sum(-1),
        maps.amax(-1),
        *diagonals,
        (maps * (place == 0)).sum(-1),
        (maps * separator[:, None, None]).sum(-1),
    ]
    return torch.stack([(one * rows).sum((0, 2)) for one in found])


def survey_case(shape: str, texts: list[str], device: str, alone: bool = False) -> dict[str, Any]:
    """First and second call of a survey at default options beside plain forwards and by hand.

    `alone` times the plain forwards in a fresh process, which has kernels to load as well.
    """
    import headcount as hc
    from headcount.surveys.passes import PassOptions, batches_of
    from headcount.text import read_corpus

    found: dict[str, Any] = {"texts": len(texts)}
    found["load"] = seconds(lambda: found.update(subject=subject_of(shape, device)))
    subject = found.pop("subject")
    stacks = subject.anatomy.stacks
    made = list(batches_of(subject, read_corpus(texts), PassOptions(stacks)))
    spared: dict[str, Any] = {"use_cache": False} if "dec" in stacks else {}
    if "dec" in stacks:
        spared["logits_to_keep"] = 1

    def plain() -> None:
        with torch.inference_mode():
            for batch in made:
                inputs = {name: part.to(subject.device) for name, part in batch.inputs.items()}
                subject.model(**inputs, **spared)

    def by_hand() -> None:
        subject.model.set_attn_implementation("eager")
        total: list[Tensor] = []
        with torch.inference_mode():
            for batch in made:
                inputs = {name: part.to(subject.device) for name, part in batch.inputs.items()}
                maps = subject.model(**inputs, **spared, output_attentions=True).attentions
                real = inputs["attention_mask"]
                total += [sums_by_hand(one, real, inputs["input_ids"]) for one in maps]
        torch.stack(total).cpu()
        subject.model.set_attn_implementation("sdpa")

    with torch.inference_mode():  # the device wakes up, as any use of it would make it
        first = {name: part[:1, :2].to(subject.device) for name, part in made[-1].inputs.items()}
        subject.model(**first, **spared)
    if alone:
        found["first plain forwards"] = seconds(plain)
        found["second plain forwards"] = seconds(plain)
        return found
    tables: list[Any] = []
    if os.environ.get("MET_PROFILE") == "first":
        profiled(lambda: hc.survey(subject, texts))
        return found
    found["first call"] = seconds(lambda: tables.append(hc.survey(subject, texts)))
    found["second call"] = seconds(lambda: hc.survey(subject, texts))
    found["third call"] = seconds(lambda: hc.survey(subject, texts))
    if os.environ.get("MET_PROFILE"):
        profiled(lambda: hc.survey(subject, texts))
    found["plain"] = min(seconds(plain) for _ in range(3))
    found["tokens"] = sum(int(batch.inputs["attention_mask"].sum()) for batch in made)
    found["padded"] = sum(batch.inputs["input_ids"].numel() for batch in made)
    found["batches"] = len(made)
    found["attention"] = tables[0].provenance["attention"]
    kernels = sys.modules.get("headcount.rooms.kernel.kernel")
    if kernels is not None:
        found["kernels"] = len(kernels._row_statistics.device_caches[0][0])
    try:
        found["by hand"] = min(seconds(by_hand) for _ in range(2))
    except torch.OutOfMemoryError:
        found["by hand"] = None
    for name in ("first call", "second call", "by hand"):
        if found[name] is not None:
            found[f"{name}, in plain forwards"] = found[name] / found["plain"]
    return found


def scores_case(shape: str, device: str) -> dict[str, Any]:
    """Relevance, gradient and ablation of 64 texts beside a forward and backward of them."""
    import headcount as hc

    subject = subject_of(shape, device)
    task = hc.tasks.lm(sentences(64)) if shape != "translator" else _pairs()
    batches = [batch.to(subject.device) for batch in task.batches(subject, 16)]
    embedding = subject.inner.get_input_embeddings()

    def forward_and_backward() -> None:
        for batch in batches:
            kept: list[Tensor] = []

            def leaf(_: Any, __: Any, output: Tensor, kept: list[Tensor] = kept) -> Tensor:
                kept.append(output.detach().requires_grad_())
                return kept[-1]

            handle = embedding.register_forward_hook(leaf)
            out = subject.model(**batch.inputs)
            handle.remove()
            torch.autograd.grad(out.logits.float().logsumexp(-1).sum(), kept)

    def forwards() -> None:
        with torch.inference_mode():
            for batch in batches:
                subject.model(**batch.inputs)

    for parameter in subject.model.parameters():
        parameter.requires_grad_(False)
    forward_and_backward()
    found: dict[str, Any] = {"examples": len(task)}
    found["forward and backward"] = min(seconds(forward_and_backward) for _ in range(3))
    found["forward"] = min(seconds(forwards) for _ in range(3))
    for name in ("gradient", "contribution"):
        found[name] = seconds(lambda name=name: hc.score(subject, task, by=name, compare=False))
        found[f"{name}, in forwards and backwards"] = found[name] / found["forward and backward"]
    few = task.limit(16, 0)
    found["ablation of 16"] = seconds(lambda: hc.score(subject, few, by="ablation", compare=False))
    each = found["forward"] * len(few) / len(task) * len(subject.heads)
    found["ablation, in evaluations a head"] = found["ablation of 16"] / each
    return found


def _pairs(first: int = 0, last: int = 16) -> Any:
    import headcount as hc
    from headcount.bundle import sample

    return hc.tasks.translation(sample.pairs()[first:last], metric="loss")


def draws_case() -> dict[str, Any]:
    """Relevance of 20 pairs by how many predictions of each are explained, beside all of them."""
    from scipy.stats import spearmanr

    import headcount as hc

    subject, found = hc.load("translator", device="cpu"), dict[str, Any]()
    tables: dict[str, Any] = {}

    def measured(name: str, first: int, predictions: int | str) -> None:
        task = _pairs(first, first + 20)
        how = {"by": "contribution", "compare": False, "predictions": predictions}
        taken = seconds(lambda: tables.update({name: hc.score(subject, task, **how)}))
        value, low, high = (part["contribution"].to_numpy() for part in tables[name].parts())
        whole, least, most = (part["contribution"].to_numpy() for part in tables["all"].parts())
        found[f"{name}: seconds"] = taken
        found[f"{name}: rank correlation with all"] = float(spearmanr(value, whole)[0])
        found[f"{name}: intervals, in those of all"] = float(((high - low) / (most - least)).mean())
        found[f"{name}: mean difference from all"] = float(abs(value - whole).mean())

    hc.score(subject, _pairs(0, 2), by="contribution", compare=False)
    for predictions in ("all", 16, 8, 4, 2):
        measured(str(predictions), 0, predictions)
    for first in (20, 40):
        measured(f"all of pairs {first} on", first, "all")
    return found


def story_case(shape: str, device: str) -> dict[str, Any]:
    """What a story does with a model: survey with roles and twin, families, scores, pruning."""
    import headcount as hc

    subject, texts = subject_of(shape, device), sentences(64)
    task = hc.tasks.lm(texts) if shape != "base" else None
    found: dict[str, Any] = {}

    def stage(name: str, work: Callable[[], object]) -> None:
        found[name] = seconds(work)
        print(f"  {name}: {found[name]:.2f}", file=sys.stderr, flush=True)

    stage("hash", lambda: subject.weights_hash)
    stage("survey", lambda: hc.survey(subject, texts))
    judged = {"roles": hc.RoleOptions(control="random-init")}
    stage("survey with roles and twin", lambda: hc.survey(subject, texts, **judged))
    stage("families", lambda: hc.families(subject, texts))
    if task is not None:
        few = task.limit(16, 0)
        stage("gradient", lambda: hc.score(subject, task, by="gradient", compare=False))
        stage("contribution", lambda: hc.score(subject, task, by="contribution", compare=False))
        stage("ablation", lambda: hc.score(subject, few, by="ablation", compare=False))
    going = [head for head in subject.heads if head.index % 4 == 3 or head.index >= 28]
    if shape != "base":  # heads of a group of keys go together
        going = [head for head in subject.heads if head.index >= 16]
    smaller: list[Any] = []
    stage("prune", lambda: smaller.append(hc.prune(subject, going)))
    with tempfile.TemporaryDirectory() as folder:
        stage("save", lambda: smaller[0].save(Path(folder) / "pruned"))
    found["story"] = sum(found.values())
    return found


def demo_case() -> dict[str, Any]:
    """`headcount report` of the bundled translator, as a newcomer types it: a core's seconds.

    Stages say the seconds that passed, which other programs on the machine stretch.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "headcount", "report", "translator", "-o", "page.html"]
        before = os.times()
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        after = os.times()
        stages = json.loads(Path(folder, "run-translator", "run.json").read_text())["stages"]
    found: dict[str, Any] = {"a core's seconds": after.children_user - before.children_user}
    found["seconds passed"] = after.elapsed - before.elapsed
    return found | {
        f"passed in {name}": stage.get("seconds", 0.0) for name, stage in stages.items()
    }


def start_case(device: str) -> dict[str, Any]:
    """Import, --help, loading and a first survey, beside what transformers takes by itself."""
    from headcount.models.finding import model_dir

    found, minilm = {}, "hc.load('minilm', device='cpu')"
    alone = (
        "import torch, transformers as t; "
        f"at = {str(model_dir('minilm'))!r}; model = t.AutoModel.from_pretrained(at); "
        "model(**t.AutoTokenizer.from_pretrained(at)(['So.'], return_tensors='pt'))"
    )
    for name, command in {
        "import headcount": ["-c", "import headcount"],
        "headcount --help": ["-m", "headcount", "--help"],
        "load MiniLM": ["-c", "import headcount as hc; hc.load('minilm', device='cpu')"],
        "load and survey MiniLM": ["-c", f"import headcount as hc; hc.survey({minilm}, ['So.'])"],
        "load and run it in transformers alone": ["-c", alone],
    }.items():
        before = os.times()
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        after = os.times()
        found[name] = after.children_user - before.children_user
    return found


CASES: dict[str, dict[str, Callable[[], dict[str, Any]]]] = {
    "cuda": {
        "sentences": lambda: survey_case("base", sentences(4000), "cuda"),
        "sentences, plain alone": lambda: survey_case("base", sentences(4000), "cuda", alone=True),
        "paragraphs": lambda: survey_case("base", paragraphs(1500), "cuda"),
        "long": lambda: survey_case("1b", mixed(8, 1500, 0, 1500), "cuda"),
        "one short text": lambda: survey_case("base", sentences(1), "cuda"),
        "scores": lambda: scores_case("1b", "cuda"),
        "story of an encoder": lambda: story_case("base", "cuda"),
        "story of 1B": lambda: story_case("1b", "cuda"),
        "story of 8B": lambda: story_case("8b", "cuda"),
    },
    "cpu": {
        "start": lambda: start_case("cpu"),
        "sentences": lambda: survey_case("base", sentences(1500), "cpu"),
        "few sentences": lambda: survey_case("base", sentences(120), "cpu"),
        "paragraphs": lambda: survey_case("base", paragraphs(300), "cpu"),
        "one short text": lambda: survey_case("base", sentences(1), "cpu"),
        "scores of the translator": lambda: scores_case("translator", "cpu"),
        "predictions drawn": draws_case,
        "demo story": demo_case,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--case", nargs="+")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--here", action="store_true", help="in this process; prints the JSON")
    asked = parser.parse_args()
    cases = CASES[asked.device]
    if asked.here:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
        print(json.dumps(cases[asked.case[0]]()))
        return
    out = asked.out or RESULTS / f"met-{asked.device}.json"
    found = json.loads(out.read_text()) if out.exists() else {"cases": {}}
    for name in asked.case or cases:
        print(name, "...", flush=True)
        with tempfile.TemporaryDirectory() as empty:
            caches = ("TRITON_CACHE_DIR", "CUDA_CACHE_PATH", "TORCHINDUCTOR_CACHE_DIR")
            command = [sys.executable, "-m", "research.benchmarks.met", "--here"]
            done = subprocess.run(
                [*command, "--device", asked.device, "--case", name],
                env=os.environ | dict.fromkeys(caches, empty),
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
        if done.returncode:
            print(f"{name} failed", flush=True)
            continue
        case = json.loads(done.stdout.splitlines()[-1])
        found["cases"][name] = {
            key: float(f"{value:.4g}") if isinstance(value, float) else value
            for key, value in case.items()
        }
        print(json.dumps(found["cases"][name], indent=1), flush=True)
        found["provenance"] = provenance.collect() | {
            "command": "python -m research.benchmarks.met"
        }
        out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
