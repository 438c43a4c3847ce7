"""What an English UD v2 treebank must be: every fault of a CoNLL-U text, as a list of sentences.

Most rules are those of the UD guidelines and of the UD project's own validator, level 3; the
rules about passives and unmarked nominals are the conventions of UD English-EWT.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

__all__ = ["Tree", "faults", "mentions", "read"]


def _names(text: str) -> set[str]:
    return set(text.split())


UPOS = _names("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X")
UNIVERSAL = _names(
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse "
    "dislocated expl fixed flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis "
    "punct reparandum root vocative xcomp"
)
ENGLISH = _names(
    "acl:relcl advcl:relcl aux:pass cc:preconj compound:prt csubj:outer csubj:pass det:predet "
    "nmod:desc nmod:poss nmod:unmarked nsubj:outer nsubj:pass obl:agent obl:unmarked"
)
AUXILIARIES = _names("be have do will would can could shall should may might must ought")
#: Relation: the lemmas that may bear it.
LEMMAS = {"cop": {"be"}, "aux:pass": {"be", "get"}, "aux": AUXILIARIES}
#: Relation: the tags that its dependent may have.
TAGS = {
    "det": {"DET", "PRON"},
    "nummod": {"NUM"},
    "advmod": {"ADV", "PART", "DET", "ADJ"},
    "amod": {"ADJ", "VERB"},
    "aux": {"AUX"},
    "cop": {"AUX"},
    "case": {"ADP", "PART", "VERB", "ADV"},
    "mark": {"SCONJ", "PART", "ADP", "ADV"},
    "cc": {"CCONJ", "ADV"},
    "expl": {"PRON"},
    "punct": {"PUNCT"},
    "compound:prt": {"ADP", "ADV"},
}
_JOINED = {"fixed", "goeswith", "conj", "cc", "punct", "reparandum"}
#: Relation: what may hang from its dependent; the relations not named here may bear anything.
DEPENDENTS = {
    "punct": set(),
    "fixed": {"punct"},
    "aux": _JOINED,
    "cop": _JOINED,
    "cc": _JOINED,
    "case": _JOINED | {"advmod", "obl"},
    "mark": _JOINED | {"advmod", "obl"},
    "det": _JOINED | {"advmod", "obl"},
}
LEFT_TO_RIGHT = {"conj", "fixed", "flat", "goeswith", "appos"}
OUTERMOST = {"nsubj:outer", "csubj:outer"}


@dataclass
class Node:
    """A word as its line has it."""

    id: int
    form: str
    lemma: str
    upos: str
    feats: str
    head: int
    deprel: str
    misc: str

    @property
    def relation(self) -> str:
        return self.deprel.split(":")[0]


@dataclass
class Tree:
    """A sentence: comments, words, and multiword tokens as (first, last, form, misc)."""

    comments: dict[str, str]
    nodes: list[Node] = field(default_factory=list)
    ranges: list[tuple[int, int, str, str]] = field(default_factory=list)

    def children(self, node: Node) -> list[Node]:
        return [other for other in self.nodes if other.head == node.id]

    def ancestors(self, node: Node) -> list[int]:
        """The numbers on the way up, 0 at the end; no 0 where the way is a circle."""
        way: list[int] = []
        here = node.head
        while here not in way:
            way.append(here)
            if here == 0:
                break
            here = self.nodes[here - 1].head
        return way


def read(text: str) -> list[Tree]:
    """The trees of a CoNLL-U text, taken as they stand."""
    return [_tree(block) for block in re.split(r"\n\n+", text.strip())]


def _tree(block: str) -> Tree:
    lines = block.split("\n")
    pairs = [line[1:].partition("=") for line in lines if line.startswith("#")]
    tree = Tree({key.strip(): value.strip() for key, _, value in pairs})
    for line in lines:
        cells = line.split("\t")
        if line.startswith("#"):
            continue
        if "-" in cells[0]:
            first, last = map(int, cells[0].split("-"))
            tree.ranges.append((first, last, cells[1], cells[9]))
        else:
            number, form, lemma, upos, _, feats, head, deprel, _, misc = cells
            tree.nodes.append(Node(int(number), form, lemma, upos, feats, int(head), deprel, misc))
    return tree


def faults(text: str) -> list[str]:
    """Every fault of a CoNLL-U text, each with the sentence's id; empty when all is well."""
    trees = read(text)
    found = list(_repeated(trees))
    for tree in trees:
        where = tree.comments.get("sent_id", "a sentence without sent_id")
        found += [f"{where}: {fault}" for fault in _of(tree)]
    return found + [f"{doc}: {fault}" for doc, fault in _coreference(trees)]


def _of(tree: Tree) -> list[str]:
    broken = [fault for rule in SHAPE for fault in rule(tree)]
    # The other rules climb the tree and need one.
    return broken or [fault for rule in CONTENT for fault in rule(tree)]


