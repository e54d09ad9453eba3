"""Augmentations of images: parameters, the operations, and the two ways to run them (numpy, tf.data).

An operation is written once, over a small set of functions that `arrays.py` provides for numpy and `data/tensorflow/augment_ops.py`
for TensorFlow. Both draw from the same counter-based generator, so that one seed gives one image.
"""
