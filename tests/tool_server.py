"""One Java process that runs Kafka's own command-line tools for a whole test run.

Starting Java for each call is most of what a tool costs. Here the tools' main classes are called in a process that
stays, through py4j's gateway: their output is captured, and Kafka's ``Exit`` (class
org.apache.kafka.common.utils.Exit) keeps the exit code instead of ending the process.

The process is started by the first call of a run and shared by all its workers, which take turns; it belongs to the
run's folder and ends with it. `tests/playground/test_cluster.py` and ``make proof ARGS=tools`` compare its answers
with those of the scripts.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
from py4j import java_gateway
from py4j.java_gateway import GatewayClient, GatewayParameters, JavaClass, JavaGateway, find_jar_path
from py4j.protocol import Py4JError, Py4JJavaError, get_return_value

from kafkadash.devtools.embedded.files import lock_file
from kafkadash.devtools.embedded.process import ChildProcess, find_child, spawn
from kafkadash.devtools.playground.cluster import KafkaPlayground, prepare_runtime
from kafkadash.devtools.playground.jars import KafkaRuntime

NAME = "kafka-tools"
READY_SECONDS, STOP_SECONDS = 60.0, 1.0
EXIT = "org.apache.kafka.common.utils.Exit"
# Where the process keeps what every caller needs: system properties take any object.
OUT, ERR, ENDED = "kafkadash.out", "kafkadash.err", "kafkadash.ended"
# Of a stack trace that a tool prints, what stands below its main here: reflection and the gateway.
BELOW_MAIN = re.compile(r"\tat (?:(?:java\.base/)?(?:jdk\.internal|java\.lang)\.(?:reflect|Thread\.run)|py4j\.).*\n")
# Of two answers that say the same: when a line was logged, how far the metadata log is, how deep a trace is.
OF_THE_MOMENT = re.compile(r"^\[[\d :,-]{23}\]|^HighWatermark: +\d+|^\t\.\.\. \d+ more", re.MULTILINE)

logging.getLogger("py4j").setLevel(logging.CRITICAL)  # a process that a tool ended is told by the call that met it


@dataclass(frozen=True, slots=True)
class ToolServer:
    """``folder`` is the run's: the process and its address are recorded there."""

    folder: Path

    def run(self, main_class: str, args: Sequence[str], timeout: float | None) -> subprocess.CompletedProcess[str]:
        """Call ``main`` and return what a process of its own would: exit code, standard output, standard error.

        Raises subprocess.TimeoutExpired, or RuntimeError where the answer was lost; the process is ended then, and the
        next call starts another one. Nothing is called twice, as a tool may have changed the cluster already. Only a
        tool that ended Java itself, past Kafka's ``Exit``, goes to its script: argparse4j does that with options
        that it refuses, before anything is sent.
        """
        with lock_file(self.folder / f"{NAME}.lock"):
            gateway = self._gateway(timeout)
            began = time.monotonic()
            try:
                return _call(gateway, main_class, args)
            except Py4JError as error:
                late = timeout is not None and time.monotonic() - began >= timeout
                if not late and self._ends():
                    return SCRIPT(prepare_runtime(lambda _: None), main_class, args, timeout)
                self.stop()
                if late:
                    raise subprocess.TimeoutExpired(main_class, timeout or 0.0) from None
                raise RuntimeError(f"The answer of {main_class} {' '.join(args)} was lost.") from error
            finally:
                gateway.close()

    @property
    def process(self) -> ChildProcess | None:
        """None where no call has started it yet, or it ended."""
        return find_child(self.folder, NAME, self._log)

    def _ends(self) -> bool:
        """Return whether the process ends within a moment; its connection is gone a little earlier."""
        process = self.process
        if process is None:
            return True
        try:
            psutil.Process(process.pid).wait(STOP_SECONDS)
        except psutil.TimeoutExpired:
            return False
        except psutil.NoSuchProcess:
            return True
        return True

    def stop(self) -> None:
        if (process := self.process) is not None:
            process.stop(STOP_SECONDS)

    @property
    def _log(self) -> Path:
        return self.folder / f"{NAME}.log"

    def _gateway(self, timeout: float | None) -> JavaGateway:
        if self.process is not None:
            return _connect(self._log, timeout)
        self._log.unlink(missing_ok=True)
        command = prepare_runtime(lambda _: None).tool_command("py4j.GatewayServer", ["--enable-auth", "0"])
        classpath = command.index("-cp") + 1
        command[classpath] = os.pathsep.join([command[classpath], find_jar_path()])
        child = spawn(self.folder, NAME, command, log=self._log, detached=True)
        # The gateway prints its port and the secret that callers name, a line each.
        child.wait_ready(lambda: self._log.read_text(encoding="utf-8").count("\n") >= 2, READY_SECONDS)
        gateway = _connect(self._log, timeout)
        _prepare(gateway)
        return gateway


