"""Lint the prose: proselint over the pages, and words of our own that nobody else would use.

``python scripts/prose.py`` prints each find with what to write instead, and exits 1 if there is
any. Pages are read without code; of the package, docstrings and messages are.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Generated from the JSON of results, whose notes are quoted as they were written.
GENERATED = ("docs/results/findings.md",)

#: What reads as a riddle, and what to write.
WORDS = {
    r"(?:is|are|was|were) told": "say who tells whom: 'the report says', 'it prints'",
    r"(?:is|was) said (?:that|of|first)": "name the speaker",
    r"surely": "'significantly', or give the 95% interval",
    r"for sure": "'within 95%', or give the interval",
    r"lets? go(?: of)?\b": "'remove', 'prune', 'free'",
    r"(?:let|lets) the rest": "'prune the others'",
    r"(?:if|as) they (?:lose|lost) what they lost": "'assuming the same drop'",
    r"could not have been seen by": "'smallest detectable loss'",
    r"has the say": "'decides'",
    r"as it were": "leave it out",
    r"needless to say": "leave it out",
    r"it goes without saying": "leave it out",
    r"in order to": "'to'",
    r"utili[sz]e[sd]?": "'use'",
}
_RIDDLE = re.compile("|".join(rf"(?P<w{n}>\b{word}\b)" for n, word in enumerate(WORDS)), re.I)


def faults(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, what stands there, and what to write instead.

    >>> list(faults("The loss is surely small."))
    [(1, 'surely', "'significantly', or give the 95% interval")]
    >>> list(faults("`surely` is a name."))
    []
    """
    bare = re.sub(r"^```.*?^```", _blanked, text, flags=re.DOTALL | re.MULTILINE)
    bare = re.sub(r"`[^`\n]*`", _blanked, bare)
    better = list(WORDS.values())
    for match in _RIDDLE.finditer(bare):
        number = next(n for n in range(len(better)) if match[f"w{n}"])
        yield bare.count("\n", 0, match.start()) + 1, match[0], better[number]


def _blanked(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def strings(source: str) -> str:
    """The docstrings and messages of a module, each at its line."""
    lines = [""] * (source.count("\n") + 2)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for number, line in enumerate(node.value.splitlines()):
                if node.lineno + number < len(lines):
                    lines[node.lineno + number] += " " + line
    return "\n".join(lines[1:])


def pages() -> list[Path]:
    """README, its neighbours and docs, but what is generated."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(one for one in found if str(one.relative_to(ROOT)) not in GENERATED)


def main() -> int:
    """Print every find; proselint's last."""
    bad = 0
    texts = {page: page.read_text("utf8") for page in pages()}
    texts |= {module: strings(module.read_text("utf8")) for module in (ROOT / "src").rglob("*.py")}
    for path, text in texts.items():
        for line, there, better in faults(text):
            bad += 1
            print(f"{path.relative_to(ROOT)}:{line}: '{there}': write {better}")
    program = Path(sys.executable).with_name("proselint")
    with tempfile.TemporaryDirectory() as folder:
        for page in pages():  # addresses of links are no prose
            bare = re.sub(r"(?<=\])\([^)\n]*\)", _blanked, texts[page])
            Path(folder, str(page.relative_to(ROOT)).replace("/", "_")).write_text(bare, "utf8")
        words = [program, "check", "--config", ROOT / "proselint.json", "-o", "compact", folder]
        done = subprocess.run(words, capture_output=True, text=True)
    print(done.stdout + done.stderr, end="")
    return int(bool(bad) or done.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
