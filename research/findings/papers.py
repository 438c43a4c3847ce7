"""What we measure for each finding of Voita, Michel, Clark and Kovaleva et al. (2019).

The claims and their bounds stand in `frozen/*.toml`; here is the statistic that answers each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import readers as read
from .rule import Finding, Ours, findings, load

#: The statistic of each finding, by its id; None: not measured.
STATISTICS: dict[str, Callable[[], Sequence[Ours]] | None] = {
    "voita-01": read.rules("confidence"),
    "voita-02": read.rules("ablation"),
    "voita-03": lambda: read.encoder_heads("positional"),
    "voita-04": read.relations("nsubj", *read.TRANSLATORS),
    "voita-05": read.relations("obj", *read.TRANSLATORS),
    "voita-06": read.relations("amod", *read.TRANSLATORS),
    "voita-07": read.relations("advmod", *read.TRANSLATORS),
    "voita-08": read.rarest,
    "voita-09": read.rare_relevance,
    "voita-10": read.ten_heads,
    "voita-11": lambda: read.curve("enc-4"),
    "voita-12": read.survivors,
    "voita-13": read.function("any function", ("gradient", "ablation", "contribution")),
    "voita-14": read.function("any function", ("removal_step",)),
    "voita-15": read.function("any rest", ("gradient", "ablation", "contribution")),
    "voita-16": read.function("any rest", ("removal_step",)),
    "voita-17": read.kept_by_gates,
    "voita-18": lambda: read.left("cross", "enc"),
    "voita-19": lambda: read.left("dec", "enc"),
    "voita-20": lambda: read.low_or_high("dec", 1),
    "voita-21": lambda: read.low_or_high("cross", -1),
    "voita-22": lambda: [
        read.above("the same 48 heads, converged on as much text", "all-48", read.CONVERGED),
        read.above(
            "48 heads pruned with 12,000 steps, against these", "all-48-long", read.CONVERGED
        ),
    ],
    "voita-23": lambda: [
        read.above("pruned from the trained model", "all-48-long", "scratch-gates"),
        read.above(
            "48 fixed heads from scratch, as many steps", "scratch-48-long", "scratch-gates"
        ),
    ],
    "voita-24": lambda: [read.second("enc-10-s0", 10), read.second("enc-4", 4)],
    "voita-25": read.confident,
    "michel-01": lambda: [
        read.masked("tatoeba", "translator, BLEU"),
        read.masked("tatoeba", "translator, loss", "loss"),
        *(read.masked(task, f"MiniLM {title}") for task, title in read.GLUE),
    ],
    "michel-02": lambda: [read.better_gone(*one) for one in read.GLUE],
    "michel-03": lambda: [read.one_head(*one) for one in read.GLUE],
    "michel-04": lambda: [
        read.one_head("tatoeba", "translator", ("enc", "dec", "cross")),
        *(read.one_head("tatoeba", f"translator {s}", (s,)) for s in ("enc", "dec", "cross")),
    ],
    "michel-05": read.last_cross,
    "michel-06": lambda: [
        read.agreement("ablation on tatoeba", "ablation on lohelp", "all", "pearson")
    ],
    "michel-07": lambda: [read.free(*case) for case in read.CLASSIFIERS],
    "michel-08": lambda: [row for case in read.CLASSIFIERS for row in read.within(*case)],
    "michel-09": lambda: [read.ahead(*case) for case in read.CLASSIFIERS],
    "michel-10": lambda: read.by_stack("cross"),
    "michel-11": lambda: read.by_stack("enc"),
    "michel-12": read.speed,
    "michel-13": lambda: read.dynamics(-1, 0.4),
    "michel-14": lambda: read.dynamics(read.first_growth(), 0.1),
    "clark-01": read.surface("previous_over_half", len),
    "clark-02": read.surface("next_over_half", len),
    "clark-03": read.surface("most_self"),
    "clark-04": read.surface("most_separator"),
    "clark-05": read.surface("most_separator_to_separator"),
    "clark-06": read.surface("most_first_in_lower_half"),
    "clark-07": read.surface("punctuation_last_minus_first"),
    "clark-08": read.surface("entropy_first_minus_least"),
    "clark-09": read.surface("entropy_first_in_last_layer"),
    "clark-10": read.noop(),
    "clark-11": read.relations("det", *read.ENCODERS),
    "clark-12": read.relations("dobj", *read.ENCODERS),
    "clark-13": read.relations("pobj", *read.ENCODERS),
    "clark-14": read.relations("poss", *read.ENCODERS),
    "clark-15": read.relations("nsubj", *read.ENCODERS),
    "clark-16": lambda: [
        read.above_offset(f"{title}, {relation}", relation, survey)
        for relation in ("ccomp", "mark")
        for title, survey in read.ENCODERS
    ],
    "clark-17": lambda: [read.above_offset(n, "all", s) for n, s in read.ENCODERS],
    "clark-18": read.antecedents("all", "head match"),
    "clark-19": read.antecedents("no antecedent with the same head word", "nearest"),
    "clark-20": read.probe("attention", "words"),
    "clark-21": read.probe("distances", "attention"),
    "clark-22": read.structural,
    "clark-23": read.probe("right-branching", "random-init"),
    "clark-24": read.alike,
    "clark-25": read.rests,
    "clark-26": None,
    "clark-27": read.earlier,
    "kovaleva-01": lambda: [
        Ours(
            "unseen heads",
            *[
                load("together-patterns")["network"]["test"]["macro f1"][k]
                for k in ("value", "low", "high")
            ],
        )
    ],
    "kovaleva-02": lambda: read.patterns("vertical"),
    "kovaleva-03": lambda: read.patterns("heterogeneous"),
    "kovaleva-04": read.arguments,
    "kovaleva-05": read.last_two,
    "kovaleva-06": read.scratch,
    "kovaleva-07": lambda: read.surely_better("head"),
    "kovaleva-08": lambda: read.disabled("head", ("mrpc", "rte")),
    "kovaleva-09": lambda: read.surely_better("layer"),
    "kovaleva-10": read.most_separator,
    "kovaleva-11": lambda: [
        Ours(pair, *told) for pair, told in load("together-patterns")["same vertical heads"].items()
    ],
    "kovaleva-12": read.most_feature,
    "michel-16": read.stacks_apart,
}

#: Notes that hold a figure.
NOTES: dict[str, Callable[[], str]] = {
    "voita-03": lambda: (
        "encoder heads alone; on Tatoeba's 2,500 sentences the translator's heads of the sample have at their offset: "
        + read.positional_on_tatoeba()
    ),
    "michel-04": lambda: (
        "about 0.3 BLEU here; the paper calls 0.32 BLEU no loss (table 5). With twice the margin: "
        + str(read.one_head("tatoeba", "translator", ("enc", "dec", "cross"), 2))
    ),
    "kovaleva-01": lambda: (
        "theirs is on the annotated maps themselves; a second reader has "
        f"{load('together-patterns')['two readers']['test']['macro f1']['value']:.2f} against the first"
    ),
}


FINDINGS: tuple[Finding, ...] = findings(STATISTICS, NOTES)
