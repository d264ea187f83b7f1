"""The thread service in the test's own process, with a clock that the test moves and restarts."""

from typing import Any

import msgspec

from accord.api.threads import MethodRequest
from accord.core.kernel.actor import Actor
from accord.core.kernel.limits import Limits
from accord.core.room.room_settings import ServerPolicy
from accord.engine.ports import EventLog
from accord.identity.token_signing import Keyring
from accord.server.engine_factory import make_engine
from accord.stores.memory import MemoryLog
from accord.transports.http.auth import Caller
from accord.transports.http.sessions import SessionReader
from accord.transports.intake import AuthPolicy, Intake
from accord.transports.msg.method_table import METHODS, call_method
from accord.transports.msg.service import ThreadService
from accord.transports.msg.thread_index import save_index

T0 = 1_770_000_000_000


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.at = T0

    def now(self) -> int:
        return self.at


class LocalService:
    """A service on a log that survives restarts of the service."""

    def __init__(
        self, keyring: Keyring, *, rate: float | None = None, limits: Limits | None = None
    ) -> None:
        self.keyring = keyring
        self.rate = rate
        self.limits = limits or Limits()
        self.clock = ManualClock()
        self.log: EventLog = MemoryLog()
        self.start()

    def start(self) -> None:
        """A new engine and service on the same log, as after a kill."""
        policy = ServerPolicy(limits=self.limits)
        self.engine = make_engine(self.log, policy, clock=self.clock, window=8)
        auth = AuthPolicy(self.keyring, lambda: (), clock=self.clock)
        intake = Intake(self.engine, auth, self.rate)
        self.service = ThreadService(intake, SessionReader(self.engine))

    async def stop(self) -> None:
        """Finish what is pending and store the index."""
        await self.engine.wait_until_idle()
        await save_index(self.service.index)

    async def call(self, actor: Actor, name: str, **arguments: Any) -> Any:
        """The result of a method; raises Refused."""
        request: MethodRequest = msgspec.convert(arguments, METHODS[name].request)
        return await call_method(self.service, Caller(actor), name, request)

    async def post(self, actor: Actor, thread: str, body: str, **more: Any) -> Any:
        return await self.call(
            actor, "post_message", thread_id=thread, schema_version=1, body=body, **more
        )
