from datetime import date, datetime, time, timedelta

import pytest

from schedule import (
    Cron,
    JobQueue,
    Recurrence,
    ScheduleError,
    Span,
    WorkCalendar,
    describe_distance,
    find_conflicts,
    find_gaps,
    find_month_day,
    find_nth_weekday,
    format_duration,
    merge_spans,
    parse_clock,
    parse_duration,
    parse_field,
    round_time,
    shift_months,
)

NOON = datetime(2024, 3, 13, 12, 0)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90), ("1h 30m", 5400), ("1h30m", 5400), ("2 days, 3 hours", 183600), ("1.5h", 5400), ("1w", 604800),
        ("-5m", -300), ("PT5M", 300), ("P1DT2H", 93600), ("P2W", 1209600), ("PT0.5S", 0.5), ("10 mins", 600),
    ],
)  # fmt: skip
def test_durations_are_read(text, seconds):
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "5x", "1h and 2m", "P", "PT", "h5"])
def test_other_texts_are_no_durations(text):
    with pytest.raises(ScheduleError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "parts", "text"),
    [
        (0, 2, "0s"),
        (59, 2, "59s"),
        (3600, 2, "1h"),
        (93784, 2, "1d 2h"),
        (93784, 4, "1d 2h 3m 4s"),
        (-90, 2, "-1m 30s"),
    ],
)
def test_durations_are_written(seconds, parts, text):
    assert format_duration(timedelta(seconds=seconds), parts) == text


def test_distances():
    assert describe_distance(NOON + timedelta(hours=3, minutes=5), NOON) == "in 3h"
    assert describe_distance(NOON - timedelta(days=2), NOON) == "2d ago"
    assert describe_distance(NOON, NOON) == "now"


@pytest.mark.parametrize(
    ("text", "clock"),
    [("7:30", time(7, 30)), ("19.05", time(19, 5)), ("7:30 pm", time(19, 30)), ("12:00 AM", time(0)), ("12:15pm", time(12, 15)),
     ("23:59:59", time(23, 59, 59))],
)  # fmt: skip
def test_clocks_are_read(text, clock):
    assert parse_clock(text) == clock


@pytest.mark.parametrize("text", ["24:00", "7:60", "13:00 pm", "0:30 am", "7"])
def test_other_texts_are_no_clocks(text):
    with pytest.raises(ScheduleError):
        parse_clock(text)


def test_rounding():
    moment = datetime(2024, 3, 13, 12, 7, 30)
    quarter = timedelta(minutes=15)
    assert round_time(moment, quarter) == NOON
    assert round_time(moment, quarter, up=True) == datetime(2024, 3, 13, 12, 15)
    assert round_time(NOON, quarter, up=True) == NOON


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("*/15", {0, 15, 30, 45}),
        ("1-5", {1, 2, 3, 4, 5}),
        ("1,3", {1, 3}),
        ("50/5", {50, 55}),
        ("10-20/5", {10, 15, 20}),
    ],
)
def test_fields(text, values):
    assert parse_field(text, 0, 59).values == values


@pytest.mark.parametrize("text", ["60", "5-1", "*/0", "a", "1-99", ""])
def test_wrong_fields(text):
    with pytest.raises(ScheduleError):
        parse_field(text, 0, 59)


def test_names_may_wrap_around():
    days = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
    assert parse_field("fri-mon", 0, 6, days).values == {5, 6, 0, 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", datetime(2024, 3, 13, 12, 1)),
        ("0 * * * *", datetime(2024, 3, 13, 13, 0)),
        ("30 9 * * *", datetime(2024, 3, 14, 9, 30)),
        ("0 0 * * 0", datetime(2024, 3, 17)),
        ("0 0 * * 7", datetime(2024, 3, 17)),
        ("0 9 * * mon-fri", datetime(2024, 3, 14, 9, 0)),
        ("0 0 1 * *", datetime(2024, 4, 1)),
        ("0 0 29 feb *", datetime(2028, 2, 29)),
        ("0 0 20 * fri", datetime(2024, 3, 15)),
        ("@yearly", datetime(2025, 1, 1)),
        ("@hourly", datetime(2024, 3, 13, 13, 0)),
    ],
)
def test_next_moment(text, expected):
    assert Cron.parse(text).find_next(NOON) == expected


