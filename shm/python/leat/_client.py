"""Client, Stream, Frame and Answer over leat.h.

Life times: a raw handle (`_Link`, `_Channel`) ends with its last reference. Arrays over shared memory refer to their
channel, a channel to its link, so nothing is unmapped under an array, whatever is closed first.
Threads: every call but connecting keeps the interpreter lock and does not block; waiting is done on the answer descriptor.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import time
import weakref
from typing import Iterator, Sequence

import numpy as np

from leat import _library
from leat._dlpack import View
from leat._errors import Disconnected, InvalidArgument, TimedOut, check, fail
from leat._library import quick
from leat._results import Result

_OK, _TIMED_OUT = 0, _library.ERROR_NAMES.index("timed_out")
_RING_FULL = _library.ERROR_NAMES.index("ring_full")
_byref = ctypes.byref
_COLOR_RANGE_NAMES, _COLOR_MATRIX_NAMES = list(_library.COLOR_RANGES), list(_library.COLOR_MATRICES)


def now_ns() -> int:
    """The clock of all times here: CLOCK_MONOTONIC in nanoseconds."""
    return quick.leat_now_ns()


class _Link:
    """Owns a leat_client."""

    def __init__(self, raw: int) -> None:
        self.raw: int | None = raw

    def __del__(self, disconnect=quick.leat_disconnect) -> None:
        raw, self.raw = self.raw, None  # the collector of cycles may end a link before its channels
        disconnect(raw)


class _Channel:
    """Owns a leat_stream; everything that looks at its slots refers to it."""

    def __init__(self, link: _Link, raw: int) -> None:
        self.link = link
        self.raw: int | None = raw

    @property
    def there(self) -> bool:
        """False once the collector of cycles has ended it, or its link, before what still refers to it."""
        return self.raw is not None and self.link.raw is not None

    def __del__(self, close=quick.leat_close_stream) -> None:
        raw, self.raw = self.raw, None
        if self.link.raw is not None:
            close(raw)


def _word(table: dict[str, int], word: str, what: str) -> int:
    try:
        return table[word]
    except KeyError:
        raise InvalidArgument(f"{what} '{word}' is not known; one of {', '.join(table)}") from None


def _colors(color_range: str, color_matrix: str) -> tuple[int, int]:
    return _word(_library.COLOR_RANGES, color_range, "color range"), _word(_library.COLOR_MATRICES, color_matrix, "color matrix")


def _span(address: int, size: int, owner: object) -> np.ndarray:
    """`size` bytes of shared memory as an array that keeps `owner` alive."""
    block = (ctypes.c_ubyte * size).from_address(address)
    block.owner = owner
    return np.frombuffer(block, np.uint8)


TensorSpec = tuple[object, Sequence[int]]  # what np.dtype() takes, and the dimensions without the batch
_DTYPES = [np.dtype(word) for word in _library.DTYPES[:-1]]
_PIXEL_BYTES = {_library.FORMATS["rgb24"]: 3, _library.FORMATS["bgr24"]: 3}


def _planes(raw: _library.Frame, owner: object) -> tuple[np.ndarray, ...]:
    """The slot's planes, rows x columns (x channels), with the slot's own strides."""
    planes = []
    for p in range(raw.plane_count):
        rows, stride, row_bytes = raw.rows[p], raw.strides[p], raw.row_bytes[p]
        span = _span(raw.planes[p], stride * (rows - 1) + row_bytes, owner)
        channels = _PIXEL_BYTES.get(raw.format, 2 if raw.format == _library.FORMATS["nv12"] and p == 1 else 1)
        if rows == 1 and raw.height > 1:  # an access unit's room
            channels = 1
        if channels > 1:
            shape, strides = (rows, row_bytes // channels, channels), (stride, channels, 1)
        else:
            shape, strides = (rows, row_bytes), (stride, 1)
        planes.append(np.ndarray.__new__(View, shape, np.uint8, span, 0, strides))
    return tuple(planes)


def _tensors(raw: _library.Frame, shapes: tuple[TensorSpec, ...], owner: object) -> tuple[np.ndarray, ...]:
    """The slot's tensors, one for each input of the model."""
    return tuple(
        np.ndarray.__new__(View, shape, dtype, _span(raw.tensors[i], raw.tensor_bytes[i], owner))
        for i, (dtype, shape) in enumerate(shapes)
    )


