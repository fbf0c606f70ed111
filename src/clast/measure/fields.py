"""Fields on a grid by coarse-graining: density, velocity, granular temperature, stress, fabric (Goldhirsch 2010).

The kernel is that of Lucy (1977), phi(r) = 105 / (16 pi c^3) (1 + 3 r/c) (1 - r/c)^3 for r < c, else 0; its integral over space is 1, so
that the integral of each field is the sum over particles or contacts.
"""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..signatures import Corners, File, Floats, Series
from .network import branches
from .snapshot import corners, images, snapshot

if TYPE_CHECKING:
    from .snapshot import Subject

NODES = 8  # of Gauss-Legendre quadrature along a branch
BLOCK = 4096  # points that are spread over the grid at once: work arrays stay small


class Fields(NamedTuple):
    """Coarse-grained fields at the nodes of a regular grid, arrays (nx, ny, nz, ...)."""

    origin: np.ndarray  # (3,) [m], the first node
    spacing: np.ndarray  # (3,) [m]
    width: float  # [m], c of the kernel
    packing: np.ndarray  # (...) solid fraction, sum_p V phi(x - x_p)
    density: np.ndarray  # (...) [kg/m^3], sum_p m phi
    momentum: np.ndarray  # (...,3) [kg/(m^2 s)], sum_p m v phi
    motion: np.ndarray  # (...,3,3) [Pa], sum_p m v_i v_j phi
    contact_stress: np.ndarray  # (...,3,3) [Pa], sum_c f_i l_j times the mean of phi along the branch l
    contacts: np.ndarray  # (...) [1/m^3], contact points, sum_c phi(x - x_c)
    normals: np.ndarray  # (...,3,3) [1/m^3], sum_c n_i n_j phi(x - x_c)

    @property
    def velocity(self) -> Floats:
        """Velocity (...,3) [m/s], momentum over density; zero where nothing is."""
        return self.momentum / np.where(self.density > 0.0, self.density, np.inf)[..., None]

    @property
    def kinetic_stress(self) -> Floats:
        """(...,3,3) [Pa], sum_p m v'_i v'_j phi with v' = v_p less the velocity of the field there."""
        return self.motion - np.einsum("...i,...j->...ij", self.momentum, self.velocity)

    @property
    def stress(self) -> Floats:
        """(...,3,3) [Pa], of contacts and of motion, compression positive."""
        return self.contact_stress + self.kinetic_stress

    @property
    def pressure(self) -> Floats:
        """(...) [Pa], a third of the trace of the stress."""
        return np.trace(self.stress, axis1=-2, axis2=-1) / 3.0

    @property
    def temperature(self) -> Floats:
        """Granular temperature (...) [m^2/s^2], T = <v' . v'> / 3, weighted by mass."""
        shaken = np.trace(self.kinetic_stress, axis1=-2, axis2=-1)
        return shaken / (3.0 * np.where(self.density > 0.0, self.density, np.inf))

    @property
    def fabric(self) -> Floats:
        """(...,3,3) mean of n_i n_j over the contacts about each node; zero where there is none."""
        return self.normals / np.where(self.contacts > 0.0, self.contacts, np.inf)[..., None, None]

    @property
    def points(self) -> Floats:
        """The nodes (nx, ny, nz, 3) [m]."""
        lines = [self.origin[k] + self.spacing[k] * np.arange(self.density.shape[k]) for k in range(3)]
        return np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1)

    def columns(self) -> Series:
        """Arrays by name, as files hold them: packing, density, velocity, temperature, pressure, stress, fabric, contacts."""
        names = ("packing", "density", "velocity", "temperature", "pressure", "stress", "fabric", "contacts")
        return {name: getattr(self, name) for name in names}

    def save(self, path: File) -> None:
        """Write `columns` to a .vti file, which ParaView opens as an image."""
        from ..files import save_grid

        save_grid(path, self.origin, self.spacing, self.columns())


