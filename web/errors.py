"""What the pages refuse."""

from interlock.core.errors import InterlockError


class PageError(InterlockError):
    """A page, or the file of the sessions, refuses.

    WEB403 the session may not do it or the form does not say enough, WEB404 what the address names is not there, WEB409
    it is not in that state, WEB901 the file of the sessions is open to others or damaged. A call about reservations
    that is refused keeps the code of its own rule.
    """

    def __init__(self, code: str, message: str, fix: str) -> None:
        super().__init__(message, fix, code)
