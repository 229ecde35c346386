"""Runs the built examples against the installed leatd: usage examples.py PREFIX EXAMPLES_SOURCE EXAMPLES_BUILD CONFIG"""

import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path

prefix, source, build, config = (Path(word) for word in sys.argv[1:5])
pictures = "12"
with tempfile.TemporaryDirectory(prefix="leat-examples-") as folder:
    socket = f"{folder}/leat.sock"
    ready, tell = os.pipe()
    leatd = subprocess.Popen(
        [prefix / "bin/leatd", "--socket", socket, "--ready-fd", str(tell), config], pass_fds=[tell], stdin=subprocess.DEVNULL
    )
    os.close(tell)
    try:
        if not select.select([ready], [], [], 120)[0] or not os.read(ready, 1):
            sys.exit("the installed leatd does not serve")
        packages = prefix / "lib/python3/dist-packages"
        commands = [[build / "camera_cpp"], [build / "camera_c"]]
        try:
            import numpy  # noqa: F401

            commands += [[sys.executable, source / "camera.py"], [sys.executable, source / "many_cameras.py"]]
        except ImportError:
            print("the Python examples are left out: python3-numpy is not installed")
        for command in commands:
            done = subprocess.run(
                [*command, socket, pictures],
                capture_output=True,
                text=True,
                timeout=120,
                env={**os.environ, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"},
            )
            lines = done.stdout.splitlines()
            expected = 4 * int(pictures) if "many" in str(command[-1]) else int(pictures)
            if done.returncode != 0 or len(lines) != expected:
                sys.exit(f"{command[-1]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    finally:
        leatd.terminate()
        leatd.wait(60)

# The plug-in, in a configuration that names it, on a dark picture and a bright one.
with tempfile.TemporaryDirectory(prefix="leat-examples-") as folder:
    for word, value in (("dark", 40), ("bright", 200)):
        picture = Path(folder) / f"{word}.ppm"
        picture.write_bytes(b"P6\n64 48\n255\n" + bytes([value]) * (64 * 48 * 3))
        done = subprocess.run(
            [prefix / "bin/leat", "try", build / "executor.toml", picture, "--json"], capture_output=True, text=True, timeout=120
        )
        if done.returncode != 0:
            sys.exit(f"leat try with the example executor ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        answer = json.loads(done.stdout)["pictures"][0]
        if answer["classes"][0]["class"] != word or answer["classes"][0]["score"] != 1:
            sys.exit(f"the example executor calls a {word} picture {answer}")
