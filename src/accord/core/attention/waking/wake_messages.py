"""What is asked of an agent's stream about waking; clients send none of these themselves."""

from typing import Annotated

from msgspec import Meta

from accord.core.attention.runtimes import HeartbeatReport
from accord.core.attention.waking.outcomes import WakeAction, WakeCause, WakeResult
from accord.core.attention.waking.state import WakeFacts, WakeOrder
from accord.core.kernel.messages import Body
from accord.core.kernel.role_permissions import Permission

Seq = Annotated[int, Meta(ge=0)]


class RuntimeReport(Body, frozen=True, gc=False):
    """A heartbeat that may change the registry."""

    type = "runtime.report"
    needs = Permission.MEMBER

    report: HeartbeatReport


class RuntimeSilent(Body, frozen=True, gc=False):
    """A runtime has missed three heartbeats."""

    type = "runtime.silent"
    needs = Permission.SERVER_ONLY

    session_id: str


class AgentPause(Body, frozen=True, gc=False):
    """A person pauses the agent, or ends the pause."""

    type = "agent.pause"
    needs = Permission.SERVER_ONLY

    by: str
    paused: bool = True


class AgentAddress(Body, frozen=True, gc=False):
    """A message names this agent in `metadata.to`."""

    type = "agent.address"
    needs = Permission.SERVER_ONLY

    thread: str
    message: str
    seq: Seq
    by: str


class AgentAnswer(Body, frozen=True, gc=False):
    """The agent read, acknowledged or posted up to `seq`."""

    type = "agent.answer"
    needs = Permission.MEMBER

    thread: str
    seq: Seq


class WakeAsk(Body, frozen=True, gc=False):
    """Wake the agent; the id of the message is the id of the wake."""

    type = "wake.ask"
    needs = Permission.SERVER_ONLY

    order: WakeOrder
    facts: WakeFacts


class WakeLook(Body, frozen=True, gc=False):
    """Look at a waiting wake again, with fresh facts."""

    type = "wake.look"
    needs = Permission.SERVER_ONLY

    wake: str
    facts: WakeFacts


class WakeEnd(Body, frozen=True, gc=False):
    """A wake that was started is over."""

    type = "wake.end"
    needs = Permission.SERVER_ONLY

    wake: str
    action: WakeAction
    result: WakeResult
    cause: WakeCause
    detail: str = ""
    command: str = ""
