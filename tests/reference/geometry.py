"""Curvature by the formulas of textbooks, from derivatives, in float64.

`J` is `(n, d, k)`, `H` is `(n, d, k, k)`, `inverse` is `Σ⁻¹`, `(d, d)`.
"""

import numpy as np


def metric(J, inverse):
    return np.einsum("nai,ab,nbj->nij", J, inverse, J)


def christoffel(J, H, inverse):
    lower = np.einsum("nal,ab,nbij->nlij", J, inverse, H)
    return np.einsum("nml,nlij->nmij", np.linalg.inv(metric(J, inverse)), lower)


def second_fundamental_form(J, H, inverse):
    return H - np.einsum("nam,nmij->naij", J, christoffel(J, H, inverse))


def riemann(J, H, inverse):
    II = second_fundamental_form(J, H, inverse)
    inner = np.einsum("naij,ab,nbkl->nijkl", II, inverse, II)
    # R(i,j,k,l) = ⟨II_ik, II_jl⟩ − ⟨II_il, II_jk⟩
    return np.einsum("nikjl->nijkl", inner) - np.einsum("niljk->nijkl", inner)


def ricci(J, H, inverse):
    raised = np.linalg.inv(metric(J, inverse))
    return np.einsum("nik,nijkl->njl", raised, riemann(J, H, inverse))


def scalar(J, H, inverse):
    raised = np.linalg.inv(metric(J, inverse))
    return np.einsum("njl,njl->n", raised, ricci(J, H, inverse))


def mean(J, H, inverse):
    raised = np.linalg.inv(metric(J, inverse))
    II = second_fundamental_form(J, H, inverse)
    return np.einsum("nij,naij->na", raised, II) / J.shape[-1]


def sectional(J, H, inverse, u, v):
    g = metric(J, inverse)
    R = riemann(J, H, inverse)
    uu, vv, uv = (
        np.einsum("nij,ni,nj->n", g, a, b) for a, b in ((u, u), (v, v), (u, v))
    )
    bent = np.einsum("nijkl,ni,nj,nk,nl->n", R, u, v, u, v)
    return bent / (uu * vv - uv**2)


def gaussian(J, H, inverse):
    e = np.broadcast_to(np.eye(2), (len(J), 2, 2))
    return sectional(J, H, inverse, e[:, 0], e[:, 1])


def curve(J, H, inverse, u):
    v = np.einsum("nai,ni->na", J, u)
    a = np.einsum("naij,ni,nj->na", H, u, u)
    vv, aa, va = (
        np.einsum("na,ab,nb->n", p, inverse, q)
        for p, q in ((v, v), (a, a), (v, a))
    )
    return np.sqrt(aa / vv**2 - va**2 / vv**3)
