"""Voita et al.'s headline on our translator: how many heads can learned gates close?"""
