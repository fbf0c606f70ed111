// The yardstick for distances of triangles: six times point and triangle, nine times segment and segment (Ericson, Real-Time
// Collision Detection, 5.1.5 and 5.1.9), and whether an edge pierces the other triangle; one pair after the other, with
// branches. Plain C++ and OpenMP, the same arrays as clast.triangle_distance.

#include <cmath>
#include <cstdint>

struct V {
    double x, y, z;
};

static inline V operator-(V a, V b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
static inline V operator+(V a, V b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
static inline V operator*(double s, V a) { return {s * a.x, s * a.y, s * a.z}; }
static inline double dot(V a, V b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline V cross(V a, V b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
static inline double cut(double x) { return x < 0.0 ? 0.0 : x > 1.0 ? 1.0 : x; }

static inline V nearest(V p, const V *t) {
    V ab = t[1] - t[0], ac = t[2] - t[0], ap = p - t[0];
    double d1 = dot(ab, ap), d2 = dot(ac, ap);
    if (d1 <= 0.0 && d2 <= 0.0) return t[0];
    V bp = p - t[1];
    double d3 = dot(ab, bp), d4 = dot(ac, bp);
    if (d3 >= 0.0 && d4 <= d3) return t[1];
    double vc = d1 * d4 - d3 * d2;
    if (vc <= 0.0 && d1 >= 0.0 && d3 <= 0.0) return t[0] + (d1 / (d1 - d3)) * ab;
    V cp = p - t[2];
    double d5 = dot(ab, cp), d6 = dot(ac, cp);
    if (d6 >= 0.0 && d5 <= d6) return t[2];
    double vb = d5 * d2 - d1 * d6;
    if (vb <= 0.0 && d2 >= 0.0 && d6 <= 0.0) return t[0] + (d2 / (d2 - d6)) * ac;
    double va = d3 * d6 - d5 * d4;
    if (va <= 0.0 && d4 - d3 >= 0.0 && d5 - d6 >= 0.0)
        return t[1] + ((d4 - d3) / ((d4 - d3) + (d5 - d6))) * (t[2] - t[1]);
    double over = 1.0 / (va + vb + vc);
    return t[0] + (vb * over) * ab + (vc * over) * ac;
}

static inline void segments(V p1, V q1, V p2, V q2, V &c1, V &c2) {
    V d1 = q1 - p1, d2 = q2 - p2, r = p1 - p2;
    double a = dot(d1, d1), e = dot(d2, d2), f = dot(d2, r), c = dot(d1, r), b = dot(d1, d2);
    double denominator = a * e - b * b;
    double s = denominator > 0.0 ? cut((b * f - c * e) / denominator) : 0.0;
    double t = (b * s + f) / e;
    if (t < 0.0) {
        t = 0.0;
        s = cut(-c / a);
    } else if (t > 1.0) {
        t = 1.0;
        s = cut((b - c) / a);
    }
    c1 = p1 + s * d1;
    c2 = p2 + t * d2;
}

static inline bool pierced(const V *t, V p, V q, V &c) {
    V n = cross(t[1] - t[0], t[2] - t[0]);
    double hp = dot(n, p - t[0]), hq = dot(n, q - t[0]);
    if ((hp > 0.0) == (hq > 0.0)) return false;
    c = p + (hp / (hp - hq)) * (q - p);
    for (int i = 0; i < 3; i++)
        if (dot(n, cross(t[(i + 1) % 3] - t[i], c - t[i])) < 0.0) return false;
    return true;
}

extern "C" void distances(int64_t n, const double *a, const double *b, double *distance, double *p, double *q) {
#pragma omp parallel for schedule(static)
    for (int64_t k = 0; k < n; k++) {
        const V *t = (const V *)(a + 9 * k), *o = (const V *)(b + 9 * k);
        V c1 = t[0], c2 = o[0], x, y;
        double best = INFINITY;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                segments(t[i], t[(i + 1) % 3], o[j], o[(j + 1) % 3], x, y);
                double d = dot(x - y, x - y);
                if (d < best) best = d, c1 = x, c2 = y;
            }
        for (int i = 0; i < 3; i++) {
            y = nearest(t[i], o);
            double d = dot(t[i] - y, t[i] - y);
            if (d < best) best = d, c1 = t[i], c2 = y;
            x = nearest(o[i], t);
            d = dot(o[i] - x, o[i] - x);
            if (d < best) best = d, c1 = x, c2 = o[i];
        }
        for (int i = 0; i < 3; i++)
            if (pierced(t, o[i], o[(i + 1) % 3], x) || pierced(o, t[i], t[(i + 1) % 3], x)) {
                best = 0.0, c1 = c2 = x;
                break;
            }
        distance[k] = std::sqrt(best);
        ((V *)p)[k] = c1;
        ((V *)q)[k] = c2;
    }
}
