"""Everything that headcount reads, each with sound files of its kind to be damaged."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import peft
import safetensors.torch
from gguf_files import write_llama
from report_runs import THREE, made_run
from subjects import save, subject_of
from tiny import TINY
from tiny_subjects import classifier
from transformers import AutoModel

import headcount as hc
from headcount import tasks
from headcount.cli.inputs import read_task_file
from headcount.models import LoadOptions
from headcount.pruning.goal import OutputFolder
from headcount.pruning.pruned import _marked
from headcount.records import Journal, WorkOptions
from headcount.rooms.atlas.command import AtlasArguments, read_plan
from headcount.rooms.exhibits import read_exhibits
from headcount.rooms.gates import learn_gates
from headcount.rooms.probing import Probe
from headcount.rooms.probing.data import read_vectors
from headcount.rooms.rarity.rarity import frequencies_of
from headcount.text import read_corpus

Read = Callable[[Path], Any]


def _same(data: bytes) -> bytes:
    return data


@dataclass(frozen=True)
class Target:
    """A reader, a folder of files that it reads, and the one file that is damaged."""

    name: str
    #: The file that is damaged, within the folder.
    file: str
    #: Fills a folder with sound files.
    make: Callable[[Path], None]
    #: Reads from the folder.
    read: Read
    #: Whether it is made of lines and cells.
    text: bool = True
    #: Takes the file apart before the damage, and puts it together again.
    unpack: Callable[[bytes], bytes] = field(default=_same)
    pack: Callable[[bytes], bytes] = field(default=_same)
    #: How much a trial costs, beside a reader of text.
    cost: int = 1
    #: What the sentence must name: the file, or a part of its path.
    named: str | None = None


# --- Corpora, tables and other text -------------------------------------------------------------

TXT = "Rain fell on the roof.\n\nShe mends clocks; he breaks them.\nZwei Krähen stritten.\n"
TSV = "Rain fell.\tRegen fiel.\nShe left early.\tSie ging früh.\nTwo crows.\tZwei Krähen.\n"
CSV = 'source,target\n"Rain, fell.",Regen fiel.\nShe left.,"Sie ""ging""."\n'
CONLLU = """# newdoc id = one
# sent_id = 1
# text = She don't eat fish.
# text_de = Sie isst keinen Fisch.
1\tShe\tshe\tPRON\tPRP\tCase=Nom|Number=Sing\t4\tnsubj\t_\tEntity=(e1-person-1)
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\teat\teat\tVERB\tVB\t_\t0\troot\t_\t_
5\tfish\tfish\tNOUN\tNN\t_\t4\tobj\t4:obj\tSpaceAfter=No|Entity=(e2
5.1\tgone\tgo\tVERB\t_\t_\t_\t_\t4:conj\t_
6\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\tEntity=e2)

# sent_id = 2
# text = It swam.
# text_de = Er schwamm.
1\tIt\tit\tPRON\tPRP\t_\t2\tnsubj\t_\tEntity=(e2)
2\tswam\tswim\tVERB\tVBD\t_\t0\troot\t_\tSpaceAfter=No
3\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

"""
CONLL = """1\tRain\train\tNN\tNN\t_\t2\tnsubj
2\tfell\tfall\tVBD\tVBD\t_\t0\troot
3\t.\t.\t.\t.\t_\t2\tpunct

1\tShe\tshe\tPRP\tPRP\t_\t2\tnsubj
2\tleft\tleave\tVBD\tVBD\t_\t0\troot

