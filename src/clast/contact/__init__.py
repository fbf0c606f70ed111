"""From bodies to contacts: broad phases, narrow phase, and the memory of contacts."""

from .narrow import find_contacts

__all__ = ["find_contacts"]
