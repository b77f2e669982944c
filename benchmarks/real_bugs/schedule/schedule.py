"""Durations, cron expressions, recurrence rules, working days and a queue of jobs."""

from __future__ import annotations

import calendar
import heapq
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta

_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(weeks?|days?|hours?|minutes?|mins?|seconds?|secs?|[wdhms])")
_ISO_DURATION = re.compile(
    r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?"
)
_CLOCK = re.compile(r"([01]?\d|2[0-3])[:.h]([0-5]\d)(?::([0-5]\d))?\s*([ap]m)?", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FREQUENCIES = ("daily", "weekly", "monthly", "yearly")
_FAR = 366 * 8


class ScheduleError(ValueError):
    """A text that describes no time."""


# -- durations


def parse_duration(text: str) -> timedelta:
    """Read `1h 30m`, `2 days` or `PT5M`."""
    cleaned = text.strip()
    if not cleaned:
        raise ScheduleError("expected a duration, found an empty text")
    sign = -1 if cleaned.startswith("-") else 1
    cleaned = cleaned.lstrip("+-").strip()
    if cleaned.startswith("P"):
        return sign * _parse_iso(cleaned)
    total, end = 0.0, 0
    for match in _DURATION_PART.finditer(cleaned):
        if cleaned[end : match.start()].strip(" ,"):
            raise ScheduleError(f"expected a duration, found {text!r}")
        total += float(match[1]) * _UNITS[match[2][0]]
        end = match.end()
    if end == 0 or cleaned[end:].strip():
        raise ScheduleError(f"expected a duration, found {text!r}")
    return timedelta(seconds=sign * total)


def _parse_iso(text: str) -> timedelta:
    match = _ISO_DURATION.fullmatch(text)
    if match is None or text in ("P", "PT") or text.endswith("T"):
        raise ScheduleError(f"expected an ISO duration, found {text!r}")
    return timedelta(seconds=sum(float(value) * _UNITS[unit] for unit, value in match.groupdict().items() if value))


def format_duration(duration: timedelta, parts: int = 2) -> str:
    """Write a duration with at most so many units, as `1h 30m`."""
    seconds = round(abs(duration.total_seconds()))
    words: list[str] = []
    for unit, size in _UNITS.items():
        count, seconds = divmod(seconds, size)
        if count:
            words.append(f"{count}{unit}")
        if len(words) == parts:
            break
    text = " ".join(words) or "0s"
    return f"-{text}" if duration < timedelta(0) and words else text


def describe_distance(moment: datetime, now: datetime) -> str:
    """Write how far a moment is from now, as `in 3h` or `2d ago`."""
    distance = moment - now
    if abs(distance) < timedelta(seconds=1):
        return "now"
    text = format_duration(abs(distance), 1)
    return f"in {text}" if distance > timedelta(0) else f"{text} ago"


def parse_clock(text: str) -> time:
    """Read a time of day: `7:30`, `19.05`, `7:30 pm`."""
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        raise ScheduleError(f"expected a time of day, found {text!r}")
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if match[4]:
        if not 1 <= hour <= 12:
            raise ScheduleError(f"expected an hour from 1 to 12, found {hour}")
        hour = hour % 12 + (12 if match[4].lower() == "pm" else 0)
    return time(hour, minute, second)


def round_time(moment: datetime, step: timedelta, *, up: bool = False) -> datetime:
    """Round a moment down, or up, to a multiple of a step since midnight."""
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    rest = (moment - midnight) % step
    if not rest:
        return moment
    return moment - rest + step if up else moment - rest


# -- cron


@dataclass(frozen=True)
class CronField:
    """One field of a cron expression."""

    values: frozenset[int]
    is_any: bool = False

    def __contains__(self, value: int) -> bool:
        return value in self.values


def _read_number(text: str, names: tuple[str, ...], offset: int) -> int:
    if text.isdecimal():
        return int(text)
    if text.lower()[:3] in names:
        return names.index(text.lower()[:3]) + offset
    raise ScheduleError(f"expected a number, found {text!r}")


def parse_field(text: str, low: int, high: int, names: tuple[str, ...] = (), offset: int = 0) -> CronField:
    """Read a field: `*`, `5`, `1-5`, `*/15`, `1,2`, `mon-fri`."""
    values: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = int(step_text) if step_text.isdecimal() else 0
        if slash and step < 1:
            raise ScheduleError(f"expected a step, found {part!r}")
        if span == "*":
            first, last = low, high
        elif "-" in span:
            first, last = (_read_number(number, names, offset) for number in span.split("-", 1))
        else:
            first = _read_number(span, names, offset)
            last = high if slash else first
        if first > last and names:
            values |= set(range(first, high + 1, step or 1))
            first = low
        if not low <= first <= last <= high:
            raise ScheduleError(f"expected {low} to {high}, found {part!r}")
        values |= set(range(first, last + 1, step or 1))
    return CronField(frozenset(values), text == "*")


@dataclass(frozen=True)
class Cron:
    """A cron expression of five fields."""

    minutes: CronField
    hours: CronField
    days: CronField
    months: CronField
    weekdays: CronField
    text: str = ""

    @classmethod
    def parse(cls, text: str) -> Cron:
        """Read an expression or an alias such as `@daily`."""
        fields = _ALIASES.get(text.strip().lower(), text).split()
        if len(fields) != 5:
            raise ScheduleError(f"expected 5 fields, found {len(fields)} in {text!r}")
        weekdays = parse_field(fields[4].replace("7", "0") if fields[4] == "7" else fields[4], 0, 6, _DAYS)
        return cls(
            parse_field(fields[0], 0, 59),
            parse_field(fields[1], 0, 23),
            parse_field(fields[2], 1, 31),
            parse_field(fields[3], 1, 12, _MONTHS, 1),
            weekdays,
            text,
        )

    def matches_day(self, day: date) -> bool:
        """Return whether a day matches; if both day fields are restricted, one of them is enough."""
        if day.month not in self.months:
            return False
        by_date = day.day in self.days
        by_weekday = day.isoweekday() % 7 in self.weekdays
        if self.days.is_any or self.weekdays.is_any:
            return by_date and by_weekday
        return by_date or by_weekday

    def matches(self, moment: datetime) -> bool:
        """Return whether a moment matches, to the minute."""
        return moment.minute in self.minutes and moment.hour in self.hours and self.matches_day(moment.date())

    def find_next(self, after: datetime) -> datetime:
        """Return the first matching moment after a moment."""
        start = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
        for offset in range(_FAR):
            day = start.date() + timedelta(days=offset)
            if not self.matches_day(day):
                continue
            earliest = start.time() if offset == 0 else time(0, 0)
            for hour in sorted(self.hours.values):
                for minute in sorted(self.minutes.values):
                    if time(hour, minute) >= earliest:
                        return datetime.combine(day, time(hour, minute))
        raise ScheduleError(f"{self.text!r} never happens")

    def iterate(self, after: datetime, count: int) -> Iterator[datetime]:
        """Yield the next matching moments."""
        for _ in range(count):
            after = self.find_next(after)
            yield after


# -- recurrence


@dataclass(frozen=True)
class Recurrence:
    """A rule such as `FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE;COUNT=4`."""

    frequency: str
    interval: int = 1
    count: int | None = None
    until: date | None = None
    weekdays: tuple[int, ...] = ()
    month_day: int | None = None

    @classmethod
    def parse(cls, text: str) -> Recurrence:
        """Read a rule."""
        parts: dict[str, str] = {}
        for part in text.strip().rstrip(";").split(";"):
            key, equals, value = part.partition("=")
            if not equals or not value:
                raise ScheduleError(f"expected KEY=VALUE, found {part!r}")
            parts[key.strip().upper()] = value.strip()
        frequency = parts.pop("FREQ", "").lower()
        if frequency not in _FREQUENCIES:
            raise ScheduleError(f"expected a FREQ of {', '.join(_FREQUENCIES)}, found {frequency!r}")
        codes = [name[:2].upper() for name in (*_DAYS[1:], _DAYS[0])]
        weekdays = tuple(sorted(codes.index(code) for code in parts.pop("BYDAY", "").split(",") if code))
        until = parts.pop("UNTIL", None)
        rule = cls(
            frequency,
            int(parts.pop("INTERVAL", "1")),
            int(parts.pop("COUNT")) if "COUNT" in parts else None,
            datetime.strptime(until[:8], "%Y%m%d").date() if until else None,
            weekdays,
            int(parts.pop("BYMONTHDAY")) if "BYMONTHDAY" in parts else None,
        )
        if parts:
            raise ScheduleError(f"unknown keys: {', '.join(sorted(parts))}")
        if rule.interval < 1:
            raise ScheduleError(f"expected an INTERVAL of at least 1, found {rule.interval}")
        return rule

    def iterate(self, start: date) -> Iterator[date]:
        """Yield the days of the rule, beginning with the start."""
        number = 0
        for day in self._iterate_all(start):
            if day < start:
                continue
            if self.until is not None and day > self.until:
                return
            if self.count is not None and number >= self.count:
                return
            number += 1
            yield day

    def _iterate_all(self, start: date) -> Iterator[date]:
        if self.frequency == "daily":
            yield from (start + timedelta(days=step) for step in range(0, _FAR, self.interval))
        elif self.frequency == "weekly":
            monday = start - timedelta(days=start.weekday())
            for step in range(0, _FAR // 7, self.interval):
                for weekday in self.weekdays or (start.weekday(),):
                    yield monday + timedelta(days=7 * step + weekday)
        else:
            months = self.interval * (12 if self.frequency == "yearly" else 1)
            for step in range(0, 12 * 40, months):
                year, month = add_months(start.year, start.month, step)
                day = find_month_day(year, month, self.month_day or start.day)
                if day is not None:
                    yield day


def add_months(year: int, month: int, months: int) -> tuple[int, int]:
    """Return the year and month so many months later."""
    index = year * 12 + month - 1 + months
    return index // 12, index % 12 + 1


def find_month_day(year: int, month: int, day: int) -> date | None:
    """Return a day of a month, counted from its end if negative; None if the month is too short."""
    last = calendar.monthrange(year, month)[1]
    number = last + 1 + day if day < 0 else day
    return date(year, month, number) if 1 <= number <= last else None


def shift_months(day: date, months: int) -> date:
    """Return the same day of another month, or its last day."""
    year, month = add_months(day.year, day.month, months)
    return date(year, month, min(day.day, calendar.monthrange(year, month)[1]))


def find_nth_weekday(year: int, month: int, weekday: int, number: int) -> date:
    """Return the n-th weekday of a month; -1 is the last one."""
    if number > 0:
        first = date(year, month, 1)
        offset = (weekday - first.weekday()) % 7 + 7 * (number - 1)
        day = first + timedelta(days=offset)
    else:
        last = date(year, month, calendar.monthrange(year, month)[1])
        offset = (last.weekday() - weekday) % 7 + 7 * (-number - 1)
        day = last - timedelta(days=offset)
    if day.month != month:
        raise ScheduleError(f"{year}-{month:02} has no such day")
    return day


# -- working days


@dataclass
class WorkCalendar:
    """Weekends, holidays and opening hours."""

    holidays: set[date] = field(default_factory=set)
    weekend: frozenset[int] = frozenset((5, 6))
    opens: time = time(9, 0)
    closes: time = time(17, 0)

    def is_working_day(self, day: date) -> bool:
        return day.weekday() not in self.weekend and day not in self.holidays

    def add_days(self, day: date, count: int) -> date:
        """Return the day so many working days later, or earlier."""
        step = timedelta(days=1 if count >= 0 else -1)
        remaining = abs(count)
        while remaining:
            day += step
            if self.is_working_day(day):
                remaining -= 1
        return day

    def count_days(self, first: date, last: date) -> int:
        """Count the working days of a span, both ends included."""
        if last < first:
            return -self.count_days(last, first)
        return sum(self.is_working_day(first + timedelta(days=step)) for step in range((last - first).days + 1))

    def is_open(self, moment: datetime) -> bool:
        return self.is_working_day(moment.date()) and self.opens <= moment.time() < self.closes

    def find_next_opening(self, moment: datetime) -> datetime:
        """Return the moment itself if it is open, else when it opens next."""
        if self.is_open(moment):
            return moment
        day = moment.date()
        if moment.time() >= self.opens or not self.is_working_day(day):
            day = self.add_days(day, 1)
        return datetime.combine(day, self.opens)

    def add_hours(self, moment: datetime, hours: float) -> datetime:
        """Return when so many opening hours have passed."""
        remaining = timedelta(hours=hours)
        moment = self.find_next_opening(moment)
        while True:
            closing = datetime.combine(moment.date(), self.closes)
            if moment + remaining <= closing:
                return moment + remaining
            remaining -= closing - moment
            moment = self.find_next_opening(closing)


# -- spans


@dataclass(frozen=True, order=True)
class Span:
    """A span of time; its end does not belong to it."""

    start: datetime
    end: datetime
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ScheduleError(f"a span ends before it starts: {self.start} to {self.end}")

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    def overlaps(self, other: Span) -> bool:
        return self.start < other.end and other.start < self.end

    def intersect(self, other: Span) -> Span | None:
        """Return the common part."""
        if not self.overlaps(other):
            return None
        return Span(max(self.start, other.start), min(self.end, other.end), self.name)


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Join spans that overlap or touch."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            last = merged.pop()
            span = Span(last.start, max(last.end, span.end), last.name)
        merged.append(span)
    return merged


def find_gaps(spans: Iterable[Span], within: Span, at_least: timedelta = timedelta(0)) -> list[Span]:
    """Return the free spans between others."""
    gaps: list[Span] = []
    position = within.start
    for span in merge_spans(spans):
        if span.end <= within.start:
            continue
        if span.start >= within.end:
            break
        if span.start > position:
            gaps.append(Span(position, span.start))
        position = max(position, span.end)
    if position < within.end:
        gaps.append(Span(position, within.end))
    return [gap for gap in gaps if gap.length >= at_least]


def find_conflicts(spans: Iterable[Span]) -> list[tuple[str, str]]:
    """Return the names of spans that overlap."""
    ordered = sorted(spans)
    conflicts: list[tuple[str, str]] = []
    for index, span in enumerate(ordered):
        for other in ordered[index + 1 :]:
            if other.start >= span.end:
                break
            conflicts.append((span.name, other.name))
    return conflicts


# -- jobs


@dataclass
class Job:
    """Something to do, again and again."""

    name: str
    cron: Cron
    action: Callable[[datetime], object]
    retries: int = 0
    delay: timedelta = timedelta(minutes=1)
    failures: int = 0
    is_enabled: bool = True


class JobQueue:
    """Run jobs when they are due."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.log: list[tuple[datetime, str, str]] = []
        self._heap: list[tuple[datetime, int, Job]] = []
        self._count = 0
        self._names: set[str] = set()

    def add(self, name: str, cron: str, action: Callable[[datetime], object], **options: object) -> Job:
        """Add a job; its name must be new."""
        if name in self._names:
            raise ScheduleError(f"there is a job {name!r} already")
        job = Job(name, Cron.parse(cron), action, **options)  # type: ignore[arg-type]
        self._names.add(name)
        self._push(job.cron.find_next(self.now), job)
        return job

    def _push(self, moment: datetime, job: Job) -> None:
        self._count += 1
        heapq.heappush(self._heap, (moment, self._count, job))

    @property
    def next_moment(self) -> datetime | None:
        return self._heap[0][0] if self._heap else None

    def run_until(self, until: datetime) -> int:
        """Run what is due until a moment; return how many jobs succeeded."""
        succeeded = 0
        while self._heap and self._heap[0][0] <= until:
            moment, _, job = heapq.heappop(self._heap)
            self.now = moment
            if not job.is_enabled:
                self._push(job.cron.find_next(moment), job)
                continue
            try:
                job.action(moment)
            except Exception as error:
                self.log.append((moment, job.name, f"failed: {error}"))
                self._retry(job, moment)
            else:
                job.failures = 0
                succeeded += 1
                self.log.append((moment, job.name, "done"))
                self._push(job.cron.find_next(moment), job)
        self.now = max(self.now, until)
        return succeeded

    def _retry(self, job: Job, moment: datetime) -> None:
        """Run a job again later, waiting twice as long each time, or leave it until its next turn."""
        job.failures += 1
        if job.failures <= job.retries:
            self._push(moment + job.delay * 2 ** (job.failures - 1), job)
        else:
            job.failures = 0
            self._push(job.cron.find_next(moment), job)

    def remove(self, name: str) -> bool:
        """Remove a job; return whether there was one."""
        if name not in self._names:
            return False
        self._names.discard(name)
        self._heap = [entry for entry in self._heap if entry[2].name != name]
        heapq.heapify(self._heap)
        return True
