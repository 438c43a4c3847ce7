"""`headcount survey`: what every head looks at, over a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headcount as hc
from headcount.cli.inputs import CorpusArguments, read_annotated, with_sample, word_rows_option
from headcount.cli.options import Chat, Json, Model, RunArguments, check_same_model, loaded, names
from headcount.cli.printing import (
    bar,
    output,
    print_json,
    print_notes,
    print_rows,
    print_run,
    status,
)
from headcount.errors import UsageError, skipped_in_words
from headcount.models import LoadOptions
from headcount.records import EngineOptions, WorkOptions, option

if TYPE_CHECKING:
    from headcount.records import Stage
    from headcount.rooms.families import Divergence, Families
    from headcount.surveys.roles import Role
    from headcount.text import Corpus


# --- Its options --------------------------------------------------------------------------------

_ROLES = "What heads do (roles)"
_role = partial(option, panel=_ROLES)


@dataclass(frozen=True)
class SurveyArguments:
    """What is measured of the text."""

    columns: str | None = option(None, "NAMES", "Columns to measure and show, separated by commas.")
    all: bool = option(False, None, "Print a line for every head, not for the telling ones alone.")
    long: str = option(
        "window",
        "HOW",
        "What to do with longer sentences: window, truncate or error.",
        choices=("window", "truncate", "error"),
    )
    rows: int | None = option(
        None,
        "N",
        "Read so many queries of each longer text, drawn at random, in place of all, e.g. 2048.",
        least=2,
    )
    explain: bool = option(
        False, None, "Say how attention was read: as maps, in tiles, or in a fused kernel."
    )
    confidence_without: str | None = option(
        None,
        "WHAT",
        "Tokens that confidence leaves out, as query and as key: special ([CLS], [SEP], starts and "
        "ends; the default), separator ([SEP] and ends alone, as --convention paper) or nothing.",
        choices=("special", "separator", "nothing"),
    )
    own_output: bool = option(
        False, None, "Translate first, and survey the model's own translations."
    )
    offset_mass: bool = option(False, None, "Also keep the whole distribution of mass by offset.")
    families: bool = option(
        False,
        None,
        "Also measure how unlike every two heads are: nearest heads, clusters, a map (pairs.npz). "
        "Keeps the maps of one batch of all layers in memory.",
    )
    patterns: bool = option(
        False,
        None,
        "Also name the pattern of every map (vertical, diagonal, both, block, heterogeneous).",
    )


@dataclass(frozen=True)
class RoleArguments:
    """What heads are judged by."""

    treebank: str | None = _role(
        None,
        "FILE",
        "Sentences with trees, .conllu or .conll: which heads follow which relation. Serves as the "
        "text where no other is given; `sample` for the bundled one.",
    )
    coref: str | None = _role(
        None,
        "FILE",
        "Coreference: .jsonl with sents and clusters, .conllu with Entity=, or GAP's .tsv; "
        "`sample` for the bundled one.",
    )
    arguments: str | None = _role(
        None, "FILE", "Predicates and their arguments: .jsonl with tokens and preds."
    )
    parser: str | None = _role(
        None, "NAME", "Make a treebank of the text: a .udpipe file, or an installed spaCy pipeline."
    )
    roles: bool = _role(False, None, "Judge heads also without any of the files above.")
    control: str | None = _role(
        None,
        "KIND",
        "Do the same with a twin of random weights, and put it next to every role: random-init, or "
        "random-but-embeddings.",
        choices=("random-init", "random-but-embeddings"),
    )
    twins: int = _role(1, "N", "How many twins --control takes the mean of.", least=1)
    nulls: bool = _role(
        False,
        None,
        "Measure every rung of the ladder of nulls, for every head and role, with a random twin "
        "as sharp as the model; else each head climbs as far as it gets.",
    )
    word_rows: str | None = word_rows_option(_ROLES)
    relations: str | None = _role(
        None, "NAMES", "Relations to test, separated by commas; by default all that occur."
    )
    best_heads: bool = _role(
        False,
        None,
        "Print the best head of each relation (Clark et al.'s Table 1): its accuracy on sentences "
        "that did not choose it, beside the best fixed offset.",
    )
    table_format: str = _role(
        "text",
        "HOW",
        "How --best-heads is written: text, markdown or latex.",
        choices=("text", "markdown", "latex"),
    )
    word_frequencies: str | None = _role(
        None,
        "WHOSE",
        "How rare a token is: by default as the model's training text says where it is known, else "
        "as the text itself, by which no role is judged; wordfreq or wordfreq:de, a file with a "
        "word, a tab and its count on each line, or tokens:FILE.",
    )


# --- The verb -----------------------------------------------------------------------------------


def survey_command(
    model: Model,
    corpus: CorpusArguments,
    target: RunArguments,
    asked: SurveyArguments,
    judge: RoleArguments,
    work: WorkOptions,
    engine: EngineOptions,
    load: LoadOptions,
    chat: Chat = False,
    json: Json = False,
) -> None:
    """Measure where every head of MODEL looks, over a corpus, and judge what it does there.

    [dim]headcount survey minilm --text sample[/dim]
    [dim]headcount survey minilm --treebank sample --control random-init[/dim]
    [dim]headcount survey ./my-model --text sentences.txt -o run/[/dim]
    [dim]cat news.txt | headcount survey bert-base-uncased --text - --json[/dim]
    """
    columns, stacks, where = names(asked.columns), corpus.stack_names(), engine.made()
    _check_best_heads(judge, json)
    with status("Reading the corpus"):
        from headcount.surveys import frequencies_of

        files = {name: getattr(judge, name) for name in ("treebank", "coref", "arguments")}
        annotated = read_annotated(files, work)
        text = _text(corpus, judge.parser, annotated, work)
        frequencies = frequencies_of(judge.word_frequencies)
        _check_columns(columns, work.convention, asked.confidence_without)
    with _opened(target.out) as run:
        stage = None if run is None else run.stage("survey")
        subject = loaded(model, load)
        if run is not None and not target.replace:
            _check_run(run, subject, stacks)
        elif run is not None:
            run.drop_shards("survey")
        annotated = with_sample(annotated, subject, work)
        if judge.parser is not None:
            annotated["treebank"] = text
        if asked.own_output or _lacks_translations(subject, text, annotated, stacks):
            text, annotated = _translated(subject, text, annotated, work.examples)
        from headcount.rooms.families import Divergence

        divergence = Divergence(work.convention) if asked.families else None
        how: dict[str, Any] = {"long": asked.long, "word_rows": judge.word_rows, "rows": asked.rows}
        how["confidence_without"] = asked.confidence_without
        table = hc.survey(
            subject,
            text,
            **annotated,
            roles=judge.roles
            or ([hc.roles.Syntactic()] if judge.best_heads and target.out is None else None),
            control=judge.control,
            control_seeds=range(judge.twins),
            nulls=judge.nulls or None,
            relations=names(judge.relations),
            frequencies=frequencies,
            columns=columns,
            stacks=stacks,
            max_length=corpus.max_length,
            chat=chat,
            offset_mass=asked.offset_mass,
            patterns=asked.patterns,
            tallies=[] if divergence is None else [divergence],
            engine=where,
            journal=None if run is None else run.shards("survey"),
            telling=bar,
            **how,
            **vars(work),
        )
        other_texts = [] if stage is None else _write(stage, table, target.replace)
        families = None
        if divergence is not None:
            families = _write_families(run, subject, divergence, table, work.seed)
        if run is not None:
            run.drop_shards("survey")
    if json:
        best = _best_heads_json(table) if judge.best_heads else {}
        more = {} if families is None else _families_json(families)
        # The table, and the verdicts where heads were judged.
        from headcount.records import to_strict

        found = table.to_dict()
        if "roles" in table.details:
            found["roles"] = to_strict(table.details["roles"].to_dict("records"))
        print_json(found | best | more)
        return
    if judge.best_heads:
        _print_best_heads(table, judge.table_format)
        if judge.table_format == "text":  # a table for a paper is all that its file should hold
            print_run(target.out)
        return
    notes = [*other_texts, *(_paths_in_words(table) if asked.explain else [])]
    _print_survey(table, subject, columns, stacks, notes, every=asked.all)
    if families is not None:
        _print_families(families)
    print_run(target.out)
    if target.out is None and "roles" in table.details:
        output().print("-o DIR keeps every verdict and figure; --json prints them.", style="dim")


def _check_best_heads(judge: RoleArguments, json: bool) -> None:
    """Refuse, before the work, a table that no tree could fill, or a format of none."""
    if judge.best_heads and judge.treebank is None and judge.parser is None:
        raise UsageError(
            "--best-heads is of relations, and there are no trees; give --treebank FILE (`sample` "
            "for the bundled one), or --text FILE --parser NAME."
        )
    if judge.table_format != "text" and (json or not judge.best_heads):
        raise UsageError(
            f"--table-format {judge.table_format} is for the table of --best-heads, without "
            "--json; of a run's tables: headcount ls RUN --table relations --format latex."
        )


def _text(
    corpus: CorpusArguments, parser: str | None, annotated: dict[str, Any], work: WorkOptions
) -> Corpus | None:
    """The text that was named, parsed where a parser was; none where a treebank stands in."""
    if not corpus.given and any(annotated.values()):
        return None
    text = corpus.read(work)
    if parser is None:
        return text
    if annotated["treebank"] is not None:
        raise UsageError(
            "Both --treebank and --parser were given; a parser makes a treebank of the text, so "
            "leave one of them out."
        )
    from headcount.text import read_corpus

    return read_corpus(text, parser=parser)


def _check_columns(columns: list[str] | None, convention: str, without: str | None) -> None:
    """Refuse a column that is not known before a model is loaded for it."""
    from headcount.rooms.patterns import PATTERN, PATTERN_COLUMNS
    from headcount.surveys import chosen_tallies

    if columns is not None and not columns:
        raise UsageError("--columns names no column; name some, e.g. --columns self,next.")
    patterns = {PATTERN.name, *(column.name for column in PATTERN_COLUMNS)}
    others = None if columns is None else [name for name in columns if name not in patterns]
    chosen_tallies(others, convention, without)


def _lacks_translations(
    subject: hc.Subject,
    corpus: Corpus | None,
    annotated: dict[str, Any],
    stacks: Sequence[str] | None,
) -> bool:
    """Whether a translator's decoder would have nothing to read: it then reads its own output."""
    sources = annotated["treebank"] if corpus is None else corpus
    asked = subject.anatomy.stacks if stacks is None else stacks
    translates = "cross" in subject.anatomy.stacks and subject.inner.can_generate()
    wanted = translates and any(stack != "enc" for stack in asked)
    return wanted and sources is not None and not sources.paired


