"""What a survey costs beside the plain forward: the figure of docs/results/speed.md."""
