"""Parts of a web framework: URLs, headers, cookies, content negotiation, ranges, routing, forms and paging."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PARAMETER = re.compile(r";[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:\"((?:[^\"\\]|\\.)*)\"|([^;\s\"]*))")
_QUALITY = re.compile(r"^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$")
_RANGE = re.compile(r"^(\d*)-(\d*)$")
_ROUTE_PART = re.compile(r"<(?:(?P<kind>[a-z]+):)?(?P<name>[A-Za-z_]\w*)>")
_HOST = re.compile(r"^(\[[0-9a-fA-F:.]+\]|[^:]*)(?::(\d+))?$")
_ETAG = re.compile(r"(W/)?\"([^\"]*)\"|(\*)")
_EMAIL = re.compile(
    r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9-]{2,})+$"
)
_DATE_FORMATS = ("%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21}
_REASONS = {
    200: "OK", 201: "Created", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently", 302: "Found",
    304: "Not Modified", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable", 409: "Conflict", 412: "Precondition Failed",
    413: "Content Too Large", 416: "Range Not Satisfiable", 422: "Unprocessable Content", 500: "Internal Server Error",
}  # fmt: skip


class HttpError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str = "", headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.message = message or _REASONS.get(status, "Unknown")
        self.headers = dict(headers or {})
        super().__init__(f"{status} {self.message}")


# -- URLs


def quote(text: str, safe: str = "/") -> str:
    """Encode everything but unreserved and safe characters."""
    allowed = _UNRESERVED | frozenset(safe.encode())
    return "".join(chr(byte) if byte in allowed else f"%{byte:02X}" for byte in text.encode())


def unquote(text: str, *, plus: bool = False) -> str:
    """Decode `%XX`, and plus signs in forms; what is no code stays."""
    if plus:
        text = text.replace("+", " ")
    if "%" not in text:
        return text
    result = bytearray()
    position = 0
    data = text.encode()
    while position < len(data):
        code = data[position + 1 : position + 3]
        if data[position : position + 1] == b"%" and len(code) == 2 and re.fullmatch(rb"[0-9a-fA-F]{2}", code):
            result.append(int(code, 16))
            position += 3
        else:
            result.append(data[position])
            position += 1
    return result.decode("utf-8", "replace")


def parse_query(text: str, *, keep_blank: bool = True) -> list[tuple[str, str]]:
    """Split a query string into pairs."""
    pairs: list[tuple[str, str]] = []
    for part in re.split(r"[&;]", text.removeprefix("?")):
        if not part:
            continue
        name, _, value = part.partition("=")
        if value or keep_blank:
            pairs.append((unquote(name, plus=True), unquote(value, plus=True)))
    return pairs


def build_query(values: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> str:
    """Write pairs as a query string; lists repeat their name, None is left out."""
    pairs = values.items() if isinstance(values, Mapping) else values
    parts: list[str] = []
    for name, value in pairs:
        for item in value if isinstance(value, list | tuple) else [value]:
            if item is None:
                continue
            text = str(item).lower() if isinstance(item, bool) else str(item)
            parts.append(f"{quote(name, '')}={quote(text, '')}")
    return "&".join(parts)


@dataclass(frozen=True)
class Url:
    """A URL in its parts."""

    scheme: str = ""
    host: str = ""
    port: int | None = None
    path: str = "/"
    query: str = ""
    fragment: str = ""
    user: str = ""

    @classmethod
    def parse(cls, text: str) -> Url:
        """Split a URL; raise `ValueError` if it has no valid port."""
        rest, _, fragment = text.partition("#")
        rest, _, query = rest.partition("?")
        scheme, separator, rest = rest.partition("://")
        if not separator:
            return cls(path=scheme or "/", query=query, fragment=fragment)
        authority, slash, path = rest.partition("/")
        user, at, host = authority.rpartition("@")
        match = _HOST.match(host)
        if match is None:
            raise ValueError(f"expected a host and a port, found {host!r}")
        port = int(match[2]) if match[2] else None
        if port is not None and not 0 < port < 65536:
            raise ValueError(f"expected a port from 1 to 65535, found {port}")
        return cls(scheme.lower(), match[1].lower(), port, slash + path or "/", query, fragment, user if at else "")

    @property
    def effective_port(self) -> int | None:
        return self.port if self.port is not None else _DEFAULT_PORTS.get(self.scheme)

    @property
    def origin(self) -> str:
        """Scheme, host and port; a default port is left out."""
        port = "" if self.port in (None, _DEFAULT_PORTS.get(self.scheme)) else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"

    def join(self, reference: str) -> Url:
        """Resolve a reference relative to this URL."""
        if "://" in reference:
            return Url.parse(reference)
        path, _, fragment = reference.partition("#")
        path, _, query = path.partition("?")
        if not path:
            query = query or self.query
            path = self.path
        elif not path.startswith("/"):
            path = self.path.rsplit("/", 1)[0] + "/" + path
        return Url(self.scheme, self.host, self.port, normalise_path(path), query, fragment, self.user)

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        base = self.origin.replace("://", f"://{user}", 1) if self.scheme else ""
        query = f"?{self.query}" if self.query else ""
        fragment = f"#{self.fragment}" if self.fragment else ""
        return f"{base}{self.path}{query}{fragment}"


def normalise_path(path: str) -> str:
    """Resolve `.` and `..`; never above the root."""
    parts: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            if len(parts) > 1:
                parts.pop()
        elif segment != ".":
            parts.append(segment)
    if segments[-1] in (".", ".."):
        parts.append("")
    return "/".join(parts) or "/"


# -- headers


class Headers:
    """Headers whose names ignore case; a name may occur several times."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._pairs: list[tuple[str, str]] = []
        for name, value in pairs:
            self.add(name, value)

    def add(self, name: str, value: str) -> None:
        """Add a header beside others of the same name."""
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"expected a header name, found {name!r}")
        if "\r" in value or "\n" in value:
            raise ValueError(f"expected a header without line breaks, found {value!r}")
        self._pairs.append((name, value.strip()))

    def set(self, name: str, value: str) -> None:
        """Replace all headers of a name."""
        self.remove(name)
        self.add(name, value)

    def remove(self, name: str) -> None:
        self._pairs = [pair for pair in self._pairs if pair[0].lower() != name.lower()]

    def get(self, name: str, default: str | None = None) -> str | None:
        """Return the first value of a name."""
        return next((value for key, value in self._pairs if key.lower() == name.lower()), default)

    def get_all(self, name: str) -> list[str]:
        """Return all values of a name, comma-separated ones split."""
        values = [value for key, value in self._pairs if key.lower() == name.lower()]
        if name.lower() == "set-cookie":
            return values
        return [part.strip() for value in values for part in split_list(value) if part.strip()]

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)


