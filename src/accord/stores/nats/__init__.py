"""The log on a NATS JetStream stream; docs/design/nats-log.md has the theory."""

from accord.stores.nats.log import NatsLog

__all__ = ["NatsLog"]
