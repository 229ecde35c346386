"""leat_error as exceptions: one class for each error a program may want to tell apart, all of them leat.Error."""

from __future__ import annotations

from typing import NoReturn

from leat import _library


class Error(Exception):
    """A call of the library failed. `code` is leat_error's name; the text says what is wrong and what to do."""

    code = "system"


class DaemonAbsent(Error, ConnectionError):
    code = "daemon_absent"


class Disconnected(Error, ConnectionError):
    """leatd closed the connection or ended: close this client and connect anew."""

    code = "disconnected"


class NoSuchApplication(Error, LookupError):
    code = "no_such_application"


class NotPermitted(Error, PermissionError):
    code = "not_permitted"


class FormatMismatch(Error, ValueError):
    code = "format_mismatch"


class InvalidArgument(Error, ValueError):
    code = "invalid_argument"


class RingFull(Error):
    """Every slot of the stream is in use: take and release answers, skip this frame, or open the stream with more slots."""

    code = "ring_full"


class TimedOut(Error, TimeoutError):
    code = "timed_out"


class NoRoom(Error):
    code = "no_room"


class NotReady(Error):
    code = "not_ready"


_CLASSES = {cls.code: cls for cls in Error.__subclasses__()}


def fail(error: int) -> NoReturn:
    """Raises what leat_error `error` of the call just made means."""
    code = _library.ERROR_NAMES[error] if error < len(_library.ERROR_NAMES) else "unknown"
    line = _library.quick.leat_last_error() or _library.quick.leat_error_text(error)
    exception = _CLASSES.get(code, Error)(line.decode(errors="replace"))
    exception.code = code
    raise exception


def check(error: int) -> None:
    if error:
        fail(error)
