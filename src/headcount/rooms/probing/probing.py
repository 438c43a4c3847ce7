"""The probe: how much syntax all heads of a model carry together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headcount.errors import InputError, UsageError
from headcount.models import Subject, check_subject, subject_facts
from headcount.records import (
    Engine,
    EngineOptions,
    HeadTable,
    Renamed,
    Run,
    engine_of,
    old_keywords,
    provenance,
    writable_run,
)
from headcount.rooms.probing.data import (
    KINDS,
    STRUCTURAL,
    WITH_MAPS,
    WITH_WORDS,
    Gathered,
    ProbeExample,
    Settings,
    gather,
    probed_heads,
    settings_for,
)
from headcount.rooms.probing.options import ProbeOptions, old_rate
from headcount.rooms.probing.parse import (
    INSIDE,
    Choices,
    Probe,
    best_candidates,
    hits,
    reliance,
    right_branching,
    share_of,
)
from headcount.rooms.probing.scorers import Scorer, fresh, train
from headcount.rooms.probing.structural import (
    structural_hits,
    undirected_arcs,
    undirected_hits,
    word_states,
)
from headcount.rooms.probing.vectors import OWN, FileVectors, OwnVectors, WordVectors, read_vectors
from headcount.rooms.twins import random_twin
from headcount.surveys import ShardWork
from headcount.text import Corpus, read_corpus

#: Of the treebank's sentences, each of this number is kept to test on where no test is given.
_HELD_OUT = 5


@old_keywords({"rate": Renamed(None, old_rate)}, learning=ProbeOptions)
def probe(
    subject: Subject,
    treebank: Any,
    *,
    test: Any = None,
    words: str | Path | WordVectors | None = None,
    kind: str | None = None,
    baselines: bool | Sequence[str] = False,
    initial: Mapping[str, Any] | None = None,
    learning: ProbeOptions | None = None,
    run: Run | str | Path | None = None,
    replace: bool = False,
    engine: Engine | EngineOptions | str | None = None,
) -> Probe:
    """Train a probe of a model's heads on a treebank, and test it (Clark et al. 2019, section 5).

    `kind` is "attention" (a weight for each head and direction), "words" (weights that depend on
    the two words), or a baseline: "distances" (words and their places, no attention),
    "random-init" (as "words", on a twin whose weights are random but for its embeddings),
    "right-branching", or "structural" (distances between hidden states, Hewitt & Manning 2019,
    whose trees have no direction: they have a UUAS and no UAS). `words` are vectors: a file (text
    or .npz), or "own" for the model's own input embeddings; given, the kind is "words" by default.
    `baselines` trains all kinds as well, or those named. `test` is another treebank; without it,
    every fifth sentence is kept to test on.

    `learning` (`hc.ProbeOptions`): training draws from `seed`; `seeds` trains that many times,
    counting up, and keeps the first. `convention="paper"` trains as the authors did, "code" with
    their program's shift of words. `learning_rate`, `epochs` and `train_batch` change the training,
    `batch_size` only the speed of reading; `limit` takes the first sentences of the treebank.
    `initial` are weights to begin with. With a `run` directory, the results join what is there,
    and the probe is saved in it; what the model gave for finished shards of the treebank is kept
    there meanwhile, so that after a kill the same call goes on. The model is run in this process,
    or by the workers of an `engine` ("ray", `RayEngine(...)`).

    >>> import headcount as hc
    >>> from headcount.bundle import sample
    >>> few = hc.ProbeOptions(limit=40)
    >>> trees = sample.path("sample.conllu")
    >>> found = probe(hc.load("translator", device="cpu"), trees, learning=few)
    >>> found.kind, found.results["probe"].tolist(), found.table.names
    ('attention', ['attention'], ['probe_weight'])
    """
    check_subject(subject, "probe(subject, treebank)")
    how = learning or ProbeOptions()
    if how.seeds < 1:
        raise UsageError(f"The number of seeds is {how.seeds}; it must be 1 or more.")
    kind = kind or ("attention" if words is None else "words")
    wanted = (kind, *(KINDS if baselines is True else baselines or ()))
    for one in wanted:
        if one not in KINDS:
            raise UsageError(f"There is no probe '{one}'; choose {', '.join(KINDS)}.")
    kinds = [one for one in KINDS if one in wanted]  # the expected best last
    if any(one in WITH_WORDS for one in kinds):
        words = words or OWN
    given: dict[str, Any] = {"rows": how.word_rows, "rate": how.learning_rate}
    given |= {"epochs": how.epochs, "batch": how.train_batch}
    settings = {one: settings_for(how.convention, one, **given) for one in kinds}
    first = how.seed or 0
    work = _Work(
        subject, *_corpora(treebank, test, how.limit), words, settings,
        range(first, first + how.seeds), how.examples, initial or {}, kind,
        ShardWork(engine_of(engine)),
    )  # fmt: skip
    with writable_run(run) as kept:
        if kept is not None and not replace:  # a run of another model is refused before the work
            about = {"weights": subject.weights_hash}
            kept.check_subject(HeadTable.of(subject.heads, {}, provenance=about))
        stage = None if kept is None else kept.stage("probe")
        if kept is not None:
            if replace:
                kept.drop_shards("probe")
            work.shards = ShardWork(work.shards.engine, kept.shards("probe"))
        found = work.done()
        if kept is not None:
            kept.drop_shards("probe")
        if kept is not None and stage is not None:
            _write(kept, found, replace)
            stage.finish(found.provenance["settings"], found.provenance)
    return found


@dataclass
class _Work:
    """Probes under way."""

    subject: Subject
    train: Corpus
    test: Corpus
    words: str | Path | WordVectors | None
    settings: Mapping[str, Settings]
    seeds: Sequence[int]
    batch_size: int
    initial: Mapping[str, Any]
    kind: str
    shards: ShardWork
    hits: dict[tuple[str, int], Any] = field(default_factory=dict)
    #: The same for arcs without a direction.
    undirected: dict[tuple[str, int], Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def done(self) -> Probe:
        """All kinds and seeds; the probe of the wanted kind and first seed comes back."""
        own = [kind for kind in self.settings if kind not in ("random-init", STRUCTURAL)]
        found = self._on(self.subject, own, self.seeds) if own else None
        if STRUCTURAL in self.settings:
            self._structural(self.settings[STRUCTURAL], remark=not own)
            if self.kind == STRUCTURAL:
                found = Probe(self.subject, STRUCTURAL, self.settings[STRUCTURAL])
        for seed in self.seeds if "random-init" in self.settings else ():
            twin = random_twin(self.subject, seed=seed, keep_embeddings=True)
            other = self._on(twin, ["random-init"], [seed])
            if found is None and other is not None:
                found = other
        assert found is not None
        rows = []
        for (kind, seed), arcs in self.undirected.items():
            counts = self.hits.get((kind, seed))
            row: dict[str, Any] = {"probe": kind} | dict.fromkeys(("uas", "low", "high"), np.nan)
            if counts is not None:
                row |= zip(("uas", "low", "high"), map(float, share_of(counts)), strict=True)
            row |= zip(("uuas", "uuas_low", "uuas_high"), map(float, share_of(arcs)), strict=True)
            words = arcs if counts is None else counts
            row |= {"seed": seed, "n": int(words[:, 1].sum()), "sentences": len(words)}
            rows.append(row | {"model": self.subject.name} | self._settings())
        found.results, found.hits, found.undirected = pd.DataFrame(rows), self.hits, self.undirected
        found.provenance = self._provenance(found)
        if found.table is not None:
            found.table.provenance = found.provenance
        return found

    def _on(self, subject: Subject, kinds: Sequence[str], seeds: Sequence[int]) -> Probe | None:
        """Kinds that read the same model: it runs once over each treebank."""
        vectors = self._vectors(subject)
        first = self.settings[kinds[0]]
        maps = any(kind in WITH_MAPS for kind in kinds)
        of = "" if subject is self.subject else f" for the {subject.name.split(' of ')[0]}"
        read = []
        for corpus, part in ((self.train, "train"), (self.test, "test")):
            title = f"Reading {Path(corpus.name).name}{of}"
            read.append(
                gather(
                    subject, corpus, first, vectors=vectors, maps=maps, title=title,
                    batch_size=self.batch_size, shards=self.shards.of(f"{part}{of}"),
                )
            )  # fmt: skip
        if subject is self.subject:
            self._remark(read, vectors)
        found = None
        for kind in kinds:
            for seed in seeds:
                scorer = self._scorer(subject, kind, seed, read, vectors)
                if kind == self.kind and seed == self.seeds[0]:
                    used = vectors if kind in WITH_WORDS else None
                    found = Probe(subject, kind, self.settings[kind], scorer, used)
                    if scorer is not None and kind in WITH_MAPS:
                        heads = probed_heads(subject)
                        found.table = reliance(scorer, read[1].examples, heads, subject.heads)
        return found

    def _scorer(
        self,
        subject: Subject,
        kind: str,
        seed: int,
        read: Sequence[Gathered],
        vectors: WordVectors | None,
    ) -> Scorer | None:
        """One probe, trained and tested."""
        settings, test = self.settings[kind], read[1].examples
        if kind == "right-branching":
            self._judge(kind, seed, right_branching(test, settings.convention), test)
            return None
        table = None if vectors is None else vectors.table()
        heads = len(probed_heads(subject))
        scorer = fresh(kind, heads, table, seed=seed, shifted=settings.shifted)
        scorer.begin(self.initial if kind == self.kind else None)
        scorer.to(subject.device)
        title = f"Training {kind}, seed {seed}"
        train(scorer, read[0].examples, settings, seed, title)
        scorer.requires_grad_(False)
        self._judge(kind, seed, best_candidates(scorer, test), test)
        return scorer

    def _judge(self, kind: str, seed: int, chosen: Choices, test: Sequence[ProbeExample]) -> None:
        """Which heads were found, and which arcs were, whatever their direction."""
        self.hits[kind, seed] = hits(chosen, test)
        self.undirected[kind, seed] = undirected_hits(
            [undirected_arcs(heads) for heads in chosen], test
        )

    def _structural(self, settings: Settings, remark: bool) -> None:
        """The probe of hidden states, of every seed."""
        read = []
        for corpus in (self.train, self.test):
            whole = gather(self.subject, corpus, settings, maps=False, batch_size=self.batch_size)
            self.remarks += whole.remarks if remark else []
            states = word_states(self.subject, corpus, whole, self.batch_size)
            read.append((whole.examples, states))
        for seed in self.seeds:
            found, about = structural_hits(read[0], read[1], settings, seed)
            self.undirected[STRUCTURAL, seed] = found
            self.remarks.append(
                f"The structural probe of seed {seed} has rank {about['rank']} and reads layer "
                f"{about['layer']} of {about['layers']} (0: the embeddings), chosen on a tenth of "
                "the training sentences."
            )

    def _vectors(self, subject: Subject) -> WordVectors | None:
        if self.words is None or not isinstance(self.words, str | Path):
            return self.words
        if str(self.words) == OWN:
            return OwnVectors(subject)
        self.words = read_vectors(self.words)  # a twin reads the same file
        return self.words

    def _remark(self, read: Sequence[Gathered], vectors: WordVectors | None) -> None:
        """Tell what was left out; refuse vectors that know none of the words."""
        self.remarks += [remark for one in read for remark in one.remarks]
        if not isinstance(vectors, FileVectors):
            return
        rows = [row for example in read[0].examples for row in example.words.tolist()]
        share = sum(row > 0 for row in rows) / len(rows)
        if not share:
            raise InputError(
                f"{vectors.name} has a vector for none of the {len(rows):,} words of "
                f"{read[0].name}; give vectors of its language, in lower case, or --words own."
            )
        self.remarks.append(f"{vectors.name} has vectors for {share:.1%} of the words.")

    def _settings(self) -> dict[str, Any]:
        name = self.words if self.words is None else getattr(self.words, "name", str(self.words))
        return {"words": name, "train": len(self.train), "test": Path(self.test.name).name}

    def _provenance(self, found: Probe) -> dict[str, Any]:
        return provenance.collect(
            **subject_facts(self.subject),
            corpus=self.train.name,
            data=self.train.hash,
            test={"corpus": self.test.name, "data": self.test.hash, "sentences": len(self.test)},
            convention=found.settings.convention,
            seed=self.seeds[0],
            settings={"kind": found.kind, **self._settings(), **found.settings.to_dict()},
            remarks=self.remarks,
        )


def _corpora(treebank: Any, test: Any, limit: int | None) -> tuple[Corpus, Corpus]:
    """What to train on, and what to test on: given, or kept back."""
    corpus = read_corpus(treebank, limit=limit)
    if test is not None:
        return corpus, read_corpus(test)
    if len(corpus) < 2:
        raise InputError(
            f"{corpus.name} has one sentence, so none is left to test the probe on; give more, or "
            "a treebank to test on (--test)."
        )
    items = list(corpus)
    every = min(_HELD_OUT, len(items))
    kept = [item for number, item in enumerate(items) if number % every != every - 1]
    train, held_out = read_corpus(kept), read_corpus(items[every - 1 :: every])
    train.name, held_out.name = corpus.name, f"every fifth sentence of {corpus.name}"
    return train, held_out


def _write(run: Run, found: Probe, replace: bool) -> None:
    """Add the column and the frame to the run; the probe itself goes into a folder of it."""
    table = found.table
    if table is None:
        table = HeadTable.of(found.subject.heads, {}, provenance=found.provenance)
    old = run.read_table() if run.has_table and not replace else None
    results = found.results
    before = None if old is None else old.details.pop("probes", None)
    if before is not None:  # other probes and seeds stay
        key = ["probe", "seed"]
        again = before.set_index(key).index.isin(results.set_index(key).index)
        results = pd.concat([before[~again], results], ignore_index=True)
    table.details["probes"] = results
    run.write_table(table if old is None else old.join(table, replace=True), replace=replace)
    found.save(run.folder(INSIDE))
