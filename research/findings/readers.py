"""Our figures for the findings, read from the JSON files of the results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

import headcount as hc
from headcount.records.heads import Head
from headcount.rooms.agreement.agreement import by_role
from headcount.stats import wilson_interval
from headcount.surveys.roles.role import KINDS
from research.pruning.paired import REACH, discordant
from research.pruning.rows import unpacked

from .rule import DRAWS, SEED, Cost, Ours, heads_within, load, over_heads, share_within

#: What a cost is held against, by metric. Points of accuracy: the largest loss that Michel et al.
#: still call none is 0.96 (tables 3 and 6). BLEU: the largest that they call none is 0.32 (table 5),
#: the smallest that they call one 0.31 (table 1). Loss: about as much as 0.3 BLEU of the bundled
#: translator, whose loss rises by 0.027 where its BLEU falls by 0.8 (translator.json).
MARGINS = {"accuracy": 0.01, "matthews": 0.01, "bleu": 0.3, "loss": 0.01}
#: Numbers of heads left at which both gates and rankings of a classifier were judged.
GRID = (60, 48, 36, 28, 20, 12, 8, 4)
#: The order of Michel et al.: gradient scores normalised by layer.
PAPERS = "gradient by layer"
#: Voita et al., section on confidence: positional heads lie above.
CONFIDENT = 0.8
SAMPLE = "the bundled sample"


def roles(survey: str) -> Any:
    return load(f"roles/{survey}")


def agreement(first: str, second: str, stack: str, kind: str, where: str = "translator") -> Ours:
    rows = load("importance")["agreement"][where]
    for row in rows:
        same = {row["first"], row["second"]} == {first, second}
        if same and (row["stack"], row["kind"]) == (stack, kind):
            return Ours(where, row["value"], row["low"], row["high"], stack)
    return Ours(where, math.nan)


def above_offset(name: str, relation: str, survey: str) -> Ours:
    """How far the best head of a relation lies above its offset, in points."""
    rows = [r for r in roles(survey)["best"] if r["relation"] == relation and r["stack"] == "enc"]
    if not rows:
        return Ours(name, math.nan)
    row = max(rows, key=lambda one: one["accuracy"] - one["baseline"])
    value, low, high = (100 * (row[key] - row["baseline"]) for key in ("accuracy", "low", "high"))
    return Ours(
        name, value, low, high, f"({100 * row['accuracy']:.0f} / {100 * row['baseline']:.0f})"
    )


def relations(relation: str, *surveys: tuple[str, str]) -> Callable[[], list[Ours]]:
    return lambda: [above_offset(name, relation, survey) for name, survey in surveys]


GLUE = (("sst2", "SST-2"), ("mrpc", "MRPC"), ("rte", "RTE"), ("cola", "CoLA"))
CLASSIFIERS = tuple(
    (f"minilm-{task}-{seed}", f"{title} seed {seed}")
    for task, title in (("sst2", "SST-2"), ("mrpc", "MRPC"), ("cola", "CoLA"))
    for seed in (0, 1)
)
ENCODERS = (("MiniLM", "minilm-stanford"), ("e5-small", "e5-stanford"))
TRANSLATORS = (("translator", "de-tatoeba"), ("en-ru translator", "ru-tatoeba"))


def surface(key: str, pick: Callable[[Any], float] | None = None) -> Callable[[], list[Ours]]:
    """A count over heads, or what layers' means say with its interval over blocks of texts."""

    def ours(name: str, title: str) -> Ours:
        if pick is None:
            return Ours(title, *load("surface")["intervals"][name][key])
        found = load("surface")["models"][name]["headcount"]["findings"][key]
        return Ours(title, pick(found), counted=True)

    return lambda: [ours(*one) for one in (("minilm", "MiniLM"), ("e5-small", "e5-small"))]


def frozen(part: str) -> list[Ours]:
    found = load("pruning-frozen")
    row = found["headline"][part]
    return [Ours(f"{part}, decoder frozen", row["delta"], row["low"], row["high"],
                 f"(a loss of {row['detectable']:.2g} would be seen)")]  # fmt: skip


