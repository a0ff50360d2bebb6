"""What the contract of stores begins with."""

from tests.reservations.databases import empty_reservations, reservations_database

__all__ = ["empty_reservations", "reservations_database"]
