"""Several cameras in one asyncio program; each waits for its own answers. Usage: many_cameras.py [SOCKET] [PICTURES]"""
import asyncio
import sys

import leat.aio


async def camera(client: leat.aio.Client, number: int, pictures: int) -> None:
    async with client.open_stream("shapes", "rgb24", 640, 360, depth=2) as stream:
        for picture in range(pictures):
            frame = await stream.acquire()  # waits for a free slot
            frame.array[:] = picture & 255
            with await stream.ask(frame, capture_ns=leat.now_ns()) as answer:
                print(f"camera {number}, picture {picture}: {answer.outcome}")


async def main() -> None:
    async with leat.aio.connect(sys.argv[1] if len(sys.argv) > 1 else None) as client:
        pictures = int(sys.argv[2]) if len(sys.argv) > 2 else 100
        await asyncio.gather(*(camera(client, number, pictures) for number in range(4)))


asyncio.run(main())
