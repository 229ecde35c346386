"""A camera for tests: an RTSP server on loopback that shows moving pictures, H.264 where an encoder is there, else JPEG.

rtsp_server.py PORT (0: any) [LAUNCH]: prints "ready rtsp://127.0.0.1:PORT/main" once clients may come, and ends with its standard input.
LAUNCH: the pipeline that it serves instead, "( ... name=pay0 )".
Ends with status 77 where GStreamer's RTSP server is not installed (Debian: gir1.2-gst-rtsp-server-1.0, python3-gi,
gstreamer1.0-plugins-good).
"""

import sys
import threading

try:
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstRtspServer", "1.0")
    from gi.repository import GLib, Gst, GstRtspServer
except (ImportError, ValueError):
    sys.exit(77)

Gst.init(None)


def there(*elements):
    return all(Gst.ElementFactory.find(element) for element in elements)


if there("videotestsrc", "videoconvert", "x264enc", "rtph264pay"):
    encode = "x264enc tune=zerolatency speed-preset=ultrafast key-int-max=10 ! rtph264pay name=pay0 pt=96 config-interval=1"
elif there("videotestsrc", "videoconvert", "jpegenc", "rtpjpegpay"):
    encode = "jpegenc ! rtpjpegpay name=pay0 pt=26"
else:
    sys.exit(77)

server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service(sys.argv[1])
factory = GstRtspServer.RTSPMediaFactory()
factory.set_launch(
    sys.argv[2]
    if len(sys.argv) > 2
    else "( videotestsrc is-live=true pattern=ball ! video/x-raw,width=128,height=64,framerate=20/1 ! videoconvert "
    f"! video/x-raw,format=I420 ! {encode} )"
)
# Each client has a pipeline of its own: one that is shared by a client over TCP and one over UDP aborts the server now and
# then (rtsp-stream.c, an assertion where the second is plugged in).
factory.set_shared(False)
server.get_mount_points().add_factory("/main", factory)
if server.attach(None) == 0:
    sys.exit(f"rtsp_server: port {sys.argv[1]} cannot be had")
print(f"ready rtsp://127.0.0.1:{server.get_bound_port()}/main", flush=True)
loop = GLib.MainLoop()


def until_input_ends():
    sys.stdin.read()
    loop.quit()


threading.Thread(target=until_input_ends, daemon=True).start()
loop.run()
