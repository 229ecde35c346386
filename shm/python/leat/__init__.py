"""Client of leatd: put frames into shared memory, take one answer for each.

    import leat

    with leat.connect() as client, client.open_stream("shapes", "rgb24", 640, 360) as stream:
        with stream.acquire() as frame:
            frame.array[:] = picture          # the frame's only write: straight into shared memory
            frame.submit(capture_ns=taken_at)
        with client.next_answer(timeout=1.0) as answer:
            print(answer.outcome, [d.name for d in answer.result])

Arrays are views of shared memory, never copies. A view keeps what it looks at alive: a slot is given back, a stream closed
and a connection ended when the last array that needs it is gone. Errors are exceptions (`leat.Error` and below) with the
library's own line about what is wrong and what to do. Any thread may use a client; `leat.aio` is the same for asyncio.
"""

from leat._certainty import Certainty
from leat._client import Answer, Client, Frame, Stream, connect, now_ns, status
from leat._errors import (
    DaemonAbsent,
    Disconnected,
    Error,
    FormatMismatch,
    InvalidArgument,
    NoRoom,
    NoSuchApplication,
    NotPermitted,
    NotReady,
    RingFull,
    TimedOut,
)
from leat._library import default_socket, library_path
from leat._results import Detection, Label, Part, Result
from leat._tracks import TrackIds

__all__ = [
    "Answer",
    "Certainty",
    "Client",
    "DaemonAbsent",
    "Detection",
    "Disconnected",
    "Error",
    "FormatMismatch",
    "Frame",
    "InvalidArgument",
    "Label",
    "NoRoom",
    "NoSuchApplication",
    "NotPermitted",
    "NotReady",
    "Part",
    "Result",
    "RingFull",
    "Stream",
    "TimedOut",
    "TrackIds",
    "connect",
    "default_socket",
    "library_path",
    "now_ns",
    "status",
]
