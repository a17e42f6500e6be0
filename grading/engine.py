"""Run many submissions on a Dask cluster: what is stored is not run again, what fails costs one student."""

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import dask
from distributed import Client, Future, LocalCluster, as_completed
from distributed.scheduler import KilledWorker

from grading.grade import Prepared, Task, prepare, run
from grading.sandbox import SandboxError
from grading.store import Store

IN_FLIGHT = 4  # submissions sent ahead for each worker: enough to keep it busy, few enough to hold in memory
ATTEMPTS = 3  # of one submission whose worker died


@dataclass(frozen=True)
class Step:
    """One submission is done with: run, found in the store, or failed for a reason that is not the student's."""

    student: str
    reused: bool = False
    failure: str = ""
    seconds: float = 0.0
    isolation: str = ""


def run_class(tasks: Iterable[Task], store: Store, client: Client) -> Iterator[Step]:
    """Run every submission that the store does not know yet, and yield each as it is done.

    Only records in the store count as done, so an interrupted call goes on where it stopped. Raises SandboxError
    when no sandbox can be made, since then no submission can be run.
    """
    waiting = iter(tasks)
    flying: dict[Future, Prepared] = {}
    landed = as_completed(with_results=False)
    room = IN_FLIGHT * max(1, len(client.scheduler_info()["workers"]))
    exhausted = False
    while flying or not exhausted:
        while len(flying) < room and not exhausted:
            task = next(waiting, None)
            if task is None:
                exhausted = True
                break
            prepared = prepare(task)
            if store.get(prepared.key) is not None:
                yield Step(task.student, reused=True)
                continue
            future = client.submit(run, prepared, key=f"{task.student}-{prepared.key}", retries=0, pure=True)
            flying[future] = prepared
            landed.add(future)
        if flying:
            future = next(landed)
            yield _land(future, flying.pop(future), store)


def _land(future: Future, prepared: Prepared, store: Store) -> Step:
    student = prepared.task.student
    try:
        record = future.result()
    except SandboxError:
        raise
    except KilledWorker:
        return Step(student, failure=f"its worker died {ATTEMPTS} times while running it; look at the submission")
    except Exception as error:  # of the grader or the cluster: told, and the others go on
        return Step(student, failure=f"{type(error).__name__}: {error}")
    finally:
        future.release()
    store.put(prepared.key, record)
    execution = record["execution"]
    return Step(student, seconds=execution["seconds"], isolation=execution["isolation"])


@contextmanager
def cluster(scheduler: str = "", workers: int = 0) -> Iterator[Client]:
    """A client of the scheduler at an address, or of a cluster of this machine's processors for as long as needed."""
    settings = {
        "distributed.scheduler.allowed-failures": ATTEMPTS - 1,
    }
    with dask.config.set(settings):
        if scheduler:
            with Client(scheduler, timeout="20s") as client:
                yield client
            return
        count = workers or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        options = {
            "n_workers": count,
            "threads_per_worker": 1,
            "dashboard_address": None,
            "silence_logs": logging.ERROR,
        }
        with LocalCluster(processes=True, **options) as local, Client(local) as client:
            yield client
