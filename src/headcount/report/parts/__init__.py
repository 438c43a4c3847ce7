"""Parts of the page: what each view is told, from a run."""
