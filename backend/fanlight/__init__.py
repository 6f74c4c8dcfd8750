"""Fanlight: a self-hosted workbench for explanations of neural networks.

Importing this package is light: no torch, no SQL, no Dash. It offers the typed client and the wire types.
"""

from fanlight.client import AsyncClient as AsyncClient, Client as Client
from fanlight.errors import FanlightError as FanlightError

__version__ = "0.1.0"
__all__ = ["Client", "FanlightError", "__version__"]
