"""Papers: what single papers measured, in their own way."""