def split_list(text: str, separator: str = ",") -> list[str]:
    """Split at separators that are not inside quotes."""
    parts, current, quoted, escaped = [], "", False, False
    for char in text:
        if char == separator and not quoted:
            parts.append(current)
            current = ""
            continue
        if char == '"' and not escaped:
            quoted = not quoted
        escaped = char == "\\" and quoted and not escaped
        current += char
    return [*parts, current]


def parse_options(text: str) -> tuple[str, dict[str, str]]:
    """Split `text/html; charset=utf-8` into the value and its options."""
    value, semicolon, rest = text.partition(";")
    options: dict[str, str] = {}
    for match in _PARAMETER.finditer(semicolon + rest):
        raw = match[3] if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])
        options.setdefault(match[1].lower(), raw)
    return value.strip().lower(), options


def parse_date(text: str) -> datetime:
    """Read a date of HTTP in one of its three forms."""
    for form in _DATE_FORMATS:
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=timezone.utc)
        except ValueError:
            continue
    raise ValueError(f"expected a date of HTTP, found {text!r}")


def format_date(moment: datetime) -> str:
    """Write a date as HTTP does."""
    return moment.astimezone(timezone.utc).strftime(_DATE_FORMATS[0])


# -- cookies


@dataclass
class Cookie:
    """A cookie that a server sets."""

    name: str
    value: str = ""
    path: str = "/"
    domain: str = ""
    max_age: int | None = None
    expires: datetime | None = None
    secure: bool = False
    http_only: bool = False
    same_site: str = ""

    def render(self) -> str:
        """Return the value of the header."""
        if not _TOKEN.fullmatch(self.name):
            raise ValueError(f"expected a cookie name, found {self.name!r}")
        parts = [f"{self.name}={quote(self.value, '!#$&()*+/:<=>?@[]^`{|}')}", f"Path={self.path}"]
        if self.domain:
            parts.append(f"Domain={self.domain}")
        if self.max_age is not None:
            parts.append(f"Max-Age={self.max_age}")
        if self.expires is not None:
            parts.append(f"Expires={format_date(self.expires)}")
        if self.same_site:
            parts.append(f"SameSite={self.same_site.capitalize()}")
        if self.secure or self.same_site.lower() == "none":
            parts.append("Secure")
        if self.http_only:
            parts.append("HttpOnly")
        return "; ".join(parts)

    def is_expired(self, now: datetime, created: datetime) -> bool:
        """Return whether a cookie is over; its age counts more than its date."""
        if self.max_age is not None:
            return now >= created + timedelta(seconds=self.max_age)
        return self.expires is not None and now >= self.expires

    def matches(self, url: Url) -> bool:
        """Return whether a client sends the cookie with a request."""
        if self.secure and url.scheme != "https":
            return False
        domain = self.domain.lstrip(".").lower()
        if domain and url.host != domain and not url.host.endswith(f".{domain}"):
            return False
        if url.path == self.path:
            return True
        prefix = self.path if self.path.endswith("/") else f"{self.path}/"
        return url.path.startswith(prefix)


