"""Palaver as a process that need not import anything: it is forked from one that has imported everything already.

Starting Python and importing Palaver takes far longer than most commands run. One `WarmLauncher` for each worker of the
test suite imports Palaver once and then forks for each `launch`. What runs is the real program in a process of its
own: with its own arguments, environment, streams, signals, exit code, and terminal, if it has one. It differs from a
cold start only in that its imports are done and that it ends without taking all modules apart; tests of the start
itself (`cli/test_process.py`, `cli/test_missing_packages.py`) start a new Python process.

The scripts that tests run and kill start the same way. The launcher imports what a script imports when it is asked for
that script for the first time; so only what a script does under `if __name__ == "__main__"` belongs to one process.

Each launch makes two processes: the program, and its keeper, which waits for its end and reports the exit code.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType

TIMEOUT_SECONDS = 60.0
TESTS_FOLDER = str(Path(__file__).parents[1])  # where scripts import from, as tests do
PRELOADED_MODULES = (  # what a chat, a single message and a server import while they run
    "anyio._backends._asyncio",
    "httpcore2",
    "palaver.drivers.demo",
    "palaver.drivers.selection",
    "palaver.drivers.speech_command",
    "palaver.drivers.shared",
    "palaver.cli.chat.chat_runner",
    "palaver.cli.chat.line_mode",
    "palaver.cli.chat.renderer",
    "palaver.cli.chat.one_shot",
    "palaver.cli.chat.screen",
    "palaver.cli.chat.temporary",
    "palaver.cli.server_runner",
    "palaver.push.model",
    "palaver.platforms.registry",
    "palaver.platforms.settings_catalog",
    "palaver.operation.backups",
    "palaver.gateway.gateway",
    "palaver.operation.health_check",
    "palaver.live.follower",
    "palaver.operation.metrics",
    "palaver.turns.commands.status",
    "palaver.push.encryption",
    "palaver.push.notifier",
    "palaver.settings.agent_check",
    "palaver.settings.model_providers",
    "palaver.settings.overview",
    "palaver.settings.reader",
    "palaver.sessions.shares",
    "palaver.transfer.archive",
    "palaver.transfer.importer",
    "palaver.transfer.archive",
    "palaver.transfer.personal_imports",
    "palaver.media.web.reader_on_demand",
    "palaver.media.web.reader",
    "palaver.media.web.reader",
    "palaver.core.engines.postgres",
    "palaver.core.engines.sqlite_backup",
    "palaver.core.engines.sqlite_watch",
    "palaver.web.app",
    "palaver.web.server",
    "prompt_toolkit.input.vt100",
    "prompt_toolkit.output.vt100",
    "pydantic.dataclasses",
    "rich.markdown",
    "uvicorn.lifespan.off",
)


class WarmProcess:
    """A process that was launched warm, with the part of `subprocess.Popen` that tests need."""

    def __init__(self, status: socket.socket, pipes: tuple[IO[str], IO[str], IO[str]] | None) -> None:
        self._status = status
        self._unread = b""
        self.returncode: int | None = None
        self.pid = int(self._read_status(TIMEOUT_SECONDS))
        if pipes is not None:
            self.stdin, self.stdout, self.stderr = pipes

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        if self.returncode is None and (self._unread or select.select([self._status], [], [], 0)[0]):
            self.wait()
        return self.returncode

    def wait(self, timeout: float = TIMEOUT_SECONDS) -> int:
        """Wait for the end; return the exit code, or the signal that killed it as a negative number."""
        if self.returncode is None:
            self.returncode = int(self._read_status(timeout))
            self._status.close()
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended, and its keeper has not reported it yet
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, text: str = "", timeout: float = TIMEOUT_SECONDS) -> tuple[str, str]:
        """Write a text to stdin, close it, and return everything from stdout and stderr after the end."""
        outputs = {"stdout": "", "stderr": ""}

        def write() -> None:
            with suppress(BrokenPipeError):  # it has ended without reading everything
                if not self.stdin.closed:
                    with self.stdin:
                        self.stdin.write(text)

        def read(name: str) -> None:
            stream: IO[str] = getattr(self, name)
            if not stream.closed:
                with stream:
                    outputs[name] = stream.read()

        threads = [
            threading.Thread(target=write, daemon=True),
            *(threading.Thread(target=read, args=(name,), daemon=True) for name in outputs),
        ]
        for thread in threads:
            thread.start()
        self.wait(timeout)
        for thread in threads:
            thread.join(timeout)
        return outputs["stdout"], outputs["stderr"]

    def _read_status(self, timeout: float) -> str:
        self._status.settimeout(timeout)
        while b"\n" not in self._unread:
            if not (data := self._status.recv(64)):
                raise EOFError("the keeper of a warm process has ended")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()


class WarmLauncher:
    """Launches `palaver` in processes that have imported it already."""

    def __init__(self) -> None:
        self._control, other_end = socket.socketpair()
        with other_end:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(other_end.fileno())],
                pass_fds=[other_end.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def launch(self, *args: str, env: Mapping[str, str], code: str | None = None) -> WarmProcess:
        """Start `palaver`, or Python code that starts it, with a pipe for each of its streams."""
        return self._launch_with_pipes({"args": args, "env": dict(env), "code": code})

    def launch_script(self, path: Path, *args: str, stderr: int | None = None) -> WarmProcess:
        """Start a script that can import as tests do, with a pipe for each of its streams but a given `stderr`."""
        return self._launch_with_pipes({"args": args, "env": dict(os.environ), "script": str(path)}, stderr)

    def run_script(self, path: Path, *args: str, timeout: float = TIMEOUT_SECONDS) -> subprocess.CompletedProcess[str]:
        """Run a script until it ends, or is killed."""
        process = self.launch_script(path, *args)
        stdout, stderr = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess([str(path), *args], process.wait(), stdout, stderr)

    def launch_in_terminal(
        self, *args: str, terminal: int, env: Mapping[str, str], code: str | None = None
    ) -> WarmProcess:
        """Start `palaver` with this terminal (the side of the program) for its input, output and errors."""
        return self._launch({"args": args, "env": dict(env), "code": code}, [terminal], None)

    def _launch_with_pipes(self, request: dict[str, Any], stderr: int | None = None) -> WarmProcess:
        ends = [os.pipe() for _ in range(3)]
        child_ends = [ends[0][0], ends[1][1], ends[2][1]]
        pipes = (os.fdopen(ends[0][1], "w"), os.fdopen(ends[1][0]), os.fdopen(ends[2][0]))
        if stderr is not None:
            os.dup2(stderr, child_ends[2])
        try:
            return self._launch(request, child_ends, pipes)
        finally:
            for descriptor in child_ends:
                os.close(descriptor)

    def _launch(
        self, request: dict[str, Any], streams: list[int], pipes: tuple[IO[str], IO[str], IO[str]] | None
    ) -> WarmProcess:
        status, keepers_end = socket.socketpair()
        message = json.dumps({"code": None, "script": None, **request, "folder": str(Path.cwd())}).encode() + b"\n"
        with keepers_end:
            socket.send_fds(self._control, [message], [keepers_end.fileno(), *streams])
            return WarmProcess(status, pipes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._control.close()  # this ends the launcher
        self._process.wait(TIMEOUT_SECONDS)


# -- the launcher's own process ------------------------------------------------------------------------------


def serve_launches(control: socket.socket) -> dict[str, Any] | None:
    """Fork for every request until the test suite closes the connection.

    Returns None in the launcher, and in each program the request that it has to run.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers need not be waited for
    _share_memory()
    while True:
        message, handles, _, _ = socket.recv_fds(control, 1 << 16, 4)
        if not message:
            return None
        while not message.endswith(b"\n"):
            message += control.recv(1 << 16)
        request = dict(json.loads(message))
        if request["script"] is not None:
            _prepare_script(request["script"])
        if os.fork() == 0:
            reset_signals()
            control.close()
            _fork_program(handles)
            return request
        for handle in handles:
            os.close(handle)


