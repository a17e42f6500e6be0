"""Run many submissions on a Dask cluster: what is stored is not run again, what fails costs one student."""

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import dask
from distributed import Client, Future, LocalCluster, as_completed
from distributed.scheduler import KilledWorker, NoValidWorkerError, NoWorkerError
from distributed.utils import silence_logging_cmgr

from grading.assignment import AssignmentError
from grading.grade import Prepared, Task, prepare, run
from grading.sandbox import SandboxError
from grading.store import Store
from grading.workers import METHOD, warm_up

IN_FLIGHT = 4  # submissions sent ahead for each worker thread: enough to keep it busy, few enough to hold in memory
ATTEMPTS = 2  # of one submission whose worker died, among others and then again alone
THREADS = 4  # kernels of one worker process, which only talks to them; its warm process is shared
LOST_SECONDS = 300  # without any worker, until we give up
FORGETFUL = {  # Dask keeps what it may be asked about later, each submission's notebook among it; nobody asks
    "distributed.admin.low-level-log-length": 10,
    "distributed.admin.system-monitor.log-length": 10,
    "distributed.diagnostics.computations.max-history": 1,
    "distributed.worker.profile.enabled": False,
}


class ClusterError(Exception):
    """There is nobody to run submissions; the message is one line."""


@dataclass(frozen=True)
class Step:
    """One submission is done with: run, found in the store, or failed for a reason that is told.

    `poison` is set when it alone took down every worker that ran it.
    """

    student: str
    reused: bool = False
    failure: str = ""
    poison: bool = False
    seconds: float = 0.0
    isolation: str = ""


Done = tuple[Prepared | None, Step]  # nothing is prepared where intake failed
Waiting = tuple[Prepared | None, Step | None]


def run_class(tasks: Iterable[Task], store: Store, client: Client) -> Iterator[Done]:
    """Run every submission that the store does not know yet, and yield each as it is done.

    Only records in the store count as done, so an interrupted call goes on where it stopped. A submission whose
    worker died with it is run again alone at the end: a worker that dies takes bystanders along. Raises SandboxError
    when no sandbox can be made, since then no submission can be run, and ClusterError when there is no worker left.
    """
    suspects, tasks = [], list(tasks)
    client.run(warm_up, tasks[0], on_error="ignore")  # seconds that intake may use
    for prepared, step in _fly(_prepared(tasks, store), store, client, IN_FLIGHT * _threads(client)):
        if step.poison:
            suspects.append(prepared)
        else:
            yield prepared, step
    for suspect in suspects:
        yield from _fly([(suspect, None)], store, client, 1, name="alone-")


def _prepared(tasks: Iterable[Task], store: Store) -> Iterator[Waiting]:
    """Each submission with what is known of it before it is run."""
    for task in tasks:
        try:
            prepared = prepare(task)
        except AssignmentError:
            raise
        except Exception as error:  # of intake: one student's, told, and the others go on
            yield None, Step(task.student, failure=f"{type(error).__name__}: {error}")
            continue
        yield prepared, Step(task.student, reused=True) if store.get(prepared.key) is not None else None


def _fly(waiting: Iterable[Waiting], store: Store, client: Client, room: int, name: str = "") -> Iterator[Done]:
    """Run what waits with at most `room` of it sent to the cluster at a time."""
    waiting, flying, landed = iter(waiting), {}, as_completed(with_results=False)
    while True:
        for prepared, step in waiting:
            if step:
                yield prepared, step
                continue
            key = f"{name}run-{prepared.key}-{prepared.task.student}"  # up to the digest one kind to Dask
            future = client.submit(run, prepared, key=key, retries=0, pure=True)
            flying[future] = prepared
            landed.add(future)
            if len(flying) >= room:
                break
        if not flying:
            return
        future = next(landed)
        prepared = flying.pop(future)
        yield prepared, _land(future, prepared, store, client)


def _land(future: Future, prepared: Prepared, store: Store, client: Client) -> Step:
    student = prepared.task.student
    try:
        record = future.result()
    except (SandboxError, AssignmentError):
        raise
    except KilledWorker:
        reason = "it ended every one of the grader's own processes that ran it; look at the submission"
        return Step(student, failure=reason, poison=True)
    except (NoValidWorkerError, NoWorkerError):
        raise ClusterError(f"no worker for {LOST_SECONDS} s; what was run is kept, the same command goes on") from None
    except Exception as error:  # of the grader or the cluster: told, and the others go on
        if client.status != "running":
            raise ClusterError("the scheduler is gone; what was run is kept, and the same command goes on") from None
        return Step(student, failure=f"{type(error).__name__}: {error}")
    finally:
        future.release()
    store.put(prepared.key, record)
    execution = record["execution"]
    return Step(student, seconds=execution["seconds"], isolation=execution["isolation"])


def _threads(client: Client) -> int:
    return max(1, sum(worker["nthreads"] for worker in client.scheduler_info()["workers"].values()))


@contextmanager
def cluster(scheduler: str = "", workers: int = 0) -> Iterator[Client]:
    """A client of the scheduler at an address, or of this machine's processors for as long as needed.

    `workers` is the number of kernels at a time here, 0 for two a processor. Raises ClusterError where the scheduler
    does not answer or has no worker.
    """
    settings = {
        "distributed.scheduler.allowed-failures": ATTEMPTS - 1,
        "distributed.scheduler.no-workers-timeout": f"{LOST_SECONDS}s",
        "distributed.worker.multiprocessing-method": METHOD,
        **FORGETFUL,
    }
    with dask.config.set(settings), silence_logging_cmgr(logging.CRITICAL):  # a Step says what became of a submission
        if scheduler:
            with _join(scheduler) as client:
                yield client
            return
        count = workers or 2 * len(os.sched_getaffinity(0))  # a kernel waits now and then
        processes = -(-count // THREADS)
        options = {
            "n_workers": processes,
            "threads_per_worker": -(-count // processes),
            "memory_limit": 0,  # a kernel's memory is the sandbox's affair
            "dashboard_address": "127.0.0.1:0",  # a port of its own, for here only
            "silence_logs": logging.CRITICAL,
        }
        with LocalCluster(processes=True, **options) as local, Client(local) as client:
            yield client


@contextmanager
def _join(scheduler: str) -> Iterator[Client]:
    try:
        client = Client(scheduler, timeout="20s")
    except (OSError, ValueError) as error:
        raise ClusterError(f"no scheduler answers at {scheduler} ({error})") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=20)
        except TimeoutError:
            raise ClusterError(
                f"the scheduler at {scheduler} has no workers; start some: dask worker {scheduler}"
            ) from None
        yield client
