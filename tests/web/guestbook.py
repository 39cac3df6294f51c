"""A small web application of a third party: python guestbook.py PORT FOLDER."""

import html
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

FILE = Path(sys.argv[-1]) / "guests.txt"
PAGE = """<!doctype html><html lang=en><title>Guestbook</title><h1>Guests</h1><ul>{}</ul>
<form method=post><label>Name <input name=name></label>
<label>From <select name=town><option>Oslo<option>Lima</select></label><button>Sign</button></form>"""


class Guestbook(BaseHTTPRequestHandler):
    def do_GET(self):
        guests = FILE.read_text().splitlines() if FILE.exists() else []
        body = PAGE.format("".join(f"<li>{html.escape(guest)}</li>" for guest in guests)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        with FILE.open("a") as file:
            file.write(f"{form.get('name', ['?'])[0]} from {form['town'][0]}\n")
        self.send_response(303)
        self.send_header("Location", "/")
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Guestbook).serve_forever()
