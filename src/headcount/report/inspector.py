"""Try a model on one sentence: what it predicts and every head's map, also with heads off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headcount.models import Subject, eval_mode
from headcount.pruning import read_heads
from headcount.records import Column, Exhibit, Head, HeadTable, Run
from headcount.report.chosen_sentences import encode_one, look_at
from headcount.report.parts.numbers import Source, read_source
from headcount.tasks import forward, own_output
from headcount.text import Batch
from headcount.wiring import valve

# --- What a model predicts for a text -------------------------------------------------------------

#: So many guesses are shown.
_TOP = 5
#: So many tokens are generated.
_ON = 16


def model_outputs(subject: Subject, text: str, second: str = "") -> list[dict[str, Any]]:
    """Predictions, each with a `title` and a `text`, or `guesses` (token and probability)."""
    with eval_mode(subject.model), torch.no_grad():
        predicts = subject.inner.get_output_embeddings() is not None
        if "cross" in subject.anatomy.stacks and predicts:
            found = own_output(subject, [text])
            return [{"title": "Translation", "text": found[0].target if found else ""}]
        if subject.kind == "dec" and predicts:
            logits = forward(subject, _batch(subject, text)).logits[0, -1]
            following = {"title": "Next token", "guesses": _guesses(subject, logits)}
            return [_continued(subject, text), following]
        if subject.kind == "enc" and predicts:
            return [_hidden(subject, text)]
        return [_judged(subject, text, second)]


def _continued(subject: Subject, text: str) -> dict[str, Any]:
    """The likeliest tokens that follow, one after another."""
    tokenizer: Any = subject.tokenizer
    ids = _batch(subject, text).inputs["input_ids"].to(subject.device)
    begun = ids.shape[1]
    for _ in range(_ON):
        logits = subject.model(input_ids=ids, use_cache=False).logits
        ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
    return {"title": "Goes on", "text": tokenizer.decode(ids[0, begun:], skip_special_tokens=True)}


def _hidden(subject: Subject, text: str) -> dict[str, Any]:
    """Guesses for the first hidden word; a text without one is shown how to hide one."""
    tokenizer: Any = subject.tokenizer
    hidden = tokenizer.mask_token
    if hidden is None or hidden not in text:
        return {"title": "Hidden word", "text": f"Write {hidden} in place of a word."}
    batch = _batch(subject, text, markup=True)
    logits = forward(subject, batch).logits
    place = (batch.inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero()[0, 0]
    return {"title": "Hidden word", "guesses": _guesses(subject, logits[0, place])}


def _judged(subject: Subject, text: str, second: str) -> dict[str, Any]:
    """The classes of a classifier, else how near two texts are."""
    item: Any = (text, second) if second else text
    found = forward(subject, _batch(subject, item))
    logits = getattr(found, "logits", None)
    if isinstance(logits, Tensor) and logits.dim() == 2:
        return {"title": "Class", "guesses": _classes(subject, logits[0])}
    if not second:
        return {"title": "Cosine", "text": "Give a second text to see how near the two are."}
    outputs = [forward(subject, _batch(subject, one)).last_hidden_state for one in (text, second)]
    one, other = (hidden[0].float().mean(0) for hidden in outputs)
    return {"title": "Cosine", "text": f"{torch.cosine_similarity(one, other, dim=0).item():.3f}"}


def _classes(subject: Subject, logits: Tensor) -> list[list[Any]]:
    names = subject.inner.config.id2label
    shares = logits.float().softmax(-1) if len(logits) > 1 else logits.float()
    order = shares.argsort(descending=True)[:_TOP].tolist()
    return [[str(names.get(place, place)), round(float(shares[place]), 4)] for place in order]


def _guesses(subject: Subject, logits: Tensor) -> list[list[Any]]:
    tokenizer: Any = subject.tokenizer
    best = logits.float().softmax(-1).topk(_TOP)
    words = [tokenizer.decode([number]) for number in best.indices.tolist()]
    return [[word, round(p, 4)] for word, p in zip(words, best.values.tolist(), strict=True)]


def _batch(subject: Subject, item: Any, markup: bool = False) -> Batch:
    return next(iter(encode_one(subject, item, markup=markup)))


# --- The maps of a text, as a page ----------------------------------------------------------------

_GROUP = "On this sentence"
_SHARP = Column(
    "sharpness",
    meaning="The mean over this sentence's tokens of the head's largest weight.",
    range=(0, 1),
    group=_GROUP,
    format=".2f",
)
_CHANGE = Column(
    "changed",
    meaning="How much of the head's attention went elsewhere when heads were switched off.",
    range=(0, 1),
    group=_GROUP,
    format=".3f",
)


@dataclass
class Inspector:
    """A model that is tried sentence by sentence; `source` is what a run knows of it already."""

    subject: Subject
    source: Source | None = None

    def look(
        self, text: str, second: str = "", off: Sequence[str] = ()
    ) -> tuple[list[dict[str, Any]], Source]:
        """What the model predicts, whole and with some heads off; and all maps, for a page."""
        heads = read_heads(list(off), self.subject.heads) if off else []
        whole = model_outputs(self.subject, text, second)
        item: str | tuple[str, str] = (text, second) if second else text
        if "cross" in self.subject.anatomy.stacks and not second:
            # the whole model's translation, heads off or not: on the same tokens maps compare
            item = text, whole[0].get("text") or text
        seen = look_at(self.subject, item)
        outputs = [{"without": [], **output} for output in whole]
        exhibits = [replace(seen, id="whole", title=f"All heads on: {seen.title}")]
        if heads:
            with valve(self.subject, dict.fromkeys(map(str, heads), 0.0)):
                cut, after = model_outputs(self.subject, text, second), look_at(self.subject, item)
            names = [str(head) for head in heads]
            outputs += [{"without": names, **output} for output in cut]
            title = f"Without {', '.join(names)}: {after.title}"
            exhibits.append(replace(after, id="cut", title=title))
        return outputs, self._page(exhibits)

    def _page(self, exhibits: list[Exhibit]) -> Source:
        columns, values = [_SHARP], {"sharpness": _sharpness(self.subject.heads, exhibits[-1])}
        if len(exhibits) > 1:
            columns.append(_CHANGE)
            values["changed"] = _changed(self.subject.heads, *exhibits)
        about = {"model": self.subject.name, "subject": self.subject.describe()}
        table = HeadTable.of(self.subject.heads, values, columns, provenance=about)
        if self.source is None:
            return Source(table, exhibits=exhibits)
        return replace(
            self.source, table=self.source.table.join(table, replace=True), exhibits=exhibits
        )


def inspector_of(subject: Subject, run: str | Path | None = None) -> Inspector:
    """A model to try, with what a run of it knows."""
    if run is None:
        return Inspector(subject)
    opened = Run.open(run, create=False)
    opened.check_subject(
        HeadTable.of(subject.heads, {}, provenance={"weights": subject.weights_hash})
    )
    return Inspector(subject, read_source(opened, exhibits=False))


def _sharpness(heads: Sequence[Head], seen: Exhibit) -> np.ndarray:
    return np.array([_map(heads, head, seen).max(-1).mean() for head in heads])


def _changed(heads: Sequence[Head], before: Exhibit, after: Exhibit) -> np.ndarray:
    """Half of the summed differences of weights, a row's mean; NA where the text became another."""
    found = []
    for head in heads:
        was, is_now = _map(heads, head, before), _map(heads, head, after)
        same = was.shape == is_now.shape
        found.append(float(np.abs(was - is_now).sum(-1).mean() / 2) if same else np.nan)
    return np.array(found)


def _map(heads: Sequence[Head], head: Head, seen: Exhibit) -> np.ndarray:
    """A head's map; a pruned layer holds only the heads that are left, in their order."""
    own = [one for one in heads if one[:2] == head[:2]]
    return seen.maps[head.stack, head.layer][own.index(head)]
