"""What a pipeline is for. A processor lists the modes it applies in."""

from enum import StrEnum


class PipelineMode(StrEnum):
    """The use of a pipeline; decides which processors run and which of inputs and targets reach the batch."""

    TRAINING = "training"
    EVALUATION = "evaluation"
    PREDICTION = "prediction"
    TARGETS = "targets"

    @property
    def has_inputs(self) -> bool:
        """Whether batches of this mode carry inputs."""
        return self is not PipelineMode.TARGETS

    @property
    def has_targets(self) -> bool:
        """Whether batches of this mode carry targets."""
        return self is not PipelineMode.PREDICTION