def test_moments_that_match():
    cron = Cron.parse("0,30 8-10 * 3 *")
    assert cron.matches(datetime(2024, 3, 1, 8, 30))
    assert not cron.matches(datetime(2024, 3, 1, 11, 0))
    assert not cron.matches(datetime(2024, 4, 1, 8, 0))
    assert [moment.hour for moment in cron.iterate(NOON, 3)] == [8, 8, 9]


def test_an_expression_that_never_happens():
    with pytest.raises(ScheduleError, match="'0 0 31 2 \\*' never happens"):
        Cron.parse("0 0 31 2 *").find_next(NOON)


def test_an_expression_has_five_fields():
    with pytest.raises(ScheduleError, match="expected 5 fields, found 4"):
        Cron.parse("* * * *")


def take(rule, start, count=10):
    days = []
    for day in Recurrence.parse(rule).iterate(start):
        days.append(day)
        if len(days) == count:
            break
    return days


def test_daily_rule():
    assert take("FREQ=DAILY;INTERVAL=2;COUNT=3", date(2024, 2, 27)) == [
        date(2024, 2, 27), date(2024, 2, 29), date(2024, 3, 2),
    ]  # fmt: skip


def test_weekly_rule():
    assert take("FREQ=WEEKLY;BYDAY=FR,MO;COUNT=4", date(2024, 3, 13)) == [
        date(2024, 3, 15), date(2024, 3, 18), date(2024, 3, 22), date(2024, 3, 25),
    ]  # fmt: skip
    assert take("FREQ=WEEKLY;INTERVAL=2;COUNT=2", date(2024, 3, 13)) == [date(2024, 3, 13), date(2024, 3, 27)]


def test_monthly_rule_skips_short_months():
    assert take("FREQ=MONTHLY;COUNT=3", date(2024, 1, 31)) == [date(2024, 1, 31), date(2024, 3, 31), date(2024, 5, 31)]
    assert take("FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=2", date(2024, 1, 1)) == [date(2024, 1, 31), date(2024, 2, 29)]


def test_yearly_rule_until_a_day():
    assert take("FREQ=YEARLY;UNTIL=20260313T000000Z", date(2024, 3, 13)) == [
        date(2024, 3, 13), date(2025, 3, 13), date(2026, 3, 13),
    ]  # fmt: skip


@pytest.mark.parametrize("rule", ["FREQ=HOURLY", "COUNT", "FREQ=DAILY;X=1", "FREQ=DAILY;INTERVAL=0"])
def test_wrong_rules(rule):
    with pytest.raises(ScheduleError):
        Recurrence.parse(rule)


def test_month_days():
    assert find_month_day(2023, 2, 29) is None
    assert find_month_day(2024, 2, -1) == date(2024, 2, 29)
    assert shift_months(date(2024, 1, 31), 1) == date(2024, 2, 29)
    assert shift_months(date(2024, 1, 15), -1) == date(2023, 12, 15)


def test_nth_weekday():
    assert find_nth_weekday(2024, 3, 0, 1) == date(2024, 3, 4)
    assert find_nth_weekday(2024, 3, 4, 3) == date(2024, 3, 15)
    assert find_nth_weekday(2024, 3, 6, -1) == date(2024, 3, 31)
    assert find_nth_weekday(2024, 3, 4, -2) == date(2024, 3, 22)
    with pytest.raises(ScheduleError):
        find_nth_weekday(2024, 2, 4, 5)


EASTER = WorkCalendar({date(2024, 3, 29), date(2024, 4, 1)})


def test_working_days():
    assert EASTER.add_days(date(2024, 3, 28), 1) == date(2024, 4, 2)
    assert EASTER.add_days(date(2024, 4, 2), -1) == date(2024, 3, 28)
    assert EASTER.add_days(date(2024, 3, 30), 0) == date(2024, 3, 30)
    assert EASTER.count_days(date(2024, 3, 28), date(2024, 4, 2)) == 2
    assert EASTER.count_days(date(2024, 4, 2), date(2024, 3, 28)) == -2


