"""Do two measures, two data sets or two seeds rank heads alike, and do heads with a role matter?

Michel et al., NeurIPS 2019, section 3.4, compare ablations of single heads on two data sets by
Pearson's correlation; Spearman and Kendall ask about the order alone. That heads with a function
are the important ones is what Voita et al., ACL 2019, conclude from their figures 1, 2 and 8.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from headcount import stats
from headcount.errors import StatsError, UsageError
from headcount.importance import importance_columns
from headcount.models import Subject
from headcount.records import HeadTable, InnerPath
from headcount.reports import Source, StageMaker, StoryContext, StoryStage, figure
from headcount.rooms.agreement.ranks import (
    Agreement,
    Kind,
    correlate_weighted,
    rank_agreement,
    why_none,
)
from headcount.rooms.agreement.survival import role_survival
from headcount.surveys import Corpora, ReadingOptions, ShardWork, read_corpora, sample_for, survey
from headcount.surveys.roles import says_of
from headcount.text import Corpus

if TYPE_CHECKING:
    import pandas as pd

#: Enough for the ends of an interval; nothing is tested with them.
_FEW_DRAWS = 2_000
#: Half of the width of a 95% interval, in errors; copies of scores as other examples give them.
_HALF, _COPIES = 1.96, 100


def agreement(
    tables: HeadTable | Mapping[str, HeadTable],
    columns: Sequence[str] | None = None,
    *,
    kinds: Sequence[Kind] = ("spearman", "kendall", "pearson"),
    draws: int = _FEW_DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Every pair of scores, a row each: over all heads, then stack by stack.

    One table compares its columns (by default all that rank heads); several, by the name of their
    data or seed, also each column with itself: "gradient on tatoeba" with "gradient on lohelp".
    Columns whose lower values rank first are turned round. Intervals are two-way: from resampled
    heads, and from what examples leave unknown of each head where its score has an interval. The
    frame has first, second, stack, kind, value, low, high, heads and note.

    >>> from headcount.records.heads import Head
    >>> heads = [Head("enc", 0, index) for index in range(4)]
    >>> table = HeadTable.of(heads, {"gradient": [1, 2, 3, 4], "ablation": [2, 1, 3, 4]})
    >>> found = agreement(table, kinds=["spearman"])
    >>> found[["first", "second", "stack", "value", "heads"]].values.tolist()
    [['gradient', 'ablation', 'all', 0.8, 4]]
    """
    several = {"": tables} if isinstance(tables, HeadTable) else dict(tables)
    heads = next(iter(several.values())).heads if several else []
    scores: dict[str, stats.Floats] = {}
    errors: dict[str, stats.Floats] = {}
    for name, table in several.items():
        if table.heads != heads:
            raise UsageError(
                f"The table '{name}' has {len(table)} heads and the first {len(heads)}, not the "
                "same ones; compare tables of one architecture."
            )
        for column in importance_columns(table) or table.names if columns is None else columns:
            title = f"{column} on {name}" if name else column
            scores[title], errors[title] = _ranking(table, column), _errors(table, column)
    if len(scores) < 2:
        raise UsageError(
            f"Agreement needs two scores or more, and there is {', '.join(scores) or 'none'}; give "
            "a table with two columns that rank heads, or two tables by name."
        )
    of = np.array([head.stack for head in heads])
    stacks = list(dict.fromkeys(of.tolist()))
    rows = []
    for stack in ["all", *(stacks if len(stacks) > 1 else [])]:
        for (first, one), (second, two) in combinations(scores.items(), 2):
            both = ~(np.isnan(one) | np.isnan(two)) & ((of == stack) | (stack == "all"))
            note = why_none(one[both], two[both], (first, second))
            ours, theirs = (
                _noisy(scores[name][both], errors[name][both], seed + turn)
                for turn, name in enumerate((first, second))
            )
            for kind in kinds:
                agreed = rank_agreement(one[both], two[both], kind, draws=draws, seed=seed)
                low, high = _widened(*agreed[:3], _spread(ours, theirs, kind))
                agreed = agreed._replace(low=low, high=high, note=note)
                rows.append((first, second, stack, kind, *agreed))
    names = ["first", "second", "stack", "kind", *Agreement._fields]
    return pd.DataFrame(rows, columns=names)


