"""Where two shapes touch: one file for each pair of families, and the calls that put them together."""
