"""The findings of Voita, Michel, Clark and Kovaleva et al. (2019), each with where ours lies."""

from __future__ import annotations

import math
from typing import Any

from . import readers as read
from .rule import Finding, Ours, load

VOITA, MICHEL = "Voita et al., ACL 2019", "Michel et al., NeurIPS 2019"
CLARK, KOVALEVA = "Clark et al., BlackBoxNLP 2019", "Kovaleva et al., EMNLP 2019"

ROLES, IMPORTANCE = "python -m research.roles", "python -m research.importance"
GATES, TOGETHER = "python -m research.gates", "python -m research.together"
VERDICTS, FUNCTION = "python -m research.verdicts", "python -m research.verdicts.function"


def _v(claim: str, published: str, ours: Any, bound: float = math.nan, **more: Any) -> Finding:
    return Finding(VOITA, claim, published, ours, bound, **more)


def _m(claim: str, published: str, ours: Any, bound: float = math.nan, **more: Any) -> Finding:
    return Finding(MICHEL, claim, published, ours, bound, **more)


def _c(claim: str, published: str, ours: Any, bound: float = math.nan, **more: Any) -> Finding:
    return Finding(CLARK, claim, published, ours, bound, **more)


def _k(claim: str, published: str, ours: Any, bound: float = math.nan, **more: Any) -> Finding:
    return Finding(KOVALEVA, claim, published, ours, bound, **more)


_IMP = {"source": "importance", "command": IMPORTANCE}
_CLA = {
    "source": "pruning-classifiers",
    "command": "python -m research.pruning classifiers",
    "shown": "[pruning](pruning.md#classifiers)",
}
_FUN = {
    "source": "function",
    "command": FUNCTION,
    "shown": "[decision 0012](../decisions/0012-verdicts.md)",
}
_CUR = {
    "source": "pruning-gates",
    "command": GATES,
    "shown": "[pruning](pruning.md), heads left of every layer and stack",
}
_PAT = {
    "source": "together-patterns",
    "command": "python -m research.patterns",
    "shown": "[together](together.md#patterns-of-maps)",
}
_DIS = {
    "source": "together-disabling",
    "command": "python -m research.disabling",
    "shown": "[together](together.md#disabling-heads-and-layers)",
}
_SYN = {
    "source": "roles/de-tatoeba roles/ru-tatoeba",
    "command": ROLES,
    "shown": "[roles](roles.md), Voita's Table 1",
}
_REL = {
    "source": "roles/minilm-stanford roles/e5-stanford",
    "command": ROLES,
    "shown": "[roles](roles.md), Clark's Table 1",
}
_ANT = {
    "source": "antecedents",
    "command": ROLES + ".antecedents",
    "shown": "[roles](roles.md#coreference)",
}
_SUR = {
    "source": "surface",
    "command": "python -m research.surface",
    "shown": "[surface](surface.md)",
}
_DYN = {
    "source": "translator",
    "command": "python -m research.translator.bundled",
    "shown": "[translator](translator.md#how-heads-grow)",
}
_SCR = {
    "source": "pruning-scratch",
    "command": GATES + ".summary --against",
    "shown": "[pruning](pruning.md#from-scratch-longer-and-with-gates-from-the-first-step)",
}
_STA = {
    "source": "pruning-by-stack",
    "command": "python -m research.stacks",
    "shown": "[pruning](pruning.md#one-stack-alone)",
}
_FEA = {
    "source": "together-features",
    "command": "python -m research.features",
    "shown": "[together](together.md#what-tasks-make-heads-look-at)",
}
_PRO = {
    "source": "together-probes",
    "command": "python -m research.probes",
    "shown": "[together](together.md), their Table 3",
}

