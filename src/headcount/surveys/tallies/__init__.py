"""Tallies: statistics of attention maps, a few sums each, merged at will."""
