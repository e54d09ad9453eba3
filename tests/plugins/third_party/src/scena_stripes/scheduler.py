"""Runs one job after the other."""

import os
import subprocess
import time

from scena.experiments.schedulers import Running, Slot


class OneByOne:
    at_once = 1

    def __init__(self, params):
        self.params = params

    def run(self, plan):
        slot = Slot("the only one", {})
        while (job := plan.next_job(slot)) is not None:
            job.log.parent.mkdir(parents=True, exist_ok=True)
            with job.log.open("ab") as log:
                process = subprocess.Popen(
                    job.words,
                    env={**os.environ, **job.environment},
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    pass_fds=job.inherited,
                )
            for descriptor in job.inherited:
                os.close(descriptor)
            running = Running(job, slot, process, time.monotonic())
            plan.started(running)
            plan.ended(running, process.wait())
            time.sleep(self.params.pause)
