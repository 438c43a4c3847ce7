"""Which order of removal loses least at the same number of heads: the papers' against ours."""
