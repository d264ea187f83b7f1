"""Signing in with one-time codes, and renewing tokens with proofs, on the people's log."""

import secrets

from accord.api.people import (
    Account,
    AgentEnrolment,
    RefreshedToken,
    RefreshRequest,
    SignedIn,
)
from accord.core.kernel.actor import Actor
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.kernel.timestamps import to_iso
from accord.core.kernel.ulid import ulid
from accord.core.people.agent_enrolment import AgentEnrol
from accord.core.people.device_proofs import ProofStatement, host_of
from accord.core.people.devices import BAD_DEVICE_DETAIL, DeviceRenew, DeviceRevoke
from accord.core.people.sign_in import SignIn
from accord.core.people.state import Token
from accord.identity.sign_in_crypto import code_digest, ensure_public_key, is_proof
from accord.identity.token_service import TokenService
from accord.identity.token_signing import Identity, sign_recorded

# A caller with a code or a proof has no token yet, so the server records it.
SIGN_IN_ACTOR = Actor(principal=f"{SYSTEM}:sign-in", kind=Kind.SYSTEM)
NOT_A_DEVICE_DETAIL = (
    "This token was issued by an operator, not by signing in; `accord token revoke` ends it"
)


class SignInService:
    """Turns codes and proofs into tokens."""

    def __init__(self, tokens: TokenService) -> None:
        self._tokens = tokens

    async def sign_in(self, code: str, public_key: str | None, address: str) -> SignedIn:
        """Use the code; the token is for the caller alone. Raises Refused."""
        key = ensure_public_key(public_key) if public_key is not None else ""
        now = self._tokens.clock.now()
        body = SignIn(
            digest=code_digest(code),
            device=self._new_id(now),
            jti=self._new_id(now),
            key=self._tokens.keyring.active,
            now=now,
            public_key=key,
            address=address,
        )
        await self._tokens.record(SIGN_IN_ACTOR, body)
        return await self._signed_in(body.jti, address)

    async def enrol(self, identity: Identity, agent: AgentEnrolment, address: str) -> SignedIn:
        """Give an agent of this person a device; the token is the agent's. Raises Refused."""
        now = self._tokens.clock.now()
        body = AgentEnrol(
            id=agent.id,
            roles=agent.roles,
            public_key=ensure_public_key(agent.public_key),
            device=self._new_id(now),
            jti=self._new_id(now),
            key=self._tokens.keyring.active,
            now=now,
            name=agent.name,
            address=address,
            supervises=agent.supervises,
        )
        await self._tokens.record(identity.actor, body)
        return await self._signed_in(body.jti, address)

    async def _signed_in(self, jti: str, address: str) -> SignedIn:
        people = await self._tokens.people()
        token = people.tokens[jti]
        return SignedIn(
            server=people.server_id,
            address=address,
            id=token.id,
            type=token.kind,
            roles=tuple(sorted(token.roles)),
            workspace=token.workspace,
            name=token.name,
            device=token.device,
            expires_at=to_iso(token.expires_at),
            token=self._sign(token),
        )

    async def renew(self, proof: RefreshRequest) -> RefreshedToken:
        """A token for the device that the proof proves; raises Refused."""
        statement = ProofStatement(proof.address, proof.device, proof.time, proof.nonce)
        device = (await self._tokens.people()).devices.get(proof.device)
        # Unknown devices and wrong signatures look the same from outside.
        if device is None or not is_proof(device.public_key, statement, proof.signature):
            raise Refused(Reason.UNAUTHENTICATED, BAD_DEVICE_DETAIL)
        now = self._tokens.clock.now()
        body = DeviceRenew(
            device=proof.device,
            address=host_of(proof.address),
            time=proof.time,
            nonce=proof.nonce,
            jti=self._new_id(now),
            key=self._tokens.keyring.active,
            now=now,
        )
        await self._tokens.record(SIGN_IN_ACTOR, body)
        people = await self._tokens.people()
        if proof.device not in people.renewals:  # revoked since
            raise Refused(Reason.UNAUTHENTICATED, BAD_DEVICE_DETAIL)
        token = people.tokens[people.renewals[proof.device].jti]
        return RefreshedToken(token=self._sign(token), expires_at=to_iso(token.expires_at))

    async def sign_out(self, identity: Identity) -> None:
        """Revoke the device that this identity was proved with."""
        people = await self._tokens.people()
        token = people.tokens.get(identity.claims.jti)
        if token is None or not token.device:
            raise Refused(Reason.WRONG_STATE, NOT_A_DEVICE_DETAIL)
        await self._tokens.record(identity.actor, DeviceRevoke(token.device, "signed out"))

    async def account(self, identity: Identity, address: str) -> Account:
        """Who this identity is."""
        people, claims = await self._tokens.people(), identity.claims
        token = people.tokens.get(claims.jti)
        return Account(
            server=people.server_id,
            address=address,
            id=claims.agent_id,
            type=claims.kind,
            roles=tuple(sorted(claims.roles)),
            workspace=claims.workspace_id,
            name=claims.name,
            device=token.device if token else "",
            expires_at=to_iso(claims.exp * 1000),
        )

    def _sign(self, token: Token) -> str:
        return sign_recorded(self._tokens.keyring, token).token

    def _new_id(self, now: int) -> str:
        return ulid(now, secrets.token_bytes(10))
