"""Rooms: features that stand on the core and register themselves; the core imports none."""
