"""Hosts of a cluster: network namespaces with an address and folders of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PORT = 8786
SERVER_PATH = f"{os.environ['PATH']}:/usr/sbin"
Process = subprocess.Popen[str]


def run_ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def find_obstacle() -> str:
    """Return why no network namespaces can be made here; empty if they can."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        return "network namespaces need root and the program ip"
    name = f"loop-{os.getpid()}-probe"
    try:
        run_ip("netns", "add", name)
        run_ip("-n", name, "link", "add", "probe", "type", "bridge")
    except subprocess.CalledProcessError as error:
        return f"network namespaces are not permitted here: {error.stderr.decode().strip()}"
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
    return ""


def wait_until(is_done: Callable[[], bool], text: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {text}"
        time.sleep(0.1)


@dataclass
class Host:
    """One host: its namespace, its address, and its folder, which holds its home and its temporary files."""

    namespace: str
    address: str
    folder: Path
    processes: list[Process] = field(default_factory=list)

    def start(self, *words: str, cwd: Path | None = None, variables: Mapping[str, str] | None = None) -> Process:
        """Start a program on this host; its output goes to `log`, unless it is a run in `cwd`."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}
        folders = {"HOME": str(self.folder), "TMPDIR": str(self.folder / "tmp")}
        with (self.folder / "log").open("a") as log:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.namespace, *words],
                cwd=cwd or self.folder,
                env={**inherited, **folders, **(variables or {})},
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if cwd else log,
                stderr=subprocess.STDOUT if cwd else log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def set_link(self, state: str) -> None:
        """Cut this host off (`down`), or connect it again (`up`)."""
        run_ip("-n", self.namespace, "link", "set", "eth0", state)

    def kill(self) -> None:
        """Kill every process on this host."""
        output = subprocess.run(
            ["ip", "netns", "pids", self.namespace], check=True, capture_output=True, text=True
        ).stdout
        for pid in output.split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue
        for process in self.processes:
            process.communicate(timeout=10)
        self.processes.clear()


class Network:
    """Three hosts: the first has the run and, unless a test moves it, the scheduler; the others have a worker each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"loop-{os.getpid()}"
        run_ip("netns", "add", f"{self.name}-net")
        run_ip("-n", f"{self.name}-net", "link", "add", "bridge", "type", "bridge")
        run_ip("-n", f"{self.name}-net", "link", "set", "bridge", "up")
        self.hosts = [self._make_host(number) for number in (1, 2, 3)]
        self.first, self.second, self.third = self.hosts
        self.scheduler = self.first

    @property
    def address(self) -> str:
        return f"tcp://{self.scheduler.address}:{PORT}"

    def _make_host(self, number: int) -> Host:
        namespace, address = f"{self.name}-{number}", f"10.0.0.{number}"
        folder = self.folder / f"host{number}"
        (folder / "tmp").mkdir(parents=True)
        run_ip("netns", "add", namespace)
        outer = ("name", f"host{number}", "netns", f"{self.name}-net")
        run_ip("link", "add", "eth0", "netns", namespace, "type", "veth", "peer", *outer)
        run_ip("-n", f"{self.name}-net", "link", "set", f"host{number}", "master", "bridge", "up")
        run_ip("-n", namespace, "address", "add", f"{address}/24", "dev", "eth0")
        run_ip("-n", namespace, "link", "set", "eth0", "up")
        run_ip("-n", namespace, "link", "set", "lo", "up")
        run_ip("-n", namespace, "route", "add", "default", "dev", "eth0")
        return Host(namespace, address, folder)

    def start_scheduler(self) -> Process:
        words = ("--host", self.scheduler.address, "--port", str(PORT), "--no-dashboard")
        return self.scheduler.start(sys.executable, "-m", "dask", "scheduler", *words)

    def start_worker(
        self, host: Host, python: str = sys.executable, variables: Mapping[str, str] | None = None
    ) -> Process:
        options = ("--host", host.address, "--nthreads", "1", "--no-dashboard", "--local-directory", str(host.folder))
        return host.start(python, "-m", "dask", "worker", self.address, *options, variables=variables)

    def start_cluster(self) -> None:
        """Start the scheduler and both workers, and wait until they are there."""
        self.start_scheduler()
        for host in (self.second, self.third):
            self.start_worker(host)
        self.wait_for_workers(2)

    def wait_for_workers(self, count: int) -> None:
        script = f"from distributed import Client; Client({self.address!r}, timeout=60).wait_for_workers({count}, 60)"
        process = self.first.start(sys.executable, "-c", script)
        assert process.wait(120) == 0, self.read_logs()

    def read_logs(self) -> str:
        return "\n".join(f"{host.namespace}\n{(host.folder / 'log').read_text()}" for host in self.hosts)

    def start_ssh_server(self, host: Host) -> None:
        """Start a server that accepts the key of the first host; what it starts uses the folders of its own host."""
        folder, client = host.folder, self.first.folder / ".ssh"
        client.mkdir(mode=0o700, exist_ok=True)
        for key in (folder / "host_key", client / "id_ed25519"):
            if not key.exists():
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        Path("/run/sshd").mkdir(exist_ok=True)
        (folder / "sshd_config").write_text(
            f"ListenAddress {host.address}\nHostKey {folder}/host_key\nAuthorizedKeysFile {client}/id_ed25519.pub\n"
            f"StrictModes no\nUsePAM no\nPidFile none\nSetEnv TMPDIR={folder}/tmp\n"
        )
        with (client / "known_hosts").open("a") as known_hosts:
            known_hosts.write(f"{host.address} {(folder / 'host_key.pub').read_text()}")
        host.start(str(shutil.which("sshd", path=SERVER_PATH)), "-D", "-f", str(folder / "sshd_config"))

    def close(self) -> None:
        for host in self.hosts:
            host.kill()
            run_ip("netns", "delete", host.namespace)
        run_ip("netns", "delete", f"{self.name}-net")
