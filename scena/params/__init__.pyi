"""The public names of `scena.params`; each is imported when it is first used."""

from scena.errors import ParamsError as ParamsError
from scena.params.cli.command_line import Parsed as Parsed
from scena.params.cli.command_line import parse as parse
from scena.params.cli.command_line import parse_options as parse_options
from scena.params.cli.command_line import root_of as root_of
from scena.params.cli.command_line import take_part as take_part
from scena.params.cli.completion import flag_completions as flag_completions
from scena.params.declare import UNSET as UNSET
from scena.params.declare import Field as Field
from scena.params.declare import Params as Params
from scena.params.declare import param as param
from scena.params.declare import short_name as short_name
from scena.params.declare import subclasses as subclasses
from scena.params.files.dump import dump_command as dump_command
from scena.params.files.dump import dump_words as dump_words
from scena.params.files.dump import dump_yaml as dump_yaml
from scena.params.files.files import load as load
from scena.params.files.overlay import merge as merge
from scena.params.files.schema import json_schema as json_schema
from scena.params.tree import build as build
from scena.params.tree import check as check
from scena.params.tree import default_raw as default_raw
from scena.params.tree import to_raw as to_raw
