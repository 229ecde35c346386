"""The same camera loop in Python. Usage: camera.py [SOCKET] [PICTURES]"""
import sys

import leat

socket = sys.argv[1] if len(sys.argv) > 1 else None
with leat.connect(socket, "camera") as client, client.open_stream("shapes", "rgb24", 640, 360, waits_for_grants=True) as stream:
    for left in range(int(sys.argv[2]) if len(sys.argv) > 2 else 100, 0, -1):
        stream.wait_wanted(timeout=1.0)  # at once, unless more comes than can be served: then when it is its turn
        try:
            with stream.acquire() as frame:
                frame.array[:] = left & 255  # here the camera writes: a NumPy view of shared memory
                frame.submit(capture_ns=leat.now_ns())
        except leat.RingFull:
            pass  # every slot is in use: a camera would skip this picture
        with client.next_answer(timeout=1.0) as answer:
            if answer.result is None:
                print(f"{answer.outcome}: {answer.reason_text}")
            else:
                print(f"{len(answer.result)} found after {answer.latency_ns / 1e6:.1f} ms:", *(d.name for d in answer.result))
