"""Todo*: what there is to do, how far it is, and how anybody can tell."""
