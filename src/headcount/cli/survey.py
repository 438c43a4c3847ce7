"""`headcount survey`: what every head looks at, over a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headcount.cli import options
from headcount.cli import options as role_options
from headcount.cli.inputs import Annotation, named_corpus, read_annotated
from headcount.cli.options import loaded, one_of, positive
from headcount.cli.output import announced, bar, output, print_json, print_notes, print_table
from headcount.errors import UsageError
from headcount.records import STACKS

if TYPE_CHECKING:
    from headcount.models import Subject
    from headcount.records import HeadTable, Run, Stage
    from headcount.survey import Divergence, Families, Frequencies
    from headcount.survey.roles import Role
    from headcount.text import Corpus


# --- Options of `headcount survey` alone --------------------------------------------------------

Text = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Sentences: .txt (one a line), .conllu, .tsv (pairs), also .gz, .xz and .bz2; "
        "- for standard input; `sample` for the bundled sentences.",
        show_default=False,
    ),
]
Pairs = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Pairs, two columns with a tab between: source and target for a translator, two "
        "texts for an encoder; `sample` for the bundled English-German pairs.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="DIR", help="Run directory to write; made where there is none."
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Columns to measure and show, separated by commas."),
]
Stacks = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Stacks to look at: enc, dec, cross; separated by commas."),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        callback=one_of("txt", "tsv", "csv", "conllu", "conll", "jsonl"),
        help="What the input is, if its name does not tell: txt, tsv, csv, conllu, conll or jsonl.",
    ),
]
MaxLength = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        callback=positive,
        help="Longest input in tokens; by default what the model takes.",
    ),
]
Long = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        callback=one_of("window", "truncate", "error"),
        help="What to do with longer sentences: window, truncate or error.",
    ),
]
OwnOutput = Annotated[
    bool,
    typer.Option("--own-output", help="Translate first, and survey the model's own translations."),
]
OffsetMass = Annotated[
    bool,
    typer.Option("--offset-mass", help="Also keep the whole distribution of mass by offset."),
]
FamiliesOption = Annotated[
    bool,
    typer.Option(
        "--families",
        help="Also measure how unlike every two heads are: nearest heads, clusters, a map "
        "(pairs.npz). Keeps the maps of one batch of all layers in memory.",
    ),
]
Patterns = Annotated[
    bool,
    typer.Option(
        "--patterns",
        help="Also tell the pattern of every map (vertical, diagonal, both, block, heterogeneous).",
    ),
]
Replace = Annotated[
    bool,
    typer.Option("--replace", help="Start the run directory's table anew."),
]


# --- A survey told to people --------------------------------------------------------------------

#: What would have to be given for a role to be judged.
_NEEDED = {
    "syntactic": "--treebank",
    "coreference": "--coref",
    "argument": "--arguments",
    "feature": "--treebank",
}


def print_survey(
    table: HeadTable,
    subject: Subject,
    columns: Sequence[str] | None,
    stacks: Sequence[str] | None,
    notes: Sequence[str],
) -> None:
    """The roles, where heads were judged; the columns, where not or where some were chosen."""
    from headcount.errors import skipped_in_words

    judged = "roles" in table.details
    if columns is not None or not judged:
        shown = (
            table if stacks is None else table.select(h for h in table.heads if h.stack in stacks)
        )
        print_table(shown, columns)
    if judged:
        _print_roles(table, subject)
    if "pattern" in table.names:
        _print_patterns(table)
    about = table.provenance
    corpora = about.get("corpora", {about["corpus"]: about})
    sizes = [_sizes(name, read) for name, read in corpora.items()]
    output().print(f"{'; '.join(sizes)}; {subject!r}", style="dim")
    told = [*corpora.values(), about.get("trials", {"remarks": []})]
    remarks = [remark for part in told for remark in part["remarks"]]
    counts = [read["counts"]["skipped"] for read in corpora.values()]
    skipped = [line for each in counts for line in skipped_in_words(each)]
    print_notes([*subject.notes, *remarks, *skipped, *notes])


def survey_json(table: HeadTable) -> dict[str, Any]:
    """The table, and the verdicts where heads were judged."""
    from headcount.records import to_strict

    told = table.to_dict()
    if "roles" in table.details:
        told["roles"] = to_strict(table.details["roles"].to_dict("records"))
    return told


def _print_roles(table: HeadTable, subject: Subject) -> None:
    from headcount.survey.roles import RolesText, all_roles, unread, verdicts_of

    missing = [role for role in all_roles() if unread(role, table)]
    output().print(
        RolesText(
            verdicts_of(table.details["roles"]),
            len(table),
            subject.name,
            judged=[role.name for role in all_roles() if role not in missing],
            unjudged={role.name: _why(role, table) for role in missing},
        )
    )


def _print_patterns(table: HeadTable) -> None:
    """The mean share of each pattern in every layer."""
    from headcount.survey import layer_shares

    shares = layer_shares(table)
    output().print("Patterns, mean share over the heads of a layer:", style="bold")
    names = [str(name).replace("_diagonal", "+diagonal") for name in shares]
    output().print("layer   " + "  ".join(names), style="dim")
    for (stack, layer), row in zip(shares.index.tolist(), shares.to_numpy(), strict=True):
        cells = [f"{100 * s:>{len(n) - 1}.0f}%" for n, s in zip(names, row, strict=True)]
        output().print(f"{stack}.{layer:<4}" + "  ".join(cells), highlight=False)


def _why(role: Role, table: HeadTable) -> str:
    """What would have to be given, or why a corpus cannot tell; empty where no corpus could."""
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


def opened(out: Path | None) -> AbstractContextManager[Run | None]:
    """The run directory, made and locked before the work: a bad place is told at once."""
    if out is None:
        return nullcontext()
    from headcount.records import Run

    return Run.open(out)


def check_run(run: Run, subject: Subject, stacks: list[str] | None) -> None:
    """Refuse, before the work, a run of another model or one that would lose what it knows."""
    from headcount.records import HeadTable

    run.check_subject(HeadTable.of(subject.heads, {}, provenance={"weights": subject.weights_hash}))
    others = [stack for stack in subject.anatomy.stacks if stacks and stack not in stacks]
    if others and run.has_table and "survey" in run.stages:
        raise UsageError(
            f"{run.path}/ has a survey already, and one of {', '.join(stacks or ())} alone would "
            f"clear {', '.join(others)}; leave out --stacks, choose another folder, or --replace."
        )


def write(stage: Stage, table: HeadTable, replace: bool) -> list[str]:
    """Put the table into the run: beside the columns of this model that are there, or anew.

    Returns what to tell of columns that came from other texts.
    """
    run = stage.run
    old = run.read_table() if run.has_table and not replace else None
    run.write_table(table if old is None else old.join(table, replace=True), replace=replace)
    about = table.provenance
    settings = {"convention": about["convention"], "columns": table.names, **about["settings"]}
    stage.finish(settings, about, notes=about["remarks"])
    return [] if old is None else _other_texts(old, table, run.path)


def _other_texts(old: HeadTable, new: HeadTable, path: Path) -> list[str]:
    """Which columns were replaced, and which are kept, though measured on other texts."""
    origins = {name: old.origins.get(name, old.provenance) for name in old.names}
    others = [name for name in old.names if origins[name].get("data") != new.provenance["data"]]
    told = []
    for deed, names in (
        ("replaces", [name for name in others if name in new.names]),
        ("stands beside", [name for name in others if name not in new.names]),
    ):
        if names:
            corpora = ", ".join(sorted({str(origins[name].get("corpus")) for name in names}))
            told.append(f"In {path}/ this {deed} {', '.join(names)}, measured on {corpora}.")
    return told


# --- Families of heads on the command line: `survey --families` ---------------------------------


def watched(convention: str) -> list[Divergence]:
    """The tally to take along on a survey."""
    from headcount.survey import Divergence

    return [Divergence(convention)]


def write_families(
    run: Run | None,
    subject: Subject,
    tallies: list[Divergence],
    table: HeadTable,
    seed: int | None,
) -> Families | None:
    """What the tally found, also as the run's pairs.npz; None where it was not taken along."""
    if not tallies:
        return None
    from headcount.survey import families_of_tally

    about = table.provenance
    found = families_of_tally(subject, tallies[0], seed=seed or 0, about=about)
    if run is not None:
        run.write_arrays("pairs", found.arrays())
        settings = {"convention": about["convention"], **about["settings"]}
        run.stage("families").finish(settings, about)
    return found


