"""Try a model on one sentence: what it predicts and every head's map, also with heads off."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from headcount.bundle import sample
from headcount.errors import UsageError
from headcount.models import Subject, bare_table, eval_mode
from headcount.pruning import read_heads
from headcount.records import Column, Head, HeadTable, Run, parse_head
from headcount.reports import Source, kind_part, looks, read_source, role_part
from headcount.rooms.exhibits import Exhibit, encode_one, look_at, token_texts
from headcount.rooms.gates import known_heads, sets_of_frame
from headcount.tasks import forward, own_output
from headcount.text import Batch, Pair, intake_of, read_corpus, texts_of
from headcount.wiring import valve

# --- What a model predicts for a text -------------------------------------------------------------

#: So many guesses are shown.
_TOP = 6
#: So many tokens are generated.
_ON = 16


@dataclass(frozen=True)
class Prediction:
    """What a model says: a `text` that it writes, and `shares` of what it chose among."""

    title: str
    #: What its shares are of: "tokens" of its text, the "next" token, "classes", a "similarity".
    kind: str
    text: str | None = None
    #: A share by what it is the share of; the likeliest first, or in the order of the text.
    shares: tuple[tuple[str, float], ...] = ()


def predict(subject: Subject, text: str, second: str = "", along: str | None = None) -> Prediction:
    """What the model makes of a text; a translator's shares are those of the translation `along`.

    So two models that say different things can be compared token by token.
    """
    with eval_mode(subject.model), torch.no_grad():
        predicts = subject.inner.get_output_embeddings() is not None
        if "cross" in subject.anatomy.stacks and predicts:
            found = own_output(subject, [text], beams=1)
            said = found[0].target if found else ""
            spoken = _spoken(subject, text, said if along is None else along)
            return Prediction("Translation", "tokens", said, spoken)
        if subject.kind == "dec" and predicts:
            logits = forward(subject, _batch(subject, text)).logits[0, -1]
            return Prediction("Goes on", "next", _continued(subject, text), _all(subject, logits))
        if subject.kind == "enc" and predicts:
            return _hidden(subject, text)
        return _judged(subject, text, second)


def _spoken(subject: Subject, text: str, target: str) -> tuple[tuple[str, float], ...]:
    """The probability of each token of a translation, given those before it."""
    if not target:
        return ()
    batch = _batch(subject, Pair(text, target))
    shares = forward(subject, batch).logits[0].float().softmax(-1)
    side = batch.sides["target"]
    ids, tokens = side.ids[0].tolist(), token_texts(side.tokens[0])
    end: Any = subject.tokenizer
    ids, tokens = [*ids[1:], end.eos_token_id], [*tokens[1:], end.eos_token]
    rows = zip(tokens, shares, ids, strict=True)
    return tuple((token, float(row[number])) for token, row, number in rows)


def _continued(subject: Subject, text: str) -> str:
    """The likeliest tokens that follow, one after another."""
    tokenizer: Any = subject.tokenizer
    limit = intake_of(subject.model, tokenizer).target_limit
    room = 0 if limit is None else max(1, limit - _ON)  # 0: all of it
    ids = _batch(subject, text).inputs["input_ids"].to(subject.device)[:, -room:]
    found, past = [], None
    for _ in range(_ON):
        out = subject.model(input_ids=ids, past_key_values=past, use_cache=True)
        ids, past = out.logits[:, -1:].argmax(-1), out.past_key_values
        found.append(int(ids))
    return str(tokenizer.decode(found, skip_special_tokens=True))


def _hidden(subject: Subject, text: str) -> Prediction:
    """Guesses for the first hidden word; a text without one is shown how to hide one."""
    tokenizer: Any = subject.tokenizer
    hidden = tokenizer.mask_token
    if hidden is None or hidden not in text:
        return Prediction("Hidden word", "next", f"Write {hidden} in place of a word.")
    batch = _batch(subject, text, markup=True)
    logits = forward(subject, batch).logits
    place = (batch.inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero()[0, 0]
    return Prediction("Hidden word", "next", None, _all(subject, logits[0, place]))


def _judged(subject: Subject, text: str, second: str) -> Prediction:
    """The classes of a classifier, else how near two texts are."""
    item: Any = (text, second) if second else text
    found = forward(subject, _batch(subject, item))
    logits = getattr(found, "logits", None)
    if isinstance(logits, Tensor) and logits.dim() == 2:
        return Prediction("Class", "classes", None, _classes(subject, logits[0]))
    if not second:
        told = "Give a second sentence to see how near the two are."
        return Prediction("Similarity", "similarity", told)
    outputs = [forward(subject, _batch(subject, one)).last_hidden_state for one in (text, second)]
    one, other = (hidden[0].float().mean(0) for hidden in outputs)
    cosine = torch.cosine_similarity(one, other, dim=0).item()
    return Prediction("Similarity", "similarity", None, (("cosine of the two", cosine),))


def _classes(subject: Subject, logits: Tensor) -> tuple[tuple[str, float], ...]:
    names = subject.inner.config.id2label
    shares = logits.float().softmax(-1) if len(logits) > 1 else logits.float()
    return tuple(
        (str(names.get(place, place)), value) for place, value in enumerate(shares.tolist())
    )


def _all(subject: Subject, logits: Tensor) -> tuple[tuple[str, float], ...]:
    """Every token with its probability, the likeliest first; as many as could be shown."""
    tokenizer: Any = subject.tokenizer
    best = logits.float().softmax(-1).topk(min(200, logits.shape[-1]))
    words = [tokenizer.decode([number]) for number in best.indices.tolist()]
    return tuple(zip(words, best.values.tolist(), strict=True))


def _batch(subject: Subject, item: Any, markup: bool = False) -> Batch:
    return encode_one(subject, item, markup=markup)[0]


def _bars(whole: Prediction, cut: Prediction | None) -> list[list[Any]]:
    """What is shown as bars: a name, its share with all heads on, and with some off."""
    if whole.kind == "tokens":
        after = [None] * len(whole.shares) if cut is None else [share for _, share in cut.shares]
        rows = zip(whole.shares, after, strict=True)
        return [[name, _short(before), _short(now)] for (name, before), now in rows]
    before, now = dict(whole.shares), {} if cut is None else dict(cut.shares)
    top = [name for part in (whole, cut) if part for name, _ in part.shares[:_TOP]]
    if whole.kind == "classes":
        top = [name for name, _ in sorted(whole.shares, key=lambda one: -one[1])[:_TOP]]
    return [[name, _short(before.get(name)), _short(now.get(name))] for name in dict.fromkeys(top)]


def _short(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


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
    meaning="How much of the head's attention moved when heads were switched off.",
    range=(0, 1),
    group=_GROUP,
    format=".3f",
)
#: Answers of the whole model that are kept, so that a switch asks only the model without heads.
_KEPT = 16
#: Heads that are tried together for a word, and sentences that are tried for heads.
_MOST, _TRIED = 24, 8


@dataclass
class Inspector:
    """A model that is tried sentence by sentence; `source` is what a run knows of it already."""

    subject: Subject
    source: Source | None = None
    _whole: OrderedDict[tuple[str, str], Prediction] = field(default_factory=OrderedDict)

    def about(self) -> dict[str, Any]:
        """The model's heads, what is known of them, and sets that are switched off in one click."""
        subject, roles = self.subject, self._roles()
        shape = Source(HeadTable.of(subject.heads, {})).shape
        stacks = [{"id": name, "layers": layers, "heads": heads} for name, layers, heads in shape]
        tokenizer: Any = subject.tokenizer
        return {
            "model": subject.name,
            "count": len(subject.heads),
            "stacks": stacks,
            "heads": [str(head) for head in subject.heads],
            "roles": roles,
            "offsets": self._offsets(),
            "kinds": [kind for kind in kind_part() if kind["id"] in {*roles.values(), "none"}],
            "sets": list(self._sets(roles)),
            "predicts": _TASKS.get(self._kind(), _TASKS["similarity"]),
            "mask": getattr(tokenizer, "mask_token", None) if self._kind() == "filler" else None,
        }

    def _kind(self) -> str:
        predicts = self.subject.inner.get_output_embeddings() is not None
        if "cross" in self.subject.anatomy.stacks and predicts:
            return "translator"
        if predicts:
            return "writer" if self.subject.kind == "dec" else "filler"
        labelled = hasattr(self.subject.inner, "classifier") or hasattr(self.subject.inner, "score")
        return "classifier" if labelled else "similarity"

    def _roles(self) -> dict[str, str]:
        """The first role of each head, from the run, or from what comes with the translator."""
        if self.source is not None and "roles" in self.source.frames:
            places = [str(head) for head in self.source.places]
            own = role_part(self.source) or []
            return {name: one[0]["role"] for name, one in zip(places, own, strict=True) if one}
        known = known_heads(self.subject.weights_hash)
        return dict(known["roles"]) if known else {}

    def _known_verdicts(self) -> dict[str, pd.DataFrame]:
        """The roles of the board as verdicts, where no run has the evidence."""
        rows = [
            {**parse_head(name)._asdict(), "role": role, "evidence": "from the project's own run"}
            for name, role in self._roles().items()
        ]
        frame = pd.DataFrame(rows).rename(columns={"index": "head"})
        ways = [f"offset {self._offsets().get(name, '')}" for name in self._roles()]
        return {"roles": frame.assign(label=ways, value=np.nan)} if rows else {}

    def _offsets(self) -> dict[str, int]:
        """Where positional heads look, for the way that their sign points."""
        if self.source is not None and (own := role_part(self.source)):
            named = zip(map(str, self.source.places), own, strict=True)
            return {name: one[0]["dir"] for name, one in named if one and "dir" in one[0]}
        known = known_heads(self.subject.weights_hash) or {}
        return dict(known.get("offsets", {}))

    def _sets(self, roles: dict[str, str]) -> Iterable[dict[str, Any]]:
        for role, look in looks().items():
            own = [head for head, name in roles.items() if name == role]
            if own:
                name = f"{len(own)} {look.title.lower()}"
                yield {"name": name, "title": look.meaning, "off": own, "role": role}
        known, heads = known_heads(self.subject.weights_hash), [str(h) for h in self.subject.heads]
        gates = None if self.source is None else self.source.frame("gates")
        closed = [] if known is None else [
            [head for head in heads if head not in row["kept"]] for row in known["gates"]["rows"]
        ]  # fmt: skip
        if gates is not None:  # the run's own, rather than what comes with the translator
            closed = [list(map(str, going)) for going in sets_of_frame(gates).values()]
        for off in closed:
            left = len(heads) - len(off)
            title = f"the {left} heads that learned gates keep stay on"
            yield {"name": f"keep the gates’ {left}", "title": title, "off": off}
        if known:
            costs = known["ablation"]
            best = sorted(costs, key=costs.get, reverse=True)[:10]
            rest = [head for head in heads if head not in best]
            title = "the ten heads whose loss alone costs most stay on"
            yield {"name": "keep the ten costliest", "title": title, "off": rest}

    def ask(self, text: str, second: str = "", off: Sequence[str] = ()) -> dict[str, Any]:
        """What the model predicts whole, and without heads; shares of both side by side."""
        heads = read_heads(",".join(off), self.subject.heads) if off else []
        whole, cut = self._answer(text, second), None
        if heads:
            with valve(self.subject, dict.fromkeys(map(str, heads), 0.0)):
                cut = predict(self.subject, text, second, along=whole.text)
        return {
            "title": whole.title,
            "kind": whole.kind,
            "whole": whole.text,
            "cut": None if cut is None else cut.text,
            "bars": _bars(whole, cut),
            "off": [str(head) for head in heads],
        }

    def _answer(self, text: str, second: str) -> Prediction:
        key = text, second
        if key not in self._whole:
            self._whole[key] = predict(self.subject, text, second)
            while len(self._whole) > _KEPT:
                self._whole.popitem(last=False)
        return self._whole[key]

    def fewest(
        self, text: str, second: str = "", off: Sequence[str] = (), word: int = 0
    ) -> dict[str, Any]:
        """Few heads without which the first choice at a word changes, or none within `_MOST`.

        Heads go in the order of the gradient of the choice (Michel et al. 2019, section 3.2) until
        it changes; then each that it changes without comes back.
        """
        subject, (batch, place) = self.subject, self._choice(text, second, word)
        whole = torch.ones(len(subject.heads), device=subject.device)

        def choice(scales: Tensor) -> Tensor:
            with eval_mode(subject.model), valve(subject, scales):
                logits: Tensor = forward(subject, batch).logits
            return logits[place].float()

        def changed(going: Sequence[int]) -> bool:
            with torch.no_grad():
                scales = whole.index_fill(0, torch.tensor(going, device=whole.device), 0.0)
                return int(choice(scales).argmax()) != first

        scales = whole.clone().requires_grad_()
        shares = choice(scales).log_softmax(-1)
        first = int(shares.argmax())
        (slope,) = torch.autograd.grad(shares[first], scales)
        order = slope.argsort(descending=True).tolist()[:_MOST]
        size = next((n for n in range(1, len(order) + 1) if changed(order[:n])), 0)
        going = order[:size]
        for head in going[:-1]:
            if changed(fewer := [one for one in going if one != head]):
                going = fewer
        return {"off": sorted(str(subject.heads[head]) for head in going), "most": _MOST}

    def _choice(self, text: str, second: str, word: int) -> tuple[Batch, tuple[int, ...]]:
        """What is run for a word, and where its logits stand."""
        subject, whole, tokenizer = self.subject, self._answer(text, second), self.subject.tokenizer
        if whole.kind == "tokens" and 0 <= word < len(whole.shares):
            return _batch(subject, Pair(text, whole.text or "")), (0, word)
        if whole.kind == "classes":
            return _batch(subject, (text, second) if second else text), (0,)
        if whole.kind != "next" or not whole.shares:
            raise UsageError("There is no word that heads could change; type another sentence.")
        batch = _batch(subject, text, markup=subject.kind == "enc")
        ids, hidden = batch.inputs["input_ids"][0].tolist(), getattr(tokenizer, "mask_token_id", -1)
        return batch, (0, ids.index(hidden) if subject.kind == "enc" else len(ids) - 1)

    def offer(self, text: str, second: str = "", off: Sequence[str] = ()) -> dict[str, Any]:
        """A sentence of the sample in which a word changes most without these heads."""
        if not off:
            raise UsageError("All heads are on; switch some off to see a sentence that needs them.")
        best, most = "", 1.0
        for item in list(read_corpus(sample.path()))[:_TRIED]:
            tried = texts_of(item)[0]
            if self._kind() == "filler":
                words = tried.split()
                words[len(words) // 2] = str(self.subject.tokenizer.mask_token)  # type: ignore[union-attr]
                tried = " ".join(words)
            bars = self.ask(tried, second, off)["bars"]
            both = ((was, now) for _, was, now in bars if was and now is not None)
            ratio = max((was / max(now, 1e-4) for was, now in both), default=0.0)
            best, most = (tried, ratio) if ratio > most else (best, most)
        return {"text": best, "times": most}

    def look(self, text: str, second: str = "", off: Sequence[str] = ()) -> Source:
        """All maps of a sentence, whole and with some heads off, for a page."""
        heads = read_heads(",".join(off), self.subject.heads) if off else []
        item: str | tuple[str, str] = (text, second) if second else text
        if "cross" in self.subject.anatomy.stacks and not second:
            # the whole model's translation, heads off or not: on the same tokens maps compare
            item = text, self._answer(text, second).text or text
        seen = look_at(self.subject, item)
        exhibits = [replace(seen, id="whole", title=f"All heads on: {seen.title}")]
        if heads:
            with valve(self.subject, dict.fromkeys(map(str, heads), 0.0)):
                after = look_at(self.subject, item)
            names = ", ".join(map(str, heads[:8])) + (" …" if len(heads) > 8 else "")
            exhibits.append(replace(after, id="cut", title=f"Without {names}: {after.title}"))
        return self._page(exhibits)

    def _page(self, exhibits: list[Exhibit]) -> Source:
        columns, values = [_SHARP], {"sharpness": _sharpness(self.subject.heads, exhibits[-1])}
        if len(exhibits) > 1:
            columns.append(_CHANGE)
            values["changed"] = _changed(self.subject.heads, *exhibits)
        about = {"model": self.subject.name, "subject": self.subject.describe()}
        table = HeadTable.of(self.subject.heads, values, columns, provenance=about)
        if self.source is None:
            return Source(table, self._known_verdicts(), exhibits=exhibits)
        return replace(
            self.source, table=self.source.table.join(table, replace=True), exhibits=exhibits
        )


#: What a kind of model does with a sentence, as the page says it.
_TASKS = {
    "translator": "translates",
    "writer": "goes on writing",
    "filler": "fills in the hidden word",
    "classifier": "classifies",
    "similarity": "compares two sentences",
}


def inspector_of(subject: Subject, run: str | Path | None = None) -> Inspector:
    """A model to try, with what a run of it knows."""
    if run is None:
        return Inspector(subject)
    opened = Run.open(run, create=False)
    opened.check_subject(bare_table(subject))
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
