"""The version of both packages, in a module that imports nothing."""

__version__ = "0.1.0"
