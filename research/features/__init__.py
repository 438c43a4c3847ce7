"""Attention to kinds of words by task, before and after fine-tuning."""