"""
COREF = [
    {
        "doc": "one",
        "sents": [["Ada", "wrote", "."], ["She", "left", "her", "desk", "."]],
        "clusters": [[[0, 0], [3, 3], [5, 5]], [[5, 6]]],
    },
    {
        "doc": "two",
        "sents": [["It", "rained", "."]],
        "clusters": [],
    },
]
PREDICATES = [
    {
        "tokens": ["She", "ate", "fish", "."],
        "preds": [{"i": 1, "args": [["ARG0", 0, 1], ["ARG1", 2, 3]]}],
    },
    {"tokens": ["It", "rained", "."], "preds": [{"i": 1, "args": [["ARG0", 0, 1]]}]},
]
GAP_HEADER = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL"
GAP_TEXT = "Ada met Ida before she left town."
GAP = (
    f"{GAP_HEADER}\none-1\t{GAP_TEXT}\tshe\t19\tAda\t0\tTRUE\tIda\t8\tFALSE\tx\n"
    f"one-2\t{GAP_TEXT}\tshe\t19\tAda\t0\tFALSE\tIda\t8\tTRUE\tx\n"
)
LABELLED = "text\ttext2\tlabel\nRain fell.\tIt rained.\t1\nShe left.\tShe stayed.\t0\n"
SCORED = (
    '{"text": "Rain.", "text2": "Wet.", "label": 0.5}\n{"text": "A", "text2": "B", "label": 1}\n'
)
TASK = """kind = "classification"
file = "dev.tsv"
metric = "accuracy"
text = "text"
label = "label"
labels = ["0", "1"]
"""
VECTORS = "3 4\nthe 0.1 0.2 0.3 0.4\ncat -1 2e-3 0 1\n. . 1 1 1 1\n"
COUNTS = "the\t120\ncat 7\ndog\t3.5\n"


def _rows(records: Sequence[Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def _corpus(**how: Any) -> Callable[[str], Read]:
    return lambda file: lambda folder: list(read_corpus(folder / file, **how))


def _written(file: str, content: str | bytes) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        data = content.encode() if isinstance(content, str) else content
        (folder / file).write_bytes(data)

    return make


def _text(name: str, file: str, content: str, read: Callable[[str], Read], **more: Any) -> Target:
    pack = more.get("pack", _same)
    return Target(name, file, _written(file, pack(content.encode())), read(file), **more)


def _task_file(folder: Path) -> Any:
    (folder / "dev.tsv").write_text(LABELLED)
    return read_task_file(folder / "task.toml").build()


def _label(file: str) -> Read:
    return lambda folder: tasks.classification(folder / file)


def _number(file: str) -> Read:
    return lambda folder: tasks.regression(folder / file)


def _glue(folder: Path) -> Any:
    return tasks.glue("sst2", folder)


def _texts() -> list[Target]:
    packed = {"gz": (gzip.compress, gzip.decompress), "xz": (lzma.compress, lzma.decompress)}
    packed["bz2"] = (bz2.compress, bz2.decompress)
    found = [
        _text("text", "a.txt", TXT, _corpus()),
        _text("pairs", "a.tsv", TSV, _corpus()),
        _text("pairs with a header", "a.tsv", f"en\tde\n{TSV}", _corpus(columns=("en", "de"))),
        _text("pairs with commas", "a.csv", CSV, _corpus(columns=("source", "target"))),
        _text("CoNLL-U", "a.conllu", CONLLU, _corpus()),
        _text("CoNLL-U, strict", "a.conllu", CONLLU, _corpus(strict=True)),
        _text("CoNLL-U, passages", "a.conllu", CONLLU, _corpus(passage=30)),
        _text("CoNLL-U, translated", "a.conllu", CONLLU, _corpus(translation="text_de")),
        _text("CoNLL", "a.conll", CONLL, _corpus()),
        _text("coreference", "a.jsonl", _rows(COREF), _corpus()),
        _text("coreference, strict", "a.jsonl", _rows(COREF), _corpus(strict=True)),
        _text("predicates", "a.jsonl", _rows(PREDICATES), _corpus()),
        _text("predicates, strict", "a.jsonl", _rows(PREDICATES), _corpus(strict=True)),
        _text("GAP", "a.tsv", GAP, _corpus()),
        _text("GAP, strict", "a.tsv", GAP, _corpus(format="gap", strict=True)),
        _text("labelled rows", "a.tsv", LABELLED, _label),
        _text("labelled rows with commas", "a.csv", LABELLED.replace("\t", ","), _label),
        _text("records with numbers", "a.jsonl", SCORED, _number),
        _text("GLUE", "dev.tsv", "sentence\tlabel\nRain.\t1\nShe left.\t0\n", lambda _: _glue),
        _text("task file", "task.toml", TASK, lambda _: _task_file, named=""),
        _text("vectors", "a.vec", VECTORS, lambda file: lambda at: read_vectors(at / file)),
        _text("word counts", "a.txt", COUNTS, lambda file: lambda at: frequencies_of(at / file)),
    ]
    for suffix, (pack, unpack) in packed.items():
        file = f"a.conllu.{suffix}"
        found.append(
            _text(f"CoNLL-U in .{suffix}", file, CONLLU, _corpus(), pack=pack, unpack=unpack)
        )
        found.append(
            Target(
                f"damaged .{suffix}",
                file,
                _written(file, pack(CONLLU.encode())),
                _corpus()(file),
                text=False,
            )
        )
    return found


# --- Records ------------------------------------------------------------------------------------

FINGERPRINT = {"seed": 0, "heads": ["enc.0.0", "enc.0.1"]}


def _journal(folder: Path) -> None:
    with Journal.open(folder / "journal.jsonl", FINGERPRINT) as journal:
        journal.append("enc.0.0", {"loss": 0.25, "rows": [1.0, float("nan")]})
        journal.append("enc.0.1", [1, 2, 3])


def _open_journal(folder: Path) -> None:
    with Journal.open(folder / "journal.jsonl", FINGERPRINT) as journal:
        if "new" not in journal.done:
            journal.append("new", 1)


@cache
def _run_files() -> dict[str, bytes]:
    """A run with every part, made once."""
    with tempfile.TemporaryDirectory() as scratch:
        place = made_run(
            Path(scratch, "run"),
            dict.fromkeys(THREE, (2, 2)),
            source=("[CLS]", "old", "mill", "[SEP]"),
            target=("<s>", "alte", "</s>"),
        )
        files = (file for file in place.rglob("*") if file.is_file())
        return {str(file.relative_to(place)): file.read_bytes() for file in files}


def _run(folder: Path) -> None:
    for name, data in _run_files().items():
        file = folder / "run" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def _read_run(folder: Path) -> None:
    run = hc.Run.open(folder / "run", create=False)
    run.read_table()
    for name in run.frames:
        run.read_frame(name)
    run.read_arrays("pairs")


def _report(folder: Path) -> None:
    hc.report(folder / "run", folder / "page.html")


ATLAS = """[models]
small = "model"
"a twin" = {twin_of = "model", seed = 3}
half = {pruned_from = "model", drop_share = 0.5}
[corpora]
ours = "sample"
theirs = {text = "a.txt"}
[tasks]
words = "lm:a.txt"
"""


def _atlas(folder: Path) -> None:
    (folder / "a.txt").write_text(TXT)
    (folder / "atlas.toml").write_text(ATLAS)


def _read_atlas(folder: Path) -> Any:
    return read_plan(folder / "atlas.toml", AtlasArguments(), WorkOptions(), LoadOptions())


def _limited(folder: Path) -> Any:
    """A text whose limit is the number in another file, as the command line would read it."""
    told = (folder / "limit").read_text(encoding="utf8", errors="replace")
    try:
        limit = int(told)
    except ValueError:
        return None  # click refuses it
    (folder / "a.txt").write_text(TXT)
    return list(read_corpus(folder / "a.txt", limit=limit))


def _shard(folder: Path) -> None:
    """A survey that was done but not written down, in one shard."""
    texts = ["Rain fell.", "She left."]
    hc.survey(_probed(), texts, columns=["entropy"], journal=folder / "kept")
    (file,) = (folder / "kept").rglob("shard-0.safetensors")
    (folder / "shard-0.safetensors").write_bytes(file.read_bytes())


def _go_on(folder: Path) -> Any:
    """Go on with it, the checksum being that of the damaged file."""
    (journal,) = (folder / "kept").rglob("journal.jsonl")
    data = (folder / "shard-0.safetensors").read_bytes()
    journal.with_name("shard-0.safetensors").write_bytes(data)
    head, line = journal.read_text().splitlines()
    unit = json.loads(line)
    unit["result"]["sha256"] = hashlib.sha256(data).hexdigest()
    journal.write_text(f"{head}\n{json.dumps(unit)}\n")
    texts = ["Rain fell.", "She left."]
    return hc.survey(_probed(), texts, columns=["entropy"], journal=folder / "kept")


def _train(folder: Path) -> Any:
    """Gates that learn, or go on from the file that is there."""
    task = tasks.classification([("Rain fell.", 0), ("She left early.", 1)] * 2)
    how: dict[str, Any] = {"keep": 4, "steps": 2, "batch_size": 2, "checkpoint": folder}
    return learn_gates(classifier(), task, train="gates", **how)


@cache
def _training_bytes() -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        _train(Path(scratch))
        return Path(scratch, "training.safetensors").read_bytes()


def _training(folder: Path) -> None:
    (folder / "training.safetensors").write_bytes(_training_bytes())


def _told_training(told: bytes) -> bytes:
    """The same tensors with other words beside them."""
    tensors = safetensors.torch.load(_training_bytes())
    return safetensors.torch.save(tensors, {"headcount": told.decode("utf8", "replace")})


def _marked_folder(folder: Path) -> None:
    (folder / ".unfinished.json").write_text(json.dumps({"of": {}, "before": 1}))


def _read_mark(folder: Path) -> Any:
    """The mark of a pruning, which is nobody's if it cannot be read."""
    place = OutputFolder(folder)
    with _marked(place, _probed(), [], force=False) as may_replace:
        _marked_folder(folder)
    return may_replace


