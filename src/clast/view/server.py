"""The page's server: viser on loopback, with a look at who asks. Any other address needs a token; foreign pages are refused."""

import contextlib
import hmac
import http
import importlib
import io
import ipaddress
import secrets
import socket
import threading
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .. import errors

LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::")  # all addresses of the machine
INSTALL = "pip install 'clast[view]'"
COOKIE = "clast_token"
LAST_PORT = 65535
_starting = threading.Lock()


def package():
    """viser, or errors.Unavailable that says how to get it."""
    try:
        import viser
    except ImportError as cause:
        raise errors.Unavailable(f"the page needs viser ({cause}): {INSTALL}") from cause
    return viser


@contextlib.contextmanager
def silence():
    """Within the block viser prints nothing, in a notebook neither: who calls it tells the address."""
    import rich

    said, rich.print = rich.print, lambda *_, **__: None
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        rich.print = said


class Guard:
    """Decides which requests are answered: `refusal(path, headers)` is None, or (status, words, headers of the answer).

    A browser tells in `Host` by which name the page was asked for and in `Origin` which page asks. A name that is not ours means that
    somebody else's name leads here, an origin that is not ours that somebody else's page asks. Where other machines can
    reach the server, it must also bring the token: once in the address, then in a cookie.
    """

    def __init__(self, address):
        self.address = address
        self.token = None if address in LOOPBACK else secrets.token_urlsafe(18)
        self.names = {*LOOPBACK} if self.token is None else {*LOOPBACK, address.lower(), *own_names()}

    def knows(self, name):
        """Whether a browser may ask for this name: one of ours, or where all addresses are listened on any that is a number. No page of others
        can have a number that leads here as its name."""
        if name in self.names:
            return True
        try:
            return self.address in EVERYWHERE and bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    def refusal(self, path, headers):
        host = headers.get("Host", "")
        name = urlsplit(f"//{host}").hostname
        if not self.knows(name):
            return http.HTTPStatus.FORBIDDEN, f"this page is not known by the name {host!r}", {}
        origin = headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return http.HTTPStatus.FORBIDDEN, "another page asks", {}
        if self.token is None:
            return None
        brought = parse_qs(urlsplit(path).query).get("token", [""])[0]
        if hmac.compare_digest(brought.encode(), self.token.encode()):
            # The token leaves the address bar, and later requests bring the cookie.
            cookie = f"{COOKIE}={self.token}; HttpOnly; SameSite=Strict; Path=/"
            return http.HTTPStatus.SEE_OTHER, "", {"Location": "/", "Set-Cookie": cookie}
        try:
            kept = SimpleCookie(headers.get("Cookie", "")).get(COOKIE)
        except CookieError:
            kept = None
        if kept is None or not hmac.compare_digest(kept.value.encode(), self.token.encode()):
            return http.HTTPStatus.UNAUTHORIZED, "the token is missing: open the whole address that was printed", {}
        return None


def own_names():
    """By which this machine is known in its network."""
    name = socket.gethostname().lower()
    return name, name.partition(".")[0], f"{name.partition('.')[0]}.local"


def to_open(address):
    """What a browser is to open where this address is listened on; of all addresses the one that other machines see."""
    if address in EVERYWHERE:
        six = address == "::"
        with socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM) as line:
            try:  # Nothing is sent: the system only says from which address it would. The other end is one kept for examples.
                line.connect(("2001:db8::1" if six else "192.0.2.1", 9))
                address = line.getsockname()[0]
            except OSError:  # no network
                address = socket.gethostname()
    if address == "127.0.0.1":
        return "localhost"
    return f"[{address}]" if ":" in address else address


def check(address, port):
    """ValueError where nobody can listen: the server would find that out in a thread of its own, and never be ready."""
    if not 0 <= port <= LAST_PORT:
        raise ValueError(f"port {port}: must be from 0 to {LAST_PORT}")
    try:
        family = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0][0]
        socket.create_server((address, 0), family=family).close()
    except (OSError, UnicodeError) as fault:
        raise ValueError(f"address {address!r}: this machine cannot listen there ({fault})") from fault


def start(address="127.0.0.1", port=8080, label="clast"):
    """A viser server behind a Guard: (server, address to open). port: the first free one from there on; 0 for any."""
    check(address, port)
    viser = package()
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    sockets: Any = importlib.import_module("websockets.asyncio.server")
    guard = Guard(address)
    serve, installed = sockets.serve, []

    def guarded(handler, *arguments, process_request=None, **options):
        def look(connection, request):
            answer = guard.refusal(request.path, request.headers)
            if answer is not None:
                status, words, more = answer
                body = words.encode()
                told = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body)), **more}
                return Response(status.value, status.phrase, Headers(**told), body)
            return process_request(connection, request) if process_request is not None else None

        installed.append(True)
        return serve(handler, *arguments, process_request=look, **options)

    # viser has no place to look at requests; it takes `serve` from this module when it starts, and only then.
    with _starting, silence():
        sockets.serve = guarded
        try:
            server = viser.ViserServer(host=address, port=port, label=label, verbose=False)
        finally:
            sockets.serve = serve
    if not installed:
        server.stop()
        raise errors.Unavailable(
            "this version of viser starts its server another way, so requests cannot be checked; install viser 1.1"
        )
    # Nobody who sees the page may make it known outside by viser's own service.
    server.request_share_url = lambda *_, **__: None
    return server, f"http://{to_open(address)}:{server.get_port()}/" + (
        "" if guard.token is None else f"?token={guard.token}"
    )
