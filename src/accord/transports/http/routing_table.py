"""All HTTP endpoints except the public pages, in one table."""

from accord.transports.http import admin, git_hooks, home, session_turns, sessions
from accord.transports.http.messages import endpoints
from accord.transports.http.people.admin_people import ADMIN_PEOPLE_ENDPOINTS
from accord.transports.http.people.sign_in import SIGN_IN_ENDPOINTS
from accord.transports.http.policies.signed_policies import ADMIN_POLICY_ENDPOINTS, POLICY_ENDPOINTS
from accord.transports.http.policies.standing_grants import STANDING_GRANT_ENDPOINTS
from accord.transports.http.repositories.decisions import DECISION_ENDPOINTS
from accord.transports.http.repositories.pacts import PACT_ENDPOINTS
from accord.transports.msg.endpoints import METHOD_ENDPOINTS

ALL_ADMIN_ENDPOINTS = (*admin.ADMIN_ENDPOINTS, *ADMIN_PEOPLE_ENDPOINTS, *ADMIN_POLICY_ENDPOINTS)
ALL_ENDPOINTS = (
    *endpoints.MESSAGE_ENDPOINTS,
    *METHOD_ENDPOINTS,
    *home.HOME_ENDPOINTS,
    *git_hooks.GIT_ENDPOINTS,
    *DECISION_ENDPOINTS,
    *PACT_ENDPOINTS,
    *sessions.SESSION_ENDPOINTS,
    *session_turns.TURN_ENDPOINTS,
    *POLICY_ENDPOINTS,
    *STANDING_GRANT_ENDPOINTS,
    *SIGN_IN_ENDPOINTS,
    *ALL_ADMIN_ENDPOINTS,
)
