"""Layer-wise relevance propagation: rules, the trace of a forward, and its way back."""
