"""The findings of Voita, Michel, Clark and Kovaleva et al. (2019), each with where ours lies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .rule import Finding, Ours, load

VOITA, MICHEL = "Voita et al., ACL 2019", "Michel et al., NeurIPS 2019"
CLARK, KOVALEVA = "Clark et al., BlackBoxNLP 2019", "Kovaleva et al., EMNLP 2019"
NAMES = {"de-tatoeba": "translator", "ru-tatoeba": "en-ru translator"}


# --- Readers of our files -----------------------------------------------------------------------


def _roles(survey: str) -> Any:
    return load(f"roles/{survey}")


def _agreement(first: str, second: str, stack: str, kind: str, where: str = "translator") -> Ours:
    rows = load("importance")["agreement"][where]
    for row in rows:
        same = {row["first"], row["second"]} == {first, second}
        if same and (row["stack"], row["kind"]) == (stack, kind):
            return Ours(where, row["value"], row["low"], row["high"], stack)
    return Ours(where, math.nan)


def _relation(name: str, relation: str, survey: str) -> Ours:
    """How far the best head of a relation lies above its offset, in points."""
    rows = [r for r in _roles(survey)["best"] if r["relation"] == relation and r["stack"] == "enc"]
    if not rows:
        return Ours(name, math.nan)
    row = max(rows, key=lambda one: one["accuracy"] - one["baseline"])
    value, low, high = (100 * (row[key] - row["baseline"]) for key in ("accuracy", "low", "high"))
    return Ours(
        name, value, low, high, f"({100 * row['accuracy']:.0f} / {100 * row['baseline']:.0f})"
    )


def _relations(relation: str, *surveys: tuple[str, str]) -> Callable[[], list[Ours]]:
    return lambda: [_relation(name, relation, survey) for name, survey in surveys]


GLUE = (("sst2", "SST-2"), ("mrpc", "MRPC"), ("rte", "RTE"), ("cola", "CoLA"))
CLASSIFIERS = tuple(
    (f"minilm-{task}-{seed}", f"{title} seed {seed}")
    for task, title in (("sst2", "SST-2"), ("mrpc", "MRPC"), ("cola", "CoLA"))
    for seed in (0, 1)
)
ENCODERS = (("MiniLM", "minilm-stanford"), ("e5-small", "e5-stanford"))
TRANSLATORS = (("translator", "de-tatoeba"), ("en-ru translator", "ru-tatoeba"))


def _surface(key: str, pick: Callable[[Any], float] | None = None) -> Callable[[], list[Ours]]:
    """A count over heads, or what layers' means say with its interval over blocks of texts."""

    def ours(name: str, title: str) -> Ours:
        if pick is None:
            return Ours(title, *load("surface")["intervals"][name][key])
        return Ours(title, pick(load("surface")["models"][name]["headcount"]["findings"][key]))

    return lambda: [ours(*one) for one in (("minilm", "MiniLM"), ("e5-small", "e5-small"))]


def _frozen(part: str) -> list[Ours]:
    found = load("pruning-frozen")
    row = found["headline"][part]
    return [Ours(f"{part}, decoder frozen", row["delta"], row["low"], row["high"],
                 f"(a loss of {row['detectable']:.2g} would be seen)")]  # fmt: skip


def _ten_heads() -> list[Ours]:
    told = load("pruning-gates")["headline"]["mean"]["test"]["difference"]
    ours = [Ours("test, all weights learn", told["delta"], told["delta_low"], told["delta_high"])]
    row = load("pruning-russian")["headline"]["test"]
    what = f"(read once; a loss of {row['detectable']:.2g} would be seen)"
    ours.append(Ours("en-ru test, all weights learn", row["delta"], row["low"], row["high"], what))
    return ours + _frozen("test") + _frozen("pud")


def _above(name: str, run: str, other: str) -> Ours:
    """How far a run of 48 heads lies above another on test."""
    found = load("pruning-scratch")["runs"][run]["against"][other]["test"]["difference"]
    return Ours(name, found["delta"], found["delta_low"], found["delta_high"], "BLEU")


#: 48 heads from random weights, on as much text as the pruned model has read.
_CONVERGED = "scratch-48-converged"


