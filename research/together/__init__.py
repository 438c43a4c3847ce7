"""Heads together: families of heads, and what fine-tuning changes. A config in, JSON out."""
