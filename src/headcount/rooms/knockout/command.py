"""`headcount score --by knockout`: whole sets of heads off together, on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import headcount as hc
from headcount import tasks
from headcount.cli import RunArguments, output, print_json, print_rows, print_run
from headcount.records import WorkOptions, heads_named

if TYPE_CHECKING:
    from headcount.records import Engine


def knock_out(
    subject: hc.Subject,
    task: tasks.Task,
    asked: Any,
    target: RunArguments,
    work: WorkOptions,
    engine: Engine,
    json: bool,
) -> None:
    """Do it, and print what each set adds beside its draws."""
    from headcount.rooms.knockout.whole_jobs import knockout, knockout_sentences

    sets: Any = target.out
    if asked.shut is not None:
        sets = {asked.shut: heads_named(asked.shut, subject.heads)}
    frame = knockout(
        subject,
        task,
        sets,
        mode=asked.mode or "zero",
        metric=asked.metric,
        run=target.out,
        batch_size=work.examples,
        seed=work.seed or 0,
        engine=engine,
    )
    if json:
        print_json({"knockout": frame.to_dict("records")})
        return
    ends, rows = ("added", "control", "excess"), []
    for row in frame.to_dict("records"):
        added = f"{row['added']:+.3g} [{row['added_low']:+.2g}, {row['added_high']:+.2g}]"
        control, excess = row["note"], ""
        if row["draws"]:
            control = f"{row['control']:+.3g} ({row['control_least']:+.2g} to "
            control += f"{row['control_most']:+.2g})"
            excess = f"{row['excess']:+.3g} [{row['low']:+.2g}, {row['high']:+.2g}]"
        rows.append((row["set"], row["heads"], added, control, excess, row["answer"]))
    print_rows(("set", "heads", *ends, ""), rows, right=("heads",))
    for sentence in knockout_sentences(frame):
        output().print(sentence)
    output().print(f"{len(task):,} examples of {task.name}; {subject!r}", style="dim")
    print_run(target.out)
