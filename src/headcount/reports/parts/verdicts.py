"""What heads do: roles, relations (Clark et al. 2019, table 1), heads that are alike, exhibits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headcount import plugins
from headcount.records import Exhibit, Text, parse_head, token_texts
from headcount.reports.parts.look import asset, first_roles, looks
from headcount.reports.parts.numbers import (
    Fineness,
    Source,
    figure,
    figures,
    held_out,
    pack_map,
    printed,
    row_head,
)
from headcount.surveys.roles import KINDS

# --- The verdicts of each head, the strongest role first ----------------------------------------

_OFFSET = re.compile(r"offset ([+-]?\d+)")


def role_part(source: Source) -> list[list[dict[str, Any]]] | None:
    """For each head its verdicts, the one that counts first; None where roles were not judged."""
    frame = source.frames.get("roles")
    if frame is None:
        return None
    places = source.places
    found: list[list[dict[str, Any]]] = [[] for _ in places]
    for row in frame.to_dict("records"):
        if (head := row_head(row)) in places:
            found[places[head]].append(_verdict(row))
    order = first_roles()
    return [sorted(verdicts, key=lambda one: order.index(one["role"])) for verdicts in found]


def kind_part() -> list[dict[str, Any]]:
    """The closed list of roles with words and glyphs; colours are in the style sheet."""
    return [
        {
            "id": role,
            "title": "No role found" if role == "none" else look.title,
            "meaning": look.meaning,
            "d": look.glyph,
            "solid": look.solid,
            "rests": look.rests and role != "none",
            "shows": look.shows,
        }
        for role, look in looks().items()
    ]


def _verdict(row: dict[Any, Any]) -> dict[str, Any]:
    role = str(row["role"])
    known = role in KINDS
    words = str(row["evidence"] or row["label"])
    if role == "alignment" and pd.notna(row.get("baseline")):
        hits = f"{row['value']:.0%} of the time [{row['low']:.0%}, {row['high']:.0%}]"
        words = f"finds the word's source {hits}; guessing by position {row['baseline']:.0%}"
    words = "; ".join(filter(None, [words, row.get("beyond")]))
    verdict: dict[str, Any] = {
        "role": role if known else "other",
        "detail": words if known and role != "other" else f"{row['label']}: {words}",
        "label": str(row["label"]),
        "value": figure(row["value"], 3) if pd.notna(row.get("value")) else None,
    }
    for name in ("n", "p_adjusted", "control"):
        value = figure(row[name], 12 if name == "n" else 3) if pd.notna(row.get(name)) else None
        if value is not None:
            verdict[name] = value
    offset = _OFFSET.match(str(row["label"]))
    if offset:
        verdict["dir"] = int(offset[1])
    return verdict


# --- What a head without a role came nearest to --------------------------------------------------


def miss_part(source: Source, roles: list[list[dict[str, Any]]] | None) -> list[str]:
    """For each head without a role the rule that it missed by least; empty for the others.

    A rule is a share and the least that it asks for; the nearest is the largest part of that.
    """
    if roles is None:
        return []
    places, table = source.places, source.table
    best: dict[int, tuple[float, str]] = {}
    for what, column, least in _asked():
        values = table.numbers(column) if column in table.names else np.array([])
        for head, value in zip(table.heads, values, strict=False):
            said = f"{what} {value:.2f}; the rule asks {least:.2f}"
            if value >= least:
                said += " at the lower end of its 95% interval, and significance"
            _nearer(best, places[head], value / least, said)
    for place, part, said in _missed_relations(source):
        _nearer(best, place, part, said)
    for place in _unjudged(source):
        part, said = best.get(place, (0.0, ""))
        best[place] = part, f"{said}; {TOO_FEW}".removeprefix("; ")
    return ["" if own else best.get(place, (0, ""))[1] for place, own in enumerate(roles)]


def _nearer(best: dict[int, tuple[float, str]], place: int, part: float, said: str) -> None:
    if part == part and part > best.get(place, (0.0, ""))[0]:  # NaN is not equal to itself
        best[place] = part, said


def _syntactic() -> Any:
    """The rule of heads that follow relations, where a room has it."""
    plugin = plugins.plugin_of("roles", "syntactic")
    return None if plugin is None else plugin.load()()


#: Of a head that was asked along no relation, for none occurs often enough.
TOO_FEW = "relations not judged: too few arcs"


def _unjudged(source: Source) -> list[int]:
    """The heads of stacks in which relations were counted, and none has arcs enough."""
    frame, rule = source.frame("relations"), _syntactic()
    if frame is None or rule is None:
        return []
    most = frame[~frame["relation"].isin(rule.without)].query("split == 'all'")
    few = most.groupby("stack")["n"].max() < rule.support
    return [place for head, place in source.places.items() if few.get(head.stack, False)]


def _asked() -> Iterator[tuple[str, str, float]]:
    """What the rules that ask for one share measure: in words, its column, and the least."""
    from headcount.surveys.roles import all_roles

    for role in all_roles():
        yield from getattr(role, "asks", ())


def _missed_relations(source: Source) -> Iterator[tuple[int, float, str]]:
    """Each head's relation nearest to ten points above its offset, of those with cases enough."""
    frame, rule = source.frame("relations"), _syntactic()
    if frame is None or rule is None:
        return
    held = held_out(frame[~frame["relation"].isin(rule.without) & (frame["n"] >= rule.support / 2)])
    for row in held.dropna(subset=["baseline"]).to_dict("records"):
        least, head = row["baseline"] + rule.margin, row_head(row)
        if head in source.places and least < 1:
            said = (
                f"{row['relation']} {row['direction']} {row['accuracy']:.2f}; the rule asks "
                f"{least:.2f}, ten points above the best offset"
            )
            if row["accuracy"] >= least:
                said += ", and on both halves of the sentences, significantly"
            yield source.places[head], row["accuracy"] / least, said


