"""What works for which family of transformers, tried on tiny random models."""
