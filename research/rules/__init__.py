"""Relevance under every rule: does what the rules say agree with confidence and with ablation?"""