def _curve(name: str) -> list[Ours]:
    row = load("pruning-gates")["curve"]["runs"][name]["test"]
    found = [
        Ours("all weights learn, 4,500 steps", row["delta"], row["delta_low"], row["delta_high"])
    ]
    frozen = load("pruning-frozen")["curve"].get("test", {}).get(name)
    if frozen:
        found.append(Ours("decoder frozen", frozen["delta"], frozen["low"], frozen["high"]))
    return found


def _function(role: str, scores: Sequence[str]) -> Callable[[], list[Ours]]:
    def ours() -> list[Ours]:
        rows = [r for r in load("function")["rows"] if r["role"] == role and r["score"] in scores]
        return [
            Ours(f"translator, {r['score'].replace('_', ' ')}", r["delta"], r["low"], r["high"],
                 f"(p {r['p_adjusted']:.2g})")
            for r in rows
        ]  # fmt: skip

    return ours


def _rules(other: str) -> Callable[[], list[Ours]]:
    return lambda: [
        Ours(f"translator enc, rule {rule}", *found["agreement"]["enc"][other])
        for rule, found in load("relevance-rules")["rules"].items()
    ]


def _masked(case: str, title: str, key: str = "judged") -> Ours:
    found = load("importance")["cases"][case][key]
    worse = sum(found["cost something"].values())
    return Ours(title, 100 * worse / found["heads"], what=f"% of {found['heads']} heads")


def _one_head(case: str, title: str, stack: str = "enc") -> Ours:
    """The share of layers in which one head, chosen on other data, costs nothing beyond chance."""
    found = load("importance")["cases"][case]
    key = "best single heads" if "best single heads" in found else "best single heads by loss"
    rows = [r for r in found[key] if r["chosen_on"] != "same examples" and r["stack"] == stack]
    free = sum(not (r["p_adjusted"] <= 0.05 and r["cost"] > 0) for r in rows)
    return Ours(f"{title} {stack}", 100 * free / len(rows), what=f"% of {len(rows)} layers")


def _free(case: str, title: str) -> Ours:
    heads = load("pruning-classifiers")["cases"][case]["heads"]
    left = _left_by(case, "gradient by layer")
    return Ours(f"{title}, gradient by layer", 100 * (1 - left / heads), what="% of heads")


def _left_by(case: str, order: str) -> int:
    """Heads left before the first significant loss."""
    found = load("pruning-classifiers")["cases"][case]
    return int(found["free"][order]["free"].get("heads_left", found["heads"]))


def _within(case: str, title: str) -> list[Ours]:
    found = load("pruning-classifiers")["cases"][case]
    heads = found["heads"]
    return [
        Ours(f"{title}, {order}", heads - found["free"][order]["within"].get("heads_left", heads),
             what="heads")
        for order in ("gates", "gradient")
        if order in found["free"]
    ]  # fmt: skip


def _probe(lower: str, upper: str) -> Callable[[], list[Ours]]:
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


def _structural() -> list[Ours]:
    """The structural probe less attention with words, both by arcs without direction."""
    found = []
    for name, title in (("minilm", "MiniLM"), ("e5-small", "e5-small")):
        rows = load("together-probes")["models"][name]["undirected"].get("leads", ())
        for row in rows:
            if row["against"] == "words":
                figures = (100 * row[key] for key in ("lead", "low", "high"))
                found.append(Ours(title, *figures, "points of UUAS"))
    return found


def _noop(layers: range) -> Callable[[], list[Ours]]:
    def ours() -> list[Ours]:
        found = []
        for survey, title in (("minilm-ewt", "MiniLM"), ("e5-ewt", "e5-small")):
            rows = [r for r in _roles(survey)["noop"] if r["target"] == "separator"]
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


def _antecedents(mentions: str, rule: str) -> Callable[[], list[Ours]]:
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


def _last_two() -> list[Ours]:
    models = load("together-compare")["models"]
    return [
        Ours(name, one["last_two"]["mean_cosine_last_two"] - one["last_two"]["mean_cosine_others"])
        for name, one in models.items()
    ]


def _disabled(kind: str) -> list[Ours]:
    found = []
    for task, one in load("together-disabling")["tasks"].items():
        row = one[f"{kind} uniform"]
        found.append(Ours(task, 100 * row["mean gain"], what="points on average"))
    return found