def _translated(
    subject: hc.Subject, corpus: Corpus | None, annotated: dict[str, Any], batch_size: int
) -> tuple[Corpus | None, dict[str, Any]]:
    """Each source with the model's translation, in the text or in the treebank in its place."""
    from headcount.tasks import own_output
    from headcount.text import Corpus, read_corpus

    treebank = annotated["treebank"]
    sources = treebank if corpus is None else corpus
    if not isinstance(sources, Corpus):
        raise UsageError("--own-output translates a text or a treebank, and none was given.")
    with bar("Translating", unit="sentences") as progress:
        translated = own_output(subject, sources, batch_size=batch_size, progress=progress)
    pairs = read_corpus(translated)
    lacking = Counter({"sentences without a translation": len(sources) - len(translated)})
    pairs.name, pairs.skipped = f"{sources.name} in its own words", sources.skipped + lacking
    if sources is treebank:
        annotated = annotated | {"treebank": pairs}
    return None if corpus is None else pairs, annotated


# --- What is printed ----------------------------------------------------------------------------

#: Columns that people see unless they choose, in the order in which a narrow terminal drops
#: them, the last ones first; they stand in the order of the table.
WORTH_SEEING = (
    "confidence",
    "entropy",
    "best_offset",
    "best_offset_share",
    "previous",
    "next",
    "separator",
    "first",
    "self",
    "punctuation",
)
#: What would have to be given for a role to be judged.
_NEEDED = {
    "syntactic": "--treebank",
    "coreference": "--coref",
    "argument": "--arguments",
    "feature": "--treebank",
}


