"""The public names of `scena.model.zoo`; each is imported when it is first used."""

from scena.model.zoo.flops import count_flops as count_flops
from scena.model.zoo.network import create_network as create_network
from scena.model.zoo.params import AlgebraParams as AlgebraParams
from scena.model.zoo.params import BatchNorm as BatchNorm
from scena.model.zoo.params import WayIn as WayIn
from scena.model.zoo.params import WayOut as WayOut
from scena.model.zoo.pretrained import copy_weights as copy_weights
from scena.model.zoo.pretrained import load_pretrained as load_pretrained
