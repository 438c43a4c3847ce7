"""Heads that need only a window: the score against the truth, and how many hold both bounds."""