def families_json(found: Families | None) -> dict[str, Any]:
    """The figures of each stack, and every head's cluster, place and nearest heads."""
    if found is None:
        return {}
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


def print_families(found: Families | None) -> None:
    """The pairs most alike, and a sentence for each stack."""
    if found is None:
        return
    from headcount.survey import draw_nearest, family_sentences

    console = output()
    console.print()
    console.print(draw_nearest(found))
    for line in family_sentences(found):
        console.print(line)


# --- `headcount survey`: what every head looks at, over a corpus --------------------------------


def survey_command(
    model: options.Model,
    text: Text = None,
    pairs: Pairs = None,
    out: Out = None,
    columns: Columns = None,
    stacks: Stacks = None,
    format: Format = None,
    max_length: MaxLength = None,
    long: Long = "window",
    chat: options.Chat = False,
    own_output: OwnOutput = False,
    offset_mass: OffsetMass = False,
    families: FamiliesOption = False,
    patterns: Patterns = False,
    replace: Replace = False,
    treebank: role_options.Treebank = None,
    coref: role_options.Coref = None,
    arguments: role_options.Arguments = None,
    parser: role_options.Parser = None,
    roles: role_options.Roles = False,
    control: role_options.Control = None,
    twins: role_options.Twins = 1,
    word_rows: role_options.WordRows = None,
    relations: role_options.Relations = None,
    word_frequencies: role_options.Frequencies = None,
    convention: options.Convention = "headcount",
    limit: options.Limit = None,
    seed: options.Seed = None,
    batch_size: options.BatchSize = 16,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    revision: options.Revision = None,
    allow_bin: options.AllowBin = False,
    trust_remote_code: options.RemoteCode = False,
    tokenizer: options.Tokenizer = None,
    json: options.Json = False,
) -> None:
    """Measure where every head of MODEL looks, over a corpus, and tell what it does there.

    [dim]headcount survey minilm --text sample[/dim]
    [dim]headcount survey minilm --treebank sample --control random-init[/dim]
    [dim]headcount survey ./my-model --text sentences.txt -o run/[/dim]
    [dim]cat news.txt | headcount survey bert-base-uncased --text - --json[/dim]
    """
    chosen, wanted = options.names(columns), _stacks(stacks)
    with announced("Reading the corpus"):
        annotated = read_annotated(treebank, coref, arguments, limit, seed)
        corpus = _text(text, pairs, format, parser, annotated, limit, seed)
        frequencies = _frequencies(word_frequencies)
        _check_columns(chosen, convention)
    with opened(out) as run:
        stage = None if run is None else run.stage("survey")
        subject = loaded(
            model,
            device=device,
            dtype=dtype,
            revision=revision,
            allow_bin=allow_bin,
            trust_remote_code=trust_remote_code,
            tokenizer=tokenizer,
        )
        if run is not None and not replace:
            check_run(run, subject, wanted)
        annotated = annotated.for_model(subject, limit, seed)
        if parser is not None:
            annotated = annotated.with_treebank(corpus)
        if own_output:
            corpus, annotated = _translated(subject, corpus, annotated, batch_size)
        from headcount.survey import survey as measure

        watching = watched(convention) if families else []
        table = measure(
            subject,
            corpus,
            treebank=annotated.treebank,
            coref=annotated.coref,
            arguments=annotated.arguments,
            roles=roles or None,
            control=control,
            control_seeds=range(twins),
            word_rows=word_rows,  # type: ignore[arg-type]  # one of the three, as checked above
            relations=options.names(relations),
            frequencies=frequencies,
            convention=convention,
            columns=chosen,
            stacks=wanted,
            batch_size=batch_size,
            max_length=max_length,
            long=long,  # type: ignore[arg-type]  # one of the three, as checked above
            chat=chat,
            offset_mass=offset_mass,
            patterns=patterns,
            limit=limit,
            seed=seed,
            tallies=watching,
            telling=bar,
        )
        other_texts = [] if stage is None else write(stage, table, replace)
        kin = write_families(run, subject, watching, table, seed)
    if json:
        print_json(survey_json(table) | families_json(kin))
        return
    print_survey(table, subject, chosen, wanted, other_texts)
    print_families(kin)
    if out is not None:
        output().print(f"Wrote {out}/ (headcount ls {out} lists what it holds).")
    elif "roles" in table.details:
        output().print("-o DIR keeps every verdict and figure; --json prints them.", style="dim")


