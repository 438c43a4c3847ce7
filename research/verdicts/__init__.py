"""How many heads have which role, under the rules of today: before and after a rule changed."""
