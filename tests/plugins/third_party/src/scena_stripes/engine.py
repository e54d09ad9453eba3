"""A data engine: makes batches in this process, and counts them."""

from scena.data.engines import InProcessEngine


class CountedEngine:
    made = 0

    def __init__(self, context):
        self.engine = InProcessEngine(context)

    def batches(self, cursor, repeat):
        for batch in self.engine.batches(cursor, repeat):
            CountedEngine.made += 1
            yield batch

    def close(self):
        self.engine.close()
