"""What the heads of real models do: the roles of the four papers on free treebanks."""
