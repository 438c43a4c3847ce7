"""`headcount prune`: remove the heads that a task can spare, and save the model that is left."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headcount as hc
from headcount import plugins, pruning
from headcount.cli.inputs import TaskArguments, parse_task, work_on
from headcount.cli.options import Json, Model, loaded
from headcount.cli.printing import output, print_json, print_notes, print_rows
from headcount.errors import RunError, UsageError
from headcount.models import LoadOptions, find
from headcount.pruning import RankingOptions, ResultOptions
from headcount.records import EngineOptions, check_head_set, check_once, names, option

if TYPE_CHECKING:
    import pandas as pd

# --- Its options --------------------------------------------------------------------------------

_goal = partial(option, panel="How many heads to prune (one of these)")
_order = partial(option, panel="Which heads are pruned first")
_learn = partial(option, panel="Learning (gates, healing)")
_train = partial(_learn, key_of="training")
_result = partial(option, panel="The result")


@dataclass(frozen=True)
class PruneArguments(ResultOptions):
    """How far to go, in which order, what is trained, and where the result is written."""

    max_loss: float | None = _goal(
        None,
        "POINTS",
        "The most that may be lost (95% bound, held-out examples), in points: BLEU or chrF points, "
        "hundredths of accuracy, F1 and correlations, nats of loss.",
    )
    keep: int | None = _goal(
        None, "N", "Keep N heads, of the stacks in --ranking stacks=.", least=1
    )
    drop_share: float | None = _goal(
        None, "SHARE", "Remove this share, e.g. 0.5; also reports the 95% upper bound of the loss."
    )
    heads: str | None = _goal(
        None,
        "HEADS",
        "Remove these, with commas between: enc.5.3, a layer (enc.5) or a range (enc.0-2); a task "
        "is not needed.",
    )
    gates: bool = _goal(
        False,
        None,
        "Learn which heads go: gates close while the model trains; with --keep, or with --training "
        "price=X, the paper's lambda.",
    )

    by: str = _order(
        "gradient",
        "SCORES",
        "gradient, ablation, contribution, relevance, random, or a column such as confidence; of "
        "several, with commas between, the first decides and the others are drawn next to it.",
    )
    scores: Path | None = _order(None, "RUN", "A run directory whose columns --by may name.")
    chat: bool = _order(
        False,
        None,
        "An lm task of an instruct model: each text as a user's turn, in its chat template.",
        instead="--task lm:FILE,chat=yes",
    )
    judge: str | None = _order(
        None,
        "FILE",
        "Judge by these examples, and choose heads on all of --task: a file like that of --task, "
        "or a task of its own.",
    )

    price: float | None = _train(
        None, "X", "The price of an open gate; the higher, the fewer heads are left.", "--lambda"
    )
    gate_steps: int = _train(pruning.GATE_STEPS, "N", "Training steps of gates.", least=1)
    learn: str = _train(
        "all", "WHAT", "Weights that learn with the gates: all, gates (none), enc or dec."
    )
    refit: bool = _learn(
        False,
        None,
        "Adjust the remaining heads to replace the pruned ones: closed form, seconds, no training.",
    )
    heal: bool = _learn(
        False, None, "Train what is left for a while, with the whole model as its teacher."
    )
    heal_steps: int = _train(pruning.HEAL_STEPS, "N", "Training steps of healing.", least=1)
    lr: float = _train(5e-5, "X", "Learning rate of weights.")
    train: str | None = _train(
        None,
        "TASK",
        "Learn from another task, written as --task is; by default from the half of the examples "
        "that heads are chosen on.",
    )

    out: Path | None = _result(
        None,
        "DIR",
        "Folder to write: model/ (loads again), run/ (scores, curve) and curve.svg.",
        "--out",
        "-o",
    )
    dry_run: bool = _result(False, None, "Show what would go and what it costs, write nothing.")


# --- Mistakes that show before anything is read or loaded ---------------------------------------

_GOALS = ("max_loss", "keep", "drop_share", "heads", "price")
_RANKING = ("by", "normalize", "scores", "step", "exact", "even", "at_least", "by_stack", "refit")


def _flag(name: str) -> str:
    word = name.replace("_", "-")
    for bundle in (PruneArguments, RankingOptions):
        for one in fields(bundle):
            if one.name == name and (family := one.metadata.get("key_of")):
                return f"--{family} {word}"
    return f"--{word}"


def _check(asked: PruneArguments, ranking: RankingOptions, has_task: bool) -> None:
    """Refuse what cannot be or cannot go together."""
    _check_goal(asked, has_task)
    _check_values(asked, ranking)
    if (asked.out is None) != asked.dry_run:
        which = "Both -o and --dry-run were" if asked.dry_run else "Neither -o nor --dry-run was"
        raise UsageError(f"{which} given; name a folder to write (-o DIR), or only look.")
    if (asked.export or asked.verify) and asked.dry_run:
        raise UsageError("--export and --verify write, and --dry-run does not; leave it out.")
    if asked.price is not None and not asked.gates:
        raise UsageError("--training price (lambda) is of gates; add --gates.")
    if asked.train is not None and not (asked.gates or asked.heal):
        raise UsageError(
            "--training train is what gates or healing learn from; add --gates or --heal."
        )
    if asked.heal and not has_task:
        raise UsageError("--heal needs a task to learn from, e.g. --task translation:f.tsv.")
    _check_read(asked, ranking)


def _check_goal(asked: PruneArguments, has_task: bool) -> None:
    given = [_flag(name) for name in _GOALS if getattr(asked, name) is not None]
    if len(given) != 1:
        which = f"{' and '.join(given)} were both given" if given else "No goal was given"
        raise UsageError(
            f"{which}; say how many heads to prune, with one of {', '.join(map(_flag, _GOALS))}."
        )
    if asked.gates and given[0] not in ("--training price", "--keep"):
        raise UsageError(f"--gates takes --training price=X or --keep, not with {given[0]}.")
    if asked.heads is None and not has_task:
        raise UsageError(
            f"{given[0]} needs a task to choose heads by, e.g. --task translation:test.tsv; "
            "only --heads does without."
        )


def _check_values(asked: PruneArguments, ranking: RankingOptions) -> None:
    pruning.read_goal(asked.max_loss, asked.keep, asked.drop_share)
    pruning.removed_counts(100, ranking.step)
    if asked.heads is not None:
        words = check_head_set(asked.heads)
        if not words:
            raise UsageError("--heads names no head; write it as enc.5.3, or several with commas.")
        check_once(words)
    if asked.learn not in ("all", "gates", "enc", "dec") and "*" not in asked.learn:
        told = "choose all, gates, enc or dec, or write names of weights with a *."
        raise UsageError(f"--training learn is '{asked.learn}'; {told}")
    if asked.price is not None and not 0 <= asked.price < math.inf:
        raise UsageError(f"--training price is {asked.price:g}; it must be 0 or more.")
    if not 0 < asked.lr < math.inf:
        raise UsageError(f"--training lr is {asked.lr:g}; it must be above 0.")


def _check_read(asked: PruneArguments, ranking: RankingOptions) -> None:
    """Refuse an option that nothing would read: whoever gave it expects something of it."""
    unread: dict[str, tuple[str, ...]] = {}
    if asked.heads is not None:
        unread["with --heads, which names them all"] = (*_RANKING, "stacks", "judge")
    if asked.gates:
        unread["with --gates, which learn the order"] = _RANKING
    else:
        unread["without --gates"] = ("gate_steps", "learn")
    if not asked.heal:
        unread["without --heal"] = ("heal_steps",)
    if not asked.heal and not asked.gates:
        unread["without --gates or --heal"] = ("lr",)
    given = {
        one.name
        for bundle in (asked, ranking)
        for one in fields(bundle)
        if getattr(bundle, one.name) != one.default
    }
    for when, unused in unread.items():
        for name in unused:
            if name in given:
                raise UsageError(f"{_flag(name)} means nothing {when}; leave it out.")
    if ranking.normalize is not None and "gradient" not in (names(asked.by) or ()):
        raise UsageError(
            "--ranking normalize is of the gradient score; rank --by gradient, or omit it."
        )


# --- The verb -----------------------------------------------------------------------------------


def prune_command(
    model: Model,
    task: TaskArguments,
    asked: PruneArguments,
    ranking: RankingOptions,
    engine: EngineOptions,
    load: LoadOptions,
    json: Json = False,
) -> None:
    """Prune the heads that a task can spare; save the smaller model.

    Heads are chosen on one half of the examples and judged on the other. A command that was
    killed goes on where it was when it is run again.

    [dim]headcount prune translator --task translation:sample --max-loss 0.5 -o small/[/dim]
    [dim]headcount prune ./my-classifier --task glue:sst2:SST-2 --drop-share 0.5 -o small/[/dim]
    [dim]headcount prune translator --heads enc.0.7,cross.5 -o small/[/dim]
    """
    _check(asked, ranking, task.given)
    where = engine.made()
    if where.remote and asked.gates:
        raise UsageError(
            "--engine ray measures scores and the curve; gates are trained on several processes by "
            "`accelerate launch -m headcount prune ...`."
        )
    find(model)
    place = None if asked.out is None else pruning.output_folder(asked.out, force=asked.force)
    table = None if asked.scores is None else hc.HeadTable.load(asked.scores)
    training = None if asked.train is None else parse_task(asked.train)
    spec = task.spec().in_chat(asked.chat) if task.given else None
    judging = None if asked.judge is None or spec is None else spec.beside(asked.judge)
    for one in (training, spec, judging):
        if one is not None:
            one.check_file()
    examples = None if spec is None else work_on(spec, ranking)
    subject = loaded(model, load)
    if ranking.restrict is not None:
        plugins.get("parts", "restrict")(subject, examples, asked, ranking, place, json)
        return
    how: dict[str, Any] = {"heads": asked.heads, "result": asked}
    if asked.heads is None:
        how |= {"keep": asked.keep} | ({} if judging is None else {"judge": judging.build()})
        if asked.gates:
            how |= {"price": asked.price, "train": asked.learn, "stacks": ranking.stacks}
            how["convention"] = ranking.convention
        else:
            how |= {name: getattr(asked, name) for name in ("by", "max_loss", "drop_share")}
            how |= {"table": table, "ranking": replace(ranking, limit=None, refit=asked.refit)}
    common = {"batch_size": ranking.examples, "seed": ranking.seed or 0}
    how |= {"engine": where}
    learned = None if training is None else training.build()
    done = _pruned(subject, examples, place, asked, {"task": learned, **common}, how | common)
    print_pruning(done, subject, place, json=json)
    if place is not None and not done.saved:
        raise RunError(f"No model was saved in {place.folder}/: no head is within the limit.")


def _pruned(
    subject: hc.Subject,
    task: Any,
    place: pruning.OutputFolder | None,
    asked: PruneArguments,
    training: dict[str, Any],
    how: dict[str, Any],
) -> pruning.Pruned:
    """Do the work, with bars; Ctrl-C says what was kept."""
    for kind, steps in (("gates", asked.gate_steps), ("heal", asked.heal_steps)):
        options = pruning.TrainingOptions(steps=steps, lr=asked.lr, **training)
        how[kind] = options if getattr(asked, kind) else None
    try:
        draw = None if place is None else plugins.part("plan figure")
        return pruning.prune_run(subject, task, place=place, draw=draw, **how)
    except KeyboardInterrupt:
        kept = "nothing was written."
        if place is not None and place.is_under_way:
            kept = f"what was done is in {place.folder}/, and the same command goes on."
        raise KeyboardInterrupt(f"Interrupted; {kept}") from None


# --- What is printed ------------------------------------------------------------------------------


def print_pruning(
    done: pruning.Pruned, subject: hc.Subject, place: pruning.OutputFolder | None, *, json: bool
) -> None:
    """Print what came of a pruning, for people or for machines."""
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
        for line in done.costs[1].after(done.costs[0]) if done.costs else ():
            output().print(line)
    if plan is not None and done.going:
        _print_quality(plan)
    room = plugins.part("agreement")
    if done.survey is not None:
        title, rows = room.survival_rows(done.survey, len(subject.heads))
        output().print(title)
        print_rows(["role", "before", "", "after", "heads"], rows, right=("before", "after"))
    for sentence in [] if done.function is None else room.role_sentences(done.function):
        output().print(sentence)
    for prompt, before, after in done.said:
        output().print(f"{prompt!r}\n  before: {before!r}\n  after:  {after!r}", markup=False)
    for saved in done.saved.values():
        output().print(str(saved))
    print_notes([*subject.notes, *done.notes])
    if plan is not None and place is not None:
        output().print(f"Wrote {place.folder}/ (headcount ls {place.run} lists what run/ holds).")


def _print_verdict(plan: pruning.Plan) -> None:
    """The answer to the engineer's question, in a sentence, and what more would need."""
    for found in pruning.can_go(plan.curve, plan.goal.max_loss)[:1]:  # none of a random order
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


def _pruning_json(done: pruning.Pruned, subject: hc.Subject) -> dict[str, Any]:
    """The same for machines."""
    found: dict[str, Any] = {
        "model": subject.name,
        "going": [str(head) for head in done.going],
        "heads": {"before": len(subject.heads), "after": len(subject.heads) - len(done.going)},
        "parameters": _both(done, lambda costs: costs.parameters),
        "costs": _both(done, lambda costs: costs.to_json()),
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


def _both(done: pruning.Pruned, figure: Callable[[Any], Any]) -> dict[str, Any]:
    """A figure before and after; nothing where no room counts costs."""
    return dict(zip(("before", "after"), map(figure, done.costs), strict=False))


def _between(low: float, high: float, form: str) -> str:
    return "" if low != low else f"[{low:{form}}, {high:{form}}]"


def _number(value: float | None, form: str) -> str:
    return "" if value is None or value != value else f"{value:{form}}"