def _tensor_shapes(tensors: Sequence[TensorSpec]) -> tuple[tuple[np.dtype, tuple[int, ...]], ...]:
    shapes = []
    for dtype, shape in tensors:
        shapes.append((np.dtype(dtype), tuple(int(d) for d in shape)))
        if np.dtype(dtype) not in _DTYPES:
            raise InvalidArgument(f"a tensor of {np.dtype(dtype)} cannot be sent; one of {', '.join(map(str, _DTYPES))}")
        if len(shape) > _library.MAX_TENSOR_RANK:
            raise InvalidArgument(f"a tensor has at most {_library.MAX_TENSOR_RANK} dimensions")
    if len(shapes) > _library.MAX_TENSORS:
        raise InvalidArgument(f"a request has at most {_library.MAX_TENSORS} tensors")
    return tuple(shapes)


def _copy(given: object, slot: np.ndarray, tensor: bool) -> None:
    """Copies into a slot's array what is of its shape and type. NumPy alone would broadcast and cast whatever comes: a
    picture of 0..1 would become black."""
    values = np.asarray(given)
    is_text = f"{values.dtype} {values.shape}"
    if tensor:
        if values.dtype != slot.dtype and not (values.dtype.kind == slot.dtype.kind and np.can_cast(values.dtype, slot.dtype, "same_kind")):
            raise TypeError(f"the tensor cannot be sent: it is {is_text}, and the stream's is {slot.dtype} {slot.shape}; cast it with astype()")
    elif values.dtype != np.uint8:
        raise TypeError(
            f"the picture cannot be sent: it is {is_text}, and the stream's are uint8 {slot.shape}; make pixels of 0 to 255, "
            "of a picture of 0 to 1 by (255 * picture).round().astype(np.uint8)"
        )
    if values.shape != slot.shape:
        what = "tensor" if tensor else "picture"
        raise ValueError(f"the {what} cannot be sent: it is {is_text}, and the stream's {slot.dtype} {slot.shape}; send one of that shape")
    slot[...] = values


def _allow_writes(planes: tuple[np.ndarray, ...], allowed: bool) -> None:
    for plane in planes:
        plane.flags.writeable = allowed


