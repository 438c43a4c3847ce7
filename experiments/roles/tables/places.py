"""Where heads rest and point: offsets, rare tokens, separators."""

from __future__ import annotations

from ..findings import by_layer, findings, twin
from .markdown import Survey, Surveys, encoders, percent, table, three

__all__ = ["positional", "rare", "rest", "separator"]


def positional(surveys: Surveys) -> str:
    """Every positional head of an encoder with its confidence, and the twin's best share."""
    rows = []
    for name, answer in findings(surveys)["positional heads are confident"].items():
        share = percent(twin(surveys[name], "best_offset_share"))
        for head, (label, value, sure) in answer["heads"].items():
            rows.append([name, f"`{head}`", label, percent(value), f"{sure:.2f}", share])
    return table(["survey", "head", "where", "share", "confidence", "twin's best share"], rows)


def rare(surveys: Surveys) -> str:
    """The encoder head that points most often to one of the two rarest tokens."""
    rows = [
        [name, f"`{one['head']}`", percent(one["share"]), percent(one["rarest"]),
         percent(one["chance"]), percent(one["twin"]), "yes" if one["verdict"] else "no"]
        for name, one in findings(surveys)["a rare-word head in the first layer"].items()
    ]  # fmt: skip
    head = ["survey", "head", "two rarest", "the rarest", "blind pick", "twin's best", "a role"]
    return table(head, rows)


def separator(surveys: Surveys) -> str:
    """Attention to [SEP] and [CLS] and the gradient there, layer by layer."""
    models = encoders(surveys, "ewt")
    rows = []
    for title, one in models.items():
        lines = {
            "mass on [SEP]": by_layer(one, "separator"),
            "mass on [CLS]": by_layer(one, "first"),
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
