"""Made-up people: what makes a face that of one person, and what differs from image to image.

Drawn with Pillow in a large image, which is turned, blurred, scaled down and lit.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

LARGE = 144
"""The side of the image that is drawn."""
UNIT = 0.32 * LARGE
"""Half the height of an average face in it."""
SKIN = ((255, 224, 196), (236, 188, 152), (198, 140, 100), (141, 92, 60), (92, 58, 40))
HAIR = ((34, 28, 26), (84, 52, 32), (150, 100, 50), (214, 178, 110), (168, 70, 40), (150, 150, 150))

Colour = tuple[int, int, int]
Random = np.random.Generator


@dataclass
class Person:
    """What stays the same in all images of one person. Lengths are in units of half a face."""

    width: float
    height: float
    chin: float
    skin: Colour
    hair: Colour
    fringe: float
    sides: float
    crown: float
    parting: float
    eye_x: float
    eye_y: float
    eye_width: float
    eye_height: float
    brow: float
    brow_tilt: float
    brow_gap: float
    nose: float
    nose_width: float
    mouth_y: float
    mouth_width: float
    lip: float
    ear: float
    beard: float
    moustache: bool
    mole: tuple[float, float]


def make_person(number: int) -> Person:
    """The person of a number, always the same one."""
    rng = np.random.default_rng([77, number])
    u = rng.uniform
    return Person(
        width=u(0.66, 0.9), height=u(0.92, 1.1), chin=u(0.55, 0.95), skin=_between(SKIN, rng), hair=_between(HAIR, rng),
        fringe=u(-0.2, 0.55), sides=u(-0.3, 1.2) * (u() < 0.75), crown=u(0.02, 0.3), parting=u(-0.6, 0.6),
        eye_x=u(0.27, 0.42), eye_y=u(-0.22, 0.04), eye_width=u(0.1, 0.17), eye_height=u(0.05, 0.11),
        brow=u(0.02, 0.085), brow_tilt=u(-0.09, 0.09), brow_gap=u(0.13, 0.24), nose=u(0.24, 0.46), nose_width=u(0.06, 0.17),
        mouth_y=u(0.44, 0.62), mouth_width=u(0.18, 0.36), lip=u(0.025, 0.085), ear=u(0.08, 0.2),
        beard=u(0.2, 0.6) * (u() < 0.25), moustache=bool(u() < 0.2), mole=(u(-0.5, 0.5), u(0.1, 0.4)),
    )  # fmt: skip


def draw_face(person: Person, size: int, rng: Random) -> np.ndarray:
    """One image of a person: size × size pixels, red, green and blue.

    Args:
        person: whose face.
        size: pixels of each side.
        rng: decides pose, expression, glasses, light, background, blur and noise.
    """
    background = tuple(int(value) for value in rng.integers(20, 236, 3))
    image = Image.new("RGB", (LARGE, LARGE), background)
    _Drawing(ImageDraw.Draw(image), person, rng).draw()
    return _photograph(image, background, size, rng)


class _Drawing:
    """Draws one face; the head is turned to the side by moving what is on it."""

    def __init__(self, draw: Any, person: Person, rng: Random) -> None:
        self.pen = draw
        self.p = person
        self.rng = rng
        self.turn, self.nod = rng.uniform(-0.13, 0.13), rng.uniform(-0.06, 0.06)

    def draw(self) -> None:
        p, dark = self.p, _shade(self.p.skin, 0.75)
        clothes = tuple(int(value) for value in self.rng.integers(20, 236, 3))
        self.ellipse(0, 1.65, 1.2, 0.75, clothes)
        if p.sides > 0:
            self.ellipse(0, -0.1 + p.sides / 2, p.width + 0.16, 0.85 + p.sides / 2, _shade(p.hair, 0.8))
        self.box(-0.28, 0.6, 0.28, 1.15, dark)
        for side in (-1, 1):
            self.ellipse(side * p.width - self.turn / 2, p.eye_y + 0.12, 0.1, p.ear, dark)
        self.ellipse(0, -p.crown, p.width + 0.05, p.height, p.hair)
        self.outline(p.skin)
        self.hairline()
        if p.beard:
            self.ellipse(self.turn / 2, p.mouth_y + 0.2, p.chin * p.width * 0.8, p.beard * 0.55, _shade(p.hair, 0.9))
        self.mouth()
        self.eyes()
        self.nose(dark)
        self.ellipse(p.mole[0] * p.width + self.turn, p.mole[1] + self.nod, 0.025, 0.025, _shade(p.skin, 0.5))

    def outline(self, colour: Colour) -> None:
        """The face: round above, narrower towards the chin."""
        p, angle = self.p, np.linspace(0, 2 * np.pi, 60)
        x, y = np.cos(angle) * p.width, np.sin(angle) * p.height
        x = x * np.where(y > 0, 1 - (1 - p.chin) * (np.maximum(y, 0) / p.height) ** 1.5, 1)
        self.pen.polygon([self.at(a, b) for a, b in zip(x, y, strict=True)], fill=colour)

    def hairline(self) -> None:
        p = self.p
        if p.fringe <= 0:
            return
        top, low = -p.height - 0.02, -p.height + p.fringe
        angle = np.linspace(np.pi, 2 * np.pi, 30)
        arc = [(np.cos(a) * (p.width + 0.05), np.sin(a) * (p.height + 0.02)) for a in angle]
        edge = [(p.width * 0.85, low), (p.parting + self.turn, min(top + 0.12, low)), (-p.width * 0.85, low)]
        self.pen.polygon([self.at(x, y) for x, y in (*arc, *edge)], fill=p.hair)

    def eyes(self) -> None:
        p, rng = self.p, self.rng
        open_ = max(0.25, rng.normal(0.95, 0.15)) * p.eye_height
        raised, gaze = rng.uniform(-0.03, 0.05), rng.uniform(-0.04, 0.04)
        frame = tuple(int(value) for value in rng.integers(0, 90, 3)) if rng.random() < 0.2 else None
        for side in (-1, 1):
            x, y = side * p.eye_x + self.turn, p.eye_y + self.nod
            self.ellipse(x, y, p.eye_width, open_, (246, 246, 246))
            self.ellipse(x + gaze, y, min(0.06, open_), min(0.06, open_), (40, 34, 30))
            brow = y - p.brow_gap - raised
            ends = (
                self.at(x - p.eye_width * 1.2, brow + side * p.brow_tilt),
                self.at(x + p.eye_width * 1.2, brow - side * p.brow_tilt),
            )
            self.pen.line([*ends], fill=_shade(p.hair, 0.7), width=max(1, int(p.brow * UNIT)))
            if frame is not None:
                self.pen.ellipse([self.at(x - 0.24, y - 0.2), self.at(x + 0.24, y + 0.2)], outline=frame, width=3)
        if frame is not None:
            middle = p.eye_y + self.nod
            self.pen.line(
                [self.at(-p.eye_x + 0.24 + self.turn, middle), self.at(p.eye_x - 0.24 + self.turn, middle)],
                fill=frame,
                width=4,
            )

    def nose(self, colour: Colour) -> None:
        p, x = self.p, 1.6 * self.turn
        tip = p.eye_y + p.nose + self.nod
        self.pen.line([self.at(x * 0.7, tip - p.nose * 0.8), self.at(x, tip)], fill=colour, width=3)
        self.ellipse(x, tip, p.nose_width, 0.05, colour)

    def mouth(self) -> None:
        p, x, y = self.p, self.turn, self.p.mouth_y + self.nod
        smile, opened = self.rng.uniform(-0.07, 0.13), max(0.0, self.rng.normal(0, 0.06))
        across = np.linspace(-1, 1, 15)
        line = [(x + p.mouth_width * t, y - smile * t * t) for t in across]
        upper = [self.at(a, b - p.lip * (1 - t * t)) for (a, b), t in zip(line, across, strict=True)]
        lower = [self.at(a, b + (p.lip * 1.2 + opened) * (1 - t * t)) for (a, b), t in zip(line, across, strict=True)]
        self.pen.polygon([*upper, *lower[::-1]], fill=_shade((190, 80, 80), 0.5 + sum(p.skin) / 1400))
        self.pen.line([self.at(a, b) for a, b in line], fill=(70, 25, 25), width=2)
        if p.moustache:
            self.ellipse(x, y - p.lip - 0.05, p.mouth_width * 0.9, 0.06, p.hair)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The pixel of a place on the face."""
        return LARGE / 2 + UNIT * x, LARGE / 2 + UNIT * (y - 0.05)

    def ellipse(self, x: float, y: float, width: float, height: float, colour: Any) -> None:
        self.pen.ellipse([self.at(x - width, y - height), self.at(x + width, y + height)], fill=colour)

    def box(self, left: float, top: float, right: float, bottom: float, colour: Any) -> None:
        self.pen.rectangle([self.at(left, top), self.at(right, bottom)], fill=colour)


