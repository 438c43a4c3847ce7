"""Clark et al.'s probes (section 5) on two real models: how much syntax all heads carry."""