def ten_heads() -> list[Ours]:
    told = load("pruning-gates")["headline"]["mean"]["test"]["difference"]
    ours = [Ours("test, all weights learn", told["delta"], told["delta_low"], told["delta_high"])]
    row = load("pruning-russian")["headline"]["test"]
    what = f"(read once; a loss of {row['detectable']:.2g} would be seen)"
    ours.append(Ours("en-ru test, all weights learn", row["delta"], row["low"], row["high"], what))
    return ours + frozen("test") + frozen("pud")


def above(name: str, run: str, other: str) -> Ours:
    """How far a run of 48 heads lies above another on test."""
    found = load("pruning-scratch")["runs"][run]["against"][other]["test"]["difference"]
    return Ours(name, found["delta"], found["delta_low"], found["delta_high"], "BLEU")


#: 48 heads from random weights, on as much text as the pruned model has read.
CONVERGED = "scratch-48-converged"


def curve(name: str) -> list[Ours]:
    row = load("pruning-gates")["curve"]["runs"][name]["test"]
    found = [
        Ours("all weights learn, 4,500 steps", row["delta"], row["delta_low"], row["delta_high"])
    ]
    frozen = load("pruning-frozen")["curve"].get("test", {}).get(name)
    if frozen:
        found.append(Ours("decoder frozen", frozen["delta"], frozen["low"], frozen["high"]))
    return found


def function(role: str, scores: Sequence[str]) -> Callable[[], list[Ours]]:
    def ours() -> list[Ours]:
        rows = [r for r in load("function")["rows"] if r["role"] == role and r["score"] in scores]
        return [
            Ours(f"translator, {r['score'].replace('_', ' ')}", r["delta"], r["low"], r["high"],
                 f"(p {r['p_adjusted']:.2g})")
            for r in rows
        ]  # fmt: skip

    return ours


#: Contribution, by the name that it had as a rule of relevance; it is no relevance of the paper's.
CONTRIBUTION = "default"


def rules(other: str) -> Callable[[], list[Ours]]:
    return lambda: [
        Ours(f"translator enc, rule {rule}", *found["agreement"]["enc"][other])
        for rule, found in load("relevance-rules")["rules"].items()
        if rule != CONTRIBUTION
    ]


def masked(case: str, title: str, key: str = "judged") -> Ours:
    """The share of heads whose cost lies below the margin; their intervals were not kept."""
    found = load("importance")["cases"][case]
    metric = found[key]["metric"]
    if key == "loss":
        costs = list(found["scores"]["ablation"].values())
    else:
        costs = [found[key]["baseline"] - after for after in found[key]["after"].values()]
    less = sum(cost < MARGINS[metric] for cost in costs)
    return Ours(title, 100 * less / len(costs), what=f"% of {len(costs)} heads, no intervals kept")


def one_head(case: str, title: str, stacks: Sequence[str] = ("enc",), times: float = 1.0) -> Ours:
    """The share of layers where one head, chosen on other data, costs less than (times) the margin."""
    found = load("importance")["cases"][case]
    judged = "best single heads" in found
    rows = found["best single heads" if judged else "best single heads by loss"]
    margin = times * MARGINS[found["judged"]["metric"] if judged else "loss"]
    costs = [
        Cost(row["cost"], row["low"], row["high"])
        for row in rows
        if row["chosen_on"] != "same examples" and row["stack"] in stacks
    ]
    return share_within(title, costs, margin, "layers")


def path(case: str, order: str) -> list[tuple[int, Cost]]:
    """What is lost in points along an order, at the numbers of heads that all orders have."""
    found = load("pruning-classifiers")["cases"][case]
    rows = {row["heads_left"]: row for row in found["curve"] if _bare(row, order)}
    return [
        (
            found["heads"] - left,
            Cost(*(-100 * rows[left][key] for key in ("delta", "delta_high", "delta_low"))),
        )
        for left in GRID
    ]


def _bare(row: dict[str, Any], order: str) -> bool:
    return row["order"] == order and not row["healed"]


def free(case: str, title: str) -> Ours:
    """The share of heads that go in the paper's order before more than the margin is lost."""
    heads = load("pruning-classifiers")["cases"][case]["heads"]
    told = heads_within(path(case, PAPERS), 100 * MARGINS["accuracy"])
    return Ours(title, *(100 * gone / heads for gone in told), "% of heads")