def test_opening_hours():
    assert EASTER.is_open(datetime(2024, 3, 28, 9, 0))
    assert not EASTER.is_open(datetime(2024, 3, 28, 17, 0))
    assert not EASTER.is_open(datetime(2024, 3, 29, 10, 0))
    assert EASTER.find_next_opening(datetime(2024, 3, 28, 8, 0)) == datetime(2024, 3, 28, 9, 0)
    assert EASTER.find_next_opening(datetime(2024, 3, 28, 18, 0)) == datetime(2024, 4, 2, 9, 0)
    assert EASTER.find_next_opening(datetime(2024, 3, 30, 8, 0)) == datetime(2024, 4, 2, 9, 0)


def test_opening_hours_add_up():
    assert EASTER.add_hours(datetime(2024, 3, 28, 16, 0), 2) == datetime(2024, 4, 2, 10, 0)
    assert EASTER.add_hours(datetime(2024, 3, 28, 9, 0), 8) == datetime(2024, 3, 28, 17, 0)


def span(first, last, name=""):
    return Span(datetime(2024, 3, 13, first), datetime(2024, 3, 13, last), name)


def test_spans():
    assert span(9, 11).overlaps(span(10, 12))
    assert not span(9, 10).overlaps(span(10, 12))
    assert span(9, 11).intersect(span(10, 12)) == span(10, 11)
    assert span(9, 10).intersect(span(10, 12)) is None
    with pytest.raises(ScheduleError):
        span(10, 9)


def test_merged_spans():
    assert merge_spans([span(12, 14), span(9, 11), span(10, 12)]) == [span(9, 14)]
    assert merge_spans([span(9, 12), span(10, 11)]) == [span(9, 12)]
    assert merge_spans([]) == []


def test_gaps():
    day = span(8, 18)
    assert find_gaps([span(9, 10), span(12, 13)], day) == [span(8, 9), span(10, 12), span(13, 18)]
    assert find_gaps([span(9, 10), span(12, 13)], day, timedelta(hours=2)) == [span(10, 12), span(13, 18)]
    assert find_gaps([span(7, 9), span(17, 19)], day) == [span(9, 17)]


def test_conflicts():
    spans = [span(9, 12, "a"), span(11, 13, "b"), span(12, 14, "c")]
    assert find_conflicts(spans) == [("a", "b"), ("b", "c")]


def test_jobs_run_in_order():
    seen = []
    queue = JobQueue(NOON)
    queue.add("b", "30 * * * *", lambda moment: seen.append(("b", moment.hour)))
    queue.add("a", "0 * * * *", lambda moment: seen.append(("a", moment.hour)))
    assert queue.run_until(NOON + timedelta(hours=2)) == 4
    assert seen == [("b", 12), ("a", 13), ("b", 13), ("a", 14)]
    assert queue.now == NOON + timedelta(hours=2)
    assert queue.next_moment == datetime(2024, 3, 13, 14, 30)


def test_failing_jobs_are_tried_again():
    def fail(moment):
        raise RuntimeError("no")

    queue = JobQueue(NOON)
    queue.add("bad", "0 * * * *", fail, retries=2)
    assert queue.run_until(datetime(2024, 3, 13, 13, 30)) == 0
    assert [(moment.minute, text) for moment, _, text in queue.log] == [
        (0, "failed: no"), (1, "failed: no"), (3, "failed: no"),
    ]  # fmt: skip
    assert queue.next_moment == datetime(2024, 3, 13, 14, 0)


def test_jobs_can_be_disabled_and_removed():
    queue = JobQueue(NOON)
    job = queue.add("x", "0 * * * *", lambda moment: None)
    job.is_enabled = False
    assert queue.run_until(NOON + timedelta(hours=1)) == 0
    with pytest.raises(ScheduleError):
        queue.add("x", "0 * * * *", print)
    assert queue.remove("x")
    assert not queue.remove("x")
    assert queue.next_moment is None