def compared(table: HeadTable, names: Sequence[str] = ()) -> pd.DataFrame | None:
    """Agreement of the scores of a table, and of the columns named; None where there is but one."""
    columns = list(dict.fromkeys([*importance_columns(table), *names]))
    return agreement(table, columns) if len(columns) > 1 else None


def _ranking(table: HeadTable, column: str) -> stats.Floats:
    """A column's values, turned so that higher ranks first."""
    sign = -1.0 if table.column(column).direction == "lower" else 1.0
    return sign * table.numbers(column)


def _errors(table: HeadTable, column: str) -> stats.Floats:
    """The standard error of each head's score over examples; 0 where no interval is known."""
    if column not in table.low or column not in table.high:
        return np.zeros(len(table))
    ends = [part[column].to_numpy(dtype=np.float64) for part in (table.low, table.high)]
    return np.nan_to_num((ends[1] - ends[0]) / (2 * _HALF))


def _noisy(values: stats.Floats, errors: stats.Floats, seed: int) -> stats.Floats:
    """Scores as other examples would give them, ``[copy, head]``; one where nothing is unsure."""
    if not errors.any():
        return values[None]
    return values + errors * np.random.default_rng([seed, 7]).normal(size=(_COPIES, len(values)))


def _widened(value: float, low: float, high: float, more: float) -> tuple[float, float]:
    """An interval over heads that also holds the variance that examples and seeds add.

    >>> _widened(0.0, -0.3, 0.3, 0.0)
    (-0.3, 0.3)
    >>> [round(end, 2) for end in _widened(0.0, -0.3, 0.3, (0.4 / 1.96) ** 2)]
    [-0.5, 0.5]
    """
    own = ((high - low) / (2 * _HALF)) ** 2
    if not own > 0 or not more > 0:
        return low, high
    wider = math.sqrt(1 + more / own)
    return max(-1.0, value - (value - low) * wider), min(1.0, value + (high - value) * wider)


# --- Do heads with a role matter more, and go later? --------------------------------------------

#: Rows over several roles: heads that do something, others that look at one place.
ANY_ROLE, ANY_REST = "any function", "any rest"
#: Cliff's delta from which a difference is called large (Romano et al. 2006); an interval that
#: lies within is evidence that there is none so large.
LARGE = 0.474
_ROLE_COLUMNS = (
    "role", "rests", "score", "heads", "others", "layers", "delta", "low", "high", "p",
    "p_adjusted", "smallest_p", "answer",
)  # fmt: skip


def by_role(
    table: HeadTable | Mapping[str, HeadTable],
    columns: Sequence[str] | None = None,
    *,
    level: float = 0.05,
    seed: int = 0,
) -> pd.DataFrame:
    """For every role: do its heads matter more than others of the same layer and stack?

    One row a role and score, of a table with verdicts (`details["roles"]`): by default for all
    importance scores, and for `removal_step` where heads were removed. Of several tables, by seed,
    the roles are the first's and scores are means. `delta` is Cliff's delta: the chance that a head
    of the role ranks above another head of its layer, minus the reverse, with an interval over
    heads, examples (where scores have intervals) and seeds; `p` shuffles roles within layers,
    two-sided; `p_adjusted` is Holm's, score by score, over the rows of all functions and of all
    rest, which are the question, and over those of single roles: the same question has the same
    answer whatever else is asked. `answer` is more, less, "no large difference" (the
    interval lies within +-0.474), or "cannot tell". Heads that do something are compared with all
    that do not, and so are those of which only a place is known at which they look ("rests").

    >>> from headcount.records import Head
    >>> heads = [Head("enc", layer, index) for layer in range(4) for index in range(6)]
    >>> roles = pd.DataFrame({"stack": "enc", "layer": range(4), "head": 0, "role": "rare",
    ...                       "rests": False})
    >>> score = [7.0 if head.index == 0 else head.index for head in heads]
    >>> table = HeadTable.of(heads, {"gradient": score}, details={"roles": roles})
    >>> by_role(table, ["gradient"])[["role", "heads", "delta", "answer"]].values.tolist()
    [['any function', 4, 1.0, 'more'], ['rare', 4, 1.0, 'more']]
    """
    several = {"": table} if isinstance(table, HeadTable) else dict(table)
    table = next(iter(several.values()))
    if "roles" not in table.details:
        raise UsageError("No head was judged; survey the model with roles first (--judging roles).")
    if any(one.heads != table.heads for one in several.values()):
        raise UsageError("The tables have different heads; give tables of one architecture.")
    heads, names = table.heads, list(columns or ())
    if columns is None:
        names = [name for name in importance_columns(table) if name != "confidence"]
        names += ["removal_step"] * ("removal_step" in table.names)
    groups = _role_groups(table.details["roles"])
    rows = []
    for (role, rests), own in groups.items():
        members = [head in own for head in heads]
        for name in names:
            apart = rank_difference(
                [_removal(one, name) for one in several.values()],
                members,
                [head[:2] for head in heads],
                seed=seed,
                errors=[_errors(one, name) for one in several.values()],
            )
            rows.append(
                (role, rests, name, apart.members, apart.others, apart.strata, apart.value,
                 apart.low, apart.high, apart.p, np.nan, apart.floor, "")
            )  # fmt: skip
    frame = pd.DataFrame(rows, columns=list(_ROLE_COLUMNS))
    both = frame["role"].isin([ANY_ROLE, ANY_REST])
    for name in names:  # a score is a question of its own
        for family in (both, ~both):
            asked = family & (frame["score"] == name)
            p = frame.loc[asked, "p"].to_numpy(dtype=float)
            frame.loc[asked, "p_adjusted"] = stats.holm(p)
    frame["answer"] = [_answer(row, level) for row in frame.to_dict("records")]
    return frame


