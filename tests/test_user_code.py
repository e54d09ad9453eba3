"""Long messages of Keras and TensorFlow in one line."""

from scena.user_code import reason

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
