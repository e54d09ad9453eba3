"""The public names of `scena.data.records`; each is imported when it is first used."""

from scena.data.records.example import decode_example as decode_example
from scena.data.records.example import encode_example as encode_example
from scena.data.records.files import RecordFile as RecordFile
from scena.data.records.framing import RecordError as RecordError
from scena.data.records.record_set import RecordSet as RecordSet
from scena.data.records.schema import Schema as Schema
from scena.data.records.writing import ShardWriter as ShardWriter
from scena.data.records.writing import write_records as write_records
from scena.data.tensorflow.from_reader import dataset_using_generator as dataset_using_generator
from scena.data.tensorflow.records import dataset_from_tfrecord as dataset_from_tfrecord
from scena.data.tensorflow.records import dataset_to_tfrecord as dataset_to_tfrecord
