"""The version of both packages, which whoever imports it gets without what the package exports."""

__version__ = "0.1.0"