FINDINGS: tuple[Finding, ...] = (
    _v(
        "the most relevant encoder heads are the most confident ones",
        "figures 1, 2",
        read.rules("confidence"),
        0.3,
        source="relevance-rules",
        command="python -m research.rules",
        shown="[importance](importance.md)",
        note="It depends on the rule of relevance: under ours alone it is seen.",
    ),
    _v(
        "the heads that are relevant are those that matter (ablation)",
        "implied",
        read.rules("ablation"),
        0.3,
        source="relevance-rules",
        command="python -m research.rules",
        shown="[importance](importance.md)",
    ),
    _v(
        "some encoder heads are positional (90% of tokens at one offset)",
        "several",
        lambda: read.encoder_heads("positional"),
        1,
        source="verdicts roles/de-tatoeba roles/ru-tatoeba",
        command=f"{VERDICTS}`, `{ROLES}",
        shown="[roles](roles.md), positional heads",
        note="encoder heads alone; on Tatoeba's 2,500 sentences the translator's heads of the sample have at their offset: "
        + read.positional_on_tatoeba(),
    ),
    _v(
        "nsubj: a head lies 10 points above the offset",
        "+10 to +32",
        read.relations("nsubj", *read.TRANSLATORS),
        10,
        **_SYN,
    ),
    _v(
        "dobj: a head lies 10 points above the offset",
        "+15 to +38",
        read.relations("obj", *read.TRANSLATORS),
        10,
        **_SYN,
    ),
    _v(
        "amod: a head lies above the offset",
        "+1 to +10",
        read.relations("amod", *read.TRANSLATORS),
        1,
        **_SYN,
    ),
    _v(
        "advmod: a head lies above the offset",
        "+2 to +9",
        read.relations("advmod", *read.TRANSLATORS),
        2,
        **_SYN,
    ),
    _v(
        "a head of the first layer points to one of the two rarest tokens",
        "> 50% (WMT), 83%",
        read.rarest,
        50,
        source="verdicts roles/de-tatoeba roles/ru-tatoeba",
        command=f"{VERDICTS}`, `{ROLES}",
        shown="[roles](roles.md), rare-word heads",
        note="counts of the training text; counts of the text under test made one appear",
    ),
    _v(
        "the rare-word head is the most relevant one of its layer, and unsure",
        "figure 1",
        read.rare_relevance,
        0,
        at_most=True,
        source="rare-head",
        command="python -m research.rules.rare",
        shown="[roles](roles.md#positional-and-rare-word-heads)",
        note="how many heads of its layer are more relevant, 16 sentences; the nearest head to one, half of its pointers on rare tokens. Unsure it is: the least confident of 48",
    ),
    _v(
        "48 to 10 encoder heads cost at most 0.15 BLEU",
        "-0.15 (WMT)",
        read.ten_heads,
        -0.15,
        source="pruning-gates pruning-frozen pruning-russian",
        command=GATES,
        shown="[pruning](pruning.md)",
    ),
    _v(
        "48 to 4 encoder heads cost at most 0.25 BLEU",
        "-0.25 (OpenSubtitles)",
        lambda: read.curve("enc-4"),
        -0.25,
        source="pruning-gates pruning-frozen",
        command=GATES,
        shown="[pruning](pruning.md)",
    ),
    _v(
        "17 heads keep every function",
        "figure 8",
        read.survivors,
        2,
        source="pruning-frozen",
        command="python -m research.gates.frozen",
        shown="[pruning](pruning.md)",
    ),
    _v(
        "heads with a function matter more than others of their layer",
        "conclusion",
        read.function("any function", ("gradient", "ablation", "relevance")),
        0.147,
        **_FUN,
        note="Cliff's delta; 0.147 is the least that is called small",
    ),
    _v(
        "heads with a function go later in the order of the gradient",
        "not asked",
        read.function("any function", ("removal_step",)),
        0.147,
        **_FUN,
        note="heads go by their gradient scores, so this asks the gradient again; the paper's claim is about learned gates, below",
    ),
    _v(
        "heads that only rest matter less",
        "implied",
        read.function("any rest", ("gradient", "ablation", "relevance")),
        -0.147,
        at_most=True,
        **_FUN,
    ),
    _v(
        "heads that only rest go earlier in the order of the gradient",
        "not asked",
        read.function("any rest", ("removal_step",)),
        -0.147,
        at_most=True,
        **_FUN,
        note="asks the gradient again, as two rows above",
    ),
    _v(
        "learned gates hold heads with a function longer",
        "figure 8",
        read.kept_by_gates,
        0.147,
        source="research/gates/results/12000-steps research/gates/results/2800-steps-frozen roles/de-tatoeba verdicts",
        command="python -m research.findings",
        shown="[pruning](pruning.md), functions of the heads that are left",
        note="Cliff's delta within layers: how many runs of a setting keep a head, encoder heads that had a function before pruning against others; p is shown and decides nothing",
    ),
    _v(
        "cross-attention is held longest",
        "figure 9",
        lambda: read.left("cross", "enc"),
        1,
        **_CUR,
        note="heads of 48 left minus the encoder's; one run each, 4,500 steps",
    ),
    _v(
        "the encoder's self-attention goes first",
        "figure 9",
        lambda: read.left("dec", "enc"),
        1,
        **_CUR,
        note="the decoder's heads left minus the encoder's; one run each, 4,500 steps",
    ),
    _v(
        "the decoder's self-attention survives in low layers",
        "figure 10",
        lambda: read.low_or_high("dec", 1),
        1,
        **_CUR,
        note="heads left in the lowest two layers minus those in the highest two, pairs as in the paper",
    ),
    _v(
        "cross-attention survives in high layers",
        "figure 10",
        lambda: read.low_or_high("cross", -1),
        1,
        **_CUR,
        note="heads left in the highest two layers minus those in the lowest two",
    ),
    _v(
        "a pruned model beats the same heads trained from scratch",
        "+0.15 to +0.5 BLEU",
        lambda: [
            read.above("the same 48 heads, converged on as much text", "all-48", read.CONVERGED),
            read.above(
                "48 heads pruned with 12,000 steps, against these", "all-48-long", read.CONVERGED
            ),
        ],
        0.15,
        note="one seed; a lead below 0.7 could not have been seen. After 16,000 steps the lead was still 1.7: that was training",
        **_SCR,
    ),
    _v(
        "the regulariser from scratch does worse",
        "0.2 to 0.6 BLEU",
        lambda: [
            read.above("pruned from the trained model", "all-48-long", "scratch-gates"),
            read.above(
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
        lambda: [read.second("enc-10-s0", 10), read.second("enc-4", 4)],
        -0.25,
        note="software help, 24,081 pairs: a weak translator (11 BLEU, one seed), which has little to lose",
        source="pruning-lohelp",
        command=GATES + ".frozen --domain lohelp",
        shown="[pruning](pruning.md#a-second-domain)",
    ),
    _v(
        "positional heads are confident",
        "> 0.8",
        read.confident,
        0,
        at_most=True,
        source="roles/de-tatoeba roles/minilm-ewt roles/e5-ewt verdicts",
        command=ROLES,
        shown="[roles](roles.md), positional heads",
        note="how many positional encoder heads have a confidence of 0.8 or less; the translator's are those of the sample, with their confidence on Tatoeba, where they miss the 90% by a point. The en-ru translator has none",
    ),
    _m(
        "most heads can go one at a time without a loss",
        "88 of 96",
        lambda: [
            read.masked("tatoeba", "translator, BLEU"),
            read.masked("tatoeba", "translator, loss", "loss"),
            *(read.masked(task, f"MiniLM {title}") for task, title in read.GLUE),
        ],
        90,
        margin="% of heads that cost less than 0.3 BLEU, 0.01 nats a token or 1 point",
        **_IMP,
        shown="[importance](importance.md), one head masked",
        note="the paper's losses from 0.31 BLEU on count as losses, 0.01 nats are about as much here. Shares by the figure alone: without intervals of single heads no head is surely below the margin, nor above",
    ),
    _m(
        "some heads are better gone",
        "4 of 96",
        lambda: [read.better_gone(*one) for one in read.GLUE],
        1,
        **_IMP,
        shown="[importance](importance.md), one head masked",
        note="heads whose loss surely falls (95%, after Holm over all heads); by accuracy there is none",
    ),
    _m(
        "one head is enough in most layers of BERT",
        "12 of 12",
        lambda: [read.one_head(*one) for one in read.GLUE],
        80,
        margin="% of layers that cost less than 1 point",
        **_IMP,
        shown="[importance](importance.md), all heads of a layer but one",
        note="the largest loss that the paper calls none is 0.96 points; half of 277 to 872 examples judges. CoLA: hundredths of Matthews",
    ),
    _m(
        "one head is enough in half of the layers of a translator",
        "9 of 18",
        lambda: [
            read.one_head("tatoeba", "translator", ("enc", "dec", "cross")),
            *(read.one_head("tatoeba", f"translator {s}", (s,)) for s in ("enc", "dec", "cross")),
        ],
        50,
        margin="% of layers that cost less than 0.01 nats a token",
        **_IMP,
        shown="[importance](importance.md), all heads of a layer but one",
        note="about 0.3 BLEU here; the paper calls 0.32 BLEU no loss (table 5). With twice the margin the data cannot tell: "
        + str(read.one_head("tatoeba", "translator", ("enc", "dec", "cross"), 2)),
    ),
    _m(
        "the last cross-attention layer needs its heads most",
        "-13.6 BLEU",
        read.last_cross,
        0.0,
        **_IMP,
        shown="[importance](importance.md), all heads of a layer but one",
        note="its interval against the interval of the next layer, end against end",
    ),
    _m(
        "the same heads matter on other data",
        "r 0.56 and 0.68",
        lambda: [read.agreement("ablation on tatoeba", "ablation on lohelp", "all", "pearson")],
        0.4,
        **_IMP,
        shown="[importance](importance.md), scores and data sets",
    ),
    _m(
        "40% of BERT's heads can go (MNLI), 60% on SST-2",
        "40% to 60%",
        lambda: [read.free(*case) for case in read.CLASSIFIERS],
        40,
        margin="% of heads for less than 1 point",
        **_CLA,
        note="gradient by layer, as the paper has it; from heads that surely cost less to the first that surely cost more, on the grid of 60, 48, 36, 28, 20, 12, 8 and 4 of 72 heads left",
    ),
    _m(
        "a sixth of the heads can surely go (non-inferiority)",
        "not tested",
        lambda: [row for case in read.CLASSIFIERS for row in read.within(*case)],
        12,
        margin="heads for less than 1 point",
        **_CLA,
        note="gates and gradient on the same grid; its first step, 12 of 72 heads, is the bound",
    ),
    _m(
        "gradient scores order heads better than ablation",
        "figure 3",
        lambda: [read.ahead(*case) for case in read.CLASSIFIERS],
        1,
        source="pruning-classifiers pruning-paired",
        command="python -m research.pruning classifiers`, `python -m research.pruning.paired",
        shown="[pruning](pruning.md#classifiers)",
        note="accuracy by the paper's order minus that by ablation, mean over the same grid; at worst: without examples, the widest interval there can be. Bound: a point, as above. Translator: yes until few heads are left",
    ),
    _m(
        "cross-attention collapses when 60% of it goes, alone",
        "below 10 BLEU",
        lambda: read.by_stack("cross"),
        -10,
        at_most=True,
        **_STA,
    ),
    _m(
        "self-attention of the encoder can lose 60% and keep most",
        "about -6 BLEU",
        lambda: read.by_stack("enc"),
        -10,
        **_STA,
    ),
    _m(
        "half of the heads gone is 17.5% faster",
        "+17.5%",
        read.speed,
        14,
        source="research/benchmarks/results/pruned",
        shown="[pruning](pruning.md#what-it-is-worth-in-time)",
        command="python -m research.benchmarks.pruned",
    ),
    _m(
        "late in training 40% of heads can go for 10 to 15%",
        "85 to 90% kept",
        lambda: read.dynamics(-1, 0.4),
        85,
        note="500 sentences",
        **_DYN,
    ),
    _m(
        "early in training no head can go",
        "linear fall",
        lambda: read.dynamics(read.first_growth(), 0.1),
        90,
        at_most=True,
        note="a tenth of the heads shut, 500 sentences",
        **_DYN,
    ),
    _c(
        "some heads put over half of their attention on the previous token",
        "4 heads",
        read.surface("previous_over_half", len),
        1,
        **_SUR,
    ),
    _c(
        "some heads put over half of it on the next token",
        "5 heads",
        read.surface("next_over_half", len),
        1,
        **_SUR,
    ),
    _c(
        "heads rarely look at the token itself",
        "low",
        read.surface("most_self"),
        0.1,
        at_most=True,
        **_SUR,
    ),
    _c(
        "over half of the attention of the middle layers goes to [SEP]",
        "> 50%",
        read.surface("most_separator"),
        0.5,
        **_SUR,
    ),
    _c(
        "[SEP] looks at [SEP]",
        "> 90%",
        read.surface("most_separator_to_separator"),
        0.9,
        **_SUR,
    ),
    _c(
        "early layers look at [CLS]",
        "figure 2",
        read.surface("most_first_in_lower_half"),
        0.2,
        **_SUR,
    ),
    _c(
        "late layers look at punctuation more than early ones",
        "figure 2",
        read.surface("punctuation_last_minus_first"),
        0.02,
        **_SUR,
    ),
    _c(
        "heads of the first layer are broad",
        "near uniform",
        read.surface("entropy_first_minus_least"),
        0.5,
        **_SUR,
    ),
    _c(
        "[CLS] looks broadly in the last layer",
        "3.89 nats",
        read.surface("entropy_first_in_last_layer"),
        3.0,
        **_SUR,
    ),
    _c(
        "the loss hardly changes with attention to [SEP] in upper layers",
        "near 0 from layer 5",
        read.noop(),
        0.5,
        at_most=True,
        source="roles/minilm-ewt roles/e5-ewt",
        command=ROLES,
        shown="[roles](roles.md), their figure 3",
        note="effect size, not p: half of what other tokens have",
    ),
    _c("det: one head finds it", "94 / 52", read.relations("det", *read.ENCODERS), 10, **_REL),
    _c("dobj: one head finds it", "87 / 40", read.relations("dobj", *read.ENCODERS), 10, **_REL),
    _c("pobj: one head finds it", "76 / 35", read.relations("pobj", *read.ENCODERS), 10, **_REL),
    _c("poss: one head finds it", "81 / 48", read.relations("poss", *read.ENCODERS), 10, **_REL),
    _c("nsubj: one head finds it", "59 / 46", read.relations("nsubj", *read.ENCODERS), 10, **_REL),
    _c(
        "ccomp and mark are found too",
        "49 / 12, 51 / 15",
        lambda: [
            read.above_offset(f"{title}, {relation}", relation, survey)
            for relation in ("ccomp", "mark")
            for title, survey in read.ENCODERS
        ],
        10,
        **_REL,
    ),
    _c(
        "no head does well overall",
        "34.5 / 26.3",
        lambda: [read.above_offset(n, "all", s) for n, s in read.ENCODERS],
        15,
        at_most=True,
        **_REL,
    ),
    _c(
        "a head finds antecedents better than head match",
        "65 / 52",
        read.antecedents("all", "head match"),
        5,
        **_ANT,
        note="the training documents of OntoGUM; head chosen on one half, judged on the other",
    ),
    _c(
        "it finds those that no match of strings finds",
        "implied",
        read.antecedents("no antecedent with the same head word", "nearest"),
        5,
        **_ANT,
        note="mentions none of whose antecedents has the same head word, against the nearest mention; head match finds none of them",
    ),
    _c(
        "attention with words beats attention alone",
        "77 against 61",
        read.probe("attention", "words"),
        5,
        **_PRO,
    ),
    _c(
        "attention alone beats distances with words",
        "61 against 58",
        read.probe("distances", "attention"),
        0,
        **_PRO,
    ),
    _c(
        "the structural probe of hidden states beats attention with words",
        "80 (UUAS) against 77 (UAS)",
        read.structural,
        0,
        **_PRO,
        note="here by one measure for both, arcs without direction; three seeds, the interval holds seeds and sentences",
    ),
    _c(
        "random weights with words beat right-branching",
        "30 against 26",
        read.probe("right-branching", "random-init"),
        0,
        **_PRO,
    ),
    _c(
        "heads of one layer are alike",
        "figure 6",
        read.alike,
        1.5,
        source="together-families",
        command=TOGETHER + " families",
        shown="[together](together.md)",
        note="how many times as often as by chance the nearest head is of the same layer, interval over resampled heads; layers are no clusters",
    ),
    _c(
        "syntactic heads rest on [SEP] where their relation is not",
        "section 3.2",
        read.rests,
        0.05,
        source="roles/minilm-ewt roles/e5-ewt roles/de-tatoeba roles/ru-tatoeba",
        command=ROLES,
        shown="[roles](roles.md#the-separator-as-a-no-op)",
        note="attention to separators from words without the relation minus that from words that have it, interval over resampled heads; a twentieth of the attention is the bound. The translators' separator is the end of sentence",
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
        command="python -m research.patterns",
        shown="[together](together.md)",
        note="theirs is on the annotated maps themselves; a second reader has "
        f"{load('together-patterns')['two readers']['test']['macro f1']['value']:.2f} against the first",
    ),
    _k(
        "many maps are vertical",
        "30%",
        lambda: read.patterns("vertical"),
        30,
        **_PAT,
        note="fine-tuned models, as in the paper; Wilson's interval with the maps of a head as one",
    ),
    _k(
        "a third to two thirds of maps are heterogeneous",
        "32% to 61%",
        lambda: read.patterns("heterogeneous"),
        32,
        **_PAT,
        note="fine-tuned models; the same interval",
    ),
    _k(
        "two heads stand out for frame elements",
        "2 above the 99th percentile",
        read.arguments,
        1,
        source="roles/minilm-ewt roles/e5-ewt",
        command=ROLES,
        shown="[roles](roles.md), arguments",
        note="heads that have the role: predicates and arguments of PropBank; bound: there is one",
    ),
    _k(
        "fine-tuning changes the last two layers most",
        "figure 5",
        read.last_two,
        0,
        at_most=True,
        source="together-compare",
        command=TOGETHER,
        shown="[together](together.md#before-and-after-fine-tuning)",
        note="cosine of the less changed of the last two layers minus that of the most changed other one, intervals over texts end against end",
    ),
    _k(
        "pre-training is needed",
        "+35.9 points",
        read.scratch,
        5,
        source="together-control glue",
        command="python -m research.glue",
        shown="[together](together.md#from-random-weights-kovaleva-et-al-table-1)",
    ),
    _k(
        "disabling some single head helps",
        "+0.1 to +1.2 points",
        lambda: read.surely_better("head"),
        math.nan,
        **_DIS,
        note="heads surely better off uniform, chosen on one half and judged on the other; gains as small as the paper's cannot be seen on dev sets of 277 to 1,043 examples",
    ),
    _k(
        "disabling a random head helps MRPC and RTE on average",
        "> 0",
        lambda: read.disabled("head", ("mrpc", "rte")),
        0.1,
        **_DIS,
        note="attention made uniform; interval over resampled heads, on the same examples",
    ),
    _k(
        "disabling a layer helps",
        "RTE +3.2 points",
        lambda: read.surely_better("layer"),
        math.nan,
        **_DIS,
    ),
    _k(
        "SST-2 looks at [SEP] more than other tasks",
        "figure 6",
        read.most_separator,
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
        command="python -m research.patterns",
        shown="[together](together.md#patterns-of-maps)",
        note="rank agreement over heads of the share of vertical maps, fine-tuned models",
    ),
    _k(
        "no task needs attention to one linguistic feature",
        "figure 7",
        read.most_feature,
        0.05,
        at_most=True,
        **_FEA,
        note="how much more a word of the kind gets than another word in such a place, mean of all heads, fine-tuned; the kind with most",
    ),
)