def reset_signals() -> None:
    """Handle signals as a Python does that was started in a terminal: below `nohup` or `make &`, some are ignored."""
    for each in (signal.SIGCHLD, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def _share_memory() -> None:
    """Let forks use what exists by now without a copy: their garbage collection leaves it alone."""
    gc.freeze()


PREPARED_SCRIPTS: dict[str, CodeType] = {}  # by path; their imports are done


def _prepare_script(path: str) -> None:
    if path in PREPARED_SCRIPTS:
        return
    PREPARED_SCRIPTS[path] = code = compile(Path(path).read_bytes(), path, "exec")
    import_path = sys.path.copy()
    sys.path.insert(0, TESTS_FOLDER)
    gc.disable()
    exec(code, {"__name__": "prepared", "__file__": path})
    gc.enable()
    sys.path[:] = import_path
    assert threading.active_count() == 1, "a fork copies one thread only"
    _share_memory()


def _fork_program(handles: list[int]) -> None:
    """Fork the program and return in it; the keeper, in which this was called, reports its end and ends too."""
    pid = os.fork()
    if pid == 0:
        _connect_streams(handles[1:])
        for handle in handles:
            os.close(handle)
        return
    for handle in handles[1:]:
        os.close(handle)
    with socket.socket(fileno=handles[0]) as status:
        status.send(f"{pid}\n".encode())
        _, exit_status = os.waitpid(pid, 0)
        status.send(f"{os.waitstatus_to_exitcode(exit_status)}\n".encode())
    os._exit(0)


def _connect_streams(streams: list[int]) -> None:
    if len(streams) == 1:
        os.setsid()
        fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
        streams = streams * 3
    for number, stream in enumerate(streams):
        os.dup2(stream, number)


def run_program(request: Mapping[str, Any]) -> None:
    """Run `python -m palaver`, `python -c`, or a script, as if Python had just started."""
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["folder"])
    time.tzset()
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        _open_stream(number, name)
    if (script := request["script"]) is not None:
        sys.orig_argv[:] = [sys.executable, script, *request["args"]]
        sys.argv[:] = [script, *request["args"]]
        sys.path.insert(0, TESTS_FOLDER)
        exec(PREPARED_SCRIPTS[script], {"__name__": "__main__", "__file__": script})
    elif (code := request["code"]) is None:
        sys.orig_argv[:] = [sys.executable, "-m", "palaver", *request["args"]]
        sys.argv[1:] = request["args"]
        runpy.run_module("palaver", run_name="__main__", alter_sys=True)
    else:
        sys.orig_argv[:] = [sys.executable, "-c", code, *request["args"]]
        sys.argv[:] = ["-c", *request["args"]]
        exec(code, {"__name__": "__main__"})