def role_sentences(frame: pd.DataFrame) -> list[str]:
    """What `by_role` found for heads with a function and for the others with a role."""
    said, groups = [], {ANY_ROLE: "do a nameable job", ANY_REST: "look much at one place"}
    when = {("removal_step", "more"): "they go later", ("removal_step", "less"): "they go earlier"}
    for role, what in groups.items():
        rows = frame[(frame["role"] == role) & frame["delta"].notna()].to_dict("records")
        if rows:
            figures = "; ".join(
                f"{row['score'].replace('_', ' ')} {row['delta']:+.2f} "
                f"[{row['low']:+.2f}, {row['high']:+.2f}], p {row['p_adjusted']:.2g}, "
                f"{when.get((row['score'], row['answer']), row['answer'])}"
                for row in rows
            )
            first = rows[0]
            said.append(
                f"{first['heads']} heads that {what} against {first['others']} others of their "
                f"layers (Cliff's delta): {figures}."
            )
    return said


def _removal(table: HeadTable, name: str) -> stats.Floats:
    """A score turned so that more is more important; a head that never goes, goes last."""
    values = _ranking(table, name)
    if name == "removal_step" and not np.isnan(values).all():
        return np.where(np.isnan(values), np.nanmax(values) + 1, values)
    return values


def _role_groups(roles: pd.DataFrame) -> dict[tuple[str, bool], set[tuple[str, int, int]]]:
    """The heads of each role, after those of all functions and of all others."""
    every: dict[tuple[str, bool], set[tuple[str, int, int]]] = {}
    says: dict[str, set[tuple[str, int, int]]] = {}
    for row in roles.to_dict("records"):
        head, said = (str(row["stack"]), int(row["layer"]), int(row["head"])), says_of(row)
        every.setdefault((str(row["role"]), said != "job"), set()).add(head)
        says.setdefault(said, set()).add(head)
    does = says.get("job", set())
    resting = says.get("place", set()) - does
    both = {(ANY_ROLE, False): does, (ANY_REST, True): resting}
    return {key: heads for key, heads in (both | every).items() if heads}


def _answer(row: Mapping[Any, Any], level: float) -> str:
    if row["p_adjusted"] <= level:
        return "more" if row["delta"] > 0 else "less"
    small = max(abs(row["low"]), abs(row["high"])) < LARGE
    return "no large difference" if small else "cannot tell"


def agreement_sentences(frame: pd.DataFrame) -> list[str]:
    """Spearman's correlation of every pair of scores over all heads."""
    rows: Any = frame[(frame["kind"] == "spearman") & (frame["stack"] == "all")]
    return [
        f"Rank agreement of {row.first} and {row.second}: "
        + (row.note or f"{row.value:.2f} [{row.low:.2f}, {row.high:.2f}]")
        for row in rows.itertuples()
    ]


