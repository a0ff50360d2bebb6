"""What the contract of a store is tested with: a backend to plug in, and records to store."""

from typing import Any, Protocol, TypeAlias

from interlock.reservations import Agent, Lease, Message, Negotiation, PostgresStore, SqliteStore, Waiter, replace

Store: TypeAlias = SqliteStore | PostgresStore


class Backend(Protocol):
    """One empty store, to be opened as often as a test wants."""

    def open(self, patience_seconds: float = 15) -> Store:
        """Return a handle on the rows, another at each call where the store allows several."""
        ...


class SharedBackend(Backend, Protocol):
    """One empty store that several processes may open."""

    def program(self) -> str:
        """Return Python source that opens the rows in another process as `store`."""
        ...


def agent(name: str = "Ada", **changes: Any) -> Agent:
    base = Agent(name, "agent", "host-1", 4711, "boot/123", "mcp", 1000.25, 1000.5, 7)
    return replace(base, **changes)


def lease(number: int = 1, **changes: Any) -> Lease:
    base = Lease(
        reservation_id=f"rsv_{number:016x}",
        agent="Ada",
        pattern=f"src/{number}.py",
        prefix=f"src/{number}.py",
        exclusive=True,
        no_force=False,
        claim=False,
        reason="to mend it",
        token=number,
        granted_at=1000.0 + number,
        renewed_at=1000.5 + number,
        expires_at=2000.0 + number,
        held_until=1500.25,
    )
    return replace(base, **changes)


def waiter(**changes: Any) -> Waiter:
    return replace(Waiter(0, "Ada", ("a.py", "b/**"), True, False, "soon", 900.0, 10.0, 70.0), **changes)


def message(**changes: Any) -> Message:
    base = Message(0, "neg_1", "Ada", "Bob", "release-request", "high", True, None, '{"file": "a"}', 10.0, None)
    return replace(base, **changes)


def negotiation(number: int = 1, **changes: Any) -> Negotiation:
    base = Negotiation(
        thread_id=f"neg_{number:016x}",
        reservation_id="rsv_1",
        pattern="src/**",
        holder="Ada",
        requester="Bob",
        file="src/a.py",
        reason="needed",
        urgency="normal",
        legacy=False,
        state="pending",
        eta_minutes=None,
        note="",
        created_at=100.0 + number,
        deadline=700.0,
        resolved_at=None,
    )
    return replace(base, **changes)
