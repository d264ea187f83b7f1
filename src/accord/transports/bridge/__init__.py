"""The git bridge: what hooks ask before and after a commit, on this machine alone (PVP 18.1)."""

from .desk import Desk
from .service import Bridge

__all__ = ["Bridge", "Desk"]