class Frame:
    """A slot being written. Left unsubmitted (`with`, or garbage) it goes back to the stream.
    `planes` are its arrays: the picture's planes, or the tensors of a stream of tensors."""

    __slots__ = ("stream", "_raw", "_channel", "planes")

    def __init__(self, stream: Stream, raw: _library.Frame, planes: tuple[np.ndarray, ...]) -> None:
        self.stream, self._raw, self._channel, self.planes = stream, raw, stream._channel, planes

    @property
    def array(self) -> np.ndarray:
        """The first plane: the whole picture of rgb24, bgr24 and gray8 (height, width[, 3]), Y of nv12 and i420."""
        return self.planes[0]

    @property
    def tensors(self) -> tuple[np.ndarray, ...]:
        """The tensors to write, in the model's order (streams of the format "tensors")."""
        return self.planes

    @property
    def slot(self) -> int:
        return self._raw.slot

    def submit(
        self,
        *,
        capture_ns: int = 0,
        deadline_ns: int = 0,
        cookie: int = 0,
        key: int = 0,
        items: int = 0,
        more: bool = False,
        size: int = 0,
        gap: bool = False,
        color_range: str = "unspecified",
        color_matrix: str = "unspecified",
        damaged: bool = False,
    ) -> int:
        """Hands the slot to leatd; its arrays become read-only. Returns the ticket that the answer will bear.
        `more`: other frames follow at once, so the wake can wait for them (Client.flush sends it). Of a bitstream,
        `size`: of the access unit in bytes; `gap`: others before it are missing. `color_range` ("limited", "full") and
        `color_matrix` ("bt601", "bt709", "bt2020"): of this frame, where they differ from the stream's. `damaged`: its
        decoder concealed an error in it, or it refers to a frame with one; its answer says so too."""
        flags = (_library.SUBMIT_MORE if more else 0) | (_library.SUBMIT_GAP if gap else 0) | (_library.SUBMIT_DAMAGED if damaged else 0)
        range_, matrix = _colors(color_range, color_matrix)
        options = _library.SubmitOptions(capture_ns, deadline_ns, cookie, key, items, flags, size, range_, matrix)
        ticket = ctypes.c_uint64()
        check(quick.leat_submit(_byref(self._raw), _byref(options), _byref(ticket)))
        _allow_writes(self.planes, False)
        self.stream.client._in_flight += 1
        return ticket.value

    def abandon(self) -> None:
        """Gives the slot back unsubmitted; nothing happens if it was submitted."""
        if self._raw.stream:
            _allow_writes(self.planes, False)
            quick.leat_abandon(_byref(self._raw))

    def __enter__(self) -> Frame:
        return self

    def __exit__(self, *exc: object) -> None:
        self.abandon()

    def __del__(self) -> None:
        if self._raw.stream and self._channel.there:
            self.abandon()

    def __dlpack__(self, *, stream=None):
        return self.array.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class Answer:
    """The one answer of a frame. Its slot is given back by release(), at the end of `with`, or with its last array."""

    __slots__ = ("stream", "_raw", "_channel", "__weakref__")

    def __init__(self, stream: Stream, raw: _library.Answer) -> None:
        self.stream, self._raw, self._channel = stream, raw, stream._channel

    outcome = property(lambda self: _library.OUTCOME_NAMES[self._raw.outcome], doc="'completed', 'late', 'dropped', ...")
    reason = property(lambda self: _library.REASON_NAMES[self._raw.reason], doc="'none', 'expired', 'overload', ...")
    ticket = property(lambda self: self._raw.ticket, doc="what Frame.submit returned")
    cookie = property(lambda self: self._raw.cookie, doc="the caller's own, from submit")
    capture_ns = property(lambda self: self._raw.capture_ns)
    deadline_ns = property(lambda self: self._raw.deadline_ns)
    answered_ns = property(lambda self: self._raw.answered_ns)
    latency_ns = property(lambda self: self._raw.answered_ns - self._raw.capture_ns, doc="from capture to the answer")
    dispatched_ns = property(
        lambda self: quick.leat_dispatched_ns(_byref(self._raw)), doc="when it was first sent to a worker; 0: never"
    )

    @property
    def damaged(self) -> bool:
        """The frame was submitted as damaged, or leatd's decoder concealed an error in it."""
        return bool(self._raw.flags & _library.ANSWER_DAMAGED)

    @property
    def reason_text(self) -> str:
        """What happened, in a sentence, and what can be done."""
        return quick.leat_reason_text(self._raw.reason).decode()

    @property
    def where(self) -> int | None:
        """Index of the module where it was dropped or failed."""
        return None if self._raw.where == 0xFFFFFFFF else self._raw.where

    @property
    def result(self) -> Result | None:
        """None unless completed or late."""
        if not self._raw.stream:
            raise InvalidArgument("the answer was released: read its result before")
        if not self._raw.result:
            return None
        return Result(self, self.stream.class_name, self._raw.result, self._raw.result_bytes)

    def _frame(self) -> _library.Frame:
        if not self._raw.stream:
            raise InvalidArgument("the answer was released: look at its frame before")
        raw = _library.Frame()
        check(quick.leat_answer_frame(_byref(self._raw), _byref(raw)))
        return raw

    @property
    def colors(self) -> tuple[str, str]:
        """The color range and matrix that the frame was served with."""
        raw = self._frame()
        return _COLOR_RANGE_NAMES[raw.color_range], _COLOR_MATRIX_NAMES[raw.color_matrix]

    @property
    def planes(self) -> tuple[np.ndarray, ...]:
        """The answered frame's pixels, read-only, until the answer is released."""
        raw = self._frame()
        planes = self.stream._views(raw, self)
        _allow_writes(planes, False)
        return planes

    @property
    def array(self) -> np.ndarray:
        """The first plane of the answered frame."""
        return self.planes[0]

    def release(self) -> None:
        """Gives the slot back; arrays made from this answer must not be read any more."""
        if self._raw.stream:
            quick.leat_release(_byref(self._raw))
            if self.stream._freed is not None:
                self.stream._freed()

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()

    def __del__(self) -> None:
        if self._raw.stream and self._channel.there:
            self.release()

    def __repr__(self) -> str:
        reason = "" if self._raw.reason == 0 else f" ({self.reason})"
        return f"<leat.Answer {self.outcome}{reason} {self.latency_ns / 1e6:.1f} ms>"