def parse_cookies(header: str) -> dict[str, str]:
    """Read the cookies of a request; the first of a name counts."""
    cookies: dict[str, str] = {}
    for part in header.split(";"):
        name, equals, value = part.strip().partition("=")
        if not equals or not name:
            continue
        cookies.setdefault(name.strip(), unquote(value.strip().strip('"')))
    return cookies


# -- negotiation


def parse_accept(header: str) -> list[tuple[str, float]]:
    """Read what a client accepts, best first; equal ones keep their order."""
    entries: list[tuple[str, float]] = []
    for part in split_list(header):
        value, options = parse_options(part)
        if not value:
            continue
        text = options.get("q", "1")
        quality = float(text) if _QUALITY.match(text) else 0.0
        entries.append((value, quality))
    return sorted(entries, key=lambda entry: (-entry[1], -_count_specific(entry[0])))


def _count_specific(value: str) -> int:
    return sum(part != "*" for part in value.split("/"))


def choose_type(header: str | None, offered: Iterable[str]) -> str | None:
    """Return the offered media type that a client likes best."""
    offers = list(offered)
    if not header or not header.strip():
        return offers[0] if offers else None
    accepted = parse_accept(header)
    best, best_quality = None, 0.0
    for offer in offers:
        quality = _find_quality(offer.lower(), accepted)
        if quality > best_quality:
            best, best_quality = offer, quality
    return best


def _find_quality(offer: str, accepted: list[tuple[str, float]]) -> float:
    """Return the quality of the most specific entry that matches."""
    kind = offer.split("/")[0]
    for pattern in (offer, f"{kind}/*", "*/*"):
        for value, quality in accepted:
            if value == pattern:
                return quality
    return 0.0


def choose_language(header: str, offered: Iterable[str], default: str = "en") -> str:
    """Return the offered language that a client likes best."""
    available = {language.lower(): language for language in offered}
    for value, quality in parse_accept(header):
        if quality <= 0:
            continue
        if value in available:
            return available[value]
        base = value.split("-")[0]
        if base in available:
            return available[base]
    return default


