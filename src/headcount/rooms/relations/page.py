"""Relations on the page: the best head of each, against an offset (Clark et al. 2019, table 1)."""

from __future__ import annotations

from typing import Any

import pandas as pd

import headcount as hc
from headcount import cli, plugins
from headcount.errors import UsageError
from headcount.records import NA, to_strict
from headcount.reports import UD, Source, figure, held_out, row_head
from headcount.rooms.relations.syntactic import Syntactic
from headcount.surveys import RoleOptions

#: So many relations of a head are kept: those furthest above their baseline.
_MOST, _MOST_OF_MANY = 10, 6


_MANY_HEADS = 400


_QUESTION = ["stack", "relation", "direction"]


#: What a row of the table may be; the first is a verdict.
STATUS = (
    *("confirmed", "failed on the first half", "not significant"),
    *("under ten points above the offset", "too few cases", "not judged"),
)


_KEYS = ["stack", "layer", "head", "relation", "direction"]


def relation_part(source: Source) -> dict[str, Any] | None:
    """The questions with their baselines, each head's best rows, and the best head of each."""
    frame = source.frame("relations")
    if frame is None:
        return None
    held = _with_status(source, frame, _measured(frame))
    tested = held.drop_duplicates(_QUESTION).reset_index(drop=True)
    numbers = {tuple(row): place for place, row in enumerate(tested[_QUESTION].values.tolist())}
    questions = [_question(row) for row in tested.to_dict("records")]
    return {
        "note": _note(str(held["split"].iloc[0]), int(held["p_adjusted"].notna().sum())),
        "questions": questions,
        "status": STATUS,
        "heads": _by_head(source, held, numbers),
        "best": _best(source, held, _promised(frame), numbers),
    }


def _note(split: str, tests: int) -> str:
    """How heads were chosen, and what is faded."""
    halves = ", chosen on one half of the sentences and measured on the other,"
    significant = f", significant after correction for {tests:,} tests" if tests else ""
    return (
        f"The best head of each relation{halves if split == 'report' else ''} against the best "
        "fixed offset. Bold is confirmed: a verdict of the head, ten points above the offset on "
        f"both halves{significant}. Not judged: punctuation, the root, and all relations together."
    )


def _with_status(source: Source, frame: pd.DataFrame, held: pd.DataFrame) -> pd.DataFrame:
    """Why each row is a verdict of its head, or is not; verdicts are those of the run."""
    rule, roles = Syntactic(), source.frames.get("roles")
    arcs = frame[frame["split"] != "all"].groupby(_KEYS)["n"].sum()
    total = held[_KEYS].join(arcs.rename("arcs"), on=_KEYS)["arcs"].fillna(held["n"])
    status = pd.Series("failed on the first half", held.index)
    status[~(held["p_adjusted"] <= rule.level)] = "not significant"
    status[held["gain"] < rule.margin - 1e-9] = "under ten points above the offset"
    status[total < rule.support] = "too few cases"
    status[held["relation"].isin(rule.without)] = "not judged"
    if roles is None:
        status[status == "failed on the first half"] = "confirmed"
    else:
        said = roles[roles["role"] == "syntactic"]
        known = set(zip(said["stack"], said["layer"], said["head"], said["label"], strict=True))
        labels = held["relation"] + " " + held["direction"]
        keys = zip(held["stack"], held["layer"], held["head"], labels, strict=True)
        status[[key in known for key in keys]] = "confirmed"
    return held.assign(status=status)


def _measured(frame: pd.DataFrame) -> pd.DataFrame:
    """One split of the data: the held-out half where heads were chosen on the other."""
    held = held_out(frame)
    return held.assign(gain=held["accuracy"] - held["baseline"].fillna(0))


def _question(row: dict[Any, Any]) -> dict[str, Any]:
    words = {name: str(row[name]) for name in _QUESTION}
    words["meaning"] = UD.get(words["relation"].partition(":")[0], "")
    numbers = {"baseline": figure(row["baseline"], 3), "offset": figure(row["offset"])}
    return {**words, "n": int(row["n"]), **numbers}


def _by_head(
    source: Source, held: pd.DataFrame, numbers: dict[tuple[Any, ...], int]
) -> list[list[list[Any]]]:
    places = source.places
    found: list[list[list[Any]]] = [[] for _ in places]
    most = _MOST if len(places) <= _MANY_HEADS else _MOST_OF_MANY
    asked = held[~held["status"].isin(["too few cases"])]
    ranked = asked.assign(confirmed=asked["status"] == "confirmed")
    ranked = ranked.sort_values(["confirmed", "gain"], ascending=False, kind="stable")
    first = ~ranked.duplicated(["stack", "layer", "head", "relation"])
    best = ranked[first | ranked["confirmed"]]
    for row in best.groupby(["stack", "layer", "head"], sort=False).head(most).to_dict("records"):
        if (head := row_head(row)) in places:
            found[places[head]].append(_row(row, numbers))
    return found


def _promised(frame: pd.DataFrame) -> pd.DataFrame:
    """What heads gained on the half that they were chosen on."""
    chosen = frame[frame["split"] == "select"]
    gain = chosen["accuracy"] - chosen["baseline"].fillna(0)
    return chosen[_KEYS].assign(promised=gain).drop_duplicates(_KEYS)


