"""Importance: how much each head matters to a task, one file a score; higher is more important."""
