"""Heads of one stack removed alone, and one head left in a layer: Michel et al. 2019."""
