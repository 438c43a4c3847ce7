"""Where heads rest and point: offsets, rare tokens, separators."""

from __future__ import annotations

from ..findings import findings
from ..reading import annotated, by_layer, twin, verdicts
from .markdown import Survey, Surveys, percent, table, three

__all__ = ["positional", "rare", "rest", "separator"]


def positional(surveys: Surveys) -> str:
    """Positional heads of encoders with their confidence; the nearest one where there is none."""
    rows = []
    for name, one in surveys.items():
        held = [row["head"] for row in verdicts(one, "positional") if row["head"][:3] == "enc"]
        nearest = [] if held else _most_positional(one)
        if held or nearest:
            told = "; ".join(_at_offset(one, head) for head in held or nearest)
            chance = percent(twin(one, "best_offset_share"))
            rows.append([name, told if held else f"none; nearest {told}", chance])
    head = ["survey", "heads: offset, share, confidence", "twin's best share"]
    return table(head, rows)


def _at_offset(survey: Survey, head: str) -> str:
    at = survey["index"].index(head)
    where, share, sure = (survey["columns"][column][at] for column in _OFFSET)
    return f"`{head}` {where:+.0f}, {percent(share)}, {sure:.2f}"


_OFFSET = ("best_offset", "best_offset_share", "confidence")


def _most_positional(survey: Survey) -> list[str]:
    """The encoder head with the largest share at one offset."""
    shares = zip(survey["columns"]["best_offset_share"], survey["index"], strict=True)
    enc = [(share, head) for share, head in shares if head.startswith("enc.")]
    return [max(enc)[1]] if enc else []


def rare(surveys: Surveys) -> str:
    """The encoder head that points most often to one of the two rarest tokens."""
    rows = [
        [name, f"`{one['head']}`", percent(one["share"]), percent(one["rarest"]),
         percent(one["chance"]), percent(one["twin"]), one["counts"] or "not said",
         "not judged" if one["holds"] is None else "yes" if one["verdict"] else "no"]
        for name, one in findings(surveys)["a rare-word head in the first layer"].items()
    ]  # fmt: skip
    head = ["survey", "head", "two rarest", "the rarest", "chance", "twin's best", "counts of"]
    head.append("a role")
    return table(head, rows)


def separator(surveys: Surveys) -> str:
    """Attention to [SEP] and [CLS] and the gradient there, layer by layer."""
    models = annotated(surveys)
    rows = []
    for title, one in models.items():
        ends, starts = by_layer(one, "separator"), by_layer(one, "first")
        lines = {
            "mass on [SEP]": ends,
            "mass on [CLS]": starts,
            "mass on both": [end + start for end, start in zip(ends, starts, strict=True)],
            "[SEP] to [SEP]": by_layer(one, "separator_to_separator"),
            "breadth of [SEP]'s row": by_layer(one, "separator_breadth"),
            **{f"gradient on {target}": _slopes(one, target) for target in ("separator", "first")},
        }
        rows += [
            [title, name, " ".join(f"{v:.2f}" for v in line)]
            for name, line in lines.items()
            if line
        ]
    return table(["model", "what", "layers, from 0"], rows)


def _slopes(survey: Survey, target: str) -> list[float]:
    rows = survey.get("noop", [])
    return [row["share"] for row in rows if row["target"] == target and row["stack"] == "enc"]


def rest(surveys: Surveys) -> str:
    """Syntactic roles: mass on the resting place with and without the relation."""
    rows = []
    for name, one in findings(surveys)["syntactic heads rest where their relation is not"].items():
        for place in ("separator", "first"):
            told = one[place]
            held = f"{told['rest_less_with_relation']} of {told['roles']}"
            rows.append([name, place, held, three(told["with"]), three(told["without"])])
    head = ["survey", "place", "roles that rest less with their relation", "mass with", "without"]
    return table(head, rows)