def _open_stream(number: int, name: str) -> None:
    """Replace one of Python's streams, which still remembers to what it was connected when the launcher started."""
    old = getattr(sys, name)
    new = open(number, "r" if name == "stdin" else "w", encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115
    if name != "stdin":
        is_unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
        new.reconfigure(line_buffering=name == "stderr" or new.isatty(), write_through=is_unbuffered)
    setattr(sys, name, new)
    setattr(sys, f"__{name}__", new)


def end_program(exit_code: int) -> None:
    """End as Python does, but without taking all modules apart, which takes longer than most commands.

    Threads are waited for, exit handlers run, objects that are left report what was never closed or awaited, and the
    streams are written. Raises OSError if they cannot be written.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)


def main() -> None:
    gc.disable()  # nothing becomes garbage during the imports
    for name in PRELOADED_MODULES:
        import_module(name)
    program = import_module("palaver.cli.program").program
    for name in program.list_commands(None):
        program.get_command(None, name)
    gc.enable()
    assert threading.active_count() == 1, "a fork copies one thread only"
    if (request := serve_launches(socket.socket(fileno=int(sys.argv[1])))) is None:
        return
    exit_code: str | int | None = None
    try:
        run_program(request)
    except SystemExit as end:
        exit_code = end.code
    if exit_code is None or isinstance(exit_code, int):
        with suppress(OSError):  # Python reports this in its own way
            end_program(exit_code or 0)
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
