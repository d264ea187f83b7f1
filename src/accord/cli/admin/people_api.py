"""Manages people, devices and invitations on a server."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from accord.api.people import (
    DeviceList,
    InvitationList,
    InvitationRequest,
    IssuedInvitation,
    ListedDevice,
    ListedInvitation,
    Person,
    PersonList,
    Removal,
)
from accord.api.policies import PolicyRequest, SignedPolicyText

INVITATIONS = ("admin", "invitations")
DEVICES = ("admin", "devices")
PEOPLE = ("admin", "people")
POLICIES = ("admin", "policies")
Answer = TypeVar("Answer")


class AdminRequests(Protocol):
    """Sends requests with the operator's token; raises Refused."""

    async def read(
        self, kind: type[Answer], path: tuple[str, ...], body: bytes | None = None
    ) -> Answer:
        """The decoded response; with a body it is a POST."""
        ...

    async def delete(self, path: tuple[str, ...], query: Mapping[str, str]) -> bytes:
        """Delete this; returns the body of the response."""
        ...


class RemotePeopleAdmin:
    """People over HTTP, with the rights of the operator's token."""

    def __init__(self, requests: AdminRequests) -> None:
        self._requests = requests

    async def invite(
        self,
        request: InvitationRequest,
        *,
        invitation: bool = True,  # noqa: ARG002 - over HTTP every code is an invitation
    ) -> IssuedInvitation:
        """A one-time code for a person."""
        body = msgspec.json.encode(request)
        return await self._requests.read(IssuedInvitation, INVITATIONS, body)

    async def invitations(self) -> Sequence[ListedInvitation]:
        """Unused invitations and codes."""
        return (await self._requests.read(InvitationList, INVITATIONS)).invitations

    async def revoke_invitation(self, id: str, reason: str = "") -> None:
        """Make an unused invitation useless."""
        await self._requests.delete((*INVITATIONS, id), {"reason": reason})

    async def devices(self) -> Sequence[ListedDevice]:
        """The devices that the operator may see."""
        return (await self._requests.read(DeviceList, DEVICES)).devices

    async def revoke_device(self, id: str, reason: str = "") -> None:
        """Sign a device out; its connections end."""
        await self._requests.delete((*DEVICES, id), {"reason": reason})

    async def people(self) -> Sequence[Person]:
        """Everyone who has a token, a device or an invitation, by id."""
        return (await self._requests.read(PersonList, PEOPLE)).people

    async def sign_policy(self, request: PolicyRequest) -> SignedPolicyText:
        """Make a text the policy of a repository; returns what was recorded."""
        return await self._requests.read(SignedPolicyText, POLICIES, msgspec.json.encode(request))

    async def remove(self, id: str, workspace: str, reason: str = "") -> Removal:
        """Revoke everything that lets a principal in, and end all its memberships."""
        query = {"workspace": workspace, "reason": reason}
        content = await self._requests.delete((*PEOPLE, id), query)
        return msgspec.json.decode(content, type=Removal)
