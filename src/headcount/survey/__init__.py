"""Survey: what every head looks at, measured over a corpus and read as roles."""
