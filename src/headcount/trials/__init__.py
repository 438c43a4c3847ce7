"""Trials: inputs made to ask one question, run through the model, answered a value a head."""
