"""The one kind of error that is a person's to mend: its message is shown, without a traceback.

It stands in the most upstream room because every room raises it. Whatever is not one of these is a
mistake of ours, and the command line says so.
"""

from __future__ import annotations


class UserError(Exception):
    """Something asked for or given cannot be used; the message says what, where and what to do."""
