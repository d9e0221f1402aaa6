"""What can go wrong, and whose turn it is to mend it.

    OpscanError                 the user can mend it: one message, no traceback
    ├── UsageError              flags, targets, input specs, settings            exit 2
    ├── DataError               an unreadable, corrupt or too new file of ours   exit 2
    ├── LocateError             no model could be found or built                 exit 3
    │   └── SourceError         what was named is missing or is not Python       exit 2
    └── CaptureError            a model was found and its step cannot be seen    exit 3

Anything else that escapes is a bug of opscan: a traceback and a request to report it (exit 2).
"""

from __future__ import annotations

__all__ = [
    "CaptureError",
    "DataError",
    "LocateError",
    "OpscanError",
    "SourceError",
    "UsageError",
]


class OpscanError(Exception):
    """A failure the user can mend.

    `message` says what and where; `remedy` says how to mend it.
    """

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n  {self.remedy}" if self.remedy else self.message


class UsageError(OpscanError):
    """A flag, target, input spec or setting that opscan cannot use."""


class DataError(OpscanError):
    """A data file or report that is unreadable, corrupt, or newer than this opscan."""


class LocateError(OpscanError):
    """No model could be found in, or built from, what the user named."""


class SourceError(LocateError):
    """What the user named does not exist, cannot be read, or does not parse as Python."""


class CaptureError(OpscanError):
    """A model was found, but no method could see its step."""
