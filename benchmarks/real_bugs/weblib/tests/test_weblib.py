from datetime import datetime, timedelta, timezone

import pytest

from weblib import (
    Cookie,
    Field,
    Form,
    Headers,
    HttpError,
    Page,
    Route,
    Router,
    Url,
    build_query,
    choose_language,
    choose_type,
    format_date,
    is_fresh,
    normalise_path,
    parse_accept,
    parse_cookies,
    parse_date,
    parse_options,
    parse_query,
    parse_range,
    quote,
    split_list,
    unquote,
)

DAY = datetime(1994, 11, 6, 8, 49, 37, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "code"), [("a b/c", "a%20b/c"), ("é", "%C3%A9"), ("a~-._", "a~-._"), ("100%", "100%25")]
)
def test_quoting(text, code):
    assert quote(text) == code
    assert unquote(code) == text


def test_unquoting_leaves_what_is_no_code():
    assert unquote("%zz%4") == "%zz%4"
    assert unquote("a+b") == "a+b"
    assert unquote("a+b", plus=True) == "a b"
    assert unquote("%2") == "%2"


def test_queries():
    assert parse_query("?a=1&b=&c&a=x%20y+z") == [("a", "1"), ("b", ""), ("c", ""), ("a", "x y z")]
    assert parse_query("a=1;b=", keep_blank=False) == [("a", "1")]
    assert parse_query("a=b=c") == [("a", "b=c")]
    assert build_query({"a": [1, 2], "b": None, "c": True, "d e": "f&g"}) == "a=1&a=2&c=true&d%20e=f%26g"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://a.org", Url("http", "a.org", None, "/")),
        ("HTTPS://User@A.org:8080/x/y?q=1#f", Url("https", "a.org", 8080, "/x/y", "q=1", "f", "User")),
        ("http://[::1]:80/", Url("http", "[::1]", 80, "/")),
        ("/only/path?x", Url(path="/only/path", query="x")),
    ],
)
def test_urls_are_split(text, expected):
    assert Url.parse(text) == expected


def test_urls_are_written():
    assert str(Url.parse("http://u@a.org:80/x?q#f")) == "http://u@a.org/x?q#f"
    assert Url.parse("https://a.org:8443").origin == "https://a.org:8443"
    assert Url.parse("https://a.org").effective_port == 443
    assert Url.parse("https://a.org:8443").effective_port == 8443


@pytest.mark.parametrize("text", ["http://a:0/", "http://a:99999/", "http://a:b:c/"])
def test_wrong_ports(text):
    with pytest.raises(ValueError):
        Url.parse(text)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("x", "http://a.org/b/x"), ("../x", "http://a.org/x"), ("/x", "http://a.org/x"), ("?q=2", "http://a.org/b/c?q=2"),
        ("#f", "http://a.org/b/c?q=1#f"), ("http://z.org/", "http://z.org/"), ("./", "http://a.org/b/"),
    ],
)  # fmt: skip
def test_references(reference, expected):
    assert str(Url.parse("http://a.org/b/c?q=1").join(reference)) == expected


@pytest.mark.parametrize(
    ("path", "expected"), [("/a/./b", "/a/b"), ("/a/../b", "/b"), ("/../a", "/a"), ("/a/..", "/"), ("/a/b/.", "/a/b/")]
)
def test_paths(path, expected):
    assert normalise_path(path) == expected


def test_headers_ignore_case():
    headers = Headers([("Accept", "a"), ("accept", " b, c ")])
    assert headers.get("ACCEPT") == "a"
    assert headers.get_all("Accept") == ["a", "b", "c"]
    headers.set("Accept", "z")
    assert list(headers) == [("Accept", "z")]
    assert "accept" in headers
    assert headers.get("other", "no") == "no"
    headers.remove("ACCEPT")
    assert len(headers) == 0


def test_cookies_are_not_split():
    headers = Headers([("Set-Cookie", "a=1; Expires=Sun, 06 Nov 1994 08:49:37 GMT"), ("Set-Cookie", "b=2")])
    assert len(headers.get_all("set-cookie")) == 2


@pytest.mark.parametrize(("name", "value"), [("a b", "x"), ("", "x"), ("a", "x\r\ny"), ("a", "x\ny")])
def test_wrong_headers(name, value):
    with pytest.raises(ValueError):
        Headers([(name, value)])


def test_lists_and_options():
    assert split_list('a, "b, c", d') == ["a", ' "b, c"', " d"]
    assert split_list(r'"a\",b",c') == [r'"a\",b"', "c"]
    assert parse_options("Text/HTML; Charset=utf-8") == ("text/html", {"charset": "utf-8"})
    assert parse_options('x; a="b;\\"c"; a=2') == ("x", {"a": 'b;"c'})


