"""How many heads can go: classifiers head by head, SmolLM2 by groups of keys and values."""
