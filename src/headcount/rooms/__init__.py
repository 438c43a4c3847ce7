"""Rooms: what plugs into the core. Each folder says what it adds; the core imports none."""
