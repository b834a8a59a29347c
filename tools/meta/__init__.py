"""The six meta-tools and the two carriers: how a model moves through the menus and speaks."""
