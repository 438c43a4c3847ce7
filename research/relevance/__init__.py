"""How far relevance by each rule agrees with what happens when a head is shut."""