def _repeated(trees: list[Tree]) -> Iterator[str]:
    for key in ("sent_id", "text", "newdoc id"):
        counts = Counter(tree.comments[key] for tree in trees if key in tree.comments)
        yield from (f"{key} '{value}' occurs {n} times" for value, n in counts.items() if n > 1)


# --- shape: is it a tree at all? ----------------------------------------------------------------


def _numbers(tree: Tree) -> Iterator[str]:
    numbers = [node.id for node in tree.nodes]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"words are numbered {numbers}"


def _heads(tree: Tree) -> Iterator[str]:
    for node in tree.nodes:
        if not 0 <= node.head <= len(tree.nodes) or node.head == node.id:
            yield f"{node.form} has the head {node.head}"


def _root(tree: Tree) -> Iterator[str]:
    roots = [node.form for node in tree.nodes if node.head == 0]
    if len(roots) != 1:
        yield f"{len(roots)} roots: {roots}"
    for node in tree.nodes:
        if (node.head == 0) != (node.deprel == "root"):
            yield f"{node.form} has the head {node.head} and the relation {node.deprel}"


def _cycles(tree: Tree) -> Iterator[str]:
    if any(True for rule in (_numbers, _heads) for _ in rule(tree)):
        return
    for node in tree.nodes:
        if 0 not in tree.ancestors(node):
            yield f"{node.form} never reaches the root"


# --- content: is it English UD? -----------------------------------------------------------------


def _comments(tree: Tree) -> Iterator[str]:
    for key in ("sent_id", "text", "text_de"):
        if not tree.comments.get(key):
            yield f"no {key}"


def _text(tree: Tree) -> Iterator[str]:
    starts = {first: (last, form, misc) for first, last, form, misc in tree.ranges}
    joined, covered = "", 0
    for node in tree.nodes:
        if node.id <= covered:
            continue
        covered, form, misc = starts.get(node.id, (node.id, node.form, node.misc))
        joined += form + ("" if "SpaceAfter=No" in misc.split("|") else " ")
    if joined.strip() != tree.comments.get("text", ""):
        yield f"the words make '{joined.strip()}'"


def _ranges(tree: Tree) -> Iterator[str]:
    covered = 0
    for first, last, form, _ in tree.ranges:
        inside = tree.nodes[first - 1 : last]
        if not covered < first < last <= len(tree.nodes):
            yield f"the range {first}-{last} is out of place"
        elif "".join(node.form for node in inside) != form:
            yield f"the range {first}-{last} is '{form}'"
        elif any("SpaceAfter" in node.misc for node in inside):
            yield f"SpaceAfter inside the range {first}-{last}"
        covered = last


def _labels(tree: Tree) -> Iterator[str]:
    for node in tree.nodes:
        if node.upos not in UPOS:
            yield f"{node.form} has the tag {node.upos}"
        if node.deprel not in UNIVERSAL | ENGLISH:
            yield f"{node.form} has the relation {node.deprel}"
        if node.lemma in ("", "_"):
            yield f"{node.form} has no lemma"


def _feats(tree: Tree) -> Iterator[str]:
    for node in tree.nodes:
        parts = [] if node.feats == "_" else node.feats.split("|")
        good = all(re.fullmatch(r"[A-Z]\w*=[A-Z0-9]\w*", part) for part in parts)
        if not good or parts != sorted(parts, key=str.lower):
            yield f"{node.form} has the features {node.feats}"


def _tags(tree: Tree) -> Iterator[str]:
    for node in tree.nodes:
        allowed = TAGS.get(node.deprel, TAGS.get(node.relation))
        if allowed is not None and node.deprel != "cc:preconj" and node.upos not in allowed:
            yield f"{node.form} is {node.upos} and {node.deprel}"
        if node.upos == "PUNCT" and node.relation != "punct":
            yield f"{node.form} is PUNCT and {node.deprel}"


def _lemmas(tree: Tree) -> Iterator[str]:
    for node in tree.nodes:
        if node.lemma not in LEMMAS.get(node.deprel, {node.lemma}):
            yield f"{node.form} ({node.lemma}) is {node.deprel}"


def _leaves(tree: Tree) -> Iterator[str]:
    for node in tree.nodes:
        allowed = DEPENDENTS.get(node.relation)
        for child in tree.children(node) if allowed is not None else []:
            if allowed is not None and child.relation not in allowed:
                yield f"{child.form} ({child.deprel}) hangs from {node.form} ({node.deprel})"


def _directions(tree: Tree) -> Iterator[str]:
    for node in tree.nodes:
        if node.relation in LEFT_TO_RIGHT and node.id < node.head:
            yield f"{node.form} ({node.deprel}) stands before its head"


def _arguments(tree: Tree) -> Iterator[str]:
    """At most one subject, one object and one indirect object for each word."""
    for node in tree.nodes:
        kinds = [child.relation for child in tree.children(node) if child.deprel not in OUTERMOST]
        # An expletive is no subject: the real one follows as csubj.
        subjects = kinds.count("nsubj") + kinds.count("csubj")
        counts = {"subject": subjects, "obj": kinds.count("obj"), "iobj": kinds.count("iobj")}
        yield from (f"{node.form} has {n} of kind {kind}" for kind, n in counts.items() if n > 1)


