"""One agent whose wakes are asked for, decided, carried out and folded."""

from collections.abc import Iterable

from msgspec.structs import replace

from accord.core.attention.runtimes import (
    Beats,
    HeartbeatReport,
    HumanInput,
    RuntimeOrigin,
    RuntimeStatus,
)
from accord.core.attention.waking import wake_lifecycle
from accord.core.attention.waking.outcomes import WakeAction, WakeCause, WakeResult
from accord.core.attention.waking.state import WakeFacts, WakeOrder, Waking
from accord.core.attention.waking.wake_limits import WakePolicy
from accord.core.attention.waking.wake_messages import (
    AgentAddress,
    AgentAnswer,
    AgentPause,
    RuntimeReport,
    RuntimeSilent,
    WakeAsk,
    WakeEnd,
    WakeLook,
)
from accord.core.kernel.records import Event, Record

T0 = 1_750_000_000_000
SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
POLICY = WakePolicy()
REF = "0199a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"
ORIGIN = RuntimeOrigin(REF, "build-1", "/srv/repo")
THREAD = "th_1"
UNREAD = WakeFacts(unread=3)
RESUMABLE = WakeFacts(unread=3, resumable=frozenset({"S1"}))
SPAWNABLE = WakeFacts(unread=3, can_spawn=True)
ORDER = WakeOrder(thread=THREAD, by="planner")
AUTOMATIC = WakeOrder(thread=THREAD, by="planner", automatic=True)
BY_OPERATOR = WakeOrder(thread=THREAD, by="olga", autonomous=False)
FORCED = replace(BY_OPERATOR, forced=True, reason="the release waits")
FREE = HumanInput(typed_at=None, line_empty=True)


class Agent:
    """Decides and folds as the engine does, with a clock that the test moves."""

    def __init__(self, policy: WakePolicy = POLICY) -> None:
        self.waking = Waking()
        self.policy = policy
        self.now = T0
        self.version = 0
        self.log: list[Event] = []

    def after(self, ms: int) -> "Agent":
        self.now += ms
        return self

    def fold(self, events: Iterable[Event]) -> list[Event]:
        found = list(events)
        for event in found:
            self.version += 1
            id = f"R{self.version}"
            record = Record(
                "attention/default/reviewer",
                self.version,
                0,
                id,
                self.now,
                "system",
                id,
                "",
                "system",
                event,
            )
            self.waking = wake_lifecycle.EVOLVE[type(event)](self.waking, event, record)
        self.log += found
        return found

    def beat(
        self,
        status: RuntimeStatus = RuntimeStatus.IDLE,
        *,
        session: str = "S1",
        runtime: str = "codex_cli",
        supervises: bool = False,
        resumable: bool = True,
        origin: RuntimeOrigin | None = ORIGIN,
    ) -> list[Event]:
        report = HeartbeatReport(
            session_id=session,
            runtime=runtime,
            status=status,
            resumable=resumable,
            supervises=supervises,
            origin=origin,
        )
        return self.fold(
            wake_lifecycle.report_runtime(self.waking, RuntimeReport(report), self.now)
        )

    def lose(self, session: str = "S1") -> list[Event]:
        return self.fold(wake_lifecycle.lose_runtime(self.waking, RuntimeSilent(session), self.now))

    def pause(self, by: str = "olga", *, paused: bool = True) -> list[Event]:
        return self.fold(wake_lifecycle.pause_agent(self.waking, AgentPause(by, paused)))

    def address(self, seq: int, thread: str = THREAD) -> list[Event]:
        body = AgentAddress(thread, f"msg_{seq}", seq, "planner")
        return self.fold(wake_lifecycle.address_agent(self.waking, body))

    def answer(self, seq: int, thread: str = THREAD) -> list[Event]:
        return self.fold(wake_lifecycle.answer_address(self.waking, AgentAnswer(thread, seq)))

    def ask(
        self, order: WakeOrder = ORDER, facts: WakeFacts = UNREAD, wake: str = "W1"
    ) -> list[Event]:
        body = WakeAsk(order, facts)
        return self.fold(wake_lifecycle.ask_wake(self.waking, wake, body, self.now, self.policy))

    def look(self, facts: WakeFacts = UNREAD, wake: str = "W1") -> list[Event]:
        body = WakeLook(wake, facts)
        return self.fold(wake_lifecycle.look_again(self.waking, body, self.now, self.policy))

    def end(
        self,
        result: WakeResult = WakeResult.FALLBACK_USED,
        *,
        wake: str = "W1",
        action: WakeAction = WakeAction.RESUME_SESSION,
        cause: WakeCause = WakeCause.UNREAD,
    ) -> list[Event]:
        body = WakeEnd(wake, action, result, cause)
        return self.fold(wake_lifecycle.end_wake(self.waking, body, self.now, self.policy))

    def tick(self) -> list[Event]:
        return self.fold(wake_lifecycle.tick(self.waking, self.now, self.policy))


def dormant() -> Agent:
    """An agent whose runtime was seen two minutes ago and can be resumed."""
    agent = Agent()
    agent.beat()
    return agent.after(2 * MINUTE)


def supervised(human: HumanInput = FREE) -> tuple[Agent, WakeFacts]:
    """An agent in a live terminal that a supervisor holds, and the facts of this moment."""
    agent = Agent()
    agent.beat(supervises=True)
    return agent, live(agent, human)


def live(agent: Agent, human: HumanInput = FREE, *, spawn: bool = False) -> WakeFacts:
    """The supervisor was heard just now and reports this about the person at the terminal."""
    return WakeFacts(
        unread=3,
        beats={"S1": Beats(agent.now, agent.now, human)},
        reachable=frozenset({"S1"}),
        can_spawn=spawn,
    )