def _print_survey(
    table: hc.HeadTable,
    subject: hc.Subject,
    columns: Sequence[str] | None,
    stacks: Sequence[str] | None,
    notes: Sequence[str],
    *,
    every: bool = False,
) -> None:
    """The roles, where heads were judged; columns of all heads where asked for, else of a few."""
    judged = "roles" in table.details
    if judged:
        _print_roles(table, subject)
    if columns is not None or every or not judged:
        shown = (
            table if stacks is None else table.select(h for h in table.heads if h.stack in stacks)
        )
        width = output().width
        chosen = list(columns) if columns is not None else _worth_seeing(shown, width)
        few = shown if every else _telling_heads(shown, chosen or shown.names)
        output().print(few.draw(chosen or None, papers=False))
        if len(few) < len(shown):
            told = f"{len(few)} of {len(shown)} heads: the highest of each column and stack"
            output().print(f"{told}. --all lists every head.", style="dim")
    if "pattern" in table.names:
        _print_patterns(table)
    about, corpora = table.provenance, _corpora(table)
    sizes = [_sizes(name, read) for name, read in corpora.items()]
    output().print(f"{'; '.join(sizes)}; {subject!r}", style="dim")
    parts = [*corpora.values(), about.get("trials", {"remarks": []})]
    remarks = [remark for part in parts for remark in part["remarks"]]
    counts = [read["counts"]["skipped"] for read in corpora.values()]
    skipped = [line for each in counts for line in skipped_in_words(each)]
    print_notes([*subject.notes, *remarks, *skipped, *notes])