def _surely_better(kind: str) -> list[Ours]:
    tasks = load("together-disabling")["tasks"].items()
    return [
        Ours(task, one[f"{kind} uniform"]["surely better without"], what=f"{kind}s")
        for task, one in tasks
    ]


def _scratch() -> list[Ours]:
    control, tuned = load("together-control")["init"]["random"], load("glue")["results"]["minilm"]
    found = []
    for task in control:
        one, two = tuned[task]["accuracy"], control[task]["accuracy"]
        value = 100 * (one["mean"] - two["mean"])
        wide = 50 * math.hypot(one["high"] - one["low"], two["high"] - two["low"])
        found.append(Ours(task, value, value - wide, value + wide, "points"))
    return found


def _patterns(name: str) -> list[Ours]:
    shares = load("together-patterns")["shares"]
    return [
        Ours(task, 100 * one["base"]["all"][name], what="% of maps") for task, one in shares.items()
    ]


def _left(stack: str) -> Ours:
    return Ours(
        f"translator, {stack}", load("pruning-gates")["curve"]["runs"]["all-48"]["left"][stack]
    )


def _speed() -> list[Ours]:
    rows = load("benchmarks/results/pruned")
    return [
        Ours(
            f"{name}, CPU, batch {r['batch']}", *(100 * r[k] for k in ("gain", "low", "high")), "%"
        )
        for name in ("MiniLM", "BERT-base")
        for r in rows[name]
    ]


def _dynamics(place: int, share: float) -> list[Ours]:
    """BLEU with a share of all heads shut, as a share of that with none, at a snapshot."""
    one = load("translator")["heads over training"][place]
    points = sorted(one["curve"], key=lambda row: abs(row["shut"] - share * 144))
    whole = next(row["bleu"] for row in one["curve"] if row["shut"] == 0)
    return [
        Ours(f"translator, step {one['step']:,}", 100 * points[0]["bleu"] / whole, what="% of BLEU")
    ]


def _first_growth() -> int:
    """The first snapshot that translates at all."""
    rows = load("translator")["heads over training"]
    return next(i for i, one in enumerate(rows) if one["curve"][0]["bleu"] > 5)


def _alike() -> list[Ours]:
    """How many times as often as by chance a head's nearest head is of its own layer."""
    return [
        Ours(
            f"{name} {stack}", one["nearest_in_same_layer"] / one["nearest_in_same_layer_by_chance"]
        )
        for name, model in load("together-families")["models"].items()
        for stack, one in model["stacks"].items()
    ]


def _last_cross() -> list[Ours]:
    rows = load("importance")["cases"]["tatoeba"]["best single heads by loss"]
    rows = [r for r in rows if r["chosen_on"] != "same examples" and r["stack"] == "cross"]
    last = max(rows, key=lambda row: row["layer"])
    other = max(r["cost"] for r in rows if r is not last)
    return [
        Ours(
            "translator, loss, beyond the next", *(last[k] - other for k in ("cost", "low", "high"))
        )
    ]


def _count(role: str) -> Callable[[], list[Ours]]:
    counts = load("verdicts")["counts"]["after"]
    return lambda: [
        Ours(name, one["roles"].get(role, 0), what="heads") for name, one in counts.items()
    ]


def _rarest() -> list[Ours]:
    found = [("translator, sample", load("verdicts")["counts"]["after"]["translator"]["rarest"])]
    for name, survey in TRANSLATORS:
        rows = [row for row in _roles(survey)["rarity"] if row["head"].startswith("enc.0.")]
        rows = [row for row in rows if row.get("counts") == "its training text"]
        found += [(f"{name}, Tatoeba", max(rows, key=lambda row: row["share"]))] if rows else []
    return [
        Ours(f"{name}, {one['head']}", *(100 * one[key] for key in ("share", "low", "high")), "%")
        for name, one in found
    ]


def _rare_relevance() -> list[Ours]:
    told = load("rare-head")
    return [
        Ours(f"en-ru translator, {told['head']}, rule {rule}", one["over the next"], what="times")
        for rule, one in told["relevance"].items()
    ]


def _survivors() -> list[Ours]:
    found = load("pruning-frozen")["roles"]
    functions = [role for role in ("positional", "syntactic") if role in found["base-s0"]["counts"]]
    return [
        Ours("decoder frozen, enc-17", sum(r in found["enc-17"]["counts"] for r in functions),
             what=f"of {len(functions)} functions")
    ]  # fmt: skip


