"""menugate: every tool registered once, one menu shown, one gate for every call."""

__version__ = "0.1.0"
