#!/usr/bin/env python3
"""Answers (leat feed --answers -) on a page of this host. Usage: answers_to_browser.py [PORT]"""
import http.server
import queue
import sys
import threading

PAGE = b"<pre id=a></pre><script>new EventSource('/answers').onmessage = e => a.textContent = e.data + '\\n' + a.textContent.slice(0, 9999)</script>"
readers = set()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        stream = self.path == "/answers"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if stream else "text/html")
        self.end_headers()
        if not stream:
            self.wfile.write(PAGE)
            return
        mine = queue.Queue(100)
        readers.add(mine)
        try:
            while True:
                self.wfile.write(b"data: " + mine.get().encode() + b"\n\n")
        except OSError:
            readers.discard(mine)


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8008), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for line in sys.stdin:
    for reader in list(readers):
        if not reader.full():  # a slow browser loses lines
            reader.put(line.strip())