def _second(run: str, heads: int) -> Ours:
    row = load("pruning-lohelp")["curve"]["test"][run]
    what = f"(a loss of {row['detectable']:.2g} would be seen)"
    return Ours(f"trained on lohelp, {heads} heads", row["delta"], row["low"], row["high"], what)


def _by_stack(stack: str) -> list[Ours]:
    told = load("pruning-by-stack")
    rows = [r for r in told.get("at 60 percent", told)["stacks"] if r["stack"] == stack]
    row = min(rows, key=lambda one: abs(one["left"] - 0.4 * 48))
    return [
        Ours(f"{stack}, {row['left']} of 48 left", row["delta"], row["low"], row["high"], "BLEU")
    ]


def _most_separator() -> list[Ours]:
    told = {task: one["tuned"]["separator"]["all tokens"]
            for task, one in load("together-features")["tasks"].items()}  # fmt: skip
    own = told.pop("sst2")
    task = max(told, key=lambda name: told[name]["value"])
    other = told[task]
    ends = own["low"] - other["high"], own["high"] - other["low"]
    return [Ours(f"MiniLM, SST-2 minus {task}", own["value"] - other["value"], *ends)]


def _most_feature() -> list[Ours]:
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


# --- The findings -------------------------------------------------------------------------------

ROLES, IMPORTANCE = "python -m experiments.roles", "python -m experiments.importance"
GATES, TOGETHER = "python -m experiments.gates", "python -m experiments.together"
VERDICTS, FUNCTION = "python -m experiments.verdicts", "python -m experiments.verdicts.function"


def _v(claim: str, published: str, ours: Any, bound: float = math.nan, **more: Any) -> Finding:
    return Finding(VOITA, claim, published, ours, bound, **more)


def _m(claim: str, published: str, ours: Any, bound: float = math.nan, **more: Any) -> Finding:
    return Finding(MICHEL, claim, published, ours, bound, **more)


def _c(claim: str, published: str, ours: Any, bound: float = math.nan, **more: Any) -> Finding:
    return Finding(CLARK, claim, published, ours, bound, **more)


def _k(claim: str, published: str, ours: Any, bound: float = math.nan, **more: Any) -> Finding:
    return Finding(KOVALEVA, claim, published, ours, bound, **more)


_SYN = {
    "source": "roles/de-tatoeba roles/ru-tatoeba",
    "command": ROLES,
    "shown": "[roles](roles.md), their Table 1",
}
_REL = {
    "source": "roles/minilm-stanford roles/e5-stanford",
    "command": ROLES,
    "shown": "[roles](roles.md), their Table 1",
}
_ANT = {
    "source": "antecedents",
    "command": ROLES + ".antecedents",
    "shown": "[roles](roles.md#coreference)",
}
_SUR = {
    "source": "surface",
    "command": "python -m experiments.surface",
    "shown": "[surface](surface.md)",
}
_DYN = {
    "source": "translator",
    "command": "python -m experiments.translator.bundled",
    "shown": "[translator](translator.md#how-heads-grow)",
}
_SCR = {
    "source": "pruning-scratch",
    "command": GATES + ".summary --against",
    "shown": "[pruning](pruning.md#from-scratch-longer-and-with-gates-from-the-first-step)",
}
_STA = {
    "source": "pruning-by-stack",
    "command": "python -m experiments.stacks",
    "shown": "[pruning](pruning.md#one-stack-alone)",
}
_FEA = {
    "source": "together-features",
    "command": "python -m experiments.features",
    "shown": "[together](together.md#what-tasks-make-heads-look-at)",
}
_PRO = {
    "source": "together-probes",
    "command": "python -m experiments.probes",
    "shown": "[together](together.md), their Table 3",
}

