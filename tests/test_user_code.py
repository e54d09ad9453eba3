"""Long messages of Keras and TensorFlow in one line."""

from scena.errors import causes
from scena.user_code import reason, user_line

KERAS = """Exception encountered when calling Net.call().

Shapes do not fit.

Arguments received by Net.call():
  • inputs=tf.Tensor(shape=(2,))
  • training=False"""
TRACED = f"""in user code:

    File "net.py", line 7, in call
        return self.dense(x)

    ValueError: {KERAS}
"""


def test_the_arguments_that_keras_lists_are_no_reason() -> None:
    assert reason(ValueError(TRACED)) == "ValueError: Shapes do not fit."
    assert "training=False" not in reason(ValueError(KERAS))


def test_causes_that_form_a_circle_are_followed_once() -> None:
    """Libraries that raise a stored error again make such chains, as requests to an MLflow server that is down do."""
    first, second = ValueError("first"), OSError("second")
    first.__cause__, second.__cause__ = second, first
    assert list(causes(first)) == [first, second]
    assert user_line(first) is None