# --- Heads above others of their strata (Cliff 1993) ---------------------------


def _spread(one: stats.Floats, two: stats.Floats, kind: Kind) -> float:
    """The variance of a correlation over copies of two scores."""
    copies = max(len(one), len(two))
    if copies < 2:
        return 0.0
    weights = np.ones((1, one.shape[1]))
    found = [
        correlate_weighted(one[at % len(one)], two[at % len(two)], weights, kind)[0]
        for at in range(copies)
    ]
    return float(np.nan_to_num(np.nanvar(found)))


class RankDifference(NamedTuple):
    """Cliff's delta of members against others of the same strata, its interval and its test.

    A member ranks above another head of its stratum with probability (1 + value) / 2.
    """

    value: float
    low: float
    high: float
    p: float
    #: Members and others in strata that have both; the others can say nothing.
    members: int
    others: int
    strata: int
    #: The smallest p that so few heads can give; NaN where there is nothing to compare.
    floor: float


def rank_difference(
    scores: npt.ArrayLike,
    members: npt.ArrayLike,
    strata: Sequence[object],
    *,
    draws: int = stats.DRAWS,
    seed: int = 0,
    errors: npt.ArrayLike = 0.0,
) -> RankDifference:
    """Whether members score higher than other heads of the same stratum, two-sided.

    Cliff's delta over all pairs of a member and another head that share a stratum, e.g. a layer of
    a stack. The test shuffles who is a member within each stratum; the interval resamples heads.
    Heads without a score, and strata without both kinds, are left out. Of `scores` in rows, one a
    seed, means are compared, and the interval holds the spread of seeds; with the standard
    `errors` of scores over examples it holds these, too.

    >>> found = rank_difference([5, 1, 2, 6, 3, 1], [1, 0, 0, 1, 0, 0], "aaabbb")
    >>> found.value, round(found.floor, 3), found.members, found.others
    (1.0, 0.222, 2, 4)
    """
    seeds = np.atleast_2d(np.asarray(scores, dtype=np.float64))
    unsure = np.broadcast_to(np.asarray(errors, dtype=np.float64), seeds.shape)
    values, chosen = seeds.mean(axis=0), np.asarray(members, dtype=bool)
    groups = np.unique([str(one) for one in strata], return_inverse=True)[1]
    if not values.shape == chosen.shape == groups.shape:
        raise StatsError(
            f"There are {values.size} scores, {chosen.size} marks of members and {groups.size} "
            "strata; give one of each for every head."
        )
    draws, seed = stats.read_count(draws, "draws"), stats.read_seed(seed)
    # Per stratum: its heads with a score, and those of them that are members.
    there = ~np.isnan(values)
    sizes, counts = np.bincount(groups[there]), np.bincount(groups[there & chosen])
    counts = np.pad(counts, (0, len(sizes) - len(counts)))
    both = np.flatnonzero((counts > 0) & (counts < sizes))
    if not len(both):
        return RankDifference(np.nan, np.nan, np.nan, np.nan, 0, 0, 0, np.nan)
    rows = np.argsort(groups, kind="stable")
    rows = rows[there[rows] & np.isin(groups[rows], both)]
    values, chosen, groups = values[rows], chosen[rows], groups[rows]
    # Who ranks above whom in a stratum; pairs of two members cancel out, and so do two others.
    above = np.sign(values[:, None] - values) * (groups[:, None] == groups)
    same = (groups[:, None] == groups).astype(np.float64)
    pairs = float(chosen @ same @ ~chosen)
    value = float(chosen @ above @ ~chosen) / pairs
    shuffled = np.abs(_shuffled(above.sum(axis=1), chosen, groups, draws, seed)) / pairs
    as_far = np.count_nonzero(shuffled >= abs(value) - 1e-12)
    low, high = _resampled(above, same, chosen, draws, seed)

    def delta(one: stats.Floats) -> float:
        return float(chosen @ (np.sign(one[:, None] - one) * same) @ ~chosen) / pairs

    error = np.sqrt((unsure[:, rows] ** 2).sum(axis=0)) / len(seeds)
    more = np.var([delta(one) for one in _noisy(values, error, seed)])
    if len(seeds) > 1:
        more += np.var([delta(one[rows]) for one in seeds], ddof=1) / len(seeds)
    low, high = _widened(value, low, high, float(more))
    ways = math.prod(map(math.comb, sizes[both].tolist(), counts[both].tolist()))
    smallest = max(min(1.0, 2 / ways), 1 / (draws + 1))
    return RankDifference(
        value, low, high, (as_far + 1) / (draws + 1),
        int(chosen.sum()), int((~chosen).sum()), len(both), smallest,
    )  # fmt: skip


