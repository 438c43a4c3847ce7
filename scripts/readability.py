"""How readable the prose of README and docs is: words, sentence length, share of passive.

``python scripts/readability.py --json FILE`` measures the tree as it is; ``--at REVISION`` as it
was. Code, tables, links' addresses and headings are no prose. A sentence counts as passive where a
form of *be* or *get* stands before a past participle, with at most one adverb between: a rough
count, the same for both sides of a comparison.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_IRREGULAR = (
    "begun|born|bought|broken|brought|built|caught|chosen|come|cut|done|drawn|driven|fed|felt|"
    "found|forgotten|frozen|given|gone|grown|heard|held|hidden|hung|kept|known|laid|led|left|lent|"
    "let|lost|made|meant|met|paid|put|read|run|said|seen|sent|set|shown|shut|sold|spent|spoken|"
    "spread|stood|taken|taught|told|thought|thrown|understood|won|worn|written"
)
PASSIVE = re.compile(
    r"\b(?:am|is|are|was|were|be|been|being|get|gets|got)\b(?: \w+ly| not| never| also| then)? "
    rf"(?:\w+ed|{_IRREGULAR})\b",
    re.IGNORECASE,
)


def prose(text: str) -> str:
    """The paragraphs and list items of a page, without code, tables, headings and addresses."""
    text = re.sub(r"^---\n.*?^---\n", "", text, count=1, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("**", "")
    lines = [line for line in text.splitlines() if not re.match(r"\s*(?:\||#|!|<)", line)]
    # A list item is a sentence of its own, with or without its stop.
    joined = "\n".join(re.sub(r"^\s*(?:[-*]|\d+\.) ", "\n", line) for line in lines)
    return re.sub(r"`[^`]*`", "x", joined)


def sentences(text: str) -> list[str]:
    """The sentences of prose, of three words or more."""
    parts = [" ".join(block.split()) for block in re.split(r"\n\s*\n", prose(text))]
    found = [one for part in parts for one in re.split(r"(?<=[.!?])\s+(?=[A-Z`*\"(])", part)]
    return [one for one in found if len(re.findall(r"\w+", one)) > 2]


def prose_words(text: str) -> int:
    """The words of a page's prose: without tables and code."""
    return len(re.findall(r"[\w'-]+", prose(text)))


def figures(text: str) -> dict[str, Any]:
    """Words of a whole page, and of its prose the sentence length and the share of passive.

    >>> figures("The head looks back. It was measured on ten texts.")
    {'words': 10, 'sentences': 2, 'words_per_sentence': 5.0, 'passive': 0.5}
    """
    found = sentences(text)
    words = sum(len(re.findall(r"[\w'-]+", one)) for one in found)
    return {
        "words": len(text.split()),
        "sentences": len(found),
        "words_per_sentence": round(words / max(len(found), 1), 1),
        "passive": round(sum(bool(PASSIVE.search(one)) for one in found) / max(len(found), 1), 3),
    }


def pages(at: str | None) -> dict[str, str]:
    """README, CHANGELOG and docs, as they are or as they were."""
    if at is None:
        found = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
        return {str(page.relative_to(ROOT)): page.read_text("utf8") for page in found}

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout

    names = git("ls-tree", "-r", "--name-only", at, "README.md", "CHANGELOG.md", "docs").split()
    return {name: git("show", f"{at}:{name}") for name in names if name.endswith(".md")}


def measured(at: str | None) -> dict[str, Any]:
    """README, the changelog, decisions, results and the other docs; and pages over 1,000 words."""
    groups: dict[str, list[str]] = {}
    long = {}
    for name, text in pages(at).items():
        parts = name.split("/")
        kind = parts[0] if len(parts) == 1 else parts[1] if parts[1:2] != parts[-1:] else "docs"
        groups.setdefault(kind if kind.endswith(".md") or kind in _KINDS else "docs", []).append(
            text
        )
        if len(text.split()) > 1_000:
            long[name] = len(text.split())
    return {
        **{kind: figures("\n\n".join(texts)) for kind, texts in sorted(groups.items())},
        "over_1000_words": dict(sorted(long.items(), key=lambda item: -item[1])),
    }


_KINDS = ("decisions", "results", "how-to")


def main() -> None:
    """Print the figures, or write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--at", help="A revision; without it the tree as it is.")
    parser.add_argument("--json", type=Path, help="Write here instead of printing.")
    asked = parser.parse_args()
    text = json.dumps({"at": asked.at or "tree", **measured(asked.at)}, indent=1) + "\n"
    if asked.json:
        asked.json.write_text(text, encoding="utf8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
