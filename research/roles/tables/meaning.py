"""Coreference, features of words, arguments, and the roles of a decoder."""

from __future__ import annotations

from typing import Any

from ..reading import Survey, annotated, layer_of, role_heads, twin, verdicts
from .markdown import MODELS, NONE, Surveys, encoders, named, percent, star, table, three

__all__ = ["coreference", "decoder", "features", "first_row", "gap"]

Row = dict[str, Any]

#: Clark et al. 2019, Table 2.
ANTECEDENTS = {"all": 65, "pronoun": 64, "proper": 73, "nominal": 58}


def coreference(surveys: Surveys) -> str:
    """Antecedent accuracy of the best head, chosen on half of the documents, against the rules."""
    names = {
        f"{short}-{corpus}": f"{title}, {part}"
        for corpus, part in (("gum", "dev"), ("coref", "train"))
        for short, title in MODELS.items()
    }
    rows = []
    for title, one in named(surveys, names).items():
        by_kind: dict[str, list[dict[str, Any]]] = {}
        for row in one.get("coreference", []):
            by_kind.setdefault(row["kind"], []).append(row)
        chance = percent(twin(one, "coreference"))
        rows += [[title, *_choice(kind, found), chance] for kind, found in by_kind.items()]
    head = ["model, documents", "mentions", "n", "head", "held out [95%]", "naive", "nearest",
            "head match", "rules", "BERT-base, published", "twin's best"]  # fmt: skip
    return table(head, rows)


def _choice(kind: str, found: list[dict[str, Any]]) -> list[str]:
    one = found[0]
    rules = [percent(row["baseline"]) + star(row) for row in found]
    interval = f"{percent(one['accuracy'])} [{percent(one['low'])}, {percent(one['high'])}]"
    published = str(ANTECEDENTS.get(kind, NONE))
    told = [kind, str(one["n"]), f"`{one['head']}`", interval, percent(one["naive"])]
    return [*told, *rules, published]


def gap(surveys: Surveys) -> str:
    """GAP: of two names the one that is meant."""
    rows = []
    for title, one in encoders(surveys, "gap").items():
        by_kind: dict[str, list[dict[str, Any]]] = {}
        for row in one.get("pronoun_choice", []):
            by_kind.setdefault(row["kind"], []).append(row)
        rows += [[title, *_choice(kind, found)[:-1]] for kind, found in by_kind.items()]
    head = [
        "model",
        "pronouns",
        "n",
        "head",
        "held out [95%]",
        "naive",
        "nearest name",
        "first name",
    ]
    return table(head, rows)


def features(surveys: Surveys) -> str:
    """Kovaleva's features, links and arguments: the best head, held out, beside its baseline."""
    rows = []
    for title, one in annotated(surveys).items():
        found = [row for row in one.get("features", []) if row["origin"] == "all"]
        found += [*one.get("links", []), *one.get("arguments", [])]
        for row in found:
            what = row.get("feature") or row["link"]
            chance = [three(row["baseline"]), three(_by_twin(one, row))]
            cells = [title, what, f"`{row['head']}`", str(row["n"]), _attention(row), *chance]
            rows.append([*cells, str(row["heads_above"])])
    head = ["model", "what is looked at", "best head", "sentences", "attention [95%]",
            "by chance", "twin's best", "heads above chance"]  # fmt: skip
    return table(head, rows)


def _attention(row: Row) -> str:
    """What is compared with chance, with its interval; where nothing is, the value."""
    told = row.get("compared_low") is not None
    names = ("compared", "compared_low", "compared_high") if told else ("value", "low", "high")
    value, low, high = (row[name] for name in names)
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _by_twin(survey: Survey, row: Row) -> float | None:
    """The twin's best head; for kinds of words its lead over other words, times the row's own.

    That lead is kept beside verdicts alone, the same beside each of a kind: None where there is no
    verdict.
    """
    if "feature" not in row:
        return twin(survey, row["link"].replace("->", "_to_"))
    if row["baseline"] is None:
        return twin(survey, f"to_{row['feature']}")
    stack = row["head"].partition(".")[0] + "."
    for one in verdicts(survey, "feature"):
        if one["label"] == row["feature"] and one["head"].startswith(stack) and one["control"]:
            return float(row["baseline"] * one["control"] / one["baseline"])
    return None


def first_row(surveys: Surveys) -> str:
    """What the row of [CLS] gives a word in the last layer, mean over heads, beside any words."""
    models = annotated(surveys)
    rows: dict[str, dict[str, str]] = {}
    for title, one in models.items():
        told = one.get("first_row", [])
        last = max((row["layer"] for row in told), default=0)
        for row in told:
            if row["layer"] == last:
                mine = row["value"] if row.get("compared") is None else row["compared"]
                cell = f"{three(mine)} / {three(row['baseline'])}"
                rows.setdefault(row["feature"], {})[title] = cell
    lines = [[name, *(cells.get(title, NONE) for title in models)] for name, cells in rows.items()]
    return table(["[CLS] looks at", *models], lines)


def decoder(surveys: Surveys) -> str:
    """SmolLM2: heads of each role, their layers, the clearest, and the twin."""
    if "smollm2" not in surveys:
        return "(not surveyed yet)"
    one = surveys["smollm2"]
    rows = []
    for role, heads in role_heads(one, "dec").items():
        top = max(verdicts(one, role), key=lambda row: row["value"])
        figures = f"{top['value']:.2f} / {three(top['baseline'])} / {three(top['control'])}"
        layers = sorted({layer_of(head) for head in heads})
        span = f"{layers[0]}–{layers[-1]}"
        rows.append(
            [
                role,
                f"{len(heads)} of {len(one['index'])}",
                span,
                f"`{top['head']}` {top['label']}",
                figures,
            ]
        )
    return table(["role", "heads", "layers", "clearest", "figure / baseline / twin"], rows)
