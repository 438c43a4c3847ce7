"""Fine-tune MiniLM and e5-small on six GLUE tasks: a config in, JSON out."""