def _text(
    text: str | None,
    pairs: str | None,
    format: str | None,
    parser: str | None,
    annotated: Annotation,
    limit: int | None,
    seed: int | None,
) -> Corpus | None:
    """The text that was named, parsed where a parser was; none where a treebank stands in."""
    if text is None and pairs is None and annotated.any:
        return None
    corpus = named_corpus(text, pairs, format, limit, seed)
    if parser is None:
        return corpus
    if annotated.treebank is not None:
        raise UsageError(
            "Both --treebank and --parser were given; a parser makes a treebank of the text, so "
            "leave one of them out."
        )
    from headcount.text import read_corpus

    return read_corpus(corpus, parser=parser)


def _frequencies(given: str | None) -> Frequencies | None:
    from headcount.survey import frequencies_of

    return frequencies_of(given)


def _stacks(given: str | None) -> list[str] | None:
    """The stacks asked for; a word that is no stack is refused before anything is loaded."""
    wanted = options.names(given)
    for stack in wanted or ():
        if stack not in STACKS:
            raise UsageError(f"There is no stack '{stack}'; choose among {', '.join(STACKS)}.")
    return wanted


def _check_columns(columns: list[str] | None, convention: str) -> None:
    """Refuse a column that is not known before a model is loaded for it."""
    from headcount.survey import PATTERN, PATTERN_COLUMNS, chosen_tallies

    if columns is not None and not columns:
        raise UsageError("--columns names no column; name some, e.g. --columns self,next.")
    patterns = {PATTERN.name, *(column.name for column in PATTERN_COLUMNS)}
    others = None if columns is None else [name for name in columns if name not in patterns]
    chosen_tallies(others, convention)


def _translated(
    subject: Subject, corpus: Corpus | None, annotated: Annotation, batch_size: int
) -> tuple[Corpus | None, Annotation]:
    """Each source with what the model makes of it, in the text or in the treebank in its place."""
    from headcount.tasks import own_output
    from headcount.text import Corpus, read_corpus

    sources = annotated.treebank if corpus is None else corpus
    if not isinstance(sources, Corpus):
        raise UsageError("--own-output translates a text or a treebank, and none was given.")
    with bar("Translating", unit="sentences") as progress:
        told = own_output(subject, sources, batch_size=batch_size, progress=progress)
    pairs = read_corpus(told)
    untold = Counter({"sentences without a translation": len(sources) - len(told)})
    pairs.name, pairs.skipped = f"{sources.name} in its own words", sources.skipped + untold
    same = corpus is None or corpus is annotated.treebank
    return (None if corpus is None else pairs), (
        annotated.with_treebank(pairs) if same else annotated
    )