def _corpora(table: hc.HeadTable) -> dict[str, Any]:
    """What the provenance says of each corpus that was read."""
    about = table.provenance
    found: dict[str, Any] = about.get("corpora", {about["corpus"]: about})
    return found


def _paths_in_words(table: hc.HeadTable) -> list[str]:
    """How attention was read, a line for each corpus and path."""
    from headcount.wiring import PATHS

    return [
        f"Attention over {name} was read by the path '{path}': {PATHS[path]}."
        for name, read in _corpora(table).items()
        for path in read["attention"]
    ]


#: Tables of so many heads are printed whole; of larger ones the highest of each column and stack.
_SMALL = 24


def _telling_heads(table: hc.HeadTable, columns: Sequence[str]) -> hc.HeadTable:
    """The heads that have the highest value of some column in their stack; all if few."""
    if len(table) <= _SMALL:
        return table
    numeric = table.frame[list(columns)].select_dtypes("number").columns
    parts = [table.stack(stack) for stack in table.stacks]
    wanted = {head for part in parts for name in numeric for head in part.rank(str(name))[:1]}
    return table.select(head for head in table.heads if head in wanted)


def _worth_seeing(table: hc.HeadTable, width: int) -> list[str]:
    measured = [name for name in WORTH_SEEING if name in table.names]
    measured = [name for name in measured if table.frame[name].notna().any()]
    fitting = table.draw(measured).fitting(width) if measured else []
    return [name for name in table.names if name in fitting]


