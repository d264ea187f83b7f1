"""The git bridge: what hooks ask before and after a commit, from this machine only (PVP 18.1)."""

from accord.transports.bridge.handlers import BridgeHandlers
from accord.transports.bridge.server import Bridge

__all__ = ["Bridge", "BridgeHandlers"]
