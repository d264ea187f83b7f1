"""Types of message fields, with their limits."""

from typing import Annotated, Literal

from msgspec import Meta

Text = Annotated[str, Meta(max_length=1 << 20)]
ShortText = Annotated[str, Meta(max_length=4096)]
Id = Annotated[str, Meta(min_length=1, max_length=128)]
Visibility = Literal["all", "approvers_only"] | tuple[Id, ...]
Ids = Annotated[tuple[Id, ...], Meta(max_length=256)]
# The largest integer that JSON numbers hold exactly.
SafeInt = Annotated[int, Meta(ge=0, le=1 << 53)]
Seconds = Annotated[int, Meta(ge=1, le=31_536_000)]