def _print_roles(table: hc.HeadTable, subject: hc.Subject) -> None:
    from headcount.reports import terminal_signs
    from headcount.surveys.roles import RolesText, all_roles, unread, verdicts_of

    missing = [role for role in all_roles() if unread(role, table)]
    output().print(
        RolesText(
            verdicts_of(table.details["roles"]),
            len(table),
            subject.name,
            judged=[role.name for role in all_roles() if role not in missing],
            unjudged={role.name: _why(role, table) for role in missing},
            signs=terminal_signs(),
        )
    )


def _best_heads_json(table: hc.HeadTable) -> dict[str, Any]:
    from headcount.records import to_strict

    best = hc.roles.best_heads(table.details["relations"])
    return {"best_heads": to_strict(best.to_dict("records"))}


def _print_best_heads(table: hc.HeadTable, format: str) -> None:
    """Clark's Table 1, for people or to be pasted."""
    from headcount.records import NA

    best = hc.roles.best_heads(table.details["relations"])
    if format != "text":
        from headcount.records import paper_table

        output().print(paper_table("relations", best, format), soft_wrap=True, markup=False)
        return
    twin = ["random twin"] if "control" in best else []
    figures = ["arcs", "accuracy", "95%", "offset", *twin, "p", "naive"]
    rows = []
    for row in best.to_dict("records"):
        cells = [f"{row['n']:,.0f}", _percent(row["accuracy"])]
        cells += [f"{_percent(row['low'])}–{_percent(row['high'])}"]
        cells += [f"{_percent(row['baseline'])} ({row['offset']:+.0f})"]
        cells += [_percent(row["control"])] if twin else []
        cells += [f"{row['p_adjusted']:.2g}"]
        if row["head"] == NA:  # no sentence was left to judge on
            cells = [NA] * len(cells)
        cells.append(f"{_percent(row['naive_accuracy'])} {row['naive_head']}")
        rows.append([row["relation"], row["head"], row["direction"], *cells])
    print_rows(["relation", "head", "direction", *figures], rows, right=figures)
    output().print(
        f"{', '.join(_corpora(table))}: head and offset are chosen on one half of the sentences "
        "and judged on the other; naive: chosen and judged on all. p: paired by sentence, Holm "
        "over all heads and relations.",
        style="dim",
    )


def _percent(share: float) -> str:
    from headcount.records import NA

    return NA if share != share else f"{100 * share:.1f}"


def _print_patterns(table: hc.HeadTable) -> None:
    """The mean share of each pattern in every layer."""
    from headcount.rooms.patterns import layer_shares

    shares = layer_shares(table)
    output().print("Patterns, mean share over the heads of a layer:", style="bold")
    names = [str(name).replace("_diagonal", "+diagonal") for name in shares]
    output().print("layer   " + "  ".join(names), style="dim")
    for (stack, layer), row in zip(shares.index.tolist(), shares.to_numpy(), strict=True):
        cells = [f"{100 * s:>{len(n) - 1}.0f}%" for n, s in zip(names, row, strict=True)]
        output().print(f"{stack}.{layer:<4}" + "  ".join(cells))


def _why(role: Role, table: hc.HeadTable) -> str:
    """What would have to be given, or why a corpus does not show it; else nothing."""
    noted = [table.notes[name] for name in role.reads if name in table.notes]
    if noted and "trials" not in role.reads:
        return noted[0]
    return _NEEDED.get(role.name, "")


def _sizes(name: str, about: Mapping[str, Any]) -> str:
    """What was read, in words: "20 pairs of news.tsv, 310 source and 290 target tokens"."""
    counts, unit = about["counts"], about["unit"]
    sides = [f"{number:,} {side}" for side, number in counts["tokens"].items()]
    tokens = " and ".join(sides) if len(sides) > 1 else f"{sum(counts['tokens'].values()):,}"
    number = counts["sentences"]
    named = unit.removesuffix("s") if number == 1 else unit
    return f"{number:,} {named} of {name}, {tokens} tokens"


# --- A survey into a run directory --------------------------------------------------------------


