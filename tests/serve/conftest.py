"""A browser for the local page."""

from __future__ import annotations

from browsers import chromium

__all__ = ["chromium"]
