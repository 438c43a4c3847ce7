"""What `headcount prune` prints: the curve as a table, what goes, what it costs, how it loads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import headcount as hc
from headcount import pruning
from headcount.cli.printing import output, print_json, print_notes, print_rows

if TYPE_CHECKING:
    import pandas as pd


def print_pruning(
    done: pruning.Pruned, subject: hc.Subject, place: pruning.OutputFolder | None, *, json: bool
) -> None:
    """Print what came of a pruning, for people or for machines."""
    from headcount.importance import role_sentences

    if json:
        print_json(_pruning_json(done, subject))
        return
    plan = done.plan
    if plan is not None:
        _print_curve(plan)
    if plan is not None and plan.found is not None:
        _print_verdict(plan)
    if done.going:
        _print_going(done.going, subject, would=not done.saved)
        _print_costs(*done.costs)
    if plan is not None and done.going:
        _print_quality(plan)
    if done.survey is not None:
        _print_survival(done.survey, len(subject.heads))
    for sentence in [] if done.function is None else role_sentences(done.function):
        output().print(sentence)
    for prompt, before, after in done.said:
        output().print(f"{prompt!r}\n  before: {before!r}\n  after:  {after!r}", markup=False)
    for saved in done.saved.values():
        output().print(str(saved))
    print_notes([*subject.notes, *done.notes])
    if plan is not None and place is not None:
        output().print(f"Wrote {place.folder}/ (headcount ls {place.run} lists what run/ holds).")


#: The most heads that a line names for each thing that became of a role.
_NAMED = 3


def _print_survival(survey: hc.HeadTable, whole: int) -> None:
    """How many heads have each role before and after, and which kept, lost or gained it."""
    survival, left = survey.details["role_survival"], len(survey.heads)
    output().print(
        f"Roles of the heads that are left, surveyed anew: {left} of {whole} heads, both models on "
        f"{survey.provenance['corpus']}{'' if len(survival) else '; none found'}"
    )
    rows = []
    for role, own in survival.groupby("role", sort=False):
        names, parts = own[["stack", "layer", "head"]].astype(str).agg(".".join, axis=1), []
        for change in ("kept", "removed", "lost", "gained"):
            heads = names[own["change"] == change].tolist()
            more = [f"{len(heads) - _NAMED} more"] * (len(heads) > _NAMED)
            parts += [f"{change} {', '.join([*heads[:_NAMED], *more])}"] * bool(heads)
        before, after = (own["change"] != "gained").sum(), own["change"].isin(["kept", "gained"])
        rows.append([role, before, "->", after.sum(), "; ".join(parts)])
    print_rows(["role", "before", "", "after", "heads"], rows, right=("before", "after"))


def _print_verdict(plan: pruning.Plan) -> None:
    """The answer to the engineer's question, in a sentence, and what more would need."""
    found = pruning.can_go(plan.curve, plan.goal.max_loss)[0]
    for sentence in filter(None, (found.sentence, found.needed)):
        output().print(sentence)


def _print_curve(plan: pruning.Plan) -> None:
    """The order that decides, point by point; then all orders, value by value."""
    first = plan.orders[0]
    frame = plan.curve[(plan.curve["order"] == first.name) & (plan.curve["scope"] == first.scope)]
    frame = frame[~frame.duplicated("step")]  # what was healed is printed below
    row, unit = frame.iloc[0], pruning.unit_of(str(frame["metric"].iloc[0]))
    output().print(
        f"By {first.name}: {row['metric']} in {unit} (higher is {row['more']}) over {row['n']:,} "
        f"examples ({row['part']}), and its change from the whole model"
    )
    whole = int(row["heads_left"])
    titles = ["", "gone", "left", str(row["metric"]), "change", "95%", "p", "may lose", " "]
    points = pruning.in_points(frame).to_dict("records")
    print_rows(titles, [_point(one, whole, plan) for one in points], right=set(titles) - {"95%"})
    if len(plan.orders) > 1:
        _print_orders(plan.curve)


def _point(row: Mapping[Any, Any], whole: int, plan: pruning.Plan) -> list[str]:
    """A step of the curve, with its difference from the whole model, which has none itself."""
    step, left = row["step"], row["heads_left"]
    cells = ["→" if step == plan.step and step else "", str(whole - left), str(left)]
    cells += [f"{row['value']:.4g}"]
    if step:
        cells += [f"{row['delta']:+.3g}", _between(row["delta_low"], row["delta_high"], "+.3g")]
        cells += [_number(row["p"], ".2g"), f"{row['bound']:+.3g}"]
        cells += ["at chance" if pruning.at_chance(row) else ""]
    return cells