def fields(subject: "Subject", *, box: Corners, spacing: float, width: float) -> Fields:
    """Fields of a Simulation, a Scene or a Snapshot in a box ((x, y, z), (x, y, z)) [m], arrays (nx, ny, nz, ...) (Goldhirsch 2010):

        rho(x) = sum_p m phi(x - x_p),  rho v(x) = sum_p m v_p phi(x - x_p),  T(x) = sum_p m |v_p - v|^2 phi(x - x_p) / (3 rho),
        sigma_ij(x) = sum_c f_i l_j int_0^1 phi(x - x_a - s l) ds + sum_p m v'_i v'_j phi(x - x_p),  v' = v_p - v(x)

    phi [1/m^3] is the kernel of Lucy, phi(r) = 105 / (16 pi c^3) (1 + 3 r/c) (1 - r/c)^3 for r < c, else 0. f: force of contact c on b, l: branch from
    the centre x_a of a to that of b. `Fields` says what each of its arrays is.

    spacing [m]: at most so far apart are the nodes, which stand in the middle of equal cells of the box; width [m]: radius c of the
    kernel, a few particle radii. Periodic images count. Contacts count if they are known.
    """
    moment: Any = snapshot(subject)
    low, high = corners("fields", box)
    if not (spacing > 0.0 and width > 0.0):
        raise ValueError(f"fields: spacing and width must be above 0, got {spacing!r} and {width!r}")
    shape = np.maximum(np.ceil((high - low) / spacing - 1e-9).astype(int), 1)
    step = (high - low) / shape
    origin = low + 0.5 * step
    solid = moment.free & (moment.volume > 0.0)
    mass, velocity = moment.mass[solid], moment.velocity[solid]
    columns = [
        moment.volume[solid, None],
        mass[:, None],
        mass[:, None] * velocity,
        np.einsum("p,pi,pj->pij", mass, velocity, velocity).reshape(-1, 9),
    ]
    grid = origin, step, shape, width, images(moment)
    of_bodies = _spread(moment.position[solid][:, None], np.concatenate(columns, axis=1), *grid)
    of_forces, of_normals = np.zeros((*shape, 9)), np.zeros((*shape, 10))
    if moment.pair is not None and len(moment.pair):
        start, branch = branches(moment)
        node, weight = np.polynomial.legendre.leggauss(NODES)
        along = start[:, None] + (0.5 + 0.5 * node)[:, None] * branch[:, None]
        product = np.einsum("ci,cj->cij", moment.force, branch).reshape(-1, 9)
        of_forces = _spread(along, product, *grid, weight=0.5 * weight)
        one = np.ones((len(branch), 1))
        normals = np.einsum("ci,cj->cij", moment.normal, moment.normal).reshape(-1, 9)
        of_normals = _spread(moment.point[:, None], np.concatenate([one, normals], axis=1), *grid)
    return Fields(
        origin,
        step,
        float(width),
        of_bodies[..., 0],
        of_bodies[..., 1],
        of_bodies[..., 2:5],
        of_bodies[..., 5:].reshape(*shape, 3, 3),
        of_forces.reshape(*shape, 3, 3),
        of_normals[..., 0],
        of_normals[..., 1:].reshape(*shape, 3, 3),
    )


def mean(many: Iterable[Fields]) -> Fields:
    """Fields averaged over moments, of k Fields on one grid:

        A = sum_t A_t / k for every sum A (density, momentum, motion, ...),  v = <rho v> / <rho>,  T = tr(<rho v v> - <rho> v v) / (3 <rho>)

    So velocities are weighted by mass, and fluctuations are those about the mean velocity over all moments. v [m/s], T [m^2/s^2]; units and shapes as in `Fields`.
    """
    many = list(many)
    if not many:
        raise ValueError("mean: needs at least one Fields")
    first = many[0]
    for other in many:
        same = np.array_equal(other.origin, first.origin) and other.density.shape == first.density.shape
        if not (same and np.array_equal(other.spacing, first.spacing) and other.width == first.width):
            raise ValueError(
                "mean: the fields are on different grids; make all of them with the same box, spacing and width"
            )
    averaged = (np.mean(columns, axis=0) for columns in list(zip(*many))[3:])
    return Fields(first.origin, first.spacing, first.width, *averaged)


def lucy(distance, width):
    """The kernel phi [1/m^3] at distances [m]."""
    u = np.minimum(distance / width, 1.0)
    return 105.0 / (16.0 * math.pi * width**3) * (1.0 + 3.0 * u) * (1.0 - u) ** 3


def _spread(points, values, origin, step, shape, width, shifts, weight=None):
    """Sum over rows of values (m,k) times the kernel about points (m,q,3), weighted by weight (q,): array (*shape, k).

    shifts (i,3) [m]: to the periodic images of each point.
    """
    from scipy.sparse import coo_matrix
    from scipy.spatial import cKDTree

    total = np.zeros((int(np.prod(shape)), values.shape[1]))
    weight = np.ones(points.shape[1]) if weight is None else weight
    place = np.stack(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"), axis=-1).reshape(-1, 3)
    nodes = cKDTree(origin + place * step)
    end = origin + (shape - 1) * step
    for shift in shifts:
        row, which = np.nonzero(((points + shift > origin - width) & (points + shift < end + width)).all(2))
        for part in np.array_split(np.arange(len(row)), max(1, len(row) // BLOCK)):
            if not len(part):
                continue
            here = cKDTree(points[row[part], which[part]] + shift)
            near = nodes.sparse_distance_matrix(here, width, output_type="ndarray")
            share = lucy(near["v"], width) * weight[which[part[near["j"]]]]
            total += coo_matrix((share, (near["i"], near["j"])), (len(total), len(part))).tocsr() @ values[row[part]]
    return total.reshape(*shape, -1)
