"""The survey: what every head of a model looks at, over a corpus, in one table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from headcount.errors import UsageError
from headcount.heads import STACKS
from headcount.patterns.classify import Judge
from headcount.patterns.kinds import PATTERN
from headcount.patterns.shares import with_pattern
from headcount.patterns.tally import Patterns
from headcount.progress import Progress
from headcount.roles.catalogue import all_roles, judged
from headcount.roles.role import Role
from headcount.roles.verdicts import verdict_frame
from headcount.stages.corpora import Corpora, read_corpora, ready_corpora
from headcount.stages.passing import Manner
from headcount.stages.planning import Wishes, planned
from headcount.stages.programme import Telling
from headcount.stages.twins import beside, check_control, twin_tables
from headcount.subject import Subject
from headcount.table import HeadTable
from headcount.tallies.frequencies import Frequencies, frequencies_of
from headcount.tallies.tally import Tally
from headcount.text.encode import Long
from headcount.text.ready import is_ready
from headcount.text.words import Rows

__all__ = ["stacks_of", "survey"]


def survey(
    subject: Subject,
    corpus: Any = None,
    *,
    treebank: Any = None,
    coref: Any = None,
    arguments: Any = None,
    parser: Any = None,
    roles: Sequence[Role] | bool | None = None,
    control: str | None = None,
    control_seeds: Sequence[int] = (0,),
    word_rows: Rows | None = None,
    relations: Sequence[str] | None = None,
    frequencies: Frequencies | Mapping[str, float] | str | Path | None = None,
    convention: str = "headcount",
    columns: Sequence[str] | None = None,
    stacks: Collection[str] | None = None,
    batch_size: int = 16,
    max_length: int | None = None,
    long: Long = "window",
    chat: bool = False,
    segments: bool = True,
    limit: int | None = None,
    seed: int | None = None,
    offset_mass: bool = False,
    patterns: bool | Judge = False,
    tallies: Sequence[Tally] = (),
    progress: Progress | None = None,
    telling: Telling | None = None,
) -> HeadTable:
    """Measure where every head looks, and with annotated text what it does there.

    `corpus` is a list of sentences or pairs, a path (.txt, .tsv, .conllu), or, for models that
    read no text, a list of ready model inputs. `convention` is "headcount", "paper" or
    "code"; `columns` chooses some of the columns, `stacks` some of the stacks, `tallies` adds
    your own. Long sentences are cut into windows and counted. `segments=False` gives both texts
    of a pair the segment 0, as Clark's extraction did; `offset_mass` adds the whole distribution
    of mass by offset to `table.details`. `patterns` adds the shares of Kovaleva et al.'s five
    patterns, told by the bundled network (True, "network") or by the "rule", and the column
    `pattern`. Nothing of the model is changed.

    A `treebank`, `coref` (coreference) or `arguments` (predicates with theirs) is a corpus with
    words, read beside the text, or in its place where there is none; `parser` makes a treebank of
    the text. Then, or with `roles=True` or a list of roles, heads are judged:
    `table.details["roles"]` has a row for each verdict, `table.details["relations"]` one for each
    head, relation and direction.
    `control="random-init"` runs everything on randomly initialised twins as well, one for each
    of `control_seeds`. `word_rows`, `relations` and `frequencies` say how a word's pieces
    become one, which relations count, and how rare a token is.

    >>> from headcount.models.load import load
    >>> table = survey(load("minilm"), ["The cat sat on the mat."])    # doctest: +SKIP
    """
    _check_call(subject, columns, tallies)
    check_control(control, control_seeds)
    columns, patterned = _asked(columns, patterns, convention)
    manner = Manner(stacks_of(subject, stacks), batch_size, max_length, long, chat, segments)
    annotated = {"treebank": treebank, "coref": coref, "arguments": arguments, "parser": parser}
    corpora = _corpora(subject, corpus, manner, limit=limit, seed=seed, **annotated)
    given = control is not None or any(one is not None for one in annotated.values())
    judging = _roles(roles, given)
    reads = frozenset(name for role in judging for name in role.reads)
    wishes = Wishes(
        convention, columns, [*patterned, *tallies], offset_mass, reads, word_rows, relations,
        frequencies_of(frequencies), {"seed": seed, "limit": limit},
    )  # fmt: skip
    programme = planned(subject, corpora, manner, wishes)
    unused = programme.again()
    table = programme.run(subject, telling or _bar_of(progress))
    if patterned:
        table = with_pattern(table)
    if judging:
        twins = twin_tables(subject, unused, control, control_seeds, telling) if control else []
        beside(table, twins)
        found = judged(table, judging, twins)
        table.details["roles"] = verdict_frame(v for v in found if v.head.stack in manner.stacks)
    return table


def _check_call(subject: Any, columns: Any, tallies: Any) -> None:
    """Tell the slips that Python would tell as something else."""
    if not isinstance(subject, Subject):
        raise UsageError(
            f"survey takes a Subject, not {subject!r}; make one with hc.load(name) or "
            "hc.Subject(model, tokenizer)."
        )
    if isinstance(columns, str):
        raise UsageError(f"columns is the text '{columns}'; give a list, e.g. ['{columns}'].")
    if not isinstance(tallies, list | tuple) or any(isinstance(one, type) for one in tallies):
        raise UsageError(f"tallies is {tallies!r}; give a list of tallies, e.g. [MyTally()].")


def _asked(
    columns: Sequence[str] | None, patterns: bool | Judge, convention: str
) -> tuple[list[str] | None, list[Tally]]:
    """The columns without the word for the most frequent pattern, and who tells patterns."""
    known = {PATTERN.name, *(column.name for column in Patterns.columns)}
    wanted = bool(patterns) or not known.isdisjoint(columns or ())
    by: Judge = "network" if isinstance(patterns, bool) else patterns
    left = None if columns is None else [name for name in columns if name != PATTERN.name]
    return left, [Patterns(by, convention)] if wanted else []


def stacks_of(subject: Subject, stacks: Collection[str] | None) -> tuple[str, ...]:
    """The stacks to look at, in their order; those that were asked for must be there."""
    there = subject.anatomy.stacks
    if stacks is None:
        return there
    for stack in stacks:
        if stack not in there:
            raise UsageError(f"{subject.name} has no stack '{stack}'; it has {', '.join(there)}.")
    if not stacks:
        raise UsageError(f"No stack was asked for; {subject.name} has {', '.join(there)}.")
    return tuple(stack for stack in STACKS if stack in stacks)


def _corpora(subject: Subject, corpus: Any, manner: Manner, **texts: Any) -> Corpora:
    """Texts, read; or ready inputs, where a model reads no text."""
    if is_ready(corpus):
        return ready_corpora(corpus, subject.anatomy.stacks, manner, **texts)
    return read_corpora(corpus, **texts)


def _roles(roles: Sequence[Role] | bool | None, implied: bool) -> list[Role]:
    """The roles to judge: as given, else all of them where anything was given to judge them by."""
    if roles is None:
        roles = implied
    if isinstance(roles, str | type):
        raise UsageError(f"roles is {roles!r}; give a list of roles, e.g. [Positional()], or True.")
    if isinstance(roles, bool):
        return all_roles() if roles else []
    return list(roles)


def _bar_of(progress: Progress | None) -> Telling | None:
    """The same callable for every stage."""
    return None if progress is None else lambda name, unit: nullcontext(progress)