@pytest.mark.parametrize(
    "text", ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
)
def test_dates(text):
    assert parse_date(text) == DAY


def test_dates_are_written_in_gmt():
    assert format_date(DAY.astimezone(timezone(timedelta(hours=2)))) == "Sun, 06 Nov 1994 08:49:37 GMT"
    with pytest.raises(ValueError, match="expected a date of HTTP, found 'soon'"):
        parse_date("soon")


def test_cookies_are_written():
    assert Cookie("a", "b c").render() == "a=b%20c; Path=/"
    assert Cookie("a", "1", max_age=0, http_only=True, same_site="lax").render() == (
        "a=1; Path=/; Max-Age=0; SameSite=Lax; HttpOnly"
    )
    assert Cookie("a", same_site="None").render().endswith("SameSite=None; Secure")
    with pytest.raises(ValueError):
        Cookie("a=b").render()


def test_cookies_expire():
    assert Cookie("a", max_age=10).is_expired(DAY + timedelta(seconds=10), DAY)
    assert not Cookie("a", max_age=10).is_expired(DAY + timedelta(seconds=9), DAY)
    assert not Cookie("a", max_age=10, expires=DAY).is_expired(DAY, DAY)
    assert Cookie("a", expires=DAY).is_expired(DAY, DAY)
    assert not Cookie("a").is_expired(DAY, DAY)


@pytest.mark.parametrize(
    ("cookie", "url", "expected"),
    [
        (Cookie("a", path="/x"), "http://a.org/x/y", True),
        (Cookie("a", path="/x"), "http://a.org/xy", False),
        (Cookie("a", path="/x/"), "http://a.org/x/", True),
        (Cookie("a", secure=True), "http://a.org/", False),
        (Cookie("a", domain=".A.org"), "http://www.a.org/", True),
        (Cookie("a", domain="a.org"), "http://ba.org/", False),
        (Cookie("a", domain="a.org"), "http://a.org/", True),
    ],
)
def test_cookies_are_sent(cookie, url, expected):
    assert cookie.matches(Url.parse(url)) is expected


def test_cookies_are_read():
    assert parse_cookies('a=1; b="x%20y"; a=2; broken; =z; c=d=e') == {"a": "1", "b": "x y", "c": "d=e"}


def test_accepted_types_are_ordered():
    assert parse_accept("text/*;q=0.5, text/html, */*;q=0.1, x/y;q=2") == [
        ("text/html", 1.0), ("text/*", 0.5), ("*/*", 0.1), ("x/y", 0.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, "text/html"), ("", "text/html"), ("application/json", "application/json"), ("image/png", None),
        ("text/*;q=0.4, application/json;q=0.5", "application/json"), ("*/*", "text/html"),
        ("text/html;q=0, */*", "application/json"),
    ],
)  # fmt: skip
def test_types_are_chosen(header, expected):
    assert choose_type(header, ["text/html", "application/json"]) == expected


def test_languages_are_chosen():
    assert choose_language("nl-NL, en;q=0.5", ["en", "nl"]) == "nl"
    assert choose_language("pt-BR;q=0.9, de", ["pt-BR", "en"]) == "pt-BR"
    assert choose_language("nl;q=0", ["nl"]) == "en"
    assert choose_language("fr", ["nl"], "nl") == "nl"


def test_copies_are_fresh():
    assert is_fresh(Headers([("If-None-Match", '"a", W/"b"')]), "b")
    assert is_fresh(Headers([("If-None-Match", "*")]), "x")
    assert not is_fresh(Headers([("If-None-Match", '"a"')]), "x", DAY)
    since = Headers([("If-Modified-Since", format_date(DAY))])
    assert is_fresh(since, modified=DAY + timedelta(milliseconds=5))
    assert not is_fresh(since, modified=DAY + timedelta(seconds=1))
    assert not is_fresh(Headers([("If-Modified-Since", "soon")]), modified=DAY)
    assert not is_fresh(Headers(), "x", DAY)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-9", [(0, 9)]), ("bytes=90-", [(90, 99)]), ("bytes=-10", [(90, 99)]), ("bytes=-200", [(0, 99)]),
        ("bytes=0-9,5-20", [(0, 20)]), ("bytes=0-9,10-20", [(0, 20)]), ("bytes=50-200", [(50, 99)]),
        ("items=0-1", [(0, 99)]), ("bytes=0-1,200-", [(0, 1)]),
    ],
)  # fmt: skip
def test_ranges(header, expected):
    assert parse_range(header, 100) == expected


