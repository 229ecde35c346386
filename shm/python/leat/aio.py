"""leat for asyncio: the same objects, with what waits made awaitable.

    async with leat.aio.connect() as client:
        stream = client.open_stream("shapes", "rgb24", 640, 360)
        frame = await stream.acquire()            # waits for a free slot
        frame.array[:] = picture
        with await stream.ask(frame) as answer:   # this frame's answer
            ...

A loop watches the answer descriptor; nothing is polled and no thread is started. One event loop a client.
"""

from __future__ import annotations

import asyncio
import collections
from typing import Any, AsyncIterator

from leat import _client
from leat._client import Answer, Frame
from leat._errors import Error, RingFull


class Stream:
    """A leat.Stream whose slots and answers can be awaited."""

    def __init__(self, client: Client, stream: _client.Stream) -> None:
        self._client, self._stream = client, stream
        self._waiting: collections.deque[asyncio.Future[None]] = collections.deque()
        stream._freed = self._wake

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def acquire(self) -> Frame:
        """A free slot, as soon as there is one: answers must be taken and released meanwhile."""
        while True:
            try:
                return self._stream.acquire()
            except RingFull:
                waiter = asyncio.get_running_loop().create_future()
                self._waiting.append(waiter)
                await waiter

    async def ask(self, frame: Frame, **options: int) -> Answer:
        """Submits the frame and waits for its own answer. Cancelled, it cancels the frame."""
        return await self._client._ask(self._stream, frame.submit(**options))

    def close(self) -> None:
        self._stream._freed = None
        self._stream.close()
        while self._waiting:
            self._wake()

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()


class Client:
    """A leat.Client on the running event loop."""

    def __init__(self, client: _client.Client) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._asked: dict[tuple[_client.Stream, int], asyncio.Future[Answer]] = {}
        self._others: asyncio.Queue[Answer | Error] = asyncio.Queue()
        self._fd = client.fileno()
        self._loop.add_reader(self._fd, self._take)
        self._take()  # arms the descriptor

    def open_stream(self, *args: Any, **options: Any) -> Stream:
        """As leat.Client.open_stream."""
        return Stream(self, self._client.open_stream(*args, **options))

    @property
    def in_flight(self) -> int:
        return self._client.in_flight

    def _take(self) -> None:
        try:
            while (answer := self._client.poll_answer()) is not None:
                asked = self._asked.pop((answer.stream, answer.ticket), None)
                if asked is None:
                    self._others.put_nowait(answer)
                elif not asked.done():
                    asked.set_result(answer)
        except Error as error:
            self._stop()
            for asked in self._asked.values():
                if not asked.done():
                    asked.set_exception(error)
            self._asked.clear()
            self._others.put_nowait(error)

    def _stop(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            self._fd = -1

    async def _ask(self, stream: _client.Stream, ticket: int) -> Answer:
        asked = self._asked[stream, ticket] = self._loop.create_future()
        try:
            return await asked
        except asyncio.CancelledError:
            if self._fd >= 0 and stream._channel is not None:
                stream.cancel(ticket)
            raise

    async def next_answer(self) -> Answer:
        """The next answer that no ask() waits for."""
        answer = await self._others.get()
        if isinstance(answer, Error):
            self._others.put_nowait(answer)  # for whoever asks next
            raise answer
        return answer

    async def answers(self) -> AsyncIterator[Answer]:
        """Answers that no ask() waits for, as they come."""
        while True:
            yield await self.next_answer()

    def close(self) -> None:
        self._stop()
        for asked in self._asked.values():
            asked.cancel()
        self._asked.clear()
        self._client.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()


class connect:
    """`async with leat.aio.connect() as client`, or `client = await leat.aio.connect()`. Arguments as leat.connect."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._args, self._options = args, options
        self._client: Client | None = None

    async def _connect(self) -> Client:
        loop = asyncio.get_running_loop()
        self._client = Client(await loop.run_in_executor(None, lambda: _client.connect(*self._args, **self._options)))
        return self._client

    def __await__(self):
        return self._connect().__await__()

    async def __aenter__(self) -> Client:
        return await self._connect()

    async def __aexit__(self, *exc: object) -> None:
        if self._client is not None:
            self._client.close()
