"""The six meta-tools and the two carriers: how a model moves through the menus and speaks."""

from tools.meta.offers import CARRIERS, META

__all__ = ["CARRIERS", "META"]