def is_fresh(headers: Headers, etag: str = "", modified: datetime | None = None) -> bool:
    """Return whether a client's copy is still good."""
    if header := headers.get("If-None-Match"):
        tags = [match[3] or match[2] for match in _ETAG.finditer(header)]
        return "*" in tags or (bool(etag) and etag in tags)
    since = headers.get("If-Modified-Since")
    if since is None or modified is None:
        return False
    try:
        return modified.replace(microsecond=0) <= parse_date(since)
    except ValueError:
        return False


def parse_range(header: str, size: int) -> list[tuple[int, int]]:
    """Read a range of bytes as pairs of first and last byte; raise `HttpError` if nothing of it exists."""
    unit, _, rest = header.partition("=")
    if unit.strip().lower() != "bytes":
        return [(0, size - 1)]
    ranges: list[tuple[int, int]] = []
    for part in rest.split(","):
        match = _RANGE.match(part.strip())
        if match is None or not (match[1] or match[2]):
            raise HttpError(400, f"expected a range, found {part.strip()!r}")
        if match[1]:
            first, last = int(match[1]), int(match[2]) if match[2] else size - 1
            if match[2] and last < first:
                raise HttpError(400, f"expected a range, found {part.strip()!r}")
        else:
            first, last = max(0, size - int(match[2])), size - 1
        if first < size:
            ranges.append((first, min(last, size - 1)))
    if not ranges:
        raise HttpError(416, headers={"Content-Range": f"bytes */{size}"})
    return merge_ranges(ranges)


def merge_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join ranges that overlap or touch."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


# -- routing

_CONVERTERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "str": (r"[^/]+", str),
    "int": (r"\d+", int),
    "float": (r"\d+\.\d+", float),
    "path": (r".+", str),
    "slug": (r"[a-z0-9]+(?:-[a-z0-9]+)*", str),
}


