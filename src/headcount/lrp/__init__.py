"""Layer-wise relevance: from one output of a model back to what each of its heads gave."""