def _print_orders(curve: pd.DataFrame) -> None:
    """Values of all orders, a column each, by how many heads are left."""
    names = list(dict.fromkeys(zip(curve["order"], curve["scope"], strict=True)))
    titles = ["left", *(name if scope == "all" else f"{name}, {scope}" for name, scope in names)]
    found = {
        (row["order"], row["scope"], row["heads_left"]): row["value"]
        for row in pruning.in_points(curve).to_dict("records")
    }
    rows = [
        [left, *(_number(found.get((*name, left)), ".4g") for name in names)]
        for left in sorted(set(curve["heads_left"]), reverse=True)
    ]
    print_rows(titles, rows, right=titles)


def _print_going(going: Sequence[hc.Head], subject: hc.Subject, would: bool) -> None:
    """Which heads go, by stack, and their names."""
    counts, gone = Counter(head.stack for head in going), set(going)
    listed = [head for head in subject.heads if head in gone]
    where = ", ".join(f"{stack} {counts[stack]}" for stack in subject.anatomy.stacks)
    deed = "would go" if would else "removed"
    some = f"{len(going)} of {len(subject.heads)} heads"
    output().print(f"{some} {deed} ({where}): {', '.join(map(str, listed))}")


def _print_quality(plan: pruning.Plan) -> None:
    """The metric before and after, and the 95% bound of the loss; healed too."""
    lost = [pruning.lost_at(row) for row in plan.chosen.to_dict("records")]
    points = pruning.in_points(plan.chosen).to_dict("records")
    for row, most in zip(points, lost, strict=True):
        where = "held-out examples" if row["part"] == "held-out" else "examples"
        between = _between(row["delta_low"], row["delta_high"], "+.3g")
        how = "after training, " if row["healed"] else ""
        output().print(
            f"{how}{row['metric']} {row['value'] - row['delta']:.4g} -> {row['value']:.4g} "
            f"{pruning.unit_of(row['metric'])}: {row['delta']:+.3g} {between} on {row['n']:,} "
            f"{where}".replace("  ", " ")
        )
        if plan.found is None or row["healed"]:
            output().print(f"Without them: {most}.")


def _print_costs(before: pruning.ModelCosts, after: pruning.ModelCosts) -> None:
    """What the model costs on any machine."""
    lines = {
        "parameters": (before.parameters, after.parameters),
        f"operations of a forward ({before.tokens} tokens)": (before.flops, after.flops),
        "bytes of cache a token": (before.kv_bytes, after.kv_bytes),
    }
    for what, (was, now) in lines.items():
        if was:
            output().print(f"{what} {was:,.0f} -> {now:,.0f} ({now / was - 1:+.1%})")


def _pruning_json(done: pruning.Pruned, subject: hc.Subject) -> dict[str, Any]:
    """The same for machines."""
    before, after = done.costs
    found: dict[str, Any] = {
        "model": subject.name,
        "going": [str(head) for head in done.going],
        "heads": {"before": len(subject.heads), "after": len(subject.heads) - len(done.going)},
        "parameters": {"before": before.parameters, "after": after.parameters},
        "costs": {"before": before.to_json(), "after": after.to_json()},
        "saved": {
            what: {**vars(saved), "folder": str(saved.folder)} for what, saved in done.saved.items()
        },
        "notes": [*subject.notes, *done.notes],
        "said": [dict(zip(("prompt", "before", "after"), one, strict=True)) for one in done.said],
    }
    details, known = ({} if one is None else one.details for one in (done.survey, done.before))
    frames = {"function": done.function, "role_survival": details.get("role_survival")}
    frames |= {"roles": details.get("roles"), "roles_before": known.get("roles")}
    for name, frame in frames.items():
        found[name] = None if frame is None else frame.to_dict("records")
    plan = done.plan
    if plan is not None:
        search = plan.found
        found |= {
            "goal": plan.aim,
            "unit": pruning.unit_of(plan.sweep.baseline.name),
            "point": pruning.point_of(plan.sweep.baseline.name),
            "step": plan.step,
            "chosen": plan.chosen.to_dict("records")[-1],
            "limit": None if search is None else search.limit,
            "bounds": None if search is None else search.bounds.tolist(),
            "curve": plan.curve.to_dict("records"),
        }
    return found


def _between(low: float, high: float, form: str) -> str:
    return "" if low != low else f"[{low:{form}}, {high:{form}}]"


def _number(value: float | None, form: str) -> str:
    return "" if value is None or value != value else f"{value:{form}}"
