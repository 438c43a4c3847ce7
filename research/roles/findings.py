"""Published findings of Clark et al. and Voita et al., each asked of the surveys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headcount.rooms.rarity.rare import OWN_TEXT

from .reading import Survey, Surveys, best, by_layer, layer_of, twin, verdicts

__all__ = ["findings"]

#: What "far above the baseline" means here, in accuracy; Clark's det and dobj are 0.43 and 0.47.
FAR = 0.2
#: Voita et al. 2019, section 5.1: positional heads are confident.
CONFIDENT = 0.8
LEVEL = 0.05
#: Effect sizes, so that a p value alone decides nothing: how much more of the attention must rest,
#: how much of other tokens' gradient counts as little, by how much a head must beat head match.
MORE_REST, LITTLE, AHEAD = 0.05, 0.5, 0.05
ENCODERS = ("minilm", "e5-small")
#: Both encoders were trained on English alone: the findings are not asked of these.
OTHER_LANGUAGES = ("-pud-de", "-pud-fr", "-pud-ru")
OBJECTS = ("obj", "dobj")


def findings(surveys: Surveys) -> dict[str, dict[str, Any]]:
    """Finding to survey to whether it holds there, with the figures that decide."""
    asked: dict[str, Callable[[Survey], dict[str, Any] | None]] = {
        "det far above the offset": lambda one: far(one, ("det",)),
        "object far above the offset": lambda one: far(one, OBJECTS),
        "no head does it all": specialised,
        "positional heads are confident": confident,
        "a rare-word head in the first layer": rare,
        "upper layers rest on separators": resting,
        "separators look at separators": separators,
        "syntactic heads rest where their relation is not": resting_elsewhere,
        "the loss does not mind separators": unminded,
        "a head finds antecedents": antecedents,
        "a head picks the name that is meant": names,
    }
    found: dict[str, dict[str, Any]] = {}
    english = {name: one for name, one in surveys.items() if not name.endswith(OTHER_LANGUAGES)}
    for finding, ask in asked.items():
        answers = {name: ask(one) for name, one in english.items()}
        found[finding] = {name: answer for name, answer in answers.items() if answer}
    return found


def far(survey: Survey, relations: tuple[str, ...]) -> dict[str, Any] | None:
    """Whether a relation's best head lies far above the best offset, on held-out sentences."""
    rows = [row for relation in relations if (row := best(survey, relation))]
    if not rows:
        return None
    [row] = rows[:1]
    lead = row["accuracy"] - row["baseline"]
    sure = row["p_adjusted"] is not None and row["p_adjusted"] <= LEVEL
    return {
        "holds": lead >= FAR and sure,
        "lead": round(lead, 3),
        **{name: row.get(name) for name in ("head", "accuracy", "baseline", "control", "n")},
    }


def specialised(survey: Survey) -> dict[str, Any] | None:
    """Whether the best head over all relations misses more than half of the arcs."""
    row = best(survey, "all")
    if row is None:
        return None
    names = ("head", "accuracy", "baseline", "control")
    return {"holds": row["accuracy"] < 0.5, **{name: row.get(name) for name in names}}


def confident(survey: Survey) -> dict[str, Any] | None:
    """Whether every positional head is confident; nothing where there is none."""
    sure = dict(zip(survey["index"], survey["columns"]["confidence"], strict=True))
    rows = [row for row in verdicts(survey, "positional") if row["head"].startswith("enc.")]
    if not rows:
        return None
    heads = {row["head"]: [row["label"], row["value"], sure[row["head"]]] for row in rows}
    return {"holds": min(one[-1] for one in heads.values()) > CONFIDENT, "heads": heads}


def rare(survey: Survey) -> dict[str, Any] | None:
    """Whether the encoder head that points most to the two rarest tokens is in the first layer."""
    rows = [row for row in survey.get("rarity", []) if row["head"].startswith("enc.")]
    if not rows:
        return None
    top = max(rows, key=lambda row: row["share"])
    held = {row["head"] for row in verdicts(survey, "rare")}
    first = layer_of(top["head"]) == 0
    names = ("head", "share", "rarest", "chance", "counts")
    figures = {name: top.get(name) for name in names} | {"verdict": top["head"] in held}
    # By counts of the text under test nothing is judged (decision 0012).
    holds = None if top.get("counts") == OWN_TEXT else first and top["head"] in held
    return {"holds": holds, **figures, "twin": twin(survey, "rare_two")}


