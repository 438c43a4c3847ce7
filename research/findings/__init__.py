"""The findings of the four papers on one page, each with our figure and a verdict by one rule."""