class Stream:
    """A sequence of frames of one format, application and latency objective."""

    def __init__(self, client: Client, raw: int, shapes: tuple = ()) -> None:
        self.client = client
        self._shapes = shapes  # of a stream of tensors
        self._channel: _Channel | None = _Channel(client._link, raw)
        self._slots: dict[int, tuple[np.ndarray, ...]] = {}  # planes of each slot, made once
        self._freed = None  # called when a slot has become free (asyncio)

    def _open(self) -> _Channel:
        if self._channel is None:
            raise InvalidArgument("the stream is closed")
        return self._channel

    @property
    def slots(self) -> int:
        """How many frames may be written, in flight or unreleased at once."""
        return quick.leat_stream_slots(self._open().raw)

    @property
    def slo_ns(self) -> int:
        """The latency objective as leatd granted it."""
        return quick.leat_stream_slo_ns(self._open().raw)

    def class_name(self, class_id: int, head: int = 0) -> str | None:
        """Name of a class; head 0: the detector's or classifier's, 1 + h: of label head h."""
        name = quick.leat_class_name(self._open().raw, head, class_id)
        return None if name is None else name.decode(errors="replace")

    def _views(self, raw: _library.Frame, owner: object) -> tuple[np.ndarray, ...]:
        return _tensors(raw, self._shapes, owner) if self._shapes else _planes(raw, owner)

    def acquire(self) -> Frame:
        """A free slot to write into; RingFull when there is none. Never blocks."""
        channel = self._open()
        raw = _library.Frame()
        error = quick.leat_acquire(channel.raw, _byref(raw))
        if error:
            fail(error)
        planes = self._slots.get(raw.slot)
        if planes is None:
            planes = self._slots[raw.slot] = self._views(raw, channel)
        _allow_writes(planes, True)
        return Frame(self, raw, planes)

    def wanted(self, capture_ns: int = 0) -> bool:
        """Whether a frame taken then is wanted now; always, unless the stream waits for grants. Each later capture_ns
        counts as one more frame offered. Asking uses nothing up: submitting does."""
        return bool(quick.leat_wanted(self._open().raw, capture_ns))

    def wait_wanted(self, timeout: float | None = None, capture_ns: int = 0) -> bool:
        """Waits until one is, `timeout` seconds at most (None: as long as it takes). False: it is not wanted yet."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            fd = self.client.fileno()  # before the look: from then on a look arms it
            error = quick.leat_wait_wanted(self._open().raw, capture_ns, 0)
            if error != _TIMED_OUT:
                check(error)
                return True
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return False
            self.client._wait(fd, left)

    def should_submit(self, capture_ns: int, expected: float = -1.0) -> bool:
        """Of a stream opened with `sla_drop`, for each frame: whether it is to be submitted. `expected`: what tracking has
        lost on it by now, 0 to 1, where your tracker can tell."""
        return bool(quick.leat_should_submit_expecting(self._open().raw, capture_ns, expected))

    def observe(self, stride: int, drop: float, expected: float = -1.0) -> None:
        """At an answer: how far what tracking had made of that frame, `stride` frames after the answer before, was from
        it (0 to 1), and how far it had expected to be."""
        error = quick.leat_observe_expecting(self._open().raw, stride, drop, expected)
        if error != _RING_FULL:  # a hint that is left out does no harm
            check(error)

    def submit(self, picture: np.ndarray, **options: int) -> int:
        """Acquires a slot, copies `picture` into its first plane and submits it: the short way for arrays made elsewhere.
        A picture is uint8 of the slot's shape. A tensor is of the slot's shape, and its type may be a wider or narrower one
        of the same kind (float64 for float32). TypeError, ValueError: it is not; nothing was sent."""
        with self.acquire() as frame:
            _copy(picture, frame.array, bool(self._shapes))
            return frame.submit(**options)

    def submit_unit(self, unit: bytes, **options: int) -> int:
        """Acquires a slot, copies an access unit into it and submits it (streams opened with a codec)."""
        with self.acquire() as frame:
            frame.array[0, : len(unit)] = np.frombuffer(unit, np.uint8)
            return frame.submit(size=len(unit), **options)

    def cancel(self, ticket: int) -> None:
        """Asks for an early end; the one answer says whether it came in time."""
        check(quick.leat_cancel(self._open().raw, ticket))

    def close(self) -> None:
        """Ends the stream; answers still to come are discarded. Slots that an array looks at stay until it is gone."""
        if self._channel is not None:
            self.client._streams.pop(self._channel.raw, None)
            self._slots.clear()
            self._channel = None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Client:
    """A connection to leatd; `leat.connect()` makes it."""

    def __init__(self, link: _Link) -> None:
        self._link: _Link | None = link
        self._streams: weakref.WeakValueDictionary[int, Stream] = weakref.WeakValueDictionary()
        self._in_flight = 0
        self._poll: select.poll | None = None

    def _open(self) -> _Link:
        if self._link is None:
            raise InvalidArgument("the client is closed")
        return self._link

    def open_stream(
        self,
        application: str,
        format: str,
        width: int = 0,
        height: int = 0,
        *,
        tensors: Sequence[TensorSpec] = (),
        depth: int = 0,
        slots: int = 0,
        overload: str = "latest",
        priority: str = "normal",
        slo_ns: int = 0,
        max_age_ns: int = 0,
        period_ns: int = 0,
        strides: tuple[int, ...] = (),
        waits_for_grants: bool = False,
        sla_drop: float = 0.0,
        codec: str | None = None,
        name: str | None = None,
        color_range: str = "unspecified",
        color_matrix: str = "unspecified",
    ) -> Stream:
        """Formats: nv12, i420, rgb24, bgr24, gray8; or "tensors", with the type and shape of each input of the model
        (without the batch), for example tensors=[("float32", (3, 48, 320))]. `overload` says what gives way when `depth` frames wait: fifo,
        latest, latest_per_key, never_drop. 0 means leatd's default everywhere. `waits_for_grants`: Stream.wanted and
        Stream.wait_wanted are looked at before a frame is made. `sla_drop`: a coordinated stream, which may lose so much
        accuracy (0 to 0.5), sends what Stream.should_submit says and reports by Stream.observe; needs period_ns.
        `codec`: h264, hevc, av1 (format nv12), jpeg (format rgb24): frames are access units, which leatd decodes
        (Stream.submit_unit). `name` is shown by `leat top`. `color_range` ("limited", "full") and `color_matrix` ("bt601",
        "bt709", "bt2020"): of the frames' Y, U and V; unspecified: limited, and bt601 below 720 lines, else bt709."""
        link = self._open()
        options = _library.StreamOptions()
        quick.leat_stream_options_init(_byref(options))
        options.application = application.encode()
        options.format = _word(_library.FORMATS, format, "format")
        options.width, options.height, options.depth, options.slots = width, height, depth, slots
        options.overload = _word(_library.OVERLOADS, overload, "overload rule")
        options.priority = _word(_library.PRIORITIES, priority, "priority")
        options.slo_ns, options.max_age_ns, options.period_ns = slo_ns, max_age_ns, period_ns
        options.waits_for_grants = waits_for_grants
        options.sla_drop_ppm = round(1e6 * sla_drop)
        if codec is not None:
            options.memory, options.codec = _library.SLOT_BITSTREAM, _word(_library.CODECS, codec, "codec")
        options.name = None if name is None else name.encode()
        options.color_range, options.color_matrix = _colors(color_range, color_matrix)
        for p, stride in enumerate(strides):
            options.strides[p] = stride
        shapes = _tensor_shapes(tensors)
        if shapes:
            described = (_library.TensorShape * len(shapes))()
            for entry, (dtype, shape) in zip(described, shapes):
                entry.dtype, entry.rank = _DTYPES.index(dtype), len(shape)
                entry.dims[: len(shape)] = shape
            options.tensors, options.tensor_count = described, len(shapes)
        raw = ctypes.c_void_p()
        check(quick.leat_open_stream(link.raw, _byref(options), _byref(raw)))
        stream = Stream(self, raw.value, shapes)
        self._streams[raw.value] = stream
        return stream

    def poll_answer(self) -> Answer | None:
        """The next answer, if one is there. Once it returned None, fileno() becomes readable when one comes."""
        link = self._open()
        while True:
            raw = _library.Answer()
            error = quick.leat_next_answer(link.raw, 0, _byref(raw))
            if error == _OK:
                self._in_flight -= 1
                stream = self._streams.get(raw.stream)
                if stream is not None:
                    return Answer(stream, raw)
                quick.leat_release(_byref(raw))  # its Stream object is gone: nobody can ask for it
            elif error == _TIMED_OUT:
                return None
            else:
                fail(error)

    def next_answer(self, timeout: float | None = None) -> Answer:
        """The next answer of any stream. `timeout` in seconds (None: as long as it takes); TimedOut when none came."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            fd = self.fileno()  # before the look: from then on an empty look arms it
            answer = self.poll_answer()
            if answer is not None:
                return answer
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise TimedOut("no answer came within the time given")
            self._wait(fd, left)

    def _wait(self, fd: int, seconds: float | None) -> None:
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(fd, select.POLLIN)
        self._poll.poll(None if seconds is None else max(1, round(seconds * 1000)))

    def answers(self, timeout: float | None = None) -> Iterator[Answer]:
        """Answers as they come; ends when none came for `timeout` seconds."""
        while True:
            try:
                yield self.next_answer(timeout)
            except TimedOut:
                return

    def drain(self) -> Iterator[Answer]:
        """The answers of everything in flight, then ends."""
        while self._in_flight > 0:
            yield self.next_answer()

    @property
    def in_flight(self) -> int:
        """Frames submitted and not answered yet."""
        return self._in_flight

    def flush(self) -> None:
        """Sends the wake that submits with `more` held back."""
        check(quick.leat_flush(self._open().raw))

    def fileno(self) -> int:
        """A descriptor for poll, select or asyncio; call poll_answer() until it returns None before each wait on it."""
        fd = quick.leat_answer_fd(self._open().raw)
        if fd < 0:
            raise Disconnected("leatd closed the connection or ended; close this client and connect again")
        return fd

    def close(self) -> None:
        """Ends every stream and the connection, as soon as no array looks at them any more."""
        for stream in list(self._streams.values()):
            stream.close()
        self._link = self._poll = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def connect(socket: str | os.PathLike[str] | None = None, name: str | None = None, timeout: float = 0.0) -> Client:
    """Connects to leatd. `name` is what `leat top` shows; `timeout` seconds for each control exchange (0: the library's)."""
    options = _library.ConnectOptions()
    options.socket = None if socket is None else os.fsencode(socket)
    options.name = None if name is None else name.encode()
    options.timeout_ns = round(timeout * 1e9)
    raw = ctypes.c_void_p()
    check(_library.blocking.leat_connect(_byref(options), _byref(raw)))
    return Client(_Link(raw.value))


def status(socket: str | os.PathLike[str] | None = None) -> dict:
    """What leatd serves, as `leat status --json` says it: of each module of tensors its "inputs" and "outputs" too."""
    path = None if socket is None else os.fsencode(socket)
    text = ctypes.create_string_buffer(1 << 17)  # the longest message that leatd sends
    check(_library.blocking.leat_status(path, text, len(text), None))
    return json.loads(text.value)