def resting(survey: Survey) -> dict[str, Any] | None:
    """Whether separators take over half of the attention of the upper middle layers."""
    if survey["plan"]["model"] not in ENCODERS:
        return None
    mass, first = by_layer(survey, "separator"), by_layer(survey, "first")
    upper = mass[len(mass) // 2 : len(mass) - len(mass) // 6]
    return {
        "holds": min(upper) > 0.5,
        "separator_by_layer": [round(value, 3) for value in mass],
        "first_by_layer": [round(value, 3) for value in first],
    }


def separators(survey: Survey) -> dict[str, Any] | None:
    """First argument: whether [SEP] looks at [SEP] more than at all else, where it is looked at."""
    if survey["plan"]["model"] not in ENCODERS:
        return None
    own = by_layer(survey, "separator_to_separator")
    mass = by_layer(survey, "separator")
    layer = mass.index(max(mass))
    told = {"most_looked_at_in_layer": layer, "by_layer": [round(value, 3) for value in own]}
    return {"holds": own[layer] > 0.5, **told}


def resting_elsewhere(survey: Survey) -> dict[str, Any] | None:
    """Second argument: from how many syntactic roles words without the relation rest more."""
    rows = survey.get("rest", [])
    if not rows or survey["plan"]["model"] not in ENCODERS:
        return None
    told: dict[str, Any] = {}
    for rest in ("separator", "first"):
        asked = [row for row in rows if row["rest"] == rest and row["p_adjusted"] is not None]
        held = [row for row in asked if row["p_adjusted"] <= LEVEL]
        told[rest] = {
            "roles": len(asked),
            "rest_less_with_relation": len(held),
            "with": _mean([row["value"] for row in asked]),
            "without": _mean([row["baseline"] for row in asked]),
        }
    share = told["separator"]
    often = share["rest_less_with_relation"] > share["roles"] / 2
    return {"holds": often and share["without"] - share["with"] >= MORE_REST, **told}


def unminded(survey: Survey) -> dict[str, Any] | None:
    """Third argument: whether the loss minds separators half as much at most, in the upper half."""
    rows = [row for row in survey.get("noop", []) if row["stack"] == "enc"]
    if not rows:
        return None
    share = {
        target: [row["share"] for row in rows if row["target"] == target]
        for target in ("separator", "first", "punctuation")
    }
    upper = [row for row in rows if row["target"] == "separator"]
    upper = upper[len(upper) // 2 :]
    most = max(upper, key=lambda row: row["share"])
    holds = _sure(LITTLE - most["share_high"], LITTLE - most["share_low"], 0)
    figures = {name: most[name] for name in ("layer", "share", "share_low", "share_high")}
    return {"holds": holds, "most": figures, "gradient_as_share_of_other_tokens": share}


def antecedents(survey: Survey) -> dict[str, Any] | None:
    """Whether the best head surely beats head match; GAP marks one mention a text only."""
    found = None if "pronoun_choice" in survey else _chosen(survey, "coreference")
    if found is None:
        return None
    lead = [found[end] - found["against"]["head match"] for end in ("low", "high")]
    return found | {"holds": _sure(*lead, AHEAD)}


def names(survey: Survey) -> dict[str, Any] | None:
    """Whether the best head picks the name that is meant more often than the nearest is (GAP)."""
    return _chosen(survey, "pronoun_choice")


def _chosen(survey: Survey, kind: str) -> dict[str, Any] | None:
    rows = [row for row in survey.get(kind, []) if row["kind"] == "all"]
    if not rows:
        return None
    against = {row["against"]: row["baseline"] for row in rows}
    p = {row["against"]: row["p_adjusted"] for row in rows}
    figures = {name: rows[0][name] for name in ("head", "accuracy", "low", "high", "naive", "n")}
    if p["nearest"] is None:  # too few documents for any p value to survive the correction
        return {"holds": None, **figures, "against": against}
    beats = {name: value is not None and value <= LEVEL for name, value in p.items()}
    return {"holds": beats["nearest"], **figures, "against": against, "beats": beats}


def _sure(low: float, high: float, bound: float) -> bool | None:
    """Whether the whole interval is at least the bound, or all of it below; None between.

    >>> _sure(0.1, 0.2, 0.05), _sure(0.0, 0.2, 0.05), _sure(-0.2, 0.0, 0.05)
    (True, None, False)
    """
    return True if low >= bound else False if high < bound else None


def _mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None
