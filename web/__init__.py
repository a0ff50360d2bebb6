"""The pages on which people see runs, decide about them and answer: their application, its sessions, its reports.

Pages read through the facades of the packages below and act through the functions that the commands call.
"""

from typing import TYPE_CHECKING, Final

from interlock.core.exports import lazy_exports

if TYPE_CHECKING:
    from interlock.web.app import Pages, beside, link, make_pages
    from interlock.web.server_lock import serving
    from interlock.web.sessions import Rights, Sessions
    from interlock.web.single_file import report

__all__ = ["Pages", "Rights", "Sessions", "beside", "link", "make_pages", "report", "serving"]

PUBLIC_MODULES: Final = ()
"""What others import besides the names above."""

__getattr__ = lazy_exports(__name__, __file__)
