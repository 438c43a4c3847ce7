"""Save a model so that other programs load it, and prove that they do before saying so."""