def _npy(data: bytes) -> bytes:
    """The first array of an .npz."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(archive.namelist()[0])


def _npz(data: bytes) -> bytes:
    """An .npz whose first array is this."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("heads.npy", data)
    return file.getvalue()


def _npz_vectors(folder: Path) -> None:
    words, values = np.array(["the", "cat"]), np.ones((2, 3), dtype="float32")
    np.savez(folder / "a.npz", words=words, vectors=values)


def _records() -> list[Target]:
    run = {"make": _run, "cost": 2}
    return [
        Target("journal", "journal.jsonl", _journal, _open_journal),
        Target("file of an atlas", "atlas.toml", _atlas, _read_atlas),
        Target("limit", "limit", _written("limit", "3"), _limited, named=""),
        Target("shard", "shard-0.safetensors", _shard, _go_on, text=False, cost=8),
        Target("mark of a pruning", ".unfinished.json", _marked_folder, _read_mark, cost=2),
        Target("training", "training.safetensors", _training, _train, text=False, cost=20),
        Target(
            "metadata of training",
            "training.safetensors",
            _training,
            _train,
            unpack=lambda data: json.loads(_parts(data)[0])["__metadata__"]["headcount"].encode(),
            pack=_told_training,
            cost=20,
        ),
        Target("run.json", "run/run.json", read=_read_run, named="run", **run),
        Target("table of heads", "run/heads.parquet", read=_read_run, text=False, **run),
        Target("frame of a run", "run/roles.parquet", read=_read_run, text=False, **run),
        Target("arrays of a run", "run/pairs.npz", read=_read_run, text=False, **run),
        Target("array in an .npz", "run/pairs.npz", read=_read_run, unpack=_npy, pack=_npz, **run),
        Target(
            "exhibits",
            "run/exhibits/index.json",
            read=lambda folder: read_exhibits(folder / "run"),
            named="exhibits",
            **run,
        ),
        Target(
            "maps of an exhibit",
            "run/exhibits/made-001.npz",
            read=lambda folder: read_exhibits(folder / "run"),
            named="made-001",
            text=False,
            **run,
        ),
        Target(
            "vectors in an .npz",
            "a.npz",
            _npz_vectors,
            lambda at: read_vectors(at / "a.npz"),
            text=False,
        ),
        Target("page of a damaged run.json", "run/run.json", _run, _report, named="run", cost=8),
        Target("page of a damaged table", "run/heads.parquet", _run, _report, text=False, cost=8),
        Target("page of damaged roles", "run/roles.parquet", _run, _report, text=False, cost=8),
        Target("page of a damaged curve", "run/curve.parquet", _run, _report, text=False, cost=8),
        Target(
            "page of damaged exhibits",
            "run/exhibits/index.json",
            _run,
            _report,
            cost=8,
            named="exhibits",
        ),
    ]


