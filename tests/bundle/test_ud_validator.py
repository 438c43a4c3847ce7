"""The validator must find what is wrong: one broken treebank for each rule."""

from __future__ import annotations

import pytest
from bundle.ud_validator import faults, mentions

GOOD = """\
# newdoc id = visit
# sent_id = visit-1
# text = Anna's dog can't be seen by her.
# text_de = Annas Hund kann von ihr nicht gesehen werden.
1-2	Anna's	_	_	_	_	_	_	_	_
1	Anna	Anna	PROPN	_	_	3	nmod:poss	_	Entity=(e1(e2
2	's	's	PART	_	_	1	case	_	Entity=e2)
3	dog	dog	NOUN	_	Number=Sing	7	nsubj:pass	_	Entity=e1)
4-5	can't	_	_	_	_	_	_	_	_
4	ca	can	AUX	_	_	7	aux	_	_
5	n't	not	PART	_	_	7	advmod	_	_
6	be	be	AUX	_	_	7	aux:pass	_	_
7	seen	see	VERB	_	_	0	root	_	_
8	by	by	ADP	_	_	9	case	_	_
9	her	she	PRON	_	_	7	obl:agent	_	Entity=(e2)|SpaceAfter=No
10	.	.	PUNCT	_	_	7	punct	_	_

# sent_id = visit-2
# text = It hides and sleeps.
# text_de = Er versteckt sich und schläft.
1	It	it	PRON	_	_	2	nsubj	_	Entity=(e1)
2	hides	hide	VERB	_	_	0	root	_	_
3	and	and	CCONJ	_	_	4	cc	_	_
4	sleeps	sleep	VERB	_	_	2	conj	_	SpaceAfter=No
5	.	.	PUNCT	_	_	2	punct	_	_
"""

#: Rule: what is written, what stands there instead, and what the validator says.
BROKEN = {
    "two roots": ("4\tcc", "0\troot", "visit-2: 2 roots: ['hides', 'and']"),
    "no root": ("0\troot\t_\t_\n3\tand", "4\tconj\t_\t_\n3\tand", "visit-2: 0 roots: []"),
    "root with a head": ("2\tconj", "2\troot", "sleeps has the head 2 and the relation root"),
    "head 0 without root": ("0\troot", "0\tccomp", "seen has the head 0 and the relation ccomp"),
    "head out of range": ("2\tconj", "6\tconj", "sleeps has the head 6"),
    "head of itself": ("2\tconj", "4\tconj", "sleeps has the head 4"),
    "a gap in the numbers": ("3\tand", "7\tand", "words are numbered [1, 2, 7, 4, 5]"),
    "an unknown tag": ("PRON\t_\t_\t2", "PRN\t_\t_\t2", "It has the tag PRN"),
    "an unknown relation": ("2\tconj", "2\tconjunct", "sleeps has the relation conjunct"),
    "a subtype of no English treebank": ("2\tnsubj", "2\tnsubj:x", "It has the relation nsubj:x"),
    "no lemma": ("hides\thide", "hides\t_", "hides has no lemma"),
    "features out of order": ("Number=Sing", "Number=Sing|Gender=Masc", "dog has the features"),
    "features that are none": ("Number=Sing", "singular", "dog has the features singular"),
    "text that is not the words": ("= It hides and", "= It hides, and", "the words make 'It hides"),
    "a forgotten SpaceAfter": ("_\tSpaceAfter=No\n5", "_\t_\n5", "and sleeps .'"),
    "a range with another form": ("4-5\tcan't", "4-5\tcan not", "the range 4-5 is 'can not'"),
    "a range out of place": ("4-5\tcan't", "2-3\tcan't", "the range 2-3 is"),
    "overlapping ranges": ("4-5\tcan't", "2-5\t'sdogcan't", "the range 2-5 is out of place"),
    "no translation": ("# text_de = Er versteckt sich und schläft.\n", "", "visit-2: no text_de"),
    "no sentence id": ("# sent_id = visit-2\n", "", "a sentence without sent_id: no sent_id"),
    "a repeated id": ("visit-2", "visit-1", "sent_id 'visit-1' occurs 2 times"),
    "a tag against the relation": ("PRON\t_\t_\t2\tnsubj", "PRON\t_\t_\t2\tamod", "PRON and amod"),
    "punctuation as a word": ("2\tpunct", "2\tobj", ". is PUNCT and obj"),
    "a word as punctuation": ("2\tnsubj", "2\tpunct", "It is PRON and punct"),
    "a dependent of punctuation": ("4\tcc", "5\tcc", "and (cc) hangs from . (punct)"),
    "a dependent of a preposition": ("7\tadvmod", "8\tnmod", "n't (nmod) hangs from by (case)"),
    "a dependent of an auxiliary": ("7\tadvmod", "4\tadvmod", "n't (advmod) hangs from ca (aux)"),
    "an odd copula": ("7\taux\t", "7\tcop\t", "ca (can) is cop"),
    "an odd passive auxiliary": ("7\taux\t", "7\taux:pass\t", "ca (can) is aux:pass"),
    "a conjunct before its head": ("2\tnsubj", "2\tconj", "It (conj) stands before its head"),
    "two subjects": ("2\tconj", "2\tcsubj", "hides has 2 of kind subject"),
    "an active subject of a passive": ("nsubj:pass", "nsubj", "seen is passive and its subject"),
    "a passive subject of an active": ("2\tnsubj", "2\tnsubj:pass", "hides has a passive subject"),
    "an oblique without preposition": ("2\tnsubj", "2\tobl", "It is obl without a preposition"),
    "an object with preposition": ("obl:agent", "obj", "her is obj with a preposition"),
    "crossing punctuation": ("7\tpunct", "3\tpunct", "'.' (word 10) crosses an arc"),
    "a bracket never closed": ("Entity=(e1)", "Entity=(e1", "visit: e1 is never closed"),
    "a bracket never opened": ("Entity=(e1(e2", "Entity=(e2", "e1 is closed at 'dog'"),
    "crossing brackets": ("Entity=(e1(e2", "Entity=(e2(e1", "e2 is closed at ''s'"),
    "a cluster of one": ("Entity=(e1)", "_", "visit: e1 has one mention"),
    "a span marked twice": ("Entity=(e1)", "Entity=(e1)(e2)", "the span (10, 10) is marked 2"),
    "an unreadable bracket": ("Entity=(e1)", "Entity=e1", "Entity=e1 cannot be read"),
}


def test_a_good_treebank_has_no_faults() -> None:
    assert faults(GOOD) == []


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_treebank_has_its_fault(rule: str) -> None:
    written, instead, said = BROKEN[rule]
    assert written in GOOD
    found = faults(GOOD.replace(written, instead, 1))
    assert any(said in fault for fault in found), found


def test_a_circle_is_found() -> None:
    circle = GOOD.replace("2\tconj", "3\tconj")
    assert "visit-2: sleeps never reaches the root" in faults(circle)


def test_a_cluster_may_not_overlap_itself() -> None:
    nested = GOOD.replace("Entity=(e1(e2\n", "Entity=(e1(e1\n").replace("Entity=e2)", "Entity=e1)")
    assert "visit: e1 has mentions that overlap at (0, 2)" in faults(nested)


def test_mentions_count_words_through_the_document() -> None:
    assert mentions(GOOD) == {"visit": {"e1": [(0, 2), (10, 10)], "e2": [(0, 1), (8, 8)]}}
