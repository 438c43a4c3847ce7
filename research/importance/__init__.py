"""How much heads matter: Michel et al.'s tables 1 to 3, Voita et al.'s figures 1 and 2."""
