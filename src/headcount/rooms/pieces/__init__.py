"""Pieces: where the tokens of SentencePiece models in Python stand in their texts."""

#: What it adds; see `headcount.plugins`.
ADDS = {"parts": {"sentencepiece": "sentencepiece"}}