# --- Relations ----------------------------------------------------------------------------------

#: So many relations of a head are kept: those furthest above their baseline.
_MOST, _MOST_OF_MANY = 10, 6
_MANY_HEADS = 400
_QUESTION = ["stack", "relation", "direction"]
#: What a row of the table may be; the first is a verdict.
STATUS = (
    *("confirmed", "failed on the first half", "not significant"),
    *("under ten points above the offset", "too few cases", "not judged"),
)
#: The relations of Universal Dependencies in a few words.
UD = json.loads(asset("relations.json"))
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
        f"both halves{significant}."
    )


def _with_status(source: Source, frame: pd.DataFrame, held: pd.DataFrame) -> pd.DataFrame:
    """Why each row is a verdict of its head, or is not; verdicts are those of the run."""
    from headcount.surveys.roles import Syntactic

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


# --- Which heads resemble one another -----------------------------------------------------------


def pair_part(source: Source) -> dict[str, Any] | None:
    """The map of heads, its stress, and for each head its nearest with their distance."""
    pairs = source.pairs
    if "mds" not in pairs or "heads" not in pairs:
        return None
    places = source.places
    rows = {
        places[head]: row
        for row, name in enumerate(pairs["heads"].tolist())
        if (head := parse_head(str(name))) in places
    }
    numbers = {row: place for place, row in rows.items()}
    at = [rows.get(place) for place in range(len(places))]
    known = np.array([np.nan if row is None else pairs["mds"][row, 0] for row in at])
    other = np.array([np.nan if row is None else pairs["mds"][row, 1] for row in at])
    return {
        "x": figures(known, 3),
        "y": figures(other, 3),
        "near": [[] if row is None else _near(pairs, row, numbers) for row in at],
        "notes": {
            stack: _map_note(pairs, row) for row, stack in enumerate(_words(pairs, "stacks"))
        },
    }


def _near(pairs: dict[str, np.ndarray], row: int, numbers: dict[int, int]) -> list[list[Any]]:
    found = []
    for other in pairs["nearest"][row].tolist():
        if other >= 0 and other in numbers:
            found.append([numbers[other], figure(pairs["js"][row, other], 3)])
    return found


