"""A tracker that gets each value exactly once."""

import csv

from scena import TrackerService


class Table(TrackerService):
    def open(self, run):
        if not self.params.file.exists():
            return {}
        with self.params.file.open(newline="") as file:
            rows = [row for row in csv.reader(file) if row[0] == run.identity]
        return {(key, int(step)): float(value) for _, key, step, value in rows}

    def send(self, run, points):
        with self.params.file.open("a", newline="") as file:
            csv.writer(file).writerows([run.identity, point.key, point.step, point.value] for point in points)
