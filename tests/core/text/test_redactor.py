"""Secrets of the environment are redacted in texts, values and streams."""

from __future__ import annotations

import base64
import itertools
import json
import re
import string
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pytest_loop.core.text.redactor import RedactedStream, Redactor, redact_values

SECRET = "s3cr3t/Wert+%&ü"
WORDS = st.text(string.ascii_letters + string.digits + "!#$%&*+,:;<=>?@^_{|}/ü漢", min_size=6, max_size=60).map(
    lambda text: f"s3-K{text}"
)
OTHERS = st.text(string.printable, max_size=40)
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"


def redact(value: str, text: str, name: str = "API_TOKEN") -> str:
    return Redactor({name: value, "HOME": "/root"})(text)


# -- which variables


@pytest.mark.parametrize(
    "name",
    [
        "TOKEN", "GITHUB_TOKEN", "NPM_AUTHTOKEN", "API_KEY", "APIKEY", "apiKey", "OPENAI_API_KEY", "SSHKEY", "MY-SECRET",
        "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "PGPASSWORD", "MYSQL_PWD", "DB_PASS", "ROOT_PASSWD", "PASSPHRASE",
        "GOOGLE_CREDENTIALS", "HTTP_AUTH", "AUTHORIZATION", "SENTRY_DSN", "SESSION_COOKIE", "JWT", "GH_PAT", "SLACK_WEBHOOK",
        "DEPLOY_KEYS",
    ],
)  # fmt: skip
def test_variable_with_a_secret_name_is_redacted(name: str) -> None:
    assert "Wert" not in redact(SECRET, f"before {SECRET} after", name)


@pytest.mark.parametrize(
    "name",
    [
        "HOME", "GIT_AUTHOR_NAME", "PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "KEYBOARD_LAYOUT", "XAUTHORITY", "COMPASS", "PATTERN",
        "TOKEN_TYPE", "GITHUB_TOKEN_FILE", "SSH_AUTH_SOCK", "PASSWORD_MIN_LENGTH", "DB_PASS_USER", "",
    ],
)  # fmt: skip
def test_other_variables_are_not_redacted(name: str) -> None:
    assert redact(SECRET, SECRET, name) == SECRET


@pytest.mark.parametrize(
    "value",
    [
        "", "short77", "        ", "aaaaaaaaaaaaaaaa", "********", "disabled", "Production", "localhost", "password",
        "/home/runner/.ssh/id_rsa", "/run/user/1000/keyring", "/tmp", "~/.netrc-file", "./secrets.env", "../secrets.env",
        "C:\\Users\\me\\key.pem", "file:///etc/key.pem", "/", "/code/my-project/keys.json",
    ],
)  # fmt: skip
def test_common_values_are_not_redacted(value: str) -> None:
    text = f"it says {value} here"
    assert redact(value, text) == text


def test_value_that_only_begins_like_a_path_is_redacted() -> None:
    value = "/wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"
    assert redact(value, f"={value}=") == "=[API_TOKEN]="


def test_password_in_a_url_is_redacted_whatever_the_variable_name() -> None:
    address = "postgres://me:hunter%2Ftwo2@db.example/courses"
    text = "cannot log in to db.example with hunter/two2, see postgres://me:hunter%2Ftwo2@db"
    assert redact(address, text, "DATABASE_URL") == (
        "cannot log in to db.example with [DATABASE_URL], see postgres://me:[DATABASE_URL]@db"
    )


def test_each_line_of_a_key_is_redacted_except_its_frame() -> None:
    assert redact(KEY, "found MIIEvQIBADANBgkq below -----BEGIN PRIVATE KEY-----", "SSH_KEY") == (
        "found [SSH_KEY] below -----BEGIN PRIVATE KEY-----"
    )
    assert "MII" not in redact(KEY, json.dumps({"key": KEY}) + repr(KEY) + KEY, "SSH_KEY")


def test_replacement_names_the_variable() -> None:
    redactor = Redactor({"ONE.TOKEN": "first-value", "TWO_TOKEN": "second-value", "ZZZ_TOKEN": "first-value"})
    assert redactor("first-value, second-value") == "[ONE_TOKEN], [TWO_TOKEN]"


def test_secret_that_contains_another_is_replaced_as_a_whole() -> None:
    redactor = Redactor({"A_TOKEN": "inner-value", "B_TOKEN": "the-inner-value-too"})
    assert redactor("the-inner-value-too inner-value") == "[B_TOKEN] [A_TOKEN]"


def test_value_with_undecodable_bytes_is_redacted() -> None:
    assert redact("by\udcfftes-1234", "it is by\udcfftes-1234") == "it is [API_TOKEN]"


def test_without_secrets_nothing_changes() -> None:
    assert Redactor({})("anything") == "anything"
    assert Redactor({}).measure_partial_secret("anything") == 0


# -- how they may look


@given(OTHERS, WORDS, OTHERS)
@example("", SECRET, "")
def test_secret_is_redacted_at_every_position(before: str, secret: str, after: str) -> None:
    assume(secret not in before + after)
    assert secret not in redact(secret, before + secret + after)


@given(st.binary(max_size=7), WORDS, st.binary(max_size=7), st.booleans())
@example(b"", SECRET, b"", False)
def test_secret_in_base64_is_redacted_at_every_alignment(
    before: bytes, secret: str, after: bytes, is_for_urls: bool
) -> None:
    encode = base64.urlsafe_b64encode if is_for_urls else base64.b64encode
    text = encode(before + secret.encode() + after).decode()
    redactor = redact(secret, text)
    assert "[API_TOKEN]" in redactor
    rest = redactor.replace("[API_TOKEN]", "")
    assert len(rest) <= 4 * (len(before) + len(after)) // 3 + 6


