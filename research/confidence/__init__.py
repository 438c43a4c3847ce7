"""Confidence with and without special tokens: are they the same quantity?"""