def _map_note(pairs: dict[str, np.ndarray], row: int) -> str:
    """What a stack's map is, how far it may be trusted, and whether layers hang together."""
    words = ["Near means alike: Jensen-Shannon distance of maps (Clark et al. 2019, figure 6)."]
    if row < len(pairs.get("tokens", [])):
        words.append(f"Over {int(pairs['tokens'][row]):,} tokens.")
    stress = pairs.get("stress", np.array([]))[row : row + 1]
    for value in stress[np.isfinite(stress)]:
        words.append(f"Stress {value:.2f}: read neighbourhoods, not exact distances.")
    if "silhouette_shuffled" in pairs and np.isfinite(pairs["silhouette"][row]):
        found, (low, high) = pairs["silhouette"][row], pairs["silhouette_shuffled"][row]
        alike = "more alike than chance" if found > high else "no more alike than chance"
        values = f"silhouette {printed(found)}, shuffled {printed(low)} to {printed(high)}"
        words.append(f"Heads of a layer are {alike} ({values}).")
    return " ".join(words)


def _words(pairs: dict[str, np.ndarray], name: str) -> list[str]:
    return [str(word) for word in pairs.get(name, np.array([])).tolist()]


# --- Exhibits -----------------------------------------------------------------------------------


def exhibit_part(source: Source) -> list[dict[str, Any]]:
    """Titles, tokens, words, and per stack the texts of queries and keys."""
    return [
        {
            "id": one.id,
            "title": one.title,
            "own": one.own_text,
            "texts": {name: _text(text) for name, text in one.texts.items()},
            "sides": {stack: list(sides) for stack, sides in one.sides.items()},
            "arcs": one.arcs,
            "links": one.links,
        }
        for one in source.exhibits
    ]


def lesion_part(source: Source) -> list[dict[str, Any]]:
    """By sentence how much less likely each word becomes without each head: `hc.lesions`."""
    frame = source.frame("lesions")
    if frame is None or not source.exhibits:  # a page without texts has no words either
        return []
    parts = []
    for _, rows in frame.groupby("sentence", sort=True):
        first = rows.iloc[0]
        heads = list(dict.fromkeys(map(row_head, rows.to_dict("records"))))
        count = len(rows) // len(heads)
        known = [(place, source.places.get(head)) for place, head in enumerate(heads)]
        added = rows["added"].to_numpy(float).reshape(len(heads), count)
        parts.append(
            {
                "source": str(first["source"]),
                "target": str(first["target"]) or None,
                "words": [str(word) for word in rows["word"][:count]],
                "heads": [place for _, place in known if place is not None],
                "added": [figures(added[row], 3) for row, place in known if place is not None],
            }
        )
    return parts


def map_blocks(source: Source, fineness: Fineness) -> Iterator[tuple[str, str]]:
    """Element id and packed maps, one block an exhibit, stack and layer; ids come from indices."""
    if fineness == "none":
        return
    width = {stack: heads for stack, _, heads in source.shape}
    for number, exhibit in enumerate(source.exhibits):
        for stack, layer in sorted(exhibit.maps):
            if stack in width:
                yield (
                    f"map-{number}-{stack}-{layer}",
                    pack_map(_full(exhibit, stack, layer, source, width[stack]), fineness),
                )


def _full(
    exhibit: Exhibit, stack: str, layer: int, source: Source, width: int
) -> NDArray[np.float32]:
    """A layer's maps at the places of its heads; those of heads that went are empty."""
    maps = exhibit.maps[stack, layer]
    if len(maps) == width:
        return maps
    own = [head.index for head in source.table.heads if head[:2] == (stack, layer)]
    full = np.zeros((width, *maps.shape[1:]), dtype="float32")
    for index, one in zip(own, maps, strict=False):
        full[index] = one
    return full


def _text(text: Text) -> dict[str, Any]:
    kept: dict[str, Any] = {
        "tokens": token_texts(text.tokens),
        "special": [place for place, special in enumerate(text.special) if special],
    }
    if text.words is not None and len(set(text.words)) > 1:
        kept["words"] = list(text.words)
        kept["word_texts"] = list(text.word_texts)
    return kept