def _photograph(image: Image.Image, background: Any, size: int, rng: Random) -> np.ndarray:
    """Turns and moves the head, scales it down, and lights it."""
    angle, zoom = np.deg2rad(rng.uniform(-14, 14)), rng.uniform(0.9, 1.12)
    cos, sin, middle = np.cos(angle) / zoom, np.sin(angle) / zoom, LARGE / 2
    x, y = middle + rng.uniform(-0.05, 0.05, 2) * LARGE
    matrix = (cos, sin, middle - cos * x - sin * y, -sin, cos, middle + sin * x - cos * y)
    image = image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR, fillcolor=background)
    image = image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0, 0.013) * LARGE)))
    pixels = np.asarray(image.resize((size, size), Image.Resampling.BOX), "float32")
    place = np.linspace(-1, 1, size, dtype="float32")
    light = 1 + rng.uniform(-0.35, 0.35) * place[None, :, None] + rng.uniform(-0.2, 0.2) * place[:, None, None]
    pixels = pixels * light * rng.uniform(0.6, 1.15) * rng.uniform(0.88, 1.12, 3)
    pixels += rng.normal(0, rng.uniform(1, 8), pixels.shape)
    return np.clip(pixels, 0, 255).astype("uint8")


def _between(colours: tuple[Colour, ...], rng: Random) -> Colour:
    """A colour between two neighbours of a row of colours."""
    place = rng.uniform(0, len(colours) - 1)
    first, share = int(place), place % 1
    red, green, blue = ((1 - share) * a + share * b for a, b in zip(colours[first], colours[first + 1], strict=True))
    return int(red), int(green), int(blue)


def _shade(colour: Colour, factor: float) -> Colour:
    red, green, blue = (min(255, int(value * factor)) for value in colour)
    return red, green, blue
