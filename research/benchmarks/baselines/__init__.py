"""Fixed baselines: what a benchmark is measured against; they stay as they are."""
