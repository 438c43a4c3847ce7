"""Clark et al.'s surface statistics (section 3) on Wikipedia paragraphs, for two real models."""
