"""Removing heads: learned gates, ranked orders, surgery, and folders that load again."""