# --- Models -------------------------------------------------------------------------------------


@cache
def _model_files(family: str = "bert") -> dict[str, bytes]:
    """A saved model from which heads were removed, so that it has headcount's own map, too.

    That of Llama has equal layers, so that it loads by its config alone.
    """
    with tempfile.TemporaryDirectory() as scratch:
        if family == "bert":
            small = hc.prune(subject_of("bert", "wordpiece"), ["enc.0.1", "enc.1.0", "enc.1.3"])
        else:
            small = hc.prune(
                hc.Subject(TINY[family]()), ["dec.0.0", "dec.0.1", "dec.1.0", "dec.1.1"]
            )
        small.save(Path(scratch, "model"))
        place = Path(scratch, "model")
        return {file.name: file.read_bytes() for file in place.iterdir() if file.is_file()}


def _model(folder: Path, family: str = "bert") -> None:
    for name, data in _model_files(family).items():
        (folder / "model").mkdir(exist_ok=True)
        (folder / "model" / name).write_bytes(data)


def _whole_model(folder: Path) -> None:
    save(folder / "model", "bert", "wordpiece")


def _lost_numbers(folder: Path) -> None:
    """A model whose config has lost the numbers of its heads, so that the map is read."""
    _model(folder, "llama")
    file = folder / "model" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"headcount": None}))