@dataclass
class Route:
    """A pattern of paths, its methods and what answers it."""

    pattern: str
    handler: Callable[..., Any]
    methods: frozenset[str] = frozenset({"GET", "HEAD"})
    name: str = ""
    regex: re.Pattern[str] = field(init=False)
    converters: dict[str, Callable[[str], Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.converters = {}
        parts: list[str] = []
        position = 0
        for match in _ROUTE_PART.finditer(self.pattern):
            kind, name = match["kind"] or "str", match["name"]
            if kind not in _CONVERTERS:
                raise ValueError(f"unknown converter {kind!r} in {self.pattern!r}")
            if name in self.converters:
                raise ValueError(f"{name!r} is twice in {self.pattern!r}")
            regex, self.converters[name] = _CONVERTERS[kind]
            parts += [re.escape(self.pattern[position : match.start()]), f"(?P<{name}>{regex})"]
            position = match.end()
        parts.append(re.escape(self.pattern[position:]))
        self.regex = re.compile("".join(parts))

    def match(self, path: str) -> dict[str, Any] | None:
        """Return the values of a path, or None if it does not match."""
        match = self.regex.fullmatch(path)
        if match is None:
            return None
        return {name: convert(match[name]) for name, convert in self.converters.items()}

    def build(self, **values: Any) -> str:
        """Return the path for values; others go into the query."""
        missing = [name for name in self.converters if name not in values]
        if missing:
            raise ValueError(f"{self.name or self.pattern}: {', '.join(missing)} is missing")
        rest = {name: value for name, value in values.items() if name not in self.converters}
        path = _ROUTE_PART.sub(lambda match: quote(str(values[match["name"]])), self.pattern)
        return f"{path}?{build_query(rest)}" if rest else path


class Router:
    """Find the route of a request."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix.rstrip("/")
        self.routes: list[Route] = []

    def add(
        self, pattern: str, handler: Callable[..., Any], methods: Iterable[str] = ("GET",), name: str = ""
    ) -> Route:
        """Add a route; GET also answers HEAD."""
        upper = {method.upper() for method in methods}
        if "GET" in upper:
            upper.add("HEAD")
        route = Route(self.prefix + pattern, handler, frozenset(upper), name or getattr(handler, "__name__", ""))
        self.routes.append(route)
        return route

    def find(self, method: str, path: str) -> tuple[Route, dict[str, Any]]:
        """Return the route and its values; raise `HttpError` 404, 405, or a redirect to the path with a slash."""
        allowed: set[str] = set()
        for route in self.routes:
            values = route.match(path)
            if values is None:
                continue
            if method.upper() in route.methods:
                return route, values
            allowed |= route.methods
        if allowed:
            raise HttpError(405, headers={"Allow": ", ".join(sorted(allowed))})
        other = path[:-1] if path.endswith("/") and path != "/" else f"{path}/"
        if any(route.match(other) is not None for route in self.routes):
            raise HttpError(301, headers={"Location": other})
        raise HttpError(404, f"nothing is at {path}")

    def build(self, name: str, **values: Any) -> str:
        """Return the path of a named route."""
        for route in self.routes:
            if route.name == name:
                return route.build(**values)
        raise KeyError(name)


# -- forms


@dataclass(frozen=True)
class Field:
    """A field of a form."""

    name: str
    kind: str = "text"
    required: bool = True
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    default: Any = None

    def read(self, raw: str | None) -> Any:
        """Return the value of a field; raise `ValueError` with what is wrong."""
        text = (raw or "").strip()
        if not text:
            if self.required:
                raise ValueError("is required")
            return self.default
        if self.choices and text not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}")
        value = self._convert(text)
        measured = len(value) if isinstance(value, str) else value
        if self.low is not None and measured < self.low:
            raise ValueError(f"must be at least {self.low:g}")
        if self.high is not None and measured > self.high:
            raise ValueError(f"must be at most {self.high:g}")
        return value

    def _convert(self, text: str) -> Any:
        if self.kind == "int":
            if not re.fullmatch(r"[-+]?\d+", text):
                raise ValueError("must be a whole number")
            return int(text)
        if self.kind == "bool":
            return text.lower() in ("1", "true", "yes", "on")
        if self.kind == "email":
            if not _EMAIL.match(text):
                raise ValueError("must be an e-mail address")
            local, _, domain = text.rpartition("@")
            return f"{local}@{domain.lower()}"
        return text


@dataclass
class Form:
    """Fields that are read together."""

    fields: tuple[Field, ...]
    values: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def read(self, data: Iterable[tuple[str, str]]) -> bool:
        """Read all fields; return whether all are valid."""
        given = dict(reversed(list(data)))
        self.values, self.errors = {}, {}
        for part in self.fields:
            try:
                self.values[part.name] = part.read(given.get(part.name))
            except ValueError as error:
                self.errors[part.name] = str(error)
        return not self.errors


# -- paging


@dataclass(frozen=True)
class Page:
    """A page of a list."""

    number: int
    size: int
    total: int

    @property
    def count(self) -> int:
        return max(1, -(-self.total // self.size))

    @property
    def bounds(self) -> tuple[int, int]:
        """The first and the last item, counted from 1; (0, 0) if there are none."""
        if not self.total:
            return 0, 0
        first = (self.number - 1) * self.size + 1
        return first, min(first + self.size - 1, self.total)

    def list_links(self, around: int = 2) -> list[int | None]:
        """Return the numbers to show; None stands for those left out."""
        shown = {1, self.count, *range(self.number - around, self.number + around + 1)}
        links: list[int | None] = []
        previous = 0
        for number in sorted(number for number in shown if 1 <= number <= self.count):
            if number - previous == 2:
                links.append(number - 1)
            elif number - previous > 2:
                links.append(None)
            links.append(number)
            previous = number
        return links

    def render_header(self, url: Url) -> str:
        """Return a `Link` header."""
        targets = {"first": 1, "prev": self.number - 1, "next": self.number + 1, "last": self.count}
        parts = []
        for relation, number in targets.items():
            if 1 <= number <= self.count and number != self.number:
                query = [pair for pair in parse_query(url.query) if pair[0] != "page"]
                target = Url(url.scheme, url.host, url.port, url.path, build_query([*query, ("page", number)]))
                parts.append(f'<{target}>; rel="{relation}"')
        return ", ".join(parts)