@pytest.mark.parametrize(
    ("header", "status"), [("bytes=100-", 416), ("bytes=9-1", 400), ("bytes=-", 400), ("bytes=x", 400)]
)
def test_wrong_ranges(header, status):
    with pytest.raises(HttpError) as caught:
        parse_range(header, 100)
    assert caught.value.status == status


def test_routes_match():
    route = Route("/users/<int:id>/files/<path:name>", print)
    assert route.match("/users/7/files/a/b.txt") == {"id": 7, "name": "a/b.txt"}
    assert route.match("/users/x/files/a") is None
    assert Route("/a.b", print).match("/axb") is None
    assert Route("/<name>", print).match("/a/b") is None
    assert Route("/p/<slug:s>", print).match("/p/a-b-1") == {"s": "a-b-1"}


@pytest.mark.parametrize("pattern", ["/<date:x>", "/<x>/<x>"])
def test_wrong_routes(pattern):
    with pytest.raises(ValueError):
        Route(pattern, print)


def test_routes_are_built():
    route = Route("/users/<int:id>/<name>", print, name="user")
    assert route.build(id=7, name="a b", tab="x") == "/users/7/a%20b?tab=x"
    with pytest.raises(ValueError, match="user: name is missing"):
        route.build(id=7)


def make_router():
    router = Router("/api/")
    router.add("/items", print, name="items")
    router.add("/items", print, ["post"], name="create")
    router.add("/items/<int:id>/", print, ["GET", "DELETE"], name="item")
    return router


def test_router_finds_routes():
    router = make_router()
    assert router.find("HEAD", "/api/items")[0].name == "items"
    assert router.find("POST", "/api/items")[0].name == "create"
    assert router.find("delete", "/api/items/5/")[1] == {"id": 5}
    assert router.build("item", id=5) == "/api/items/5/"
    with pytest.raises(KeyError):
        router.build("nothing")


@pytest.mark.parametrize(
    ("method", "path", "status", "headers"),
    [
        ("PUT", "/api/items", 405, {"Allow": "GET, HEAD, POST"}),
        ("GET", "/api/items/", 301, {"Location": "/api/items"}),
        ("GET", "/api/items/5", 301, {"Location": "/api/items/5/"}),
        ("GET", "/nothing", 404, {}),
    ],
)
def test_router_errors(method, path, status, headers):
    with pytest.raises(HttpError) as caught:
        make_router().find(method, path)
    assert (caught.value.status, caught.value.headers) == (status, headers)


FORM = (
    Field("name", low=2, high=5),
    Field("age", "int", required=False, low=0),
    Field("mail", "email", required=False),
    Field("news", "bool", required=False, default=False),
    Field("size", choices=("s", "m"), required=False, default="m"),
)


def test_valid_form():
    form = Form(FORM)
    assert form.read([("name", " Ann "), ("age", "0"), ("mail", "Ann@A.ORG"), ("news", "on"), ("name", "Bob")])
    assert form.values == {"name": "Ann", "age": 0, "mail": "Ann@a.org", "news": True, "size": "m"}


def test_errors_of_a_form():
    form = Form(FORM)
    assert not form.read([("name", "A"), ("age", "-1"), ("mail", "x@y"), ("size", "xl")])
    assert form.errors == {
        "name": "must be at least 2",
        "age": "must be at least 0",
        "mail": "must be an e-mail address",
        "size": "must be one of s, m",
    }
    assert not form.read([("name", "Abcdef"), ("age", "1.5")])
    assert form.errors == {"name": "must be at most 5", "age": "must be a whole number"}
    assert not form.read([])
    assert form.errors == {"name": "is required"}


def test_pages():
    page = Page(2, 10, 25)
    assert page.count == 3
    assert page.bounds == (11, 20)
    assert Page(3, 10, 25).bounds == (21, 25)
    assert Page(1, 10, 0).bounds == (0, 0)
    assert Page(1, 10, 0).count == 1
    assert Page(1, 10, 20).count == 2


def test_links_of_pages():
    assert Page(6, 10, 200).list_links() == [1, None, 4, 5, 6, 7, 8, None, 20]
    assert Page(5, 10, 100).list_links(1) == [1, None, 4, 5, 6, None, 10]
    assert Page(4, 10, 60).list_links(1) == [1, 2, 3, 4, 5, 6]


def test_link_header():
    header = Page(2, 10, 25).render_header(Url.parse("http://a.org/x?q=1&page=2"))
    assert header == (
        '<http://a.org/x?q=1&page=1>; rel="first", <http://a.org/x?q=1&page=1>; rel="prev", '
        '<http://a.org/x?q=1&page=3>; rel="next", <http://a.org/x?q=1&page=3>; rel="last"'
    )


def test_errors_have_reasons():
    assert str(HttpError(404)) == "404 Not Found"
    assert HttpError(499).message == "Unknown"
