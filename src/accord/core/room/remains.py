"""What is kept of a session whose records are removed: who was there, and nothing that was said."""

from accord.core.room.state import Room


def remains(room: Room) -> Room:
    """Enough to list it, to know its members, and to fold how it ended."""
    return Room(
        id=room.id,
        name=room.name,
        workspace=room.workspace,
        config=room.config,
        created_at=room.created_at,
        created_by=room.created_by,
        members=room.members,
        former=room.former,
    )
