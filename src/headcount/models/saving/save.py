"""Save a subject so that others load it: the best way is found, written aside, proved, put there.

A folder is there whole or not at all: whatever fails on the way, a full disk included, what was
there before is still there.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from jinja2 import Template
from safetensors import SafetensorError

from headcount import plugins
from headcount.errors import HeadcountError, ModelError, UsageError
from headcount.models.anatomy import MAP, heads_left, whole_counts
from headcount.models.dummy_forward import check_not_open
from headcount.models.finding import find
from headcount.models.guards import quiet
from headcount.models.loading import DTYPES
from headcount.models.modeling_headcount import HINT, save_with_code, whole_class
from headcount.models.saving.fresh_process import LoadCheck, check_fresh, room_of
from headcount.models.saving.routes import Route, per_layer_counts, routes_for
from headcount.models.subject import Subject
from headcount.records import Brief, json_decode, reason, recover, replace_folder, version

# --- Files next to a model that other programs read ---------------------------------------------

#: Of sentence-transformers, then of models of images and sound.
MODULES = "modules.json"
FILES = (
    MODULES,
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "preprocessor_config.json",
    "processor_config.json",
)


def copy_companions(subject: Subject, folder: Path) -> None:
    """Copy what lies next to the model that a subject came from, where that is a folder.

    A link out of the folder is left out with a warning: it may point to anything of the user's.
    """
    source = _home(subject)
    if source is None:
        return
    there = [source / name for name in FILES if not (folder / name).exists()]
    for name in _modules_in(source):
        (folder / name).mkdir(exist_ok=True)  # a module without settings has an empty folder
        there.append(source / name)
        there += [] if there[-1].is_symlink() else sorted(there[-1].rglob("*"))
    home, out = Path(os.path.realpath(source)), []
    blobs = home.parent.parent / "blobs"  # in a cache of the hub every file is a link to one
    for path in there:
        name = path.relative_to(source).as_posix()
        if not {home, blobs} & {*Path(os.path.realpath(path)).parents}:
            out.append(name)
        elif path.is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / name)
    if out:
        warnings.warn(
            f"{', '.join(out)} in {source} point out of that folder and were not saved with "
            f"{subject.name}; put what they point to there, if it belongs to the model.",
            stacklevel=2,
        )


def _modules_in(source: Path) -> list[str]:
    """The folders of what sentence-transformers runs after the model: pooling, norms, layers."""
    try:
        listed = json_decode((source / MODULES).read_bytes())
    except (OSError, ValueError):
        return []
    entries = listed if isinstance(listed, list) else []
    paths = [str(one.get("path")) for one in entries if isinstance(one, dict)]
    # Others wrote that file: a name of a folder beside it, never a way to elsewhere.
    return [path for path in paths if re.fullmatch(r"\w[\w.-]*", path)]


def _home(subject: Subject) -> Path | None:
    if subject.source == "in hand":
        return None
    try:
        found = find(subject.source)
    except HeadcountError:
        return None
    return found.folder if found.kind == "folder" else None


# --- The card: what a stranger who finds the folder should know ---------------------------------

CARD = "README.md"


def card_for(subject: Subject, route: str, why: str, call: str, about: Sequence[str] = ()) -> str:
    """The text of the card: remaining heads, how it loads, and the notes.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> card = card_for(Subject(BertModel(config), name="mine"), "plain", "whole", "AutoModel")
    >>> "# mine" in card, "- enc.0: 0, 1, 2, 3" in card
    (True, True)
    """
    layers: dict[str, list[str]] = {}
    for head in subject.heads:
        layers.setdefault(f"{head.stack}.{head.layer}", []).append(str(head.index))
    text = Path(__file__).with_name("card.md").read_text(encoding="utf8")
    how: Any = dict.fromkeys(("trim_blocks", "lstrip_blocks", "keep_trailing_newline"), True)
    told = {"route": route, "why": why, "call": call.replace(" and ", "\n"), "about": about}
    return Template(text, **how).render(
        **told, subject=subject, version=version(), hint=HINT, layers=layers
    )


# --- Save a subject so that others load it ------------------------------------------------------

#: Something else than the model itself that is saved: a room writes it into a folder beside and
#: puts that in place (`draft_of`), or gives another subject, to be saved in its stead.
Exporter = Callable[[Subject, Path, Sequence[str]], "Saved | Subject"]


@dataclass(frozen=True, repr=False)
class Saved(Brief):
    """Where a model was saved, in which way and why, and how it loads."""

    folder: Path
    route: str
    why: str
    loads_with: str
    #: How far the outputs of the loaded model are from those of the saved one, at most.
    apart: float

    def in_brief(self) -> tuple[str, None]:
        """Where it is and how it loads."""
        return (
            f"Saved in {self.folder} ({self.route}: {self.why}). Loads with {self.loads_with}; "
            f"this was tried, and the outputs are {self.apart:.0e} apart."
        ), None


def save(
    subject: Subject,
    folder: str | os.PathLike[str],
    *,
    force: bool = False,
    export: str | None = None,
    dtype: str | None = None,
    about: Sequence[str] = (),
) -> Saved:
    """Save a model, with its tokenizer, the names of its heads and a card (README.md).

    Ways are tried in turn: a plain config, Llama's weights as Mistral's, a config by layer, code
    that the folder brings. The first whose folder loads in another process, with the same
    outputs, is taken; `headcount.load` reads all of them. With `export="zeros"` the model has its
    old size and zeros in the place of removed heads; with `"onnx"` the folder holds `model.onnx`.
    `about` are paragraphs for the card: how it was judged, figures. Weights are saved in the
    `dtype` that is named; by default in that in which they came, if it holds them exactly.
    """
    place = _checked(folder, force)
    wanted = _dtype_to_save(subject, dtype)
    if subject.model is not subject.inner:
        raise UsageError(
            f"{subject.name} is wrapped in an adapter ({type(subject.model).__name__}); merge it "
            "first (model.merge_and_unload()), or save the adapter with model.save_pretrained."
        )
    check_not_open(subject.model, "saved")
    if export not in (None, *plugins.names_of("exporters")):
        known = ", ".join(plugins.names_of("exporters"))
        raise UsageError(f"There is no export '{export}'; it is one of {known}.")
    if export is not None:
        exporter: Exporter = plugins.get("exporters", export)
        made = exporter(subject, place, about)
        if isinstance(made, Saved):
            return made
        subject = made
    failures = []
    with draft_of(place) as draft:
        for route in routes_for(subject.inner):
            # A model that stands for another is a plain one and says why.
            route = route if export is None else replace(route, why=subject.notes[-1])
            written(subject, draft, route, wanted)
            try:
                (apart,) = check_fresh([LoadCheck(draft, subject, route, room_of(wanted))])
            except ModelError as error:
                failures.append(f"{route.name}: {error}")
                shutil.rmtree(draft)
                continue
            loader = LoadCheck(draft, subject, route).loader
            more = ", trust_remote_code=True" if route.code else ""
            call = f"{loader}.from_pretrained('{place}'{more}) and headcount.load('{place}')"
            named = call.replace(f"'{place}'", "'FOLDER'")
            if (draft / MODULES).is_file():
                named += f" and sentence_transformers.SentenceTransformer('FOLDER'{more})"
            card = card_for(subject, route.name, route.why, named, about)
            (draft / CARD).write_text(card, encoding="utf8")
            put_in_place(draft, place)
            return Saved(place, route.name, route.why, call, apart)
    raise ModelError(
        f"{subject.name} could not be saved so that it loads again; nothing was written. "
        + " ".join(failures)
    )


def _checked(folder: str | os.PathLike[str], force: bool) -> Path:
    """The folder to write: not there yet, or one that may be replaced, with nothing foreign."""
    place = Path(folder).expanduser()
    recover(place)
    is_file = place.exists() and not place.is_dir()
    if is_file or (place.is_dir() and any(place.iterdir()) and not force):
        kind = "a file" if is_file else "a folder that is not empty"
        raise UsageError(
            f"'{folder}' is {kind}; choose another name, or pass --force (force=True) to replace "
            "a model that headcount saved."
        )
    if foreign := sorted({*_files_of(place)} - {*_listed_in(place)}):
        shown = ", ".join(foreign[:3]) + (f" and {len(foreign) - 3} more" if foreign[3:] else "")
        raise UsageError(
            f"'{folder}' holds {shown}, which its {MAP} does not list as saved by headcount, so it "
            "is not replaced; move that away, or choose another folder."
        )
    return place


def _files_of(folder: Path) -> list[str]:
    """Everything in a folder but folders, by its path from there; a link is itself."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted(path.relative_to(folder).as_posix() for path in found)


