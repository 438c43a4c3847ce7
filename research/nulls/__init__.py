"""How many verdicts on relations survive each rung of the ladder of nulls."""
