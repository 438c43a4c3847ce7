"""A local page to type a sentence, watch heads, and switch them off; for this machine alone."""

from headcount.serve.app import Asked, app_of

__all__ = ["Asked", "app_of"]