def _sizes(data: bytes) -> bytes:
    return json.dumps(json.loads(data)["headcount"]).encode()


def _with_sizes(sizes: bytes) -> bytes:
    """The config with other words under `headcount`, of whatever kind."""
    config = json.loads(_model_files()["config.json"])
    try:
        told = json.loads(sizes)
    except (ValueError, RecursionError):
        told = sizes.decode("latin-1")
    return json.dumps(config | {"headcount": told}).encode()


def _load(folder: Path) -> Any:
    return hc.load(folder / "model", device="cpu").heads


def _parts(data: bytes) -> tuple[bytes, bytes]:
    """The header of a safetensors file, which is JSON, and its tensors."""
    size = int.from_bytes(data[:8], "little")
    return data[8 : 8 + size], data[8 + size :]


def _with_header(header: bytes, tensors: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + tensors


@cache
def _whole_weights() -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        return (save(Path(scratch), "bert", "wordpiece") / "model.safetensors").read_bytes()


def _adapter(folder: Path) -> None:
    _whole_model(folder)
    base = AutoModel.from_pretrained(folder / "model")
    config = peft.LoraConfig(r=2, target_modules=["query"])
    adapted = peft.get_peft_model(base, config)
    adapted.peft_config["default"].base_model_name_or_path = str(folder / "model")
    adapted.save_pretrained(folder / "adapter")


def _gguf(folder: Path) -> None:
    write_llama(folder / "tiny.gguf", TINY["llama"]())


def _gguf_head(data: bytes) -> bytes:
    return data[:2_000]


@cache
def _gguf_bytes() -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        _gguf(Path(scratch))
        return Path(scratch, "tiny.gguf").read_bytes()


@cache
def _probed() -> Any:
    return subject_of("bert", "wordpiece")


@cache
def _probe_files() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as scratch:
        trees = Path(scratch, "a.conllu")
        trees.write_text(CONLLU * 6, encoding="utf8")
        hc.probe(_probed(), trees, epochs=1).save(Path(scratch, "probe"))
        place = Path(scratch, "probe")
        return {file.name: file.read_bytes() for file in place.iterdir()}


def _probe(folder: Path) -> None:
    (folder / "probe").mkdir(exist_ok=True)
    for name, data in _probe_files().items():
        (folder / "probe" / name).write_bytes(data)


def _read_probe(folder: Path) -> Any:
    return Probe.load(folder / "probe", _probed())


def _models() -> list[Target]:
    weights = "model/model.safetensors"
    model = {"named": "model", "cost": 20}
    return [
        Target("config.json", "model/config.json", _whole_model, _load, **model),
        Target("config.json of a pruned model", "model/config.json", _model, _load, **model),
        Target(
            "config.headcount",
            "model/config.json",
            _model,
            _load,
            unpack=_sizes,
            pack=_with_sizes,
            **model,
        ),
        Target("map of heads", "model/headcount.json", _lost_numbers, _load, **model),
        Target("tokenizer.json", "model/tokenizer.json", _whole_model, _load, **model),
        Target(
            "tokenizer_config.json", "model/tokenizer_config.json", _whole_model, _load, **model
        ),
        Target("safetensors", weights, _whole_model, _load, text=False, **model),
        Target(
            "safetensors header",
            weights,
            _whole_model,
            _load,
            unpack=lambda data: _parts(data)[0],
            pack=lambda header: _with_header(header, _parts(_whole_weights())[1]),
            **model,
        ),
        Target(
            "adapter_config.json",
            "adapter/adapter_config.json",
            _adapter,
            lambda folder: hc.load(folder / "adapter", device="cpu").heads,
            named="adapter",
            cost=20,
        ),
        Target(
            "GGUF header",
            "tiny.gguf",
            _gguf,
            lambda folder: hc.load(folder / "tiny.gguf", device="cpu").heads,
            text=False,
            unpack=_gguf_head,
            pack=lambda head: head + _gguf_bytes()[2_000:],
            named="tiny",
            cost=20,
        ),
        Target("probe.json", "probe/probe.json", _probe, _read_probe, named="probe", cost=2),
        Target(
            "weights of a probe",
            "probe/probe.safetensors",
            _probe,
            _read_probe,
            text=False,
            named="probe",
            cost=2,
        ),
    ]


def targets() -> list[Target]:
    """All of them."""
    return [*_texts(), *_records(), *_models()]