SCRIPT = KafkaRuntime.run_class


@contextlib.contextmanager
def tools_share_a_process(folder: Path) -> Iterator[None]:
    """Run Kafka's classes for the playground in one shared process while a ``with`` block lasts."""
    server = ToolServer(folder)

    def run_class(
        runtime: KafkaRuntime, main_class: str, args: Sequence[str], timeout: float | None
    ) -> subprocess.CompletedProcess[str]:
        # While the class archive is recorded, once on a machine, `prepare_runtime` waits for what is called here.
        if not runtime.archive.exists() or runtime != prepare_runtime(lambda _: None):  # or for a test's own Java
            return SCRIPT(runtime, main_class, args, timeout)
        return server.run(main_class, args, timeout)

    with mock.patch.object(KafkaRuntime, "run_class", run_class):
        yield


@contextlib.contextmanager
def tools_of_their_own() -> Iterator[None]:
    """Run each tool as a process of its own again, as the scripts do, while a ``with`` block lasts."""
    with mock.patch.object(KafkaRuntime, "run_class", SCRIPT):
        yield


def compare_with_script(playground: KafkaPlayground, name: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a tool both ways and return its answer. Raises AssertionError where the two differ."""
    shared = playground.tool(name, args)
    with tools_of_their_own():
        own = playground.tool(name, args)
    said = [(a.returncode, OF_THE_MOMENT.sub("", a.stdout), OF_THE_MOMENT.sub("", a.stderr)) for a in (shared, own)]
    assert said[0] == said[1], f"kafka-{name} {' '.join(args)}: shared {said[0]}, by its script {said[1]}"
    return shared


def _connect(log: Path, timeout: float | None) -> JavaGateway:
    port, secret = log.read_text(encoding="utf-8").split()[:2]
    parameters = GatewayParameters(port=int(port), auth_token=secret, read_timeout=timeout)
    return JavaGateway(gateway_parameters=parameters)


def _prepare(gateway: JavaGateway) -> None:
    """Before any tool's class is loaded: Scala's Console keeps the System.out that it first sees."""
    client = gateway._gateway_client
    streams = {}
    system = _class(client, "java.lang.System")
    for name, put in ((OUT, system.setOut), (ERR, system.setErr)):
        streams[name] = _class(client, "java.io.ByteArrayOutputStream")()
        put(_class(client, "java.io.PrintStream")(streams[name], True))
        system.getProperties().put(name, streams[name])
    ended = _class(client, "java.util.concurrent.atomic.AtomicReference")()
    system.getProperties().put(ENDED, ended)
    procedure = _exit_procedure(gateway, ended, streams[OUT], streams[ERR])
    kafkas = _class(client, EXIT)
    kafkas.setExitProcedure(procedure)
    kafkas.setHaltProcedure(procedure)


def _exit_procedure(gateway: JavaGateway, ended: Any, out: Any, err: Any) -> Any:
    """An Exit.Procedure: keeps (code, output, error output) of the first exit of a call, then throws.

    What a tool prints after that, from its own handlers of what is thrown, a script would never print. Made of method
    handles, as there is no Java of our own to compile.
    """
    handles = _class(gateway._gateway_client, "java.lang.invoke.MethodHandles")
    types = _class(gateway._gateway_client, "java.lang.invoke.MethodType")
    class_of = _class(gateway._gateway_client, "java.lang.Class").forName
    thing, text, array = class_of("java.lang.Object"), class_of("java.lang.String"), class_of("[Ljava.lang.Object;")
    nothing = _class(gateway._gateway_client, "java.lang.Void").TYPE
    number = _class(gateway._gateway_client, "java.lang.Integer").TYPE
    truth = _class(gateway._gateway_client, "java.lang.Boolean").TYPE
    look = handles.publicLookup()

    def kind(result: Any, *parameters: Any) -> Any:
        return types.methodType(result, _array(gateway, "java.lang.Class", parameters))

    def method(owner: Any, name: str, result: Any, *parameters: Any) -> Any:
        return look.findVirtual(owner.getClass(), name, kind(result, *parameters)).bindTo(owner)

    # keep(Object[]) = ended.compareAndSet(null, Object[]); collected from (int, String, String).
    swap = method(ended, "compareAndSet", truth, thing, thing)
    swap = handles.insertArguments(swap, 0, _array(gateway, "java.lang.Object", [None]))
    keep = swap.asType(kind(truth, array)).asCollector(array, 3).asType(kind(nothing, number, text, text))
    keep = handles.collectArguments(keep, 1, method(out, "toString", text))  # (int, String)
    keep = handles.collectArguments(keep, 1, method(err, "toString", text))  # (int)
    fault = _class(gateway._gateway_client, "java.lang.RuntimeException")("exit")
    throw = handles.throwException(nothing, fault.getClass()).bindTo(fault)
    throw = handles.dropArguments(throw, 0, _array(gateway, "java.lang.Class", [number]))
    stop = handles.foldArguments(throw, keep)
    stop = handles.dropArguments(stop, 1, _array(gateway, "java.lang.Class", [text]))
    proxies = _class(gateway._gateway_client, "java.lang.invoke.MethodHandleProxies")
    return proxies.asInterfaceInstance(class_of(f"{EXIT}$Procedure"), stop)


def _call(gateway: JavaGateway, main_class: str, args: Sequence[str]) -> subprocess.CompletedProcess[str]:
    client = gateway._gateway_client
    properties = _class(client, "java.lang.System").getProperties()
    out, err, ended = (properties.get(name) for name in (OUT, ERR, ENDED))
    out.reset()
    err.reset()
    ended.set(None)
    fault = None
    try:
        # Spark, once used in this process, asks its own classes about each exception; here there are none of them.
        with mock.patch.object(java_gateway, "get_return_value", get_return_value):
            _class(client, main_class).main(_array(gateway, "java.lang.String", args))
    except Py4JJavaError as error:
        fault = error.java_exception
    if (first := ended.get()) is not None:
        code, printed, complained = first
    else:
        uncaught = "" if fault is None else _uncaught(client, fault)
        code, printed, complained = int(fault is not None), out.toString(), err.toString() + uncaught
    return subprocess.CompletedProcess(
        [main_class, *args], code, *(BELOW_MAIN.sub("", s) for s in (printed, complained))
    )


def _uncaught(client: GatewayClient, fault: Any) -> str:
    """As Java prints what nobody caught."""
    trace = _class(client, "java.io.StringWriter")()
    fault.printStackTrace(_class(client, "java.io.PrintWriter")(trace, True))
    return f'Exception in thread "main" {trace.toString()}'


def _class(client: GatewayClient, name: str) -> JavaClass:
    """Without asking for each package on the way, as ``gateway.jvm`` would."""
    return JavaClass(name, client)


def _array(gateway: JavaGateway, name: str, values: Sequence[Any]) -> Any:
    array = gateway.new_array(_class(gateway._gateway_client, name), len(values))
    for place, value in enumerate(values):
        array[place] = value
    return array
