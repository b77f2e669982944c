"""Runs on real `dask scheduler` and `dask worker` processes on three hosts, and their faults: `tox -e cluster`."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from tests.cluster.network import SERVER_PATH, Network, Process, wait_until
from tests.cluster.story import FIXER, SHOP, TESTS, Story, make_wheel, read_result

pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
pytestmark = pytest.mark.thorough


def find_clock_library() -> str:
    """Return the library that gives a process another time; empty without one."""
    return next(map(str, Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), "")


@pytest.fixture
def story(tmp_path: Path, network: Network) -> Story:
    network.start_cluster()
    return Story(tmp_path, network)


def test_a_run_on_hosts_ends_as_here(story: Story) -> None:
    here = story.finish(story.start())
    verdicts = story.read_verdicts()
    shutil.rmtree(story.project / ".loop")
    story.write("shop.py", SHOP)
    output = story.finish(story.start_on_workers())
    assert story.read_verdicts() == verdicts, (here, output)
    story.check_completed(output)
    assert "judged here" not in output
    assert {line.partition(" ")[2] for line in story.read_ledger()} == {"host2", "host3"}


def test_a_broken_test_is_never_green(story: Story) -> None:
    """The agent repairs the sum and breaks a test that passed, while the worker that judges dies."""
    text = TESTS.format(name="name", ledger=str(story.ledger))
    story.write("tests/test_name.py", text.replace("total([1, 2]) == 3", "total.__name__ == 'total'"))
    story.write("shop.py", f"{SHOP}# end\n")
    story.write("fixer.py", FIXER.replace(".replace(", """.replace("# end", "total.__name__ = ''").replace("""))
    story.write_fault("(once(f'judging-{host}'), time.sleep(3))")
    process = story.start_on_workers("--loop-max-iterations", "2")
    wait_until(lambda: story.has_mark("judging-host2"), "a test on the second host")
    story.network.second.kill()
    output = story.finish(process)
    result = story.read_verdicts()
    assert ("tests/test_name.py::test_name", "fail") in result["verdicts"], output
    assert result["status"] == "stopped", output


def test_a_killed_worker_loses_no_verdict(story: Story) -> None:
    story.write_fault("(once(f'judging-{host}'), time.sleep(3))")
    process = story.start_on_workers()
    wait_until(lambda: story.has_mark("judging-host2"), "a test on the second host")
    story.network.second.kill()
    story.check_completed(story.finish(process))
    assert "host3" in {line.partition(" ")[2] for line in story.read_ledger()}


def test_a_host_that_is_cut_off_loses_no_verdict(story: Story) -> None:
    story.write_fault("(once(f'judging-{host}'), time.sleep(3))")
    process = story.start_on_workers()
    wait_until(lambda: story.has_mark("judging-host2"), "a test on the second host")
    story.network.second.set_link("down")
    time.sleep(15)
    story.network.second.set_link("up")
    story.check_completed(story.finish(process))


def test_a_scheduler_that_is_restarted_loses_no_verdict(story: Story) -> None:
    story.write_fault("(once(f'judging-{host}'), time.sleep(3))")
    network = story.network
    scheduler = network.first.processes[0]
    process = story.start_on_workers()
    wait_until(lambda: story.has_mark("judging-host2"), "a test on the second host")
    scheduler.kill()
    scheduler.wait()
    network.start_scheduler()
    for host in (network.second, network.third):
        network.start_worker(host)
    story.check_completed(story.finish(process))


def test_a_host_with_a_full_disk_is_named_and_not_used(tmp_path: Path, network: Network) -> None:
    folder = network.second.folder / "tmp"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", folder], check=True)
    try:
        network.start_cluster()
        story = Story(tmp_path, network)
        story.write("data.txt", "x" * 300_000)
        output = story.finish(story.start_on_workers())
        story.check_completed(output)
        assert "No space left on device" in output
        assert "is not used: " in output
        assert {line.partition(" ")[2] for line in story.read_ledger()} == {"host3"}
    finally:
        network.second.kill()
        subprocess.run(["umount", folder], check=True)


def test_what_a_slow_host_has_is_repeated_elsewhere(story: Story) -> None:
    story.write_fault("host == 'host2' and time.sleep(200)")
    started = time.monotonic()
    story.check_completed(story.finish(story.start_on_workers()))
    assert time.monotonic() - started < 150


def test_a_run_that_was_killed_resumes_while_workers_are_busy(story: Story) -> None:
    story.write_fault("(once(f'judging-{host}'), time.sleep(5))")
    process = story.start_on_workers()
    wait_until(lambda: story.has_mark("judging-host2"), "a test on the second host")
    process.kill()
    process.wait()
    story.check_completed(story.finish(story.start_on_workers("--loop-resume", task="")))


@pytest.mark.skipif(not find_clock_library(), reason="libfaketime is not installed: apt-get install faketime")
def test_workers_with_another_time_judge_as_here(tmp_path: Path, network: Network) -> None:
    """One host is two hours late, the other two hours early, and the first edit of the agent is wrong."""
    network.start_scheduler()
    for host, shift in ((network.second, "-2h"), (network.third, "+2h")):
        clock = {"LD_PRELOAD": find_clock_library(), "FAKETIME": shift}
        network.start_worker(host, variables=clock)
    network.wait_for_workers(2)
    story = Story(tmp_path, network)
    story.write("fixer.py", FIXER.replace('" + 1"', '" + 2", " + 0").replace(" + 1"').replace('+ 0"))', '+ 2"))'))
    story.write_fault(f"Path({str(tmp_path)!r}, f'clock-{{host}}').write_text(str(time.time()))")
    output = story.finish(story.start_on_workers())
    story.check_completed(output)
    assert "judged here" not in output, output
    clocks = [float((tmp_path / f"clock-{host}").read_text()) - time.time() for host in ("host2", "host3")]
    assert clocks == pytest.approx([-7200, 7200], abs=100)
    scores = [score for score, *_ in read_result(story.project)["evaluations"]]
    assert scores == [0.0, 0.0, 1.0]


def start_with_far_scheduler(tmp_path: Path, network: Network) -> tuple[Story, Process]:
    """Start a run, and cut off the host of the scheduler while workers judge."""
    network.scheduler = network.third
    network.start_cluster()
    story = Story(tmp_path, network)
    story.write_fault("(once(f'judging-{host}'), time.sleep(20))")
    process = story.start_on_workers()
    wait_until(lambda: story.has_mark("judging-host2"), "a test on the second host")
    network.third.set_link("down")
    return story, process


def test_without_the_host_of_the_scheduler_the_run_goes_on_here(tmp_path: Path, network: Network) -> None:
    story, process = start_with_far_scheduler(tmp_path, network)
    started = time.monotonic()
    output = story.finish(process)
    assert time.monotonic() - started < 60
    story.check_completed(output)
    assert f"judged here, not on {network.address}: --loop-cluster: cannot connect to {network.address}: " in output


@pytest.mark.parametrize("how", ["interrupt", "stop"])
def test_a_run_without_its_scheduler_can_be_stopped(tmp_path: Path, network: Network, how: str) -> None:
    story, process = start_with_far_scheduler(tmp_path, network)
    time.sleep(2)
    started = time.monotonic()
    if how == "stop":
        output = story.finish(story.start("--loop-stop", task=""))
        assert "to stop" in output
    else:
        process.send_signal(signal.SIGINT)
    output = story.finish(process)
    assert time.monotonic() - started < 30
    assert ("stopped after" if how == "stop" else "interrupted: the run can go on with pytest-loop resume") in output


@pytest.mark.skipif(not shutil.which("sshd", path=SERVER_PATH), reason="the program sshd is not installed")
def test_a_run_starts_its_workers_over_ssh(tmp_path: Path, network: Network) -> None:
    pytest.importorskip("asyncssh", reason="the extra `cluster` is not installed")
    story = Story(tmp_path, network)
    for host in (network.second, network.third):
        network.start_ssh_server(host)
    story.write("hosts.txt", f"{network.second.address}\n{network.third.address} {sys.executable}  # the other one\n")
    output = story.finish(story.start("--loop-cluster", "ssh:hosts.txt"))
    story.check_completed(output)
    assert "judged here" not in output
    assert {line.partition(" ")[2] for line in story.read_ledger()} == {"host2", "host3"}


def make_environment(folder: Path, *wheels: str) -> str:
    """Make a virtual environment with these wheels, and return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", *wheels], check=True)
    return python


def test_an_environment_that_differs_is_named_or_built(tmp_path: Path, network: Network) -> None:
    """The run has what the first wheel links to; one worker has one distribution more."""
    links = make_wheel(tmp_path, "links", f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    here = make_environment(tmp_path / "here", links)
    other = make_environment(tmp_path / "other", links, make_wheel(tmp_path, "more"))
    network.start_scheduler()
    network.start_worker(network.second, python=other)
    network.start_worker(network.third, python=here)
    network.wait_for_workers(2)
    story = Story(tmp_path, network)
    story.write("requirements.txt", f"links @ {links}\n")
    place = ("--loop-cluster", network.address)
    output = story.finish(story.start(*place, python=here))
    story.check_completed(output)
    assert "is not used: another environment: more (installed) is 1.0, expected none" in output
    assert {line.partition(" ")[2] for line in story.read_ledger()} == {"host3"}

    shutil.rmtree(story.project / ".loop")
    story.write("shop.py", SHOP)
    story.ledger.unlink()
    story.write_fault("host == 'host3' and time.sleep(60)")
    output = story.finish(story.start(*place, "--loop-cluster-sync", python=here))
    story.check_completed(output)
    assert "is not used" not in output
    assert "host2" in {line.partition(" ")[2] for line in story.read_ledger()}


def test_without_a_scheduler_the_run_does_not_start(tmp_path: Path, network: Network) -> None:
    started = time.monotonic()
    story = Story(tmp_path, network)
    output = story.finish(story.start_on_workers())
    assert f"--loop-cluster: cannot connect to {network.address}: " in output
    assert time.monotonic() - started < 60
