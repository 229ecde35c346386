"""The Python half of bench/serving/python_client: offers frames at a rate through one stream and prints what came back.

usage: python_client.py SOCKET RATE SECONDS
"""

import json
import resource
import sys
import time

import numpy as np

import leat

socket, rate, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
picture = np.zeros((360, 640, 3), np.uint8)
completed = refused = other = 0
with leat.connect(socket, "python") as client:
    stream = client.open_stream("echo", "rgb24", 640, 360, depth=16, slots=24, overload="fifo")
    period, due = 1 / rate, time.monotonic()
    end = due + seconds
    cpu = resource.getrusage(resource.RUSAGE_SELF)
    while due < end or client.in_flight:
        now = time.monotonic()
        while due <= now and due < end:
            try:
                with stream.acquire() as frame:
                    frame.array[...] = picture
                    frame.submit()
            except leat.RingFull:
                refused += 1
            due += period
        try:
            wait = max(0.0, due - time.monotonic()) if due < end else 5.0
            while True:
                with client.next_answer(wait) as answer:
                    if answer.outcome == "completed" and answer.result.checksum:
                        completed += 1
                    else:
                        other += 1
                wait = 0.0
        except leat.TimedOut:
            pass
    used = resource.getrusage(resource.RUSAGE_SELF)
cpu_us = 1e6 * (used.ru_utime + used.ru_stime - cpu.ru_utime - cpu.ru_stime) / max(1, completed)
print(json.dumps({"completed_fps": completed / seconds, "refused": refused, "other": other, "cpu_us_per_frame": cpu_us}))