def _listed_in(folder: Path) -> list[str]:
    """The files that a saved model says were written with it."""
    try:
        told = json_decode((folder / MAP).read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    listed = told.get("files") if isinstance(told, dict) else None
    return [str(name) for name in listed] if isinstance(listed, list) else []


@contextmanager
def draft_of(place: Path) -> Iterator[Path]:
    """A folder next to the one to be written, gone afterwards whatever happens."""
    draft = place.parent / f".{place.name}.{secrets.token_hex(4)}.tmp"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        yield draft
    except (OSError, SafetensorError) as error:
        why = reason(error) if isinstance(error, OSError) else str(error)
        full = "the disk is full" if "No space left" in why else why
        raise ModelError(
            f"{place} could not be written: {full}. Nothing was left behind; free some room or "
            "choose another folder."
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def put_in_place(draft: Path, place: Path) -> None:
    """List the files of a finished folder in it, and give it its name; an old one is deleted."""
    about = json.loads((draft / MAP).read_text(encoding="utf8"))
    about["files"] = _files_of(draft)
    (draft / MAP).write_text(json.dumps(about, indent=1), encoding="utf8")
    replace_folder(draft, place)


def _dtype_to_save(subject: Subject, asked: str | None) -> torch.dtype:
    """The dtype asked for, or the one in which the weights came where it holds them exactly."""
    if asked is not None:
        if asked not in DTYPES or asked == "auto":
            known = ", ".join(word for word in DTYPES if word != "auto")
            raise UsageError(f"There is no dtype '{asked}' to save in; allowed: {known}.")
        return cast("torch.dtype", getattr(torch, asked))
    came = getattr(torch, subject.stored or "", None)
    if not isinstance(came, torch.dtype) or came == subject.dtype:
        return subject.dtype
    floats = (one for one in subject.inner.state_dict().values() if one.is_floating_point())
    exact = all(torch.equal(one.to(came).to(one.dtype), one) for one in floats)
    return came if exact else subject.dtype


def written(subject: Subject, draft: Path, route: Route, dtype: torch.dtype | None = None) -> None:
    """Write weights, config, code, tokenizer and map into a folder."""
    model = subject.inner
    own = model.config
    how: dict[str, Any] = {}
    if dtype is not None and dtype != model.dtype:
        how["state_dict"] = _cast(model.state_dict(), dtype)
    with quiet():
        save = save_with_code if route.code else whole_class(model).save_pretrained
        save(model, draft, **how)
        config = route.config
        config.architectures = [route.architecture]
        config.dtype = dtype or model.dtype
        config.save_pretrained(draft)
        if subject.tokenizer is not None:
            save_tokenizer(subject.tokenizer, draft)
    assert model.config is own
    copy_companions(subject, draft)
    (draft / MAP).write_text(json.dumps(map_of(subject, route), indent=1), encoding="utf8")


def _cast(weights: dict[str, torch.Tensor], dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Weights in another dtype; those that are one (tied embeddings) are one afterwards, too."""
    made: dict[tuple[Any, ...], torch.Tensor] = {}
    for one in weights.values():
        if one.is_floating_point() and _place(one) not in made:
            made[_place(one)] = one.to(dtype)
    return {name: made.get(_place(one), one) for name, one in weights.items()}


def _place(weight: torch.Tensor) -> tuple[Any, ...]:
    """What two names of one weight have in common, and of two weights nobody has."""
    return weight.device, weight.data_ptr(), weight.dtype, weight.shape, weight.stride()


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Save a tokenizer; the library of tokenizers tells a full disk by a bare `Exception`."""
    try:
        tokenizer.save_pretrained(folder)
    except Exception as error:
        told = re.search(r"os error (\d+)", str(error))
        if type(error) is not Exception or told is None:
            raise
        number = int(told.group(1))
        raise OSError(number, os.strerror(number), str(folder)) from error


def map_of(subject: Subject, route: Route) -> dict[str, Any]:
    """What the file of heads holds; `per_layer_config` is for the day transformers reads it."""
    return {
        "schema": 1,
        "model": subject.name,
        "source": subject.source,
        "revision": subject.revision,
        "route": route.name,
        "why": route.why,
        "heads": heads_left(subject.inner.config),
        "whole": whole_counts(route.config),
        "per_layer_config": per_layer_counts(subject.inner),
        "transformers": transformers.__version__,
    }
