"""Speed as ratios, measured side by side in one run; results are committed as JSON."""
