"""The limits of waking: cool-down, wakes per hour, length of a politeness loop, waiting times."""

import msgspec

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS


class WakePolicy(msgspec.Struct, frozen=True):
    """All times in milliseconds; the defaults are those of MSG 3.8, OPEN-129 and the rulings."""

    recheck_ms: int = 5 * SECOND_MS
    quiet_ms: int = 20 * SECOND_MS
    max_defer_ms: int = 60 * SECOND_MS
    cool_down_ms: int = 30 * SECOND_MS
    # How long a wake waits before it looks whether an agent that was here is still at work.
    present_ms: int = 30 * SECOND_MS
    # The same for a supervised host in the middle of a turn; its supervisor says earlier that it
    # has stopped.
    working_ms: int = 5 * MINUTE_MS
    # The same for a supervisor that is not connected; it says itself that it is back.
    reconnect_ms: int = 30 * SECOND_MS
    silence_ms: int = 15 * MINUTE_MS
    wakes_per_hour: int = 12  # of one agent, over all threads: what a loop can cost at most
    polite_messages: int = 6
    # How long a wake may be under way before it counts as interrupted.
    run_ms: int = 30 * MINUTE_MS
