"""NATS's errors as messages that say what to do; never with a password."""

from typing import Any

import nats.errors
from nats.js import errors as js_errors

from accord.engine.ports import DiskFullError, ForeignStoreError, StoreError
from accord.stores.nats.address import NatsAddress

# The connection is lost or slow: what was sent may or may not be stored.
CONNECTION_ERRORS: tuple[type[BaseException], ...] = (
    OSError,
    TimeoutError,
    nats.errors.Error,
    js_errors.Error,
)

# Codes of JetStream's API.
INSUFFICIENT_RESOURCES, STORAGE_EXCEEDED = 10023, 10047
STREAM_NOT_FOUND, STREAM_NAME_IN_USE, SUBJECTS_OVERLAP = 10059, 10058, 10065
MAXIMUM_BYTES = 10077
NOT_ENABLED, NOT_ENABLED_FOR_ACCOUNT = 10076, 10039
NO_SUITABLE_PEERS, NO_CLUSTER = 10005, 10074
# There is no leader just now, or the cluster is still starting: another attempt may succeed.
TEMPORARY = frozenset({10007, 10008, 10009})
FULL = frozenset({INSUFFICIENT_RESOURCES, STORAGE_EXCEEDED, MAXIMUM_BYTES})

_HINTS = {
    NOT_ENABLED: "{name}: JetStream is switched off there; start nats-server with -js",
    NOT_ENABLED_FOR_ACCOUNT: "{name}: JetStream is switched off for this account; enable it",
    NO_SUITABLE_PEERS: "{name} has too few servers for this many replicas; add some or lower them",
    NO_CLUSTER: "{name} is one server and not a cluster; name all servers, or set replicas=1",
    SUBJECTS_OVERLAP: "{name}: another stream has the same subjects; name another stream",
}
_UNREACHABLE = "{name} cannot be reached; check that NATS runs there and accepts connections"
_TOO_OLD = "{name} runs NATS {version}, and 2.12 or newer is needed; upgrade it"


class ApiError(Exception):
    """JetStream refused a request."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("description", "")))
        self.code = int(error.get("err_code") or error.get("code") or 0)

    @property
    def is_temporary(self) -> bool:
        return self.code in TEMPORARY


def store_error(address: NatsAddress, error: BaseException) -> StoreError:
    """The error with a hint, and NATS's own words at the end."""
    name = str(address)
    lines = str(error).strip().splitlines()
    detail = f" ({lines[0]})" if lines else ""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, ApiError):
        if error.code in FULL:
            hint = f"No space left for {name}; free or allow more and try again"
            return DiskFullError(f"{hint}{detail}", name)
        hint = _HINTS.get(error.code, "{name} refused it").format(name=name)
        return StoreError(f"{hint}{detail}", name)
    if "authorization" in str(error).lower():
        hint = f"{name} refused this user; check user and password in the URL"
        return StoreError(f"{hint}{detail}", name)
    return StoreError(f"{_UNREACHABLE.format(name=name)}{detail}", name)


def too_old(address: NatsAddress, version: str) -> StoreError:
    """The server cannot store several messages as one."""
    return StoreError(_TOO_OLD.format(name=address, version=version), str(address))


def foreign_error(address: NatsAddress) -> ForeignStoreError:
    """The stream is not ours."""
    problem = "is a stream of another program and was not changed; name another stream"
    return ForeignStoreError(f"{address} {problem}", str(address))
