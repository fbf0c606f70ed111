// The yardstick for a contact search: spheres into cells, sort by cell, look at half of the neighbouring cells, write
// every contact. Plain C++ and OpenMP, the same arrays out as clast.find_contacts: pair, point, normal, gap.
//
// A first pass counts, a second one fills, so that memory is asked for once and exactly. Contacts come in the order of
// the cells, which does not depend on the number of threads.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>
#ifdef __linux__
#include <sys/mman.h>
#endif

struct Sphere {
    double x, y, z, r;
};

struct Result {
    int64_t count;
    int64_t *pair;
    double *point, *normal, *gap;
};

// NumPy asks for large pages for its large arrays; without them half of the time goes into page faults.
static void *large(size_t bytes) {
    const size_t page = size_t(1) << 21;
    void *memory = std::aligned_alloc(page, (bytes / page + 1) * page);
#ifdef __linux__
    if (memory) madvise(memory, (bytes / page + 1) * page, MADV_HUGEPAGE);
#endif
    return memory;
}

template <typename Visit>
static inline void neighbours(const std::vector<Sphere> &s, const std::vector<int64_t> &start, const int64_t n[3],
                              int64_t cx, int64_t cy, int64_t cz, Visit visit) {
    const int64_t here = (cz * n[1] + cy) * n[0] + cx;
    for (int64_t i = start[here]; i < start[here + 1]; ++i) {
        // The rest of this cell and the next in the row are one run of memory, and so is each of the other four rows.
        const int64_t last = cx + 1 < n[0] ? here + 2 : here + 1;
        for (int64_t j = i + 1; j < start[last]; ++j) visit(i, j);
        for (int k = 0; k < 4; ++k) {
            const int64_t y = cy + (k == 0 ? 1 : k - 2), z = cz + (k == 0 ? 0 : 1);
            if (y < 0 || y >= n[1] || z >= n[2]) continue;
            const int64_t row = (z * n[1] + y) * n[0];
            const int64_t lo = row + std::max<int64_t>(cx - 1, 0), hi = row + std::min<int64_t>(cx + 1, n[0] - 1);
            for (int64_t j = start[lo]; j < start[hi + 1]; ++j) visit(i, j);
        }
    }
}

extern "C" int64_t find(int64_t count, const double *position, const double *radius, double margin, Result *out) {
    double lo[3] = {1e300, 1e300, 1e300}, hi[3] = {-1e300, -1e300, -1e300}, most = 0.0;
#pragma omp parallel for schedule(static) reduction(min : lo[:3]) reduction(max : hi[:3], most)
    for (int64_t i = 0; i < count; ++i) {
        for (int k = 0; k < 3; ++k) {
            lo[k] = std::min(lo[k], position[3 * i + k]);
            hi[k] = std::max(hi[k], position[3 * i + k]);
        }
        most = std::max(most, radius[i]);
    }
    const double edge = 2.0 * most + margin;
    int64_t n[3];
    for (int k = 0; k < 3; ++k) n[k] = (int64_t)((hi[k] - lo[k]) / edge) + 1;
    const int64_t cells = n[0] * n[1] * n[2];

    std::vector<int64_t> cell(count), start(cells + 1, 0);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; ++i) {
        int64_t c[3];
        for (int k = 0; k < 3; ++k) c[k] = (int64_t)((position[3 * i + k] - lo[k]) / edge);
        cell[i] = (c[2] * n[1] + c[1]) * n[0] + c[0];
    }
    for (int64_t i = 0; i < count; ++i) ++start[cell[i] + 1];
    for (int64_t c = 0; c < cells; ++c) start[c + 1] += start[c];
    std::vector<int64_t> next(start.begin(), start.end() - 1), number(count);
    std::vector<Sphere> s(count);
    for (int64_t i = 0; i < count; ++i) {
        const int64_t to = next[cell[i]]++;
        number[to] = i;
        s[to] = {position[3 * i], position[3 * i + 1], position[3 * i + 2], radius[i]};
    }

    const int64_t rows = n[1] * n[2];
    std::vector<int64_t> first(rows + 1, 0);
#pragma omp parallel for schedule(dynamic, 16)
    for (int64_t row = 0; row < rows; ++row) {
        int64_t found = 0;
        for (int64_t cx = 0; cx < n[0]; ++cx)
            neighbours(s, start, n, cx, row % n[1], row / n[1], [&](int64_t i, int64_t j) {
                const double x = s[j].x - s[i].x, y = s[j].y - s[i].y, z = s[j].z - s[i].z;
                const double reach = s[i].r + s[j].r + margin;
                found += x * x + y * y + z * z < reach * reach;
            });
        first[row + 1] = found;
    }
    for (int64_t row = 0; row < rows; ++row) first[row + 1] += first[row];

    const int64_t total = first[rows];
    *out = {total, (int64_t *)large(16 * total), (double *)large(24 * total), (double *)large(24 * total),
            (double *)large(8 * total)};
    if (!out->pair || !out->point || !out->normal || !out->gap) return -1;
#pragma omp parallel for schedule(dynamic, 16)
    for (int64_t row = 0; row < rows; ++row) {
        int64_t c = first[row];
        for (int64_t cx = 0; cx < n[0]; ++cx)
            neighbours(s, start, n, cx, row % n[1], row / n[1], [&](int64_t i, int64_t j) {
                const double x = s[j].x - s[i].x, y = s[j].y - s[i].y, z = s[j].z - s[i].z;
                const double reach = s[i].r + s[j].r + margin, square = x * x + y * y + z * z;
                if (square >= reach * reach) return;
                const double distance = std::sqrt(square), sign = number[i] < number[j] ? 1.0 : -1.0;
                const double gap = distance - s[i].r - s[j].r, over = 1.0 / distance;
                const double middle = (s[i].r + 0.5 * gap) * over;
                out->pair[2 * c] = std::min(number[i], number[j]);
                out->pair[2 * c + 1] = std::max(number[i], number[j]);
                out->point[3 * c] = s[i].x + middle * x;
                out->point[3 * c + 1] = s[i].y + middle * y;
                out->point[3 * c + 2] = s[i].z + middle * z;
                out->normal[3 * c] = sign * over * x;
                out->normal[3 * c + 1] = sign * over * y;
                out->normal[3 * c + 2] = sign * over * z;
                out->gap[c] = gap;
                ++c;
            });
    }
    return total;
}

extern "C" void release(Result *out) {
    std::free(out->pair);
    std::free(out->point);
    std::free(out->normal);
    std::free(out->gap);
}
