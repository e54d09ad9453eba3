"""Where runs are carried out: over the devices of this machine, or on a cluster. Shared by `experiment` and `tune`."""

from typing import Any

from scena.params import ParamsError


def check_devices(options: Any) -> None:
    """Checks the flags that say where to run, before anything is started."""
    from scena.experiments.slots import make_slots

    if options.cluster is None:
        make_slots(options.gpus, options.cpus, options.per_device)
    elif options.gpus or options.cpus or options.per_device != 1:
        raise ParamsError(
            "--cluster takes --run_cpus and --run_gpus, what each run needs, instead of --gpus, --cpus and --per_device"
        )


def make_scheduler(options: Any) -> Any:
    """What carries out the runs."""
    if options.cluster is None:
        from scena.experiments.scheduler import Scheduler
        from scena.experiments.slots import make_slots

        return Scheduler(make_slots(options.gpus, options.cpus, options.per_device))
    from scena.experiments.ray_cluster import RayScheduler, connect

    return RayScheduler(connect(options.cluster), options.run_cpus, options.run_gpus)


def at_once(scheduler: Any) -> int:
    """How many runs there may be at the same time, as far as it is known."""
    return len(scheduler.slots) if hasattr(scheduler, "slots") else 2
