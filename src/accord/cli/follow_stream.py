"""Follows a stream of the server for as long as the command runs, across restarts."""

from collections.abc import Awaitable, Callable
from typing import NoReturn

from accord.cli.connection_notice import ConnectionNotice
from accord.client.connection.backoff import Backoff, RetryPolicy
from accord.client.errors import ClientError
from accord.client.http_client import is_transient, retry_after_s


async def keep_following(
    url: str, follow: Callable[[Callable[[], None]], Awaitable[None]]
) -> NoReturn:
    """Call `follow` again after each loss; it calls its argument whenever it has heard something.

    Raises what waiting does not mend.
    """
    backoff, notice = Backoff(RetryPolicy()), ConnectionNotice(url)

    def on_heard() -> None:
        notice.back()
        backoff.on_connected()

    while True:
        try:
            await follow(on_heard)
        except ClientError as error:
            if not is_transient(error):
                raise
            notice.lost()
            await backoff.wait(retry_after_s(error))
