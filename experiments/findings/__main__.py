"""`python -m experiments.findings`: docs/results/findings.md, from the JSON files beside it."""

from __future__ import annotations

from collections import Counter

from .papers import FINDINGS
from .rule import RESULTS, Finding, overall

RULE = """\
*Written by `python -m experiments.findings` from the JSON files beside this page; do not edit it by hand.*

**How a row is judged.** Every finding has a bound: the smallest effect that would still bear it out, chosen from what the paper
says (not from our data). It **holds** where our whole 95% interval lies on the finding's side of the bound, **fails** where all of it lies on
the other side, and **cannot tell** otherwise: the data lack the power, or nothing was measured. Significance alone decides nothing. Counts over all
heads of a model have no interval and are compared as they are. Where models differ, each says its own. None of our models is the paper's own, so
"fails" means: not on these models, with these data.
"""


def main() -> None:
    counts: Counter[str] = Counter()
    lines = ["# The papers' findings on one page", "", RULE]
    for paper in dict.fromkeys(one.paper for one in FINDINGS):
        lines += [f"## {paper}", "", "| # | finding | published | bound | ours | verdict | from |"]
        lines += ["|--:|---|---|---|---|---|---|"]
        for number, one in enumerate(FINDINGS, 1):
            if one.paper == paper:
                row, verdict = _row(number, one)
                lines.append(row)
                counts[verdict.split(":")[0]] += 1
        lines.append("")
    told = ", ".join(f"{n} {word}" for word, n in counts.most_common())
    lines.insert(3, f"**{len(FINDINGS)} findings: {told}.**\n")
    (RESULTS / "findings.md").write_text("\n".join(lines), encoding="utf8")
    print(told)


def _row(number: int, one: Finding) -> tuple[str, str]:
    judged = one.judged()
    verdict = overall([word for _, word in judged])
    ours = "<br>".join(str(figure) for figure, _ in judged) or "not measured"
    sign = "" if one.bound != one.bound else f"{'≤' if one.at_most else '≥'} {one.bound:g}"
    if one.note:
        ours += f"<br>{one.note}"
    files = ", ".join(f"[{name}.json]({name}.json)" for name in one.source.split())
    where = "; ".join(filter(None, [one.shown, files, f"`{one.command}`" if one.command else ""]))
    cells = [str(number), one.claim, one.published, sign, ours, f"**{verdict}**", where]
    return "| " + " | ".join(cells) + " |", verdict


if __name__ == "__main__":
    main()
