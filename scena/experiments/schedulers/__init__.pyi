"""The public names of `scena.experiments.schedulers`; each is imported when it is first used."""

from scena.experiments.schedulers.base import Job as Job
from scena.experiments.schedulers.base import Plan as Plan
from scena.experiments.schedulers.base import Running as Running
from scena.experiments.schedulers.base import Scheduler as Scheduler
from scena.experiments.schedulers.base import Slot as Slot
from scena.experiments.schedulers.base import local_channel as local_channel
