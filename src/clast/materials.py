"""Common materials with their sources: `clast.materials.glass`; `SOURCES` tells where the numbers are from.

Friction and restitution are of two surfaces of the same material, dry and clean; they vary more from sample to sample than a table tells: measure yours
where it matters. Moduli are the real ones. Most flows hardly depend on them, and `softened(glass)` allows far longer steps.
"""

import dataclasses

from .scene.materials import Material

HANDBOOK = "density, Young's modulus and Poisson's ratio: typical handbook values"
CHUNG = "density, Young's modulus, Poisson's ratio{}: Chung and Ooi (2011), Granular Matter 13, 643"
FOERSTER = "friction, restitution: Foerster et al. (1994), Physics of Fluids 6, 1108"
SAND = "Derakhshani, Schott and Lodewijks (2015), Powder Technology 269, 127"
NONE = "restitution: none given, that of Material()"
NEITHER = "friction, restitution: none given, those of Material()"
LORENZ = "friction, restitution: Lorenz, Tuozzolo and Louge (1997), Experimental Mechanics 37, 292"

glass = Material(density=2500.0, young=7e10, poisson=0.22, friction=0.092, restitution=0.97, name="glass")
acetate = Material(density=1319.0, young=3.2e9, poisson=0.28, friction=0.25, restitution=0.87, name="acetate")
pmma = Material(density=1190.0, young=3e9, poisson=0.37, friction=0.096, restitution=0.934, name="pmma")
steel = Material(density=7850.0, young=2e11, poisson=0.3, friction=0.099, restitution=0.95, name="steel")
limestone = Material(density=2500.0, young=2e10, poisson=0.25, friction=0.35, name="limestone")
aluminium = Material(density=2699.0, young=7e10, poisson=0.3, friction=0.35, name="aluminium")
magnesium = Material(density=1800.0, young=4e10, poisson=0.35, friction=0.35, name="magnesium")
alumina = Material(density=4000.0, young=3.8e11, poisson=0.23, friction=0.092, restitution=0.98, name="alumina")
sand = Material(density=2650.0, young=9.5e10, poisson=0.08, friction=0.52, name="sand")
rubber = Material(density=950.0, young=1.5e6, poisson=0.499, name="rubber")
corn = Material(density=1250.0, young=3e8, poisson=0.4, name="corn")
coal = Material(density=1350.0, young=3e9, poisson=0.3, name="coal")

SOURCES = {
    "glass": f"soda-lime; {HANDBOOK}; {FOERSTER}, spheres of 3 mm",
    "acetate": f"cellulose acetate; density, Young's modulus, Poisson's ratio: typical values; {FOERSTER}, spheres of 6 mm",
    "pmma": f"acrylic; {HANDBOOK}; {LORENZ}",
    "steel": f"stainless; {HANDBOOK}; {LORENZ}",
    "limestone": CHUNG.format(", friction") + f", test 1; {NONE}",
    "aluminium": CHUNG.format(", friction") + f", test 2; {NONE}",
    "magnesium": CHUNG.format(", friction") + f", test 2; {NONE}",
    "alumina": CHUNG.format(", friction, restitution") + ", test 4",
    "sand": f"quartz; {HANDBOOK}, of a body of many crystals; friction: {SAND}, of spheres for the angle of repose beside a rolling friction of 0.3, which is not set here; {NONE}",
    "rubber": f"natural, vulcanised without fillers; {HANDBOOK}, with three times the shear modulus of 0.5 MPa; {NEITHER}",
    "corn": f"kernels of dent corn, dry; typical values of no one measurement: moduli change several times over with moisture and the side that is pressed; {NEITHER}",
    "coal": f"bituminous; typical values of no one measurement: seams differ by half; {NEITHER}",
}


def softened(material: Material, young: float = 1e7) -> Material:
    """The same material with another Young's modulus [Pa], for flows, where overlaps stay small and steps may be longer by the root of the ratio."""
    return dataclasses.replace(material, young=float(young))