def _shuffled(
    lead: stats.Floats, chosen: np.ndarray, groups: np.ndarray, draws: int, seed: int
) -> stats.Floats:
    """The sum of leads of members drawn anew within each stratum, ``[draw]``."""
    random, total = np.random.default_rng(seed), np.zeros(draws)
    for group in np.unique(groups):
        own = groups == group
        keys = random.random((draws, int(own.sum())))
        drawn = np.argpartition(keys, int(chosen[own].sum()) - 1, axis=1)
        total += lead[own][drawn[:, : int(chosen[own].sum())]].sum(axis=1)
    return total


def _resampled(
    above: stats.Floats, same: stats.Floats, chosen: np.ndarray, draws: int, seed: int
) -> tuple[float, float]:
    """The percentile interval of delta over heads drawn again; draws without a pair go."""
    drawn = []
    for weights in stats.resample_weights(len(chosen), draws, seed):
        ours, others = weights * chosen, weights * ~chosen
        pairs = ((ours @ same) * others).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn.append(np.where(pairs > 0, ((ours @ above) * others).sum(axis=1) / pairs, np.nan))
    low, high = np.nanquantile(np.concatenate(drawn), [0.025, 0.975])
    return float(low), float(high)


# --- In the story ---------------------------------------------------------------------------------


def agreement_stage(context: StoryContext) -> StoryStage:
    """Whether the measures rank heads alike."""

    def work() -> list[str]:
        frame = compared(context.run.read_table()) if context.run.has_table else None
        if frame is None:
            return ["There are not two measures of importance to compare."]
        context.run.write_frame("agreement", frame)
        return []

    stages = context.run.stages
    settings = {name: stages[name]["finished"] for name in stages if name.startswith("score-")}
    why = context.why_no_task
    title = "Whether the measures agree"
    return StoryStage("agreement", title, settings, work, why_not=why, derived=True)


def function_stage(context: StoryContext) -> StoryStage:
    """Importance and removal of heads with a role against others of their layer."""

    def work() -> list[str]:
        found = by_role(context.run.read_table(), seed=context.seed or 0)
        context.run.write_frame("function", found)
        return role_sentences(found)

    stages, needed = context.run.stages, ("survey", "curve")
    settings = {
        name: stages[name]["finished"]
        for name in stages
        if name in needed or name.startswith("score-")
    }
    title = "Whether heads with a role matter more"
    return StoryStage("function", title, settings, work, why_not=context.why_no_task, derived=True)


AGREEMENT = StageMaker(agreement_stage, after="own-metric")
FUNCTION = StageMaker(function_stage, after="healed")


# --- On the page ----------------------------------------------------------------------------------

#: Measures that the toolkit has; those that were not taken are shown as missing.
_EXPECTED = ("gradient", "ablation", "contribution", "confidence")


def agreement_part(source: Source) -> dict[str, Any] | None:
    """Measures in order, and a row for each pair and stack; None where nothing was compared."""
    frame = source.frame("agreement")
    if frame is None:
        return None
    kind = "spearman" if "spearman" in set(frame["kind"]) else str(frame["kind"].iloc[0])
    rows = frame[frame["kind"] == kind]
    there = dict.fromkeys([*rows["first"], *rows["second"]])
    ordered = [name for name in _EXPECTED if name in there or name not in source.table.names]
    return {
        "kind": kind,
        "measures": [*ordered, *(str(name) for name in there if name not in _EXPECTED)],
        "rows": [
            [
                row["first"],
                row["second"],
                row["stack"],
                *(figure(row[k], 3) for k in ("value", "low", "high")),
                int(row["heads"]),
            ]
            for row in rows.to_dict("records")
        ],
    }


