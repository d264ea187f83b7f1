"""`GET /pacts`: tasks and features of the repositories that the caller's sessions are bound to."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accord.api import pacts as api
from accord.core.kernel.actor import Actor
from accord.core.kernel.ids import ids_by_slug
from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.state import Member, Room
from accord.core.views import sessions
from accord.core.views.pact_board import FeatureView, MirroredBoard, shown_tasks
from accord.core.views.session_tasks import TaskTimes, truncate
from accord.core.work.state import Seat, Task
from accord.core.work.vocabulary import TaskStatus
from accord.engine.engine import Engine
from accord.transports.http.auth import Authenticator
from accord.transports.http.endpoint import Endpoint, routes_of
from accord.transports.http.responses import json_response, with_refusals

MAX_SEATS = 64
MAX_TEXT = 4000
MAX_DEPENDENCIES = 32
MAX_OPEN = 50


class PactBoards(Protocol):
    """The port to the mirrors of pacts."""

    def sessions_by_repo(self) -> Mapping[str, tuple[str, ...]]:
        """The sessions that are bound to each repository with a pact."""
        ...

    def board(self, repo: str) -> MirroredBoard:
        """A pact as it was read last."""
        ...


class PactEndpoints:
    """What these endpoints of one server need."""

    def __init__(self, callers: Authenticator, engine: Engine, boards: PactBoards) -> None:
        self.callers = callers
        self.engine = engine
        self.boards = boards

    def routes(self) -> list[Route]:
        def serve(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
            async def handler(request: Request) -> Response:
                return await endpoint.handler(self, request)

            return with_refusals(handler)

        return routes_of(PACT_ENDPOINTS, serve)

    async def rooms_of(self, actor: Actor, bound: tuple[str, ...]) -> list[Room]:
        """The bound sessions that the caller is in now."""
        rooms: list[Room] = [await self.engine.state(f"room/{id}") for id in bound]
        return [
            room
            for room in rooms
            if sessions.is_known_to(room, actor) and actor.principal in room.members
        ]


async def list_pacts(endpoints: PactEndpoints, request: Request) -> Response:
    """The pacts of the repositories that your sessions are bound to."""
    actor = endpoints.callers.authenticate_counted(request).actor
    found = []
    for repo, bound in endpoints.boards.sessions_by_repo().items():
        if rooms := await endpoints.rooms_of(actor, bound):
            found.append(summary_of(endpoints.boards.board(repo), rooms))
    return json_response(api.PactList(pacts=tuple(found)))


async def read_pact(endpoints: PactEndpoints, request: Request) -> Response:
    """One pact: its features and tasks, with evidence, and who did and who accepted them."""
    actor = endpoints.callers.authenticate_counted(request).actor
    repo = request.path_params["repo"]
    bound = endpoints.boards.sessions_by_repo().get(repo, ())
    rooms = await endpoints.rooms_of(actor, bound)
    if not rooms:
        raise Refused(Reason.NOT_FOUND, f"No session of yours is bound to a pact of {repo}")
    return json_response(board_of(endpoints.boards.board(repo), rooms))


def summary_of(board: MirroredBoard, rooms: list[Room]) -> api.PactEntry:
    statuses = [task.status for feature in board.view.features for task in feature.tasks]
    return api.PactEntry(
        repo=board.repo,
        project=board.view.project,
        sessions=sessions_of(rooms),
        tasks=len(statuses),
        accepted=statuses.count(TaskStatus.ACCEPTED),
        awaiting_review=statuses.count(TaskStatus.AWAITING_REVIEW),
    )


def board_of(board: MirroredBoard, rooms: list[Room]) -> api.PactBoard:
    view, shown = board.view, shown_tasks(board.view)
    people = {
        id: member for room in rooms for id, member in {**room.former, **room.members}.items()
    }
    return api.PactBoard(
        repo=board.repo,
        project=truncate(view.project),
        base_branch=view.base_branch,
        sessions=sessions_of(rooms),
        events=board.events,
        trouble=board.trouble,
        left_out=sum(len(feature.tasks) for feature in view.features) - len(shown),
        seats=tuple(seat_of(seat, people) for seat in view.seats[:MAX_SEATS]),
        features=tuple(
            feature_of(feature, board, shown)
            for feature in view.features
            if not feature.tasks or any(task.id in shown for task in feature.tasks)
        ),
    )


def sessions_of(rooms: list[Room]) -> tuple[api.BoardSession, ...]:
    return tuple(api.BoardSession(id=room.id, name=room.name) for room in rooms)


def seat_of(seat: Seat, people: Mapping[str, Member]) -> api.BoardSeat:
    member = people.get(ids_by_slug(people).get(seat.id, ""))
    return api.BoardSeat(
        id=seat.id,
        roles=seat.roles,
        member=member.id if member else None,
        name=member.name if member else seat.id,
        kind=member.kind.value if member else None,
    )


def feature_of(
    feature: FeatureView, board: MirroredBoard, shown: frozenset[str]
) -> api.BoardFeature:
    unfinished = [task.id for task in feature.tasks if task.status is not TaskStatus.ACCEPTED]
    return api.BoardFeature(
        id=feature.id,
        branch=feature.branch,
        status=feature.status.value,
        accepted=len(feature.tasks) - len(unfinished),
        total=len(feature.tasks),
        open=tuple(unfinished[:MAX_OPEN]),
        tasks=tuple(task_of(task, board) for task in feature.tasks if task.id in shown),
    )


def task_of(task: Task, board: MirroredBoard) -> api.BoardTask:
    times = board.times.get(task.id, TaskTimes("", ""))
    return api.BoardTask(
        id=task.id,
        spec=truncate(task.spec),
        owner=task.owner,
        reviewer=task.reviewer,
        deps=task.deps[:MAX_DEPENDENCIES],
        status=task.status.value,
        returned=task.returned,
        evidence=truncate(task.evidence, MAX_TEXT),
        reason=truncate(task.reason, MAX_TEXT),
        commit=task.commit,
        created_at=times.created,
        updated_at=times.updated,
        accepted_at=times.completed or None,
        history=tuple(
            api.BoardTaskEvent(**event._asdict()) for event in board.history.get(task.id, ())
        ),
    )


PACT_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/pacts", list_pacts),
    Endpoint("GET", "/pacts/{repo}", read_pact),
)