def ahead(case: str, title: str) -> Ours:
    """How far the accuracy of the paper's order lies above ablation's, mean over the grid.

    Paired by example where right and wrong were kept. Else two pruned models differ on at most as
    many examples as both do from the whole one, and the points of the grid err together.
    """
    kept = load("pruning-paired")["by_example"].get(case)
    if kept is not None:
        n = kept["n"]
        leads = [
            unpacked(kept["orders"][PAPERS][str(left)], n)
            - unpacked(kept["orders"]["ablation"][str(left)], n)
            for left in GRID
        ]
        by_text = 100 * np.mean(np.asarray(leads, dtype=np.float64), axis=0)
        value = float(by_text.mean())
        half = REACH * float(by_text.std(ddof=1)) / math.sqrt(n)
        return Ours(title, value, value - half, value + half, "points, by example")
    curve = load("pruning-classifiers")["cases"][case]["curve"]
    values, halves = [], []
    for left in GRID:
        one, two = (
            next(row for row in curve if _bare(row, order) and row["heads_left"] == left)
            for order in (PAPERS, "ablation")
        )
        lead = one["value"] - two["value"]
        apart = min(1.0, (discordant(one) + discordant(two)) / one["n"])
        values.append(100 * lead)
        halves.append(100 * REACH * math.sqrt(max(0.0, apart - lead**2) / one["n"]))
    value, half = float(np.mean(values)), float(np.mean(halves))
    return Ours(title, value, value - half, value + half, "points, at worst")


def within(case: str, title: str) -> list[Ours]:
    """How many heads go by gates and by gradient before more than the margin is lost."""
    return [
        Ours(f"{title}, {order}", *heads_within(path(case, order), 100 * MARGINS["accuracy"]),
             "heads")
        for order in ("gates", "gradient")
    ]  # fmt: skip


def probe(lower: str, upper: str) -> Callable[[], list[Ours]]:
    def ours() -> list[Ours]:
        found = []
        for name, title in (("minilm", "MiniLM"), ("e5-small", "e5-small")):
            rows = {r["probe"]: r for r in load("together-probes")["models"][name]["summary"]}
            a, b = rows[lower], rows[upper]
            value = 100 * (b["uas"] - a["uas"])
            wide = 100 * math.hypot(b["high"] - b["low"], a["high"] - a["low"]) / 2
            found.append(Ours(title, value, value - wide, value + wide, "points"))
        return found

    return ours


def structural() -> list[Ours]:
    """The structural probe less attention with words, both by arcs without direction."""
    found = []
    for name, title in (("minilm", "MiniLM"), ("e5-small", "e5-small")):
        rows = load("together-probes")["models"][name]["undirected"].get("leads", ())
        for row in rows:
            if row["against"] == "words":
                figures = (100 * row[key] for key in ("lead", "low", "high"))
                found.append(Ours(title, *figures, "points of UUAS"))
    return found