def function_part(source: Source) -> dict[str, dict[str, Any]]:
    """Whether heads with a role matter more than others of their layers: by score, then by role.

    "does" and "rests" are all heads that do something, and all others that look at one place.
    """
    frame, parts = source.frame("function"), dict[str, dict[str, Any]]()
    groups = {"any function": "does", "any rest": "rests"}
    for row in [] if frame is None else frame.to_dict("records"):
        role = groups.get(str(row["role"]), str(row["role"]))
        numbers = [figure(row[name], 2) for name in ("delta", "low", "high", "p_adjusted")]
        parts.setdefault(str(row["score"]), {})[role] = [*numbers, str(row["answer"])]
    return parts


# --- Both models of a pruning surveyed anew -------------------------------------------------------


@dataclass(frozen=True)
class RolesLeft:
    """The roles of a whole model and of the one that is left, each judged on that model."""

    subject: Subject
    read: Corpora
    batch_size: int
    #: Where what is done outlives a kill.
    kept: InnerPath | None

    @classmethod
    def on(
        cls, subject: Subject, corpus: Any, batch_size: int, kept: InnerPath | None
    ) -> RolesLeft:
        """What will be surveyed: "sample", or any corpus; a bad file shows at once."""
        read = read_corpora(sample_for(subject, corpus, "treebank"))
        return cls(subject, read, batch_size, kept)

    def of(self, small: Subject, known: HeadTable | None) -> tuple[HeadTable, HeadTable, list[str]]:
        """The surveys before and after, with what became of roles, and what to note.

        Roles that a table knows of the same model, text and settings are not measured again.
        """
        after, notes = self._surveyed(small), []
        if known is None or not _same_survey(known, self.subject, after):
            known = self._surveyed(self.subject)
        else:
            notes.append("The roles before are those that the run of --scores has.")
        was, now = known.details["roles"], after.details["roles"]
        after.details["role_survival"] = role_survival(was, now, self.subject.heads, small.heads)
        return known, after, notes

    def _surveyed(self, one: Subject) -> HeadTable:
        # Of a stack all layers may have gone.
        paired = isinstance(self.read.text, Corpus) and self.read.text.paired
        alone = "cross" in self.subject.anatomy.stacks and not paired  # the encoder is looked at
        stacks = [s for s in one.anatomy.stacks if s == "enc" or not alone]
        return survey(
            one,
            self.read.text,
            treebank=self.read.treebank,
            roles=True,
            reading=ReadingOptions(stacks=stacks, batch_size=self.batch_size),
            run=ShardWork(folder=None if self.kept is None else self.kept / one.weights_hash),
        )


def _same_survey(known: HeadTable, subject: Subject, after: HeadTable) -> bool:
    """Whether a table has the roles of the whole model, judged as those that are left were."""
    if "roles" not in known.details or "control" in known.details or known.heads != subject.heads:
        return False

    def how(about: dict[str, Any]) -> list[Any]:
        data = [one["data"] for one in about.get("corpora", {}).values()]
        return [data, about.get("convention"), about.get("seed") or 0, about.get("settings")]

    about = {**known.provenance, **known.origins.get("role", {})}
    return about.get("weights") == subject.weights_hash and how(about) == how(after.provenance)


#: The most heads that a line names for each thing that became of a role.
_NAMED = 3


def survival_rows(after: HeadTable, whole: int) -> tuple[str, list[list[Any]]]:
    """What was surveyed, and how many heads have each role before and after, and which."""
    survival, left = after.details["role_survival"], len(after.heads)
    title = (
        f"Roles of the heads that are left, surveyed anew: {left} of {whole} heads, both models on "
        f"{after.provenance['corpus']}{'' if len(survival) else '; none found'}"
    )
    rows: list[list[Any]] = []
    for role, own in survival.groupby("role", sort=False):
        names, parts = own[["stack", "layer", "head"]].astype(str).agg(".".join, axis=1), []
        for change in ("kept", "removed", "lost", "gained"):
            heads = names[own["change"] == change].tolist()
            more = [f"{len(heads) - _NAMED} more"] * (len(heads) > _NAMED)
            parts += [f"{change} {', '.join([*heads[:_NAMED], *more])}"] * bool(heads)
        was, now = (own["change"] != "gained").sum(), own["change"].isin(["kept", "gained"])
        rows.append([role, was, "->", now.sum(), "; ".join(parts)])
    return title, rows