def _best(
    source: Source,
    held: pd.DataFrame,
    promised: pd.DataFrame,
    numbers: dict[tuple[Any, ...], int],
) -> list[list[Any]]:
    """One row a relation: its best head and direction, chosen on the other half where there is."""
    selected = held[held["selected"]] if "selected" in held and held["selected"].any() else held
    ranked = selected.merge(promised, on=_KEYS, how="left")
    ranked = ranked.sort_values(["promised", "gain"], ascending=False, kind="stable")
    places = source.places
    # Every verdict has its row; a relation without one has its best head.
    said = held[held["status"] == "confirmed"].sort_values("gain", ascending=False, kind="stable")
    said = said.drop_duplicates(_QUESTION)
    bare = ranked.merge(
        said[["stack", "relation"]], on=["stack", "relation"], how="left", indicator=True
    )
    bare = bare[bare["_merge"] == "left_only"].groupby(["stack", "relation"], sort=False).head(1)
    best = pd.concat([said, bare])
    rows = best.sort_values("gain", ascending=False, kind="stable").to_dict("records")
    return [[places[row_head(row)], *_row(row, numbers)] for row in rows if row_head(row) in places]


def _row(row: dict[Any, Any], numbers: dict[tuple[Any, ...], int]) -> list[Any]:
    key = tuple(row[name] for name in _QUESTION)
    shares = [figure(row[name], 3) for name in ("accuracy", "low", "high")]
    return [numbers[key], *shares, figure(row["p_adjusted"], 2), STATUS.index(row["status"])]


def missed(source: Source) -> tuple[list[tuple[int, float, str]], list[int]]:
    """What heads came nearest to: place, part of the rule, words; and heads that were not judged.

    Of each head the relation nearest to ten points above its offset, of those with cases enough;
    not judged are the heads of stacks in which no relation has arcs enough.
    """
    frame, rule, places = source.frame("relations"), Syntactic(), source.places
    if frame is None:
        return [], []
    asked, near = frame[~frame["relation"].isin(rule.without)], []
    held = held_out(asked[asked["n"] >= rule.support / 2])
    for row in held.dropna(subset=["baseline"]).to_dict("records"):
        least, head = row["baseline"] + rule.margin, row_head(row)
        if head in places and least < 1:
            said = (
                f"{row['relation']} {row['direction']} {row['accuracy']:.2f}; the rule asks "
                f"{least:.2f}, ten points above the best offset"
            )
            if row["accuracy"] >= least:
                said += ", and on both halves of the sentences, significantly"
            near.append((places[head], row["accuracy"] / least, said))
    few = asked.query("split == 'all'").groupby("stack")["n"].max() < rule.support
    return near, [place for head, place in places.items() if few.get(head.stack, False)]


# --- In the terminal: survey --best-heads ---------------------------------------------------------


def check_best_heads(judge: Any, judging: RoleOptions, json: bool) -> None:
    """Refuse, before the work, a table that no tree could fill, or a format of none."""
    if judge.best_heads and judge.treebank is None and judging.parser is None:
        raise UsageError(
            "--best-heads is of relations, and there are no trees; give --treebank FILE (`sample` "
            "for the bundled one), or --text FILE --judging parser=NAME."
        )
    if judge.table_format != "text" and (json or not judge.best_heads):
        raise UsageError(
            f"--table-format {judge.table_format} is for the table of --best-heads, without "
            "--json; of a run's tables: headcount ls RUN --table relations,format=latex."
        )


def best_heads_json(table: hc.HeadTable) -> dict[str, Any]:
    """The same for machines."""
    best = hc.roles.best_heads(table.details["relations"])
    return {"best_heads": to_strict(best.to_dict("records"))}


def print_best_heads(table: hc.HeadTable, format: str) -> None:
    """Clark's Table 1, for people or to be pasted."""
    best, about = hc.roles.best_heads(table.details["relations"]), table.provenance
    if format != "text":
        shown = plugins.get("parts", "tables").frame_table("relations", best, format)
        cli.output().print(shown, soft_wrap=True, markup=False)
        return
    twin = ["random twin"] if "control" in best else []
    wide = cli.output().width >= 90 + 13 * len(twin)
    figures = ["arcs", "accuracy", "95%", "offset", *twin, "p", *["naive"] * wide]
    rows = []
    for row in best.to_dict("records"):
        cells = [f"{row['n']:,.0f}", _percent(row["accuracy"])]
        cells += [f"{_percent(row['low'])}–{_percent(row['high'])}"]
        cells += [f"{_percent(row['baseline'])} ({row['offset']:+.0f})"]
        cells += [_percent(row["control"])] if twin else []
        cells += [f"{row['p_chosen']:.2g}"]
        if row["head"] == NA:  # no sentence was left to judge on
            cells = [NA] * len(cells)
        cells += [f"{_percent(row['naive_accuracy'])} {row['naive_head']}"] * wide
        rows.append([row["relation"], row["head"], row["direction"], *cells])
    cli.print_rows(["relation", "head", "direction", *figures], rows, right=figures)
    cli.output().print(hc.roles.not_shown(best))
    cli.output().print(
        f"{', '.join(about.get('corpora', [about['corpus']]))}: head and offset are chosen on one "
        "half of the sentences and judged on the other. p: one-sided, paired by sentence, Holm "
        "over these rows." + wide * " naive: chosen and judged on all.",
        style="dim",
    )


def _percent(share: float) -> str:
    return NA if share != share else f"{100 * share:.1f}"
