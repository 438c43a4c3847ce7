"""Train the translator whose 144 heads headcount takes apart: a recipe from TSV to weights."""
