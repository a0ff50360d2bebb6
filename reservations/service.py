"""The calls of one agent: what the MCP tools, the command line, the hooks and the graph use."""

from interlock.reservations import status
from interlock.reservations.leases import calls
from interlock.reservations.leases.runtime import Context
from interlock.reservations.messages import negotiation, response, sending


class Reservations(Context):
    """What one agent can do. The first call registers the agent; every call is a sign of life.

    A refusal is an answer with `errors`, never an exception; exceptions (`ReservationError`) are for what the agent
    cannot correct. Every argument may be anything: what has the wrong type is refused like any other wrong value.
    """

    reserve_files = calls.reserve
    release_files = calls.release
    release_all = calls.release_all
    check_conflicts = calls.check
    my_reservations = calls.mine
    send_message = sending.send
    fetch_inbox = sending.fetch
    list_agents = status.list_agents
    request_release = negotiation.request
    negotiate_release = negotiation.negotiate
    respond_to_release = response.respond
    standing = status.standing
    join = status.join
    leave = status.leave