def noop() -> Callable[[], list[Ours]]:
    def ours() -> list[Ours]:
        found = []
        for survey, title in (("minilm-ewt", "MiniLM"), ("e5-ewt", "e5-small")):
            rows = [r for r in roles(survey)["noop"] if r["target"] == "separator"]
            late = [r for r in rows if r["layer"] >= len(rows) // 2]
            worst = max(late, key=lambda row: row["share"])
            found.append(
                Ours(
                    title,
                    worst["share"],
                    worst["share_low"],
                    worst["share_high"],
                    f"of other tokens, layer {worst['layer']} (largest of the upper half)",
                )
            )
        return found  # fmt: skip

    return ours


def antecedents(mentions: str, rule: str) -> Callable[[], list[Ours]]:
    """How far the best head lies above a rule, in points, paired over documents."""

    def ours() -> list[Ours]:
        found = []
        for name, title in (("minilm", "MiniLM"), ("e5-small", "e5-small")):
            rows = load("antecedents")["models"][name]
            row = next(r for r in rows if (r["mentions"], r["against"]) == (mentions, rule))
            what = f"({row['accuracy']:.1f} / {row['baseline']:.1f}, {row['head']})"
            found.append(Ours(title, row["lead"], row["lead_low"], row["lead_high"], what))
        return found

    return ours


def last_two() -> list[Ours]:
    """The larger cosine of the last two layers less the smallest of the others.

    Below 0 the last two changed most.
    """
    found = []
    for name, one in load("together-compare")["models"].items():
        rows = sorted(one["layers"], key=lambda row: row["layer"])
        figures = [
            max(row[key] for row in rows[-2:]) - min(row[other] for row in rows[:-2])
            for key, other in (("cosine", "cosine"), ("cosine_low", "cosine_high"),
                               ("cosine_high", "cosine_low"))
        ]  # fmt: skip
        most = " and ".join(str(layer) for layer in one["last_two"]["most_changed_layers"])
        what = f"(most changed: layers {most} of 0 to {rows[-1]['layer']})"
        found.append(Ours(name, *figures, what))
    return found


def disabled(kind: str, tasks: Sequence[str]) -> list[Ours]:
    """The mean gain when one is made uniform, in points."""
    found = []
    for task in tasks:
        row = load("together-disabling")["tasks"][task][f"{kind} uniform"]
        gains = [100 * gain for gain in row["gains"].values()]
        found.append(Ours(task, *over_heads(gains), f"points on average of {len(gains)} heads"))
    return found


def surely_better(kind: str) -> list[Ours]:
    tasks = load("together-disabling")["tasks"].items()
    return [
        Ours(task, one[f"{kind} uniform"]["surely better without"], what=f"{kind}s", counted=True)
        for task, one in tasks
    ]


def better_gone(task: str, title: str) -> Ours:
    """Heads whose removal surely lowers the loss, after Holm's correction over all heads."""
    found = load("importance")["cases"][task]["loss"]
    better = sum(found["better gone"].values())
    return Ours(f"MiniLM {title}, loss", better, what=f"of {found['heads']} heads", counted=True)


def arguments() -> list[Ours]:
    """Heads that link a predicate and its arguments."""
    found = []
    for survey, title in (("minilm-ewt", "MiniLM"), ("e5-ewt", "e5-small")):
        rows = [row["head"] for row in roles(survey)["roles"] if row["role"] == "argument"]
        found.append(Ours(title, len(set(rows)), what=_named(_encoder(rows)), counted=True))
    return found


def scratch() -> list[Ours]:
    control, tuned = load("together-control")["init"]["random"], load("glue")["results"]["minilm"]
    found = []
    for task in control:
        one, two = tuned[task]["accuracy"], control[task]["accuracy"]
        value = 100 * (one["mean"] - two["mean"])
        wide = 50 * math.hypot(one["high"] - one["low"], two["high"] - two["low"])
        found.append(Ours(task, value, value - wide, value + wide, "points"))
    return found


def patterns(name: str) -> list[Ours]:
    """The share of maps of the fine-tuned models; all maps of a head count as one of them."""
    found = []
    for task, one in load("together-patterns")["shares"].items():
        tuned, base = one["tuned"]["all"][name], one["base"]["all"][name]
        heads = len(one["tuned"]["vertical by head"])
        ends = wilson_interval(tuned * heads, heads)
        what = f"% of maps (before tuning {100 * base:.3g})"
        found.append(Ours(task, 100 * tuned, 100 * float(ends.low), 100 * float(ends.high), what))
    return found


#: Runs that pruned all three stacks of the translator at once.
ALL_STACKS = ("all-48", "all-28")


def left(stack: str, other: str) -> list[Ours]:
    """How many more heads of a stack are left than of another."""
    runs = load("pruning-gates")["curve"]["runs"]
    return [
        Ours(f"translator, {run.removeprefix('all-')} of 144 left:",
             runs[run]["left"][stack] - runs[run]["left"][other],
             what=f"({stack} {runs[run]['left'][stack]}, {other} {runs[run]['left'][other]})",
             counted=True)
        for run in ALL_STACKS
    ]  # fmt: skip


def low_or_high(stack: str, low: int) -> list[Ours]:
    """Heads left in the two lowest layers less those in the two highest, or the reverse (low -1)."""
    found = []
    for run in ALL_STACKS:
        heads = load("pruning-gates")["curve"]["runs"][run]["kept"]
        layers = [int(head.split(".")[1]) for head in heads if head.startswith(f"{stack}.")]
        lower, upper = sum(one < 2 for one in layers), sum(one > 3 for one in layers)
        found.append(
            Ours(f"translator, {run.removeprefix('all-')} of 144 left:", low * (lower - upper),
                 what=f"(layers 0 and 1: {lower}, 4 and 5: {upper})", counted=True)
        )  # fmt: skip
    return found


def speed() -> list[Ours]:
    """How much faster a model with half its heads is: on a CPU, and on a GPU as it is run there."""
    cpu, gpu = (load(f"research/benchmarks/results/{name}") for name in ("pruned", "pruned-gpu"))
    rows = [(f"{name}, CPU", row) for name in ("MiniLM", "BERT-base") for row in cpu[name]]
    rows += [
        (f"BERT-base, H200, {way}", row)
        for way in ("float32 plain", "bfloat16 plain", "bfloat16 graph", "bfloat16 compile")
        for row in gpu[way]
    ]
    return [
        Ours(f"{name}, batch {row['batch']}", *(100 * row[k] for k in ("gain", "low", "high")), "%")
        for name, row in rows
    ]


def dynamics(place: int, share: float) -> list[Ours]:
    """BLEU with a share of all heads shut, as a share of that with none, at a snapshot."""
    one = load("translator")["heads over training"][place]
    points = sorted(one["curve"], key=lambda row: abs(row["shut"] - share * 144))
    whole = next(row["bleu"] for row in one["curve"] if row["shut"] == 0)
    what = "% of BLEU, no interval kept"
    return [Ours(f"translator, step {one['step']:,}", 100 * points[0]["bleu"] / whole, what=what)]


def first_growth() -> int:
    """The first snapshot that translates at all."""
    rows = load("translator")["heads over training"]
    return next(i for i, one in enumerate(rows) if one["curve"][0]["bleu"] > 5)


def alike() -> list[Ours]:
    """How many times as often as by chance a head's nearest head is of its own layer."""
    found = []
    for name, model in load("together-families")["models"].items():
        for stack, one in model["stacks"].items():
            same = [
                float(next(iter(told["nearest"])).rsplit(".", 1)[0] == head.rsplit(".", 1)[0])
                for head, told in model["heads"].items()
                if head.startswith(f"{stack}.")
            ]
            figures = over_heads(same)
            chance = one["nearest_in_same_layer_by_chance"]
            found.append(Ours(f"{name} {stack}", *(figure / chance for figure in figures)))
    return found


def last_cross() -> list[Ours]:
    """What one head costs more in the last layer than in any other; both are uncertain."""
    rows = load("importance")["cases"]["tatoeba"]["best single heads by loss"]
    rows = [r for r in rows if r["chosen_on"] != "same examples" and r["stack"] == "cross"]
    last = max(rows, key=lambda row: row["layer"])

    def most(key: str) -> float:
        return float(max(row[key] for row in rows if row is not last))

    figures = (last["cost"] - most("cost"), last["low"] - most("high"), last["high"] - most("low"))
    return [Ours("translator, loss, beyond the next", *figures, "nats a token")]


def encoder_heads(role: str) -> list[Ours]:
    """How many encoder heads have a role: on the sample, and the translators' on Tatoeba."""
    found = [
        (f"{name}, {SAMPLE}", _encoder(one["named"].get(role, ())))
        for name, one in load("verdicts")["counts"]["after"].items()
        if name != "smollm2"  # has no encoder
    ]
    for name, survey in TRANSLATORS:
        own = [row["head"] for row in roles(survey)["roles"] if row["role"] == role]
        found.append((f"{name}, Tatoeba", _encoder(own)))
    return [Ours(name, len(heads), what=_named(heads), counted=True) for name, heads in found]


def positional_on_tatoeba() -> str:
    """What the translator's positional heads of the sample come to on more sentences."""
    one = roles("de-tatoeba")
    share = dict(zip(one["index"], one["columns"]["best_offset_share"], strict=True))
    named = load("verdicts")["counts"]["after"]["translator"]["named"]["positional"]
    return ", ".join(f"{head} {100 * share[head]:.1f}%" for head in _encoder(named))


def _encoder(heads: Iterable[str]) -> list[str]:
    return sorted({head for head in heads if head.startswith("enc.")})


def _named(heads: Sequence[str]) -> str:
    """What is counted, with names.

    >>> _named(["enc.0.1"]), _named([])
    ('head (enc.0.1)', 'heads')
    """
    word = "head" if len(heads) == 1 else "heads"
    return f"{word} ({', '.join(heads)})" if heads else word


def confident() -> list[Ours]:
    """How many positional encoder heads are not confident; a model without any is not asked."""
    after = load("verdicts")["counts"]["after"]["translator"]["named"]["positional"]
    asked = [("translator", "de-tatoeba", _encoder(after))]
    for name, survey in (("MiniLM", "minilm-ewt"), ("e5-small", "e5-ewt")):
        rows = [row["head"] for row in roles(survey)["roles"] if row["role"] == "positional"]
        asked.append((name, survey, _encoder(rows)))
    found = []
    for name, survey, heads in asked:
        one = roles(survey)
        sure = dict(zip(one["index"], one["columns"]["confidence"], strict=True))
        told = ", ".join(f"{head} {sure[head]:.3g}" for head in heads)
        unsure = sum(sure[head] <= CONFIDENT for head in heads)
        what = f"of {len(heads)} not confident ({told})"
        found.append(Ours(name, unsure, what=what, counted=True))
    return found


def earlier() -> list[Ours]:
    """How much more heads of the lower half of the layers look at the tokens beside them."""
    found, rng = [], np.random.default_rng(SEED)
    for name, title in (("minilm", "MiniLM"), ("e5-small", "e5-small")):
        heads = load("surface")["models"][name]["headcount"]["heads"]
        layers = np.array([int(head.split(".")[1]) for head in heads["index"]])
        beside = np.array(heads["previous"]) + np.array(heads["next"])
        halves = [beside[layers < (layers.max() + 1) / 2], beside[layers >= (layers.max() + 1) / 2]]
        means = [half[rng.integers(0, len(half), (DRAWS, len(half)))].mean(1) for half in halves]
        low, high = np.quantile(means[0] - means[1], [0.025, 0.975])
        what = f"of the attention ({halves[0].mean():.2g} against {halves[1].mean():.2g})"
        found.append(Ours(title, halves[0].mean() - halves[1].mean(), low, high, what))
    return found


def rests() -> list[Ours]:
    """How much more a syntactic head looks at separators from words without its relation."""
    found = []
    for name, survey in (("MiniLM", "minilm-ewt"), ("e5-small", "e5-ewt"), *TRANSLATORS):
        separators, first = (_resting(survey, rest) for rest in ("separator", "first"))
        what = (
            f"of the attention, {len(separators)} heads (to the first token {np.mean(first):.2g})"
        )
        found.append(Ours(name, *over_heads(separators), what))
    return found


def _resting(survey: str, rest: str) -> list[float]:
    """By head: its mean over relations."""
    by_head: dict[str, list[float]] = {}
    for row in roles(survey)["rest"]:
        if row["rest"] == rest and row["head"].startswith("enc."):
            by_head.setdefault(row["head"], []).append(row["baseline"] - row["value"])
    return [sum(one) / len(one) for one in by_head.values()]


#: Runs of one setting that learned gates of the encoder: a folder of research/gates/results.
SETTINGS = (
    ("12,000 steps, 10 left, 3 seeds", "12000-steps", ("enc-10-s0", "enc-10-s1", "enc-10-s2")),
    ("decoder frozen, 10 left, 3 seeds", "2800-steps-frozen",
     ("enc-10-s0", "enc-10-s1", "enc-10-s2")),
    ("decoder frozen, 30 to 1 left", "2800-steps-frozen",
     ("enc-30", "enc-17", "enc-10-s0", "enc-6", "enc-4", "enc-2", "enc-1")),
)  # fmt: skip


def kept_by_gates() -> list[Ours]:
    """Cliff's delta of how many runs keep a head: encoder heads with a function against others."""
    named = load("verdicts")["counts"]["after"]["translator"]["named"]
    sample = [(head, role) for role, heads in named.items() for head in heads]
    whole = [(row["head"], row["role"]) for row in roles("de-tatoeba")["roles"]]
    found = []
    for text, own in (("Tatoeba", whole), ("the sample", sample)):
        for title, folder, runs in SETTINGS:
            table = _kept_table(folder, runs, own)
            row = by_role(table, ["kept"], seed=0).set_index("role").loc["any function"]
            what = f"({row['heads']} against {row['others']} heads, p {row['p']:.2g})"
            figures = (float(row[key]) for key in ("delta", "low", "high"))
            found.append(Ours(f"{title}, roles on {text}:", *figures, what))
    return found


def _kept_table(folder: str, runs: Sequence[str], own: Sequence[tuple[str, str]]) -> hc.HeadTable:
    """The encoder's heads with the number of runs that keep each, and its roles."""
    kept = [set(load(f"research/gates/results/{folder}/{run}")["kept"]) for run in runs]
    heads = [Head("enc", layer, head) for layer in range(6) for head in range(8)]
    rows = [
        ("enc", *(int(part) for part in head.split(".")[1:]), role, KINDS[role].rests)
        for head, role in sorted(set(own))
        if head.startswith("enc.")
    ]
    frame = pd.DataFrame(rows, columns=["stack", "layer", "head", "role", "rests"])
    times = [float(sum(str(head) in one for one in kept)) for head in heads]
    return hc.HeadTable.of(heads, {"kept": times}, details={"roles": frame})


def rarest() -> list[Ours]:
    found = [("translator, sample", load("verdicts")["counts"]["after"]["translator"]["rarest"])]
    for name, survey in TRANSLATORS:
        rows = [row for row in roles(survey)["rarity"] if row["head"].startswith("enc.0.")]
        rows = [row for row in rows if row.get("counts") == "its training text"]
        found += [(f"{name}, Tatoeba", max(rows, key=lambda row: row["share"]))] if rows else []
    return [
        Ours(f"{name}, {one['head']}", *(100 * one[key] for key in ("share", "low", "high")), "%")
        for name, one in found
    ]


def rare_relevance() -> list[Ours]:
    told = load("rare-head")
    return [
        Ours(f"en-ru translator, {told['head']}, rule {rule}", one["place in layer"] - 1,
             what=f"of 7 other heads (its relevance is {one['over the next']:.2g} of the next's)",
             counted=True)
        for rule, one in told["relevance"].items() if rule != CONTRIBUTION
    ]  # fmt: skip


def survivors() -> list[Ours]:
    found = load("pruning-frozen")["roles"]
    functions = [role for role in ("positional", "syntactic") if role in found["base-s0"]["counts"]]
    return [
        Ours("decoder frozen, enc-17", sum(r in found["enc-17"]["counts"] for r in functions),
             what=f"of {len(functions)} functions", counted=True)
    ]  # fmt: skip


def second(run: str, heads: int) -> Ours:
    row = load("pruning-lohelp")["curve"]["test"][run]
    what = f"(a loss of {row['detectable']:.2g} would be seen)"
    return Ours(f"trained on lohelp, {heads} heads", row["delta"], row["low"], row["high"], what)


def by_stack(stack: str) -> list[Ours]:
    told = load("pruning-by-stack")
    rows = [r for r in told.get("at 60 percent", told)["stacks"] if r["stack"] == stack]
    row = min(rows, key=lambda one: abs(one["left"] - 0.4 * 48))
    return [
        Ours(f"{stack}, {row['left']} of 48 left", row["delta"], row["low"], row["high"], "BLEU")
    ]


def stacks_apart() -> list[Ours]:
    """What 60% of the encoder's heads leave of BLEU, less what 60% of cross-attention leaves."""
    [one], [other] = by_stack("enc"), by_stack("cross")
    ends = one.low - other.high, one.high - other.low
    return [Ours("translator, enc minus cross", one.value - other.value, *ends, "BLEU")]


def most_separator() -> list[Ours]:
    told = {task: one["tuned"]["separator"]["all tokens"]
            for task, one in load("together-features")["tasks"].items()}  # fmt: skip
    own = told.pop("sst2")
    task = max(told, key=lambda name: told[name]["value"])
    other = told[task]
    ends = own["low"] - other["high"], own["high"] - other["low"]
    return [Ours(f"MiniLM, SST-2 minus {task}", own["value"] - other["value"], *ends)]


def most_feature() -> list[Ours]:
    found = []
    for task, one in load("together-features")["tasks"].items():
        kinds = {
            k: v["beyond other words"] for k, v in one["tuned"].items() if "beyond other words" in v
        }
        kind = max(kinds, key=lambda name: kinds[name]["value"])
        before = one["base"][kind]["beyond other words"]["value"]
        told = (kinds[kind][end] for end in ("value", "low", "high"))
        found.append(Ours(f"{task}, {kind}", *told, f"(before tuning {before:.3g})"))
    return found
