"""How good a model is on a task, whole or with heads shut: run, compared, told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headcount import provenance
from headcount.cli.output import output, print_json, print_notes
from headcount.cli.progress import bar
from headcount.errors import StatsError

if TYPE_CHECKING:
    from headcount.heads import Head
    from headcount.subject import Subject
    from headcount.tasks import Comparison, Outcome, Task

__all__ = ["evaluate"]


def evaluate(
    subject: Subject,
    task: Task,
    heads: list[Head],
    *,
    batch_size: int,
    limit: int | None,
    seed: int | None,
    json: bool,
) -> None:
    """Score the model whole and, where heads are to be shut, without them; print both."""
    whole = _evaluated(subject, task, batch_size, [])
    without = _evaluated(subject, task, batch_size, heads) if heads else None
    loss, why = _compared(whole, without, seed)
    about = provenance.collect(
        **whole.provenance, subject=subject.describe(), limit=limit, seed=seed
    )
    if json:
        print_json(_told(whole, without, loss, heads, seed) | {"provenance": about})
        return
    _print(whole, without, loss, heads, seed)
    output().print(f"{about['task']['data']}; {subject!r}", style="dim")
    print_notes([*subject.notes, *whole.notes, *why])


def _compared(
    whole: Outcome, without: Outcome | None, seed: int | None
) -> tuple[Comparison | None, list[str]]:
    """The difference, tested; where too few examples allow no test, why there is none."""
    if without is None:
        return None, []
    try:
        return without.against(whole, seed=seed or 0), []
    except StatsError as error:
        return None, [f"The difference is not tested. {error}"]


def _evaluated(subject: Subject, task: Any, batch_size: int, heads: list[Head]) -> Outcome:
    from headcount.wiring import valve

    what = f"Scoring without {_names(heads)}" if heads else "Scoring"
    with bar(what, "examples") as progress, valve(subject, dict.fromkeys(heads, 0.0)):
        outcome: Outcome = task.evaluate(subject, batch_size=batch_size, progress=progress)
    return outcome


def _print(
    whole: Outcome,
    without: Outcome | None,
    loss: Comparison | None,
    heads: list[Head],
    seed: int | None,
) -> None:
    console = output()
    value, low, high = whole.interval(seed=seed or 0)
    console.print(f"{whole.name} {value:.4g} [{low:.4g}, {high:.4g}] over {len(whole):,} examples")
    if without is not None:
        change = f"{without.value - whole.value:+.3g}"
        if loss is not None:
            change += f" [{loss.low:+.3g}, {loss.high:+.3g}], p = {loss.p:.3g} ({loss.test})"
        console.print(f"{without.name} {without.value:.4g} without {_names(heads)}: {change}")
    if whole.signature:
        console.print(f"sacreBLEU {whole.signature}", style="dim")


def _told(
    whole: Outcome,
    without: Outcome | None,
    loss: Comparison | None,
    heads: list[Head],
    seed: int | None,
) -> dict[str, Any]:
    """The same for machines."""
    value, low, high = whole.interval(seed=seed or 0)
    told: dict[str, Any] = {
        "metric": whole.name,
        "value": value,
        "low": low,
        "high": high,
        "examples": len(whole),
        "signature": whole.signature,
        "notes": list(whole.notes),
    }
    if without is not None:
        change = {"value": without.value - whole.value} if loss is None else loss._asdict()
        shut = [str(head) for head in heads]
        told["without"] = {"shut": shut, "value": without.value, "difference": change}
    return told


def _names(heads: list[Head]) -> str:
    return ", ".join(str(head) for head in heads)
