"""The commands that are broken off, on models so small that one takes a second."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from subjects import save
from tiny_tokenizers import ENGLISH, PAIRS

CLASSES = "classification:dev.tsv,metric=loss"
PRUNE = ["prune", "classes", "--task", CLASSES, "-o", "small"]

COMMANDS: dict[str, list[str]] = {
    "survey": ["survey", "encoder", "--treebank", "trees.conllu", "--families", "-o", "run"],
    "score": ["score", "classes", "--task", CLASSES, "--by", "ablation,gradient", "-o", "run"],
    "prune, ranked": [*PRUNE, "--drop-share", "0.5", "--step", "25", "--by", "gradient,random"],
    "prune, gates": [*PRUNE, "--gates", "--keep", "4", "--gate-steps", "3"],
    "prune, healed": [*PRUNE, "--drop-share", "0.5", "--step", "50", "--heal", "--heal-steps", "2"],
    "probe": ["probe", "encoder", "--treebank", "trees.conllu", "--epochs", "1", "-o", "run"],
    "compare": ["compare", "encoder", "other", "--text", "a.txt", "-o", "changes"],
    "report": [
        *("report", "classes", "--text", "a.txt", "--task", CLASSES, "--limit", "6"),
        *("--run", "run", "-o", "page.html"),
    ],
    "atlas": ["atlas", "atlas.toml", "--limit", "6", "-o", "atlas"],
}
#: What all of them are told.
ALWAYS = ["--device", "cpu", "--seed", "0"]
#: But for those that take fewer options.
LESS = {"atlas": ALWAYS[:2], "ls": []}

ATLAS = f"""[models]
one = "classes"
two = {{twin_of = "classes", seed = 1}}
[corpora]
text = {{text = "a.txt"}}
[tasks]
labels = "{CLASSES}"
"""
WORDS = ["rain", "fell", "on", "the", "old", "roof", "all", "night"]


def _tree(number: int) -> str:
    """A sentence of five to eight words, each hanging on the next or on the root."""
    size = 5 + number % 4
    words = [WORDS[(number + k) % len(WORDS)] for k in range(size)]
    rows = [f"# sent_id = {number}", f"# text = {' '.join(words)}"]
    tags = ["DET", "NOUN", "VERB", "ADV"]
    for k, word in enumerate(words, 1):
        head, relation = (0, "root") if k == size else (k + 1, ["det", "nsubj", "obj"][k % 3])
        rows.append(f"{k}\t{word}\t{word}\t{tags[k % 4]}\t_\t_\t{head}\t{relation}\t_\t_")
    return "\n".join(rows) + "\n\n"


def steady_times() -> None:
    """What `report` times takes the same time always: such figures differ between two runs."""
    sizes: Any = import_module("headcount.rooms.bench.sizes")
    sizes.interleaved = lambda ways, rounds: {name: [1.0] * rounds for name in ways}


def make_inputs(folder: Path) -> None:
    """Three tiny models and the files that the commands read."""
    save(folder / "encoder", "bert", "wordpiece")
    save(folder / "other", "bert", "wordpiece", seed=1)
    save(folder / "classes", "bert", "wordpiece", model_class="BertForSequenceClassification")
    rows = [f"{text}\t{number % 2}" for number, (text, _) in enumerate(PAIRS * 2)]
    (folder / "dev.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n", encoding="utf8")
    (folder / "atlas.toml").write_text(ATLAS)
    (folder / "a.txt").write_text("\n".join(ENGLISH) + "\n", encoding="utf8")
    trees = "".join(_tree(number) for number in range(12))
    (folder / "trees.conllu").write_text(trees, encoding="utf8")
