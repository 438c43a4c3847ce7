"""Treebanks: sentences with words and trees from CoNLL-U and CoNLL."""

#: What it adds; see `headcount.plugins`.
ADDS = {
    "formats": {"conllu": "conllu:CONLLU", "conll": "conllu:CONLL"},
    "names": {"text.side_by_side": "conllu:side_by_side"},
}
