"""The tools themselves: one catalogue, written out, and one file or folder per pack."""