def _passives(tree: Tree) -> Iterator[str]:
    """A passive auxiliary asks for a passive subject, and the other way round."""
    for node in tree.nodes:
        kinds = {child.deprel for child in tree.children(node)}
        passive = "aux:pass" in kinds
        if passive and kinds & {"nsubj", "csubj"}:
            yield f"{node.form} is passive and its subject is not"
        if not passive and kinds & {"nsubj:pass", "csubj:pass"}:
            yield f"{node.form} has a passive subject and is not passive"
        if "obl:agent" in kinds and not passive and node.relation != "acl":
            yield f"{node.form} has an agent and is not passive"


def _markers(tree: Tree) -> Iterator[str]:
    """A nominal dependent has a preposition, or its relation says that it has none."""
    for node in tree.nodes:
        cased = any(child.deprel == "case" for child in tree.children(node))
        stranded = node.upos == "ADP"
        if node.deprel in ("obl", "nmod", "obl:agent") and not cased and not stranded:
            yield f"{node.form} is {node.deprel} without a preposition"
        if node.deprel in ("obl:unmarked", "nmod:unmarked", "obj", "nsubj") and cased:
            # A possessor's mark belongs to the possessor, never to these.
            yield f"{node.form} is {node.deprel} with a preposition"


def _crossed_punctuation(tree: Tree) -> Iterator[str]:
    """Punctuation hangs where no arc is crossed."""
    for node in tree.nodes:
        if node.relation != "punct":
            continue
        low, high = sorted((node.id, node.head))
        between = tree.nodes[low : high - 1]
        if any(node.head not in tree.ancestors(other) for other in between):
            yield f"'{node.form}' (word {node.id}) crosses an arc"


SHAPE: list[Callable[[Tree], Iterator[str]]] = [_numbers, _heads, _root, _cycles]
CONTENT: list[Callable[[Tree], Iterator[str]]] = [
    _comments,
    _text,
    _ranges,
    _labels,
    _feats,
    _tags,
    _lemmas,
    _leaves,
    _directions,
    _arguments,
    _passives,
    _markers,
    _crossed_punctuation,
]


# --- coreference --------------------------------------------------------------------------------

_PART = re.compile(r"\((\w+)(\))?|(\w+)\)")
Span = tuple[int, int]


def _coreference(trees: list[Tree]) -> Iterator[tuple[str, str]]:
    """Brackets that match inside their sentence; clusters of two or more; no span twice."""
    for doc, sentences in _documents(trees).items():
        spans: dict[str, list[Span]] = {}
        yield from ((doc, fault) for fault in _spans(sentences, spans))
        yield from ((doc, fault) for fault in _clusters(spans))


def mentions(text: str) -> dict[str, dict[str, list[Span]]]:
    """By document and entity: first and last word of each mention, counted from 0, both in."""
    found: dict[str, dict[str, list[Span]]] = {}
    for doc, sentences in _documents(read(text)).items():
        assert not list(_spans(sentences, found.setdefault(doc, {})))
    return found


def _spans(sentences: list[Tree], spans: dict[str, list[Span]]) -> Iterator[str]:
    """Fill `spans`, telling what is wrong on the way."""
    start = 0
    for tree in sentences:
        yield from _brackets(tree, start, spans)
        start += len(tree.nodes)


def _documents(trees: list[Tree]) -> dict[str, list[Tree]]:
    documents: dict[str, list[Tree]] = {}
    doc = "text before the first document"
    for tree in trees:
        doc = tree.comments.get("newdoc id", doc)
        documents.setdefault(doc, []).append(tree)
    return documents


def _brackets(tree: Tree, start: int, spans: dict[str, list[Span]]) -> Iterator[str]:
    open_: list[tuple[str, int]] = []
    for place, node in enumerate(tree.nodes, start):
        entity = re.search(r"Entity=([^|]*)", node.misc)
        written = entity[1] if entity else ""
        if _PART.sub("", written):
            yield f"Entity={written} cannot be read"
        for opened, closed, ended in _PART.findall(written):
            if opened and closed:
                spans.setdefault(opened, []).append((place, place))
            elif opened:
                open_.append((opened, place))
            elif not open_ or open_[-1][0] != ended:
                yield f"{ended} is closed at '{node.form}' and was not the last one opened"
            else:
                spans.setdefault(ended, []).append((open_.pop()[1], place))
    yield from (f"{name} is never closed" for name, _ in open_)


def _clusters(spans: dict[str, list[Span]]) -> Iterator[str]:
    yield from (f"{name} has one mention" for name, found in spans.items() if len(found) < 2)
    counts = Counter(span for found in spans.values() for span in found)
    yield from (f"the span {span} is marked {n} times" for span, n in counts.items() if n > 1)
    for name, found in spans.items():
        for one in found:
            if any(_overlap(one, other) for other in found if other != one):
                yield f"{name} has mentions that overlap at {one}"


def _overlap(one: Span, other: Span) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
