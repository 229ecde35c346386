"""leat.aio against a real leatd: many streams on one loop, back-pressure, cancellation, a daemon that dies."""

from __future__ import annotations

import asyncio
import unittest

from daemon import Daemon

import leat.aio


class Asynchronous(unittest.IsolatedAsyncioTestCase):
    async def test_sixteen_streams_at_once(self) -> None:
        with Daemon() as daemon:
            async with leat.aio.connect(daemon.socket, timeout=60) as client:

                async def camera(index: int) -> int:
                    done = 0
                    async with client.open_stream("echo", "gray8", 32, 16, depth=2, slots=3, overload="fifo") as stream:
                        for n in range(50):
                            frame = await stream.acquire()
                            frame.array[:] = n
                            with await stream.ask(frame, cookie=index * 1000 + n) as answer:
                                self.assertEqual((answer.outcome, answer.cookie), ("completed", index * 1000 + n))
                                self.assertTrue((answer.array == n).all())
                                done += 1
                    return done

                self.assertEqual(await asyncio.gather(*(camera(i) for i in range(16))), [50] * 16)
                self.assertEqual(client.in_flight, 0)

    async def test_acquire_waits_for_a_slot_and_answers_iterate(self) -> None:
        with Daemon() as daemon:
            async with leat.aio.connect(daemon.socket, timeout=60) as client:
                stream = client.open_stream("echo", "gray8", 16, 16, depth=1, slots=1, overload="fifo")

                async def feed() -> None:
                    for n in range(20):
                        frame = await stream.acquire()
                        frame.submit(cookie=n)

                feeder = asyncio.create_task(feed())
                seen = []
                async for answer in client.answers():
                    with answer:
                        seen.append(answer.cookie)
                    if len(seen) == 20:
                        break
                await feeder
                self.assertEqual(seen, list(range(20)))

    async def test_a_cancelled_ask_cancels_its_frame(self) -> None:
        with Daemon("[60000]") as daemon:
            async with leat.aio.connect(daemon.socket, timeout=60) as client:
                stream = client.open_stream("echo", "gray8", 16, 16, depth=4, slots=4, overload="fifo", slo_ns=10**11)
                running = [asyncio.create_task(stream.ask(await stream.acquire())) for _ in range(4)]
                await asyncio.sleep(0)
                running[3].cancel()  # two partitions hold the first two; this one still waits
                with self.assertRaises(asyncio.CancelledError):
                    await running[3]
                frame = await asyncio.wait_for(stream.acquire(), 60)  # its slot comes back
                frame.abandon()
                for task in running[:3]:
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)

    async def test_a_killed_daemon_raises_everywhere(self) -> None:
        with Daemon("[60000]") as daemon:
            client = await leat.aio.connect(daemon.socket, timeout=60)
            stream = client.open_stream("echo", "gray8", 16, 16, slo_ns=10**11)
            asked = asyncio.create_task(stream.ask(await stream.acquire()))
            await asyncio.sleep(0)
            daemon.kill()
            with self.assertRaises(leat.Disconnected):
                await asyncio.wait_for(asked, 60)
            with self.assertRaises(leat.Disconnected):
                await asyncio.wait_for(client.next_answer(), 60)
            client.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