FINDINGS: tuple[Finding, ...] = (
    _v(
        "the most relevant encoder heads are the most confident ones",
        "figures 1, 2",
        _rules("confidence"),
        0.3,
        source="relevance-rules",
        command="python -m experiments.rules",
        shown="[importance](importance.md)",
        note="It depends on the rule of relevance: under ours alone it is seen.",
    ),
    _v(
        "the heads that are relevant are those that matter (ablation)",
        "implied",
        _rules("ablation"),
        0.3,
        source="relevance-rules",
        command="python -m experiments.rules",
    ),
    _v(
        "some encoder heads are positional (90% of tokens at one offset)",
        "several",
        _count("positional"),
        1,
        source="verdicts",
        command=VERDICTS,
    ),
    _v(
        "nsubj: a head lies 10 points above the offset",
        "+10 to +32",
        _relations("nsubj", *TRANSLATORS),
        10,
        **_SYN,
    ),
    _v(
        "dobj: a head lies 10 points above the offset",
        "+15 to +38",
        _relations("obj", *TRANSLATORS),
        10,
        **_SYN,
    ),
    _v(
        "amod: a head lies 10 points above the offset",
        "+1 to +10",
        _relations("amod", *TRANSLATORS),
        10,
        **_SYN,
    ),
    _v(
        "advmod: a head lies above the offset",
        "+2 to +9",
        _relations("advmod", *TRANSLATORS),
        2,
        **_SYN,
    ),
    _v(
        "a head of the first layer points to one of the two rarest tokens",
        "> 50% (WMT), 83%",
        _rarest,
        50,
        source="verdicts roles/de-tatoeba roles/ru-tatoeba",
        command=f"{VERDICTS}`, `{ROLES}",
        note="counts of the training text; counts of the text under test made one appear",
    ),
    _v(
        "the rare-word head is the most relevant one of its layer, and unsure",
        "figure 1",
        _rare_relevance,
        1,
        source="rare-head",
        command="python -m experiments.rules.rare",
        shown="[roles](roles.md#positional-and-rare-word-heads)",
        note="the nearest head to one, half of its pointers on rare tokens; its relevance over the next head's of its layer, 16 sentences. Unsure it is: the least confident of 48",
    ),
    _v(
        "48 to 10 encoder heads cost at most 0.15 BLEU",
        "-0.15 (WMT)",
        _ten_heads,
        -0.15,
        source="pruning-gates pruning-frozen pruning-russian",
        command=GATES,
        shown="[pruning](pruning.md)",
    ),
    _v(
        "48 to 4 encoder heads cost at most 0.25 BLEU",
        "-0.25 (OpenSubtitles)",
        lambda: _curve("enc-4"),
        -0.25,
        source="pruning-gates",
        command=GATES,
        shown="[pruning](pruning.md)",
    ),
    _v(
        "17 heads keep every function",
        "figure 8",
        _survivors,
        2,
        source="pruning-frozen",
        command="python -m experiments.gates.frozen",
        shown="[pruning](pruning.md)",
    ),
    _v(
        "heads with a function matter more than others of their layer",
        "conclusion",
        _function("any function", ("gradient", "ablation", "relevance")),
        0.147,
        source="function",
        command=FUNCTION,
        note="Cliff's delta; 0.147 is the least that is called small",
    ),
    _v(
        "heads with a function go later",
        "figure 8",
        _function("any function", ("removal_step",)),
        0.147,
        source="function",
        command=FUNCTION,
    ),
    _v(
        "heads that only rest matter less",
        "implied",
        _function("any rest", ("gradient", "ablation", "relevance")),
        -0.147,
        at_most=True,
        source="function",
        command=FUNCTION,
    ),
    _v(
        "heads that only rest go earlier",
        "implied",
        _function("any rest", ("removal_step",)),
        -0.147,
        at_most=True,
        source="function",
        command=FUNCTION,
    ),
    _v(
        "cross-attention is held longest",
        "figure 9",
        lambda: [
            Ours(
                "translator, cross heads of 48 left minus encoder's",
                _left("cross").value - _left("enc").value,
            )
        ],
        1,
        source="pruning-gates",
        command=GATES,
        note="one run; no interval",
    ),
    _v(
        "the encoder's self-attention goes first",
        "figure 9",
        lambda: [
            Ours(
                "translator, decoder's minus encoder's heads left",
                _left("dec").value - _left("enc").value,
            )
        ],
        1,
        source="pruning-gates",
        command=GATES,
        note="one run; no interval",
    ),
    _v(
        "a pruned model beats the same heads trained from scratch",
        "+0.15 to +0.5 BLEU",
        lambda: [
            _above("the same 48 heads, converged on as much text", "all-48", _CONVERGED),
            _above("48 heads pruned with 12,000 steps, against these", "all-48-long", _CONVERGED),
        ],
        0.15,
        note="one seed; a lead below 0.7 could not have been seen. After 16,000 steps the lead was still 1.7: that was training",
        **_SCR,
    ),
    _v(
        "the regulariser from scratch does worse",
        "0.2 to 0.6 BLEU",
        lambda: [
            _above("pruned from the trained model", "all-48-long", "scratch-gates"),
            _above(
                "48 fixed heads from scratch, as many steps", "scratch-48-long", "scratch-gates"
            ),
        ],
        0.2,
        note="one seed, 16,000 steps, not converged; the second has had the same training",
        **_SCR,
    ),
    _v(
        "the same holds in a second domain",
        "OpenSubtitles",
        lambda: [_second("enc-10-s0", 10), _second("enc-4", 4)],
        -0.25,
        note="software help, 24,081 pairs: a weak translator (11 BLEU, one seed), which has little to lose",
        source="pruning-lohelp",
        command=GATES + ".frozen --domain lohelp",
        shown="[pruning](pruning.md#a-second-domain)",
    ),
    _m(
        "most heads can go one at a time without a significant change",
        "88 of 96",
        lambda: [
            _masked("tatoeba", "translator, BLEU"),
            _masked("tatoeba", "translator, loss", "loss"),
            *(_masked(task, f"MiniLM {title}") for task, title in GLUE),
        ],
        10,
        at_most=True,
        source="importance",
        command=IMPORTANCE,
        shown="[importance](importance.md)",
        note="share of heads that cost something; 100 sentences of BLEU have no power to show it, the loss has",
    ),
    _m(
        "some heads are better gone",
        "4 of 96",
        lambda: [
            Ours(
                f"MiniLM {title}, loss",
                sum(load("importance")["cases"][task]["loss"]["better gone"].values()),
                what="of 72 heads",
            )
            for task, title in GLUE
        ],
        1,
        source="importance",
        command=IMPORTANCE,
    ),
    _m(
        "one head is enough in most layers of BERT",
        "12 of 12",
        lambda: [_one_head(*one) for one in GLUE],
        80,
        source="importance",
        command=IMPORTANCE,
        note="not significant is not equivalent: half of 277 to 872 examples judges",
    ),
    _m(
        "one head is enough in half of the layers of a translator",
        "9 of 18",
        lambda: [_one_head("tatoeba", "translator", s) for s in ("enc", "dec", "cross")],
        50,
        source="importance",
        command=IMPORTANCE,
    ),
    _m(
        "the last cross-attention layer needs its heads most",
        "-13.6 BLEU",
        _last_cross,
        0.0,
        source="importance",
        command=IMPORTANCE,
    ),
    _m(
        "the same heads matter on other data",
        "r 0.56 and 0.68",
        lambda: [_agreement("ablation on tatoeba", "ablation on lohelp", "all", "pearson")],
        0.4,
        source="importance",
        command=IMPORTANCE,
    ),
    _m(
        "40% of BERT's heads can go (MNLI), 60% on SST-2",
        "40% to 60%",
        lambda: [_free(*case) for case in CLASSIFIERS],
        40,
        source="pruning-classifiers",
        command="python -m experiments.pruning classifiers",
        shown="[pruning](pruning.md#classifiers)",
        note="before the first significant loss; the smallest loss seen is about 2 points",
    ),
    _m(
        "so many heads lose no more than 1 point (non-inferiority)",
        "not tested",
        lambda: [row for case in CLASSIFIERS for row in _within(*case)],
        7,
        source="pruning-classifiers",
        command="python -m experiments.pruning classifiers",
        note="heads that surely cost less than 1 point; bound: a tenth of them",
    ),
    _m(
        "gradient scores order heads better than ablation",
        "figure 3",
        lambda: [
            Ours(
                title,
                _left_by(case, "ablation") - _left_by(case, "gradient"),
                what="heads more can go",
            )
            for case, title in CLASSIFIERS
        ],
        4,
        source="pruning-classifiers",
        command="python -m experiments.pruning classifiers",
        shown="[pruning](pruning.md#classifiers)",
        note="before the first significant loss; bound: one point of the grid. Translator: yes until few heads are left",
    ),
    _m(
        "cross-attention collapses when 60% of it goes, alone",
        "below 10 BLEU",
        lambda: _by_stack("cross"),
        -10,
        at_most=True,
        **_STA,
    ),
    _m(
        "self-attention of the encoder can lose 60% and keep most",
        "about -6 BLEU",
        lambda: _by_stack("enc"),
        -10,
        **_STA,
    ),
    _m(
        "half of the heads gone is 17.5% faster",
        "+17.5%",
        _speed,
        14,
        shown="[pruning](pruning.md)",
        command="python -m benchmarks.pruned",
    ),
    _m(
        "late in training 40% of heads can go for 10 to 15%",
        "85 to 90% kept",
        lambda: _dynamics(-1, 0.4),
        85,
        **_DYN,
    ),
    _m(
        "early in training no head can go",
        "linear fall",
        lambda: _dynamics(_first_growth(), 0.1),
        90,
        at_most=True,
        **_DYN,
    ),
    _c(
        "some heads put over half of their attention on the previous token",
        "4 heads",
        _surface("previous_over_half", len),
        1,
        **_SUR,
    ),
    _c(
        "some heads put over half of it on the next token",
        "5 heads",
        _surface("next_over_half", len),
        1,
        **_SUR,
    ),
    _c(
        "heads rarely look at the token itself",
        "low",
        _surface("most_self"),
        0.1,
        at_most=True,
        **_SUR,
    ),
    _c(
        "over half of the attention of the middle layers goes to [SEP]",
        "> 50%",
        _surface("most_separator"),
        0.5,
        **_SUR,
    ),
    _c(
        "[SEP] looks at [SEP]",
        "> 90%",
        _surface("most_separator_to_separator"),
        0.9,
        **_SUR,
    ),
    _c(
        "early layers look at [CLS]",
        "figure 2",
        _surface("most_first_in_lower_half"),
        0.2,
        **_SUR,
    ),
    _c(
        "late layers look at punctuation more than early ones",
        "figure 2",
        _surface("punctuation_last_minus_first"),
        0.02,
        **_SUR,
    ),
    _c(
        "heads of the first layer are broad",
        "near uniform",
        _surface("entropy_first_minus_least"),
        0.5,
        **_SUR,
    ),
    _c(
        "[CLS] looks broadly in the last layer",
        "3.89 nats",
        _surface("entropy_first_in_last_layer"),
        3.0,
        **_SUR,
    ),
    _c(
        "the loss hardly changes with attention to [SEP] in upper layers",
        "near 0 from layer 5",
        _noop(range(0)),
        0.5,
        at_most=True,
        source="roles/minilm-ewt roles/e5-ewt",
        command=ROLES,
        shown="[roles](roles.md), their figure 3",
        note="effect size, not p: half of what other tokens have",
    ),
    _c("det: one head finds it", "94 / 52", _relations("det", *ENCODERS), 10, **_REL),
    _c("dobj: one head finds it", "87 / 40", _relations("dobj", *ENCODERS), 10, **_REL),
    _c("pobj: one head finds it", "76 / 35", _relations("pobj", *ENCODERS), 10, **_REL),
    _c("poss: one head finds it", "81 / 48", _relations("poss", *ENCODERS), 10, **_REL),
    _c("nsubj: one head finds it", "59 / 46", _relations("nsubj", *ENCODERS), 10, **_REL),
    _c(
        "ccomp and mark are found too",
        "49 / 12, 51 / 15",
        lambda: [_relation(n, "mark", s) for n, s in ENCODERS],
        10,
        **_REL,
    ),
    _c(
        "no head does well overall",
        "34.5 / 26.3",
        lambda: [_relation(n, "all", s) for n, s in ENCODERS],
        15,
        at_most=True,
        **_REL,
    ),
    _c(
        "a head finds antecedents better than head match",
        "65 / 52",
        _antecedents("all", "head match"),
        5,
        **_ANT,
        note="the training documents of OntoGUM; head chosen on one half, judged on the other",
    ),
    _c(
        "it finds those that no match of strings finds",
        "implied",
        _antecedents("no antecedent with the same head word", "nearest"),
        5,
        **_ANT,
        note="mentions none of whose antecedents has the same head word, against the nearest mention; head match finds none of them",
    ),
    _c(
        "attention with words beats attention alone",
        "77 against 61",
        _probe("attention", "words"),
        5,
        **_PRO,
    ),
    _c(
        "attention alone beats distances with words",
        "61 against 58",
        _probe("distances", "attention"),
        0,
        **_PRO,
    ),
    _c(
        "the structural probe of hidden states beats attention with words",
        "80 (UUAS) against 77 (UAS)",
        _structural,
        0,
        **_PRO,
        note="here by one measure for both, arcs without direction; three seeds, the interval holds seeds and sentences",
    ),
    _c(
        "random weights with words beat right-branching",
        "30 against 26",
        _probe("right-branching", "random-init"),
        0,
        **_PRO,
    ),
    _c(
        "heads of one layer are alike",
        "figure 6",
        _alike,
        1.5,
        source="together-families",
        command=TOGETHER + " families",
        shown="[together](together.md)",
        note="how many times as often as by chance the nearest head is of the same layer; layers are no clusters",
    ),
    _c(
        "cased and uncased models look alike",
        "same pattern",
        None,
        note="no cased model is at hand",
    ),
    _k(
        "a network tells five patterns",
        "F1 0.86",
        lambda: [
            Ours(
                "unseen heads",
                *[
                    load("together-patterns")["network"]["test"]["macro f1"][k]
                    for k in ("value", "low", "high")
                ],
            )
        ],
        0.8,
        source="together-patterns",
        command="python -m experiments.patterns",
        shown="[together](together.md)",
        note="theirs is on the annotated maps themselves; a second reader has "
        f"{load('together-patterns')['two readers']['test']['macro f1']['value']:.2f} against the first",
    ),
    _k(
        "many maps are vertical",
        "30%",
        lambda: _patterns("vertical"),
        30,
        source="together-patterns",
        command="python -m experiments.patterns",
    ),
    _k(
        "a third to two thirds of maps are heterogeneous",
        "32% to 61%",
        lambda: _patterns("heterogeneous"),
        32,
        source="together-patterns",
        command="python -m experiments.patterns",
    ),
    _k(
        "two heads stand out for frame elements",
        "2 above the 99th percentile",
        lambda: [Ours("MiniLM", len({r["head"] for r in _roles("minilm-ewt")["arguments"]}))],
        1,
        source="roles/minilm-ewt",
        command=ROLES,
    ),
    _k(
        "fine-tuning changes the last two layers most",
        "figure 5",
        _last_two,
        -0.05,
        at_most=True,
        source="together-compare",
        command=TOGETHER,
        shown="[together](together.md)",
    ),
    _k(
        "pre-training is needed",
        "+35.9 points",
        _scratch,
        5,
        source="together-control glue",
        command="python -m experiments.glue",
    ),
    _k(
        "disabling some single head helps",
        "+0.1 to +1.2 points",
        lambda: _surely_better("head"),
        math.nan,
        source="together-disabling",
        command="python -m experiments.disabling",
        note="heads surely better off uniform, chosen on one half and judged on the other; gains as small as the paper's cannot be seen on dev sets of 277 to 1,043 examples",
    ),
    _k(
        "disabling a random head helps MRPC and RTE on average",
        "> 0",
        lambda: [one for one in _disabled("head") if one.model in ("mrpc", "rte")],
        0.1,
        source="together-disabling",
        command="python -m experiments.disabling",
    ),
    _k(
        "disabling a layer helps",
        "RTE +3.2 points",
        lambda: _surely_better("layer"),
        math.nan,
        source="together-disabling",
        command="python -m experiments.disabling",
    ),
    _k(
        "SST-2 looks at [SEP] more than other tasks",
        "figure 6",
        _most_separator,
        0,
        **_FEA,
        note="attention to [SEP] from all tokens, mean of all heads, fine-tuned: SST-2 minus the task that has most besides",
    ),
    _k(
        "the same heads are vertical across tasks",
        "section 4.1",
        lambda: [
            Ours(pair, *told)
            for pair, told in load("together-patterns")["same vertical heads"].items()
        ],
        0.5,
        source="together-patterns",
        command="python -m experiments.patterns",
        shown="[together](together.md#patterns-of-maps)",
        note="rank agreement over heads of the share of vertical maps, fine-tuned models",
    ),
    _k(
        "no task needs attention to one linguistic feature",
        "figure 7",
        _most_feature,
        0.05,
        at_most=True,
        **_FEA,
        note="how much more a word of the kind gets than another word in such a place, mean of all heads, fine-tuned; the kind with most",
    ),
)
