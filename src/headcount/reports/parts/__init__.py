"""Parts of the page: what each view shows, made from a run."""