@contextmanager
def _opened(out: Path | None) -> Iterator[hc.Run | None]:
    """The run directory, made and locked before the work: a bad place is refused at once."""
    if out is None:
        yield None
        return
    with hc.Run.open(out) as run:
        try:
            yield run
        except KeyboardInterrupt as stop:
            if not run.shards("survey").exists():
                raise
            told = f"Interrupted; what is done is in {out}/, and the same command goes on."
            raise KeyboardInterrupt(told) from stop


def _check_run(run: hc.Run, subject: hc.Subject, stacks: list[str] | None) -> None:
    """Refuse, before the work, a run of another model or one that would lose what it knows."""
    check_same_model(run, subject)
    others = [stack for stack in subject.anatomy.stacks if stacks and stack not in stacks]
    if others and run.has_table and "survey" in run.stages:
        raise UsageError(
            f"{run.path}/ has a survey already, and one of {', '.join(stacks or ())} alone would "
            f"clear {', '.join(others)}; leave out --stacks, choose another folder, or --replace."
        )


def _write(stage: Stage, table: hc.HeadTable, replace: bool) -> list[str]:
    """Put the table into the run: next to the columns of this model that are there, or anew.

    Returns notes on columns that came from other texts.
    """
    run = stage.run
    old = run.read_table() if run.has_table and not replace else None
    run.write_table(table if old is None else old.join(table, replace=True), replace=replace)
    about = table.provenance
    settings = {"convention": about["convention"], "columns": table.names, **about["settings"]}
    stage.finish(settings, about, notes=about["remarks"])
    return [] if old is None else _other_texts(old, table, run.path)


def _other_texts(old: hc.HeadTable, new: hc.HeadTable, path: Path) -> list[str]:
    """Which columns were replaced, and which are kept, though measured on other texts."""
    origins = {name: old.origins.get(name, old.provenance) for name in old.names}
    others = [name for name in old.names if origins[name].get("data") != new.provenance["data"]]
    notes = []
    for deed, columns in (
        ("replaces", [name for name in others if name in new.names]),
        ("stands beside", [name for name in others if name not in new.names]),
    ):
        if columns:
            corpora = ", ".join(sorted({str(origins[name].get("corpus")) for name in columns}))
            notes.append(f"In {path}/ this {deed} {', '.join(columns)}, measured on {corpora}.")
    return notes


# --- Families of heads on the command line: `survey --families` ---------------------------------


def _write_families(
    run: hc.Run | None,
    subject: hc.Subject,
    tally: Divergence,
    table: hc.HeadTable,
    seed: int | None,
) -> Families:
    """What the tally found, also as the run's pairs.npz."""
    from headcount.rooms.families import families_of_tally

    about = table.provenance
    found = families_of_tally(subject, tally, seed=seed or 0, about=about)
    if run is not None:
        run.write_arrays("pairs", found.arrays())
        settings = {"convention": about["convention"], **about["settings"]}
        run.stage("families").finish(settings, about)
    return found


def _families_json(found: Families) -> dict[str, Any]:
    """The figures of each stack, and every head's cluster, place and nearest heads."""
    from headcount.records import to_strict

    stacks = {
        stack: {
            "silhouette": float(found.silhouette[number]),
            "silhouette_shuffled": found.silhouette_shuffled[number].tolist(),
            "p": float(found.silhouette_p[number]),
            "stress": float(found.stress[number]),
        }
        for number, stack in enumerate(found.stacks)
    }
    heads = {
        str(head): {
            "cluster": int(found.cluster[place]),
            "place": found.mds[place].tolist(),
            "nearest": {str(other): js for other, js in found.near(head)},
        }
        for place, head in enumerate(found.heads)
    }
    return {"families": to_strict({"stacks": stacks, "heads": heads})}


def _print_families(found: Families) -> None:
    """The pairs most alike, and a sentence for each stack."""
    from headcount.rooms.families import draw_nearest, family_sentences

    console = output()
    console.print()
    console.print(draw_nearest(found))
    for line in family_sentences(found):
        console.print(line)