@pytest.mark.parametrize("secret", ["12345678abc", "12345678abcd", "12345678abcde"])
def test_secret_alone_in_base64_leaves_nothing(secret: str) -> None:
    assert redact(secret, base64.b64encode(secret.encode()).decode()) == "[API_TOKEN]"


@given(OTHERS, WORDS, OTHERS)
@example("", SECRET, "")
def test_secret_in_a_url_is_redacted(before: str, secret: str, after: str) -> None:
    url = quote(secret, safe="")
    lower = re.sub("%..", lambda code: code[0].lower(), url)
    for encoded in (url, lower, quote(secret), quote_plus(secret)):
        assume(encoded not in before + after)
        assert encoded not in redact(secret, f"{before}?key={encoded}&{after}")


@pytest.mark.parametrize("text", [json.dumps({"x": 'quo"te\\d\nline'}), repr('quo"te\\d\nline'), 'quo"te\\d\nline'])
def test_escaped_secret_is_redacted(text: str) -> None:
    assert "te" not in redact('quo"te\\d\nline', text).replace("[API_TOKEN]", "")


@given(st.dictionaries(st.sampled_from(["A_TOKEN", "B_KEY", "HOME"]), WORDS), st.text(string.ascii_lowercase + " \n[]"))
def test_text_without_secrets_stays_unchanged(environment: dict[str, str], text: str) -> None:
    assume(not any(value in text for value in environment.values()))
    assert Redactor(environment)(text) == text


@given(st.lists(WORDS, min_size=1, max_size=4), st.lists(st.integers(0, 3) | OTHERS, max_size=8))
def test_redacting_twice_changes_nothing(secrets: list[str], pieces: list[int | str]) -> None:
    redactor = Redactor({f"T{number}_TOKEN": value for number, value in enumerate(secrets)})
    text = "".join(piece if isinstance(piece, str) else secrets[piece % len(secrets)] for piece in pieces)
    assert redactor(redactor(text)) == redactor(text)


@pytest.mark.parametrize(
    ("text", "redactor"),
    [
        ("assert 'aaaa...-9f8e7d6c5b4a' == ''", "assert 'aaaa...[API_TOKEN]' == ''"),
        ("FAILED - it is sk-live-9f...", "FAILED - it is [API_TOKEN]..."),
        ("sk-live-9f...6c5b4a and sk-live...", "[API_TOKEN]...[API_TOKEN] and [API_TOKEN]..."),
        ("...sk-live-9f8e7d6c5b4a...", "...[API_TOKEN]..."),
        ("sk-li...5b4a...", "sk-li...5b4a..."),
        ("sk-live-9f 7d6c5b4a", "sk-live-9f 7d6c5b4a"),
        ("......", "......"),
    ],
)
def test_part_of_a_secret_next_to_an_ellipsis_is_redacted(text: str, redactor: str) -> None:
    assert redact("sk-live-9f8e7d6c5b4a", text) == redactor


def test_all_texts_of_a_value_are_redacted() -> None:
    value = {"text": f"x {SECRET}", SECRET: [1, None, (SECRET, 2.5)], "deep": {"is": True}}
    assert redact_values(value, Redactor({"X_TOKEN": SECRET})) == {
        "text": "x [X_TOKEN]",
        "[X_TOKEN]": [1, None, ["[X_TOKEN]", 2.5]],
        "deep": {"is": True},
    }


# -- pieces


@pytest.mark.parametrize(
    ("text", "length"),
    [("", 0), ("nothing", 0), ("well, first", 5), ("well, first-valu", 10), ("first-value", 0), ("f", 1)],
)
def test_open_end_is_the_possible_beginning_of_a_secret(text: str, length: int) -> None:
    redactor = Redactor({"A_TOKEN": "first-value"})
    assert redactor.measure_partial_secret(text) == length


# -- how fast


def test_large_texts_are_fast() -> None:
    redactor = Redactor({f"N{number}_TOKEN": f"{number}-{'abcXYZ' * 6}-{number}" for number in range(20)})
    text = "a line of the output of some test ... 1234567890 abcXYZabcXYZ\n" * 20_000
    started = time.process_time()
    assert redactor(text) == text
    assert time.process_time() - started < 1


# -- streams

SECRETS = {"A_TOKEN": "first-välue", "B_TOKEN": "another\nline of it"}
PIECES = st.lists(st.sampled_from(["first-välue", "first-", "another", "line of it", "\n", "x", "-", "ü"]), max_size=12)


def stream_pieces(*pieces: bytes) -> list[str]:
    output: list[str] = []
    stream = RedactedStream(lambda data: output.append(data.decode()), Redactor(SECRETS))
    for piece in pieces:
        stream(piece)
    stream.end()
    return output


def test_secret_split_over_two_pieces_is_redacted() -> None:
    assert stream_pieces(b"it is first-v\xc3", b"\xa4lue, ye", b"s") == ["it is ", "[A_TOKEN], ye", "s"]


def test_harmless_output_is_forwarded_at_once() -> None:
    assert stream_pieces(b".", b"..", b".F.", b" [100%]\n") == [".", "..", ".F.", " [100%]\n"]


def test_waiting_output_is_forwarded_at_the_end() -> None:
    assert stream_pieces(b"the first-") == ["the ", "first-"]
    assert stream_pieces(b"cut \xc3") == ["cut ", "\ufffd"]
    assert stream_pieces(b"") == []


@given(PIECES, st.lists(st.integers(0, 100), max_size=6))
def test_redaction_does_not_depend_on_the_pieces(words: list[str], cuts: list[int]) -> None:
    data = "".join(words).encode()
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in itertools.pairwise(places)]
    assert "".join(stream_pieces(*pieces)) == Redactor(SECRETS)(data.decode())
